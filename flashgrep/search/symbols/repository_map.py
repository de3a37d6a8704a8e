"""A map of a project: the definitions that the rest of it leans on, within a budget.

PageRank over files, as aider ranks its repository map: a use of a name is an edge to each definition it can mean, as
heavy as the root of how often it is used, and what is passed along an edge is the definition's.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import clip
from flashgrep.identifiers import find_identifiers, split_words
from flashgrep.index.table import TEST, tier_of
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import (
    CALLABLE_KINDS,
    DECLARES,
    END,
    KIND,
    KINDS,
    MARKS,
    NAME,
    NAME_END,
    QUALIFIER,
    QUALIFIER_END,
    START,
    TYPE_KINDS,
    Ints,
)
from flashgrep.languages import FAMILIES, LANGUAGES
from flashgrep.search.symbol_source import ReadResult, SymbolSource
from flashgrep.search.symbols.outlines import SHOWN_KINDS, Entry, Outline, open_all

Floats = NDArray[np.float64]
MAP_FILES: Final = 2_000
"""Files a map looks at, sources first, nearest to the root first: of Linux 1.5 ms of processor time each."""
MOST_SIGNATURE: Final = 80
"""Characters of a line: a map is for names and places."""
_MAPPED_KINDS: Final = SHOWN_KINDS - {"heading", "extension"}
_TYPES: Final = TYPE_KINDS | {"type"}
_COMMON, _SHARED = 50, 5
"""A name defined in this many files (``main``, ``init``) says nothing, or little, about who uses which."""
_MENTIONED, _UNSURE = 10.0, 0.1
"""How much more a use counts of what was asked about, and how much less one that may well mean something else."""
_WEIGHTS: Final = {
    "method": 0.25,
    "constructor": 0.1,
    "constant": 0.25,
    "function": 0.5,
    "property": 0.25,
    "macro": 0.25,
}
"""Types are told before functions, these before methods: who knows the types finds the rest."""
_TAGGED: Final = re.compile(rb"struct\s+(\w+)")
_DAMPING, _ROUNDS = 0.85, 30
"""Of PageRank; after this many rounds the order of what is shown no longer changes."""


class _Definition(NamedTuple):
    """A definition that may be shown: its row in its file, the type it is in (its name, and its row or -1)."""

    row: int
    name: str
    kind: str
    owner: str
    around: int
    weight: float


class _File(NamedTuple):
    """A file: what it defines, how often it calls, imports or builds upon a name, and what may name a type in it."""

    path: bytes
    family: str
    definitions: list[_Definition]
    marked: Counter[str]
    words: Ints
    """Numbers of identifiers, each once, and how often each is there."""
    counts: Ints

    @classmethod
    def read(cls, path: bytes, symbols: FileSymbols, number_of: defaultdict[bytes, int]) -> "_File":
        """Read what a map needs of a file; lines are made later, for the few definitions that are shown."""
        data, language, definitions = symbols.data, LANGUAGES[symbols.language], []
        scopes: list[tuple[int, int, str, str]] = []  # around the row: where each ends, its row, name and kind
        for row, column in enumerate(symbols.rows):
            checkpoint()
            while scopes and scopes[-1][0] <= column[START]:
                scopes.pop()
            kind, name = KINDS[column[KIND]], data[column[NAME] : column[NAME_END]].decode("utf-8", "replace")
            _, around, owner, outer = scopes[-1] if scopes else (0, -1, "", "")
            scopes.append((column[END], row, name, kind))
            # What is inside a function is its own.
            if kind not in _MAPPED_KINDS or column[DECLARES] or outer in CALLABLE_KINDS:
                continue
            if outer not in TYPE_KINDS:
                owner = data[column[QUALIFIER] : column[QUALIFIER_END]].decode("utf-8", "replace")
                around = -1
            # With what is before it on its line: ``export``, ``pub``, ``private``.
            head = data[data.rfind(b"\n", 0, column[START]) + 1 : column[NAME_END]].decode("utf-8", "replace")
            weight = _WEIGHTS.get(kind, 1.0) * (1.0 if language.exports(name, head) else _UNSURE)
            definitions.append(_Definition(row, name, kind, owner, around, weight))
        marks = (offset for mark in MARKS for offset in symbols.parsed.marked(mark).tolist())
        edges = [0, *symbols.parsed.skips.ravel().tolist(), len(data)]
        code = b" ".join(data[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
        # There are variables called like a type that is a plain word: it counts only where it is said to be one.
        tagged = Counter(_TAGGED.findall(code))
        words = Counter(find_identifiers(code))
        # A definition's own name is not a use of it.
        words.subtract(one.name.encode() for one in definitions)
        words = Counter({word: n for word, n in words.items() if n > 0 and not (word.isalpha() and word.islower())})
        words |= tagged
        return cls(
            path,
            FAMILIES.get(symbols.language, symbols.language),
            definitions,
            Counter(map(symbols.word_at, marks)),
            np.fromiter(map(number_of.__getitem__, words), np.int64, len(words)),
            np.fromiter(words.values(), np.int64, len(words)),
        )


class _Interest:
    """What a caller mentioned."""

    def __init__(self, mentions: Collection[str]) -> None:
        self._parts = {word.lower() for word in mentions if word}
        self._names = self._parts | {word.rpartition(".")[2] for word in self._parts}

    def of_name(self, name: str) -> float:
        """Return how much a name counts: more where it, or a word of it, was mentioned."""
        words = {name.lower(), *(word.decode() for word in split_words(name.encode()))} if self._names else set()
        return _MENTIONED if words & self._names else 1.0

    def of_path(self, path: bytes) -> float:
        """Return how much a file counts: more where a part of its path was mentioned."""
        text = path.decode("utf-8", "replace").lower()
        return _MENTIONED if any(part in text for part in self._parts) else 1.0

    def of_file(self, file: _File) -> float:
        """Return how much a file counts, by its path and by what it defines."""
        return max(self.of_path(file.path), *(self.of_name(one.name) for one in file.definitions), 1.0)


def repository_map(
    source: SymbolSource, *, max_chars: int, under: bytes = b"", mentions: Collection[str] = ()
) -> Outline:
    """Return the definitions the rest of a project leans on, until the budget is spent: a first look at it.

    ``under``: only those below a folder, or of that file. ``mentions``: names, words of names, or parts of paths, that
    are of interest now.
    """
    made = Outline()
    paths = source.paths()
    inside = {path for path in paths if not under or path == under or path.startswith(under + b"/")}
    # Files outside are read, too: what they use of the folder says what matters in it.
    ranked = sorted((path not in inside, tier_of(path), path.count(b"/"), path) for path in paths)
    chosen = [path for outside, tier, _, path in ranked if tier <= TEST or not outside][:MAP_FILES]
    number_of: defaultdict[bytes, int] = defaultdict()
    number_of.default_factory = number_of.__len__
    files = [
        _File.read(path, symbols, number_of)
        for path, symbols in open_all(source, chosen, made)
        if LANGUAGES[symbols.language].nature == "code"
    ]
    scores = score_definitions(files, [name.decode() for name in number_of], _Interest(mentions))

    found = [(file.path, one) for file in files if file.path in inside for one in file.definitions]
    found.sort(key=lambda pair: (tier_of(pair[0]) >= TEST, -scores[pair[0], pair[1].row], pair[0], pair[1].row))
    opened: dict[bytes, ReadResult] = {}
    shown: dict[tuple[bytes, int], Entry] = {}
    for path, one in found:
        checkpoint()
        if path not in opened:
            opened[path] = source.open(path)
            max_chars -= len(path) + 1
        symbols = opened[path]
        if not isinstance(symbols, FileSymbols) or one.row >= len(symbols.rows) or symbols.name(one.row) != one.name:
            continue  # changed just now
        lines = {}  # a method is told below its type
        for depth, row in enumerate([one.row] if one.around < 0 else [one.around, one.row]):
            if (path, row) not in shown:
                place, signature = symbols.defined(row), clip(symbols.signature(row), MOST_SIGNATURE)
                entry = Entry(path, place.start_line, place.end_line, depth, symbols.kind(row), signature)
                lines[path, row] = entry
                max_chars -= entry.size
        # The type is counted with its first method: both fit, or neither is shown.
        if max_chars < 0:
            break
        shown |= lines
    made.entries = [shown[place] for place in sorted(shown)]
    made.left_out = len(found) - len(shown)
    return made


def score_definitions(files: list[_File], names: list[str], interest: _Interest) -> dict[tuple[bytes, int], float]:
    """Return the share of each definition in the rank of the files that use it, and of its own file."""
    defined: dict[tuple[str, str], list[tuple[int, _Definition]]] = {}
    for at, file in enumerate(files):
        checkpoint()
        for one in file.definitions:
            defined.setdefault((file.family, one.name), []).append((at, one))
    weights = {
        key: interest.of_name(key[1]) * (_UNSURE if len(found) > _SHARED else 1.0)
        for key, found in defined.items()
        if len(found) < _COMMON
    }
    # A type is used wherever its name is in code, anything else where it is called, imported or built upon.
    types = {one.name for file in files for one in file.definitions if one.kind in _TYPES}
    is_type = np.array([name in types for name in names], bool)
    edges: list[tuple[int, int, float]] = []
    ends: list[tuple[bytes, int]] = []
    for user, file in enumerate(files):
        checkpoint()
        mine = is_type[file.words]
        named = dict(zip([names[word] for word in file.words[mine]], file.counts[mine].tolist(), strict=True))
        for name, count in (file.marked | named).items():
            # The root: a hundred uses in one file say less than one use in each of a hundred.
            weight = weights.get((file.family, name), 0.0) * count**0.5
            found = defined[file.family, name] if weight else []
            # A name that the file itself defines is meant there.
            found = [pair for pair in found if pair[0] == user] or found
            # A method is hardly meant where nothing names its type.
            parts = [1.0 if not one.owner or one.owner in named else _UNSURE for _, one in found]
            # Shared among the definitions that it may mean, so a common name gives none of them much.
            weight /= max(1.0, sum(parts))
            for (definer, one), part in zip(found, parts, strict=True):
                edges.append((user, definer, weight * part))
                ends.append((files[definer].path, one.row))
    start = np.array([interest.of_file(file) for file in files])
    start /= max(start.sum(), 1.0)
    passed = pagerank(np.array(edges, np.float64).reshape(-1, 3), start)
    scores: dict[tuple[bytes, int], float] = defaultdict(float)
    for end, value in zip(ends, passed.tolist(), strict=True):
        scores[end] += value
    for file, least in zip(files, start / (1 + len(ends)), strict=True):
        checkpoint()
        near = interest.of_path(file.path)
        for one in file.definitions:
            scores[file.path, one.row] += least  # what nobody uses is told last
            scores[file.path, one.row] *= one.weight * max(near, interest.of_name(one.name))
    return scores


def pagerank(edges: Floats, start: Floats) -> Floats:
    """Return what passes along each edge (a row of its ends and its weight) where ``start`` is where walks begin.

    Edges of a node to itself lead nowhere, but have their share of its rank.
    """
    source, target, weight = edges[:, 0].astype(np.int64), edges[:, 1].astype(np.int64), edges[:, 2]
    is_own = source == target
    out = np.bincount(source, np.where(is_own, 0.0, weight), len(start))
    inner = np.bincount(source, np.where(is_own, weight, 0.0), len(start))
    share = weight / np.where(is_own, inner[source], out[source])
    onward = np.where(is_own, 0.0, share)
    ranks = start
    for _ in range(_ROUNDS):
        checkpoint()
        lost = ranks[out == 0].sum()  # nodes without edges give their rank back to all
        passed = np.bincount(target, ranks[source] * onward, len(start))
        ranks = (1 - _DAMPING + _DAMPING * lost) * start + _DAMPING * passed
    # An edge to itself has no walk to measure it by; how much the file uses at all stands for that.
    hubs = out / max(out.sum(), 1e-9)
    return np.where(is_own, ranks[source] + hubs[source], ranks[source]) * share
