"""One file changed: read, believed, edited, replaced."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NotRequired

from typing_extensions import TypedDict

from flashgrep.edit.bad_bytes import restore
from flashgrep.edit.change import Edit, LineEdit, Lines, Span, applied, line_count, lines_of, spans
from flashgrep.edit.commit import Change, commit_one
from flashgrep.edit.diff import unified
from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import as_base64, is_shown_whole, missing, shown
from flashgrep.edit.hashing import digest
from flashgrep.edit.precondition import Precondition, conflict, mismatches
from flashgrep.edit.replace import Original, read_original
from flashgrep.edit.root import Place
from flashgrep.edit.text import Text, decode, decode_kept, show
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
class Loaded:
    """A file as it is, ready to be edited; the place stays open, and locked, until the edit is done."""

    place: Place
    original: Original
    text: Text
    lines: Lines
    hash: str | None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self.original.status is not None

    def data_after(self, changes: Sequence[Span]) -> bytes:
        """Return the file's bytes after these changes, in its own encoding."""
        return self.text.encode(applied(self.lines, changes))


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
        loaded = load(editor, place)
        changes = changes_of(loaded, order)
        data = loaded.data_after(changes)
        result = _result(loaded, order, changes, data)
        if order.dry_run:
            result["dry_run"] = True
            result["diff"], result["diff_truncated"] = preview(editor, loaded, data)
        elif data != loaded.original.data or not loaded.exists:
            commit_one(editor, Change(place, loaded.original, data))
        return result, place.path


def load(editor: Editor, place: Place) -> Loaded:
    """Read the file a place names; a missing one is empty, and says so."""
    original = read_original(place, editor.limits.edit_bytes)
    text = decode(original.data or b"")
    return Loaded(place, original, text, lines_of(text.text, text.kept), original.hash)


def changes_of(loaded: Loaded, order: Order) -> tuple[Span, ...]:
    """Return what an order replaces in a file, once all that is believed of it holds; a new file is taken as given."""
    if not loaded.exists and not order.belief.absent:
        raise missing(order.path)
    wrong = mismatches(order.belief, loaded.lines if loaded.exists else None, loaded.hash, order.edit)
    if wrong:
        raise conflict(order.path, wrong)
    if not loaded.exists:
        if not isinstance(order.edit, LineEdit):
            raise InvalidParams("a new file takes a replacement, not old_text", field="old_text")
        return (Span(0, 0, restore(loaded.text, 0, 0, order.edit.replacement), (1, 0)),)
    try:
        found = spans(loaded.lines, order.edit)
        return tuple(replace(each, new=restore(loaded.text, each.start, each.end, each.new)) for each in found)
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


def preview(editor: Editor, loaded: Loaded, data: bytes) -> tuple[str, bool]:
    """Return what would change as a unified diff, and whether it was cut at the budget of one answer."""
    after = show(decode_kept(data.removeprefix(loaded.text.bom), loaded.text.encoding))
    diff = unified(loaded.text.text, after, shown(loaded.place.path), created=not loaded.exists)
    return diff[: editor.limits.read_bytes], len(diff) > editor.limits.read_bytes


def _result(loaded: Loaded, order: Order, changes: Sequence[Span], data: bytes) -> WriteResult:
    result = WriteResult(
        ok=True,
        file_path=shown(loaded.place.path),
        start_line=changes[0].lines[0],
        end_line=changes[-1].lines[1],
        replaced_line_count=sum(span.lines[1] - span.lines[0] + 1 for span in changes),
        new_line_count=sum(_lines_after(loaded, order, span) for span in changes),
        file_hash_before=loaded.hash,
        file_hash_after=digest(data),
        created=not loaded.exists,
    )
    if not is_shown_whole(loaded.place.path):
        result["file_path_bytes"] = as_base64(loaded.place.path)
    if not isinstance(order.edit, LineEdit):
        result["occurrences"] = len(changes)
    return result


def _lines_after(loaded: Loaded, order: Order, span: Span) -> int:
    """Return how many lines stand where the touched ones stood."""
    if isinstance(order.edit, LineEdit):
        return line_count(order.edit.replacement)
    touched = span.lines[1] - span.lines[0] + 1
    return touched + span.new.count("\n") - loaded.lines.text.count("\n", span.start, span.end)
