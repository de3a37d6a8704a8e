"""Ignore files: which names they exclude, in bounded time and memory whatever they contain.

Each file becomes a RuleSet. A Scope is the rules that apply inside one folder: the rule sets that reach it, in
ripgrep's order of precedence. All names of a folder are first matched at once against everything that its rules could
mean (``find_mentions``); only names that some rule mentions are checked one by one (``verdict``).

Within a file, the last pattern that matches decides. So patterns are numbered by *run*, a stretch of consecutive
patterns with the same sign, and the highest run that matches wins. Tables are keyed by the fixed text that a pattern
begins or ends with, so a name is compared only with the few patterns that can match it. As one regular expression,
50,000 patterns take RE2 hundreds of megabytes and, once its automaton no longer fits, 20 µs a byte.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from flashgrep.base.errors import Busy
from flashgrep.files.globset import TooDeep
from flashgrep.files.openat import EXHAUSTED
from flashgrep.files.rule_dialects import GIT_RULES, Rule, RuleDialect
from flashgrep.files.wildcard import BadGlob, compile_finder, compile_matcher

# What exceeds a bound is not used, and ``cut`` says so. A bound never hides a file: if
# a negated pattern does not fit, the patterns before it are dropped, since it might
# re-include what they exclude.
MAX_RULES_FILE = 16 << 20
"""Bytes of one ignore file; a larger one is not used, and nobody writes one by hand."""
MAX_GLOB = 4096
"""Bytes of one pattern: the longest path on Linux."""
MAX_PATTERNS = 200_000
"""Patterns of one file: about 60 MB of tables."""
MAX_SHARING = 1000
"""Patterns with the same key, or with none: a name with that key is tried on all of them, 0.1 µs to 0.5 µs each."""
MANY_GLOBS = 256
MANY_RUNS = 64
"""With more wildcard patterns or runs than this, all names of a folder are checked one by one."""
KEY_LENGTHS = (16, 8, 4, 2, 1)
LONG = 64 << 10
"""Bytes of a file from which its parsed rules are kept between walks: parsing it each time takes seconds."""
NEVER_WALKED = frozenset((b".git", b".flashgrep"))
"""Folders that are never walked, whatever the rules say."""
_SET = re.compile(rb"\[[^\]]*\]")
_FIXED = re.compile(rb"(?:\\x[0-9a-f]{2})+")
"""Literal bytes, as ``translate`` writes them."""
_FIXED_BYTES = 4
_NOTHING: frozenset[bytes] = frozenset()


class _Glob(NamedTuple):
    """A pattern with wildcards: the prefix, suffix and substring that a text must have, then the full match."""

    run: int
    folders_only: bool
    head: bytes
    tail: bytes
    needle: bytes
    source: bytes
    """A regular expression; empty if the pattern is head, one star, tail."""

    def matches(self, text: bytes) -> bool:
        if not (
            text.startswith(self.head)
            and text.endswith(self.tail)
            and self.needle in text
        ):
            return False
        if self.source:
            return _compile(self.source)(text)
        fixed = len(self.head) + len(self.tail)
        return (
            len(text) >= fixed
            and b"/" not in text[len(self.head) : len(text) - len(self.tail)]
        )


@lru_cache(maxsize=1024)
def _compile(source: bytes) -> Callable[[bytes], bool]:
    return compile_matcher([source])


def _find_fixed_parts(source: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the texts that all matches of a translated pattern begin with, end with and contain."""
    opening = _FIXED.match(source)
    if opening:
        head = opening.group()
    else:
        head = b""
    end = len(source)
    while source[end - _FIXED_BYTES : end - 2] == rb"\x":
        end -= _FIXED_BYTES
    needle = b""
    # Braces hold alternatives: then only head and tail are certain.
    if b"|" not in source:
        needle = max(_FIXED.findall(_SET.sub(b" ", source)), key=len, default=b"")
    return _decode(head), _decode(source[end:]), _decode(needle)


def _decode(fixed: bytes) -> bytes:
    return bytes.fromhex(fixed.replace(rb"\x", b"").decode("ascii"))


class _Table:
    """The patterns of a file that are matched against names, or those matched against paths."""

    def __init__(self) -> None:
        self.plain: dict[bytes, int] = {}
        """Patterns without wildcards, with their runs."""
        self.plain_folders: dict[bytes, int] = {}
        self._heads: dict[int, dict[bytes, list[_Glob]]] = {}
        self._tails: dict[int, dict[bytes, list[_Glob]]] = {}
        self._others: list[_Glob] = []
        self.globs: list[bytes] = []
        """All patterns with wildcards."""

    def __bool__(self) -> bool:
        return bool(self.globs or self.plain or self.plain_folders)

    def find_any(self, dialect: RuleDialect) -> Callable[[bytes], list[bytes]] | None:
        """Return a function that finds what wildcard patterns match among many texts, each between two NULs."""
        framed = [
            rb"\x00(?:" + dialect.translate(glob) + rb")\x00" for glob in self.globs
        ]
        if framed:
            return compile_finder(framed)
        return None

    def add(
        self, glob: bytes, dialect: RuleDialect, run: int, *, folders_only: bool
    ) -> bool:
        """Add a pattern; return whether there was room.

        Raises:
            BadGlob: it cannot be parsed.
            TooDeep: it has too many braces inside one another.

        """
        if dialect.find_plain_name(glob) is not None:
            if folders_only:
                self.plain_folders[glob] = run
            else:
                self.plain[glob] = run
            return True
        head, star, tail = glob.partition(b"*")
        source = needle = b""
        if (
            not star
            or dialect.find_plain_name(head) is None
            or dialect.find_plain_name(tail) is None
        ):
            source = dialect.translate(glob)
            head, tail, needle = _find_fixed_parts(source)
        if len(head) >= len(tail):
            key = head
            tables = self._heads
        else:
            key = tail
            tables = self._tails
        length = next((length for length in KEY_LENGTHS if length <= len(key)), 0)
        sharing = self._others
        if length:
            if tables is self._heads:
                short = key[:length]
            else:
                short = key[-length:]
            sharing = tables.setdefault(length, {}).setdefault(short, [])
        if len(sharing) >= MAX_SHARING:
            return False
        sharing.append(_Glob(run, folders_only, head, tail, needle, source))
        self.globs.append(glob)
        return True

    def last_run(self, text: bytes, best: int, *, is_dir: bool) -> int:
        """Return the highest run with a pattern that matches, or ``best`` if none is higher."""
        best = max(
            best,
            self.plain.get(text, -1),
            self.plain_folders.get(text, -1) if is_dir else -1,
        )
        candidates = [
            heads.get(text[:length], ()) for length, heads in self._heads.items()
        ]
        candidates += [
            tails.get(text[-length:], ()) for length, tails in self._tails.items()
        ]
        for globs in (*candidates, self._others):
            for glob in globs:
                if (
                    glob.run > best
                    and (is_dir or not glob.folders_only)
                    and glob.matches(text)
                ):
                    best = glob.run
        return best


class RuleSet:
    """The rules of one ignore file; ``strip`` and ``prefix`` turn a path from the root into one from its folder."""

    def __init__(
        self,
        rules: Iterable[Rule],
        dialect: RuleDialect = GIT_RULES,
        *,
        strip: int = 0,
        prefix: bytes = b"",
    ) -> None:
        self.cut = ""
        """What part of the file is not used, if any."""
        self._strip = strip
        self._prefix = prefix
        self._clear()
        for rule in rules:
            if not self.signs or self.signs[-1] is not rule.ignores:
                self.signs.append(rule.ignores)
            if rule.by_path:
                table = self._paths
            else:
                table = self._names
            has_room = True
            try:
                has_room = table.add(
                    rule.glob,
                    dialect,
                    len(self.signs) - 1,
                    folders_only=rule.folders_only,
                )
            except BadGlob:
                pass  # it matches nothing, as in git and in ripgrep
            except TooDeep:
                self._clear()  # ripgrep does not use such a file at all
                break
            self.used += has_room
            if not has_room and not rule.ignores:
                self._clear()
        self._checks_all = (
            len(self.signs) > MANY_RUNS
            or len(self._names.globs) + len(self._paths.globs) > MANY_GLOBS
        )
        if not self._checks_all:
            self._plain_names = frozenset(
                (*self._names.plain, *self._names.plain_folders)
            )
            self._plain_paths: dict[bytes, set[bytes]] = {}
            """Names that rules mention, by folder."""
            for path in (*self._paths.plain, *self._paths.plain_folders):
                folder, _, name = path.rpartition(b"/")
                self._plain_paths.setdefault(folder, set()).add(name)
            self._find_names = self._names.find_any(dialect)
            self._find_paths = self._paths.find_any(dialect)
            # What matches an empty text would match between two names, and take the NUL
            # before the next one.
            self._checks_all = any(
                find is not None and find(b"\0\0")
                for find in (self._find_names, self._find_paths)
            )

    def _clear(self) -> None:
        self._names = _Table()
        self._paths = _Table()
        self.signs: list[bool] = []
        """For each run, whether it ignores what it matches; False re-includes it."""
        self.used = 0

    def verdict(self, path: bytes, name: bytes, is_dir: bool) -> bool | None:  # noqa: FBT001 - hot, called by position
        """Return True for ignored, False for re-included by a negated pattern, None if no rule matches."""
        run = self._names.last_run(name, -1, is_dir=is_dir)
        if self._paths:
            run = self._paths.last_run(
                self._prefix + path[self._strip :], run, is_dir=is_dir
            )
        if run < 0:
            return None
        return self.signs[run]

    def find_mentions(
        self, folder: bytes, names: Collection[bytes], joined: bytes
    ) -> Iterator[bytes]:
        """Yield the names in ``folder`` that some rule may match; ``joined``: all names, each between two NULs.

        This is one pass over the folder's names, so most of them need no check of their own.
        """
        if self._checks_all:
            yield from names
            return
        yield from self._plain_names.intersection(names)
        if self._find_names is not None:
            for name in self._find_names(joined):
                yield name[1:-1]
        if self._paths:
            local = (self._prefix + folder[self._strip :]).removesuffix(b"/")
            yield from self._plain_paths.get(local, _NOTHING).intersection(names)
            if self._find_paths is not None:
                if local:
                    lead = b"\0" + local + b"/"
                else:
                    lead = b"\0"
                placed = joined[1:-1].replace(b"\0\0", b"\0" + lead)
                placed = lead + placed + b"\0"
                for path in self._find_paths(placed):
                    yield path[len(lead) : -1]

    def __bool__(self) -> bool:
        return bool(self.signs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The rules that apply inside one folder; within each kind, the nearest file comes first."""

    hidden: bool = False
    """Hidden names are included."""
    in_git: bool = False
    flashgrep: tuple[RuleSet, ...] = ()
    ripgrep: tuple[RuleSet, ...] = ()
    ignore: tuple[RuleSet, ...] = ()
    git: tuple[RuleSet, ...] = ()
    git_last: tuple[RuleSet, ...] = ()
    """The repository's info/exclude, then the user's global excludes."""
    order: tuple[RuleSet, ...] = ()

    def with_rules(self, **kinds: tuple[RuleSet, ...]) -> "Scope":
        """Return this scope with all rules of the given kinds replaced."""
        changed = replace(self, **kinds)  # type: ignore[arg-type]  # every keyword names a tuple of rule sets
        order = (
            *changed.flashgrep,
            *changed.ripgrep,
            *changed.ignore,
            *changed.git,
            *changed.git_last,
        )
        return replace(changed, order=order)

    def within_git(self) -> "Scope":
        """Return this scope, marked as inside a repository."""
        return replace(self, in_git=True)

    def admits(self, path: bytes, name: bytes, is_dir: bool) -> bool:  # noqa: FBT001 - hot, called by position
        """Return whether a walk visits the entry ``name`` of this folder, at ``path`` from the root."""
        if name in NEVER_WALKED:
            return False
        ignored = self.ignores(path, name, is_dir=is_dir)
        if ignored is None:
            return not name.startswith(b".") or self.hidden
        return not ignored

    def ignores(self, path: bytes, name: bytes, *, is_dir: bool) -> bool | None:
        """Return True if a rule excludes the entry, False if one re-includes it, None if none matches."""
        return next(
            (
                verdict
                for rules in self.order
                if (verdict := rules.verdict(path, name, is_dir)) is not None
            ),
            None,
        )

    def find_mentions(
        self, folder: bytes, names: Collection[bytes]
    ) -> frozenset[bytes]:
        """Return the names in ``folder`` that some rule may match; others are excluded only if they are hidden."""
        if not self.order or not names:
            return _NOTHING
        joined = b"\0" + b"\0\0".join(names) + b"\0"
        return frozenset(
            name
            for rules in self.order
            for name in rules.find_mentions(folder, names, joined)
        )


def read_rules(
    path: bytes,
    *,
    strip: int = 0,
    prefix: bytes = b"",
    dialect: RuleDialect = GIT_RULES,
) -> RuleSet | None:
    """Return the rules of the file at ``path``, or None if it cannot be read or has none."""
    try:
        # O_NONBLOCK: a pipe in its place must not block us.
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
    rules = (_remember_rules if len(text) >= LONG else _make_rules)(
        text, strip, prefix, dialect
    )
    if rules or rules.cut:
        return rules
    return None


def _make_rules(
    text: bytes, strip: int, prefix: bytes, dialect: RuleDialect
) -> RuleSet:
    total = 0
    used = dict[Rule, None]()
    for rule in dialect.parse(text):
        total += rule not in used
        used.pop(rule, None)  # of repeated lines, the last counts
        if len(rule.glob) <= MAX_GLOB and len(used) < MAX_PATTERNS:
            used[rule] = None
        elif not rule.ignores:
            used.clear()
    rules = RuleSet(used, dialect, strip=strip, prefix=prefix)
    if rules.used < total:
        rules.cut = f"{rules.used:,} of {total:,} patterns used"
    return rules


_remember_rules = lru_cache(maxsize=2)(_make_rules)
