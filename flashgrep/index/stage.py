"""A late stage as the store sees it, and rows of a part as its readers do: declared by the part that makes them."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Generic, Protocol, TypeVar

from flashgrep.index.schema import LateStage
from flashgrep.index.table import TextIds

RowsT = TypeVar("RowsT")

DEAD_SHARE: Final = 0.3
"""A merge drops documents that no file has any more once they exceed this share of all."""


class Transactions(Protocol):
    """A reader of a store, which lends connections."""

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection inside one read transaction."""


@dataclass(frozen=True, slots=True)
class RowsKey(Generic[RowsT]):
    """Names the rows of a part, and what reads them: ``reader.rows(KEY)`` returns a ``RowsT``."""

    name: str
    open: Callable[[Transactions], RowsT]
    """Makes what reads them in a store on disk."""


def keep_all(
    _connection: sqlite3.Connection, text_ids: TextIds, _text: bytes
) -> TextIds:
    """Return the texts unchanged."""
    return text_ids


def measure_nothing(
    _connection: sqlite3.Connection, _project: int
) -> Mapping[str, int]:
    """Return no figures."""
    return {}


def drop_no_dead(_connection: sqlite3.Connection) -> bool:
    """Return False: no row belongs to a text alone."""
    return False


def forget_no_names(
    _connection: sqlite3.Connection, _text_ids: Collection[int]
) -> None:
    """Do nothing: no row has the name of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRows:
    """How a store's writer keeps a stage's rows in step with the texts; each function runs in its transaction."""

    drop_all: Callable[[sqlite3.Connection], None]
    """Drops all rows, which are made anew."""
    drop_dead: Callable[[sqlite3.Connection], bool] = drop_no_dead
    """Drops the rows of texts that are gone; returns whether all were dropped instead, of every project."""
    has_many_dead: Callable[[sqlite3.Connection], bool] = drop_no_dead
    """Returns whether rows are dead though their texts are not, and so many that they are worth dropping."""
    forget_names: Callable[[sqlite3.Connection, Collection[int]], None] = (
        forget_no_names
    )
    """Called with the texts of files that were added, changed or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A late stage of a store. It is pickled for processes that answer lookups, so its functions belong to modules."""

    name: LateStage
    count_left: Callable[[sqlite3.Connection, int, str], int]
    """Returns how many texts of a project the stage has not reached, given the embedder's settings, as JSON."""
    with_words: Callable[[sqlite3.Connection, TextIds, bytes], TextIds] = keep_all
    """Returns those texts that may have each identifier of a text as a word, see ``TextIndex.with_words``."""
    measure: Callable[[sqlite3.Connection, int], Mapping[str, int]] = measure_nothing
    """Returns figures of ``IndexSize`` about a project, by name."""
    rows: str
    """Its ``StageRows``, as ``module:name``: imported only where a store is written."""


def name_rows(stages: Iterable[Stage]) -> dict[LateStage, str]:
    """Return what ``load_rows`` needs of stages."""
    return {stage.name: stage.rows for stage in stages}


def load_rows(names: Mapping[LateStage, str]) -> dict[LateStage, StageRows]:
    """Import how the rows of stages are kept."""
    rows: dict[LateStage, StageRows] = {}
    for stage, name in names.items():
        module, _, attribute = name.partition(":")
        rows[stage] = getattr(import_module(module), attribute)
    return rows
