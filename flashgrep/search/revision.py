"""A project as it is in a revision: a table of paths like any other, whose files are read from git's objects."""

from collections import OrderedDict
from dataclasses import dataclass, field

from flashgrep.checkpoint import checkpoint
from flashgrep.git.repository import Files, Repository
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.ingest.extract import extract
from flashgrep.model import Document, FileStat, Skipped
from flashgrep.search.snapshot import SIZE, Snapshot

KEPT_BYTES = 32 << 20
"""Of the texts read last: a question that is asked again, or its next page, reads most of them another time."""


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

    def read_with_stat(self, path: bytes) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file of the revision; its size is the table's, and its time 0, as the table has it."""
        checkpoint()
        at = self.table.find(path)
        if at is None or self.blobs is None:
            return None, None
        document = self.blobs.read(path, self.contents[path].blob, self.max_size)
        return FileStat(int(self.table.columns[at, SIZE]), 0, 0, 0), document


def make_table(files: Files) -> FileTable:
    """Return the table of a revision's files, none of which is known to be in the index."""
    return FileTable.of([FileRow(path, 0, "", max(0, file.size), 0, 0, 0) for path, file in files.items()])


def take_revision(project: Snapshot, files: Files, table: FileTable, blobs: Blobs) -> RevisionSnapshot:
    """Return a revision's snapshot, with what the project's snapshot knows of its texts."""
    pending = {path: Mark(ours=True, sequence=0, size=0) for path in files}
    return RevisionSnapshot(
        project.root, table, None, pending, project.max_size, parsed=False, contents=files, blobs=blobs
    )
