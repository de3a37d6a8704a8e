"""The rows that cross from the index to whoever uses it."""

from typing import Final, Literal, NamedTuple

LateStage = Literal["symbols", "chunks", "vectors"]
LATE_STAGES: Final[tuple[LateStage, ...]] = ("symbols", "chunks", "vectors")
"""Stages of indexing after the grams, each built on the one before."""


class FileRow(NamedTuple):
    """A file as indexed: blob 0 and a reason in ``skip`` where it was declined."""

    path: bytes
    blob: int
    skip: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class SegmentRow(NamedTuple):
    """A segment of postings: documents ``first`` to ``last``; ``kind``: see ``segments.Kind``."""

    id: int
    kind: int
    first: int
    last: int
    bytes: int


class Left(NamedTuple):
    """Texts that a stage has not reached yet; -1: not known."""

    texts: int
    bytes: int


class IndexSize(NamedTuple):
    """What the index holds."""

    files: int
    blobs: int
    lines: int
    segments: int
    generation: int
    gram_bytes: int
    file_bytes: int
    chunks: int
    vector_bytes: int
    """Size of the vectors, which lie in a file of their own."""
