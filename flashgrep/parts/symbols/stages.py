"""The stage of symbols, as the store sees it. Imported by every process that reads a store: it parses nothing."""

import sqlite3

from flashgrep.index.stage import Stage
from flashgrep.parts.symbols import symbol_table as table


def count_to_parse(
    connection: sqlite3.Connection, project: int, _embedding: str
) -> int:
    """Return how many texts of a project have not been parsed."""
    return table.count_to_parse(connection, project).texts


STAGES = (
    Stage(
        name="symbols",
        count_left=count_to_parse,
        rows="flashgrep.parts.symbols.symbol_table:ROWS",
    ),
)
