"""What a caller believes of a file before it is written, and every point in which that is wrong."""

from dataclasses import dataclass
from typing import NotRequired

from typing_extensions import TypedDict

from flashgrep.edit.change import LineEdit, Lines
from flashgrep.edit.faults import shown
from flashgrep.edit.text import without_end
from flashgrep.errors import Conflict


class Mismatch(TypedDict):
    """One belief that does not hold."""

    field: str
    line: NotRequired[int]
    expected: str | bool | None
    actual: str | bool | None


@dataclass(frozen=True, slots=True)
class Precondition:
    """Beliefs; None: none. Texts are lines without their ends, the hash is of the file's raw bytes."""

    file_hash: str | None = None
    start_line_text: str | None = None
    end_line_text: str | None = None
    absent: bool | None = None
    staged_hash: str | None = None
    """The hash when the first chunk of a staged write arrived."""


def mismatches(belief: Precondition, lines: Lines | None, file_hash: str | None, edit: object) -> list[Mismatch]:
    """Return every belief that does not hold; ``lines`` is None where there is no file."""
    wrong: list[Mismatch] = []
    if belief.absent is not None and belief.absent != (lines is None):
        wrong.append({"field": "expected_absent", "expected": belief.absent, "actual": lines is None})
    if belief.file_hash is not None and belief.file_hash.lower() != file_hash:
        wrong.append({"field": "expected_file_hash", "expected": belief.file_hash, "actual": file_hash})
    if belief.staged_hash is not None and belief.staged_hash != file_hash:
        wrong.append({"field": "file_hash_at_first_chunk", "expected": belief.staged_hash, "actual": file_hash})
    if isinstance(edit, LineEdit):
        wrong += _line_mismatch("expected_start_line_text", belief.start_line_text, lines, edit.start)
        wrong += _line_mismatch("expected_end_line_text", belief.end_line_text, lines, edit.end)
    return wrong


def conflict(path: bytes, wrong: list[Mismatch]) -> Conflict:
    """Return the error that shows every mismatch."""
    message = f"precondition failed: {shown(path)}: {', '.join(each['field'] for each in wrong)}"
    return Conflict(message, file_path=shown(path), conflict={"mismatches": wrong})


def _line_mismatch(name: str, expected: str | None, lines: Lines | None, number: int) -> list[Mismatch]:
    if expected is None:
        return []
    there = lines is not None and 1 <= number <= lines.count
    actual = without_end(lines.line(number)) if lines is not None and there else None
    if actual == without_end(expected):
        return []
    return [{"field": name, "line": number, "expected": expected, "actual": actual}]
