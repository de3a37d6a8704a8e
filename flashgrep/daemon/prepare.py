"""What the indexer's worker processes do: read files, and make postings of them."""

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flashgrep.damage import Damaged
from flashgrep.index import schema
from flashgrep.index.grams import Grams, grams_of
from flashgrep.index.postings import Block, encode, pairs_of
from flashgrep.index.rows import FileRow
from flashgrep.index.writer import Reserved, Text
from flashgrep.ingest.extract import read_file
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.machine import release_memory
from flashgrep.model import FileStat, Skipped

RACY_NS = 100_000_000
"""A file written so shortly before it was read may be written again within one tick of the file system's clock, and
look the same; its change time is stored as 0, so that the next start reads it again (git calls it racily clean)."""


class Prepared(NamedTuple):
    """A batch, ready to be stored."""

    reserved: Reserved
    texts: list[Text]
    blocks: list[Block]
    files: list[tuple[FileRow, bytes]]
    gone: list[bytes]
    bytes_read: int


class _Read(NamedTuple):
    row: FileRow
    hash: bytes
    data: bytes


def prepare(
    root: RootFolder, paths: Sequence[bytes], reserved: Reserved, known: Path | None, max_size: int
) -> Prepared:
    """Read files and make their postings; ``known`` is the index whose texts need none."""
    release_memory()  # what the batch before took
    gone: list[bytes] = []
    files: list[tuple[FileRow, bytes]] = []
    texts: dict[bytes, Text] = {}
    grams: list[Grams] = []
    have = _Known(known)
    below = RootFiles(root)
    for path in paths:
        found = _read(below, path, max_size)
        if found is None:
            gone.append(path)
            continue
        files.append((found.row, found.hash))
        if found.hash and found.hash not in texts and not have(found.hash):
            lines = found.data.count(b"\n") + (not found.data.endswith(b"\n"))
            texts[found.hash] = Text(reserved.first + len(grams), found.hash, len(found.data), lines)
            grams.append(grams_of(found.data))
    have.close()
    blocks = list(encode(pairs_of(grams), reserved.segment)) if grams else []
    read = sum(row.size for row, _ in files)
    return Prepared(reserved, list(texts.values()), blocks, files, gone, read)


def _read(files: RootFiles, path: bytes, max_size: int) -> _Read | None:
    """Read one file; None: it is gone."""
    started = time.time_ns()
    try:
        stat, document = read_file(files, path, max_size)
    except (FileNotFoundError, NotADirectoryError):
        return None
    row = _row(path, stat, started, document.reason if isinstance(document, Skipped) else "")
    if isinstance(document, Skipped):
        return _Read(row, b"", b"")
    return _Read(row, hashlib.blake2b(document.data, digest_size=16).digest(), document.data)


def _row(path: bytes, stat: FileStat, started: int, skip: str) -> FileRow:
    racy = max(stat.mtime_ns, stat.ctime_ns) > started - RACY_NS
    return FileRow(path, 0, skip, stat.size, stat.mtime_ns, 0 if racy else stat.ctime_ns, stat.inode)


def read_text(files: RootFiles, path: bytes, text_hash: bytes, max_size: int) -> bytes | None:
    """Return a file's text if it still is the one with this content hash."""
    found = _read(files, path, max_size)
    return None if found is None or found.hash != text_hash else found.data


class _Known:
    """Asks an index which texts it has; one that cannot be asked has none."""

    def __init__(self, file: Path | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if file is not None:
            try:
                self._connection = schema.connect(file)
            except (sqlite3.Error, Damaged):
                self._connection = None

    def __call__(self, text_hash: bytes) -> bool:
        if self._connection is None:
            return False
        return bool(self._connection.execute("SELECT 1 FROM blob WHERE hash = ?", [text_hash]).fetchone())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
