"""A database that is not what was written costs bounded time and memory: it is damage, told at once."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from flashgrep.base.damage import Damaged
from flashgrep.index import schema
from flashgrep.index.reader import Reader
from flashgrep.index.writer import Writer
from flashgrep.parts.symbols import symbol_table as symbols
from tests.support.store import ROWS

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(x) FROM n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return an empty index."""
    Writer(tmp_path / "index.db", ROWS).close()
    return tmp_path / "index.db"


@pytest.mark.parametrize(
    "statements",
    [
        f"DROP TABLE path; CREATE VIEW path AS {ENDLESS}",
        "CREATE TRIGGER mine AFTER INSERT ON text BEGIN DELETE FROM path; END",
        "CREATE TABLE more (x)",
        "DROP INDEX path_text_id",
        "DROP TABLE segment; CREATE TABLE segment (id INTEGER PRIMARY KEY, first, last, bytes)",
        "ALTER TABLE path ADD COLUMN more",
    ],
)
def test_a_database_of_other_tables_is_not_read(file: Path, statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(statements)
    for writer in (False, True):
        with pytest.raises(Damaged, match="unexpected tables"):
            schema.connect(file, writer=writer)


def test_tables_dropped_and_made_again_are_those_that_are_written(file: Path) -> None:
    with closing(schema.connect(file, writer=True)) as connection:
        symbols.drop_all(connection)
    schema.connect(file).close()


def test_a_value_longer_than_any_that_is_written_is_damage(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(
            "INSERT INTO symbol VALUES (1, zeroblob(?))", [schema.LONGEST_VALUE + 1]
        )
    reader = Reader(file, b"/tree")
    with pytest.raises(Damaged), reader.transaction() as connection:
        symbols.packed_of(connection, [1])
    reader.close()


def test_a_look_up_that_does_not_end_is_ended_and_the_index_stays(file: Path) -> None:
    reader = Reader(file, b"/tree", seconds=0.05)
    with (
        pytest.raises(schema.Unreadable, match="interrupted"),
        reader.transaction() as connection,
    ):
        connection.execute(ENDLESS).fetchone()
    with reader.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM path").fetchone() == (0,)
    reader.close()


def mistaken_value(_connection: sqlite3.Connection) -> None:
    int("no number")


def mistaken_column(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT misspelt FROM path")


def read_only(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM path")


def out_of_memory(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT zeroblob(?)", [1 << 62])


@pytest.mark.parametrize(
    "mistake", [mistaken_value, mistaken_column, read_only, out_of_memory]
)
def test_a_mistake_of_ours_is_no_damage(
    file: Path, mistake: Callable[[sqlite3.Connection], None]
) -> None:
    reader = Reader(file, b"/tree")
    for _ in range(2):
        with (
            pytest.raises(sqlite3.OperationalError),
            reader.transaction() as connection,
        ):
            mistake(connection)
    assert reader.generation() == 0
    reader.close()


def test_a_mistake_is_damage_where_a_row_is_not_what_is_written(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO text VALUES (1, x'00', 'many', 1, NULL, '')")
    reader = Reader(file, b"/tree")
    with (
        pytest.raises(Damaged, match="a row of text"),
        reader.transaction() as connection,
    ):
        mistaken_value(connection)
    reader.close()


def test_a_writer_that_is_refused_or_mistaken_leaves_the_index(file: Path) -> None:
    with closing(Writer(file, ROWS)) as writer:
        connection = writer.connection
        with pytest.raises(schema.Unreadable, match="UNIQUE"), writer.transaction():
            connection.execute("INSERT INTO meta VALUES ('format', 1)")
        connection.execute("PRAGMA max_page_count=1")
        with (
            pytest.raises(sqlite3.OperationalError, match="full"),
            writer.transaction(),
        ):
            connection.execute("INSERT INTO posting_block VALUES (1, zeroblob(100000))")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            connection.execute("PRAGMA busy_timeout=0")
            with (
                pytest.raises(sqlite3.OperationalError, match="locked"),
                writer.transaction(),
            ):
                pass


def test_numbers_that_would_be_given_again_are_damage(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO text VALUES (1, x'00', 1, 1, NULL, '')")
    with (
        closing(Writer(file, ROWS)) as writer,
        pytest.raises(Damaged, match="next_text_id"),
        writer.transaction() as connection,
    ):
        connection.execute("INSERT INTO text VALUES (1, x'01', 1, 1, NULL, '')")
