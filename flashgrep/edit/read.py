"""A range of lines within a budget, and where to go on: following the continuation rebuilds the file exactly."""

import codecs
import os
from dataclasses import dataclass
from typing import NotRequired

import numpy as np
from typing_extensions import TypedDict

from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import as_base64, is_shown_whole, shown
from flashgrep.edit.hashing import digest_of
from flashgrep.edit.lines import Source, Whole, ends_of
from flashgrep.edit.text import Encoding, LineEnding, count_lone, decode_kept, encode_kept, line_ending, show
from flashgrep.errors import InvalidParams, InvalidRange

CHARACTERS_PER_TOKEN = 4  # the usual rule of thumb for code; no tokenizer is exact for every model
_LONGEST_CHARACTER = 4  # bytes, in UTF-8 and UTF-16 alike


class Cursor(TypedDict):
    """What to pass back for the rest."""

    file_path: str
    file_path_bytes: NotRequired[str]
    continuation_start_line: int
    continuation_start_byte: NotRequired[int]
    end_line: NotRequired[int]


class Continuation(TypedDict):
    """Where the rest begins (no cursor: there is none), and which chunk this was."""

    cursor: Cursor | None
    chunk_index: int
    completed: bool


class AppliedLimits(TypedDict):
    """The budgets in force and what this answer used of them."""

    max_lines: int | None
    max_bytes: int
    max_tokens: int | None
    server_max_bytes: int
    consumed_lines: int
    consumed_bytes: int
    consumed_tokens: int


class SliceResult(TypedDict):
    """Lines of a file: ``content`` keeps their line ends, and encodes back to the file's very bytes.

    ``encoding`` is the file's (told by its first megabyte, for one too large to be read at once); "latin-1" shows bytes
    that are no text we know. ``invalid_bytes``: so many U+FFFD of the content stand for a byte (or, in UTF-16, two)
    that is no text; writing them back keeps the bytes.
    ``cut``: the content begins or ends inside a line, at the byte columns given; ``continuation`` goes on there.
    """

    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int
    content: str
    truncated: bool
    continuation_start_line: int | None
    continuation: Continuation
    applied_limits: AppliedLimits
    encoding: Encoding
    bom: bool
    line_ending: LineEnding
    file_hash: str | None
    file_size: int
    invalid_bytes: NotRequired[int]
    cut: NotRequired[bool]
    start_byte_column: NotRequired[int]
    end_byte_column: NotRequired[int]
    notes: NotRequired[list[str]]
    mode: NotRequired[str]
    total_lines_available: NotRequired[int | None]
    symbol_name: NotRequired[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A range to read; lines from 1, ``end_line`` None for the end of the file, ``tail`` for the last so many lines."""

    start_line: int = 1
    end_line: int | None = None
    start_byte: int | None = None
    tail: int | None = None
    max_lines: int | None = None
    max_bytes: int | None = None
    max_tokens: int | None = None
    chunk_index: int = 0
    with_hash: bool | None = None
    with_total: bool = False
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class _Cut:
    """What was taken: its bytes' length, its text, how many lines it touches, and whether it ends inside a line."""

    length: int
    kept: str
    lines: int
    inside: bool


def read_slice(editor: Editor, path: bytes, ask: Ask) -> SliceResult:
    """Return lines of a file.

    Raises:
        NotFound: file_not_found.
        InvalidRange: the range starts past the end, or ends before it starts.
        Forbidden: outside_root, permission_denied.

    """
    descriptor, status, real = editor.root.open_file(path)
    try:
        source = _source(editor, descriptor, status, ask)
        start, end = _range(source, ask, path)
        offset = _offset(source, start, ask, path)
        taken = _take(source, offset, _wanted(start, end), _budget(editor, ask))
        result = _result(editor, real, source, (start, end, offset), taken, ask)
        _add_hash(editor, result, descriptor, source, ask)
    finally:
        os.close(descriptor)
    return result


def read_all(descriptor: int, size: int) -> bytes:
    """Return everything in an open file, however it grew meanwhile."""
    parts, offset = [], 0
    while part := os.pread(descriptor, max(size - offset, 0) + 1, offset):
        parts.append(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _source(editor: Editor, descriptor: int, status: os.stat_result, ask: Ask) -> Source:
    if status.st_size <= editor.limits.whole_bytes:
        return editor.wholes.get(status, lambda: read_all(descriptor, status.st_size))
    return editor.indexes.source(descriptor, status, ask.deadline)


def _range(source: Source, ask: Ask, path: bytes) -> tuple[int, int | None]:
    if ask.end_line is not None and ask.end_line < ask.start_line:
        raise _bad_range(f"end_line {ask.end_line} is before start_line {ask.start_line}", source, path)
    if ask.tail is None:
        return ask.start_line, ask.end_line
    total = source.count()
    return max(1, total - ask.tail + 1), None


def _offset(source: Source, start: int, ask: Ask, path: bytes) -> int:
    offset = source.start_of(start)
    if offset is None:
        raise _bad_range(f"start_line {start} is past the end", source, path)
    if ask.start_byte is None:
        return offset
    if not offset <= ask.start_byte < source.size:
        raise _bad_range(f"continuation_start_byte {ask.start_byte} is not in line {start}", source, path)
    return ask.start_byte


def _bad_range(problem: str, source: Source, path: bytes) -> InvalidRange:
    return InvalidRange(f"{problem}: {shown(path)}", file_path=shown(path), total_lines=source.total())


@dataclass(frozen=True, slots=True)
class _Budget:
    max_lines: int | None
    max_bytes: int
    max_tokens: int | None


def _budget(editor: Editor, ask: Ask) -> _Budget:
    most = editor.limits.read_bytes
    if ask.max_bytes is not None and ask.max_bytes > most:
        raise InvalidParams(f"max_bytes {ask.max_bytes} is over {most}", field="max_bytes", limit_bytes=most)
    return _Budget(ask.max_lines, ask.max_bytes or most, ask.max_tokens)


def _wanted(start: int, end: int | None) -> int | None:
    return None if end is None else end - start + 1


def _take(source: Source, offset: int, wanted: int | None, budget: _Budget) -> _Cut:
    """Take whole lines within the budget, or, if the first is over it, as much of that as goes."""
    room = budget.max_bytes
    if budget.max_tokens is not None:
        room = min(room, budget.max_tokens * CHARACTERS_PER_TOKEN * _LONGEST_CHARACTER)
    data = source.read(offset, max(room, _LONGEST_CHARACTER))
    at_end = offset + len(data) >= source.size
    ends = ends_of(data, source.encoding)
    if at_end and len(data) and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))  # the last line, which has no end
    lines = min((most for most in (wanted, budget.max_lines) if most is not None), default=len(ends))
    lines = min(lines, int(ends.searchsorted(room, side="right")))
    if not data:
        return _Cut(0, "", 0, inside=False)
    if lines == 0:
        return _window(source, data, room, budget.max_tokens)
    length = int(ends[lines - 1])
    kept = decode_kept(data[:length], source.encoding)
    if budget.max_tokens is None or len(kept) <= (most := budget.max_tokens * CHARACTERS_PER_TOKEN):
        return _Cut(length, kept, lines, inside=False)
    end = kept.rfind("\n", 0, most) + 1
    kept = kept[: end or most]
    return _Cut(len(encode_kept(kept, source.encoding)), kept, kept.count("\n") or 1, inside=end == 0)


def _window(source: Source, data: bytes, room: int, max_tokens: int | None) -> _Cut:
    """Take what goes of a line over the budget: whole characters, one at least."""
    kept = _characters(source, data[:room]) or _characters(source, data[:_LONGEST_CHARACTER])[:1]
    if not kept:  # the file ends inside a character
        kept = decode_kept(data, source.encoding)
    if max_tokens is not None:
        kept = kept[: max_tokens * CHARACTERS_PER_TOKEN]
    length = min(len(encode_kept(kept, source.encoding)), len(data))  # an odd byte of UTF-16 is shown as a character
    return _Cut(length, kept, 1, inside=not kept.endswith("\n"))


def _characters(source: Source, data: bytes) -> str:
    """Decode all that is whole at the start of the data."""
    bad = "surrogatepass" if source.encoding.startswith("utf-16") else "surrogateescape"
    return codecs.getincrementaldecoder(source.encoding)(bad).decode(data)


def _result(
    editor: Editor, path: bytes, source: Source, at: tuple[int, int | None, int], cut: _Cut, ask: Ask
) -> SliceResult:
    start, end, offset = at
    stop = offset + cut.length
    last = start + cut.lines - 1
    rest = stop < source.size and (cut.inside or end is None or last < end)
    onward = (last if cut.inside else last + 1) if rest else None
    text = show(cut.kept)
    ending = source.line_ending if isinstance(source, Whole) else line_ending(text)
    result = SliceResult(
        file_path=shown(path),
        start_line=start,
        end_line=last,
        content=text,
        truncated=rest,
        continuation_start_line=onward,
        continuation=_continuation(path, (onward, stop if cut.inside else None, end), ask),
        applied_limits=_applied(editor, cut, ask),
        encoding=source.encoding,
        bom=bool(source.bom),
        line_ending=ending,
        file_hash=None,
        file_size=source.size,
    )
    if text is not cut.kept:
        result["invalid_bytes"] = count_lone(cut.kept)
    if not is_shown_whole(path):
        result["file_path_bytes"] = as_base64(path)
    if ask.start_byte is not None or (cut.inside and rest):
        line_start = source.start_of(start) or 0
        result["cut"] = True
        result["start_byte_column"], result["end_byte_column"] = offset - line_start + 1, stop - line_start
    if ask.with_total:
        counted = source.size <= editor.limits.count_bytes
        result["total_lines_available"] = source.count() if counted else source.total()
    return result


def _continuation(path: bytes, onward: tuple[int | None, int | None, int | None], ask: Ask) -> Continuation:
    line, byte, end = onward
    if line is None:
        return {"cursor": None, "chunk_index": ask.chunk_index, "completed": True}
    cursor = Cursor(file_path=shown(path), continuation_start_line=line)
    if not is_shown_whole(path):
        cursor["file_path_bytes"] = as_base64(path)
    if byte is not None:
        cursor["continuation_start_byte"] = byte
    if end is not None:
        cursor["end_line"] = end
    return {"cursor": cursor, "chunk_index": ask.chunk_index, "completed": False}


def _applied(editor: Editor, cut: _Cut, ask: Ask) -> AppliedLimits:
    return {
        "max_lines": ask.max_lines,
        "max_bytes": ask.max_bytes or editor.limits.read_bytes,
        "max_tokens": ask.max_tokens,
        "server_max_bytes": editor.limits.read_bytes,
        "consumed_lines": cut.lines,
        "consumed_bytes": cut.length,
        "consumed_tokens": -(-len(cut.kept) // CHARACTERS_PER_TOKEN),
    }


def _add_hash(editor: Editor, result: SliceResult, descriptor: int, source: Source, ask: Ask) -> None:
    most = editor.limits.hash_bytes
    if ask.with_hash is False:
        return
    if ask.with_hash is None and source.size > most:
        result["notes"] = [f"file_hash left out: the file is over {most} bytes; ask with include_hash"]
        return
    result["file_hash"] = source.hash if isinstance(source, Whole) else digest_of(descriptor, ask.deadline)
