"""A revision of a team's repository as a question sees it: its files, with texts in PostgreSQL."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar, cast

import numpy as np

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Unavailable
from flashgrep.base.model import Document, FileStat, Skipped, SkipReason, path_to_text
from flashgrep.files.extract import extract
from flashgrep.index.table import FileTable, TextIds
from flashgrep.parts.git.program import Object
from flashgrep.parts.team.store_connection import Credentials, QueryConnection, Store
from flashgrep.parts.team.text_reader import IndexState, TextReader
from flashgrep.parts.team.tree_listing import Listing
from flashgrep.pattern import GramExpr
from flashgrep.search.snapshot import SIZE, TEXT_ID, Snapshot

RETRIES: Final = 2
KEPT_BYTES: Final = 256 << 20
"""Bound on cached contents of all repositories."""
AHEAD: Final = 48
AHEAD_BYTES: Final = 2 << 20
"""Contents of the next candidates are fetched together: most are read, and a round trip costs more than the data."""
AWAY: Final = Skipped("unreadable", "its part of the store does not answer")
Key = tuple[int, int]
"""A repository and a text's number in it."""
ContentCache: TypeAlias = BoundedCache[Key, bytes]
"""Contents by repository and text."""
ResultT = TypeVar("ResultT")


class StoreAccess:
    """One call's access to the store: each thread's connection, and the shards that did not answer."""

    def __init__(self, store: Store, credentials: Credentials) -> None:
        self._store = store
        self._credentials = credentials
        self._own = threading.local()
        self.unreached: set[str] = set()

    @contextmanager
    def read(self) -> Iterator[QueryConnection]:
        """Lend this thread's connection; nested reads share it."""
        connection: QueryConnection | None = getattr(self._own, "reading", None)
        # Shared, so that a lookup never waits for a second connection while it holds
        # one.
        if connection is not None:
            yield connection
            return
        with self._store.read(self._credentials) as reading:
            self._own.reading = reading
            try:
                yield reading
            finally:
                # Back to the pool at once: other calls may wait for it.
                self._own.reading = None
                self.unreached.update(reading.name_missing())


class _TrackingReader(TextReader):
    """Remembers its last candidates, which are read next."""

    proposed: TextIds | None = None

    def candidates(self, expression: GramExpr) -> TextIds | None:
        self.proposed = super().candidates(expression)
        return self.proposed


@dataclass(frozen=True, slots=True)
class TeamSnapshot(Snapshot):
    """A snapshot of a revision."""

    texts: "RevisionTexts | None" = None

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's size from the table, and 0 for its time: a revision never changes."""
        at = self.table.find(path)
        if at is None:
            return None
        return (int(self.table.columns[at, SIZE]), 0)

    def read_with_stat(
        self, path: bytes
    ) -> tuple[FileStat | None, Document | Skipped | None]:
        """Read a file of the revision."""
        checkpoint()
        at = self.table.find(path)
        if at is None or self.texts is None:
            return None, None
        size = int(self.table.columns[at, SIZE])
        stat = FileStat(size, 0, 0, 0)
        if path in self.table.skipped:
            return stat, Skipped(cast("SkipReason", self.table.skipped[path]))
        if size > self.max_size:
            return stat, Skipped("too_large", f"{size} bytes")
        content = self.texts.read(at)
        return stat, AWAY if content is None else extract(content)


class RevisionTexts:
    """Contents of a revision's files, by place in its table."""

    def __init__(
        self, table: FileTable, reader: _TrackingReader, contents: ContentCache
    ) -> None:
        self._table = table
        self._reader = reader
        self._contents = contents

    def read(self, at: int) -> bytes | None:
        """Return a content, and fetch those of the next candidates with it; None: its shard does not answer."""
        repository = self._reader.state.repository
        text_id = int(self._table.columns[at, TEXT_ID])
        content = self._contents.find((repository, text_id))
        if content is not None:
            return content
        fetched = self._reader.contents(self.choose(at, text_id))
        for number, data in fetched.items():
            self._contents.put((repository, number), len(data), data)
        return fetched.get(text_id)

    def choose(self, at: int, text_id: int) -> list[int]:
        """Return a text, and those of the next candidates that are not cached, within ``AHEAD`` and ``AHEAD_BYTES``."""
        proposed = self._reader.proposed
        columns = self._table.columns
        if proposed is None:
            # No candidates: every file is read, in the order of paths.
            places = np.arange(at, min(at + AHEAD, len(self._table)))
        else:
            places = self._table.places(proposed)
            first = int(np.searchsorted(places, at))
            places = places[first : first + AHEAD]
        places = places[columns[places, TEXT_ID] > 0]
        # The requested file itself is added below, whatever its size.
        places = places[np.cumsum(columns[places, SIZE]) < AHEAD_BYTES]
        repository = self._reader.state.repository
        ahead = {
            number
            for number in columns[places, TEXT_ID].tolist()
            if self._contents.find((repository, number)) is None
        }
        return sorted({text_id, *ahead})


class TeamFiles:
    """The files of a revision in the store; implements ``parts.git.revisions.RevisionFiles``."""

    is_stored = True

    def __init__(
        self,
        listing: Listing,
        load: Callable[[bool], IndexState],
        store_access: StoreAccess,
        contents: ContentCache,
    ) -> None:
        """``load``: returns the repository's index; True makes it read the index again."""
        self.files = listing.files
        self.table = listing.table
        self._load = load
        self._store_access = store_access
        self._contents = contents

    @property
    def unreached(self) -> Sequence[str]:
        """Names of the shards that have not answered."""
        return sorted(self._store_access.unreached)

    def ask(
        self,
        project: Snapshot,
        ask: Callable[[Snapshot], ResultT],
        *,
        symbols: bool = True,  # noqa: ARG002 - what all revisions take
    ) -> ResultT:
        """Run a lookup on the revision.

        Raises:
            Unavailable: store_damaged, stored data is missing or broken; database_away.

        """
        for attempt in range(RETRIES):
            # A worker may merge segments while this question reads them; the second
            # attempt reads their list again.
            state = self._load(attempt > 0)
            reader = _TrackingReader(state, self._store_access.read)
            texts = RevisionTexts(self.table, reader, self._contents)
            last = int(self.table.columns[:, TEXT_ID].max(initial=0))
            snapshot = TeamSnapshot(
                project.root, self.table, reader, {}, project.max_size,
                parsed=state.parsed_to >= last, parsed_to=state.parsed_to, texts=texts,
            )  # fmt: skip
            try:
                with self._store_access.read():  # one connection for the whole lookup
                    return ask(snapshot)
            except Damaged as damage:  # or segments have just been merged
                if attempt == RETRIES - 1:
                    raise Unavailable(
                        f"the team's store is damaged: {damage}", reason="store_damaged"
                    ) from damage
        raise AssertionError

    def take_foreign(
        self,
        project: Snapshot,  # noqa: ARG002 - as above
        *,
        symbols: bool,  # noqa: ARG002 - as above
    ) -> list[tuple[bytes, bytes]]:
        """Return nothing: the store has all texts."""
        return []

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file, without data if it is longer than ``most``.

        Raises:
            Unavailable: not_stored, the file is not text; shard_away.

        """
        at = self.table.find(path)
        if at is None or path in self.table.skipped:
            why = self.table.skipped.get(path, "gone")
            raise Unavailable(
                f"not stored: {path_to_text(path)} ({why})", reason="not_stored"
            )
        size = int(self.table.columns[at, SIZE])
        if size > most:
            return Object(blob, b"blob", size, None)
        content = RevisionTexts(
            self.table,
            _TrackingReader(self._load(False), self._store_access.read),
            self._contents,
        ).read(at)
        if content is None:
            message = (
                f"a part of the store does not answer: {', '.join(self.unreached)}"
            )
            raise Unavailable(message, reason="shard_away")
        return Object(blob, b"blob", size, content)
