"""The daemon's access to a project's part of a store: opening it for reading, noticing a replacement, dropping it."""

import contextlib
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flashgrep.base.damage import Damaged
from flashgrep.base.failures import FailureLog
from flashgrep.base.own_folders import check_store, identify
from flashgrep.index import kept, schema
from flashgrep.index.reader import Reader
from flashgrep.index.schema import LateStage, list_vector_files
from flashgrep.index.stage import Stage, load_rows, name_rows
from flashgrep.index.table import FileTable
from flashgrep.index.writer import Writer, are_current, drop_old_rows

log = FailureLog()


class Loaded(NamedTuple):
    """The state of an index when it was opened."""

    table: FileTable
    generation: int
    done: set[LateStage]
    """Late stages that have reached every text."""
    updated: float
    """When it last changed, in seconds since 1970."""


class ProjectIndex:
    """One project's part of a store, which need not exist; ``reader`` is None until it is open."""

    def __init__(
        self,
        file: Path,
        root: bytes,
        versions: Mapping[str, str],
        stages: Sequence[Stage],
    ) -> None:
        """``file``: the store's database; ``versions``: of the code that makes each late stage's rows."""
        self._stages = stages
        self.file = file
        self._root = root
        self.reader: Reader | None = None
        self._versions = versions

    def load(self, embedding: str) -> Loaded:
        """Open an existing index and drop outdated rows; no other indexer may be running.

        Raises:
            Damaged: it is not as written.
            FileNotFoundError: there is none.
            OSError, sqlite3.Error: it cannot be opened at the moment.

        """
        check_store(self.file.parent)
        # Rows made by another version of the code must never be used, not even until
        # they are rebuilt.
        try:
            # Check with a reader first: rows are nearly always current, and a writer
            # might have to wait for a lock.
            with contextlib.closing(schema.connect(self.file)) as connection:
                current = are_current(connection, self._versions)
            if not current:
                with contextlib.closing(
                    schema.connect(self.file, writer=True)
                ) as connection:
                    drop_old_rows(
                        connection, self._versions, load_rows(name_rows(self._stages))
                    )
        except sqlite3.Error as error:
            if schema.is_damage(error):
                raise Damaged(str(error)) from error
            raise
        reader = Reader(self.file, self._root, self._stages)
        try:
            table, complete = FileTable.of(reader.files()), reader.done(embedding)
            loaded = Loaded(
                table, reader.generation(), complete, self.file.stat().st_mtime
            )
        except BaseException:
            reader.close()
            raise
        self.reader = reader
        return loaded

    @property
    def is_open(self) -> bool:
        """Whether the index is open for reading."""
        return self.reader is not None

    def open(self) -> None:
        """Open the index for reading, unless it is open."""
        if self.reader is None:
            self.reader = Reader(self.file, self._root, self._stages)

    def close(self) -> None:
        """Close the index."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def is_replaced(self) -> bool:
        """Return whether the open database was replaced by another file, in which numbers mean something else."""
        return self.reader is not None and self.reader.is_replaced()


def set_aside(file: Path) -> None:
    """Move a store's database away for study, and delete its vectors. Nothing may have the store open."""
    try:
        schema.set_aside(file)
        for vectors in list_vector_files(file.parent):
            vectors.unlink(missing_ok=True)
    except OSError:
        # The next indexer meets the same damage, and it is tried again.
        log.exception("setting an index aside")


def list_files(file: Path) -> dict[bytes, int]:
    """Return how many files each project of a store has, by root; empty if the store cannot be read."""
    query = "SELECT root, (SELECT count(*) FROM path WHERE project = project.id) FROM project ORDER BY root"
    try:
        with contextlib.closing(schema.connect(file)) as connection:
            return dict(connection.execute(query).fetchall())
    except (OSError, sqlite3.Error, Damaged):
        return {}


def measure_revisions(file: Path) -> tuple[int, int]:
    """Return how many texts a store keeps only for revisions, and their bytes; zeros if it cannot be read."""
    try:
        with contextlib.closing(schema.connect(file)) as connection:
            return kept.count(connection)
    except (OSError, sqlite3.Error, Damaged):
        return 0, 0


def forget_projects(
    file: Path, roots: Collection[bytes], stages: Iterable[Stage]
) -> bool:
    """Drop projects from a store that is not open; return False if nothing is left that is worth keeping.

    A store that cannot be written at the moment (locked, disk full) is left as it is.
    """
    try:
        with contextlib.closing(Writer(file, load_rows(name_rows(stages)))) as writer:
            known_roots = {*writer.list_roots()}
            others = known_roots.difference(roots)
            # If no other project is left, the caller deletes the whole store, so
            # nothing need be dropped from it.
            if others:
                writer.drop_projects(known_roots.intersection(roots))
            # Projects whose folders no longer exist do not keep a store alive.
            return any(map(identify, others))
    except Damaged:
        return False
    except (OSError, sqlite3.Error) as error:
        return not (isinstance(error, sqlite3.Error) and schema.is_damage(error))
