"""A late stage as the store sees it, and rows of a part as its readers do: declared by the part that makes them."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from flashgrep.index.schema import LateStage
from flashgrep.index.table import TextIds

RowsT = TypeVar("RowsT")


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
