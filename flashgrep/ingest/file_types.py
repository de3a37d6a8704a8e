"""File types by name: ripgrep's table (``types.txt``, as ``rg --type-list`` prints it), and our languages it lacks."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files

from rapidfuzz import fuzz, process

from flashgrep.errors import InvalidParams
from flashgrep.ingest.wildcard import RIPGREP, alternatives, literals, matcher, plain, translate
from flashgrep.languages import LANGUAGES

Predicate = Callable[[bytes], bool]

_ALIASES = {
    **{row.name: row.type for row in LANGUAGES.values() if row.type},
    **{alias: row.type or row.name for row in LANGUAGES.values() for alias in row.aliases.split()},
}
"""What people call a type of the table; the table's own twins (py and python) need none."""
_NEAR = 60  # per cent of likeness from which a name is worth suggesting


def types() -> dict[str, tuple[str, ...]]:
    """Return ripgrep's table: the globs of each type's file names."""
    return dict(_table())


class TypeFilter:
    """Files of some types by name: as a predicate, and by the literal parts that their paths have.

    Raises:
        InvalidParams: a type nobody knows; ``suggestions`` has the names near it.

    """

    def __init__(self, names: Sequence[str]) -> None:
        globs = [glob for name in names for glob in _find_globs(name)]
        self._has_name = name_matcher(globs)
        self.literals = [one for glob in globs for one in literals(glob.encode(), RIPGREP, any_depth=True)]

    def matches(self, path: bytes) -> bool:
        """Return whether the file at ``path`` is of one of the types."""
        return self._has_name(path.rpartition(b"/")[2])


def _find_globs(name: str) -> tuple[str, ...]:
    table = _table()
    key = name.strip().lower()
    if key == "all":
        return tuple(glob for globs in table.values() for glob in globs)
    found = table.get(_ALIASES.get(key, key))
    if found is not None:
        return found
    if key in LANGUAGES:
        return LANGUAGES[key].globs()
    known = sorted({*table, *_ALIASES, *LANGUAGES})
    ranked = process.extract(name.lower(), known, scorer=fuzz.ratio, score_cutoff=_NEAR, limit=5)
    near = [found for found, _, _ in ranked]
    hint = f", did you mean {', '.join(near)}?" if near else ""
    raise InvalidParams(f"unknown language: {name}{hint}", field="language", value=name, suggestions=near)


@cache
def _table() -> dict[str, tuple[str, ...]]:
    text = files("flashgrep.ingest").joinpath("types.txt").read_text("ascii")
    rows = (line.partition(": ") for line in text.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in rows}


def name_matcher(globs: Iterable[str]) -> Predicate:
    """Return the predicate of file names that match one of the globs, by endings and whole names where these do."""
    names, endings, others = set(), set(), []
    for glob in (simple for given in globs for simple in alternatives(given.encode())):
        if plain(glob, RIPGREP) is not None:
            names.add(glob)
        elif glob.startswith(b"*") and plain(glob[1:], RIPGREP) is not None:
            endings.add(glob[1:])
        else:
            others.append(translate(glob, RIPGREP))
    has_ending = tuple(endings)
    if not others:
        return lambda name: name.endswith(has_ending) or name in names
    matches_other = matcher(others)
    return lambda name: name.endswith(has_ending) or name in names or matches_other(name)
