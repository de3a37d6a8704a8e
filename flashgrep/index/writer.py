"""Writing the index: one process, one transaction a batch, each leaving an index that is whole."""

import sqlite3
import time
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.damage import Damaged
from flashgrep.index import chunks, kept, schema, segments, symbols
from flashgrep.index.postings import Block
from flashgrep.index.schema import LateStage, take_numbers
from flashgrep.index.segments import SegmentRow
from flashgrep.index.table import FileRow
from flashgrep.languages import name_class

VACUUM_PAGES = 4_000
"""Freed pages are given back this many at a time (0.3 s), so that others can write in between."""

ALMOST = 0.99
"""The share of a merge that is to be committed."""

DEAD_SHARE = 0.3
"""A merge drops documents that no file has any more once they are so large a share of all."""


_BUILT_ON: Final[Mapping[str, Sequence[LateStage]]] = {
    "symbols": ("symbols", "chunks", "vectors"),
    "chunks": ("chunks", "vectors"),
    "vectors": ("vectors",),
}
"""What is dropped with each stage."""


class Text(NamedTuple):
    """A distinct text of a batch: its number, hash, bytes and lines; git's name of a file with it, or None."""

    text_id: int
    hash: bytes
    size: int
    lines: int
    blob: bytes | None
    name_class: str
    """Of its files, see ``languages.name_class``."""


class Reserved(NamedTuple):
    """Numbers set aside for one batch: a segment, and its first document."""

    segment: int
    first: int


class Merging(NamedTuple):
    """How far a merge is, 0 to 1; ``remade``: all chunks were dropped, and are to be rebuilt for every project."""

    share: float
    remade: bool


class Writer:
    """The one connection that writes an index database."""

    def __init__(self, file: Path) -> None:
        self.connection = schema.connect(file, writer=True)

    def close(self) -> None:
        """Close the database, folding its log back into the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block in one transaction: all of it is kept, or none."""
        try:
            with schema.transaction(self.connection):
                yield self.connection
        except (sqlite3.DatabaseError, *schema.MISREAD) as error:
            raise schema.judge(self.connection, error) from error

    def add_project(self, root: bytes) -> int:
        """Return the number of the project at a root, whose files are stored by it."""
        known = schema.find_project(self.connection, root)
        if known:
            return known
        with self.transaction() as connection:
            number = take_numbers(connection, "next_project")
            connection.execute("INSERT INTO project VALUES (?, ?, '', 0)", [number, root])
        return number

    def list_roots(self) -> list[bytes]:
        """Return the roots of all projects."""
        return [row[0] for row in self.connection.execute("SELECT root FROM project")]

    def drop_projects(self, roots: Collection[bytes]) -> bool:
        """Forget projects with their files, what was kept for long enough, and texts that are nobody's then, if many.

        Returns whether all chunks were dropped on that occasion: they are to be rebuilt for every project.
        """
        now = int(time.time())
        if not roots and not kept.has_expired(self.connection, now):
            return False
        with self.transaction() as connection:
            kept.drop(connection, now, 1 << 62)
            for number in [schema.find_project(connection, root) for root in roots]:
                # Texts stay until a merge finds many of them dead: the project may come back, or another may have them.
                query = "DELETE FROM path WHERE project = ? RETURNING text_id"
                texts = {row[0] for row in connection.execute(query, [number]).fetchall()}
                chunks.forget_old_names(connection, texts)
                connection.execute("DELETE FROM project WHERE id = ?", [number])
            # Candidates are remembered by the generation: readers have to ask again.
            take_numbers(connection, "generation")
        *_, merged = self.merge(tidy=True)
        deque(self.shrink(), maxlen=0)
        return merged.remade

    def reserve(self, documents: int) -> Reserved:
        """Set aside numbers for a batch of at most this many documents; numbers are never used twice."""
        with self.transaction() as connection:
            segment = take_numbers(connection, "next_segment")
            # Numbers of a batch that is never stored stay unused; that costs nothing.
            return Reserved(segment, take_numbers(connection, "next_text_id", documents))

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

        ``files``: each file's row, whose ``text_id`` is settled here by the content hash alongside it (empty:
        declined).
        """
        rows: list[FileRow] = []
        with self.transaction() as connection:
            # Texts first, since files refer to them; in one transaction, so no reader sees a file without its postings.
            _put_texts(connection, reserved, texts, blocks)
            before = "SELECT text_id FROM path WHERE project = ? AND path = ?"
            paths = [*gone, *(file.path for file, _ in files)]
            touched = {row[0] for path in paths for row in connection.execute(before, [project, path])}
            for file, text_hash in files:
                text_id = _find_text(connection, text_hash)
                stored = file._replace(text_id=text_id)
                checksum = schema.row_checksum(project, file.path, text_id, file.size, file.mtime_ns, file.ctime_ns)
                # The project is in the checksum, so a row that lands in another project's part is found, too.
                row_of_path = [project, *stored, checksum]
                connection.execute("INSERT OR REPLACE INTO path VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row_of_path)
                rows.append(stored)
            connection.executemany(
                "DELETE FROM path WHERE project = ? AND path = ?", [[project, path] for path in gone]
            )
            chunks.forget_old_names(connection, touched | {row.text_id for row in rows})
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
        """Store texts of revisions, to be kept until a time in seconds since 1970.

        ``contents``: the hash of each one's text, or an empty one and why it has none.
        """
        with self.transaction() as connection:
            _put_texts(connection, reserved, texts, blocks)
            rows = [(name, _find_text(connection, text_hash), skip) for name, text_hash, skip in contents]
            kept.put(connection, rows, until)
            take_numbers(connection, "generation")  # candidates are remembered by it

    def put_symbols(self, rows: Sequence[symbols.StoredSymbols], declined: Sequence[tuple[int, str]]) -> None:
        """Store symbols of texts, and of others why they have none."""
        with self.transaction() as connection:
            symbols.put(connection, rows)
            for text_id, reason in declined:
                symbols.put_declined(connection, text_id, reason)

    def merge(self, *, tidy: bool = False) -> Generator[Merging, None, None]:
        """Make one segment of those that are worth it, without documents that no file has any more.

        Texts that no file has are dropped when they are many, except for those kept for revisions; fewer stay, so that
        switching back costs nothing.
        Yields how far it is, at last 1.0; all of it is kept then, nothing where it is not asked for more.
        ``tidy``: look for such texts even if segments are few.
        """
        anew = False
        with self.transaction() as connection:
            dropped = False
            if tidy or len(segments.segments(connection, segments.Kind.GRAMS)) > segments.MOST_SEGMENTS:
                dead = "FROM text WHERE id NOT IN (SELECT text_id FROM path UNION SELECT text_id FROM kept)"
                count = connection.execute(f"SELECT count(*) {dead}").fetchone()[0]
                # Only when they are many: to leave documents out, all postings are decoded and encoded again.
                dropped = count > connection.execute("SELECT count(*) FROM text").fetchone()[0] * DEAD_SHARE
                if dropped:
                    connection.execute(f"DELETE {dead}")
                    symbols.drop_dead(connection)
            # As many chunks may be of files that have moved, with no text gone.
            if dropped or chunks.count_orphans(connection) > chunks.total(connection) * DEAD_SHARE:
                dropped, anew = True, chunks.drop_dead(connection)
            # All segments where texts are dropped: one that is left as it is would continue proposing them.
            chosen = [segments.segments(connection, kind) for kind in segments.Kind]
            if not dropped:
                chosen = [list(segments.worth_merging(rows)) for rows in chosen]
            total, done = sum(row.bytes for rows in chosen for row in rows), 0
            for rows in filter(None, chosen):
                alive = self._find_alive(rows) if dropped else None
                size = sum(row.bytes for row in rows)
                for share in segments.merge(connection, rows, alive):
                    # Inside the transaction: whoever asks for no more closes the generator, and all of it is rolled
                    # back.
                    yield Merging(min(ALMOST, (done + share * size) / max(1, total)), anew)
                done += size
        yield Merging(1.0, anew)

    def shrink(self) -> Iterator[float]:
        """Give freed pages back to the system, yielding how much of that is done, 0 to 1.

        Once no stage is left that would take them at once.
        """
        freed = left = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
        while left:
            self.connection.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES});")
            left = self.connection.execute("PRAGMA freelist_count").fetchone()[0]
            yield 1 - left / freed

    def _find_alive(self, rows: Sequence[SegmentRow]) -> npt.NDArray[np.bool_]:
        """Return which documents of neighbours are still known."""
        first, last = rows[0].first, rows[-1].last
        alive = np.zeros(last - first + 1, bool)
        if rows[0].kind == segments.Kind.GRAMS:
            known = self.connection.execute("SELECT id FROM text WHERE id BETWEEN ? AND ?", [first, last])
            alive[[row[0] - first for row in known]] = True
        else:
            spans = self.connection.execute(
                "SELECT first, count FROM chunked WHERE first + count > ? AND first <= ?", [first, last]
            )
            for start, count in spans:
                alive[max(0, start - first) : start - first + count] = True
        return alive


def _put_texts(
    connection: sqlite3.Connection, reserved: Reserved, texts: Sequence[Text], blocks: Sequence[Block]
) -> None:
    insert = "INSERT OR IGNORE INTO text (id, hash, size, lines, blob, name_class) VALUES (?, ?, ?, ?, ?, ?)"
    # Another batch may have stored some of the texts since this one asked which are known.
    fresh = [text.text_id for text in texts if connection.execute(insert, text).rowcount]
    # If none is new the numbers stay unused: a segment without documents would cost every lookup.
    if fresh:
        row = SegmentRow(reserved.segment, segments.Kind.GRAMS, reserved.first, max(fresh), 0)
        segments.put(connection, row, blocks)


def _find_text(connection: sqlite3.Connection, text_hash: bytes) -> int:
    """Return the number of a text by its hash; 0 for an empty one."""
    if not text_hash:
        return 0
    found = connection.execute("SELECT id FROM text WHERE hash = ?", [text_hash]).fetchone()
    if found is None:
        raise Damaged("a text that was here is gone, or its number was taken")
    return int(found[0])


# Grams and words of a text depend on nothing but the database's format. Symbols depend on grammars and queries, chunks
# on symbols and rules, vectors on chunks and a model. Rows that other code made are dropped, and their stage done
# again.


def are_current(connection: sqlite3.Connection, versions: Mapping[str, str]) -> bool:
    """Return whether the rows of each stage were made by the code of these versions."""
    stored = dict(connection.execute("SELECT key, value FROM meta WHERE key LIKE 'stage %'").fetchall())
    return all(stored.get(f"stage {stage}") == version for stage, version in versions.items())


def drop_outdated(connection: sqlite3.Connection, versions: Mapping[str, str]) -> None:
    """Drop the rows of stages of another version, with what was built on them, and note the versions; all or nothing.

    ``versions``: of the late stages; the connection must be the writer's.
    """
    if are_current(connection, versions):
        return
    with schema.transaction(connection):
        outdated = [stage for stage in versions if not are_current(connection, {stage: versions[stage]})]
        dropped = {each for stage in outdated for each in _BUILT_ON[stage]}
        if "symbols" in dropped:
            symbols.drop_all(connection)
            # A file whose name means another language now has another text: it is found changed, and stored again.
            rows = connection.execute("SELECT project, path, name_class FROM path JOIN text ON text.id = text_id")
            other = [row[:2] for row in rows.fetchall() if name_class(row[1]) != row[2]]
            connection.executemany("DELETE FROM path WHERE project = ? AND path = ?", other)
        if "chunks" in dropped:
            chunks.drop_all(connection)
        elif "vectors" in dropped:
            chunks.drop_vectors(connection)
        noted = [(f"stage {stage}", version) for stage, version in versions.items()]
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", noted)
