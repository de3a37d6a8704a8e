"""Ignore files: which names they take out, by git's rules, in time linear in the path.

One file becomes a RuleSet. Its rules are cut into runs of equal sign, newest last: the last run that matches decides,
as "the last matching pattern decides". A run is two tables of plain names and paths and one regular expression.
A Scope is what holds inside one folder: the rule sets that reach it, in ripgrep's order of precedence.
"""

import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from flashgrep.errors import Busy
from flashgrep.ingest.openat import EXHAUSTED
from flashgrep.ingest.rule_index import Line, RuleIndex
from flashgrep.ingest.wildcard import GIT, BadGlob, Dialect, finder, matcher, plain, translate

MAX_RULES_FILE = 16 << 20
"""Bytes read of one ignore file; nobody writes a larger one by hand."""
MAX_GLOB = 4096
"""Bytes of one pattern: the longest path Linux takes. A longer one is not used."""
MAX_PATTERNS = 200_000
"""Patterns of one file: some 60 MB of tables."""
MANY_GLOBS = 256
MANY_RUNS = 64
"""Patterns with wildcards, and changes between ignoring and asking back, from which a file's rules are a RuleIndex."""
LONG = 64 << 10
"""Bytes from which a file's rules are kept between walks: reading so many again and again takes seconds."""
OURS = frozenset((b".git", b".flashgrep"))
"""Folders that are never ours to read, whatever the rules say."""


class Rule(NamedTuple):
    """One line of an ignore file."""

    ignores: bool
    folders_only: bool
    by_path: bool
    """Matched against the path from the file's folder on, not against the name alone."""
    plain: bytes | None
    source: bytes


class _Run(NamedTuple):
    ignores: bool
    names: frozenset[bytes]
    folder_names: frozenset[bytes]
    paths: frozenset[bytes]
    folder_paths: frozenset[bytes]
    globs: Callable[[bytes], bool] | None
    folder_globs: Callable[[bytes], bool] | None

    def matches(self, path: bytes, name: bytes, is_dir: bool) -> bool:  # noqa: FBT001 - hot, called by position
        if name in self.names or path in self.paths:
            return True
        if self.globs is not None and self.globs(path):
            return True
        if not is_dir:
            return False
        if name in self.folder_names or path in self.folder_paths:
            return True
        return self.folder_globs is not None and self.folder_globs(path)


def parse_lines(text: bytes) -> Iterator[Line]:
    """Yield what the lines of an ignore file's text say; one that cannot match anything is left out, as git does."""
    for ended in io.BytesIO(text.removeprefix(b"\xef\xbb\xbf")):
        line = ended.removesuffix(b"\n")
        if line and not line.startswith(b"#"):
            parsed = _line(_trim(line.removesuffix(b"\r")))
            if parsed.glob:
                yield parsed


def _trim(line: bytes) -> bytes:
    """Cut trailing spaces, but not one that a backslash protects."""
    trimmed = line.rstrip(b" ")
    if len(trimmed) == len(line):
        return line
    backslashes = len(trimmed) - len(trimmed.rstrip(b"\\"))
    return trimmed + b" " if backslashes % 2 else trimmed


def _line(line: bytes) -> Line:
    ignores = not line.startswith(b"!")
    glob = line if ignores else line[1:]
    folders_only = glob.endswith(b"/")
    if folders_only:
        glob = glob[:-1]
    by_path = b"/" in glob
    return Line(ignores, folders_only, by_path, glob.removeprefix(b"/"))


def _rule(line: Line, dialect: Dialect) -> Rule | None:
    ignores, folders_only, by_path, glob = line
    literal = plain(glob, dialect)
    if literal is not None:
        return Rule(ignores, folders_only, by_path, literal, b"")
    try:
        return Rule(ignores, folders_only, by_path, None, translate(glob, dialect))
    except BadGlob:
        return None


class RuleSet:
    """The rules of one ignore file; ``strip`` and ``prefix`` make a path from its folder of one from the root."""

    def __init__(self, rules: Iterable[Rule], *, strip: int = 0, prefix: bytes = b"") -> None:
        listed = list(rules)
        self.cut = ""
        self._strip = strip
        self._prefix = prefix
        self._runs = tuple(_run(ignores, list(group)) for ignores, group in groupby(listed, lambda rule: rule.ignores))[
            ::-1
        ]
        self._names = frozenset(rule.plain for rule in listed if rule.plain is not None and not rule.by_path)
        self._paths = _by_folder(rule.plain for rule in listed if rule.plain is not None and rule.by_path)
        self._find_names = _anywhere(rule.source for rule in listed if rule.plain is None and not rule.by_path)
        self._find_paths = _anywhere(rule.source for rule in listed if rule.plain is None and rule.by_path)

    def verdict(self, path: bytes, name: bytes, is_dir: bool) -> bool | None:  # noqa: FBT001 - hot, called by position
        """Return True for ignored, False for asked back by a negation, None where no rule speaks."""
        local = self._prefix + path[self._strip :]
        for run in self._runs:
            if run.matches(local, name, is_dir):
                return run.ignores
        return None

    def touched(self, folder: bytes, names: Collection[bytes], joined: bytes) -> Iterator[bytes]:
        """Yield the names in ``folder`` that some rule speaks of; ``joined`` is all of them, NUL on both sides of each.

        It costs one pass over the folder's names, so that most names need no look of their own.
        """
        yield from self._names.intersection(names)
        if self._find_names is not None:
            for found in self._find_names(joined):
                yield found[1:-1]
        if self._paths or self._find_paths is not None:
            local = (self._prefix + folder[self._strip :]).removesuffix(b"/")
            yield from self._paths.get(local, _NOTHING).intersection(names)
            if self._find_paths is not None:
                lead = b"\0" + local + b"/" if local else b"\0"
                placed = lead + joined[1:-1].replace(b"\0\0", b"\0" + lead) + b"\0"
                for found in self._find_paths(placed):
                    yield found[len(lead) : -1]

    def __bool__(self) -> bool:
        return bool(self._runs)


_NOTHING: frozenset[bytes] = frozenset()


def _run(ignores: bool, rules: list[Rule]) -> _Run:  # noqa: FBT001 - a field of the result
    plain_rules = [rule for rule in rules if rule.plain is not None]

    def table(*, by_path: bool, folders_only: bool) -> frozenset[bytes]:
        return frozenset(
            rule.plain
            for rule in plain_rules
            if rule.plain is not None and rule.by_path == by_path and rule.folders_only == folders_only
        )

    globs = [_anchored(rule) for rule in rules if rule.plain is None and not rule.folders_only]
    folder_globs = [_anchored(rule) for rule in rules if rule.plain is None and rule.folders_only]
    return _Run(
        ignores,
        table(by_path=False, folders_only=False),
        table(by_path=False, folders_only=True),
        table(by_path=True, folders_only=False),
        table(by_path=True, folders_only=True),
        matcher(globs) if globs else None,
        matcher(folder_globs) if folder_globs else None,
    )


def _anchored(rule: Rule) -> bytes:
    return rule.source if rule.by_path else rb"(?:[^\x00]*/)?(?:" + rule.source + b")"


def _by_folder(paths: Iterable[bytes]) -> dict[bytes, frozenset[bytes]]:
    folders: dict[bytes, set[bytes]] = {}
    for path in paths:
        folder, _, name = path.rpartition(b"/")
        folders.setdefault(folder, set()).add(name)
    return {folder: frozenset(names) for folder, names in folders.items()}


def _anywhere(sources: Iterable[bytes]) -> Callable[[bytes], list[bytes]] | None:
    framed = [rb"\x00(?:" + source + rb")\x00" for source in sources]
    return finder(framed) if framed else None


Rules = RuleSet | RuleIndex
"""The rules of one ignore file; ``cut`` says what of it is not used, if anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rules that hold inside one folder, each kind from the nearest file outwards."""

    hidden: bool = False
    """Hidden names are wanted."""
    in_git: bool = False
    flashgrep: tuple[Rules, ...] = ()
    ripgrep: tuple[Rules, ...] = ()
    ignore: tuple[Rules, ...] = ()
    git: tuple[Rules, ...] = ()
    git_last: tuple[Rules, ...] = ()
    """The repository's info/exclude, then the user's global excludes."""
    order: tuple[Rules, ...] = ()

    def with_rules(self, **kinds: tuple[Rules, ...]) -> "Scope":
        """Return this scope with whole kinds of rules replaced."""
        changed = replace(self, **kinds)  # type: ignore[arg-type]  # every keyword names a tuple of rule sets
        order = (*changed.flashgrep, *changed.ripgrep, *changed.ignore, *changed.git, *changed.git_last)
        return replace(changed, order=order)

    def within_git(self) -> "Scope":
        """Return this scope as one inside a repository."""
        return replace(self, in_git=True)

    def admits(self, path: bytes, name: bytes, is_dir: bool) -> bool:  # noqa: FBT001 - hot, called by position
        """Return whether the entry ``name`` of this folder, at ``path`` from the root, is to be visited."""
        if name in OURS:
            return False
        ignored = self.ignores(path, name, is_dir=is_dir)
        return not name.startswith(b".") or self.hidden if ignored is None else not ignored

    def ignores(self, path: bytes, name: bytes, *, is_dir: bool) -> bool | None:
        """Return True where a rule takes the entry out, False where one asks it back, None where none speaks of it."""
        return next((said for rules in self.order if (said := rules.verdict(path, name, is_dir)) is not None), None)

    def touched(self, folder: bytes, names: Collection[bytes]) -> frozenset[bytes]:
        """Return the names in ``folder`` that some rule speaks of; all others are judged by being hidden alone."""
        if not self.order or not names:
            return _NOTHING
        joined = b"\0" + b"\0\0".join(names) + b"\0"
        return frozenset(name for rules in self.order for name in rules.touched(folder, names, joined))


def read_rules(path: bytes, *, strip: int = 0, prefix: bytes = b"", dialect: Dialect = GIT) -> Rules | None:
    """Return the rules of the file at ``path``, or None when there is none to be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise Busy(f"out of resources: {error.strerror}") from error
        return None
    try:
        text = os.read(handle, MAX_RULES_FILE + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    if len(text) > MAX_RULES_FILE:
        unused = RuleSet(())
        unused.cut = f"larger than {MAX_RULES_FILE >> 20} MiB, not used"
        return unused
    rules = (_remembered if len(text) >= LONG else _rules_of)(text, strip, prefix, dialect)
    return rules if rules or rules.cut else None


def _rules_of(text: bytes, strip: int, prefix: bytes, dialect: Dialect) -> Rules:
    total, lines = 0, dict[Line, None]()
    for line in parse_lines(text):
        total += line not in lines
        lines.pop(line, None)  # of a line that is repeated the last counts
        if len(line.glob) <= MAX_GLOB and len(lines) < MAX_PATTERNS:
            lines[line] = None
        elif not line.ignores:  # to leave it out alone would hide the files it asks back
            lines.clear()
    many_globs = sum(plain(line.glob, dialect) is None for line in lines) > MANY_GLOBS
    rules: Rules
    if many_globs or sum(1 for _ in groupby(lines, lambda line: line.ignores)) > MANY_RUNS:
        rules = RuleIndex(lines, dialect, strip=strip, prefix=prefix)
        used = rules.used
    else:
        rules = RuleSet((rule for line in lines if (rule := _rule(line, dialect))), strip=strip, prefix=prefix)
        used = len(lines)
    if used < total:
        rules.cut = f"{used:,} of {total:,} patterns used"
    return rules


_remembered = lru_cache(maxsize=2)(_rules_of)
