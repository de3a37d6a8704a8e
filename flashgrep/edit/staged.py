"""A write too large for one call, gathered in chunks on disk; nothing is changed before the last one.

One folder a session in the folder ``staged`` of the project's state: a header, and one file a chunk. The file's hash is
taken with the first chunk and checked with the last, beside whatever the caller believes.
"""

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from flashgrep.edit.change import LineEdit
from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import shown, telling
from flashgrep.edit.precondition import Precondition
from flashgrep.edit.replace import temporary_name, write_all
from flashgrep.edit.write import Order, WriteResult, changes_of, check_size, load, write_file
from flashgrep.errors import Busy, Conflict, InvalidParams, TooLarge

_FOLDER = b"staged"
_HEADER = b"header"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


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
    belief: Precondition


def stage(editor: Editor, order: Order, chunk: Chunk) -> tuple[WriteResult, bytes | None]:
    """Store a chunk, or carry the entire write out with the last; returns the path that changed, if one did.

    Raises:
        Conflict: invalid_continuation_state: out of order, or for another target; and whatever write_file raises.
        InvalidParams: the session does not exist.
        TooLarge: the chunk, or all of them, are over the limit.
        Busy: too many staged writes.

    """
    if not _ID.fullmatch(chunk.session):
        raise InvalidParams("continuation_id: 1 to 64 of A-Z a-z 0-9 _ -", field="continuation_id")
    edit = order.edit
    if not isinstance(edit, LineEdit):
        raise InvalidParams("only a replacement of lines can come in chunks", field="old_text")
    check_size(editor, order.path, edit.replacement)
    with editor.staging, ExitStack() as opened:
        folder = editor.root.open_state(_FOLDER)
        opened.callback(os.close, folder)
        with telling(_FOLDER, "directory"):
            if chunk.index == 0:
                _begin(editor, folder, order, edit, chunk)
            return _go_on(editor, folder, order, edit, chunk)


def _begin(editor: Editor, folder: int, order: Order, edit: LineEdit, chunk: Chunk) -> None:
    """Check the target as it is now, and open the session anew."""
    _make_room(editor, folder, chunk.session)
    with editor.root.place(order.path, write=True) as place:
        loaded = load(editor, place)
        changes_of(loaded, order)  # a range or a belief that is wrong is told before more is sent
        belief = replace(order.belief, staged_hash=loaded.hash)
    os.mkdir(chunk.session, 0o700, dir_fd=folder)
    header = _Header(order.path.decode("latin-1"), edit.start, edit.end, belief)
    with _opened(folder, chunk.session) as session:
        _store(session, _HEADER, orjson.dumps(asdict(header)))


def _go_on(editor: Editor, folder: int, order: Order, edit: LineEdit, chunk: Chunk) -> tuple[WriteResult, bytes | None]:
    with _opened(folder, chunk.session) as session:
        header = _header(session)
        stored = _stored(session)
        _check_state(header, order, edit, chunk, len(stored))
        text = edit.replacement.encode()
        received = sum(os.stat(name, dir_fd=session).st_size for name in stored) + len(text)
        _check_total(editor, order.path, received)
        if not chunk.final:
            _store(session, str(chunk.index).encode(), text)
            return _progress(order, chunk, received), None
        whole = b"".join([*(_load(session, name) for name in stored), text]).decode()
    belief = (
        replace(order.belief, staged_hash=header.belief.staged_hash)
        if order.belief != Precondition()
        else header.belief
    )
    final = replace(order, edit=replace(edit, replacement=whole), belief=belief)
    result, path = write_file(editor, final, staged=True)
    result["continuation"] = {"cursor": None, "chunk_index": chunk.index, "completed": True}
    if not order.dry_run:
        _remove(folder, chunk.session)
    return result, path


def _check_state(header: _Header, order: Order, edit: LineEdit, chunk: Chunk, stored: int) -> None:
    expected: dict[str, Any] = {
        "chunk_index": stored,
        "file_path": shown(header.path.encode("latin-1")),
        "start_line": header.start,
        "end_line": header.end,
    }
    received = {
        "chunk_index": chunk.index,
        "file_path": shown(order.path),
        "start_line": edit.start,
        "end_line": edit.end,
    }
    if expected == received:
        return
    wrong = ", ".join(key for key in expected if expected[key] != received[key])
    message = f"chunk does not continue {chunk.session}: {wrong}"
    raise Conflict(message, reason="invalid_continuation_state", expected=expected, received=received)


def _check_total(editor: Editor, path: bytes, received: int) -> None:
    most = editor.limits.staged_bytes
    if received > most:
        message = f"staged write is {received} bytes, limit {most}: {shown(path)}"
        guidance = "write the file in several ranges"
        raise TooLarge(message, operation="write_code", observed_bytes=received, limit_bytes=most, guidance=guidance)


def _progress(order: Order, chunk: Chunk, received: int) -> WriteResult:
    return {
        "ok": True,
        "file_path": shown(order.path),
        "received_bytes": received,
        "continuation": {
            "cursor": {"continuation_id": chunk.session, "next_chunk_index": chunk.index + 1},
            "chunk_index": chunk.index,
            "completed": False,
        },
    }


def _make_room(editor: Editor, folder: int, session: str) -> None:
    """Drop this session's earlier try and those left alone too long; refuse when there are still too many."""
    _remove(folder, session)
    oldest = time.time() - editor.limits.staged_seconds
    kept = 0
    for name in _names(folder):
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
            _remove(folder, name)
        else:
            kept += 1
    if kept >= editor.limits.staged_sessions:
        raise Busy(f"{kept} staged writes are under way", limit=editor.limits.staged_sessions)


def _remove(folder: int, session: str) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(session, dir_fd=folder)


class _opened:  # noqa: N801 - reads as the verb it is
    """A session's folder, open for a while."""

    def __init__(self, folder: int, session: str) -> None:
        try:
            self._descriptor = os.open(session, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        except FileNotFoundError:
            message = f"no staged write {session}: restart with chunk_index=0"
            raise InvalidParams(message, field="continuation_id") from None

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)


def _header(session: int) -> _Header:
    try:
        fields = orjson.loads(_load(session, _HEADER))
        return _Header(fields["path"], fields["start"], fields["end"], Precondition(**fields["belief"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        raise InvalidParams("staged write is damaged: restart with chunk_index=0", field="continuation_id") from None


def _stored(session: int) -> list[bytes]:
    return sorted((name.encode() for name in _names(session) if name.isdecimal()), key=int)


def _names(folder: int) -> Sequence[str]:
    return os.listdir(folder)


def _store(session: int, name: bytes, data: bytes) -> None:
    """Store a file whole or not at all; a chunk that was cut short would end up in the caller's file."""
    temporary = temporary_name()
    descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=session)
    try:
        write_all(descriptor, data)
    finally:
        os.close(descriptor)
    os.rename(temporary, name, src_dir_fd=session, dst_dir_fd=session)


def _load(session: int, name: bytes) -> bytes:
    descriptor = os.open(name, _READ, dir_fd=session)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
