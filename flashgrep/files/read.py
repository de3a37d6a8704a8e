"""A range of lines within a budget, and where to continue: following the continuation rebuilds the file exactly."""

import codecs
from dataclasses import dataclass
from typing import Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from flashgrep.base.errors import InvalidParams, InvalidRange
from flashgrep.files.editor import Editor
from flashgrep.files.encoding import (
    UTF_16,
    Encoding,
    LineEnding,
    count_lone,
    decode_lossless,
    detect_line_ending,
    encode_lossless,
    replace_lone,
)
from flashgrep.files.lines import LargeFile, SmallFile, find_line_ends, make_index
from flashgrep.files.openat import Descriptor
from flashgrep.files.system import digest_of, encode_path, format_path, read_all

CHARACTERS_PER_TOKEN = (
    4  # the usual rule of thumb for code; no tokenizer is exact for every model
)
_LONGEST_CHARACTER = 4  # bytes, in UTF-8 and UTF-16 alike

Source = SmallFile | LargeFile


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


class MissingTarget(TypedDict):
    """A target that could not be read, and why."""

    target: str
    error: dict[str, Any]


class SliceResult(TypedDict):
    """Lines of a file: ``content`` keeps their line ends, and encodes back to the file's very bytes.

    ``encoding`` is the file's (judged by its first megabyte if it is too large to be read at once); "latin-1" shows
    bytes in no encoding we know. ``invalid_bytes``: how many U+FFFD of the content stand for a byte (or, in UTF-16,
    two) that is not text; writing them back keeps the bytes.
    ``cut``: the content begins or ends inside a line, at the byte columns given; ``continuation`` continues there.
    ``missing``: of several targets those that could not be read, and why.
    ``also_defined``: where else the symbol that was asked for is defined, five places at most. ``library``: the name
    and version of the library that has the file.
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
    library: NotRequired[str]
    symbol_name: NotRequired[str]
    also_defined: NotRequired[list[str]]
    more: NotRequired[list["SliceResult"]]
    missing: NotRequired[list["MissingTarget"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceQuery:
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
class _Part:
    """What was taken of a file: from line ``start`` at ``offset``, ``end`` being the last line asked for.

    ``length`` counts bytes, ``lines`` the lines it touches; ``is_cut``: it ends inside a line.
    """

    start: int
    end: int | None
    offset: int
    length: int = 0
    lossless: str = ""
    lines: int = 0
    is_cut: bool = False


def read_slice(editor: Editor, path: bytes, query: SliceQuery) -> SliceResult:
    """Return lines of a file.

    Raises:
        NotFound: file_not_found.
        InvalidRange: the range starts past the end, or ends before it starts.
        Forbidden: outside_root, permission_denied.

    """
    descriptor, status, real = editor.root.open_file(path)
    with Descriptor(descriptor):
        source: Source
        size = status.st_size
        if size <= editor.limits.whole_bytes:
            source = editor.small_files.get(
                status, lambda: SmallFile(read_all(descriptor, size))
            )
        else:
            index = editor.line_indexes.get(
                status, lambda: make_index(descriptor, size)
            )
            source = LargeFile(descriptor, index, query.deadline)
        result = _take_slice(editor, path, real, source, query)
        if query.with_hash is None and source.size > editor.limits.hash_bytes:
            result["notes"] = [
                f"file_hash left out: the file is over {editor.limits.hash_bytes} bytes; ask with include_hash"
            ]
        elif query.with_hash is not False:
            if isinstance(source, SmallFile):
                result["file_hash"] = source.hash
            else:
                result["file_hash"] = digest_of(descriptor, query.deadline)
    return result


def slice_content(
    editor: Editor, path: bytes, content: bytes, query: SliceQuery
) -> SliceResult:
    """Return lines of a file that is available, as one of another revision is; raises InvalidRange."""
    source = SmallFile(content)
    result = _take_slice(editor, path, path, source, query)
    if query.with_hash is not False:
        result["file_hash"] = source.hash
    return result


def _describe_extent(source: Source) -> str:
    count = source.total()
    if count is None:
        return ""
    if count == 1:
        unit = "line"
    else:
        unit = "lines"
    return f" (the file has {count} {unit})"


def _take_slice(
    editor: Editor, asked: bytes, path: bytes, source: Source, query: SliceQuery
) -> SliceResult:
    """Return the lines asked for; ``path``: the file's, links resolved, where ``asked`` was asked for."""
    most = editor.limits.read_bytes
    start = query.start_line
    end = query.end_line
    problem = ""
    if end is not None and end < start:
        problem = f"end_line {end} is before start_line {start}"
    elif query.tail is not None:
        start = max(1, source.count() - query.tail + 1)
        end = None
    if problem:
        offset = None
    else:
        offset = source.start_of(start)
    if offset is None:
        problem = (
            problem or f"start_line {start} is past the end{_describe_extent(source)}"
        )
    elif query.start_byte is not None:
        if not offset <= query.start_byte < source.size:
            problem = (
                f"continuation_start_byte {query.start_byte} is not in line {start}"
            )
        offset = query.start_byte
    if offset is None or problem:
        text = format_path(asked)
        raise InvalidRange(
            f"{problem}: {text}", file_path=text, total_lines=source.total()
        )
    # After the range: a line that does not exist is the more useful error of the two.
    if query.max_bytes is not None and query.max_bytes > most:
        raise InvalidParams(
            f"max_bytes {query.max_bytes} is over {most}",
            field="max_bytes",
            limit_bytes=most,
        )
    part = _take(source, _Part(start, end, offset), query, query.max_bytes or most)
    return _format_slice(editor, path, source, part, query)


def _begin_line(source: Source, data: bytes, room: int) -> str:
    """Return the beginning of a line that is over the budget: whole characters, one at least."""
    beginning = _decode_whole(source, data[:room])
    if not beginning:
        beginning = _decode_whole(source, data[:_LONGEST_CHARACTER])[:1]
    if not beginning:  # the file ends inside a character
        beginning = decode_lossless(data, source.encoding)
    return beginning


def _take(source: Source, part: _Part, query: SliceQuery, room: int) -> _Part:
    """Return whole lines within the budget, or, if the first exceeds it, as much of that as fits."""
    start = part.start
    end = part.end
    offset = part.offset
    # One read is enough: no character is longer, so the budget of characters cannot
    # reach beyond ``room`` bytes.
    if query.max_tokens is None:
        most = None
    else:
        most = query.max_tokens * CHARACTERS_PER_TOKEN
    if most is not None:
        room = min(room, most * _LONGEST_CHARACTER)
    data = source.read(offset, max(room, _LONGEST_CHARACTER))
    if not data:
        return part
    ends = find_line_ends(data, source.encoding)
    # Only at the end of the file does data without an LF end a line; elsewhere the read
    # ended inside one.
    at_end = offset + len(data) >= source.size
    if at_end and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))  # the last line, which has no end
    bounds = [
        bound
        for bound in (end and end - start + 1, query.max_lines)
        if bound is not None
    ]
    # As many line ends as fit in the budget of bytes.
    lines = min(
        min(bounds, default=len(ends)), int(ends.searchsorted(room, side="right"))
    )
    if lines == 0:
        lossless = _begin_line(source, data, room)[:most]
        # An odd byte of UTF-16 is shown as a character of two.
        length = min(len(encode_lossless(lossless, source.encoding)), len(data))
        return _Part(
            start, end, offset, length, lossless, 1, is_cut=not lossless.endswith("\n")
        )
    length = int(ends[lines - 1])
    lossless = decode_lossless(data[:length], source.encoding)
    if most is None or len(lossless) <= most:
        return _Part(start, end, offset, length, lossless, lines)
    # The characters are over the budget though the bytes were not: go back to the last
    # line end within it.
    line_end = lossless.rfind("\n", 0, most) + 1
    lossless = lossless[: line_end or most]
    length = len(encode_lossless(lossless, source.encoding))
    return _Part(
        start,
        end,
        offset,
        length,
        lossless,
        lossless.count("\n") or 1,
        is_cut=line_end == 0,
    )


def _decode_whole(source: Source, data: bytes) -> str:
    """Decode the characters that are whole at the start of the data."""
    if source.encoding in UTF_16:
        errors = "surrogatepass"
    else:
        errors = "surrogateescape"
    return codecs.getincrementaldecoder(source.encoding)(errors).decode(data)


def _make_cursor(path: bytes, part: _Part) -> Cursor:
    """Return where a part that was cut off by a budget goes on."""
    last = part.start + part.lines - 1
    # A cut line continues at the same line's next byte.
    if part.is_cut:
        onward = last
    else:
        onward = last + 1
    cursor = Cursor(file_path=format_path(path), continuation_start_line=onward)
    in_base64 = encode_path(path)
    if in_base64 is not None:
        cursor["file_path_bytes"] = in_base64
    if part.is_cut:
        cursor["continuation_start_byte"] = part.offset + part.length
    if part.end is not None:
        cursor["end_line"] = part.end
    return cursor


def _format_slice(
    editor: Editor, path: bytes, source: Source, part: _Part, query: SliceQuery
) -> SliceResult:
    stop = part.offset + part.length
    last = part.start + part.lines - 1
    # Cut off by a budget, not by the range: what the caller did not ask for is not
    # "more".
    truncated = stop < source.size and (
        part.is_cut or part.end is None or last < part.end
    )
    cursor: Cursor | None = None
    onward: int | None = None
    if truncated:
        cursor = _make_cursor(path, part)
        onward = cursor["continuation_start_line"]
    text = replace_lone(part.lossless)
    result = SliceResult(
        file_path=format_path(path),
        start_line=part.start,
        end_line=last,
        content=text,
        truncated=truncated,
        continuation_start_line=onward,
        continuation={
            "cursor": cursor,
            "chunk_index": query.chunk_index,
            "completed": cursor is None,
        },
        applied_limits={
            "max_lines": query.max_lines,
            "max_bytes": query.max_bytes or editor.limits.read_bytes,
            "max_tokens": query.max_tokens,
            "server_max_bytes": editor.limits.read_bytes,
            "consumed_lines": part.lines,
            "consumed_bytes": part.length,
            "consumed_tokens": -(-len(part.lossless) // CHARACTERS_PER_TOKEN),
        },
        encoding=source.encoding,
        bom=bool(source.bom),
        line_ending=source.line_ending
        if isinstance(source, SmallFile)
        else detect_line_ending(text),
        file_hash=None,
        file_size=source.size,
    )
    if text is not part.lossless:
        result["invalid_bytes"] = count_lone(part.lossless)
    in_base64 = encode_path(path)
    if in_base64 is not None:
        result["file_path_bytes"] = in_base64
    if query.start_byte is not None or (part.is_cut and truncated):
        line_start = source.start_of(part.start) or 0
        result["cut"] = True
        result["start_byte_column"], result["end_byte_column"] = (
            part.offset - line_start + 1,
            stop - line_start,
        )
    if query.with_total:
        is_counted = source.size <= editor.limits.count_bytes
        if is_counted:
            result["total_lines_available"] = source.count()
        else:
            result["total_lines_available"] = source.total()
    return result
