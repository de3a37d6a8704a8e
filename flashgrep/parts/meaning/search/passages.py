"""What is shown of a file for a chunk: the whole function around it, or the function's head and the relevant part.

Of a long comment only the first line is shown: the space saved fits another function.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from flashgrep.base.lazy import LazyAttribute
from flashgrep.files.columns import SHOWN, Lines
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.meaning.search.excerpts import choose_lines
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    KIND,
    KINDS,
    START,
    TYPE_KINDS,
    Ints,
)
from flashgrep.parts.symbols.signatures import find_code

MOST_WHOLE: Final = 8_000
"""Most bytes of a function that is shown whole: about 200 lines."""
MOST_HEAD: Final = 8
"""Most lines of a function's head: its signature, and the documentation at the start of its body."""
MOST_COMMENT: Final = 2
"""Lines of a comment that is shown whole. Of a longer one only the first line with a word is shown: on our questions,
with the same number of tokens, 33 % instead of 31 % of answers then contain all the relevant code."""
MOST_LOOKED_AT: Final = 400
"""In functions of up to this many lines all lines are scored; in longer ones, only those of the chunk."""
_IS_CALLABLE: Final = np.isin(KINDS, sorted(CALLABLE_KINDS - {"macro"}))
_IS_DOCUMENTED: Final = _IS_CALLABLE | np.isin(KINDS, sorted(TYPE_KINDS))
"""By the number of a kind: a look-up takes a tenth of the time of ``np.isin``."""
_CALLABLE: Final = frozenset(_IS_CALLABLE.nonzero()[0].tolist())
"""The numbers of these kinds."""
_OPENS: Final = re.compile(rb"\s*(?:[rRuU]?(?:\"\"\"|'''))?")
"""What may precede a comment on its line: blanks, or the quotes of a Python docstring."""
_CLOSES: Final = b" \t\r\n\"'"
_WORD: Final = re.compile(r"\w")
_LOOK_BACK: Final = 200
"""Bytes before a quoted text that are searched for the colon that makes it documentation."""

Span = tuple[int, int]
"""First and last line, from 1, both inclusive."""


class Excerpt(NamedTuple):
    """The shown part of a passage: its text, with a marker line for each gap, and the lines it contains."""

    text: str
    lines: tuple[Span, ...]

    def count_lines(self) -> int:
        """Return how many lines of the file it has."""
        count = 0
        for first, last in self.lines:
            count += last - first + 1
        return count


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A chunk and its enclosing function."""

    lines: Lines
    part: Span
    """Lines of the chunk."""
    whole: Span
    """Lines of the function around the chunk, or of the chunk and the functions it partly contains."""
    kind: str = ""
    name: str = ""
    """Qualified name of the enclosing function; empty if there is none."""
    text: str = ""
    """The chunk's text, if it is a part of a line."""
    left_out: tuple[Span, ...] = ()
    """Lines of other functions between those that are shown, in order."""
    symbols: FileSymbols | None = field(default=None, repr=False)
    index: int = -1
    """The row of the enclosing function in ``symbols``."""

    @LazyAttribute
    def head(self) -> Span | None:
        """Return the lines of the function's head, if they precede the chunk; only what is shown needs it."""
        if self.symbols is None or self.index < 0:
            return None
        head = find_head(self.symbols, self.index)
        if head[1] < self.part[0]:
            return head
        return None

    @LazyAttribute
    def asides(self) -> tuple[Span, ...]:
        """Return the lines that are left out, in order: of long comments, and ``left_out``.

        Most passages are compared, not shown, and finding comments takes half of the time of finding a passage.
        """
        if self.symbols is None:
            return self.left_out
        asides = list[Span]()
        comments = _find_asides(self.symbols, self.whole)
        for first, last in sorted((*comments, *self.left_out)):
            if asides and first <= asides[-1][1] + 1:
                asides[-1] = (asides[-1][0], max(last, asides[-1][1]))
            else:
                asides.append((first, last))
        return tuple(asides)

    @property
    def size(self) -> int:
        """The bytes of the whole as it is shown."""
        if self.text:
            return len(self.text)
        size = 0
        for span in self.leave_out_asides([self.whole]):
            size += self._measure(span)
        return size

    def covers(self, other: "Passage") -> bool:
        """Return whether this passage, shown whole, contains most of another passage's chunk."""
        is_apart = other.part[1] < self.whole[0] or self.whole[1] < other.part[0]
        if self.text or is_apart:
            return False
        code = other.leave_out_asides([other.part])
        shared = (
            min(self.whole[1], last) - max(self.whole[0], first) + 1
            for first, last in code
        )
        in_common = sum(max(0, lines) for lines in shared)
        count = 0
        for first, last in code:
            count += last - first + 1
        is_most = 2 * in_common > count
        return is_most and self._measure(self.whole) <= MOST_WHOLE

    def fit(self, size: int) -> Excerpt | None:
        """Return the whole or, if that is too long, head and chunk; None if these take more bytes than ``size``."""
        if self.text:
            if len(self.text) <= size:
                return Excerpt(self.text, (self.part,))
            return None
        if self.head is None:
            spans = [self.part]
        else:
            spans = [self.head, self.part]
        # The whole first: a complete function needs no second call.
        for spans_shown in ([self.whole], spans):
            code = self.leave_out_asides(spans_shown)
            if sum(map(self._measure, code)) <= min(size, MOST_WHOLE):
                return self._show(code)
        return None

    def crop(self, size: int, words: Sequence[Sequence[bytes]]) -> Excerpt:
        """Return the head and the statements with the rarest of the words, with their neighbours, as far as they fit."""
        if self.text:
            return Excerpt(f"{self.text[:size]}…", (self.part,))
        around = self.whole
        if around[1] - around[0] >= MOST_LOOKED_AT:
            around = self.part
        texts = dict[int, str]()
        for first, last in self.leave_out_asides([around]):
            for line in range(first, last + 1):
                texts[line] = self.lines.text(line)
        head: Iterable[int] = islice(texts, 1)
        if self.head is not None:
            head = range(self.head[0], self.head[1] + 1)
        part = range(self.part[0], self.part[1] + 1)
        chosen = choose_lines(
            texts,
            head={*head},
            part=part,
            words=words,
            size=size,
        )
        spans = _join_lines(chosen, texts)
        return self._show(_trim_blanks(spans, texts))

    def crop_to_lines(self, most: int, words: Sequence[Sequence[bytes]]) -> Excerpt:
        """Return as ``crop`` does so many lines at most, unless the head alone has more."""
        lines = self.whole[1] - self.whole[0] + 1
        size = self.size * most // lines
        excerpt = self.crop(size, words)
        # Lines are not all of one length.
        while excerpt.count_lines() > most and size:
            size = size * 3 // 4
            excerpt = self.crop(size, words)
        return excerpt

    def leave_out_asides(self, spans: Sequence[Span]) -> list[Span]:
        """Return the lines without those in long comments."""
        code = list[Span]()
        for first, last in spans:
            at = first
            for start, end in self.asides:
                if at <= end and start <= last:
                    code += [(at, start - 1)] if start > at else []
                    at = end + 1
            code += [(at, last)] if at <= last else []
        return code

    def _measure(self, span: Span) -> int:
        return self.lines.start(span[1] + 1) - self.lines.start(span[0])

    def _show(self, spans: Sequence[Span]) -> Excerpt:
        """Return the text of some of the lines; a marker line names the omitted ones."""
        texts = list[str]()
        at = self.whole[0]
        for first, last in spans:
            if first > at:
                texts.append(f"… {at}-{first - 1}")
            start = self.lines.start(first)
            end = self.lines.start(last + 1)
            # Blank lines stay, since a client numbers the lines by `spans`.
            text = self.lines.data[start:end].removesuffix(b"\n").removesuffix(b"\r")
            texts.append(text.decode("utf-8", SHOWN))
            at = last + 1
        if at <= self.whole[1]:
            texts.append(f"… {at}-{self.whole[1]}")
        return Excerpt("\n".join(texts), tuple(spans))


def _join_lines(chosen: Collection[int], texts: Collection[int]) -> list[Span]:
    """Return lines as ranges; one missing line of the text is shown, since a marker would be as long."""
    spans = list[Span]()
    for line in sorted(chosen):
        last = spans[-1][1] if spans else -1
        is_next = line == last + 1
        is_near = line == last + 2 and line - 1 in texts
        if is_next or is_near:
            spans[-1] = (spans[-1][0], line)
        else:
            spans.append((line, line))
    return spans


def _trim_blanks(spans: Iterable[Span], texts: Mapping[int, str]) -> list[Span]:
    """Return ranges without blank lines at their ends: beside a gap they tell nothing."""
    trimmed = list[Span]()
    for first, last in spans:
        lines = list[int]()
        for line in range(first, last + 1):
            text = texts.get(line, "")
            if text.strip():
                lines.append(line)
        if lines:
            trimmed.append((lines[0], lines[-1]))
    return trimmed


def find_passage(
    data: bytes, chunk: StoredChunk, symbols: FileSymbols | None
) -> Passage:
    """Return a chunk with the innermost function that contains most of it; tiny neighbours may be included.

    A comment stands for the definition it documents, which is shown in its place.
    """
    if symbols is not None:
        lines = symbols.lines
    else:
        lines = Lines(data)
    part = (chunk.start_line, chunk.end_line)
    # Other text on the chunk's lines means that it was cut inside a long line, which
    # whole lines cannot show.
    before = data[lines.start(part[0]) : chunk.start]
    after = data[chunk.end : lines.start(part[1] + 1)]
    if before.strip() or after.strip():
        return Passage(
            lines=lines,
            part=part,
            whole=part,
            text=data[chunk.start : chunk.end].decode("utf-8", SHOWN),
        )
    if symbols is None:
        return Passage(
            lines=lines,
            part=part,
            whole=part,
        )
    table = symbols.parsed.definitions
    around = _find_around(table, chunk)
    index = around
    if index < 0:
        index = _find_below_comment(symbols, chunk)
    if index < 0:
        index = _find_overload(symbols, chunk)
    code = index
    if index >= 0:
        code = find_code(symbols, index)
    if code != index:
        index = code
        around = -1
    if index < 0:
        return Passage(
            lines=lines,
            part=part,
            whole=part,
            symbols=symbols,
        )
    first = lines.line(int(table[index, START]))
    last = lines.line(int(table[index, END]) - 1)
    if around < 0:
        head = find_head(symbols, index)
        part = (min(head[1] + 1, last), last)
    whole = (min(first, part[0]), max(last, part[1]))
    return Passage(
        lines=lines,
        part=part,
        whole=whole,
        kind=symbols.kind(index),
        name=symbols.qualified(index),
        symbols=symbols,
        index=index,
    )


def find_head(symbols: FileSymbols, index: int) -> Span:
    """Return the lines of a function's head."""
    row = symbols.row(index)
    first = symbols.lines.line(row[START])
    return first, min(symbols.find_head_end(index), first + MOST_HEAD - 1)


def _find_around(table: Ints, chunk: StoredChunk) -> int:
    """Return the innermost function that goes beyond a chunk and contains most of it; -1: there is none."""
    count = int(table[:, START].searchsorted(chunk.end))
    # Few of those that begin before the chunk's end end after its start.
    near = (table[:count, END] > chunk.start).nonzero()[0]
    around = -1
    shortest = 0
    for index, row in zip(near.tolist(), table[near].tolist(), strict=True):
        start = row[START]
        end = row[END]
        is_inside = chunk.start <= start and end <= chunk.end
        if is_inside or row[KIND] not in _CALLABLE:
            continue
        shared = min(end, chunk.end) - max(start, chunk.start)
        if 2 * shared <= chunk.end - chunk.start:
            continue
        # The shortest enclosing function is the innermost.
        if around < 0 or end - start < shortest:
            around = index
            shortest = end - start
    return around


def _find_below_comment(symbols: FileSymbols, chunk: StoredChunk) -> int:
    """Return the function or type that begins below a chunk that is mostly a comment; -1: there is none."""
    table = symbols.parsed.definitions
    skips = symbols.parsed.skips
    at = int(skips[:, 0].searchsorted(chunk.end)) - 1
    # Most chunks do not end with a comment.
    if at < 0 or symbols.data[int(skips[at, 1]) : chunk.end].strip():
        return -1
    length = 0
    for start, end in _find_skips_backwards(skips, at, chunk.start):
        length += min(end, chunk.end) - max(start, chunk.start)
    if 2 * length < chunk.end - chunk.start:
        return -1
    end = int(skips[at, 1])
    while at + 1 < len(skips) and not symbols.data[end : skips[at + 1, 0]].strip():
        at += 1
        end = int(skips[at, 1])
    first = int(table[:, START].searchsorted(end - 1))
    below = first + _IS_DOCUMENTED[table[first:, KIND]].nonzero()[0]
    if not len(below):
        return -1
    index = int(below[table[below, START].argmin()])
    between = symbols.data[
        end - symbols.data.endswith(b"\n", 0, end) : table[index, START]
    ]
    # Decorators and words like ``export`` may be between, but no blank line and no
    # other code.
    is_next = (
        b"\n\n" not in between
        and not set(between) & set(b"{};")
        and between.count(b"\n") <= MOST_HEAD
    )
    return index if is_next else -1


def _find_overload(symbols: FileSymbols, chunk: StoredChunk) -> int:
    """Return the first function of a chunk that has nothing but overloads whose code is further down; -1: there is none."""
    table = symbols.parsed.definitions
    low, high = table[:, START].searchsorted([chunk.start, chunk.end]).tolist()
    first = -1
    for index in range(low, high):
        if table[index, KIND] not in _CALLABLE:
            continue
        code = find_code(symbols, index)
        if code < high:
            return -1
        if first < 0:
            first = index
    return first


def _find_skips_backwards(skips: Ints, at: int, start: int) -> Iterator[Span]:
    """Yield the comments and texts before a place, the last first, back to an offset."""
    while at >= 0:
        begin, end = skips[at].tolist()
        if end <= start:
            break
        yield begin, end
        at -= 1


def _find_asides(symbols: FileSymbols, span: Span) -> tuple[Span, ...]:
    """Return the lines of long comments to leave out of a span; empty if there is nothing else in it.

    A comment has its lines to itself. A quoted text counts if it is documentation: after a colon, in Python.
    """
    data = symbols.data
    lines = symbols.lines
    skips = symbols.parsed.skips
    low, high = skips[:, 0].searchsorted(
        [lines.start(span[0]), lines.start(span[1] + 1)]
    )
    comments = list[list[int]]()
    for start, end in skips[low:high].tolist():
        # Most are texts amid a line of code, which need no line numbers.
        begin = data.rfind(b"\n", 0, start) + 1
        if not _OPENS.fullmatch(data, begin, start):
            continue
        first = lines.line(start)
        last = lines.line(end - 1)
        before = data[begin:start]
        after = data[end : lines.start(last + 1)]
        if after.strip(_CLOSES):
            continue
        line_start = lines.start(first)
        above = data[max(0, line_start - _LOOK_BACK) : line_start]
        if before.strip() and not above.rstrip().endswith(b":"):
            continue
        last = min(last, span[1])
        if comments and first <= comments[-1][1] + 1:
            comments[-1][1] = last
        else:
            comments.append([first, last])
    asides = list[Span]()
    count = 0
    for first, last in comments:
        count += last - first + 1
        telling = _find_telling_line(lines, first, last)
        if last - first >= MOST_COMMENT and last > telling:
            asides.append((telling + 1, last))
    # If the comments are nearly everything, they are what was found, and are shown.
    if count > span[1] - span[0]:
        return ()
    return tuple(asides)


def _find_telling_line(lines: Lines, first: int, last: int) -> int:
    """Return the first line with a word, or the last line."""
    for line in range(first, last):
        if _WORD.search(lines.text(line)):
            return line
    return last
