r"""Which paths a caller wants: include and exclude globs, languages, ripgrep's ``-g``, and the patterns of `glob`.

Our own ``include`` and ``exclude`` work the way people write them:

    *.py            a file name, at any depth
    src/**/*.py     a path from the root, like every glob with a "/" before its end
    **/src/*.py     a path from any folder
    src, src/       the folder (or file) src at any depth, with everything below it; /src: at the root
    src\**\*.py     a backslash separates like "/"
    app/\[id]/*.ts  but before a bracket or a brace it takes its meaning away: the folder [id]

If only files below a folder are wanted, a path may also be relative to that folder.

Wildcards are those of ``wildcard``, including braces; docs/design/paths.md says where ripgrep's ``-g`` differs. A path
must match one glob of ``include`` and none of ``exclude``; ``!glob`` in ``include`` is an exclude. Languages are
ripgrep's file types (``types.txt``, the output of ``rg --type-list``), and those of ours that it lacks.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Literal

import numpy as np
import re2
from rapidfuzz import fuzz, process

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import InvalidParams
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.model import path_to_text
from flashgrep.base.own_folders import NO_FOLDERS, PrivateFolders
from flashgrep.base.path_text import Literals, Mask, PathText
from flashgrep.files.globset import translate_flag
from flashgrep.files.rule_dialects import Rule, parse_ripgrep_rule
from flashgrep.files.wildcard import (
    BRACES,
    BadGlob,
    Dialect,
    compile_matcher,
    expand_alternatives,
    find_literals,
    find_plain_name,
    translate,
)

Predicate = Callable[[bytes], bool]

_ALIASES = {
    **{row.name: row.type for row in LANGUAGES.values() if row.type},
    **{
        alias: row.type or row.name
        for row in LANGUAGES.values()
        for alias in row.aliases.split()
    },
}
"""Other names for types of the table; types that the table has under two names (py and python) need none."""
_NEAR = 60  # per cent of similarity from which a name is suggested


def types() -> dict[str, tuple[str, ...]]:
    """Return ripgrep's table: the globs of each type's file names."""
    return dict(_table())


class TypeFilter:
    """Files of some types: as a predicate, and as the literal parts that their paths have.

    Raises:
        InvalidParams: an unknown type; ``suggestions`` has similar names.

    """

    def __init__(self, names: Sequence[str]) -> None:
        globs = [glob for name in names for glob in _find_globs(name)]
        self._has_name = name_matcher(globs)
        self.literals = [
            literal
            for glob in globs
            for literal in find_literals(glob.encode(), BRACES, any_depth=True)
        ]

    def matches(self, path: bytes) -> bool:
        """Return whether the file at ``path`` is of one of the types."""
        return self._has_name(path.rpartition(b"/")[2])


def _find_globs(name: str) -> tuple[str, ...]:
    table = _table()
    key = name.strip().lower()
    if key == "all":
        return tuple(glob for globs in table.values() for glob in globs)
    found_globs = table.get(_ALIASES.get(key, key))
    if found_globs is not None:
        return found_globs
    if key in LANGUAGES:
        return LANGUAGES[key].globs()
    names = sorted({*table, *_ALIASES, *LANGUAGES})
    ranked = process.extract(
        name.lower(),
        names,
        scorer=fuzz.ratio,
        score_cutoff=_NEAR,
        limit=5,
    )
    near = [candidate for candidate, _, _ in ranked]
    if near:
        hint = f", did you mean {', '.join(near)}?"
    else:
        hint = ""
    raise InvalidParams(
        f"unknown language: {name}{hint}",
        field="language",
        value=name,
        suggestions=near,
    )


@cache
def _table() -> dict[str, tuple[str, ...]]:
    text = files("flashgrep.files").joinpath("types.txt").read_text("ascii")
    rows = (line.partition(": ") for line in text.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in rows}


def name_matcher(globs: Iterable[str]) -> Predicate:
    """Return the predicate of file names that match one of the globs, by suffixes and whole names if they suffice."""
    names = set()
    endings = set()
    others = []
    for glob in (
        simple
        for given_glob in globs
        for simple in expand_alternatives(given_glob.encode())
    ):
        if find_plain_name(glob, BRACES) is not None:
            names.add(glob)
        elif glob.startswith(b"*") and find_plain_name(glob[1:], BRACES) is not None:
            endings.add(glob[1:])
        else:
            others.append(translate(glob, BRACES))
    has_ending = tuple(endings)
    if not others:
        return lambda name: name.endswith(has_ending) or name in names
    matches_other = compile_matcher(others)
    return lambda name: (
        name.endswith(has_ending) or name in names or matches_other(name)
    )


MAX_GLOBS = 1000
MAX_GLOB = 4096
MAX_BYTES = 64 * 1024
MAX_SETS = 2000
"""In all globs of a call together: compiling takes 1 µs a byte and 30 µs a set, and blocks all other clients."""
MOST_SHOWN = 200
"""Characters of a bad glob that are repeated in its error."""
_BELOW = rb"(?:/[^\x00]*)?"
_WILD = re.compile(rb"[*?[{}]")
_WILDCARD = re.compile(rb"[*?[{\\]")
_BACKSLASH = re.compile(rb"\\(?![][{}])")
_ESCAPED = re.compile(rb"\\([][{}])")
SortBy = Literal["path", "name", "modified", "size"]


class PathFilter:
    """A predicate on paths relative to the root; ``mask`` answers for many paths at once."""

    def __init__(
        self,
        include: Sequence[str],
        exclude: Sequence[str],
        *,
        languages: Sequence[str] = (),
        without: Sequence[bytes] = (),
        under: bytes = b"",
        owned: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Compile the globs.

        ``without``: folders, relative to the root, that are excluded with everything below them. ``under``: the only
        file wanted, or the folder that all files must be below; globs may also be relative to it. ``owned``: whether
        a file is one of those whose owners are asked for.
        """
        globs = []
        unwanted = [*exclude]
        for glob in include:
            # As with ``rg -g``.
            if glob.startswith("!"):
                unwanted.append(glob[1:])
            else:
                globs.append(glob)
        unwanted += ["/" + escape_glob(folder) for folder in without]
        self._includes: Globs | None = None
        if globs:
            self._includes = Globs("include", globs, under=under)
        self._excludes: Globs | None = None
        if unwanted:
            self._excludes = Globs("exclude", unwanted, under=under, below=True)
        self._under = under
        self._below = under + b"/"
        self._languages: TypeFilter | None = None
        if languages:
            self._languages = TypeFilter(languages)
        self._owned = owned

    def __call__(self, path: bytes) -> bool:
        """Return whether the file at ``path`` is wanted."""
        if self._under and not path.startswith(self._below) and path != self._under:
            return False
        if self._languages is not None and not self._languages.matches(path):
            return False
        if self._includes is not None and not self._includes.matches(path):
            return False
        if self._excludes is not None and self._excludes.matches(path):
            return False
        return self._owned is None or self._owned(path)

    def mask(self, paths: PathText) -> Mask:
        """Return which of the paths are wanted."""
        wanted_mask = np.ones(len(paths), bool)
        if self._under:
            itself = Literals(start=self._under, end=self._under)
            wanted_mask &= paths.matching(
                [Literals(start=self._below, exact=True), itself], self._under.__eq__
            )
        for globs in (self._languages, self._includes):
            if globs is not None:
                wanted_mask &= paths.matching(globs.literals, globs.matches)
        if self._excludes is not None:
            wanted_mask &= ~paths.matching(
                self._excludes.literals, self._excludes.matches
            )
        if self._owned is not None:
            # The slowest last, and only for what is left.
            for at in np.flatnonzero(wanted_mask).tolist():
                checkpoint()
                wanted_mask[at] = self._owned(paths[at])
        return wanted_mask


class Globs:
    """The globs of one field: as a predicate, and as the literal parts that matching paths have.

    ``field``: the caller's name for them. ``below``: everything below a match matches, too; otherwise only if the last
    step of the glob has no wildcard, so that it may name a folder.
    """

    def __init__(
        self,
        field: str,
        globs: Sequence[str],
        *,
        fold: bool = False,
        under: bytes = b"",
        below: bool = False,
    ) -> None:
        dialect = Dialect(braces=True, fold=fold, characters=True)
        _check_sizes(field, globs)
        self.literals: list[Literals] = []
        """A matching path has all parts of at least one of these."""
        sources = []
        for glob in globs:
            raw = _separate(glob)
            if raw.startswith(b"./"):
                raw = raw.removeprefix(b".")
            last = raw.rpartition(b"/")[2]
            has_wild_name = _WILD.search(_ESCAPED.sub(b"", last)) is not None
            raw = _ESCAPED.sub(_write_as_set, raw)
            bare = raw.strip(b"/")
            if not bare or b"\0" in raw or len(raw) > MAX_GLOB:
                raise _bad(
                    field, glob, "too long, or contains a NUL" if bare else "empty"
                )
            try:
                source = translate(bare, dialect)
            except BadGlob as error:
                raise _bad(field, glob, str(error)) from None
            any_depth = b"/" not in raw.rstrip(b"/")
            with_below = below or not has_wild_name
            parts = find_literals(bare, dialect, any_depth=any_depth, below=with_below)
            self.literals += parts
            if any_depth:
                lead = rb"(?:[^\x00]*/)?"
            else:
                lead = b""
            if under and not any_depth:  # relative to that folder as well
                self.literals += [
                    part._replace(start=under + b"/" + part.start) for part in parts
                ]
                lead = b"(?:" + re2.escape(under + b"/") + b")?"
            sources.append(
                lead + b"(?:" + source + b")" + (_BELOW if with_below else b"")
            )
        self.matches = compile_matcher(sources)


def _check_sizes(field: str, globs: Sequence[str]) -> None:
    if len(globs) > MAX_GLOBS:
        message = f"{field}: more than {MAX_GLOBS} globs"
        raise InvalidParams(message, field=field, maximum=MAX_GLOBS)
    size = sum(map(len, globs))
    sets = sum(glob.count("[") for glob in globs)
    if size > MAX_BYTES or sets > MAX_SETS:
        message = f"{field}: {size} characters and {sets} sets in all globs; the limits are {MAX_BYTES} and {MAX_SETS}"
        raise InvalidParams(
            message,
            field=field,
            limit_bytes=MAX_BYTES,
            limit_items=MAX_SETS,
        )


def _separate(glob: str) -> bytes:
    """Return a glob with "/" for each backslash that takes no bracket's or brace's meaning away."""
    return _BACKSLASH.sub(b"/", glob.encode("utf-8", "surrogateescape"))


def _write_as_set(escaped: re.Match[bytes]) -> bytes:
    """Return what matches an escaped bracket or brace alone; "]" needs nothing."""
    if escaped[1] == b"]":
        return escaped[1]
    return b"[" + escaped[1] + b"]"


def escape_glob(path: bytes) -> str:
    """Return a glob for a path; it matches no other, unless the path has a backslash, which becomes ``?``."""
    text = path.decode("utf-8", "surrogateescape").replace("\\", "?")
    return re.sub(r"[*\[{}]", r"[\g<0>]", text)


def _bad(field: str, glob: str, problem: str) -> InvalidParams:
    if len(glob) <= MOST_SHOWN:
        text = glob
    else:
        text = glob[:MOST_SHOWN] + "…"
    return InvalidParams(
        f"{field}: bad glob {text!r}: {problem}",
        field=field,
        glob=text,
        problem=problem,
    )


class Overrides:
    """ripgrep's ``-g`` and ``--iglob``: lines of its ignore files of the opposite sign; the last that matches decides."""

    def __init__(self, globs: Iterable[str], folded: Iterable[str] = ()) -> None:
        listed: list[tuple[Rule, bytes]] = []
        for glob, fold in (
            *((glob, False) for glob in globs),
            *((glob, True) for glob in folded),
        ):
            rule = parse_ripgrep_rule(glob)
            if rule is None:
                continue
            try:
                listed.append((rule, translate_flag(rule.glob, fold=fold)))
            except BadGlob as error:
                raise _bad("glob", glob, str(error)) from None
        # Consecutive globs of one kind become one expression, so that many cost no more
        # than one.
        self._runs: list[tuple[Rule, Callable[[bytes], bool]]] = [
            (kind, compile_matcher(source for _, source in run))
            for kind, run in groupby(
                reversed(listed), lambda one: one[0]._replace(glob=b"")
            )
        ]
        self._names_wanted = any(rule.ignores for rule, _ in listed)
        self.is_empty = not listed

    def verdict(self, path: bytes, name: bytes, is_dir: bool) -> bool | None:  # noqa: FBT001 - hot, called by position
        """Return True for wanted even if ignored or hidden, False for unwanted, None to follow the ignore rules."""
        for kind, matches in self._runs:
            if (is_dir or not kind.folders_only) and matches(
                path if kind.by_path else name
            ):
                return (
                    kind.ignores
                )  # the opposite of gitignore: a glob without "!" includes
        if self._names_wanted and not is_dir:
            return False
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobOptions:
    """What to find; patterns are relative to the folder ``under``, which is relative to the root."""

    include: tuple[str, ...] = ("**/*",)
    include_field: str = "include"
    """The caller's name for ``include``, for the error about a bad glob."""
    exclude: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    under: bytes = b""
    max_depth: int | None = None
    """0: the files directly in ``under``."""
    include_hidden: bool = False
    follow_symlinks: bool = False
    case_sensitive: bool = True
    respect_ignore: bool = False
    private: PrivateFolders = NO_FOLDERS
    """Folders that are never entered."""
    sort_by: SortBy = "path"
    descending: bool = False


def _read_extension(extension: str) -> bytes:
    bare = extension.strip().removeprefix(".").lower()
    if not bare or "/" in bare:
        message = f"extensions: not an extension: {extension!r}"
        raise InvalidParams(message, field="extensions", value=extension)
    return b"." + bare.encode("utf-8", "surrogateescape")


def _find_prefix(glob: str) -> bytes:
    """Return the text before a glob's first wildcard; empty for a name, which may be in any folder."""
    raw = _separate(glob).removeprefix(b"./")
    if b"/" not in raw.rstrip(b"/"):
        return b""
    return _WILDCARD.split(raw, maxsplit=1)[0].strip(b"/")


class GlobPatterns:
    """The compiled patterns of one search: which files match, and which folders cannot contain a match."""

    def __init__(self, options: GlobOptions) -> None:
        fold, lead = not options.case_sensitive, path_to_text(options.under) + "/"
        # Patterns are relative to the folder searched; those relative to the root are
        # accepted, too.
        includes_wanted = [
            *options.include,
            *(
                glob[len(lead) :]
                for glob in options.include
                if options.under and glob.startswith(lead)
            ),
        ]
        includes = Globs(options.include_field, includes_wanted, fold=fold)
        self.includes, self.literals = includes.matches, includes.literals
        self._excludes: Callable[[bytes], bool] | None = None
        if options.exclude:
            excludes = Globs("exclude", options.exclude, fold=fold, below=True)
            self._excludes = excludes.matches
        # ``folder/**`` excludes everything in the folder, so it need not be entered.
        emptied = [
            "/" + glob[:-3].lstrip("/")
            for glob in options.exclude
            if glob.strip("/*") and glob.endswith("/**")
        ]
        self._emptied: Callable[[bytes], bool] | None = None
        if emptied:
            self._emptied = Globs("exclude", emptied, fold=fold).matches
        self._endings = tuple(map(_read_extension, options.extensions))
        # What matches begin with; unknown if case is ignored.
        self._prefixes = [
            _find_prefix(glob) if options.case_sensitive else b""
            for glob in includes_wanted
        ]

    def wants(self, path: bytes) -> bool:
        """Return whether a file matches, judging by its path."""
        return self.is_allowed(path) and self.includes(path)

    def is_allowed(self, path: bytes) -> bool:
        """Return whether a file has a wanted extension, and no pattern excludes it."""
        if self._endings:
            name = path.rpartition(b"/")[2]
            if (
                not name[1:].lower().endswith(self._endings)
            ):  # a dot at the beginning starts no extension
                return False
        return self._excludes is None or not self._excludes(path)

    def prunes(self, folder: bytes) -> bool:
        """Return whether nothing below a folder can match."""
        if self._excludes is not None and self._excludes(folder):
            return True
        if self._emptied is not None and self._emptied(folder):
            return True
        below = folder + b"/"
        return not any(
            prefix.startswith(below) or below.startswith(prefix)
            for prefix in self._prefixes
        )
