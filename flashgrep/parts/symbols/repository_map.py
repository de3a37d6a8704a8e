"""A map of a project: the definitions that the rest of the project depends on most, within a budget.

PageRank over files, as in aider's repository map: a use of a name is an edge to each definition it may refer to,
weighted by the square root of the number of uses; the rank that passes along an edge goes to the definition.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection
from heapq import merge
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import clip
from flashgrep.base.identifiers import find_identifiers, split_words
from flashgrep.base.languages import FAMILIES, LANGUAGES
from flashgrep.index.table import TEST, tier_of
from flashgrep.parts.symbols.outlines import SHOWN_KINDS, Entry, Outline, open_all
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
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
from flashgrep.parts.symbols.symbol_source import ReadResult, SymbolSource

Floats = NDArray[np.float64]
MAP_FILES: Final = 2_000
"""Files a map reads, sources first, nearest to the root first: 1.5 ms of processor time each in Linux."""
MOST_SIGNATURE: Final = 80
"""Most characters of a line: a map is for names and locations."""
_MAPPED_KINDS: Final = SHOWN_KINDS - {"heading", "extension"}
_TYPES: Final = TYPE_KINDS | {"type"}
_COMMON, _SHARED = 50, 5
"""A name defined in this many files (``main``, ``init``) says nothing (50), or little (5), about dependencies."""
_MENTIONED, _UNSURE = 10.0, 0.1
"""Factors for uses of names that were mentioned, and for uses that may well refer to something else."""
_WEIGHTS: Final = {
    "method": 0.25,
    "constructor": 0.1,
    "constant": 0.25,
    "function": 0.75,
    "type": 0.75,
    "property": 0.25,
    "macro": 0.25,
}
"""Types rank before functions and aliases, functions before methods: the types lead to the rest."""
_GENERATED: Final = re.compile(
    rb"(?i)code generated\b.{0,200}\bdo not edit|@generated\b|\b(?:auto-?generated|generated) (?:by|from|file)\b"
    rb"|this file (?:is|was) (?:auto-?)?(?:matically )?generated"
)
"""What the head of a generated file says."""
_HEAD: Final = 1_000
_DOCUMENTATION: Final = re.compile(
    rb"(?i)(?:^|/)(?:docs?|documentation|website)/|\.d\.[cm]?ts$"
)
"""Scripts that make documentation, and declarations of what other files define."""
_TAGGED: Final = re.compile(rb"struct\s+(\w+)")
_DAMPING, _ROUNDS = 0.85, 30
"""PageRank's damping factor; after this many rounds the order of the shown definitions no longer changes."""


class _Definition(NamedTuple):
    """A definition that may be shown: its row in its file, and its enclosing type (name, and row or -1)."""

    row: int
    name: str
    kind: str
    owner: str
    around: int
    weight: float


class _File(NamedTuple):
    """A file: its definitions, the names it calls, imports or names as bases, and the words that may name a type."""

    path: bytes
    family: str
    definitions: list[_Definition]
    marked: Counter[str]
    words: Ints
    """Numbers of identifiers without duplicates, and how often each occurs."""
    counts: Ints

    @classmethod
    def read(
        cls, path: bytes, symbols: FileSymbols, number_of: defaultdict[bytes, int]
    ) -> "_File":
        """Read what a map needs of a file; signatures are made later, for the few definitions that are shown."""
        data = symbols.data
        language = LANGUAGES[symbols.language]
        definitions = []
        scopes: list[
            tuple[int, int, str, str]
        ] = []  # around the row: where each ends, its row, name and kind
        for row, column in enumerate(symbols.rows):
            checkpoint()
            while scopes and scopes[-1][0] <= column[START]:
                scopes.pop()
            kind = KINDS[column[KIND]]
            name = data[column[NAME] : column[NAME_END]].decode("utf-8", "replace")
            _, around, owner, outer = scopes[-1] if scopes else (0, -1, "", "")
            scopes.append((column[END], row, name, kind))
            # Definitions inside a function are local to it.
            if kind not in _MAPPED_KINDS or column[DECLARES] or outer in CALLABLE_KINDS:
                continue
            if outer not in TYPE_KINDS:
                owner = data[column[QUALIFIER] : column[QUALIFIER_END]].decode(
                    "utf-8", "replace"
                )
                around = -1
            # Including what precedes it on its line: ``export``, ``pub``, ``private``.
            head = data[
                data.rfind(b"\n", 0, column[START]) + 1 : column[NAME_END]
            ].decode("utf-8", "replace")
            weight = _WEIGHTS.get(kind, 1.0) * (
                1.0 if language.exports(name, head) else _UNSURE
            )
            definitions.append(_Definition(row, name, kind, owner, around, weight))
        marks = (
            offset for mark in MARKS for offset in symbols.parsed.marked(mark).tolist()
        )
        edges = [0, *symbols.parsed.skips.ravel().tolist(), len(data)]
        code = b" ".join(
            data[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)
        )
        # Variables may share the name of a type that is a plain word; it counts only
        # after ``struct``.
        tagged = Counter(_TAGGED.findall(code))
        words = Counter(find_identifiers(code))
        # A definition's own name is not a use of it.
        words.subtract(definition.name.encode() for definition in definitions)
        words = Counter(
            {
                word: n
                for word, n in words.items()
                if n > 0 and not (word.isalpha() and word.islower())
            }
        )
        words |= tagged
        return cls(
            path,
            FAMILIES.get(symbols.language, symbols.language),
            definitions,
            Counter(map(symbols.word_at, marks)),
            np.fromiter(map(number_of.__getitem__, words), np.int64, len(words)),
            np.fromiter(words.values(), np.int64, len(words)),
        )


class _Mentions:
    """The names and paths that a caller mentioned."""

    def __init__(self, mentions: Collection[str]) -> None:
        self._parts = {word.lower() for word in mentions if word}
        self._names = self._parts | {word.rpartition(".")[2] for word in self._parts}

    def of_name(self, name: str) -> float:
        """Return a name's weight: higher if the name, or a word of it, was mentioned."""
        if self._names:
            words = {
                name.lower(),
                *(word.decode() for word in split_words(name.encode())),
            }
        else:
            words = set()
        return _MENTIONED if words & self._names else 1.0

    def of_path(self, path: bytes) -> float:
        """Return a file's weight: higher if a part of its path was mentioned."""
        text = path.decode("utf-8", "replace").lower()
        return _MENTIONED if any(part in text for part in self._parts) else 1.0

    def of_file(self, file: _File) -> float:
        """Return a file's weight, by its path and its definitions."""
        return max(
            self.of_path(file.path),
            *(self.of_name(definition.name) for definition in file.definitions),
            1.0,
        )


def is_aside(path: bytes, symbols: FileSymbols) -> bool:
    """Return whether a file is no part of what a project is made of: generated, vendored, or of its documentation."""
    return (
        tier_of(path) > TEST
        or _DOCUMENTATION.search(path) is not None
        or _GENERATED.search(symbols.data, 0, _HEAD) is not None
    )


def repository_map(
    source: SymbolSource,
    *,
    max_chars: int,
    under: bytes = b"",
    mentions: Collection[str] = (),
) -> Outline:
    """Return the definitions that the rest of a project depends on most, within the budget: an overview of it.

    ``under``: only those in this file or below this folder; what is generated, vendored or of the documentation is left
    out unless all that is below it is so. ``mentions``: names, words of names, or parts of paths that
    are of interest now.
    """
    outline = Outline()
    paths = source.paths()
    inside = {
        path
        for path in paths
        if not under or path == under or path.startswith(under + b"/")
    }
    # Files outside are also read: what they use of the folder shows what matters in it.
    ranked = sorted(
        (path not in inside, tier_of(path), path.count(b"/"), path) for path in paths
    )
    chosen = [path for outside, tier, _, path in ranked if tier <= TEST or not outside][
        :MAP_FILES
    ]
    number_of: defaultdict[bytes, int] = defaultdict()
    number_of.default_factory = number_of.__len__
    aside = set[bytes]()
    files = list[_File]()
    for path, read in open_all(source, chosen, outline):
        if LANGUAGES[read.language].nature == "code":
            files.append(_File.read(path, read, number_of))
            if is_aside(path, read):
                aside.add(path)
    code = {file.path for file in files} & inside
    if not code <= aside:
        inside -= aside
    scores = score_definitions(
        files, [name.decode() for name in number_of], _Mentions(mentions)
    )

    # Sorted by file and merged, only as far as the budget goes: to sort all at once
    # held the interpreter's lock.
    ranked_files = list[list[tuple[tuple[bool, float, bytes, int], _Definition]]]()
    for file in files:
        checkpoint()
        if file.path in inside:
            path = file.path
            is_test = tier_of(file.path) >= TEST
            keyed = (
                (
                    (
                        is_test,
                        -scores[path, current_definition.row],
                        path,
                        current_definition.row,
                    ),
                    current_definition,
                )
                for current_definition in file.definitions
            )
            ranked_files.append(sorted(keyed, key=itemgetter(0)))
    opened: dict[bytes, ReadResult] = {}
    entries: defaultdict[bytes, dict[int, Entry]] = defaultdict(dict)
    for (_, _, path, _), definition in merge(*ranked_files, key=itemgetter(0)):
        checkpoint()
        if path not in opened:
            opened[path] = source.open(path)
            max_chars -= len(path) + 1
        symbols = opened[path]
        if (
            not isinstance(symbols, FileSymbols)
            or definition.row >= symbols.count
            or symbols.name(definition.row) != definition.name
        ):
            continue  # changed a moment ago
        lines = {}  # a method is shown below its type
        for depth, row in enumerate(
            [definition.row]
            if definition.around < 0
            else [definition.around, definition.row]
        ):
            if row not in entries[path]:
                place = symbols.defined(row)
                signature = clip(symbols.signature(row), MOST_SIGNATURE)
                entry = Entry(
                    path,
                    place.start_line,
                    place.end_line,
                    depth,
                    symbols.kind(row),
                    signature,
                )
                lines[row] = entry
                max_chars -= entry.size
        # A type is counted with its first method: both fit, or neither is shown.
        if max_chars < 0:
            break
        entries[path] |= lines
    for path in sorted(entries):
        checkpoint()
        outline.entries += [entries[path][row] for row in sorted(entries[path])]
    outline.left_out = sum(map(len, ranked_files)) - len(outline.entries)
    return outline


def score_definitions(
    files: list[_File], names: list[str], interest: _Mentions
) -> dict[tuple[bytes, int], float]:
    """Return each definition's score: its share of the ranks of the files that use it, and of its own file's."""
    defined: dict[tuple[str, str], list[tuple[int, _Definition]]] = {}
    for at, file in enumerate(files):
        checkpoint()
        for definition in file.definitions:
            defined.setdefault((file.family, definition.name), []).append(
                (at, definition)
            )
    weights = {
        key: interest.of_name(key[1]) * (_UNSURE if len(definitions) > _SHARED else 1.0)
        for key, definitions in defined.items()
        if len(definitions) < _COMMON
    }
    # A type is used wherever its name occurs in code; anything else where it is called,
    # imported or named as a base.
    types = {
        current_definition.name
        for file in files
        for current_definition in file.definitions
        if current_definition.kind in _TYPES
    }
    is_type = np.array([name in types for name in names], bool)
    edges = array(
        "d"
    )  # a list of tuples becomes numpy's in one call, which held the interpreter's lock for 40 ms
    ends: list[tuple[bytes, int]] = []
    for user, file in enumerate(files):
        checkpoint()
        mine = is_type[file.words]
        named = dict(
            zip(
                [names[word] for word in file.words[mine]],
                file.counts[mine].tolist(),
                strict=True,
            )
        )
        for name, count in (file.marked | named).items():
            # The square root: a hundred uses in one file say less than one use in each
            # of a hundred files.
            weight = weights.get((file.family, name), 0.0) * count**0.5
            if weight:
                pairs = defined[file.family, name]
            else:
                pairs = []
            # A name that the file itself defines refers to that definition.
            pairs = [pair for pair in pairs if pair[0] == user] or pairs
            # A method is unlikely if the file does not name its type.
            parts = [
                1.0
                if not current_definition.owner or current_definition.owner in named
                else _UNSURE
                for _, current_definition in pairs
            ]
            # Shared among the possible definitions, so a common name gives none of them
            # much.
            weight /= max(1.0, sum(parts))
            for (definer, definition), part in zip(pairs, parts, strict=True):
                edges.extend((user, definer, weight * part))
                ends.append((files[definer].path, definition.row))
    start = np.array([interest.of_file(file) for file in files])
    start /= max(start.sum(), 1.0)
    passed = pagerank(np.array(edges, np.float64).reshape(-1, 3), start)
    scores: dict[tuple[bytes, int], float] = defaultdict(float)
    for end, value in zip(ends, passed.tolist(), strict=True):
        scores[end] += value
    for file, least in zip(files, start / (1 + len(ends)), strict=True):
        checkpoint()
        near = interest.of_path(file.path)
        for definition in file.definitions:
            scores[file.path, definition.row] += least  # unused definitions come last
            scores[file.path, definition.row] *= definition.weight * max(
                near, interest.of_name(definition.name)
            )
    return scores


def pagerank(edges: Floats, start: Floats) -> Floats:
    """Return the rank that passes along each edge (source, target, weight); ``start``: where random walks begin.

    Edges of a node to itself are not followed, but get their share of its rank.
    """
    source = edges[:, 0].astype(np.int64)
    target = edges[:, 1].astype(np.int64)
    weight = edges[:, 2]
    is_own = source == target
    out = np.bincount(source, np.where(is_own, 0.0, weight), len(start))
    inner = np.bincount(source, np.where(is_own, weight, 0.0), len(start))
    share = weight / np.where(is_own, inner[source], out[source])
    onward = np.where(is_own, 0.0, share)
    ranks = start
    for _ in range(_ROUNDS):
        checkpoint()
        lost = ranks[
            out == 0
        ].sum()  # the rank of nodes without edges is redistributed to all
        passed = np.bincount(target, ranks[source] * onward, len(start))
        ranks = (1 - _DAMPING + _DAMPING * lost) * start + _DAMPING * passed
    # The rank of an edge to itself cannot be measured by walks; the file's share of all
    # uses stands in for it.
    hubs = out / max(out.sum(), 1e-9)
    return np.where(is_own, ranks[source] + hubs[source], ranks[source]) * share
