"""Evaluating a gram expression over the postings of one segment, wherever its blocks are stored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flashgrep.index.grams import GRAM, number
from flashgrep.index.postings import decode
from flashgrep.index.segments import SegmentRow
from flashgrep.index.table import TextIds
from flashgrep.pattern import ANYTHING, NO_WORD, AllOf, AnyOf, Gram, GramExpr

VERIFY_BYTES = 600
"""A list is worth decoding if it has at most this many bytes per remaining candidate: reading a candidate takes about
20 µs, decoding 600 bytes 4 µs, and a list usually rules out only some of the candidates."""

SPREAD = 8
"""How many grams of a literal are looked up first. Neighbouring grams overlap by three bytes, so a few of them rule out
nearly as much as all."""

ENOUGH = 4
"""With at most this many candidates the literal's other grams are not looked up (25 µs each). Not higher, since large
files, which take long to read, are often among the candidates."""

FEW = 12
"""Reading at most this many candidates (20 µs each) beats looking up another list (25 µs)."""

SEARCHED = 16
"""A list this many times longer than the other one is searched for each of its documents (100 in 70,000: 4 µs);
otherwise a table of it is made (80 µs)."""


Documents = npt.NDArray[np.uint32]
"""Document numbers minus the segment's first, ascending."""


class GramLists(Protocol):
    """The encoded lists of one segment: document numbers minus the segment's first."""

    def find(self, gram: int) -> memoryview:
        """Return the list of a gram; empty if no document has it."""

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        """Yield the lists of the grams from ``first`` to ``last``."""


def _spread(grams: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the grams of a literal that are looked up first, spread evenly from the first to the last, then the rest."""
    if len(grams) <= SPREAD:
        yield grams
        return
    last = len(grams) - 1
    places = set()
    for step in range(SPREAD):
        places.add(step * last // (SPREAD - 1))
    yield [grams[place] for place in places]
    yield [gram for place, gram in enumerate(grams) if place not in places]


def evaluate(expression: GramExpr, row: SegmentRow, lists: GramLists) -> TextIds | None:
    """Return the numbers of a segment's texts that satisfy the expression, ascending; None if it excludes none."""
    # Documents are counted from the segment's first one here, so that a table of them
    # is small.
    text_ids = _Segment(lists, row.last - row.first + 1).evaluate(expression)
    if text_ids is None:
        return None
    return text_ids.astype(np.int64) + row.first


def join_segments(found: Sequence[TextIds | None]) -> TextIds | None:
    """Return the texts of several segments, ascending; None if any of them excludes none."""
    lists = [text_ids for text_ids in found if text_ids is not None]
    if len(lists) < len(found):
        return None
    if lists:
        return np.sort(np.concatenate(lists))
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Segment:
    """One segment, as the expression is evaluated over it."""

    lists: GramLists
    documents: int

    def evaluate(self, expression: GramExpr) -> Documents | None:
        if isinstance(expression, AllOf):
            return self._evaluate_all(expression.parts)
        if isinstance(expression, AnyOf):
            return self._evaluate_any(expression.parts)
        if isinstance(expression, Gram):
            return self._find(expression)
        if expression == ANYTHING:
            return None
        return np.empty(0, np.uint32)

    def _evaluate_any(self, parts: tuple[GramExpr, ...]) -> Documents | None:
        lists = []
        for part in parts:
            documents = self.evaluate(part)
            # If one alternative excludes nothing, neither does the whole.
            if documents is None:
                return None
            lists.append(documents)
        return self._unite_lists(lists)

    def _find(self, gram: Gram) -> Documents:
        """Return the documents with a gram, or with one that starts so; with ``ends_word``, in which a word ends."""
        first = number(gram.value)
        missing = GRAM - len(gram.value)
        if not missing:
            return decode(self.lists.find(first))
        # Grams are big-endian numbers, so grams with a common prefix are
        # consecutive; each byte that is missing stands for 256 of them.
        ranges: Sequence[tuple[int, int]] = NO_WORD
        if not gram.ends_word:
            count = 1 << 8 * missing
            ranges = [(0, count - 1)]
        lists: list[Documents] = []
        for low, high in ranges:
            begin = first + low
            stop = first + high
            encoded = self.lists.between(begin, stop)
            for documents in encoded:
                lists.append(decode(documents))
        return self._unite_lists(lists)

    def _evaluate_all(self, parts: tuple[GramExpr, ...]) -> Documents | None:
        """Intersect, shortest list first, until reading the remaining candidates is cheaper than another list."""
        grams: list[bytes] = []
        others: list[GramExpr] = []
        for part in parts:
            if isinstance(part, Gram) and len(part.value) == GRAM:
                grams.append(part.value)
            else:
                others.append(part)
        documents = self._intersect_grams(grams)
        # The other parts cost more: ranges of grams and alternatives read many lists.
        for part in others:
            if documents is None or len(documents) > FEW:
                documents = self._intersect_lists(documents, self.evaluate(part))
        return documents

    def _intersect_grams(self, grams: list[bytes]) -> Documents | None:
        """Return the documents that have the grams of a literal, or nearly; None: there are no grams."""
        documents: Documents | None = None
        for several in _spread(grams):
            if documents is not None and len(documents) <= ENOUGH:
                break
            lists = [self.lists.find(number(gram)) for gram in several]
            # If no document has one of the grams, nothing matches and no list need be
            # decoded.
            if not all(map(len, lists)):
                return np.empty(0, np.uint32)
            lists.sort(key=len)
            for encoded in lists:
                if documents is not None:
                    worth = len(documents) * VERIFY_BYTES
                    if len(encoded) > worth:
                        continue
                documents = self._intersect_lists(documents, decode(encoded))
        return documents

    def _intersect_lists(
        self, first: Documents | None, second: Documents | None
    ) -> Documents | None:
        """Intersect two ascending lists; None stands for all documents."""
        if first is None:
            return second
        if second is None:
            return first
        if len(first) * SEARCHED <= len(second):
            places = np.searchsorted(second, first)
            is_common = second.take(places, mode="clip") == first
        else:
            is_common = self._mark((second,)).take(first)
        common: Documents = first[is_common]
        return common

    def _unite_lists(self, lists: Iterable[Documents]) -> Documents:
        """Return the union of lists, ascending, by marking documents: ``numpy.unique`` is a hundred times slower."""
        return np.flatnonzero(self._mark(lists)).astype(np.uint32)

    def _mark(self, lists: Iterable[Documents]) -> npt.NDArray[np.bool_]:
        """Return a table of all documents in which those of any list are marked."""
        marked = np.zeros(self.documents, bool)
        for documents in lists:
            # numpy's own conversion takes twice as long.
            places = documents.astype(np.intp)
            marked[places] = True
        return marked
