"""A database that is not what was written costs bounded time and memory: it is damage, told at once."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flashgrep.damage import Damaged
from flashgrep.index import schema, symbols
from flashgrep.index.reader import Reader
from flashgrep.index.writer import Writer

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(x) FROM n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return an empty index."""
    Writer(tmp_path / "index.db").close()
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
        with pytest.raises(Damaged, match="other tables"):
            schema.connect(file, writer=writer)


def test_tables_dropped_and_made_again_are_those_that_are_written(file: Path) -> None:
    with closing(schema.connect(file, writer=True)) as connection:
        symbols.drop_all(connection)
    schema.connect(file).close()


def test_a_value_longer_than_any_that_is_written_is_damage(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO symbol VALUES (1, zeroblob(?))", [schema.LONGEST_VALUE + 1])
    reader = Reader(file, b"/tree")
    with pytest.raises(Damaged), reader.transaction() as connection:
        symbols.packed_of(connection, [1])
    reader.close()


def test_a_look_up_that_does_not_end_is_damage(file: Path) -> None:
    reader = Reader(file, b"/tree", seconds=0.05)
    with pytest.raises(Damaged, match="took more than"), reader.transaction() as connection:
        connection.execute(ENDLESS).fetchone()
    with reader.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM path").fetchone() == (0,)
    reader.close()
