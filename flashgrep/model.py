"""Frozen values that cross floors, and the JSON shapes every answer shares."""

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

SkipReason = Literal["binary", "too_large", "unreadable", "encoding", "not_a_file"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file we decline, as data: why, and (where known) a detail for people."""

    reason: SkipReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text as it is searched.

    ``data`` is UTF-8 wherever the file's encoding could be told (byte order mark removed, UTF-16 transcoded);
    a file that is neither is kept as its own bytes and shown as latin-1. Line ends are kept.
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


class TextHit(TypedDict):
    """One matching line, or lines: `text` without the line end, lines and columns from 1."""

    file_path: str
    start_line: int
    end_line: int
    column: int
    text: str
    byte_column: NotRequired[int]
    file_path_bytes: NotRequired[str]
    before: NotRequired[list[str]]
    after: NotRequired[list[str]]
    cut: NotRequired[bool]
    symbol_name: NotRequired[str]
    score: NotRequired[float]
    project: NotRequired[str]


class Coverage(TypedDict):
    """What an answer covered: never an empty list that hides a time-out."""

    complete: bool
    fresh: bool
    files_searched: int
    files_skipped: dict[str, int]
    stage: str
    generation: int
    took_ms: float
    detail: NotRequired[str]
