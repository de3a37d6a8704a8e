"""Edits of a text as values: what they replace, and their preconditions.

Nothing here touches a file. Line numbers are those of the original text in every edit, so several edits need no
shifting.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NotRequired

import numpy as np
from rapidfuzz import fuzz, process
from typing_extensions import TypedDict

from flashgrep.base.errors import Conflict, InvalidRange
from flashgrep.files.encoding import DecodedText, usual_ending, with_ending, without_end
from flashgrep.files.system import HASH_SHOWN, format_path

_LF = 10
_MOST_PLACES = 20  # places shown of a text that should occur once
_MOST_QUOTED = 1_000  # characters of a text in a conflict
_BLOCK = 1 << 20  # characters scanned at a time, at four bytes each
MOST_LINES_COMPARED, NEAR_LINE = 50_000, 70
"""Most lines of a file compared with a text that is not there, and the similarity of a near one, of 100."""
MOST_LINES_SHOWN = 20
"""Most lines shown of a place that is no longer what the caller expects."""


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Replace lines ``start`` to ``end`` (from 1, inclusive); ``end`` one less than ``start`` inserts before it."""

    start: int
    end: int
    replacement: str
    columns: tuple[int, int] | None = None
    """Only these characters, from 1: from the first of them in line ``start`` to before the second in line ``end``."""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace a text that occurs exactly once or, on request, everywhere."""

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
    """A text with its line starts; if its last line has no end, it gets one while edits are applied."""

    text: str
    """As shown."""
    lossless: str
    """As ``DecodedText.lossless``."""
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

    def ending_at(self, number: int) -> str:
        """Return the end of this line, which in a mixed file need not be the usual one."""
        # A line past the end, or a last line without an end, gets the file's usual line
        # end.
        if self.ending == "\r" or number > self.count:
            return self.ending
        if number == self.count and not self.ended:
            return self.ending
        if self.line(number).endswith("\r\n"):
            return "\r\n"
        return "\n"


def split_lines(decoded: DecodedText) -> Lines:
    """Return a text with its lines, ready for edits."""
    text = decoded.text
    lossless = decoded.lossless
    ending = usual_ending(text)
    # An empty text needs no line end: it has no line yet.
    has_ending = not text or text.endswith(("\n", ending))
    if not has_ending:
        text += ending
        lossless += ending
    starts = [0]
    for at in range(
        0, len(text), _BLOCK
    ):  # ten times as fast as finding one LF after the other
        characters = np.frombuffer(text[at : at + _BLOCK].encode("utf-32-le"), "<u4")
        starts += (np.flatnonzero(characters == _LF) + (at + 1)).tolist()
    # Only a text of lone CRs ends past its last LF here: it counts as one line.
    if starts[-1] < len(text):
        starts.append(len(text))
    return Lines(text, lossless, starts, ending, has_ending)


def count_lines(text: str) -> int:
    """Return how many lines a replacement is."""
    count = text.count("\n")
    if text and not text.endswith("\n"):
        count += 1
    return count


def apply_spans(lines: Lines, changes: Sequence[Span]) -> str:
    """Return the lossless text with all spans replaced; they must not overlap. A missing final line end stays so."""
    parts = []
    at = 0
    last = None
    for span in sorted(changes):
        parts += [lines.lossless[at : span.start], span.new]
        at = span.end
        last = span
    text = "".join([*parts, lines.lossless[at:]])
    if lines.ended:
        return text
    # Remove the line end that was added to the last line only for the edits.
    if last is None or last.end < len(lines.text):
        added = len(lines.ending)
    elif last.new:
        added = len(last.ending)
    else:  # the last lines were deleted: the line that is last now had an end of its own
        added = 0
        for end in (lines.ending, "\n", "\r\n"):
            if text.endswith(end):
                added = len(end)
    return text[: len(text) - added]


def overlap(left: Span, right: Span) -> bool:
    """Return whether two spans touch the same text: two insertions at one place do, one at a border does not."""
    if left.start == left.end and right.start == right.end:
        return left.start == right.start
    return left.start < right.end and right.start < left.end


def find_spans(lines: Lines, edit: Edit) -> list[Span]:
    """Return what an edit replaces.

    Raises:
        InvalidRange: lines that do not exist.
        Conflict: the old text does not occur, or occurs more than once.

    """
    if isinstance(edit, TextEdit):
        return _find_text(lines, edit)
    # One condition for all: end = start - 1 is an insertion, start = count + 1 with it
    # an append.
    if not 1 <= edit.start <= edit.end + 1 <= lines.count + 1:
        if edit.end < edit.start - 1:
            problem = "end_line is before start_line (start_line - 1 inserts before start_line)"
        elif lines.count == 0:
            problem = "the file is empty (start_line 1 with end_line 0 writes into it)"
        else:
            problem = f"the file has {lines.count} lines (start_line {lines.count + 1} appends)"
        message = f"lines {edit.start}-{edit.end}: {problem}"
        raise InvalidRange(
            message,
            start_line=edit.start,
            end_line=edit.end,
            total_lines=lines.count,
        )
    ending = lines.ending_at(edit.start)
    new = with_ending(edit.replacement, ending)
    if edit.columns is not None:
        return [_find_characters(lines, edit, edit.columns, new)]
    if new and not new.endswith(ending):
        new += ending
    return [
        Span(
            lines.starts[edit.start - 1],
            lines.starts[edit.end],
            new,
            (edit.start, edit.end),
            ending,
        )
    ]


def _find_characters(
    lines: Lines, edit: LineEdit, columns: tuple[int, int], new: str
) -> Span:
    """Return the characters from one column to another."""
    start = lines.starts[edit.start - 1] + columns[0] - 1
    end = lines.starts[edit.end - 1] + columns[1] - 1
    is_inside = start < lines.starts[edit.start]
    is_inside = is_inside and end < lines.starts[edit.end]
    if edit.end < edit.start or not is_inside or end < start:
        message = (
            f"columns {columns[0]}-{columns[1]}: not in lines {edit.start}-{edit.end}"
        )
        raise InvalidRange(message, start_line=edit.start, end_line=edit.end)
    return Span(start, end, new, (edit.start, edit.end))


def _find_text(lines: Lines, edit: TextEdit) -> list[Span]:
    # Without the end that split_lines added: old_text must not match what the file does
    # not hold.
    text = lines.text
    if not lines.ended:
        text = text[: -len(lines.ending)]
    old = edit.old
    places = _find_places(text, old, everywhere=edit.everywhere)
    if not places and "\n" in old:  # agents write LF, whatever the file has
        old = with_ending(edit.old, lines.ending)
        places = _find_places(text, old, everywhere=edit.everywhere)
    is_ambiguous = len(places) > 1 and not edit.everywhere
    if not places or is_ambiguous:
        raise _not_once(lines, edit, places)
    ending = lines.ending_at(lines.number_at(places[0]))
    if "\n" in old:  # it shows itself which ends are here
        ending = "\n"
        if "\r\n" in old:
            ending = "\r\n"
    new = with_ending(edit.new, ending)
    spans = []
    for at in places:
        first = lines.number_at(at)
        # The last character is left out: a text that ends in LF does not touch the line
        # after it.
        last_character = at + max(len(old) - 1, 0)
        last = first + lines.text.count("\n", at, last_character)
        spans.append(Span(at, at + len(old), new, (first, last)))
    return spans


def _find_places(text: str, old: str, *, everywhere: bool) -> list[int]:
    """Return the places a text is at: all, one after the other; or the first few, overlapping: two readings are two."""
    places: list[int] = []
    step = 1
    if everywhere:
        step = len(old)
    at = text.find(old)
    while at >= 0:
        places.append(at)
        if not everywhere and len(places) == _MOST_PLACES:
            break
        at = text.find(old, at + step)
    return places


def _not_once(lines: Lines, edit: TextEdit, places: Sequence[int]) -> Conflict:
    mismatch: dict[str, object] = {
        "field": "old_text",
        "expected": edit.old[:_MOST_QUOTED],
        "actual": None,
    }
    if places:
        where = [lines.number_at(at) for at in places]
        many = f"{len(places)}"
        if len(places) == _MOST_PLACES:
            many = f"at least {many}"
        guidance = "give more of the text around it, or set replace_all"
        problem = f"old_text occurs {many} times: {guidance}"
    else:
        problem = "old_text does not occur"
        guidance = "read the file again"
        # The lines that are its first line except for the space around it: the caller
        # may have read them otherwise.
        where = _find_like_first(lines, edit.old)
        if where:
            end = min(where[0] - 1 + count_lines(edit.old), lines.count)
            mismatch["actual"] = lines.text[
                lines.starts[where[0] - 1] : lines.starts[end]
            ][:_MOST_QUOTED]
            guidance = "lines and actual show what comes nearest: spaced, written or continued otherwise"
    mismatch |= {"occurrences": len(places), "lines": where}
    error = Conflict(problem, conflict={"mismatches": [mismatch]}, guidance=guidance)
    if places:
        error.data["now"] = quote_lines(lines, list(dict.fromkeys(where)))
    elif where:
        last = where[0] + max(count_lines(edit.old) - 1, 0)
        error.data["now"] = quote_lines(lines, range(where[0], last + 1))
    else:
        error.data["now"] = "without a line like its first"
    return error


def _find_like_first(lines: Lines, text: str) -> list[int]:
    """Return some lines that are a text's first one except for the space around it, else the one that is nearest."""
    first = text.strip().partition("\n")[0].rstrip()
    if not first:
        return []
    where: list[int] = []
    if first in lines.text:
        for number in range(1, lines.count + 1):
            if lines.line(number).strip() == first:
                where.append(number)
            if len(where) == _MOST_PLACES:
                return where
    if where:
        return where
    near = find_nearest_line(lines, first)
    if near:
        return [near]
    return []


class Mismatch(TypedDict):
    """One part of a precondition that does not hold."""

    field: str
    line: NotRequired[int]
    expected: str | bool | None
    actual: str | bool | None


@dataclass(frozen=True, slots=True)
class Precondition:
    """What a caller expects of a file; None: anything. Texts are lines without their ends, hashes of the raw bytes."""

    file_hash: str | None = None
    start_line_text: str | None = None
    end_line_text: str | None = None
    absent: bool | None = None
    staged_hash: str | None = None
    """The hash when the first chunk of a staged write arrived."""


def _is_hash(expected: str, actual: str | None) -> bool:
    """Return whether a file has the expected hash, which may be as read_code shows it to models: "#1a2b3c4d"."""
    shown = expected.lower().removeprefix("#")
    return len(shown) >= HASH_SHOWN and (actual or "").startswith(shown)


def find_mismatches(
    expected: Precondition, lines: Lines | None, file_hash: str | None, edit: Edit
) -> list[Mismatch]:
    """Return everything expected that does not hold; ``lines`` is None if there is no file."""
    wrong: list[Mismatch] = []
    if expected.absent is not None and expected.absent != (lines is None):
        wrong.append(
            {
                "field": "expected_absent",
                "expected": expected.absent,
                "actual": lines is None,
            }
        )
    if expected.file_hash is not None and not _is_hash(expected.file_hash, file_hash):
        wrong.append(
            {
                "field": "expected_file_hash",
                "expected": expected.file_hash,
                "actual": file_hash,
            }
        )
    if expected.staged_hash is not None and expected.staged_hash != file_hash:
        wrong.append(
            {
                "field": "file_hash_at_first_chunk",
                "expected": expected.staged_hash,
                "actual": file_hash,
            }
        )
    if isinstance(edit, LineEdit):
        for name, number, text in (
            ("expected_start_line_text", edit.start, expected.start_line_text),
            ("expected_end_line_text", edit.end, expected.end_line_text),
        ):
            is_there = lines is not None and 1 <= number <= lines.count
            actual = (
                without_end(lines.line(number))
                if lines is not None and is_there
                else None
            )
            if text is not None and actual != without_end(text):
                wrong.append(
                    {"field": name, "line": number, "expected": text, "actual": actual}
                )
    return wrong


def find_nearest_line(lines: Lines, text: str) -> int:
    """Return the number of the line most similar to a text, apart from the space around; 0: none is similar."""
    if lines.count > MOST_LINES_COMPARED:
        return 0
    texts = [lines.line(number).strip() for number in range(1, lines.count + 1)]
    nearest = process.extractOne(
        text[:_MOST_QUOTED], texts, scorer=fuzz.ratio, score_cutoff=NEAR_LINE
    )
    if nearest is None:
        return 0
    return int(nearest[2]) + 1


def show_lines(lines: Lines, edit: Edit, file_hash: str | None) -> str:
    """Return the lines that an edit is about as they are now, below the file's present hash."""
    lines_shown = [f"#{(file_hash or '')[:HASH_SHOWN]}"]
    if isinstance(edit, LineEdit):
        first = edit.start
        last = max(edit.start, edit.end)
    else:
        text = edit.old.strip("\n").split("\n", 1)[0].strip()
        first = 0
        if text:
            first = find_nearest_line(lines, text)
        last = first + max(count_lines(edit.old) - 1, 0)
    lines_shown.append(quote_lines(lines, range(max(first, 1), last + 1)))
    return "\n".join(filter(None, lines_shown))


def quote_lines(lines: Lines, numbers: Sequence[int]) -> str:
    """Return the first of some lines as they are now, each with its number; those that do not exist are left out."""
    quoted: list[str] = []
    for number in numbers:
        if number > lines.count:
            break
        if len(quoted) == MOST_LINES_SHOWN:
            quoted.append("…")
            break
        quoted.append(f"{number}:{without_end(lines.line(number))[:_MOST_QUOTED]}")
    return "\n".join(quoted)


def precondition_failed(path: bytes, wrong: list[Mismatch]) -> Conflict:
    """Return the error that lists every mismatch."""
    text = format_path(path)
    message = f"precondition failed: {text}: {', '.join(mismatch['field'] for mismatch in wrong)}"
    exists = any(
        mismatch["field"] == "expected_absent" and mismatch["expected"]
        for mismatch in wrong
    )
    guidance = (
        "the file exists: say which lines, or old_text; fs_write replaces it"
        if exists
        else "read the file again"
    )
    return Conflict(
        message,
        file_path=text,
        conflict={"mismatches": wrong},
        guidance=guidance,
    )
