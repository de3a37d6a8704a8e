"""Files as they are in a client's editor, not saved: bounded, in memory alone, gone with the connection.

A buffer is a list of lines, so that an edit costs what it touches. Questions see its text (``UnsavedText``), which is
made when the first of them comes after an edit.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakSet

import anyio

from flashgrep.errors import Conflict, InvalidParams, InvalidRange, NotFound, TooLarge
from flashgrep.ingest.columns import PositionEncoding, find_column, measure
from flashgrep.ingest.extract import extract
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.model import Document, FileStat, Skipped, path_to_text

MOST_BYTES: Final = 8 << 20
"""Bytes of one buffer: as much as a line of a wire carries."""
MOST_BYTES_TOGETHER: Final = 64 << 20
MOST_BUFFERS: Final = 1_000
"""Of one connection, with as many bytes together."""
MOST_HELD_BY_ALL: Final = 256 << 20
"""Bytes of memory that the buffers of all connections may take together. Who holds no more than a fair share is not
refused for what others hold, so they take twice as much at most.
"""
BUFFER_BYTES, LINE_BYTES = 1_024, 64
"""What a buffer and each of its lines take alongside the text, of which questions see another copy."""
MOST_TOUCHED: Final = 32 << 20
"""Bytes of lines that the edits of one call touch, so that none holds the daemon up: about 50 ms."""
Name: TypeAlias = tuple[str | None, bytes]
"""The project and the path that a call gave."""


class Edit(NamedTuple):
    """A stretch of a text and what takes its place; None: the whole text.

    Lines and columns count from 1; a column is a place between two characters, the one before its first character is 1.
    """

    start: tuple[int, int] | None
    end: tuple[int, int] | None
    text: str


@dataclass(slots=True, eq=False)
class UnsavedText:
    """One state of a buffer, as questions see it."""

    data: bytes
    document: Document | Skipped
    """The text as it is searched, or why it is not: it has a NUL byte."""
    time_ns: int
    """When it came to be."""
    compared: tuple[FileStat, bool] | None = None
    """A version of the file, and whether that has the same text."""
    is_saved: bool = False
    """Whether the file had the same text when the last question came."""
    parsed: tuple[tuple[str, bytes], FileSymbols | Skipped] | None = None
    """The language and text that a question was about last, and its symbols with what was read out of it."""


@dataclass(slots=True, eq=False)
class Buffer:
    """A file that a client has open."""

    path: bytes
    """Absolute, without links."""
    version: int
    lines: list[bytes]
    """Without their LF; the last one may be empty."""
    size: int
    is_behind: bool = False
    """Whether an edit was refused: the client's text is another one until it opens the file again."""
    _text: UnsavedText | None = None

    @property
    def memory(self) -> int:
        """About how many bytes of memory it takes."""
        return estimate_memory(self.size, len(self.lines))

    def text(self) -> UnsavedText:
        """Return the text as it is now."""
        if self._text is None:
            data = b"\n".join(self.lines)
            self._text = UnsavedText(data, extract(data), time.time_ns())
        return self._text

    def replace_lines(self, lines: list[bytes], size: int, version: int) -> None:
        """Take another text."""
        self.lines, self.size, self.version, self._text = lines, size, version, None


def estimate_memory(size: int, lines: int) -> int:
    """Return about how many bytes of memory a buffer of this many bytes and lines takes."""
    return BUFFER_BYTES + 2 * size + LINE_BYTES * lines


class Buffers:
    """The buffers of one connection."""

    def __init__(self, of_all: "WeakSet[Buffers]") -> None:
        """``of_all``: those of every connection, which share one bound; these count as long as the connection lasts."""
        self._of_all = of_all
        of_all.add(self)
        self.memory = 0
        """About how many bytes of memory they take."""
        self.lock = anyio.Lock(fast_acquire=True)
        """Held while a file is opened, which looks at the disk: what the client asks next waits for it."""
        self._buffers: dict[bytes, Buffer] = {}
        self._names: dict[Name, bytes] = {}
        """What files were opened by: an edit need not look at the disk to find its buffer."""

    def __len__(self) -> int:
        return len(self._buffers)

    def all(self) -> list[Buffer]:
        """Return the buffers, by path."""
        return [self._buffers[path] for path in sorted(self._buffers)]

    def find(self, name: Name) -> bytes | None:
        """Return the path of the buffer that was opened so, or None."""
        return self._names.get(name)

    def open(self, name: Name, path: bytes, text: str, version: int) -> Buffer:
        """Take a file's text, also of one that is open.

        Raises:
            InvalidParams: not_utf8.
            TooLarge: the text, all texts together, their number, or all texts of all connections.

        """
        lines = _split(text)
        buffer = Buffer(path, version, lines, len(lines) - 1 + sum(map(len, lines)))
        self._check_size(buffer.size, len(lines), self._buffers.get(path))
        # Checked before anything is taken: a refused text leaves what was there.
        if path not in self._buffers and len(self._buffers) >= MOST_BUFFERS:
            raise TooLarge(
                f"a connection has at most {MOST_BUFFERS} buffers", reason="too_many_buffers", limit=MOST_BUFFERS
            )
        self.memory += buffer.memory - (self._buffers[path].memory if path in self._buffers else 0)
        self._buffers[path] = buffer
        # Opened by another name now; the old one would lead to it for ever.
        self._forget_names(path)
        self._names[name] = path
        return buffer

    def change(self, path: bytes, edits: Iterable[Edit], version: int, base: int, encoding: PositionEncoding) -> Buffer:
        """Make edits, each in the text that the one before has left; all of them or none.

        Raises:
            NotFound: buffer_not_open.
            Conflict: version_mismatch, the edits are not of the text that is known here.
            InvalidRange: a place is outside the text, or inside a character.
            InvalidParams: not_utf8.
            TooLarge: the text would be, or the edits touch too much at once.

        """
        buffer = self.get(path)
        buffer.is_behind = True  # should anything be refused below
        if base != buffer.version or version <= base:
            message = f"the buffer is at version {buffer.version}: {version} does not follow it; open it again"
            raise Conflict(message, reason="version_mismatch", known_version=buffer.version, version=version)
        # On a copy, so that all edits of a call are made or none.
        lines, size = _edit(buffer, edits, encoding)
        self._check_size(size, len(lines), buffer)
        self.memory -= buffer.memory
        buffer.replace_lines(lines, size, version)
        self.memory += buffer.memory
        buffer.is_behind = False  # the client knows which text it has changed
        return buffer

    def get(self, path: bytes) -> Buffer:
        """Return the buffer of a file, or raise NotFound."""
        buffer = self._buffers.get(path)
        if buffer is None:
            shown = path_to_text(path)
            raise NotFound(f"no buffer is open for {shown}", reason="buffer_not_open", target_path=shown)
        return buffer

    def close(self, path: bytes) -> None:
        """Forget a buffer, or raise NotFound."""
        buffer = self.get(path)
        del self._buffers[path]
        self.memory -= buffer.memory
        self._forget_names(path)

    def below(self, root: bytes) -> dict[bytes, Buffer]:
        """Return the buffers below a folder, by path from there."""
        lead = root.rstrip(b"/") + b"/"
        return {path[len(lead) :]: buffer for path, buffer in self._buffers.items() if path.startswith(lead)}

    def _forget_names(self, path: bytes) -> None:
        self._names = {name: real for name, real in self._names.items() if real != path}

    def _check_size(self, size: int, lines: int, former: Buffer | None) -> None:
        together = size + sum(buffer.size for buffer in self._buffers.values()) - (former.size if former else 0)
        for observed, limit in ((size, MOST_BYTES), (together, MOST_BYTES_TOGETHER)):
            if observed > limit:
                raise TooLarge(
                    "the unsaved text is too large" if limit == MOST_BYTES else "all unsaved texts are too large",
                    observed_bytes=observed, limit_bytes=limit, guidance="close buffers, or save the file",
                )  # fmt: skip
        more = estimate_memory(size, lines) - (former.memory if former else 0)
        held = more + sum(buffers.memory for buffers in self._of_all)
        # Only who has more than an equal part is refused: one greedy client does not keep others from opening a file.
        if more > 0 and held > MOST_HELD_BY_ALL and self.memory + more > MOST_HELD_BY_ALL // len(self._of_all):
            raise TooLarge(
                "the unsaved texts of all connections are too large together",
                reason="buffers_of_all_too_large", observed_bytes=held, limit_bytes=MOST_HELD_BY_ALL,
                guidance="close buffers, or save the file; other clients have buffers, too",
            )  # fmt: skip


def _split(text: str) -> list[bytes]:
    try:
        return text.encode().split(b"\n")
    except UnicodeEncodeError:
        raise InvalidParams("text: half a surrogate pair is no text", reason="not_utf8", field="text") from None


def _edit(buffer: Buffer, edits: Iterable[Edit], encoding: PositionEncoding) -> tuple[list[bytes], int]:
    """Return the lines and the size of a buffer after edits; raises as ``Buffers.change``."""
    lines, size, room = list(buffer.lines), buffer.size, MOST_TOUCHED
    for edit in edits:
        new = _split(edit.text)
        if edit.start is None or edit.end is None:
            lines, size = new, len(new) - 1 + sum(map(len, new))
            room -= size
        else:
            (first, start), (last, end) = _find(lines, edit.start, encoding), _find(lines, edit.end, encoding)
            if (first, start) > (last, end):
                raise InvalidRange("the end of an edit lies before its start", start=edit.start, end=edit.end)
            touched = lines[first : last + 1]
            new[0] = touched[0][:start] + new[0]
            # What is before and after the stretch on its first and last line stays.
            new[-1] += touched[-1][end:]
            lines[first : last + 1] = new
            removed, added = sum(map(len, touched)) + len(touched), sum(map(len, new)) + len(new)
            size += added - removed
            room -= removed + added
        if room < 0 or size > MOST_BYTES:
            raise TooLarge(
                "the edits touch too much at once" if room < 0 else "the unsaved text is too large",
                observed_bytes=size if room >= 0 else MOST_TOUCHED - room,
                limit_bytes=MOST_BYTES if room >= 0 else MOST_TOUCHED,
                guidance="send the whole text instead, or save the file and close its buffer",
            )
    return lines, size


def _find(lines: list[bytes], place: tuple[int, int], encoding: PositionEncoding) -> tuple[int, int]:
    """Return the index of a line and the offset in it of a place."""
    number, column = place
    line = lines[number - 1] if number <= len(lines) else b""
    offset = find_column(line, column, encoding) if number <= len(lines) else None
    if offset is None or measure(line[:offset], encoding) != column - 1:  # past the end, or inside a character
        message = f"no place in the text: line {number}, column {column} in {encoding}"
        raise InvalidRange(message, line=number, column=column, lines=len(lines))
    return number - 1, offset
