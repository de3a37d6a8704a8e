"""File types by name: ripgrep's table (``types.txt``, as ``rg --type-list`` prints it) and one language per file."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from rapidfuzz import fuzz, process

from flashgrep.errors import InvalidParams
from flashgrep.ingest.wildcard import RIPGREP, alternatives, literals, matcher, plain, translate

Predicate = Callable[[bytes], bool]

_ALIASES = {
    "assembly": "asm",
    "bash": "sh",
    "c#": "csharp",
    "c++": "cpp",
    "dockerfile": "docker",
    "golang": "go",
    "javascript": "js",
    "kt": "kotlin",
    "makefile": "make",
    "objective-c": "objc",
    "powershell": "ps",
    "rb": "ruby",
    "rs": "rust",
    "shell": "sh",
    "terraform": "tf",
    "yml": "yaml",
}
"""Names people use for a type of the table; the table's own twins (py and python) need none."""
_LANGUAGES = (
    "python c cpp go rust java svelte vue js=javascript typescript csharp ruby php swift kotlin scala lua sh=bash "
    "zsh=bash perl elixir haskell ocaml zig solidity sql dart erlang fsharp groovy julia nim objc objcpp pascal "
    "ps=powershell r asm=assembly clojure fortran elisp lisp lean verilog sv=systemverilog vhdl vim tcl fish nix "
    "awk cmake make bazel gradle meson docker kconfig devicetree cython cuda d elm crystal gleam hare mojo "
    "purs=purescript racket raku reasonml rescript sml v vala vb webidl wgsl graphql proto thrift flatbuffers "
    "tf=terraform jinja erb haml html sass less css svg xml json jsonl yaml toml jupyter markdown rst asciidoc "
    "org tex texinfo typst man m4 yacc llvm swig diff csv po systemd config lock log license readme txt"
)
"""One language a file, in order of precedence: the table's type, and after "=" the name we call it by."""
_NEAR = 60  # per cent of likeness from which a name is worth suggesting


def types() -> dict[str, tuple[str, ...]]:
    """Return ripgrep's table: the globs of each type's file names."""
    return dict(_table())


def language_of(path: bytes) -> str:
    """Return the language of a file by its name, or "" when the name says nothing."""
    return _language_of_name(path.rpartition(b"/")[2])


def verdict_of(wanted: Sequence[str], unwanted: Sequence[str]) -> Callable[[bytes], bool | None]:
    """Return what ripgrep's ``-t wanted -T unwanted`` say of a path: True asked for, False not wanted, None nothing.

    Raises:
        InvalidParams: a type nobody knows.

    """
    keeps, drops = TypeFilter(wanted).has_name, TypeFilter(unwanted).has_name

    def verdict(path: bytes) -> bool | None:
        name = path.rpartition(b"/")[2]
        if drops(name):
            return False
        return keeps(name) if wanted else None

    return verdict


class TypeFilter:
    """Files of some types by name: as a predicate, and by the literal parts that their paths have.

    Raises:
        InvalidParams: a type nobody knows; ``suggestions`` has the names near it.

    """

    def __init__(self, names: Sequence[str]) -> None:
        globs = [glob for name in names for glob in _globs_of(name)]
        self.has_name = _any_of(globs)
        self.literals = [one for glob in globs for one in literals(glob.encode(), RIPGREP, any_depth=True)]

    def matches(self, path: bytes) -> bool:
        """Return whether the file at ``path`` is of one of the types."""
        return self.has_name(path.rpartition(b"/")[2])


def _globs_of(name: str) -> tuple[str, ...]:
    table = _table()
    key = name.strip().lower()
    if key == "all":
        return tuple(glob for globs in table.values() for glob in globs)
    found = table.get(_ALIASES.get(key, key))
    if found is None:
        raise _unknown(name)
    return found


def _unknown(name: str) -> InvalidParams:
    known = sorted({*_table(), *_ALIASES})
    near = [
        found for found, _, _ in process.extract(name.lower(), known, scorer=fuzz.ratio, score_cutoff=_NEAR, limit=5)
    ]
    hint = f", did you mean {', '.join(near)}?" if near else ""
    return InvalidParams(f"unknown language: {name}{hint}", field="language", value=name, suggestions=near)


@cache
def _table() -> dict[str, tuple[str, ...]]:
    text = files("flashgrep.ingest").joinpath("types.txt").read_text("ascii")
    rows = (line.partition(": ") for line in text.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in rows}


class _Sorted(NamedTuple):
    """Globs of file names by what it takes to match them."""

    names: frozenset[bytes]
    endings: tuple[bytes, ...]
    others: tuple[bytes, ...]
    """Regular expressions."""


def _sorted(globs: Iterable[str]) -> _Sorted:
    names, endings, others = set(), set(), []
    for glob in (simple for given in globs for simple in alternatives(given.encode())):
        if plain(glob, RIPGREP) is not None:
            names.add(glob)
        elif glob.startswith(b"*") and plain(glob[1:], RIPGREP) is not None:
            endings.add(glob[1:])
        else:
            others.append(translate(glob, RIPGREP))
    return _Sorted(frozenset(names), tuple(endings), tuple(others))


def _any_of(globs: Iterable[str]) -> Predicate:
    """Return the predicate of a file name; endings and whole names need no regular expression."""
    names, endings, others = _sorted(globs)
    if not others:
        return lambda name: name.endswith(endings) or name in names
    other = matcher(others)
    return lambda name: name.endswith(endings) or name in names or other(name)


class _Languages:
    """The rank of a name's language: tables for names and endings, one expression that rules the rest out."""

    def __init__(self) -> None:
        named = [entry.partition("=") for entry in _LANGUAGES.split()]
        self.names = [name or kind for kind, _, name in named]
        self._ranks: dict[bytes, int] = {}
        self._others: list[tuple[int, Predicate]] = []
        sources: list[bytes] = []
        for rank, (kind, _, _) in enumerate(named):
            found = _sorted(_table()[kind])
            for name in (b"/" + name for name in found.names):  # no ending has a "/": names and endings share the table
                self._ranks.setdefault(name, rank)
            for ending in found.endings:
                self._ranks.setdefault(ending, rank)
            if found.others:
                self._others.append((rank, matcher(found.others)))
                sources += found.others
        self._may_be_other = matcher(sources)

    def of(self, name: bytes) -> str:
        ends = [b"/" + name, name]
        at = name.find(b".", 1)
        while at > 0:
            ends.append(name[at:])
            at = name.find(b".", at + 1)
        ranks = [self._ranks[end] for end in ends if end in self._ranks]
        if self._may_be_other(name):
            ranks += [rank for rank, holds in self._others if holds(name)]
        return self.names[min(ranks)] if ranks else ""


@cache
def _languages() -> _Languages:
    return _Languages()


@lru_cache(maxsize=1 << 14)
def _language_of_name(name: bytes) -> str:
    return _languages().of(name)
