"""Files as they are in a client's editor, unsaved: bounded, only in memory, dropped with the connection.

A buffer is a list of lines, so that an edit costs only what it touches. Questions see its text (``UnsavedText``), which
is built for the first question after an edit.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakSet

import anyio

from flashgrep.base.errors import (
    Conflict,
    InvalidParams,
    InvalidRange,
    NotFound,
    TooLarge,
)
from flashgrep.base.model import Document, FileStat, Skipped, path_to_text
from flashgrep.files.columns import PositionEncoding, find_column, measure
from flashgrep.files.extract import extract

MOST_BYTES: Final = 8 << 20
"""Bytes of one buffer: as many as one line of a wire can carry."""
MOST_BYTES_TOGETHER: Final = 64 << 20
MOST_BUFFERS: Final = 1_000
"""Buffers of one connection; MOST_BYTES_TOGETHER bounds their bytes."""
MOST_HELD_BY_ALL: Final = 256 << 20
"""Bytes of memory that the buffers of all connections may take together. A connection that takes less than its share is
not refused because of others, so the total is at most twice as much.
"""
BUFFER_BYTES, LINE_BYTES = 1_024, 64
"""Memory for a buffer and for each of its lines, besides the text and the copy of it that questions see."""
MOST_TOUCHED: Final = 32 << 20
"""Bytes of lines that the edits of one call may touch, so that none blocks the daemon for more than about 50 ms."""
Name: TypeAlias = tuple[str | None, bytes]
"""The project and the path given in a call."""


class Edit(NamedTuple):
    """A range of a text and its replacement; None: the whole text.

    Lines and columns count from 1; a column is a position between two characters, 1 is before the first.
    """

    start: tuple[int, int] | None
    end: tuple[int, int] | None
    text: str


@dataclass(slots=True, eq=False)
class UnsavedText:
    """One state of a buffer, as questions see it."""

    data: bytes
    document: Document | Skipped
    """The text to search, or why there is none: it has a NUL byte."""
    time_ns: int
    """When this state was made."""
    compared: tuple[FileStat, bool] | None = None
    """A version of the file on disk, and whether it has the same text."""
    is_saved: bool = False
    """Whether the file had the same text at the last question."""
    parsed: tuple[tuple[str, bytes], Any] | None = None
    """The language and text of the last question, and their symbols with what was read from them."""


@dataclass(slots=True, eq=False)
class Buffer:
    """A file that a client has open."""

    path: bytes
    """Absolute, links resolved."""
    version: int
    lines: list[bytes]
    """Without line feeds; the last one may be empty."""
    size: int
    is_behind: bool = False
    """Whether an edit was refused: until the client opens the file again, its text differs from this one."""
    _text: UnsavedText | None = None

    @property
    def memory(self) -> int:
        """About how many bytes of memory the buffer takes."""
        return estimate_memory(self.size, len(self.lines))

    def text(self) -> UnsavedText:
        """Return the present text."""
        if self._text is None:
            data = b"\n".join(self.lines)
            self._text = UnsavedText(data, extract(data), time.time_ns())
        return self._text

    def replace_lines(self, lines: list[bytes], size: int, version: int) -> None:
        """Replace the text."""
        self.lines = lines
        self.size = size
        self.version = version
        self._text = None


def estimate_memory(size: int, lines: int) -> int:
    """Return about how many bytes of memory a buffer of this many bytes and lines takes."""
    return BUFFER_BYTES + 2 * size + LINE_BYTES * lines


class Buffers:
    """The buffers of one connection."""

    def __init__(self, of_all: "WeakSet[Buffers]") -> None:
        """``of_all``: the buffers of every connection, which share one bound; each counts until its connection ends."""
        self._of_all = of_all
        of_all.add(self)
        self.memory = 0
        """About how many bytes of memory the buffers take."""
        self.lock = anyio.Lock(fast_acquire=True)
        """Held while a file is opened, which reads the disk: the client's next requests wait for that."""
        self._buffers: dict[bytes, Buffer] = {}
        self._names: dict[Name, bytes] = {}
        """The names that files were opened by, so that an edit finds its buffer without reading the disk."""

    def __len__(self) -> int:
        return len(self._buffers)

    def all(self) -> list[Buffer]:
        """Return the buffers, by path."""
        return [self._buffers[path] for path in sorted(self._buffers)]

    def find(self, name: Name) -> bytes | None:
        """Return the path of the buffer opened by this name, or None."""
        return self._names.get(name)

    def open(self, name: Name, path: bytes, text: str, version: int) -> Buffer:
        """Open a file with a text; if it is open already, replace its text.

        Raises:
            InvalidParams: not_utf8.
            TooLarge: the text, this connection's texts together, their number, or the texts of all connections.

        """
        lines = _split(text)
        line_ends = len(lines) - 1
        buffer = Buffer(path, version, lines, line_ends + sum(map(len, lines)))
        self._check_size(buffer.size, len(lines), self._buffers.get(path))
        # Checked before anything changes: a refused text leaves what was there.
        if path not in self._buffers and len(self._buffers) >= MOST_BUFFERS:
            raise TooLarge(
                f"a connection has at most {MOST_BUFFERS} buffers",
                reason="too_many_buffers",
                limit=MOST_BUFFERS,
            )
        self.memory += buffer.memory - (
            self._buffers[path].memory if path in self._buffers else 0
        )
        self._buffers[path] = buffer
        # A name that the file had been opened by before would never be dropped
        # otherwise.
        self._forget_names(path)
        self._names[name] = path
        return buffer

    def change(
        self,
        path: bytes,
        edits: Iterable[Edit],
        version: int,
        base: int,
        encoding: PositionEncoding,
    ) -> Buffer:
        """Apply edits, each to the text that the one before has left; all of them or none.

        Raises:
            NotFound: buffer_not_open.
            Conflict: version_mismatch, the edits are based on a text that is not known here.
            InvalidRange: a position is outside the text, or inside a character.
            InvalidParams: not_utf8.
            TooLarge: the text would be too large, or the edits touch too much at once.

        """
        buffer = self.get(path)
        buffer.is_behind = True  # stays so if anything is refused below
        if base != buffer.version or version <= base:
            message = f"the buffer is at version {buffer.version}: {version} does not follow it; open it again"
            raise Conflict(
                message,
                reason="version_mismatch",
                known_version=buffer.version,
                version=version,
            )
        # On a copy, so that all edits of a call are applied or none.
        lines, size = _edit(buffer, edits, encoding)
        self._check_size(size, len(lines), buffer)
        self.memory -= buffer.memory
        buffer.replace_lines(lines, size, version)
        self.memory += buffer.memory
        buffer.is_behind = False  # the client changed the version known here, so both have the same text
        return buffer

    def get(self, path: bytes) -> Buffer:
        """Return the buffer of a file, or raise NotFound."""
        buffer = self._buffers.get(path)
        if buffer is None:
            text = path_to_text(path)
            raise NotFound(
                f"no buffer is open for {text}",
                reason="buffer_not_open",
                target_path=text,
            )
        return buffer

    def close(self, path: bytes) -> None:
        """Close a buffer, or raise NotFound."""
        buffer = self.get(path)
        del self._buffers[path]
        self.memory -= buffer.memory
        self._forget_names(path)

    def below(self, root: bytes) -> dict[bytes, Buffer]:
        """Return the buffers below a folder, by path relative to it."""
        lead = root.rstrip(b"/") + b"/"
        return {
            path[len(lead) :]: buffer
            for path, buffer in self._buffers.items()
            if path.startswith(lead)
        }

    def _forget_names(self, path: bytes) -> None:
        self._names = {name: real for name, real in self._names.items() if real != path}

    def _check_size(self, size: int, lines: int, former: Buffer | None) -> None:
        together = (
            size
            + sum(buffer.size for buffer in self._buffers.values())
            - (former.size if former else 0)
        )
        for observed, limit in ((size, MOST_BYTES), (together, MOST_BYTES_TOGETHER)):
            if observed > limit:
                raise TooLarge(
                    "the unsaved text is too large" if limit == MOST_BYTES else "all unsaved texts are too large",
                    observed_bytes=observed, limit_bytes=limit, guidance="close buffers, or save the file",
                )  # fmt: skip
        more = estimate_memory(size, lines)
        if former:
            more -= former.memory
        memory = more + sum(buffers.memory for buffers in self._of_all)
        # Refuse only a connection with more than its share: a greedy client must not
        # keep others from opening files.
        if (
            more > 0
            and memory > MOST_HELD_BY_ALL
            and self.memory + more > MOST_HELD_BY_ALL // len(self._of_all)
        ):
            raise TooLarge(
                "the unsaved texts of all connections together are too large",
                reason="buffers_of_all_too_large", observed_bytes=memory, limit_bytes=MOST_HELD_BY_ALL,
                guidance="close buffers, or save the file; other clients have buffers, too",
            )  # fmt: skip


def _split(text: str) -> list[bytes]:
    try:
        return text.encode().split(b"\n")
    except UnicodeEncodeError:
        raise InvalidParams(
            "text: contains half a surrogate pair", reason="not_utf8", field="text"
        ) from None


def _edit(
    buffer: Buffer, edits: Iterable[Edit], encoding: PositionEncoding
) -> tuple[list[bytes], int]:
    """Return the lines and the size of a buffer after edits; raises what ``Buffers.change`` raises."""
    lines = list(buffer.lines)
    size = buffer.size
    room = MOST_TOUCHED
    for edit in edits:
        new = _split(edit.text)
        if edit.start is None or edit.end is None:
            lines = new
            size = len(new) - 1 + sum(map(len, new))
            room -= size
        else:
            (first, start), (last, end) = (
                _find(lines, edit.start, encoding),
                _find(lines, edit.end, encoding),
            )
            if (first, start) > (last, end):
                raise InvalidRange(
                    "an edit ends before it starts", start=edit.start, end=edit.end
                )
            touched = lines[first : last + 1]
            new[0] = touched[0][:start] + new[0]
            # Text before the range on its first line, and after it on its last, stays.
            new[-1] += touched[-1][end:]
            lines[first : last + 1] = new
            removed = sum(map(len, touched)) + len(touched)
            added = sum(map(len, new)) + len(new)
            size += added - removed
            room -= removed + added
        if room < 0 or size > MOST_BYTES:
            raise TooLarge(
                "the edits touch too much at once"
                if room < 0
                else "the unsaved text is too large",
                observed_bytes=size if room >= 0 else MOST_TOUCHED - room,
                limit_bytes=MOST_BYTES if room >= 0 else MOST_TOUCHED,
                guidance="send the whole text instead, or save the file and close its buffer",
            )
    return lines, size


def _find(
    lines: list[bytes], place: tuple[int, int], encoding: PositionEncoding
) -> tuple[int, int]:
    """Return a position as the index of its line and the offset in that line."""
    number, column = place
    if number <= len(lines):
        line = lines[number - 1]
    else:
        line = b""
    if number <= len(lines):
        offset = find_column(line, column, encoding)
    else:
        offset = None
    if (
        offset is None or measure(line[:offset], encoding) != column - 1
    ):  # past the end, or inside a character
        message = f"no such position in the text: line {number}, column {column} in {encoding}"
        raise InvalidRange(message, line=number, column=column, lines=len(lines))
    return number - 1, offset
