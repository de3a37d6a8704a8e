"""The index of one repository in PostgreSQL, as a question reads it: postings, symbols and texts by number."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.damage import Damaged
from flashgrep.index.chunks import StoredChunk
from flashgrep.index.evaluate import evaluate, join_segments
from flashgrep.index.grams import GRAM, number
from flashgrep.index.postings import LAST_KEY, OpenBlock, open_block
from flashgrep.index.segments import Kind, SegmentRow
from flashgrep.index.symbols import LONGEST_NAME
from flashgrep.index.table import TextIds
from flashgrep.pattern import ANYTHING, NOTHING, AllOf, AnyOf, Gram, GramExpr
from flashgrep.team.reading import ReadingAs

MOST_REMEMBERED: Final = 10_000
REMEMBERED: Final = 64
MOST_GRAMS: Final = 8
"""Grams of one run of letters that are looked up: each is a row of a segment to be fetched."""


class Segment(NamedTuple):
    """A segment, its shard, and the first key of each of its blocks, ascending."""

    row: SegmentRow
    shard: int
    keys: npt.NDArray[np.uint32]

    def block_keys(self, first: int, last: int) -> list[int]:
        """Return the keys of the blocks that cover what lies between two keys."""
        low = int(np.searchsorted(self.keys, first, "right")) - 1
        high = int(np.searchsorted(self.keys, last, "right"))
        return [int(key) for key in self.keys[max(0, low) : high]]


@dataclass(slots=True)
class IndexState:
    """What one generation of a repository has: unchanging, shared by all questions about it."""

    repository: int
    generation: int
    parsed_to: int
    segments: list[Segment]
    known: dict[GramExpr, TextIds | None] = field(default_factory=dict)
    """Candidates of expressions asked lately: agents page."""

    @classmethod
    def load(cls, read: ReadingAs, repository: int, generation: int, parsed_to: int) -> "IndexState":
        """Return the state of a generation."""
        with read() as reading:
            rows = reading.fetch(
                "SELECT id, shard, first, last, bytes, keys FROM flashgrep.segment WHERE repository = %s "
                "ORDER BY first", [repository],
            )  # fmt: skip
        found = [
            Segment(SegmentRow(number, Kind.GRAMS, first, last, size), shard, np.frombuffer(keys, "<u4"))
            for number, shard, first, last, size, keys in rows
        ]
        return cls(repository, generation, parsed_to, found)

    def shards_of(self, text_ids: Collection[int]) -> list[int]:
        """Return the shards in which texts lie."""
        firsts = np.array([one.row.first for one in self.segments], np.int64)
        at = np.searchsorted(firsts, np.fromiter(text_ids, np.int64, len(text_ids)), "right") - 1
        return sorted({self.segments[place].shard for place in np.unique(at[at >= 0]).tolist()})


class TextReader:
    """Answers for one repository; a ``TextIndex``."""

    def __init__(self, state: IndexState, read: ReadingAs) -> None:
        self.state = state
        self._read = read

    @property
    def identity(self) -> object:
        """The repository and its generation."""
        return self.state.repository, self.state.generation

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the texts that may match, ascending; None: no text is excluded."""
        if expression == ANYTHING:
            return None
        if expression == NOTHING:
            return np.empty(0, np.int64)
        state = self.state
        if expression in state.known:
            return state.known[expression]
        segments = state.segments
        expression, asked = thin_out(expression), expression
        ranges = list(_ranges(expression))
        wanted = {one.row.id: {key for span in ranges for key in one.block_keys(*span)} for one in segments}
        keys = sorted({key for of_segment in wanted.values() for key in of_segment})
        with self._read() as reading:
            rows = reading.fetch_shards(
                "SELECT segment, key, data FROM flashgrep.block WHERE repository = %s AND {shards} "
                "AND segment = ANY(%s) AND key = ANY(%s)",
                [state.repository, [one.row.id for one in segments], keys],
                sorted({one.shard for one in segments}),
            )
            missing = set(reading.missing)
        blocks = {(segment, key): data for segment, key, data in rows}
        answering = [one for one in segments if one.shard not in missing]
        for one in answering:
            if any((one.row.id, key) not in blocks for key in wanted[one.row.id]):
                raise Damaged("a block of postings is missing")
        found = join_segments([evaluate(expression, one.row, _Lists(one, blocks)) for one in answering])
        if not missing and (found is None or len(found) <= MOST_REMEMBERED):
            if len(state.known) >= REMEMBERED:
                state.known.clear()
            state.known[asked] = found
        return found

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts that define a name or one that begins with it, ASCII case aside, ascending."""
        folded = _fold(name)
        condition = "name >= %s AND name < %s" if prefix else "name = %s"
        rows = self._fetch_rows(
            f"SELECT DISTINCT text FROM flashgrep.symbol_name WHERE repository = %s AND {{shards}} AND {condition}",
            [folded, _after(folded)] if prefix else [folded],
        )
        return sorted(row[0] for row in rows)

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names that begin so and are defined in texts ``among`` these, in lower case and order."""
        folded = _fold(start)
        rows = self._fetch_rows(
            "SELECT name, text FROM flashgrep.symbol_name WHERE repository = %s AND {shards} "
            "AND name >= %s AND name < %s ORDER BY name",
            [folded, _after(folded)],
        )
        names = (
            name
            for name, of_name in groupby(sorted(rows), key=lambda row: row[0])
            if any(row[1] in among for row in of_name)
        )
        return [bytes(name).decode("utf-8", "replace") for name, _ in zip(names, range(limit), strict=False)]

    def packed_symbols(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return texts' rows of symbols, to be read by ``symbols.accepted``; texts without one are left out."""
        query = "SELECT text, packed FROM flashgrep.symbol WHERE repository = %s AND {shards} AND text = ANY(%s)"
        return dict(self._fetch_rows(query, [list(text_ids)], text_ids))

    def chunks_of_texts(self, _text_ids: Collection[int]) -> Mapping[int, Sequence[StoredChunk]]:
        """Return nothing: chunks are cut when they are shown."""
        return {}

    def find_cut(self) -> Collection[bytes]:
        """Return nothing: nobody walks a folder here, so nobody counts without reading."""
        return ()

    def contents(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return contents as git has them; those in shards that do not answer are left out."""
        query = "SELECT id, data FROM flashgrep.text WHERE repository = %s AND {shards} AND id = ANY(%s)"
        return dict(self._fetch_rows(query, [list(text_ids)], text_ids))

    def _fetch_rows(
        self, query: str, params: Sequence[object], text_ids: Collection[int] | None = None
    ) -> list[tuple[Any, ...]]:
        shards = None if text_ids is None else self.state.shards_of(text_ids)
        with self._read() as reading:
            return reading.fetch_shards(query, [self.state.repository, *params], shards)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of a segment, in blocks that were fetched for the whole expression."""

    segment: Segment
    blocks: Mapping[tuple[int, int], bytes]

    def find(self, gram: int) -> memoryview:
        (key,) = self.segment.block_keys(gram, gram)
        block = self._open(key)
        start, end = block.span(gram)
        return block.payload[start:end]

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        for key in self.segment.block_keys(first, last):
            block = self._open(key)
            low, high = np.searchsorted(np.frombuffer(block.grams, "<u4"), [first, last + 1])
            for place in range(int(low), int(high)):
                yield block.payload[block.ends[place - 1] if place else 0 : block.ends[place]]

    def _open(self, key: int) -> OpenBlock:
        """Return a block, checked: by its checksum, and that it covers what its segment says."""
        block = open_block(self.blocks[self.segment.row.id, key], self.segment.row.id)
        at = int(np.searchsorted(self.segment.keys, key))
        last = int(self.segment.keys[at + 1]) - 1 if at + 1 < len(self.segment.keys) else LAST_KEY
        if (block.first, block.last) != (key, last):
            raise Damaged("a key is in no block of postings")
        return block


def thin_out(expression: GramExpr) -> GramExpr:
    """Return an expression that what satisfies the given one satisfies too, with fewer grams to fetch.

    Grams of neighbours overlap by three bytes, so of many in a row a few say nearly as much.
    """
    if isinstance(expression, AnyOf):
        return AnyOf(tuple(map(thin_out, expression.parts)))
    if not isinstance(expression, AllOf):
        return expression
    grams = [part for part in expression.parts if isinstance(part, Gram)]
    others = [thin_out(part) for part in expression.parts if not isinstance(part, Gram)]
    if len(grams) > MOST_GRAMS:
        grams = [grams[at * (len(grams) - 1) // (MOST_GRAMS - 1)] for at in range(MOST_GRAMS)]
    return AllOf((*grams, *others))


def _ranges(expression: GramExpr) -> Iterator[tuple[int, int]]:
    """Yield the first and the last key of each gram of an expression; shorter ones stand for many."""
    if isinstance(expression, AllOf | AnyOf):
        for part in expression.parts:
            yield from _ranges(part)
    elif isinstance(expression, Gram):
        first = number(expression.value)
        yield first, first + (1 << 8 * (GRAM - len(expression.value))) - 1


def fold_name(name: bytes) -> bytes | None:
    """Return a defined name as it is looked up; None: it is too long to be."""
    return _fold(name.decode("utf-8", "replace")) if len(name) <= LONGEST_NAME else None


def _fold(name: str) -> bytes:
    return name.encode("utf-8", "replace").lower()


def _after(start: bytes) -> bytes:
    """Return what all names that begin so come before."""
    return start + b"\xff" * 8
