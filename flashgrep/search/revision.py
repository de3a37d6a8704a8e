"""A project as it is in a revision: a table of paths like any other, whose files are read from git's objects."""

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from flashgrep.checkpoint import checkpoint
from flashgrep.git.repository import Files, Repository
from flashgrep.index.reader import Reader
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.ingest.extract import extract
from flashgrep.languages import name_class
from flashgrep.model import Document, FileStat, Skipped
from flashgrep.search.snapshot import SIZE, TEXT_ID, Snapshot

KEPT_BYTES = 64 << 20
"""Of the texts read last: a question that is asked again, or its next page, reads most of them another time."""
RETRIES = 2
ResultT = TypeVar("ResultT")


class Blobs:
    """A repository's contents as texts; those read last are kept. Safe to use from several threads."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._kept: OrderedDict[bytes, Document | Skipped] = OrderedDict()
        self._bytes = 0

    def read(self, path: bytes, blob: bytes, max_size: int) -> Document | Skipped:
        """Return the text of a file, or why it has none; raises as ``Repository.read``."""
        found = self._kept.pop(blob, None)  # one step, so that no two threads take the same
        if found is None or (isinstance(found, Document) and len(found.data) > max_size):
            content = self.repository.read(path, blob, max_size)
            if content.data is None:
                return Skipped("too_large", f"{content.size} bytes")
            found = extract(content.data)
        else:
            self._bytes -= _size_of(found)
        self._kept[blob] = found
        self._bytes += _size_of(found)
        while self._bytes > KEPT_BYTES:
            self._bytes -= _size_of(self._kept.popitem(last=False)[1])
        return found


def _size_of(found: Document | Skipped) -> int:
    return len(found.data) if isinstance(found, Document) else 0


@dataclass(frozen=True, slots=True)
class RevisionSnapshot(Snapshot):
    """A revision as one question sees it. What the index does not have is pending, and read from git's objects."""

    contents: Files = field(default_factory=dict)
    blobs: Blobs | None = None

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's size and time as the table has them: nothing changes in a revision."""
        at = self.table.find(path)
        return None if at is None else (int(self.table.columns[at, SIZE]), 0)

    def read_with_stat(self, path: bytes) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file of the revision."""
        checkpoint()
        version = self.version(path)
        if version is None or self.blobs is None:
            return None, None
        return FileStat(*version, 0, 0), self.blobs.read(path, self.contents[path].blob, self.max_size)


class RevisionTable:
    """The table of a revision's files, with what the index knows of their texts."""

    def __init__(self, files: Files, blobs: Blobs) -> None:
        self.files = files
        self.blobs = blobs
        self.table = FileTable.of([FileRow(path, 0, "", max(0, file.size), 0, 0, 0) for path, file in files.items()])
        self._names = [(bytes.fromhex(file.blob.decode("ascii")), name_class(path)) for path, file in files.items()]
        self._known: tuple[object, FileTable, dict[bytes, Mark]] | None = None

    def ask(self, project: Snapshot, ask: Callable[[Snapshot], ResultT]) -> ResultT:
        """Ask the revision; ``project``: the project as it is now, whose index may have the same texts.

        Texts that are nobody's any more may be dropped while the question runs. It is asked again then, and at last
        without the index.
        """
        reader = project.reader
        for _ in range(RETRIES if reader is not None else 0):
            assert reader is not None  # noqa: S101 - mypy
            seal = reader.seal()
            result = ask(self._snapshot(project, reader, seal))
            if reader.seal() == seal:
                return result
        return ask(self._snapshot(project, None, 0))

    def _snapshot(self, project: Snapshot, reader: Reader | None, seal: int) -> RevisionSnapshot:
        known, key = self._known, (reader and reader.identity, seal, project.parsed)
        if known is None or known[0] != key:
            text_ids = {} if reader is None else reader.texts_of_blobs(parsed=project.parsed)
            found = [text_ids.get(name, 0) for name in self._names]
            columns = self.table.columns.copy()
            columns[:, TEXT_ID] = found
            mark = Mark(ours=True, sequence=0, size=0)
            pending = {path: mark for path, text_id in zip(self.files, found, strict=True) if not text_id}
            known = self._known = (key, FileTable(self.table.paths, columns), pending)
        _, table, pending = known
        is_parsed = reader is not None and project.parsed
        return RevisionSnapshot(
            project.root, table, reader, pending, project.max_size,
            parsed=is_parsed, parsed_to=sys.maxsize if is_parsed else 0, contents=self.files, blobs=self.blobs,
        )  # fmt: skip
