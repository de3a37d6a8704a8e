"""What is shown of a file for a chunk: the whole function around it, or the function's head and the relevant part.

Of a long comment only the first line is shown: the space saved fits another function.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from flashgrep.base.lazy import LazyAttribute
from flashgrep.files.columns import SHOWN, Lines
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    KIND,
    KIND_ID,
    START,
    TYPE_KINDS,
)

MOST_WHOLE: Final = 8_000
"""Most bytes of a function that is shown whole: about 200 lines."""
MOST_HEAD: Final = 8
"""Most lines of a function's head: its signature, and the documentation at the start of its body."""
MOST_COMMENT: Final = 2
"""Lines of a comment that is shown whole. Of a longer one only the first line with a word is shown: on our questions,
with the same number of tokens, 33 % instead of 31 % of answers then contain all the relevant code."""
MOST_LOOKED_AT: Final = 400
"""In functions of up to this many lines all lines are scored; in longer ones, only those of the chunk."""
GAP: Final = 4
"""Extra bytes counted for a line of a cut passage, for the gap marker that may precede it."""
_CALLABLES: Final = [KIND_ID[kind] for kind in sorted(CALLABLE_KINDS - {"macro"})]
_DOCUMENTED: Final = [*_CALLABLES, *(KIND_ID[kind] for kind in sorted(TYPE_KINDS))]
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


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A chunk and its enclosing function."""

    lines: Lines
    part: Span
    """Lines of the chunk."""
    whole: Span
    """Lines of the function around the chunk, or of the chunk and the functions it partly contains."""
    head: Span | None = None
    """Lines of the function's head, if they precede the chunk."""
    kind: str = ""
    name: str = ""
    """Qualified name of the enclosing function; empty if there is none."""
    text: str = ""
    """The chunk's text, if it is a part of a line."""
    left_out: tuple[Span, ...] = ()
    """Lines of other functions between those that are shown, in order."""
    symbols: FileSymbols | None = field(default=None, repr=False)

    @LazyAttribute
    def asides(self) -> tuple[Span, ...]:
        """Return the lines that are left out, in order: of long comments, and ``left_out``.

        Most passages are compared, not shown, and finding comments takes half of the time of finding a passage.
        """
        if self.symbols is None:
            return self.left_out
        asides = list[Span]()
        for first, last in sorted(
            (*_find_asides(self.symbols, self.whole), *self.left_out)
        ):
            if asides and first <= asides[-1][1] + 1:
                asides[-1] = (asides[-1][0], max(last, asides[-1][1]))
            else:
                asides.append((first, last))
        return tuple(asides)

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
        is_most = 2 * sum(max(0, lines) for lines in shared) > sum(
            last - first + 1 for first, last in code
        )
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
        """Return the head and the lines with the rarest of the words, with their neighbours, as far as they fit.

        A line has a word if it contains one of its spellings. A word that n lines contain adds 1/n to each of them.
        Lines of the chunk come before other lines of the function; remaining space goes to the chunk's first lines.
        """
        if self.text:
            return Excerpt(f"{self.text[:size]}…", (self.part,))
        first, last = (
            self.whole if self.whole[1] - self.whole[0] < MOST_LOOKED_AT else self.part
        )
        numbers = [
            line
            for span in self.leave_out_asides([(first, last)])
            for line in range(span[0], span[1] + 1)
        ]
        lowered = {line: self.lines.text(line).lower().encode() for line in numbers}
        # A word that is in every line does not distinguish them.
        having = [
            {line for line, text in lowered.items() if any(map(text.count, word))}
            for word in words
        ]
        scores = {
            line: sum(1 / len(lines) for lines in having if line in lines)
            for line in lowered
        }
        in_part = range(self.part[0], self.part[1] + 1)
        telling = sorted(
            (line for line in numbers if scores[line]),
            key=lambda line: -scores[line] - (line in in_part) / 2,
        )

        lines_shown = set(
            range(self.head[0], self.head[1] + 1) if self.head else numbers[:1]
        )
        lines_shown.update(telling[:1])
        room = size - sum(self._measure((line, line)) for line in lines_shown)
        # Lines after a relevant line explain it better than those before.
        around = (line + step for line in telling for step in (0, 1, -1, 2))
        for line in (*around, *in_part):
            if (
                line in scores
                and line not in lines_shown
                and self._measure((line, line)) + GAP <= room
            ):
                room -= self._measure((line, line)) + GAP
                lines_shown.add(line)
        spans = list[Span]()
        for line in sorted(lines_shown):
            if (
                spans
                and line <= spans[-1][1] + 2
                and (line - 1 in lines_shown or line - 1 in scores)
            ):
                spans[-1] = (
                    spans[-1][0],
                    line,
                )  # a marker for one missing line is as long as that line
            else:
                spans.append((line, line))
        return self._show(spans)

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
            text = self.lines.data[self.lines.start(first) : self.lines.start(last + 1)]
            texts.append(text.rstrip().decode("utf-8", SHOWN))
            at = last + 1
        if at <= self.whole[1]:
            texts.append(f"… {at}-{self.whole[1]}")
        return Excerpt("\n".join(texts), tuple(spans))


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
    beside = (
        data[lines.start(part[0]) : chunk.start]
        + data[chunk.end : lines.start(part[1] + 1)]
    )
    if beside.strip():
        return Passage(
            lines=lines,
            part=part,
            whole=part,
            text=data[chunk.start : chunk.end].decode("utf-8", SHOWN),
        )
    if symbols is None:
        return Passage(lines=lines, part=part, whole=part)
    table = symbols.parsed.definitions
    starts = table[:, START]
    ends = table[:, END]
    shared = np.minimum(ends, chunk.end) - np.maximum(starts, chunk.start)
    is_cut = (starts < chunk.start) | (ends > chunk.end)
    around = (is_cut & (2 * shared > chunk.end - chunk.start)).nonzero()[0]
    around = around[np.isin(table[around, KIND], _CALLABLES)]
    # The shortest enclosing function is the innermost.
    if len(around):
        index = int(around[(ends - starts)[around].argmin()])
    else:
        index = _find_below_comment(symbols, chunk)
    if index < 0:
        return Passage(lines=lines, part=part, whole=part, symbols=symbols)
    first = lines.line(int(starts[index]))
    last = lines.line(int(ends[index]) - 1)
    head = (first, min(symbols.find_head_end(index), first + MOST_HEAD - 1))
    if not len(around):
        part = (min(head[1] + 1, last), last)
    whole = (min(first, part[0]), max(last, part[1]))
    return Passage(
        lines=lines,
        part=part,
        whole=whole,
        head=head if head[1] < part[0] else None,
        kind=symbols.kind(index),
        name=symbols.qualified(index),
        symbols=symbols,
    )


def _find_below_comment(symbols: FileSymbols, chunk: StoredChunk) -> int:
    """Return the function or type that begins below a chunk that is mostly a comment; -1: there is none."""
    table = symbols.parsed.definitions
    skips = symbols.parsed.skips
    shared = np.minimum(skips[:, 1], chunk.end) - np.maximum(skips[:, 0], chunk.start)
    at = int(skips[:, 0].searchsorted(chunk.end)) - 1
    if (
        2 * int(shared[shared > 0].sum()) < chunk.end - chunk.start
        or symbols.data[skips[at, 1] : chunk.end].strip()
    ):
        return -1
    end = int(skips[at, 1])
    while at + 1 < len(skips) and not symbols.data[end : skips[at + 1, 0]].strip():
        at += 1
        end = int(skips[at, 1])
    below = (
        np.isin(table[:, KIND], _DOCUMENTED) & (table[:, START] >= end - 1)
    ).nonzero()[0]
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
        above = data[
            max(0, lines.start(first) - _LOOK_BACK) : lines.start(first)
        ].rstrip()
        if before.strip() and not above.endswith(b":"):
            continue
        if comments and first <= comments[-1][1] + 1:
            comments[-1][1] = min(last, span[1])
        else:
            comments.append([first, min(last, span[1])])
    asides = list[Span]()
    for first, last in comments:
        shown_line = next(
            (line for line in range(first, last + 1) if _WORD.search(lines.text(line))),
            last,
        )
        if last - first >= MOST_COMMENT and last > shown_line:
            asides.append((shown_line + 1, last))
    # If the comments are nearly everything, they are what was found, and are shown.
    is_all = sum(last - first + 1 for first, last in comments) > span[1] - span[0]
    if is_all:
        return ()
    return tuple(asides)
