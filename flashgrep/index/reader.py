"""Reading the index: what every store can be asked (``TextIndex``), and ours, which never waits for the writer.

Nothing that an index says is believed in an answer. ``candidates`` may name texts that do not match, never leave one
out that does; each proposed text is read and matched by ``search``, so all stores give the same hits.
"""

import contextlib
import sqlite3
import time
from array import array
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from flashgrep.damage import Damaged
from flashgrep.index import chunks, kept, schema, symbols
from flashgrep.index.chunks import StoredChunk
from flashgrep.index.evaluate import evaluate, join_segments
from flashgrep.index.kept import KnownTexts, read_known
from flashgrep.index.schema import LateStage
from flashgrep.index.segments import Kind, block_of, lists_of, segments
from flashgrep.index.sieve import apply_filters, drop_wordless
from flashgrep.index.table import FileRow, TextIds
from flashgrep.index.vectors import row_type
from flashgrep.index.words import names_of
from flashgrep.pattern import ANYTHING, NOTHING, GramExpr


class TextIndex(Protocol):
    """The texts of a project by number, as one state of an index knows them; safe from any thread."""

    @property
    def identity(self) -> object:
        """What tells this index from another one, whose numbers mean something else."""

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the texts that may match, ascending; None: no text is excluded."""

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:
        """Return those of some texts, ascending, that may have each identifier of ``text``, whole, ASCII case aside."""

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts that define a name or one that begins with it, ASCII case aside, ascending."""

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names that begin so and are defined in texts ``among`` these, in lower case and order."""

    def packed_symbols(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return texts' rows of symbols, to be read by ``symbols.read_row``; texts without one are left out."""

    def chunks_of_texts(self, text_ids: Collection[int]) -> Mapping[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; those whose chunks are not stored are left out."""

    def find_cut(self) -> Collection[bytes]:
        """Return the project's files whose text may end before they do, at a NUL byte."""


Identity = tuple[tuple[int, int] | None, ...]
"""Device and inode of a database, and of its log."""

REMEMBERED = 128
"""Expressions whose candidates are kept, at most 1 MB in all."""

MOST_REMEMBERED = 1000

FEW_TEXTS = 8
"""So few candidates are read in the time that telling which of them have a word takes."""

MOST_SECONDS = 30.0
"""Processor time of one lookup; the longest, of all files of a large tree, takes about two."""
LOOK_INSTRUCTIONS = 1_000_000
"""SQLite's instructions between looks at the clock: some 10 ms."""


class IndexSize(NamedTuple):
    """What a store holds of one project; segments, sizes and the generation are those of the whole store."""

    files: int
    texts: int
    lines: int
    segments: int
    generation: int
    gram_bytes: int
    file_bytes: int
    chunks: int
    vector_bytes: int
    """Size of the vectors, which lie in a file of their own."""
    projects: int
    """How many projects share the store."""
    shared_texts: int
    shared_bytes: int
    """Texts of the project that others have, too, and their size."""
    revision_texts: int
    revision_bytes: int
    """Texts that are there for revisions alone, and their size."""


NOTHING_STORED = IndexSize(*[0] * len(IndexSize._fields))


class Reader:
    """A pool of read-only connections to a store, for one of its projects; every lookup is safe from any thread."""

    def __init__(self, file: Path, root: bytes, *, seconds: float = MOST_SECONDS) -> None:
        """``root``: the project's. ``seconds``: processor time a lookup may take; none of a sound index is so long."""
        self.file = file
        self.root = root
        self._seconds = seconds
        # A deque's ends are safe from any thread: lookups borrow connections without a lock.
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        # By expression, with the generation it was answered at; an answer of an older one is never used.
        self._known: dict[GramExpr, tuple[int, TextIds | None]] = {}
        self._cut: tuple[int, list[bytes]] = -1, []
        self._is_sound = False
        """Whether it was looked at for damage, and there is none."""
        connection = schema.connect(file)
        # After connecting: that may make the log, whose inode counts, too.
        self.identity = identity_of(file)
        self._put_back(connection)

    def is_replaced(self) -> bool:
        """Return whether the file, or its log, is not the one that is open here: its numbers mean something else."""
        return identity_of(self.file) != self.identity

    def close(self) -> None:
        """Close the idle connections, and the busy ones as they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def shrink(self) -> None:
        """Close the idle connections but one: as many as lookups ever ran at once are open, with 4 MB each."""
        while len(self._idle) > 1:  # the log stays the one that ``identity`` tells as long as one connection is open
            with contextlib.suppress(IndexError):  # lookups in threads take them meanwhile
                self._idle.popleft().close()
        with contextlib.suppress(IndexError):
            last = self._idle.pop()
            last.execute("PRAGMA shrink_memory")
            self._put_back(last)

    def _put_back(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside one read transaction.

        Raises:
            Damaged: what was read is not what was written.
            Unreadable: it is, but made no sense.

        """
        try:
            connection = self._idle.pop()
        except IndexError:
            # A new connection would read another database than those of the pool, whose numbers mean something else.
            if self.is_replaced():
                raise Damaged("the database was deleted or replaced") from None
            connection = schema.connect(self.file)
        # Processor time, not the clock: a loaded machine must not make a sound index look damaged.
        until = time.thread_time() + self._seconds
        connection.set_progress_handler(lambda: time.thread_time() > until, LOOK_INSTRUCTIONS)
        try:
            with schema.transaction(connection, "DEFERRED"):
                yield connection
        except (sqlite3.DatabaseError, *schema.MISREAD) as error:
            problem = schema.judge(connection, error, sound=self._is_sound)
            self._is_sound |= isinstance(problem, schema.Unreadable)
            raise problem from error
        finally:
            self._put_back(connection)

    def generation(self) -> int:
        """Return how many batches have been stored."""
        with self.transaction() as connection:
            return int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])

    def files(self) -> Iterator[FileRow]:
        """Yield the project's files, by path.

        Raises:
            Damaged: a row has not its checksum or, after the last one, a text lies in no segment.

        """
        with self.transaction() as connection:
            project, text_ids = schema.find_project(connection, self.root), array("q")
            for row in connection.execute(
                "SELECT path, text_id, skip, size, mtime_ns, ctime_ns, inode, checksum FROM path "
                "WHERE project = ? ORDER BY path",
                [project],
            ):
                if schema.row_checksum(project, row[0], row[1], row[3], row[4], row[5]) != row[7]:
                    raise Damaged("a path's row")
                if not row[2]:
                    text_ids.append(row[1])
                yield FileRow(*row[:7])
            _check_coverage(connection, text_ids)

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the texts that may match, of any project, ascending; None: no text is excluded."""
        if expression == ANYTHING:
            return None
        if expression == NOTHING:
            return np.empty(0, np.int64)
        with self.transaction() as connection:
            # In the same transaction as the postings: the indexer may commit between two.
            generation = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
            known = self._known.get(expression)
            if known is not None and known[0] == generation:
                return known[1]
            # Segments cover distinct texts, so each is asked alone and the answers are put together.
            rows = segments(connection, Kind.GRAMS)
            found = join_segments([evaluate(expression, row, _Lists(connection, row.id)) for row in rows])
        # Remembered until the index changes: agents page, and ask again after looking elsewhere.
        if found is None or len(found) <= MOST_REMEMBERED:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[expression] = (generation, found)
        return found

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:
        """Return those of some texts, ascending, that may have each identifier of ``text``, whole, ASCII case aside."""
        names = names_of(text)
        if not names or not len(text_ids):
            return text_ids
        with self.transaction() as connection:
            text_ids = apply_filters(connection, text_ids, names)  # reading one of these may take 40 ms
            return text_ids if len(text_ids) < FEW_TEXTS else drop_wordless(connection, text_ids, names)

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts, of any project, that define a name or one that begins with it, ASCII case aside."""
        with self.transaction() as connection:
            return symbols.defining(connection, name, prefix=prefix)

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names that begin so and are defined in texts ``among`` these, in lower case and order."""
        with self.transaction() as connection:
            return symbols.defined_names(connection, among, start, limit)

    def packed_symbols(self, text_ids: Collection[int]) -> dict[int, bytes]:
        """Return texts' rows of symbols, to be read by ``symbols.read_row``; texts without one are left out."""
        with self.transaction() as connection:
            return symbols.packed_of(connection, text_ids)

    def chunks_of_texts(self, text_ids: Collection[int]) -> dict[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; those whose chunks are not stored are left out."""
        with self.transaction() as connection:
            return chunks.chunks_of_texts(connection, text_ids)

    def find_cut(self) -> list[bytes]:
        """Return the project's files whose text may end before they do, at a NUL byte: its size tells, or UTF-16."""
        with self.transaction() as connection:
            generation = connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0]
            if self._cut[0] != generation:
                rows = connection.execute(
                    "SELECT path FROM path JOIN text ON text.id = text_id "
                    # Only the very bytes of a file have git's name (``blob``); a text decoded from UTF-16 has none.
                    "WHERE project = ? AND (path.size != text.size OR blob IS NULL)",
                    [schema.find_project(connection, self.root)],
                )
                self._cut = generation, [path for (path,) in rows]
            return self._cut[1]

    def seal(self) -> tuple[int, ...]:
        """Return what changes whenever texts are added, kept or dropped: the generation, and the list of segments."""
        with self.transaction() as connection:
            # A merge may drop texts and leaves the generation as it is; the checksum of the list of segments it
            # changes.
            rows = connection.execute("SELECT value FROM meta WHERE key IN ('generation', 'segments') ORDER BY key")
            return tuple(int(row[0]) for row in rows)

    def known_texts(self) -> KnownTexts:
        """Return what is known of contents by git's names of them; every text is verified to lie in a segment."""
        with self.transaction() as connection:
            known = read_known(connection)
            _check_coverage(connection, known.text_ids.values())
            return known

    def done(self, embedding: str) -> set[LateStage]:
        """Return which late stages have reached every text of the project, vectors with these settings."""
        with self.transaction() as connection:
            project = schema.find_project(connection, self.root)
            left: dict[LateStage, int] = {
                "symbols": symbols.count_to_parse(connection, project).texts,
                "chunks": chunks.count_to_chunk(connection, project).texts,
                "vectors": chunks.count_to_embed_with(connection, project, embedding),
            }
        found = set()
        for stage, texts in left.items():
            # Each stage is built on the one before, so a later one that seems complete says nothing.
            if texts:
                break
            found.add(stage)
        return found

    def size(self) -> IndexSize:
        """Return what the index holds now."""
        with self.transaction() as connection:
            one = connection.execute
            project = schema.find_project(connection, self.root)
            files, texts = one(
                "SELECT count(*), count(DISTINCT text_id) FROM path WHERE project = ? AND skip = ''", [project]
            ).fetchone()
            lines, shared_texts, shared_bytes = one(
                "SELECT total(lines), total(shared), total(shared * size) FROM (SELECT lines, size, "
                "id IN (SELECT text_id FROM path WHERE project != :own) AS shared "
                "FROM text WHERE id IN (SELECT text_id FROM path WHERE project = :own))",
                {"own": project},
            ).fetchone()
            vectors = sum(one.rows * row_type(one.dims).itemsize for one in chunks.vector_sets(connection))
            rows = segments(connection, Kind.GRAMS)
            pages, page_size = one("PRAGMA page_count").fetchone()[0], one("PRAGMA page_size").fetchone()[0]
            return IndexSize(
                files,
                texts,
                int(lines),
                len(rows),
                one("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0],
                sum(row.bytes for row in rows),
                pages * page_size,
                chunks.total(connection, project),
                vectors,
                one("SELECT count(*) FROM project").fetchone()[0],
                int(shared_texts),
                int(shared_bytes),
                *kept.count(connection),
            )


def identity_of(file: Path) -> Identity:
    """Return which files the database and its log are; the log is one and the same for as long as anybody reads."""
    return _device_and_inode(file, least=1), _device_and_inode(file.with_name(f"{file.name}-wal"), least=0)


def _device_and_inode(file: Path, least: int) -> tuple[int, int] | None:
    """Return what tells a file from others; None where none is of this many bytes."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size >= least else None


def _check_coverage(connection: sqlite3.Connection, text_ids: Iterable[int]) -> None:
    """Raise Damaged where a text lies in no segment: it would never be a candidate."""
    numbers = np.unique(np.fromiter(text_ids, np.int64))
    covered = np.zeros(len(numbers), bool)
    for segment in segments(connection, Kind.GRAMS):
        low, high = np.searchsorted(numbers, [segment.first, segment.last + 1])
        covered[low:high] = True
    if not covered.all():
        raise Damaged("a text without postings")


@dataclass(frozen=True, slots=True)
class _Lists:
    """The lists of a segment's grams."""

    connection: sqlite3.Connection
    segment: int

    def find(self, gram: int) -> memoryview:
        block = block_of(self.connection, self.segment, gram)
        start, end = block.span(gram)
        return block.payload[start:end]

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        return (span for _, span in lists_of(self.connection, self.segment, first, last))
