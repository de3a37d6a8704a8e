"""A project's index as the daemon holds it: opened for reading, found replaced by others, set aside when damaged."""

import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from flashgrep.damage import Damaged
from flashgrep.index import schema
from flashgrep.index.reader import Reader
from flashgrep.index.schema import LateStage
from flashgrep.index.table import FileTable
from flashgrep.index.vectors import vector_files
from flashgrep.index.writer import are_current, drop_outdated
from flashgrep.own_folders import check_store


class Loaded(NamedTuple):
    """What an index had when it was opened."""

    table: FileTable
    generation: int
    done: set[LateStage]
    """Late stages that have reached every text."""
    updated: float
    """When it last changed, in seconds since 1970."""


class ProjectIndex:
    """The index database of one project, which need not exist; ``reader`` is None until it is open."""

    def __init__(self, file: Path, versions: Mapping[str, str]) -> None:
        """``versions``: of the code that makes the rows of each late stage."""
        self.file = file
        self.reader: Reader | None = None
        self._versions = versions

    def load(self, embedding: str) -> Loaded:
        """Open the index of an earlier run, without rows that other code made; no indexer may be running.

        Raises:
            Damaged: it is not what was written.
            FileNotFoundError: there is none.
            OSError, sqlite3.Error: it cannot be opened just now.

        """
        check_store(self.file.parent)
        # Rows of other code must not answer, not even until they are made anew.
        try:
            with contextlib.closing(schema.connect(self.file)) as connection:
                current = are_current(connection, self._versions)
            if not current:
                with contextlib.closing(schema.connect(self.file, writer=True)) as connection:
                    drop_outdated(connection, self._versions)
        except sqlite3.Error as error:
            if schema.is_damage(error):
                raise Damaged(str(error)) from error
            raise
        reader = Reader(self.file)
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
            self.reader = Reader(self.file)

    def close(self) -> None:
        """Stop reading it."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def is_replaced(self) -> bool:
        """Return whether another file stands where the open one was: what is stored there means something else."""
        return self.reader is not None and self.reader.is_replaced()

    def set_aside(self) -> None:
        """Close it and move it away, for study; its vectors go."""
        self.close()
        with contextlib.suppress(OSError):
            schema.set_aside(self.file)
            for file in vector_files(self.file.parent):
                file.unlink(missing_ok=True)
