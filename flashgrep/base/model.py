"""Frozen values shared by all layers, and the JSON shapes common to all answers."""

import base64
import codecs
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

from flashgrep.base.errors import InvalidParams
from flashgrep.base.lazy import LazyAttribute

_LAST = 2**63 - 1

SkipReason = Literal[
    "binary", "too_large", "unreadable", "encoding", "not_a_file", "unparsed"
]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A declined file: the reason, and (if known) a detail for people."""

    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text as it is searched.

    ``data`` is UTF-8 (byte order mark removed, UTF-16 transcoded), in which invalid bytes are kept and each shown as
    U+FFFD; "latin-1": the file is far from UTF-8, each byte is a character. Line ends are kept.
    """

    data: bytes
    encoding: Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"] = (
        "utf-8"
    )
    binary_at: int | None = None
    """Offset of the first NUL byte after the first block: what follows is not searched, as in ripgrep."""

    def blob(self) -> bytes | None:
        """Return git's blob id (SHA-1) of a file with this text; None if the text does not determine its bytes."""
        if self.binary_at is not None or self.encoding.startswith("utf-16"):
            return None
        mark = codecs.BOM_UTF8 if self.encoding == "utf-8-sig" else b""
        name = hashlib.sha1(
            b"blob %d\0" % (len(mark) + len(self.data)) + mark, usedforsecurity=False
        )
        name.update(self.data)
        return name.digest()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A part of an answer that is JSON already, so that the event loop only copies it."""

    json: bytes

    def decode(self) -> Any:
        """Return the value; with integers of any size."""
        return json.loads(self.json)


@dataclass(frozen=True)
class EncodedList(Encoded, Sequence[Any]):
    """A list that is JSON already: an encoder copies it, and only for whoever looks at its items it is decoded."""

    length: int
    """Known to whoever made it, so that the event loop counts the hits of a part without decoding them."""

    # Once, for all items.
    @LazyAttribute
    def _items(self) -> list[Any]:
        items: list[Any] = self.decode()
        return items

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...

    def __getitem__(self, at: int | slice) -> Any:
        return self._items[at]


class FileStat(NamedTuple):
    """Identifies a file's version without reading it; times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def from_status(cls, found: os.stat_result) -> "FileStat":
        """Return the version in a status; a number beyond what SQLite and numpy hold becomes the nearest they do."""
        numbers = (
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_ino,
        )
        if max(numbers) > _LAST or min(numbers) < -_LAST:
            return cls._make(map(clamp, numbers))
        return cls._make(numbers)


def clamp(number: int) -> int:
    """Return the nearest number of 64 bits: a file may be dated after the year 2262, an inode number be unsigned."""
    return max(-_LAST - 1, min(number, _LAST))


def path_to_text(path: bytes) -> str:
    """Return a path as text: U+FFFD stands for invalid UTF-8."""
    return path.decode("utf-8", "replace")


def path_to_json(path: bytes) -> dict[str, str]:
    """Return a path in the form of answers: its text, and its bytes in base64 if the text does not determine them."""
    try:
        return {"file_path": path.decode()}
    except UnicodeDecodeError:
        return {
            "file_path": path_to_text(path),
            "file_path_bytes": base64.b64encode(path).decode("ascii"),
        }


def path_from_json(file_path: str | None, file_path_bytes: str | None = None) -> bytes:
    """Return the path a caller named, in either form of ``path_to_json``; nothing means the empty path.

    Raises:
        InvalidParams: the bytes are not base64.

    """
    if file_path_bytes is None:
        return (file_path or "").encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode(file_path_bytes, validate=True)
    except ValueError:  # binascii.Error is one, and so is what a text beyond ASCII gets
        raise InvalidParams(
            "file_path_bytes: not base64", field="file_path_bytes"
        ) from None
