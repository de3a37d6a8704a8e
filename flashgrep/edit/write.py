"""One file changed: read, believed, edited, replaced."""

from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from flashgrep.edit.change import Edit, LineEdit, Lines, Span, applied, line_count, lines_of, spans
from flashgrep.edit.commit import Change, commit_one
from flashgrep.edit.diff import unified
from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import as_base64, is_shown_whole, missing, shown
from flashgrep.edit.hashing import digest
from flashgrep.edit.precondition import Precondition, conflict, mismatches
from flashgrep.edit.replace import Original, read_original
from flashgrep.edit.root import Place
from flashgrep.edit.text import Text, decode
from flashgrep.errors import FlashgrepError, InvalidParams, TooLarge


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller wants done to one file."""

    path: bytes
    edit: Edit
    belief: Precondition = field(default_factory=Precondition)
    dry_run: bool = False


class StagedCursor(TypedDict):
    """What the next chunk is."""

    continuation_id: str
    next_chunk_index: int


class StagedContinuation(TypedDict):
    """How far a staged write is (no cursor: done)."""

    cursor: StagedCursor | None
    chunk_index: int
    completed: bool


class WriteResult(TypedDict):
    """What was done to one file, or would be (``dry_run``), or what of it arrived (a chunk that is not the last).

    Lines are the original's; hashes are SHA-256 of the raw bytes.
    """

    ok: bool
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: NotRequired[int]
    end_line: NotRequired[int]
    replaced_line_count: NotRequired[int]
    new_line_count: NotRequired[int]
    file_hash_before: NotRequired[str | None]
    file_hash_after: NotRequired[str]
    created: NotRequired[bool]
    occurrences: NotRequired[int]
    dry_run: NotRequired[bool]
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]
    continuation: NotRequired[StagedContinuation]
    received_bytes: NotRequired[int]


@dataclass(frozen=True, slots=True)
class Draft:
    """An order against the file as it is: its text, lines, and what would change."""

    order: Order
    place: Place
    original: Original
    text: Text
    lines: Lines
    changes: tuple[Span, ...]

    def new_data(self) -> bytes:
        """Return the file's new bytes."""
        return new_data(self.text, self.lines, self.changes)


def new_data(text: Text, lines: Lines, changes: tuple[Span, ...]) -> bytes:
    """Return a file's bytes after these changes, in its own encoding."""
    return text.encode(applied(lines, changes))


def write_file(editor: Editor, order: Order, *, staged: bool = False) -> tuple[WriteResult, bytes]:
    """Carry out one order; returns the result and the path that changed, links resolved.

    Raises:
        Conflict: a precondition does not hold, or the file changed while it was edited.
        NotFound: the file is missing and was not expected to be.
        InvalidRange: lines that do not exist.
        TooLarge: the new text, or the file, is over its limit.
        Forbidden: outside_root, protected_path, permission_denied, read_only.

    """
    if not staged:
        check_size(editor, order.path, new_text(order.edit))
    with editor.root.place(order.path, write=True) as place, editor.locks.hold([place]):
        found = draft(editor, place, order)
        data = found.new_data()
        result = result_of(found, data)
        if order.dry_run:
            add_diff(editor, result, found, data)
        elif data != found.original.data or found.original.status is None:
            commit_one(editor, Change(place, found.original, data))
        return result, place.path


def draft(editor: Editor, place: Place, order: Order) -> Draft:
    """Read the file and find what the order would change; nothing is written."""
    original = read_original(place, editor.limits.edit_bytes)
    there = original.status is not None
    if not there and not order.belief.absent:
        raise missing(order.path)
    text = decode(original.data)
    lines = lines_of(text.text)
    wrong = mismatches(order.belief, lines if there else None, original.hash, order.edit)
    if wrong:
        raise conflict(order.path, wrong)
    return Draft(order, place, original, text, lines, changes_of(original, lines, order))


def changes_of(original: Original, lines: Lines, order: Order) -> tuple[Span, ...]:
    """Return what an order replaces in a file; a new file gets its text as it is."""
    if original.status is None:
        if not isinstance(order.edit, LineEdit):
            raise InvalidParams("a new file takes a replacement, not old_text", field="old_text")
        return (Span(0, 0, order.edit.replacement, (1, 0)),)
    try:
        return tuple(spans(lines, order.edit))
    except FlashgrepError as error:
        error.message = f"{shown(order.path)}: {error.message}"
        error.data["file_path"] = shown(order.path)
        raise


def new_text(edit: Edit) -> str:
    """Return the text an edit brings."""
    return edit.replacement if isinstance(edit, LineEdit) else edit.new


def check_size(editor: Editor, path: bytes, text: str, operation: str = "write_code") -> None:
    """Refuse new text over the limit of one call."""
    observed, most = len(text.encode("utf-8", "surrogatepass")), editor.limits.write_bytes
    if observed > most:
        raise TooLarge(
            f"replacement is {observed} bytes, limit {most}: {shown(path)}",
            operation=operation,
            file_path=shown(path),
            observed_bytes=observed,
            limit_bytes=most,
            guidance="send it in chunks: continuation_id, chunk_index from 0, is_final_chunk with the last",
        )


def result_of(found: Draft, data: bytes) -> WriteResult:
    """Return the answer for a draft whose new bytes are known."""
    first, last = found.changes[0].lines[0], found.changes[-1].lines[1]
    removed = sum(span.lines[1] - span.lines[0] + 1 for span in found.changes)
    added = sum(_lines_after(found, span) for span in found.changes)
    result = WriteResult(
        ok=True,
        file_path=shown(found.place.path),
        start_line=first,
        end_line=last,
        replaced_line_count=removed,
        new_line_count=added,
        file_hash_before=found.original.hash,
        file_hash_after=digest(data),
        created=found.original.status is None,
    )
    if not is_shown_whole(found.place.path):
        result["file_path_bytes"] = as_base64(found.place.path)
    if not isinstance(found.order.edit, LineEdit):
        result["occurrences"] = len(found.changes)
    return result


def _lines_after(found: Draft, span: Span) -> int:
    """Return how many lines stand where the touched ones stood."""
    if isinstance(found.order.edit, LineEdit):
        return line_count(found.order.edit.replacement)
    touched = span.lines[1] - span.lines[0] + 1
    return touched + span.new.count("\n") - found.lines.text.count("\n", span.start, span.end)


def add_diff(editor: Editor, result: WriteResult, found: Draft, data: bytes) -> None:
    """Add what would change, up to the budget of one answer."""
    after = data.removeprefix(found.text.bom).decode(found.text.encoding)
    created = found.original.status is None
    diff = unified(found.text.text, after, shown(found.place.path), created=created)
    result["dry_run"] = True
    result["diff"] = diff[: editor.limits.read_bytes]
    result["diff_truncated"] = len(diff) > editor.limits.read_bytes
