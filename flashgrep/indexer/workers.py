"""What the indexer's workers do (``worker_pool``): read files, and make their postings."""

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flashgrep.base.damage import Damaged
from flashgrep.base.languages import name_class
from flashgrep.base.machine import release_memory
from flashgrep.base.model import Document, Skipped
from flashgrep.files.extract import AT_ONCE, read_file
from flashgrep.files.openat import RootFiles, RootFolder
from flashgrep.index import schema
from flashgrep.index.grams import Grams, grams_of
from flashgrep.index.postings import Block, encode, pairs_of
from flashgrep.index.table import FileRow
from flashgrep.index.writer import Reserved, Text

RACY_NS = 100_000_000
"""A file written less than this before it was read may be written again within one tick of the file system's clock, and
look unchanged. Its change time is stored as 0, so that the next start reads it again (git calls it racily clean)."""

Texts = Sequence[tuple[int, bytes, bytes]]
"""Texts by number, hash (or blob id) and one path."""


class PreparedBatch(NamedTuple):
    """A batch, ready to be stored."""

    reserved: Reserved
    texts: list[Text]
    blocks: list[Block]
    files: list[tuple[FileRow, bytes]]
    """Each with the content hash of its text, empty if the file is declined."""
    gone: list[bytes]
    bytes_read: int


class _Content(NamedTuple):
    row: FileRow
    hash: bytes
    document: Document


def prepare(
    root: RootFolder,
    paths: Sequence[bytes],
    reserved: Reserved,
    known: Path | None,
    max_size: int,
) -> PreparedBatch:
    """Read files and make their postings; ``known`` is the index whose texts need none."""
    release_memory()  # of the batch before
    connection = None
    if known is not None:
        with contextlib.suppress(
            sqlite3.Error, Damaged
        ):  # then make postings of all: the writer will report the problem
            connection = schema.connect(known)

    def is_known(text_hash: bytes) -> bool:
        if connection is None:
            return False
        return (
            connection.execute(
                "SELECT 1 FROM text WHERE hash = ?", [text_hash]
            ).fetchone()
            is not None
        )

    gone: list[bytes] = []
    files: list[tuple[FileRow, bytes]] = []
    texts: dict[bytes, Text] = {}
    grams: list[Grams] = []
    below = RootFiles(root)
    for path in paths:
        content = _read_content(below, path, max_size)
        if content is None:
            gone.append(path)
            continue
        files.append((content.row, content.hash))
        # A text that is stored already, under any path, needs no postings; that holds
        # for most of a second work tree.
        if content.hash and content.hash not in texts and not is_known(content.hash):
            texts[content.hash] = describe_text(
                reserved.first + len(grams), path, content.hash, content.document
            )
            grams.append(grams_of(content.document.data))
    if connection is not None:
        connection.close()
    blocks: list[Block] = []
    if grams:
        pairs = pairs_of(grams)
        grams.clear()  # half as much memory again as the pairs
        blocks += encode(pairs, reserved.segment)
    read = sum(row.size for row, _ in files)
    return PreparedBatch(reserved, list(texts.values()), blocks, files, gone, read)


def _read_content(files: RootFiles, path: bytes, max_size: int) -> _Content | None:
    """Read one file; None: it is gone."""
    # Before reading: a change during the read must count as one after it.
    started = time.time_ns()
    try:
        stat, document = read_file(files, path, max_size)
    except (FileNotFoundError, NotADirectoryError):
        return None
    racy = max(stat.mtime_ns, stat.ctime_ns) > started - RACY_NS
    skip = document.reason if isinstance(document, Skipped) else ""
    row = FileRow(
        path,
        0,
        skip,
        stat.size,
        stat.mtime_ns,
        0 if racy else stat.ctime_ns,
        stat.inode,
    )
    if isinstance(document, Skipped):
        return _Content(row, b"", Document(b""))
    return _Content(row, hash_text(path, document.data), document)


def hash_text(path: bytes, data: bytes) -> bytes:
    """Return the hash that identifies a text: of its content, and of what the file's name says about its language."""
    digest = hashlib.blake2b(name_class(path).encode() + b"\0", digest_size=16)
    digest.update(data)
    return digest.digest()


def describe_text(
    number: int, path: bytes, text_hash: bytes, document: Document
) -> Text:
    """Return the row of a text with this number."""
    data = document.data
    # numpy counts in a quarter of the time, but for a large text it needs as much
    # memory again.
    is_small = len(data) <= AT_ONCE
    ends = (
        np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        if is_small
        else data.count(b"\n")
    )
    lines = int(ends) + (not data.endswith(b"\n"))
    return Text(number, text_hash, len(data), lines, document.blob(), name_class(path))


def read_text(
    files: RootFiles, path: bytes, text_hash: bytes, max_size: int
) -> bytes | None:
    """Return a file's text if it still has this content hash."""
    content = _read_content(files, path, max_size)
    if content is None or content.hash != text_hash:
        return None
    return content.document.data


def read_texts(root: RootFolder, max_size: int, batch: Texts) -> Iterator[bytes | None]:
    """Yield the texts of a batch; None for a file whose text has changed."""
    files = RootFiles(root)
    for _, text_hash, path in batch:
        yield read_text(files, path, text_hash, max_size)
