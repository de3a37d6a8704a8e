"""A project's part of a store as the daemon holds it: opened for reading, found replaced by others, forgotten."""

import contextlib
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from flashgrep.damage import Damaged
from flashgrep.index import kept, schema
from flashgrep.index.reader import Reader
from flashgrep.index.schema import LateStage
from flashgrep.index.table import FileTable
from flashgrep.index.vectors import vector_files
from flashgrep.index.writer import Writer, are_current, drop_outdated
from flashgrep.own_folders import check_store, identify


class Loaded(NamedTuple):
    """What an index had when it was opened."""

    table: FileTable
    generation: int
    done: set[LateStage]
    """Late stages that have reached every text."""
    updated: float
    """When it last changed, in seconds since 1970."""


class ProjectIndex:
    """One project's part of a store, which need not exist; ``reader`` is None until it is open."""

    def __init__(self, file: Path, root: bytes, versions: Mapping[str, str]) -> None:
        """``file``: the store's database. ``versions``: of the code that makes the rows of each late stage."""
        self.file = file
        self._root = root
        self.reader: Reader | None = None
        self._versions = versions

    def load(self, embedding: str) -> Loaded:
        """Open the index of an earlier run, without rows that other code made; no other indexer may be running.

        Raises:
            Damaged: it is not what was written.
            FileNotFoundError: there is none.
            OSError, sqlite3.Error: it cannot be opened just now.

        """
        check_store(self.file.parent)
        # Rows of other code must not answer, not even until they are rebuilt.
        try:
            # Opened for reading first: rows are current nearly always, and a writer would wait for others.
            with contextlib.closing(schema.connect(self.file)) as connection:
                current = are_current(connection, self._versions)
            if not current:
                with contextlib.closing(schema.connect(self.file, writer=True)) as connection:
                    drop_outdated(connection, self._versions)
        except sqlite3.Error as error:
            if schema.is_damage(error):
                raise Damaged(str(error)) from error
            raise
        reader = Reader(self.file, self._root)
        try:
            table, done = FileTable.of(reader.files()), reader.done(embedding)
            loaded = Loaded(table, reader.generation(), done, self.file.stat().st_mtime)
        except BaseException:
            reader.close()
            raise
        self.reader = reader
        return loaded

    @property
    def is_open(self) -> bool:
        """Whether it can be read."""
        return self.reader is not None

    def open(self) -> None:
        """Open it for reading, unless it is open."""
        if self.reader is None:
            self.reader = Reader(self.file, self._root)

    def close(self) -> None:
        """Stop reading it."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def is_replaced(self) -> bool:
        """Return whether another file stands where the open one was: what is stored there means something else."""
        return self.reader is not None and self.reader.is_replaced()


def set_aside(file: Path) -> None:
    """Move a store's database away, for study; its vectors go. Nobody may have it open."""
    with contextlib.suppress(OSError):
        schema.set_aside(file)
        for vectors in vector_files(file.parent):
            vectors.unlink(missing_ok=True)


def list_files(file: Path) -> dict[bytes, int]:
    """Return how many files each project of a store has, by root; none where it cannot be read."""
    query = "SELECT root, (SELECT count(*) FROM path WHERE project = project.id) FROM project ORDER BY root"
    try:
        with contextlib.closing(schema.connect(file)) as connection:
            return dict(connection.execute(query).fetchall())
    except (OSError, sqlite3.Error, Damaged):
        return {}


def measure_revisions(file: Path) -> tuple[int, int]:
    """Return how many texts a store has for revisions alone, and their bytes; none where it cannot be read."""
    try:
        with contextlib.closing(schema.connect(file)) as connection:
            return kept.count(connection)
    except (OSError, sqlite3.Error, Damaged):
        return 0, 0


def forget_projects(file: Path, roots: Collection[bytes]) -> bool:
    """Drop projects from a store that no project is open in; False: nothing is left there that is worth keeping.

    A store that cannot be written just now (locked, a full disk) stays as it is.
    """
    try:
        with contextlib.closing(Writer(file)) as writer:
            known = {*writer.list_roots()}
            others = known.difference(roots)
            # If no other project is left, the whole store goes, and nothing need be dropped from it.
            if others:
                writer.drop_projects(known.intersection(roots))
            # Folders that are gone keep no store alive.
            return any(map(identify, others))
    except Damaged:
        return False
    except (OSError, sqlite3.Error) as error:
        return not (isinstance(error, sqlite3.Error) and schema.is_damage(error))
