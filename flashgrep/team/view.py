"""A repository of the team as a question sees it: a revision's files, whose texts lie in PostgreSQL."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar, cast

import numpy as np

from flashgrep.checkpoint import checkpoint
from flashgrep.damage import Damaged
from flashgrep.errors import Unavailable
from flashgrep.git.program import Object
from flashgrep.index.table import FileTable, TextIds
from flashgrep.ingest.extract import extract
from flashgrep.model import Document, FileStat, Skipped, SkipReason, path_to_text
from flashgrep.pattern import GramExpr
from flashgrep.search.snapshot import SIZE, TEXT_ID, Snapshot
from flashgrep.team.store_connection import Reading, Shown, Store
from flashgrep.team.text_reader import IndexState, TextReader
from flashgrep.team.tree_listing import Listing

RETRIES: Final = 2
KEPT_BYTES: Final = 256 << 20
"""Of contents read last, of all repositories together."""
AHEAD: Final = 48
AHEAD_BYTES: Final = 2 << 20
"""Contents of the files proposed next are fetched together: a question reads most of them, and asking takes longer."""
AWAY: Final = Skipped("unreadable", "its part of the store does not answer")
Key = tuple[int, int]
"""A repository and a text's number in it."""
ResultT = TypeVar("ResultT")


class Contents:
    """Contents read last, by repository and text; safe from any thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Key) -> bytes | None:
        """Return a content, if it is kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: Key, content: bytes) -> None:
        """Keep a content, and let go of those used longest ago."""
        with self._lock:
            self._bytes += len(content) - len(self._kept.pop(key, b""))
            self._kept[key] = content
            while self._bytes > KEPT_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1])


class Asking:
    """One call's way to the store: each thread's connection, and the shards that did not answer the call."""

    def __init__(self, store: Store, shown: Shown) -> None:
        self._store = store
        self._shown = shown
        self._own = threading.local()
        self.unreached: set[str] = set()

    @contextmanager
    def read(self) -> Iterator[Reading]:
        """Lend this thread's connection, one for all that it reads at a time."""
        known: Reading | None = getattr(self._own, "reading", None)
        # Reading inside reading shares the connection: one lookup never waits for a second one while it holds the
        # first.
        if known is not None:
            yield known
            return
        with self._store.read(self._shown) as reading:
            self._own.reading = reading
            try:
                yield reading
            finally:
                # Lent, not owned: other calls wait for it.
                self._own.reading = None
                self.unreached.update(reading.name_missing())


class _Proposing(TextReader):
    """Notes which texts it has proposed last: they are read next."""

    proposed: TextIds | None = None

    def candidates(self, expression: GramExpr) -> TextIds | None:
        self.proposed = super().candidates(expression)
        return self.proposed


@dataclass(frozen=True, slots=True)
class TeamSnapshot(Snapshot):
    """A revision as one question sees it."""

    texts: "RevisionTexts | None" = None

    def version(self, path: bytes) -> tuple[int, int] | None:
        """Return a file's size, as the table has it, and no time: nothing changes in a revision."""
        at = self.table.find(path)
        return None if at is None else (int(self.table.columns[at, SIZE]), 0)

    def read_with_stat(self, path: bytes) -> tuple[FileStat | None, Document | Skipped | None]:
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
    """Contents of a revision's files, by their places in its table."""

    def __init__(self, table: FileTable, reader: _Proposing, contents: Contents) -> None:
        self._table = table
        self._reader = reader
        self._contents = contents

    def read(self, at: int) -> bytes | None:
        """Return a content, fetching those of the files proposed next with it; None: its shard does not answer."""
        repository, text_id = self._reader.state.repository, int(self._table.columns[at, TEXT_ID])
        content = self._contents.find((repository, text_id))
        if content is not None:
            return content
        fetched = self._reader.contents(self.choose(at, text_id))
        for number, data in fetched.items():
            self._contents.keep((repository, number), data)
        return fetched.get(text_id)

    def choose(self, at: int, text_id: int) -> list[int]:
        """Return a text, and those of the files after it that were proposed, as far as they are few and small."""
        proposed, columns = self._reader.proposed, self._table.columns
        if proposed is None:
            # Nothing was proposed, so every file is read in the order of paths.
            places = np.arange(at, min(at + AHEAD, len(self._table)))
        else:
            places = self._table.places(proposed)
            first = int(np.searchsorted(places, at))
            places = places[first : first + AHEAD]
        places = places[columns[places, TEXT_ID] > 0]
        # The file that is asked for is added below whatever its size is.
        places = places[np.cumsum(columns[places, SIZE]) < AHEAD_BYTES]
        repository = self._reader.state.repository
        ahead = {
            number for number in columns[places, TEXT_ID].tolist() if self._contents.find((repository, number)) is None
        }
        return sorted({text_id, *ahead})


class TeamFiles:
    """The files of a revision whose texts are in the store; ``workspace.revisions.RevisionFiles``."""

    is_stored = True

    def __init__(
        self, listing: Listing, load: Callable[[bool], IndexState], asking: Asking, contents: Contents
    ) -> None:
        """``load``: returns the repository's index, read again if it is told so."""
        self.files = listing.files
        self.table = listing.table
        self._load = load
        self._asking = asking
        self._contents = contents

    @property
    def unreached(self) -> Sequence[str]:
        """Shards that have not answered."""
        return sorted(self._asking.unreached)

    def ask(self, project: Snapshot, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True) -> ResultT:  # noqa: ARG002 - what all revisions take
        """Ask the revision.

        Raises:
            Unavailable: store_damaged, what was read is not what was written; database_away.

        """
        for attempt in range(RETRIES):
            # A worker may merge segments while this question reads them; read again, the list names what is there now.
            state = self._load(attempt > 0)
            reader = _Proposing(state, self._asking.read)
            texts = RevisionTexts(self.table, reader, self._contents)
            last = int(self.table.columns[:, TEXT_ID].max(initial=0))
            snapshot = TeamSnapshot(
                project.root, self.table, reader, {}, project.max_size,
                parsed=state.parsed_to >= last, parsed_to=state.parsed_to, texts=texts,
            )  # fmt: skip
            try:
                with self._asking.read():  # one connection for all of it
                    return ask(snapshot)
            except Damaged as damage:  # segments may have been merged just now
                if attempt == RETRIES - 1:
                    raise Unavailable(f"the team's store is damaged: {damage}", reason="store_damaged") from damage
        raise AssertionError

    def take_foreign(self, project: Snapshot, *, symbols: bool) -> list[tuple[bytes, bytes]]:  # noqa: ARG002 - as above
        """Return nothing: all texts are stored."""
        return []

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file, without its data if that is longer than ``most``.

        Raises:
            Unavailable: not_stored, it is not text; shard_away.

        """
        at = self.table.find(path)
        if at is None or path in self.table.skipped:
            why = self.table.skipped.get(path, "gone")
            raise Unavailable(f"not stored: {path_to_text(path)} ({why})", reason="not_stored")
        size = int(self.table.columns[at, SIZE])
        if size > most:
            return Object(blob, b"blob", size, None)
        content = RevisionTexts(self.table, _Proposing(self._load(False), self._asking.read), self._contents).read(at)
        if content is None:
            message = f"a part of the store does not answer: {', '.join(self.unreached)}"
            raise Unavailable(message, reason="shard_away")
        return Object(blob, b"blob", size, content)
