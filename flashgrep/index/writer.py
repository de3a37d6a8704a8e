"""Writing the index: one process, one transaction per batch, each of which leaves a consistent index."""

import sqlite3
import time
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.damage import Damaged
from flashgrep.base.languages import name_class
from flashgrep.index import kept, schema, segments
from flashgrep.index.postings import Block
from flashgrep.index.schema import LATE_STAGES, LateStage, take_numbers
from flashgrep.index.segments import SegmentRow
from flashgrep.index.stage import DEAD_SHARE, StageRows
from flashgrep.index.table import FileRow

VACUUM_PAGES = 4_000
"""How many freed pages are returned at a time (0.3 s), so that others can write in between."""

ALMOST = 0.99
"""The most progress that a merge reports before it is committed."""


_BUILT_ON: Final[Mapping[str, Sequence[LateStage]]] = {
    "symbols": ("symbols", "chunks", "vectors"),
    "chunks": ("chunks", "vectors"),
    "vectors": ("vectors",),
}
"""The stages dropped along with each stage: itself and those built on it."""


class Text(NamedTuple):
    """A distinct text of a batch; ``size`` in bytes; ``blob``: git's object id of a file with this text, or None."""

    text_id: int
    hash: bytes
    size: int
    lines: int
    blob: bytes | None
    name_class: str
    """The class of its files' names, see ``base.languages.name_class``."""


class Reserved(NamedTuple):
    """Numbers reserved for one batch: its segment, and its first document."""

    segment: int
    first: int


class Merging(NamedTuple):
    """Progress of a merge, 0 to 1; ``remade``: all chunks were dropped and must be rebuilt for every project."""

    share: float
    remade: bool


class Writer:
    """The only connection that writes to an index database."""

    def __init__(
        self, file: Path, rows: Mapping[LateStage, StageRows] | None = None
    ) -> None:
        """``rows``: of the late stages that are made."""
        self._rows: Collection[StageRows] = (rows or {}).values()
        self.connection = schema.connect(file, writer=True)
        self._has_removed = False
        """Whether files were removed since the last merge: their texts may be worth dropping."""
        self.has_dropped = False
        """Whether the last merge dropped texts, so that pages are free."""

    def close(self) -> None:
        """Close the database; SQLite checkpoints the log into the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block in one transaction: either all of it is stored or nothing."""
        try:
            with schema.transaction(self.connection):
                yield self.connection
        except (sqlite3.DatabaseError, *schema.MISREAD) as error:
            raise schema.judge(self.connection, error) from error

    def add_project(self, root: bytes) -> int:
        """Return the number under which the project at a root is stored, adding the project if it is new."""
        project = schema.find_project(self.connection, root)
        if project:
            return project
        with self.transaction() as connection:
            number = take_numbers(connection, "next_project")
            connection.execute(
                "INSERT INTO project VALUES (?, ?, '', 0)", [number, root]
            )
        return number

    def list_roots(self) -> list[bytes]:
        """Return the roots of all projects."""
        return [row[0] for row in self.connection.execute("SELECT root FROM project")]

    def drop_projects(self, roots: Collection[bytes]) -> bool:
        """Drop projects with their files, expired texts of revisions, and, if they are many, texts without a file.

        Returns whether all chunks were dropped in the process; then they must be rebuilt for every project.
        """
        now = int(time.time())
        if not roots and not kept.has_expired(self.connection, now):
            return False
        with self.transaction() as connection:
            kept.drop(connection, now, 1 << 62)
            for number in [schema.find_project(connection, root) for root in roots]:
                # Texts stay until a merge finds many dead ones: the project may return,
                # or another may have them.
                query = "DELETE FROM path WHERE project = ? RETURNING text_id"
                texts = {
                    row[0] for row in connection.execute(query, [number]).fetchall()
                }
                self._forget_names(connection, texts)
                connection.execute("DELETE FROM project WHERE id = ?", [number])
            # Readers cache candidates by generation, so a new one invalidates them.
            take_numbers(connection, "generation")
        *_, merged = self.merge(tidy=True)
        deque(self.shrink(), maxlen=0)
        return merged.remade

    def _forget_names(
        self, connection: sqlite3.Connection, text_ids: Collection[int]
    ) -> None:
        for rows in self._rows:
            rows.forget_names(connection, text_ids)

    def reserve(self, documents: int) -> Reserved:
        """Reserve numbers for a batch of at most this many documents; numbers are never reused."""
        with self.transaction() as connection:
            segment = take_numbers(connection, "next_segment")
            # If the batch is never stored, its numbers stay unused, which costs
            # nothing.
            return Reserved(
                segment, take_numbers(connection, "next_text_id", documents)
            )

    def put(
        self,
        project: int,
        reserved: Reserved,
        texts: Sequence[Text],
        blocks: Sequence[Block],
        files: Sequence[tuple[FileRow, bytes]],
        gone: Sequence[bytes] = (),
    ) -> tuple[int, list[FileRow]]:
        """Store one batch of a project; return the new generation and the files as stored.

        ``files``: the row of each file and the hash of its text (empty: declined), which determines its ``text_id``.
        """
        rows: list[FileRow] = []
        self._has_removed |= bool(gone)
        with self.transaction() as connection:
            # Texts first, since files refer to them. One transaction, so that no reader
            # sees a file without postings.
            _put_texts(connection, reserved, texts, blocks)
            before = "SELECT text_id FROM path WHERE project = ? AND path = ?"
            paths = [*gone, *(file.path for file, _ in files)]
            touched = {
                row[0]
                for path in paths
                for row in connection.execute(before, [project, path])
            }
            for file, text_hash in files:
                text_id = _find_text(connection, text_hash)
                stored = file._replace(text_id=text_id)
                checksum = schema.row_checksum(
                    project, file.path, text_id, file.size, file.mtime_ns, file.ctime_ns
                )
                # The checksum includes the project, so a row that ends up under another
                # project is detected too.
                row_of_path = [project, *stored, checksum]
                connection.execute(
                    "INSERT OR REPLACE INTO path VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row_of_path,
                )
                rows.append(stored)
            connection.executemany(
                "DELETE FROM path WHERE project = ? AND path = ?",
                [[project, path] for path in gone],
            )
            self._forget_names(connection, touched | {row.text_id for row in rows})
            generation = take_numbers(connection, "generation") + 1
        return generation, rows

    def put_revision_texts(
        self,
        reserved: Reserved,
        texts: Sequence[Text],
        blocks: Sequence[Block],
        contents: Sequence[tuple[kept.Name, bytes, str]],
        until: int,
    ) -> None:
        """Store texts of revisions, to be kept until ``until``, in seconds since 1970.

        ``contents``: the name of each content with the hash of its text, or an empty hash and the reason.
        """
        with self.transaction() as connection:
            _put_texts(connection, reserved, texts, blocks)
            rows = [
                (name, _find_text(connection, text_hash), skip)
                for name, text_hash, skip in contents
            ]
            kept.put(connection, rows, until)
            take_numbers(connection, "generation")  # invalidates cached candidates

    def merge(self, *, tidy: bool = False) -> Generator[Merging, None, None]:
        """Merge the segments that are worth merging, dropping documents that no file has any more.

        Texts without a file are dropped only if they are many, so that switching back to a branch costs nothing; those
        kept for revisions stay. Yields the progress, at last 1.0. The merge is committed only if the generator is run
        to its end; closing it earlier rolls everything back. ``tidy``: look for such texts even if segments are few.
        """
        anew = False
        with self.transaction() as connection:
            dropped = False
            rows_of_grams = segments.segments(connection, segments.Kind.GRAMS)
            has_room = self._has_removed and _may_be_dead(connection)
            self._has_removed = False
            if tidy or has_room or len(rows_of_grams) > segments.MOST_SEGMENTS:
                dropped = _drop_dead_texts(connection)
            # In the order of the stages: chunks of a text go after its symbols. Rows may be
            # dead although no text is: the chunks of files that moved.
            for rows_of_stage in self._rows:
                if dropped or rows_of_stage.has_many_dead(connection):
                    dropped = True
                    anew |= rows_of_stage.drop_dead(connection)
            self.has_dropped = dropped
            # If texts are dropped, merge all segments: one left as it is would continue
            # to propose them.
            chosen = [segments.segments(connection, kind) for kind in segments.Kind]
            if not dropped:
                chosen = [list(segments.worth_merging(rows)) for rows in chosen]
            total = sum(row.bytes for rows in chosen for row in rows)
            merged = 0
            for rows in filter(None, chosen):
                if dropped:
                    alive = self._find_alive(rows)
                else:
                    alive = None
                size = sum(row.bytes for row in rows)
                for share in segments.merge(connection, rows, alive):
                    # Inside the transaction, so that closing the generator here rolls
                    # everything back.
                    yield Merging(
                        min(ALMOST, (merged + share * size) / max(1, total)), anew
                    )
                merged += size
        yield Merging(1.0, anew)

    def shrink(self) -> Iterator[float]:
        """Return freed pages to the system, yielding the progress, 0 to 1.

        Call it when no stage is left that would reuse them right away.
        """
        freed = pages = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
        while pages:
            self.connection.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")
            pages = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
            yield 1 - pages / freed

    def _find_alive(self, rows: Sequence[SegmentRow]) -> npt.NDArray[np.bool_]:
        """Return which documents of adjacent segments still exist."""
        first = rows[0].first
        last = rows[-1].last
        alive = np.zeros(last - first + 1, bool)
        if rows[0].kind == segments.Kind.GRAMS:
            cursor = self.connection.execute(
                "SELECT id FROM text WHERE id BETWEEN ? AND ?", [first, last]
            )
            alive[[row[0] - first for row in cursor]] = True
        else:
            spans = self.connection.execute(
                "SELECT first, count FROM chunked WHERE first + count > ? AND first <= ?",
                [first, last],
            )
            for start, count in spans:
                alive[max(0, start - first) : start - first + count] = True
        return alive


def _may_be_dead(connection: sqlite3.Connection) -> bool:
    """Return whether so many texts have no file that they are worth looking for; counts rows only."""
    texts, files, contents = connection.execute(
        "SELECT (SELECT count(*) FROM text), (SELECT count(*) FROM path), (SELECT count(*) FROM kept)"
    ).fetchone()
    return bool(texts - files - contents > texts * DEAD_SHARE)


def _put_texts(
    connection: sqlite3.Connection,
    reserved: Reserved,
    texts: Sequence[Text],
    blocks: Sequence[Block],
) -> None:
    insert = "INSERT OR IGNORE INTO text (id, hash, size, lines, blob, name_class) VALUES (?, ?, ?, ?, ?, ?)"
    # Another batch may have stored some of these texts since this one looked up which
    # were known.
    fresh = [
        text.text_id for text in texts if connection.execute(insert, text).rowcount
    ]
    # If none is new, the numbers stay unused: an empty segment would slow every lookup
    # down.
    if fresh:
        row = SegmentRow(
            reserved.segment, segments.Kind.GRAMS, reserved.first, max(fresh), 0
        )
        segments.put(connection, row, blocks)


def _find_text(connection: sqlite3.Connection, text_hash: bytes) -> int:
    """Return the number of a text by its hash; 0 for an empty one."""
    if not text_hash:
        return 0
    row = connection.execute(
        "SELECT id FROM text WHERE hash = ?", [text_hash]
    ).fetchone()
    if row is None:
        raise Damaged("a stored text is missing, or its number was reused")
    return int(row[0])


# The grams and words of a text depend only on the database's format. Symbols depend on
# grammars and queries, chunks on symbols and rules, vectors on chunks and a model. Rows
# made by another version of the code are dropped and rebuilt.


def are_current(connection: sqlite3.Connection, versions: Mapping[str, str]) -> bool:
    """Return whether the rows of each stage were made by these versions of the code."""
    stored = dict(
        connection.execute(
            "SELECT key, value FROM meta WHERE key LIKE 'stage %'"
        ).fetchall()
    )
    return all(
        stored.get(f"stage {stage}") == version for stage, version in versions.items()
    )


def drop_old_rows(
    connection: sqlite3.Connection,
    versions: Mapping[str, str],
    rows_by_stage: Mapping[LateStage, StageRows],
) -> None:
    """Drop the rows of outdated stages and of stages built on them, and record the versions, in one transaction.

    ``versions``: of the late stages; that of one that no part makes is empty, so that its rows are dropped when a part
    makes it again. The connection must be a writer's.
    """
    if are_current(connection, versions):
        return
    with schema.transaction(connection):
        outdated = [
            name
            for name in versions
            if not are_current(connection, {name: versions[name]})
        ]
        dropped = {
            current_stage for stage in outdated for current_stage in _BUILT_ON[stage]
        }
        if "symbols" in dropped:
            # If a file's name now means another language, its text differs too: drop
            # the row, so it is stored again.
            rows = connection.execute(
                "SELECT project, path, name_class FROM path JOIN text ON text.id = text_id"
            )
            other = []
            for project, path, former_class in rows.fetchall():
                if name_class(path) != former_class:
                    other.append((project, path))
            connection.executemany(
                "DELETE FROM path WHERE project = ? AND path = ?", other
            )
        # Without its part, a stage's rows stay: the empty version has them dropped later.
        for stage in LATE_STAGES:
            if stage in dropped and stage in rows_by_stage:
                rows_by_stage[stage].drop_all(connection)
        noted = [(f"stage {stage}", version) for stage, version in versions.items()]
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted)


def _drop_dead_texts(connection: sqlite3.Connection) -> bool:
    """Drop the texts that no file has, if they are many; return whether it did.

    Dropping documents means decoding and encoding all postings again.
    """
    dead = "FROM text WHERE id NOT IN (SELECT text_id FROM path UNION SELECT text_id FROM kept)"
    count = connection.execute(f"SELECT count(*) {dead}").fetchone()[0]
    texts = connection.execute("SELECT count(*) FROM text").fetchone()[0]
    if count <= texts * DEAD_SHARE:
        return False
    connection.execute(f"DELETE {dead}")
    return True
