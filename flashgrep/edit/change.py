"""Edits of a text as values: what they replace, found in the original text, and applied all at once.

Nothing here touches a file. Line numbers are those of the original text in every edit, so several edits need no
shifting.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from flashgrep.edit.text import usual_ending, with_ending
from flashgrep.errors import Conflict, InvalidRange

_LF = 10
_MOST_TOLD = 20  # places of a text that should have been at one
_MOST_SHOWN = 1_000  # characters of a text in a conflict
_BLOCK = 1 << 20  # characters looked at together, at four bytes each


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Replace lines ``start`` to ``end`` (from 1, included); ``end`` one less than ``start`` inserts before it."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace a text that occurs exactly once, or, asked to, everywhere."""

    old: str
    new: str
    everywhere: bool = False


Edit = LineEdit | TextEdit


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters ``start`` to ``end`` of the original become ``new``; ``lines`` of the original are touched."""

    start: int
    end: int
    new: str = field(compare=False)
    lines: tuple[int, int] = field(compare=False)
    ending: str = field(default="", compare=False)
    """The line end that was put after ``new``'s last line."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A text with its line starts; an unended last line is given an end while edits are applied."""

    text: str
    """As shown."""
    kept: str
    """The same with what is no text as it is kept (``text.Text``)."""
    starts: list[int]
    """Offset of every line's start, and the text's length last."""
    ending: str
    ended: bool

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self.starts) - 1

    def line(self, number: int) -> str:
        """Return a line (from 1) with its end."""
        return self.text[self.starts[number - 1] : self.starts[number]]

    def number_at(self, offset: int) -> int:
        """Return the number of the line an offset is in."""
        return bisect_right(self.starts, offset)


def lines_of(text: str, kept: str | None = None) -> Lines:
    """Return a text with its lines, ready for edits."""
    kept = text if kept is None else kept
    ending = usual_ending(text)
    ended = not text or text.endswith("\n") or (ending == "\r" and text.endswith("\r"))
    if not ended:
        text, kept = text + ending, kept + ending
    starts = [0, *_past_line_feeds(text)]
    if starts[-1] < len(text):
        starts.append(len(text))
    return Lines(text, kept, starts, ending, ended)


def spans(lines: Lines, edit: Edit) -> list[Span]:
    """Return what an edit replaces.

    Raises:
        InvalidRange: lines that do not exist.
        Conflict: the old text occurs not at all, or more than once.

    """
    return [_line_span(lines, edit)] if isinstance(edit, LineEdit) else _text_spans(lines, edit)


def applied(lines: Lines, changes: Sequence[Span]) -> str:
    """Return the kept text with all spans replaced; they must not overlap. A file without a final line end stays so."""
    parts, at, last = [], 0, None
    for span in sorted(changes):
        parts += [lines.kept[at : span.start], span.new]
        at, last = span.end, span
    text = "".join([*parts, lines.kept[at:]])
    return text if lines.ended else text[: len(text) - _given_end(lines, text, last)]


def overlap(left: Span, right: Span) -> bool:
    """Tell whether two spans touch the same text; two insertions at one place do, an insertion at a border does not."""
    if left.start == left.end and right.start == right.end:
        return left.start == right.start
    return left.start < right.end and right.start < left.end


def line_count(text: str) -> int:
    """Return how many lines a replacement is."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _past_line_feeds(text: str) -> list[int]:
    """Return the offset after every LF; ten times as fast as looking for one after the other."""
    found: list[int] = []
    for at in range(0, len(text), _BLOCK):
        characters = np.frombuffer(text[at : at + _BLOCK].encode("utf-32-le"), "<u4")
        found += (np.flatnonzero(characters == _LF) + (at + 1)).tolist()
    return found


def _given_end(lines: Lines, text: str, last: Span | None) -> int:
    """Return the length of the line end that the text ends with only because edits need one."""
    if last is None or last.end < len(lines.text):
        return len(lines.ending)
    if last.new:
        return len(last.ending)
    # The last lines were deleted: what is last now had its own end.
    return next((len(end) for end in ("\r\n", "\n", lines.ending) if text.endswith(end)), 0)


def _line_span(lines: Lines, edit: LineEdit) -> Span:
    if not 1 <= edit.start <= edit.end + 1 <= lines.count + 1:
        raise _bad_range(lines, edit)
    start, end = lines.starts[edit.start - 1], lines.starts[edit.end]
    ending = _ending(lines, edit.start)
    new = with_ending(edit.replacement, ending)
    if new and not new.endswith(ending):
        new += ending
    return Span(start, end, new, (edit.start, edit.end), ending)


def _bad_range(lines: Lines, edit: LineEdit) -> InvalidRange:
    asked = f"lines {edit.start}-{edit.end}"
    if edit.end < edit.start - 1:
        problem = f"{asked}: end_line is before start_line (start_line - 1 inserts before start_line)"
    elif lines.count == 0:
        problem = f"{asked}: the file is empty (start_line 1 with end_line 0 writes into it)"
    else:
        problem = f"{asked}: the file has {lines.count} lines (start_line {lines.count + 1} appends)"
    return InvalidRange(problem, start_line=edit.start, end_line=edit.end, total_lines=lines.count)


def _ending(lines: Lines, number: int) -> str:
    """Return the line end of this line, which in a mixed file need not be the usual one."""
    if lines.ending == "\r" or number > lines.count or (number == lines.count and not lines.ended):
        return lines.ending
    line = lines.line(number)
    return "\r\n" if line.endswith("\r\n") else "\n"


def _text_spans(lines: Lines, edit: TextEdit) -> list[Span]:
    text = lines.text if lines.ended else lines.text[: -len(lines.ending)]
    old = edit.old
    found = _occurrences(text, old, everywhere=edit.everywhere)
    if not found and "\n" in old:  # an agent writes LF, whatever the file has
        old = with_ending(edit.old, lines.ending)
        found = _occurrences(text, old, everywhere=edit.everywhere)
    if not found or (len(found) > 1 and not edit.everywhere):
        raise _not_once(lines, edit, found)
    new = with_ending(edit.new, _ending_within(lines, old, found[0]))
    return [_text_span(lines, at, len(old), new) for at in found]


def _ending_within(lines: Lines, old: str, at: int) -> str:
    if "\n" in old:
        return "\r\n" if "\r\n" in old else "\n"
    return _ending(lines, lines.number_at(at))


def _occurrences(text: str, old: str, *, everywhere: bool) -> list[int]:
    """Return the places a text is at: all, one after the other; or the first few, overlapping: two readings are two."""
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and (everywhere or len(found) < _MOST_TOLD):
        found.append(at)
        at = text.find(old, at + (len(old) if everywhere else 1))
    return found


def _text_span(lines: Lines, at: int, length: int, new: str) -> Span:
    first = lines.number_at(at)
    return Span(at, at + length, new, (first, first + lines.text.count("\n", at, at + max(length - 1, 0))))


def _not_once(lines: Lines, edit: TextEdit, found: Sequence[int]) -> Conflict:
    mismatch: dict[str, object] = {"field": "old_text", "expected": edit.old[:_MOST_SHOWN], "actual": None}
    if found:
        where = [lines.number_at(at) for at in found]
        many = f"at least {len(found)}" if len(found) == _MOST_TOLD else f"{len(found)}"
        problem, guidance = f"old_text occurs {many} times", "give more of the text around it, or set replace_all"
    else:
        where = _alike(lines, edit.old)
        problem, guidance = "old_text does not occur", "read the file again"
        if where:
            mismatch["actual"] = _region(lines, where[0], line_count(edit.old))
            guidance = "lines and actual show where its first line stands, spaced otherwise or continued otherwise"
    mismatch |= {"occurrences": len(found), "lines": where}
    return Conflict(problem, conflict={"mismatches": [mismatch]}, guidance=guidance)


def _alike(lines: Lines, old: str) -> list[int]:
    """Return the lines that are the first line of a text but for the space around it."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), None)
    if first is None or first not in lines.text:
        return []
    alike = (number for number in range(1, lines.count + 1) if lines.line(number).strip() == first)
    return list(islice(alike, _MOST_TOLD))


def _region(lines: Lines, start: int, count: int) -> str:
    return lines.text[lines.starts[start - 1] : lines.starts[min(start - 1 + count, lines.count)]][:_MOST_SHOWN]
