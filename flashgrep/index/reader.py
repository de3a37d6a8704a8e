"""Reading an index: the interface of every store (``TextIndex``), and our reader, which never waits for the writer.

An answer never relies on an index alone. ``candidates`` may include texts that do not match, but never leaves out one
that does; ``search`` reads and matches each candidate, so all stores give the same hits.
"""

import contextlib
import sqlite3
import time
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.damage import Damaged
from flashgrep.index import kept, schema
from flashgrep.index.evaluate import evaluate, join_segments
from flashgrep.index.kept import IndexedTexts, read_known
from flashgrep.index.schema import LateStage
from flashgrep.index.segments import Kind, block_of, lists_of, segments
from flashgrep.index.stage import RowsKey, RowsT, Stage
from flashgrep.index.table import FileRow, TextIds
from flashgrep.pattern import ANYTHING, NOTHING, GramExpr


class TextIndex(Protocol):
    """The texts of a project by number, in one state of an index; thread-safe."""

    @property
    def identity(self) -> object:
        """Distinguishes this index from others, whose numbers mean something else."""

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the texts that may match, ascending; None: no text is excluded."""

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:
        """Return those texts, ascending, that may have each identifier of ``text`` as a word, in any ASCII case."""

    def rows(self, key: RowsKey[RowsT]) -> RowsT:
        """Return what reads the rows of a part."""

    def find_cut(self) -> Collection[bytes]:
        """Return the project's files whose text may end at a NUL byte, before the file does."""


Identity = tuple[tuple[int, int] | None, ...]
"""Device and inode of a database and of its write-ahead log."""

MOST_REMEMBERED, LONGEST_REMEMBERED = 1 << 20, 1 << 18
"""Bytes of candidates cached, in all and of one expression."""
EXPRESSION_BYTES = 1 << 10
"""What an expression takes itself, about."""

MOST_SECONDS = 30.0
"""Limit of processor time for one lookup; the longest one, of all files of a large tree, takes about two seconds."""
LOOK_INSTRUCTIONS = 1_000_000
"""SQLite checks that limit after this many instructions: about every 10 ms."""


class IndexSize(NamedTuple):
    """What a store holds for one project; segments, sizes and the generation are of the whole store."""

    files: int
    texts: int
    lines: int
    segments: int
    generation: int
    gram_bytes: int
    file_bytes: int
    chunks: int
    vector_bytes: int
    """Size of the vectors, which are in separate files."""
    projects: int
    """How many projects share the store."""
    shared_texts: int
    shared_bytes: int
    """Texts of the project that other projects have too, and their size."""
    revision_texts: int
    revision_bytes: int
    """Texts kept only for revisions, and their size."""


NOTHING_STORED = IndexSize(*[0] * len(IndexSize._fields))


class Reader:
    """A pool of read-only connections to a store, for one of its projects; every lookup is safe from any thread."""

    def __init__(
        self,
        file: Path,
        root: bytes,
        stages: Sequence[Stage] = (),
        *,
        seconds: float = MOST_SECONDS,
    ) -> None:
        """``root``: of the project. ``seconds``: processor time a lookup may take; a sound index never needs it."""
        self.file = file
        self.stages = stages
        """The late stages that parts make, in their order."""
        self.root = root
        self._seconds = seconds
        # Both ends of a deque are thread-safe, so lookups borrow connections without a
        # lock.
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        # Candidates by expression, with their generation; those of an older generation
        # are never used.
        self._known = BoundedCache[GramExpr, tuple[int, TextIds | None]](
            MOST_REMEMBERED, LONGEST_REMEMBERED
        )
        self._cut: tuple[int, list[bytes]] = -1, []
        self._is_sound = False
        """Whether the database was checked for damage and found sound."""
        connection = schema.connect(file)
        # After connecting, which may create the log: its inode is part of the identity.
        self.identity = identity_of(file)
        self._put_back(connection)

    def is_replaced(self) -> bool:
        """Return whether the database or its log was replaced since it was opened: the numbers in it differ then."""
        return identity_of(self.file) != self.identity

    def close(self) -> None:
        """Close the idle connections now, and busy ones when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def shrink(self) -> None:
        """Close all idle connections but one. The pool grows to the most lookups ever run at once, at 4 MB each."""
        while (
            len(self._idle) > 1
        ):  # one stays open, so that SQLite keeps the log that ``identity`` names
            with contextlib.suppress(
                IndexError
            ):  # lookups in other threads may take them meanwhile
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
            Damaged: what was read is not as written.
            Unreadable: the database is sound, but what was read made no sense.

        """
        try:
            connection = self._idle.pop()
        except IndexError:
            # A new connection would open the new database, in which the numbers mean
            # something else.
            if self.is_replaced():
                raise Damaged("the database was deleted or replaced") from None
            connection = schema.connect(self.file)
        # Processor time, not elapsed time: a loaded machine must not make a sound index
        # look damaged.
        until = time.thread_time() + self._seconds
        connection.set_progress_handler(
            lambda: time.thread_time() > until, LOOK_INSTRUCTIONS
        )
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
            return int(
                connection.execute(
                    "SELECT value FROM meta WHERE key = 'generation'"
                ).fetchone()[0]
            )

    def files(self) -> Iterator[FileRow]:
        """Yield the project's files, by path.

        Raises:
            Damaged: a row does not match its checksum or, after the last row, a text is in no segment.

        """
        with self.transaction() as connection:
            project = schema.find_project(connection, self.root)
            text_ids = array("q")
            for row in connection.execute(
                "SELECT path, text_id, skip, size, mtime_ns, ctime_ns, inode, checksum FROM path "
                "WHERE project = ? ORDER BY path",
                [project],
            ):
                if (
                    schema.row_checksum(project, row[0], row[1], row[3], row[4], row[5])
                    != row[7]
                ):
                    raise Damaged("row of a path: checksum")
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
            # Read in the same transaction as the postings, since the indexer may commit
            # between two transactions.
            generation = connection.execute(
                "SELECT value FROM meta WHERE key = 'generation'"
            ).fetchone()[0]
            known_candidates = self._known.find(expression)
            if known_candidates is not None and known_candidates[0] == generation:
                return known_candidates[1]
            # Segments cover distinct texts, so each is evaluated separately and the
            # results are concatenated.
            rows = segments(connection, Kind.GRAMS)
            found_segments = join_segments(
                [evaluate(expression, row, _Lists(connection, row.id)) for row in rows]
            )
        # Cached until the index changes: agents ask for further pages, and repeat
        # queries.
        size = EXPRESSION_BYTES
        if found_segments is not None:
            size += found_segments.nbytes
        self._known.put(expression, size, (generation, found_segments))
        return found_segments

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:
        """Return those texts, ascending, that may have each identifier of ``text`` as a word, in any ASCII case."""
        with self.transaction() as connection:
            for stage in self.stages:
                text_ids = stage.with_words(connection, text_ids, text)
        return text_ids

    def rows(self, key: RowsKey[RowsT]) -> RowsT:
        """Return what reads the rows of a part."""
        return key.open(self)

    def find_cut(self) -> list[bytes]:
        """Return the project's files whose text may end at a NUL byte, before the file does.

        Those are files whose size differs from their text's, and decoded ones (UTF-16), where sizes say nothing.
        """
        with self.transaction() as connection:
            generation = connection.execute(
                "SELECT value FROM meta WHERE key = 'generation'"
            ).fetchone()[0]
            if self._cut[0] != generation:
                rows = connection.execute(
                    "SELECT path FROM path JOIN text ON text.id = text_id "
                    # A text has git's object id (``blob``) only if it has the file's
                    # bytes; decoded UTF-16 does not.
                    "WHERE project = ? AND (path.size != text.size OR blob IS NULL)",
                    [schema.find_project(connection, self.root)],
                )
                self._cut = generation, [path for (path,) in rows]
            return self._cut[1]

    def seal(self) -> tuple[int, ...]:
        """Return a value that changes whenever texts are added, kept or dropped."""
        with self.transaction() as connection:
            # A merge may drop texts without changing the generation, but it changes the
            # checksum of the segment list.
            rows = connection.execute(
                "SELECT value FROM meta WHERE key IN ('generation', 'segments') ORDER BY key"
            )
            return tuple(int(row[0]) for row in rows)

    def known_texts(self) -> IndexedTexts:
        """Return what is known of contents by their git object ids; verifies that every text is in a segment."""
        with self.transaction() as connection:
            indexed_texts = read_known(connection)
            _check_coverage(connection, indexed_texts.text_ids.values())
            return indexed_texts

    def done(self, embedding: str) -> set[LateStage]:
        """Return the late stages that have reached every text of the project; vectors with these settings."""
        reached: set[LateStage] = set()
        with self.transaction() as connection:
            project = schema.find_project(connection, self.root)
            for stage in self.stages:
                # Each stage is built on the previous one, so a complete stage after an
                # incomplete one does not count.
                if stage.count_left(connection, project, embedding):
                    break
                reached.add(stage.name)
        return reached

    def size(self) -> IndexSize:
        """Return what the index currently holds."""
        with self.transaction() as connection:
            execute = connection.execute
            project = schema.find_project(connection, self.root)
            files, texts = execute(
                "SELECT count(*), count(DISTINCT text_id) FROM path WHERE project = ? AND skip = ''",
                [project],
            ).fetchone()
            lines, shared_texts, shared_bytes = execute(
                "SELECT total(lines), total(shared), total(shared * size) FROM (SELECT lines, size, "
                "id IN (SELECT text_id FROM path WHERE project != :own) AS shared "
                "FROM text WHERE id IN (SELECT text_id FROM path WHERE project = :own))",
                {"own": project},
            ).fetchone()
            figures: dict[str, int] = {}
            for stage in self.stages:
                figures.update(stage.measure(connection, project))
            rows = segments(connection, Kind.GRAMS)
            pages = execute("PRAGMA page_count").fetchone()[0]
            page_size = execute("PRAGMA page_size").fetchone()[0]
            size = IndexSize(
                files,
                texts,
                int(lines),
                len(rows),
                execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[
                    0
                ],
                sum(row.bytes for row in rows),
                pages * page_size,
                0,
                0,
                execute("SELECT count(*) FROM project").fetchone()[0],
                int(shared_texts),
                int(shared_bytes),
                *kept.count(connection),
            )
            return size._replace(**figures)


def identity_of(file: Path) -> Identity:
    """Return the identity of the database and its log; SQLite keeps the log while a connection is open."""
    return _device_and_inode(file, least=1), _device_and_inode(
        file.with_name(f"{file.name}-wal"), least=0
    )


def _device_and_inode(file: Path, least: int) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it is missing or smaller than ``least`` bytes."""
    try:
        status = file.stat()
    except OSError:
        return None
    if status.st_size >= least:
        return (status.st_dev, status.st_ino)
    return None


def _check_coverage(connection: sqlite3.Connection, text_ids: Iterable[int]) -> None:
    """Raise Damaged if a text is in no segment: it would never be a candidate."""
    numbers = np.unique(np.fromiter(text_ids, np.int64))
    covered = np.zeros(len(numbers), bool)
    for segment in segments(connection, Kind.GRAMS):
        low, high = np.searchsorted(numbers, [segment.first, segment.last + 1])
        covered[low:high] = True
    if not covered.all():
        raise Damaged("text without postings")


@dataclass(frozen=True, slots=True)
class _Lists:
    """The posting lists of a segment."""

    connection: sqlite3.Connection
    segment: int

    def find(self, gram: int) -> memoryview:
        block = block_of(self.connection, self.segment, gram)
        start, end = block.span(gram)
        return block.payload[start:end]

    def between(self, first: int, last: int) -> Iterator[memoryview]:
        return (
            span for _, span in lists_of(self.connection, self.segment, first, last)
        )
