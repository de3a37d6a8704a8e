"""Matching one file's bytes: which lines, which spans, how many; ripgrep's line-oriented semantics."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flashgrep.pattern.build import can_match_newline, plain_bytes
from flashgrep.pattern.finders import NONE, Finder, LiteralFinder, Re2Finder, Span, WordFinder
from flashgrep.pattern.nodes import Concat, Look, Node
from flashgrep.pattern.simulate import Simulation
from flashgrep.pattern.translate import Kind, translate


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
        self._capturing: Re2Finder | None = None
        if self._literal is None:
            self._finder(Kind(ascii=False, carriage=True))  # the largest program: what is too large fails here

    def search(self, data: bytes) -> bool:
        """Tell whether any line matches."""
        return next(self.lines(data, limit=1), None) is not None

    def lines(self, data: bytes, *, all_spans: bool = False, limit: int | None = None) -> Iterator[LineMatch]:
        """Yield at most `limit` matching lines in order, each with its first span or with all of them."""
        found = (self._line_blocks if self._blocks else self._single_lines)(data, all_spans=all_spans)
        if limit is None:
            return found
        return (line for _, line in zip(range(limit), found, strict=False))

    def count_lines(self, data: bytes) -> int:
        """Return how many lines match (for multi-line matches: how many lines they cover)."""
        if self._blocks:
            return sum(line.end_number - line.number + 1 for line in self._line_blocks(data, all_spans=False))
        finder, exact = self._finder(_kind(data))
        if not exact:
            return sum(1 for _ in self._single_lines(data, all_spans=False))
        return _count(finder, data)

    def expand(self, data: bytes, span: Span, template: bytes) -> bytes:
        """Return `template` with `$1`, `${name}` and `$0` replaced by what the match at `span` captured (`rg -r`)."""
        raise NotImplementedError

    def _finder(self, kind: Kind) -> tuple[Finder, bool]:
        """Return the finder for this kind of text, and whether its matches need no confirmation."""
        if self._literal is not None:
            return self._literal, True
        found = self._kinds.get(kind)
        if found is None:
            pattern, exact = translate(self._node, kind)
            found = self._kinds[kind] = (Re2Finder(pattern), exact)
        return found

    def _single_lines(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        finder, exact = self._finder(_kind(data))
        find, pos, end = finder.find, 0, len(data)
        number, counted = 1, 0
        while pos < end:
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
            spans: tuple[Span, ...] = ((start, stop),)
            if not exact:
                spans = self._confirmed(data, line_start, line_end)
                if not spans:
                    continue
                spans = _shown(spans, self._last(data, line_end)) if all_spans else spans[:1]
            elif all_spans:
                spans = _shown(_spans(finder, data, line_start, line_end), self._last(data, line_end))
            number += data.count(b"\n", counted, line_start)
            counted = line_start
            yield LineMatch(number, number, line_start, line_end, spans)

    def _confirmed(self, data: bytes, start: int, end: int) -> tuple[Span, ...]:
        """Search one line by an exact finder: RE2 if the line is simpler than the file, else the simulation."""
        finder, exact = self._finder(_kind(data[start:end]))
        return tuple(_spans(finder if exact else self._simulator(), data, start, end))

    def _last(self, data: bytes, end: int) -> int:
        """Return the last offset of a line that ripgrep reports a span at: not behind all text, nor in a CRLF."""
        return end - 1 if end == len(data) or (self._crlf and data[end - 1 : end] == b"\r") else end

    def _simulator(self) -> Simulation:
        if self._simulation is None:
            self._simulation = Simulation(self._node)
        return self._simulation

    def _line_blocks(self, data: bytes, *, all_spans: bool) -> Iterator[LineMatch]:
        """Yield the lines of each match, matches on the same or on adjacent lines together."""
        finder, exact = self._finder(_kind(data))
        if not exact and finder.find(data, 0, len(data)) != NONE:
            finder = self._simulator()
        number, counted = 1, 0
        for start, end, spans in _blocks(finder, data):
            number += data.count(b"\n", counted, start)
            counted = start
            stop = end - 1 if data[end - 1 : end] == b"\n" else end
            shown = _shown(_apart(spans), len(data) - 1) if all_spans else spans[:1]
            yield LineMatch(number, number + data.count(b"\n", start, stop), start, stop, shown)


def _kind(data: bytes) -> Kind:
    return Kind(ascii=data.isascii(), carriage=b"\r" in data)


def _literal_finder(node: Node) -> Finder | None:
    """Return a finder by `bytes.find` if that is all the pattern needs."""
    match node:
        case Concat((Look("half_start", False), inner, Look("half_end", False))):
            needle = plain_bytes(inner)
            return WordFinder(needle) if needle else None
        case _:
            needle = plain_bytes(node)
            return LiteralFinder(needle) if needle else None


def _spans(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    """Yield all matches between two offsets."""
    return _apart(_all_spans(finder, data, pos, end))


def _all_spans(finder: Finder, data: bytes, pos: int, end: int) -> Iterator[Span]:
    while pos <= end:
        start, stop = finder.find(data, pos, end)
        if start < 0:
            return
        yield start, stop
        pos = stop if start < stop else stop + 1


def _apart(spans: Iterable[Span]) -> Iterator[Span]:
    """Leave out an empty match right behind another."""
    last = -1
    for start, stop in spans:
        if start < stop or stop != last:
            yield start, stop
        last = stop


def _shown(spans: Iterable[Span], last: int) -> tuple[Span, ...]:
    """Leave out empty matches where ripgrep reports none; the line counts all the same."""
    return tuple(span for span in spans if span[0] <= last)


def _blocks(finder: Finder, data: bytes) -> Iterator[tuple[int, int, tuple[Span, ...]]]:
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
        start, stop = find(data, pos, end)
        if start < 0:
            break
        pos = data.find(b"\n", stop) + 1 or end
        lines += start < end or data[end - 1] != ord("\n")
    return lines
