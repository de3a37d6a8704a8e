"""ripgrep's standard output: lines with what leads them, context, headings, colours, replacements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flashgrep.cli.rg.haystack import Haystack
from flashgrep.cli.rg.output import COLUMN, LINE, MATCH, PATH, RESET, Output, Stats
from flashgrep.cli.rg.searcher import Block, Span
from flashgrep.pattern import Matcher

_BLANK = b"\t\n\v\f\r "


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How lines are shown."""

    path: bool = True
    heading: bool = False
    line_number: bool = False
    column: bool = False
    byte_offset: bool = False
    only_matching: bool = False
    per_match: bool = False
    """One line for each match (``--vimgrep``)."""
    null: bool = False
    trim: bool = False
    max_columns: int = 0
    replace: bytes | None = None
    separator: bytes | None = None
    """The line between the matches of two files."""
    line_end: bytes = b"\n"
    stats: bool = False


class StandardSink:
    """Prints one file after the other."""

    def __init__(self, out: Output, look: Look, matcher: Matcher) -> None:
        self.stats = Stats()
        self.match_count = 0
        self.counts_lines = 0
        self.needs_spans = bool(
            out.color or look.column or look.replace is not None or look.per_match or look.only_matching or look.stats
        )
        self._out = out
        self._look = look
        self._matcher = matcher
        self._haystack = Haystack(b"", whole=False, on_nul="quit")
        self._path = b""
        self._nul: int | None = None
        self._in_match = False

    def count(self, lines: int) -> None:
        """Take a number of lines: never asked of a printer of lines."""

    @property
    def has_match(self) -> bool:
        """Whether the last file has a match."""
        return self.match_count > 0

    def begin(self, haystack: Haystack, path: bytes) -> None:
        """Start on a file."""
        self._out.restart()
        self._haystack, self._path = haystack, path
        self._nul = None
        self.match_count = 0
        self.stats = Stats()

    def matched(self, block: Block) -> bool:
        """Print a match."""
        self.match_count += 1
        if self._look.stats:
            self.stats.matches += len(block.spans)
            self.stats.matched_lines += block.end_number - block.number + 1
        text, spans = self._haystack.data[block.start : block.stop], block.spans if self.needs_spans else ()
        if self._look.replace is not None and spans:
            text, spans = self._replaced(block, self._look.replace)
        if self._hidden():
            return False
        self._prelude_of_file()
        if not self._matcher.crosses_lines:
            self._one_line(block, text, spans)
        elif spans:
            self._many_lines(block, text, spans)
        else:
            self._plain_lines(block, text)
        return True

    def context(self, start: int, stop: int, number: int) -> bool:
        """Print a line of context."""
        if self._hidden():
            return False
        self._prelude_of_file()
        self._lead(start, number, None, b"-")
        self._line(self._haystack.data[start:stop], (), context=True)
        return True

    def gap(self) -> None:
        """Print the separator of contexts."""
        self._out.write(b"--" + self._look.line_end)

    def binary(self, offset: int) -> None:
        """Take note of a NUL byte."""
        self._nul = offset

    def finish(self, searched: int, nul: int | None) -> None:
        """Print the warning of a binary file, and close the file's figures."""
        if self._nul is not None and self.has_match:
            self._binary_message(self._nul)
        self.stats.end(searched=searched, printed=self._out.count, found=self.has_match)
        del nul

    def _hidden(self) -> bool:
        return self._nul is not None and self._haystack.on_nul == "convert"

    def _binary_message(self, offset: int) -> None:
        if self._look.path:
            self._out.paint(PATH, self._path)
            self._out.write(b": ")
        quits = self._haystack.on_nul == "quit"
        said = b"WARNING: stopped searching binary file after match" if quits else b"binary file matches"
        self._out.write(said + b' (found "\\0" byte around offset %d)\n' % offset)

    def _replaced(self, block: Block, template: bytes) -> tuple[bytes, tuple[Span, ...]]:
        """Return the lines with every match replaced, and where the replacements stand."""
        data, start = self._haystack.data, block.start
        stop = block.stop
        end = b""
        if not self._matcher.crosses_lines:
            end = _line_end_of(data[start:stop], self._look.line_end)
            stop -= len(end)
        parts: list[bytes] = []
        spans: list[Span] = []
        size, at = 0, start
        for low, high in block.spans:
            new = self._matcher.expand(data, (start + low, start + high), template)
            parts += (data[at : start + low], new)
            size += start + low - at
            spans.append((size, size + len(new)))
            size += len(new)
            at = start + high
        return b"".join([*parts, data[at:stop], end]), tuple(spans)

    # Lines

    def _one_line(self, block: Block, text: bytes, spans: Sequence[Span]) -> None:
        if not spans:
            self._lead(block.start, block.number, None)
            self._line(text, block.spans)
        elif self._look.only_matching:
            for low, high in spans:
                self._lead(block.start + low, block.number, low + 1)
                self._colored(text[low:high], [(0, high - low)], block.spans)
        elif self._look.per_match:
            for low, high in spans:
                self._lead(block.start + low, block.number, low + 1)
                self._colored(text, [(low, high)], block.spans)
        else:
            self._lead(block.start, block.number, spans[0][0] + 1)
            self._colored(text, spans, block.spans)

    def _plain_lines(self, block: Block, text: bytes) -> None:
        for count, (start, stop) in enumerate(_lines(text)):
            self._lead(block.start + start, block.number + count, None)
            self._line(text[start:stop], ())

    def _many_lines(self, block: Block, text: bytes, spans: Sequence[Span]) -> None:
        if self._look.only_matching:
            self._matches_by_line(block, text, spans)
        elif self._look.per_match:
            self._first_line_of_each(block, text, spans)
        else:
            at = 0
            for count, (start, stop) in enumerate(_lines(text)):
                self._lead(block.start + start, block.number + count, spans[0][0] + 1)
                low = self._trimmed(text, start, stop)
                if self._too_long(stop - low):
                    self._omitted(block.spans)
                else:
                    at = self._paint_matches(text, low, self._without_end(text, low, stop), spans, at)
                    self._out.write(self._look.line_end)

    def _matches_by_line(self, block: Block, text: bytes, spans: Sequence[Span]) -> None:
        at = 0
        for count, (start, stop) in enumerate(_lines(text)):
            end = self._without_end(text, start, stop)
            low = self._trimmed(text, start, end)
            while low < end:
                if spans[at][1] <= low:
                    if at + 1 == len(spans):
                        break
                    at += 1
                elif low < spans[at][0]:
                    low = min(end, spans[at][0])
                else:
                    high = min(end, spans[at][1])
                    self._lead(block.start + spans[at][0], block.number + count, spans[at][0] + 1)
                    if self._too_long(high - low):
                        self._omitted(block.spans)
                    else:
                        self._out.paint(MATCH, text[low:high])
                        self._out.write(self._look.line_end)
                    low = high

    def _first_line_of_each(self, block: Block, text: bytes, spans: Sequence[Span]) -> None:
        lines = list(_lines(text))
        for span in spans:
            for count, (start, stop) in enumerate(lines):
                if start >= span[1]:
                    break
                if stop <= span[0]:
                    continue
                self._lead(block.start + start, block.number + count, max(0, span[0] - start) + 1)
                end = self._without_end(text, start, stop)
                low = self._trimmed(text, start, end)
                if self._too_long(end - low):
                    self._omitted(block.spans)
                    continue
                self._paint_span(text, low, end, span)
                self._out.write(self._look.line_end)
                break

    def _paint_span(self, text: bytes, low: int, end: int, span: Span) -> None:
        first, last = min(max(low, span[0]), end), min(max(low, span[1]), end)
        self._out.write(text[low:first])
        if first < last:
            self._out.paint(MATCH, text[first:last])
        self._out.write(text[last:end])

    # Parts of lines

    def _prelude_of_file(self) -> None:
        out, look = self._out, self._look
        if out.count:
            return
        if look.separator is not None and out.total:
            out.write(look.separator + look.line_end)
        if look.heading and look.path:
            out.paint(PATH, self._path)
            out.write(b"\0" if look.null else look.line_end)

    def _lead(self, offset: int, number: int, column: int | None, separator: bytes = b":") -> None:
        out, look = self._out, self._look
        if look.path and not look.heading:
            out.paint(PATH, self._path)
            out.write(b"\0" if look.null else separator)
        if look.line_number:
            out.paint(LINE, b"%d" % number)
            out.write(separator)
        if look.column and column is not None:
            out.paint(COLUMN, b"%d" % column)
            out.write(separator)
        if look.byte_offset:
            out.paint(COLUMN, b"%d" % offset)
            out.write(separator)

    def _line(self, line: bytes, spans: Sequence[Span], *, context: bool = False) -> None:
        if self._look.trim:
            line = line[self._trimmed(line, 0, len(line)) :]
        if self._too_long(len(line)):
            self._omitted(spans if self.needs_spans else (), context=context)
            return
        self._out.write(line)
        if not line.endswith(b"\n"):
            self._out.write(self._look.line_end)

    def _colored(self, line: bytes, spans: Sequence[Span], original: Sequence[Span]) -> None:
        if not self._out.color:
            self._line(line, original)
            return
        low = self._trimmed(line, 0, len(line))
        if self._too_long(len(line)):
            self._omitted(original)
            return
        self._paint_matches(line, low, self._without_end(line, low, len(line)), spans, 0)
        self._out.write(self._look.line_end)

    def _paint_matches(self, text: bytes, low: int, end: int, spans: Sequence[Span], at: int) -> int:
        """Write a stretch of text with its matches in colour, and return which match comes next."""
        out = self._out
        while low < end:
            if spans[at][1] <= low:
                if at + 1 < len(spans):
                    at += 1
                    continue
                self._end_match()
                out.write(text[low:end])
                break
            if low < spans[at][0]:
                self._end_match()
                high = min(end, spans[at][0])
            else:
                self._start_match()
                high = min(end, spans[at][1])
            out.write(text[low:high])
            low = high
        self._end_match()
        return at

    def _start_match(self) -> None:
        if not self._in_match:
            self._out.escape(MATCH)
            self._in_match = True

    def _end_match(self) -> None:
        if self._in_match:
            self._out.escape(RESET)
            self._in_match = False

    def _too_long(self, size: int) -> bool:
        return 0 < self._look.max_columns < size

    def _omitted(self, spans: Sequence[Span], *, context: bool = False) -> None:
        if context:
            said = b"[Omitted long context line]"
        elif not spans or self._look.only_matching:
            said = b"[Omitted long matching line]"
        else:
            said = b"[Omitted long line with %d matches]" % len(spans)
        self._out.write(said + self._look.line_end)

    def _trimmed(self, text: bytes, low: int, high: int) -> int:
        """Return where a line begins for ``--trim``: behind its blanks, which its line end is not."""
        if self._look.trim:
            while low < high and text[low] in _BLANK and text[low] not in self._look.line_end:
                low += 1
        return low

    def _without_end(self, text: bytes, low: int, high: int) -> int:
        return high - len(_line_end_of(text[low:high], self._look.line_end))


def _line_end_of(line: bytes, line_end: bytes) -> bytes:
    if not line.endswith(b"\n"):
        return b""
    return line_end if line.endswith(line_end) else b"\n"


def _lines(text: bytes) -> Iterator[Span]:
    start = 0
    while start < len(text):
        stop = text.find(b"\n", start) + 1 or len(text)
        yield start, stop
        start = stop
