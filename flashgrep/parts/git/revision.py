"""A project as of a revision: a file table like any other, with contents read from git's objects."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import name_class
from flashgrep.base.model import Document, FileStat, Skipped
from flashgrep.files.extract import extract
from flashgrep.index.kept import IndexedTexts
from flashgrep.index.reader import Reader
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.parts.git.program import Object
from flashgrep.parts.git.repository import Files, Repository
from flashgrep.search.snapshot import SIZE, TEXT_ID, Snapshot

KEPT_BYTES = 64 << 20
"""Most bytes of recently read texts: a repeated question, or its next page, reads most of them again."""
RETRIES = 2
ALL_PARSED = sys.maxsize
KEEP_SECONDS = 3600.0
"""How often the texts of a revision in use are handed over again, which restarts the time for which they are kept."""
MOST_PENDING = 100
"""With more unindexed files than this in the work tree, it is unknown which contents only the revision has."""
ResultT = TypeVar("ResultT")


class Blobs:
    """A repository's contents as texts; recently read ones are kept. Thread-safe."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._kept = BoundedCache[bytes, Document | Skipped](KEPT_BYTES)

    def read(self, path: bytes, blob: bytes, max_size: int) -> Document | Skipped:
        """Return the text of a file, or why it has none; raises as ``Repository.read``."""
        document = self._kept.find(blob)
        if document is None or (
            isinstance(document, Document) and len(document.data) > max_size
        ):
            content = self.repository.read(path, blob, max_size)
            if content.data is None:
                return Skipped("too_large", f"{content.size} bytes")
            document = extract(content.data)
            self._kept.put(
                blob,
                len(document.data) if isinstance(document, Document) else 0,
                document,
            )
        return document


@dataclass(frozen=True, slots=True)
class RevisionSnapshot(Snapshot):
    """A revision as one question sees it. Files that are not in the index are pending, and read from git's objects."""

    contents: Files = field(default_factory=dict)
    blobs: Blobs | None = None

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's size and time from the table: nothing changes in a revision."""
        at = self.table.find(path)
        if at is None:
            return None
        return (int(self.table.columns[at, SIZE]), 0)

    def read_with_stat(
        self, path: bytes
    ) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file of the revision."""
        checkpoint()
        version = self.version(path)
        if version is None or self.blobs is None:
            return None, None
        if version[0] > self.max_size:  # git would print the whole file
            return FileStat(*version, 0, 0), Skipped("too_large", f"{version[0]} bytes")
        return FileStat(*version, 0, 0), self.blobs.read(
            path, self.contents[path].blob, self.max_size
        )


class RevisionState(NamedTuple):
    """What one state of the index knows about a revision's files."""

    key: tuple[object, ...]
    """Identifies the state."""
    table: FileTable
    pending: dict[bytes, Mark]
    parsed_to: int
    """As ``Snapshot.parsed_to``; ``ALL_PARSED`` if all texts have their symbols."""
    foreign: list[tuple[bytes, bytes]]
    """Contents, by git's object name and a path, that no file in the work tree has."""


class RevisionTable:
    """The file table of a revision, combined with what the index knows about the texts."""

    unreached: Sequence[str] = ()
    """Git's objects are all here."""
    is_stored = False

    def __init__(self, files: Files, blobs: Blobs) -> None:
        self.files = files
        self.blobs = blobs
        self.table = FileTable.of(
            [
                FileRow(path, 0, "", max(0, file.size), 0, 0, 0)
                for path, file in files.items()
            ]
        )
        self._names = [
            (bytes.fromhex(file.blob.decode("ascii")), name_class(path))
            for path, file in files.items()
        ]
        self._known: dict[bool, RevisionState] = {}
        self._kept: dict[bool, tuple[object, float]] = {}
        """For which index foreign texts were last handed out, and when."""

    def ask(
        self,
        project: Snapshot,
        ask: Callable[[Snapshot], ResultT],
        *,
        symbols: bool = True,
    ) -> ResultT:
        """Ask the revision; ``project``: the project's current state, whose index may have the same texts.

        ``symbols``: texts that have not been parsed count as unknown, if the project's own have been.
        Texts that no file has any more may be dropped during the question. It is then asked again, and finally without
        the index.
        """
        reader = project.own_index
        for _ in range(RETRIES if reader is not None else 0):
            assert reader is not None  # noqa: S101 - mypy
            seal = reader.seal()
            result = ask(self._snapshot(project, reader, seal, symbols=symbols))
            if reader.seal() == seal:
                return result
        return ask(self._snapshot(project, None, (), symbols=symbols))

    def take_foreign(
        self, project: Snapshot, *, symbols: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return contents to keep after such a question: from time to time, those that the work tree lacks."""
        table = self._known.get(symbols)
        index = project.own_index and project.own_index.identity
        kept_for, until = self._kept.get(symbols, (None, 0.0))
        now = time.monotonic()
        if (
            table is None
            or len(project.pending) > MOST_PENDING
            or (kept_for == (index,) and now < until)
        ):
            return []
        self._kept[symbols] = (index,), now + KEEP_SECONDS
        return table.foreign

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file; raises as ``Repository.read``."""
        return self.blobs.repository.read(path, blob, most)

    def _snapshot(
        self,
        project: Snapshot,
        reader: Reader | None,
        seal: tuple[int, ...],
        *,
        symbols: bool,
    ) -> RevisionSnapshot:
        revision_state = self._known.get(symbols)
        key = (reader and reader.identity, seal, project.parsed)
        if revision_state is None or revision_state.key != key:
            if reader:
                text_ids, skips, unparsed = reader.known_texts()
            else:
                text_ids, skips, unparsed = IndexedTexts({}, {}, set())
            found_text_ids = [text_ids.get(name, 0) for name in self._names]
            if symbols and project.parsed:
                found_text_ids = [
                    0 if text_id in unparsed else text_id for text_id in found_text_ids
                ]
            columns = self.table.columns.copy()
            columns[:, TEXT_ID] = found_text_ids
            own = np.isin(columns[:, TEXT_ID], project.table.columns[:, TEXT_ID]) & (
                columns[:, TEXT_ID] > 0
            )
            mark = Mark(ours=True, sequence=0, size=0)
            skipped = dict[bytes, str]()
            pending = dict[bytes, Mark]()
            foreign = list[tuple[bytes, bytes]]()
            rows = zip(
                self.files.items(),
                self._names,
                found_text_ids,
                own.tolist(),
                strict=True,
            )
            for (path, file), name, text_id, is_own in rows:
                if name in skips:
                    skipped[path] = skips[name]
                elif not text_id:
                    pending[path] = mark
                if not is_own and file.size <= project.max_size:
                    foreign.append((file.blob, path))
            first = min(
                (text_id for text_id in found_text_ids if text_id in unparsed),
                default=ALL_PARSED + 1,
            )
            table = FileTable(self.table.paths, columns, skipped)
            revision_state = self._known[symbols] = RevisionState(
                key, table, pending, first - 1 if reader else 0, foreign
            )
        return RevisionSnapshot(
            project.root, revision_state.table, reader, revision_state.pending, project.max_size,
            parsed=reader is not None and revision_state.parsed_to == ALL_PARSED, parsed_to=revision_state.parsed_to,
            contents=self.files, blobs=self.blobs,
        )  # fmt: skip
