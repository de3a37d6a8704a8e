"""Frozen values that cross floors, and the JSON shapes every answer shares."""

import base64
from dataclasses import dataclass
from typing import Literal

from flashgrep.errors import InvalidParams

SkipReason = Literal["binary", "too_large", "unreadable", "encoding", "not_a_file", "unparsed"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file we decline, as data: why, and (where known) a detail for people."""

    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text as it is searched.

    ``data`` is UTF-8 (byte order mark removed, UTF-16 transcoded), in which bytes that are no UTF-8 are kept and shown
    as U+FFFD each; "latin-1": the file is not UTF-8 by far, each byte is a character. Line ends are kept.
    """

    data: bytes
    encoding: Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"] = "utf-8"
    binary_at: int | None = None
    """Offset of the first NUL byte past the first block: what follows is not searched, as ripgrep does."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """What tells a file's version apart without reading it; times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def show_path(path: bytes) -> dict[str, str]:
    """Return a path as answers show it: U+FFFD for what is no UTF-8, and then the bytes in base64 beside it."""
    try:
        return {"file_path": path.decode()}
    except UnicodeDecodeError:
        shown = path.decode("utf-8", "replace")
        return {"file_path": shown, "file_path_bytes": base64.b64encode(path).decode("ascii")}


def given_path(file_path: str | None, file_path_bytes: str | None) -> bytes:
    """Return the path a caller named, in either form of ``show_path``.

    Raises:
        InvalidParams: neither is given, or the bytes are no base64.

    """
    if file_path_bytes is not None:
        try:
            return base64.b64decode(file_path_bytes, validate=True)
        except ValueError:
            raise InvalidParams("file_path_bytes: not base64", field="file_path_bytes") from None
    if file_path is None:
        raise InvalidParams("file_path: required", field="file_path")
    return file_path.encode("utf-8", "surrogateescape")
