"""One file changed: read, checked against what the caller expects, edited, replaced.

A write too large for one call is staged: its chunks are gathered on disk, and nothing is changed before the last one.
A staged write is a folder in the folder ``staged`` of the project's state: a header, and one file a chunk. The target's
hash is taken with the first chunk and checked with the last, besides whatever the caller expects.
"""

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import NotRequired

import orjson
from typing_extensions import TypedDict

from flashgrep.base.errors import (
    Busy,
    Conflict,
    FlashgrepError,
    InvalidParams,
    TooLarge,
)
from flashgrep.files.editor import Editor
from flashgrep.files.encoding import (
    DecodedText,
    decode,
    decode_lossless,
    replace_lone,
    restore_bad_bytes,
)
from flashgrep.files.openat import FILE, LISTING, Descriptor
from flashgrep.files.root import Place
from flashgrep.files.system import (
    CREATE,
    digest,
    encode_path,
    format_path,
    missing,
    temporary_name,
    translate_errors,
    write_all,
)
from flashgrep.parts.edit.edits import (
    Edit,
    LineEdit,
    Lines,
    Precondition,
    Span,
    apply_spans,
    count_lines,
    find_mismatches,
    find_spans,
    precondition_failed,
    show_lines,
    split_lines,
)
from flashgrep.parts.edit.line_diff import format_diff
from flashgrep.parts.edit.replace import Change, Original, commit_one, read_original
from flashgrep.parts.edit.syntax_check import SyntaxCheck, SyntaxReport

_FOLDER = b"staged"
_HEADER = b"header"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What a caller wants done to one file."""

    path: bytes
    edit: Edit
    expected: Precondition = field(default_factory=Precondition)
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


class WriteResult(SyntaxReport):
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
class LoadedFile:
    """A file as it is, ready to be edited; the place stays open, and locked, until the edit is done."""

    place: Place
    original: Original
    text: DecodedText
    lines: Lines
    hash: str | None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self.original.status is not None

    def encode_with(self, spans: Sequence[Span]) -> bytes:
        """Return the file's bytes after these changes, in its own encoding."""
        return self.text.encode(apply_spans(self.lines, spans))

    def preview(self, data: bytes, most: int) -> tuple[str, bool]:
        """Return the change to these bytes as a unified diff of at most ``most`` characters; whether it was cut."""
        after = replace_lone(
            decode_lossless(data.removeprefix(self.text.bom), self.text.encoding)
        )
        diff = format_diff(
            self.text.text, after, format_path(self.place.path), created=not self.exists
        )
        return diff[:most], len(diff) > most


def load_file(editor: Editor, place: Place) -> LoadedFile:
    """Read the file a place names; a missing one is empty, and says so."""
    original = read_original(place, editor.limits.edit_bytes)
    text = decode(original.data or b"")
    return LoadedFile(place, original, text, split_lines(text), original.hash)


def resolve_edit(loaded: LoadedFile, request: WriteRequest) -> tuple[Span, ...]:
    """Return what a request replaces in a file, once all that is expected of it holds."""
    if not loaded.exists and not request.expected.absent:
        raise missing(request.path)
    wrong = find_mismatches(
        request.expected,
        loaded.lines if loaded.exists else None,
        loaded.hash,
        request.edit,
    )
    if wrong:
        error = precondition_failed(request.path, wrong)
        if loaded.exists and not request.expected.absent:
            error.data["now"] = show_lines(loaded.lines, request.edit, loaded.hash)
        raise error
    if not loaded.exists:
        if not isinstance(request.edit, LineEdit):
            raise InvalidParams(
                "a new file takes a replacement, not old_text", field="old_text"
            )
        return (
            Span(
                0,
                0,
                restore_bad_bytes(loaded.text, 0, 0, request.edit.replacement),
                (1, 0),
            ),
        )
    try:
        return tuple(
            replace(
                span, new=restore_bad_bytes(loaded.text, span.start, span.end, span.new)
            )
            for span in find_spans(loaded.lines, request.edit)
        )
    except FlashgrepError as error:
        text = format_path(request.path)
        error.message = f"{text}: {error.message}"
        error.data["file_path"] = text
        raise


def check_size(
    editor: Editor, request: WriteRequest, operation: str = "write_code"
) -> None:
    """Refuse new text over the limit of one call."""
    edit = request.edit
    if isinstance(edit, LineEdit):
        text = edit.replacement
    else:
        text = edit.new
    observed = len(text.encode("utf-8", "surrogatepass"))
    most = editor.limits.write_bytes
    if observed > most:
        shown_text = format_path(request.path)
        raise TooLarge(
            f"replacement is {observed} bytes, limit {most}: {shown_text}",
            operation=operation,
            file_path=shown_text,
            observed_bytes=observed,
            limit_bytes=most,
            guidance="send it in chunks: continuation_id, chunk_index from 0, is_final_chunk with the last",
        )


def write_file(
    editor: Editor,
    request: WriteRequest,
    *,
    staged: bool = False,
    check: SyntaxCheck | None = None,
) -> tuple[WriteResult, bytes]:
    """Carry out one request; returns the result and the path that changed, links resolved.

    A new file's folders are made with it.

    Raises:
        Conflict: a precondition does not hold, or the file changed while it was edited.
        NotFound: the file is missing and was not expected to be.
        InvalidRange: lines that do not exist.
        TooLarge: the new text, or the file, is over its limit.
        Forbidden: outside_root, protected_path, permission_denied, read_only.

    """
    if not staged:
        check_size(editor, request)
    is_new = (
        bool(request.expected.absent)
        and isinstance(request.edit, LineEdit)
        and request.edit.end == 0
    )
    parents = is_new and not request.dry_run
    with (
        editor.root.place(request.path, write=True, parents=parents) as place,
        editor.locks.hold([place]),
    ):
        loaded = load_file(editor, place)
        spans = resolve_edit(loaded, request)
        data = loaded.encode_with(spans)
        edit = request.edit
        text = loaded.lines.text
        replaced = 0
        for span in spans:
            first, last = span.lines
            replaced += last - first + 1
        if isinstance(edit, LineEdit) and edit.columns is None:
            new_count = count_lines(edit.replacement)
        else:  # the lines touched, with the line ends that came and went inside them
            new_count = replaced + sum(
                span.new.count("\n") - text.count("\n", span.start, span.end)
                for span in spans
            )
        result = WriteResult(
            ok=True,
            file_path=format_path(place.path),
            start_line=spans[0].lines[0],
            end_line=spans[-1].lines[1],
            replaced_line_count=replaced,
            new_line_count=new_count,
            file_hash_before=loaded.hash,
            file_hash_after=digest(data),
            created=not loaded.exists,
        )
        if (in_base64 := encode_path(place.path)) is not None:
            result["file_path_bytes"] = in_base64
        if not isinstance(edit, LineEdit):
            result["occurrences"] = len(spans)
        if request.dry_run:
            result["dry_run"] = True
            result["diff"], result["diff_truncated"] = loaded.preview(
                data, editor.limits.read_bytes
            )
        elif data != loaded.original.data or not loaded.exists:
            commit_one(editor, Change(place, loaded.original, data))
            if check is not None:
                check.add(place.path, loaded.original.data, data)
        return result, place.path


@dataclass(frozen=True, slots=True)
class Chunk:
    """Which part of a staged write this is; indexes from 0."""

    session: str
    index: int
    final: bool


@dataclass(frozen=True, slots=True)
class _Header:
    """What the first chunk said, to which the others must keep."""

    path: str
    start: int
    end: int
    expected: Precondition


def stage_chunk(
    editor: Editor,
    request: WriteRequest,
    chunk: Chunk,
    check: SyntaxCheck | None = None,
) -> tuple[WriteResult, bytes | None]:
    """Store a chunk, or carry the entire write out with the last; returns the path that changed, if one did.

    Raises:
        Conflict: invalid_continuation_state: out of order, or for another target; and whatever write_file raises.
        InvalidParams: the session does not exist.
        TooLarge: the chunk, or all of them, are over the limit.
        Busy: too many staged writes.

    """
    if not _ID.fullmatch(chunk.session):
        raise InvalidParams(
            "continuation_id: 1 to 64 of A-Z a-z 0-9 _ -", field="continuation_id"
        )
    edit = request.edit
    if not isinstance(edit, LineEdit):
        raise InvalidParams(
            "only a replacement of lines can come in chunks", field="old_text"
        )
    check_size(editor, request)
    with editor.staging, ExitStack() as stack:
        folder = editor.root.open_state(_FOLDER)
        stack.callback(os.close, folder)
        stack.enter_context(translate_errors(_FOLDER, "directory"))
        if chunk.index == 0:
            _begin(editor, folder, request, edit, chunk.session)
        session = _open_session(folder, chunk.session)
        stack.callback(os.close, session)
        try:
            fields = orjson.loads(_load(session, _HEADER))
            header = _Header(
                fields["path"],
                fields["start"],
                fields["end"],
                Precondition(**fields["expected"]),
            )
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            message = "staged write is damaged: restart with chunk_index=0"
            raise InvalidParams(message, field="continuation_id") from None
        # Chunks are stored by their index, and none out of order: their number is the
        # index of the next one.
        stored = sorted(
            (name.encode() for name in os.listdir(session) if name.isdecimal()), key=int
        )
        _check_state(header, request, edit, chunk, len(stored))
        text = edit.replacement.encode()
        received = sum(os.stat(name, dir_fd=session).st_size for name in stored) + len(
            text
        )
        if received > editor.limits.staged_bytes:
            raise TooLarge(
                f"staged write is {received} bytes, limit {editor.limits.staged_bytes}: {format_path(request.path)}",
                operation="write_code",
                observed_bytes=received,
                limit_bytes=editor.limits.staged_bytes,
                guidance="write the file in several ranges",
            )
        if not chunk.final:
            _store(session, str(chunk.index).encode(), text)
            cursor = StagedCursor(
                continuation_id=chunk.session, next_chunk_index=chunk.index + 1
            )
            progress = WriteResult(
                ok=True, file_path=format_path(request.path), received_bytes=received
            )
            progress["continuation"] = {
                "cursor": cursor,
                "chunk_index": chunk.index,
                "completed": False,
            }
            return progress, None
        pieces = [_load(session, name) for name in stored]
        whole = b"".join([*pieces, text]).decode()
        # What the last chunk expects replaces what the first did, except that the file
        # is still the one seen then.
        expected = header.expected
        if request.expected != Precondition():
            expected = replace(
                request.expected, staged_hash=header.expected.staged_hash
            )
        final = replace(
            request, edit=replace(edit, replacement=whole), expected=expected
        )
        result, path = write_file(editor, final, staged=True, check=check)
        result["continuation"] = {
            "cursor": None,
            "chunk_index": chunk.index,
            "completed": True,
        }
        if not request.dry_run:  # after one, the last chunk may come again
            _remove_session(folder, chunk.session)
        return result, path


def _begin(
    editor: Editor, folder: int, request: WriteRequest, edit: LineEdit, session: str
) -> None:
    """Check the target as it is now, and open the session again."""
    # Drop this session's earlier try and those left alone too long.
    _remove_session(folder, session)
    oldest = time.time() - editor.limits.staged_seconds
    under_way = 0
    for name in os.listdir(folder):
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
            _remove_session(folder, name)
        else:
            under_way += 1
    if under_way >= editor.limits.staged_sessions:
        raise Busy(
            f"{under_way} staged writes are under way",
            limit=editor.limits.staged_sessions,
        )
    with editor.root.place(request.path, write=True) as place:
        loaded = load_file(editor, place)
        resolve_edit(
            loaded, request
        )  # a wrong range or expectation is an error before more is sent
        expected = replace(request.expected, staged_hash=loaded.hash)
    os.mkdir(session, 0o700, dir_fd=folder)
    header = _Header(request.path.decode("latin-1"), edit.start, edit.end, expected)
    with Descriptor(_open_session(folder, session)) as descriptor:
        _store(descriptor, _HEADER, orjson.dumps(asdict(header)))


def _check_state(
    header: _Header, request: WriteRequest, edit: LineEdit, chunk: Chunk, stored: int
) -> None:
    """Refuse a chunk that is not the next one of this write."""
    expected: dict[str, object] = {
        "chunk_index": stored,
        "file_path": format_path(header.path.encode("latin-1")),
        "start_line": header.start,
        "end_line": header.end,
    }
    received: dict[str, object] = {
        "chunk_index": chunk.index,
        "file_path": format_path(request.path),
        "start_line": edit.start,
        "end_line": edit.end,
    }
    if expected != received:
        wrong = [key for key in expected if expected[key] != received[key]]
        message = f"chunk does not continue {chunk.session}: {', '.join(wrong)}"
        raise Conflict(
            message,
            reason="invalid_continuation_state",
            expected=expected,
            received=received,
        )


def _open_session(folder: int, session: str) -> int:
    try:
        return os.open(session, LISTING, dir_fd=folder)
    except FileNotFoundError:
        message = f"no staged write {session}: restart with chunk_index=0"
        raise InvalidParams(message, field="continuation_id") from None


def _remove_session(folder: int, session: str) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(session, dir_fd=folder)


def _store(session: int, name: bytes, data: bytes) -> None:
    """Store a file whole or not at all; a chunk that was cut short would end up in the caller's file."""
    temporary = temporary_name()
    with Descriptor(os.open(temporary, CREATE, 0o600, dir_fd=session)) as descriptor:
        write_all(descriptor, data)
    os.rename(temporary, name, src_dir_fd=session, dst_dir_fd=session)


def _load(session: int, name: bytes) -> bytes:
    with os.fdopen(os.open(name, FILE, dir_fd=session), "rb") as file:
        return file.read()
