"""Matching one file's bytes: which lines, which spans, how many; ripgrep's line-oriented semantics."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from flashgrep.pattern.build import can_match_newline, has_crlf_anchor, plain_bytes
from flashgrep.pattern.expand import Expander
from flashgrep.pattern.finders import NONE, Finder, LiteralFinder, Re2Finder, Span, WordFinder
from flashgrep.pattern.nodes import Concat, Look, Node
from flashgrep.pattern.simulate import Simulation
from flashgrep.pattern.translate import Kind, check_weight, translate
from flashgrep.scheduler import checkpoint

MANY_BYTES: Final = 4096


class LineMatch(NamedTuple):
    """A matching line, or the lines of matches that touch: numbers from 1, byte offsets without the final line end."""

    number: int
    end_number: int
    start: int
    end: int
    spans: tuple[Span, ...]


class Matcher:
    """A compiled pattern; share it freely between threads."""

    def __init__(self, node: Node, *, multiline: bool = False, crlf: bool = False) -> None:
        self._node = node
        self._crlf = crlf
        self._blocks = multiline and can_match_newline(node)
        self._literal = _literal_finder(node)
        self._kinds: dict[Kind, tuple[Finder, bool]] = {}
        self._simulation: Simulation | None = None
        self._expander: Expander | None = None
        self._sees_carriage = has_crlf_anchor(node)
        if self._literal is None:
            check_weight(node)

    @property
    def crosses_lines(self) -> bool:
        """Whether a match may go over a line end, so that matches are blocks of lines."""
        return self._blocks

    def search(self, data: bytes) -> bool:
        """Tell whether any line matches."""
        if not self._blocks:
            finder, exact = self._finder(data)
            start = finder.find(data, 0, len(data))[0]
            if start < 0 or (exact and start < len(data)):
                return start >= 0
        return next(self.lines(data, limit=1), None) is not None

    def lines(self, data: bytes, *, all_spans: bool = False, limit: int | None = None) -> Iterator[LineMatch]:
        """Yield at most `limit` matching lines in order, each with its first span or with all of them."""
        found = (self._line_blocks if self._blocks else self._single_lines)(data, all_spans=all_spans)
        if limit is None:
            return found
        return (line for _, line in zip(range(limit), found, strict=False))

    def count_lines(self, data: bytes) -> int:
        """Return how many lines match; where matches may cross lines, how many lines they cover."""
        if self._blocks:
            return sum(line.end_number - line.number + 1 for line in self._line_blocks(data, all_spans=False))
        finder, exact = self._finder(data)
        if not exact:
            return sum(1 for _ in self._single_lines(data, all_spans=False))
        return _count(finder, data)

    def expand(self, data: bytes, span: Span, template: bytes) -> bytes:
        """Return `template` with `$1`, `${name}` and `$0` replaced by what the match at `span` captured (`rg -r`)."""
        if self._expander is None:
            self._expander = Expander(self._node)
        return self._expander.expand(data, span, template)

    def _finder(self, data: bytes) -> tuple[Finder, bool]:
        """Return the finder for this kind of text, and whether its matches need no confirmation."""
        if self._literal is not None:
            return self._literal, True
        kind = self._kind(data)
        found = self._kinds.get(kind)
        if found is None:
            translation = translate(self._node, kind)
            found = self._kinds[kind] = (Re2Finder(translation.pattern, by_lines=not self._blocks), translation.exact)
        return found

    def _kind(self, data: bytes) -> Kind:
        return Kind(ascii=data.isascii(), carriage=self._sees_carriage and b"\r" in data)

    def _single_lines(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        finder, exact = self._finder(data)
        find, pos, end = finder.find, 0, len(data)
        number, counted = 1, 0
        while pos < end:
            checkpoint()
            start, stop = find(data, pos, end)
            if start < 0:
                return
            line_start = data.rfind(b"\n", 0, start) + 1
            line_end = data.find(b"\n", stop)
            if line_end < 0:
                line_end = end
                if line_start == end:
                    return  # an empty match behind the last line end is on no line
            pos = line_end + 1
            confirming = finder if exact else self._confirming(data, line_start, line_end)
            if not exact:
                start, stop = confirming.find(data, line_start, line_end)
                if start < 0:
                    continue
            spans = self._shown(confirming, data, line_start, line_end) if all_spans else ((start, stop),)
            number += line_ends(data, counted, line_start)
            counted = line_start
            yield LineMatch(number, number, line_start, line_end, spans)

    def _confirming(self, data: bytes, start: int, end: int) -> Finder:
        """Return an exact finder for one line: RE2 if the line is simpler than the file, else the simulation."""
        finder, exact = self._finder(data[start:end])
        return finder if exact else self._simulator()

    def _shown(self, finder: Finder, data: bytes, start: int, end: int) -> tuple[Span, ...]:
        """Return the spans ripgrep shows for a line: none of a CRLF, no empty one behind the last byte of all."""
        if self._crlf and data[end - 1 : end + 1] == b"\r\n":
            end -= 1
        return tuple(span for span in spans_between(finder, data, start, end) if span[0] < len(data))

    def _simulator(self) -> Simulation:
        if self._simulation is None:
            self._simulation = Simulation(self._node)
        return self._simulation

    def _line_blocks(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        """Yield the lines of each match, matches on the same or on adjacent lines together."""
        finder, exact = self._finder(data)
        if not exact and finder.find(data, 0, len(data)) != NONE:
            finder = self._simulator()
        number, counted = 1, 0
        for start, end, spans in blocks_of(finder, data):
            number += line_ends(data, counted, start)
            counted = start
            stop = end - 1 if data[end - 1 : end] == b"\n" else end
            shown = tuple(span for span in apart(spans) if span[0] < len(data)) if all_spans else spans[:1]
            yield LineMatch(number, number + data.count(b"\n", start, stop), start, stop, shown)


def line_ends(data: bytes, start: int, end: int) -> int:
    """Count line feeds between two offsets; numpy is three times as fast once its call has paid for itself."""
    if end - start < MANY_BYTES:
        return data.count(b"\n", start, end)
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end - start, start) == ord("\n")))


def _literal_finder(node: Node) -> Finder | None:
    """Return a finder by `bytes.find` if that is all the pattern needs."""
    match node:
        case Concat((Concat((Look("half_start", False), inner)), Look("half_end", False))):
            needle = plain_bytes(inner)
            return WordFinder(needle) if needle else None
        case _:
            needle = plain_bytes(node)
            return LiteralFinder(needle) if needle else None


def spans_between(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    """Yield all matches between two offsets."""
    return apart(_all_spans(finder, data, pos, end))


def _all_spans(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    while pos <= end:
        checkpoint()
        start, stop = finder.find(data, pos, end)
        if start < 0:
            return
        yield start, stop
        pos = stop if start < stop else stop + 1


def apart(spans: Iterable[Span]) -> Iterator[Span]:
    """Leave out an empty match right behind another."""
    last = -1
    for start, stop in spans:
        if start < stop or stop != last:
            yield start, stop
        last = stop


def blocks_of(finder: Finder, data: bytes) -> Iterator[tuple[int, int, tuple[Span, ...]]]:
    """Yield where the lines of matches start and, their last line end included, end; adjacent lines together."""
    start, end = -1, -1
    spans: list[Span] = []
    for span in _all_spans(finder, data, 0, len(data)):
        line_start, line_end = _locate(data, span)
        if line_start == len(data):
            break  # an empty match behind the last line end is on no line
        if spans and line_start > end:
            yield start, end, tuple(spans)
            spans = []
        start = start if spans else line_start
        end = max(end, line_end)
        spans.append(span)
    if spans:
        yield start, end, tuple(spans)


def _locate(data: bytes, span: Span) -> tuple[int, int]:
    """Return where the lines of `span` start and, their last line end included, end."""
    start = data.rfind(b"\n", 0, span[0]) + 1
    if span[1] > start and data[span[1] - 1 : span[1]] == b"\n":
        return start, span[1]
    end = data.find(b"\n", span[1])
    return start, len(data) if end < 0 else end + 1


def _count(finder: Finder, data: bytes) -> int:
    find, pos, end, lines = finder.find, 0, len(data), 0
    while pos < end:
        checkpoint()
        start, stop = find(data, pos, end)
        if start < 0:
            break
        pos = data.find(b"\n", stop) + 1 or end
        lines += start < end or data[end - 1] != ord("\n")
    return lines
