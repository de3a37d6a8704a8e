"""ripgrep's searcher: matches, lines of context, gaps and NUL bytes of one file, in order, handed to a sink.

A sink that returns False ends the search of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from flashgrep.cli.rg.haystack import Fills, Haystack
from flashgrep.ingest.extract import BLOCK
from flashgrep.pattern import LineMatch, Matcher

Span = tuple[int, int]


class Block(NamedTuple):
    """A matching line, or the lines of matches that touch: offsets with the last line end, spans from ``start`` on."""

    start: int
    stop: int
    number: int
    end_number: int
    spans: tuple[Span, ...]


class Sink(Protocol):
    """What becomes of what is found."""

    needs_spans: bool
    counts_lines: int
    """0, or how many matching lines are told apart when only their number counts: 1 for whether there is one."""

    def count(self, lines: int) -> None:
        """Take the number of matching lines of a file in place of the lines."""

    def begin(self, haystack: Haystack, path: bytes) -> None:
        """Start on a file."""

    def matched(self, block: Block) -> bool:
        """Take a match."""

    def context(self, start: int, stop: int, number: int) -> bool:
        """Take a line of context."""

    def gap(self) -> None:
        """Take note that lines are left out between those before and those to come."""

    def binary(self, offset: int) -> None:
        """Take note of a NUL byte."""

    def finish(self, searched: int, nul: int | None) -> None:
        """End the file: how many bytes were searched, and where the first NUL byte was met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """How files are searched; it keeps nothing between them."""

    matcher: Matcher
    before: int = 0
    after: int = 0
    limit: int | None = None

    @property
    def kept(self) -> int:
        """How many lines ripgrep keeps in its buffer when it fills it again."""
        return self.before + 1 if self.before or self.after else 0

    def search(self, haystack: Haystack, path: bytes, sink: Sink) -> None:
        """Search one file."""
        sink.begin(haystack, path)
        if sink.counts_lines and self._counts(haystack):
            sink.count(self._count(haystack.data, sink.counts_lines))
            sink.finish(len(haystack.data), None)
            return
        run = _Run(self, haystack, sink)
        searched = run.whole() if haystack.whole else run.buffered()
        sink.finish(searched, run.nul)

    def _counts(self, haystack: Haystack) -> bool:
        """Return whether each match is a line, and no NUL byte or match behind the limit, as context, comes in."""
        if self.limit is not None and self.after:
            return False
        if haystack.whole and haystack.on_nul != "text":
            return False
        return haystack.nul is None and not self.matcher.crosses_lines

    def _count(self, data: bytes, most: int) -> int:
        if most == 1:
            return int(self.matcher.search(data))
        found = self.matcher.count_lines(data)
        return found if self.limit is None else min(found, self.limit)

    def blocks(self, data: bytes, *, all_spans: bool) -> Iterator[Block]:
        """Yield what matches, up to the limit."""
        if self.matcher.crosses_lines:
            found = (_block(line, data) for line in self.matcher.lines(data, all_spans=True))
            return found if self.limit is None else _first_matches(found, data, self.limit)
        lines = self.matcher.lines(data, all_spans=all_spans, limit=self.limit)
        return (_block(line, data) for line in lines)


class _Run:
    def __init__(self, how: Searcher, haystack: Haystack, sink: Sink) -> None:
        self.nul: int | None = None
        self._how = how
        self._haystack = haystack
        self._data = haystack.data
        self._sink = sink
        self._any_context = bool(how.before or how.after)
        self._found = 0
        self._visited = 0
        self._number = 1
        self._left = 0
        self._sunk = False
        self._searched = 0
        self._found_blocks: Iterator[Block] | None = None
        self._next: Block | None = None

    def buffered(self) -> int:
        """Search a file as it is read buffer by buffer; return how many bytes ripgrep says it has searched."""
        haystack = self._haystack
        if haystack.nul is not None:
            fills = Fills(haystack)
            while not fills.holds(haystack.nul):
                if not self._blocks(fills.last):
                    return self._searched
                fills.roll(max(fills.kept(self._how.kept), self._visited) if self._any_context else fills.last)
            self.nul = haystack.nul
            self._sink.binary(haystack.nul)
            if haystack.on_nul == "quit":
                return fills.start
        return len(self._data) if self._blocks(len(self._data)) else self._searched

    def whole(self) -> int:
        """Search a file that is in memory as a whole."""
        end = len(self._data)
        nul = -1 if self._haystack.on_nul == "text" else self._data.find(0, 0, BLOCK)
        if nul >= 0:
            self.nul = nul
            self._sink.binary(nul)
            if self._haystack.on_nul == "quit":
                return 0
        searched = end if self._blocks(end) or self._how.matcher.crosses_lines else self._searched
        return searched if self.nul is None else min(self.nul, searched)

    def _blocks(self, upto: int) -> bool:
        """Sink what matches before ``upto``; return False when the sink wants no more or the limit is reached."""
        if self._found_blocks is None:
            self._found_blocks = self._how.blocks(self._data, all_spans=self._sink.needs_spans)
            self._next = next(self._found_blocks, None)
        while (block := self._next) is not None and block.start < upto:
            if self._any_context and not (self._after(block.start) and self._before(block.start, block.number)):
                return False
            self._found += max(1, len(block.spans)) if self._how.matcher.crosses_lines else 1
            self._searched = block.stop
            if not self._matched(block):
                return False
            self._next = next(self._found_blocks, None)
        return self._after(upto) and not (self._exceeded() and not self._left)

    def _exceeded(self) -> bool:
        return self._how.limit is not None and self._found >= self._how.limit

    def _matched(self, block: Block) -> bool:
        if self._met_nul(block.start, block.stop):
            return False
        self._gap(block.start)
        if not self._sink.matched(block):
            return False
        self._visited, self._number = block.stop, block.end_number + 1
        self._left = self._how.after
        self._sunk = True
        return True

    def _context(self, start: int, stop: int, number: int) -> bool:
        if self._met_nul(start, stop):
            return False
        if not self._sink.context(start, stop, number):
            return False
        self._visited, self._number = stop, number + 1
        self._sunk = True
        return True

    def _met_nul(self, start: int, stop: int) -> bool:
        """Look for a NUL byte in lines about to be sunk, as only a search of a whole file does; True ends it."""
        if not self._haystack.whole or self._haystack.on_nul == "text":
            return False
        if self.nul is None:
            nul = self._data.find(0, start, stop)
            if nul < 0:
                return False
            self.nul = nul
            self._sink.binary(nul)
        return self._haystack.on_nul == "quit"

    def _gap(self, start: int) -> None:
        if self._any_context and self._sunk and self._visited < start:
            self._sink.gap()

    def _after(self, upto: int) -> bool:
        exceeded = self._exceeded()
        while self._left and self._visited < upto:
            start, left = self._visited, self._left
            stop = _line_end(self._data, start, upto)
            if exceeded and self._is_match(start, stop):
                self._searched = stop
                if not self._matched(self._line_block(start, stop)):
                    return False
            elif not self._context(start, stop, self._number):
                return False
            self._left = left - 1
        return True

    def _is_match(self, start: int, stop: int) -> bool:
        """Return whether a line matches alone; where matches cross lines, ripgrep asks it without its line end."""
        line = self._data[start:stop]
        return self._how.matcher.search(line.removesuffix(b"\n") if self._how.matcher.crosses_lines else line)

    def _line_block(self, start: int, stop: int) -> Block:
        line = next(self._how.matcher.lines(self._data[start:stop], all_spans=True, limit=1), None)
        return Block(start, stop, self._number, self._number, line.spans if line else ())

    def _before(self, upto: int, number: int) -> bool:
        starts: list[int] = []
        at = upto
        while at > self._visited and len(starts) < self._how.before:
            found = self._data.rfind(b"\n", self._visited, at - 1)
            at = found + 1 if found >= 0 else self._visited
            starts.append(at)
        number -= len(starts)
        for start in reversed(starts):
            self._gap(start)
            if not self._context(start, _line_end(self._data, start, upto), number):
                return False
            number += 1
        return True


def _block(line: LineMatch, data: bytes) -> Block:
    start = line.start
    spans = tuple([(low - start, high - start) for low, high in line.spans])
    stop = line.end + 1 if line.end < len(data) else line.end
    return Block(start, stop, line.number, line.end_number, spans)


def _first_matches(blocks: Iterator[Block], data: bytes, limit: int) -> Iterator[Block]:
    """Cut blocks off behind the match that reaches the limit; matches in the lines kept stay in them."""
    for block in blocks:
        if len(block.spans) >= limit:
            yield _cut(block, data, block.spans[limit - 1])
            return
        limit -= max(1, len(block.spans))
        yield block
        if not limit:
            return


def _cut(block: Block, data: bytes, last: Span) -> Block:
    """Return the block up to the last line of a match of it."""
    high = block.start + last[1]
    ends_line = last[0] < last[1] and data[high - 1] == ord("\n")
    stop = high if ends_line else _line_end(data, high, len(data))
    spans = tuple(span for span in block.spans if span[0] < stop - block.start)
    return Block(block.start, stop, block.number, block.number + data.count(b"\n", block.start, stop - 1), spans)


def _line_end(data: bytes, start: int, upto: int) -> int:
    found = data.find(b"\n", start, upto)
    return upto if found < 0 else found + 1
