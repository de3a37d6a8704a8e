"""What is shown of a file for a chunk: the whole function around it, or its head and the part that answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from flashgrep.index.chunks import StoredChunk
from flashgrep.ingest.decoding import SHOWN
from flashgrep.ingest.parse.describe import Lines
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, KIND, KIND_ID, START

MOST_WHOLE: Final = 8_000
"""Bytes of a function that is shown whole: about 200 lines."""
MOST_HEAD: Final = 8
"""Lines of a function's head: its signature, and the documentation that its body begins with."""
_CALLABLES: Final = [KIND_ID[kind] for kind in sorted(CALLABLE_KINDS - {"macro"})]

Span = tuple[int, int]
"""First and last line, from 1, both inclusive."""


class Shown(NamedTuple):
    """What is shown of a passage: its text, with a line for each gap, and which of its lines are there."""

    text: str
    lines: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk and the function around it."""

    lines: Lines
    part: Span
    """Lines of the chunk."""
    whole: Span
    """Lines of the function that the chunk is in, or of the chunk and the functions that it has an end of."""
    head: Span | None = None
    """Lines of the function's head, where they come before the chunk."""
    kind: str = ""
    name: str = ""
    """Of the function that the chunk is in, the qualified one; empty where it is in none."""
    text: str = ""
    """The chunk's, where it is a part of a line."""

    def covers(self, other: "Passage") -> bool:
        """Return whether most of another passage's chunk is in what this one shows where there is room."""
        first, last = max(self.whole[0], other.part[0]), min(self.whole[1], other.part[1])
        is_most = 2 * (last - first + 1) > other.part[1] - other.part[0] + 1
        return is_most and not self.text and self._measure(self.whole) <= MOST_WHOLE

    def fit(self, size: int) -> Shown | None:
        """Return the whole or, where that is too long, head and chunk; None if these take more bytes than ``size``."""
        if self.text:
            return Shown(self.text, (self.part,)) if len(self.text) <= size else None
        spans = [self.part] if self.head is None else [self.head, self.part]
        for shown in ([self.whole], spans):
            if sum(map(self._measure, shown)) <= min(size, MOST_WHOLE):
                return self._show(shown)
        return None

    def crop(self, size: int, words: Sequence[bytes]) -> Shown:
        """Return the chunk's line with most of the words, and those around it while they fit: two after, one before."""
        if self.text:
            return Shown(f"{self.text[:size]}…", (self.part,))
        first, last = self.part
        counts = [
            sum(word in line for word in words)
            for line in (self.lines.text(number).lower().encode() for number in range(first, last + 1))
        ]
        start = end = first + counts.index(max(counts))
        shown = [] if self.head is None else [self.head]
        room = size - sum(map(self._measure, [*shown, (start, end)]))
        grown = True
        while grown:
            grown = False
            for line in (end + 1, end + 2, start - 1):
                if first <= line <= last and start - 1 <= line <= end + 1 and self._measure((line, line)) <= room:
                    start, end, room, grown = min(start, line), max(end, line), room - self._measure((line, line)), True
        return self._show([*shown, (start, end)])

    def _measure(self, span: Span) -> int:
        return self.lines.start(span[1] + 1) - self.lines.start(span[0])

    def _show(self, spans: Sequence[Span]) -> Shown:
        """Return the text of some of the lines; a line that says which stands for those left out."""
        texts, at = list[str](), self.whole[0]
        for first, last in spans:
            if first > at:
                texts.append(f"… {at}-{first - 1}")
            text = self.lines.data[self.lines.start(first) : self.lines.start(last + 1)]
            texts.append(text.rstrip().decode("utf-8", SHOWN))
            at = last + 1
        if at <= self.whole[1]:
            texts.append(f"… {at}-{self.whole[1]}")
        return Shown("\n".join(texts), tuple(spans))


def find_passage(data: bytes, chunk: StoredChunk, symbols: FileSymbols | None) -> Passage:
    """Return a chunk with the innermost function that most of it is a part of; tiny neighbours may be in it, too."""
    lines = symbols.lines if symbols is not None else Lines(data)
    part = (chunk.start_line, chunk.end_line)
    beside = data[lines.start(part[0]) : chunk.start] + data[chunk.end : lines.start(part[1] + 1)]
    if beside.strip():
        return Passage(lines=lines, part=part, whole=part, text=data[chunk.start : chunk.end].decode("utf-8", SHOWN))
    if symbols is None:
        return Passage(lines=lines, part=part, whole=part)
    table = symbols.parsed.definitions
    starts, ends = table[:, START], table[:, END]
    shared = np.minimum(ends, chunk.end) - np.maximum(starts, chunk.start)
    is_cut = (starts < chunk.start) | (ends > chunk.end)
    around = (np.isin(table[:, KIND], _CALLABLES) & is_cut & (2 * shared > chunk.end - chunk.start)).nonzero()[0]
    if not len(around):
        return Passage(lines=lines, part=part, whole=part)
    index = int(around[(ends - starts)[around].argmin()])
    first, last = lines.line(int(starts[index])), lines.line(int(ends[index]) - 1)
    head = (first, min(symbols.find_head_end(index), first + MOST_HEAD - 1))
    return Passage(
        lines=lines,
        part=part,
        whole=(min(first, part[0]), max(last, part[1])),
        head=head if head[1] < part[0] else None,
        kind=symbols.kind(index),
        name=symbols.qualified(index),
    )
