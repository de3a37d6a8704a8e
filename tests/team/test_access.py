"""Who sees what, tried by attack: row security decides, whatever statement is sent as the reader."""

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.parts.team import access
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.team_catalogue import MOST_BROWSERS
from tests.team.conftest import Rig, lend
from tests.team.test_store import find_all

pytestmark = pytest.mark.slow

SEEN = [
    "repository",
    "branch",
    "revision",
    "listing",
    "segment",
    "text",
    "block",
    "symbol",
    "symbol_name",
    "chunk",
    "vector",
    "signs",
]
HIDDEN = [
    "token",
    "member",
    "permission",
    "audit",
    "job",
    "turn",
    "content",
    "leftover",
]


@pytest.fixture(scope="module")
def filled(module_rig: Rig) -> Rig:
    module_rig.make_repository("open", {"a.py": "def shared(): pass\n"})
    module_rig.make_repository("closed", {"b.py": "def secret(): pass\n"})
    module_rig.sync()
    return module_rig


@pytest.fixture
def two(filled: Rig) -> Iterator[Rig]:
    with lend(filled) as rig:
        yield rig


@contextmanager
def as_reader(rig: Rig, token: str) -> "Iterator[psycopg.Connection[Any]]":
    """Yield a connection that a login with the reader's rights alone would have."""
    with closing(connect(rig.dsn)) as owner:
        owner.execute("DROP ROLE IF EXISTS intruder")
        owner.execute("CREATE ROLE intruder LOGIN IN ROLE flashgrep_reader")
    with closing(
        connect(rig.dsn.replace("user=postgres", "user=intruder"))
    ) as connection:
        connection.execute(
            "SELECT set_config('flashgrep.token', %s, false)",
            [hashlib.sha256(token.encode()).hexdigest()],
        )
        yield connection


async def test_a_subject_sees_its_own_and_its_groups_repositories(two: Rig) -> None:
    ann, bob = two.ask_as("ann", ["open"]), two.ask_as("bob", [])
    assert list(ann.find_access().repositories) == ["open"]
    assert list(bob.find_access().repositories) == []
    hits = await ann.call("query", query="def", mode="literal", projects="*")
    assert {hit["project"] for hit in hits["results"]} == {"open"}
    assert await find_all(ann.call, "def", project="open") == {(b"a.py", 1)}
    with pytest.raises(NotFound) as raised:
        await ann.call("query", query="def", project="closed")
    assert raised.value.data["near"] == ["open"]
    with closing(connect(two.dsn)) as connection:
        access.allow(connection, "devs", ["closed"])
        access.join(connection, "bob", "devs")
    assert list(bob.find_access().repositories) == ["closed"]
    with closing(connect(two.dsn)) as connection:
        access.forbid(connection, "devs")
    assert list(bob.find_access().repositories) == []


def test_a_token_ends_when_it_is_revoked_or_its_time_is_over(two: Rig) -> None:
    ann = two.ask_as("ann")
    with closing(connect(two.dsn)) as connection:
        connection.execute(
            "UPDATE flashgrep.token SET expires = now() - interval '1 second'"
        )
        with pytest.raises(Forbidden):
            ann.find_access()
        connection.execute(
            "UPDATE flashgrep.token SET expires = now() + interval '1 day'"
        )
        assert ann.find_access().subject == "ann"
        assert access.revoke_tokens(connection, "ann") == 1
        with pytest.raises(Forbidden):
            ann.find_access()
        row = connection.execute(
            "SELECT count(*) FROM flashgrep.token WHERE hash = %s", [ann.token.encode()]
        ).fetchone()
        assert row == (0,)


@pytest.mark.parametrize("token", ["", "00", "zz", "'; RESET ROLE; --", "0" * 64])
def test_what_is_no_token_shows_nothing(two: Rig, token: str) -> None:
    catalogue = two.open_catalogue()
    with pytest.raises(Exception) as raised:
        catalogue.find_access(token)
    assert "token" in str(raised.value) or "hexadecimal" in str(raised.value)


def test_no_statement_of_a_reader_shows_another_repository(two: Rig) -> None:
    ann = two.ask_as("ann", ["open"])
    with closing(connect(two.dsn)) as owner:
        own = owner.execute(
            "SELECT id FROM flashgrep.repository WHERE name = 'open'"
        ).fetchone()
    assert own is not None
    with as_reader(two, ann.token) as connection:
        for table in SEEN:
            column = "id" if table == "repository" else "repository"
            query = f"SELECT DISTINCT {column} FROM flashgrep.{table}".encode()
            assert connection.execute(query).fetchall() == [own], table
        leak = "SELECT count(*) FROM flashgrep.text WHERE position('secret'::bytea IN data) > 0"
        assert connection.execute(leak).fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        *(f"SELECT * FROM flashgrep.{table}" for table in HIDDEN),
        *(f"SELECT * FROM flashgrep.{table}_0" for table in SEEN[5:]),
        "SET ROLE postgres",
        "SET row_security = off; SELECT * FROM flashgrep.text",
        "DELETE FROM flashgrep.text",
        "INSERT INTO flashgrep.permission VALUES ('ann', NULL)",
        "ALTER TABLE flashgrep.text DISABLE ROW LEVEL SECURITY",
        "CREATE FUNCTION flashgrep.visible() RETURNS integer[] LANGUAGE sql AS 'SELECT ARRAY[1, 2]'",
        "DROP POLICY seen ON flashgrep.text",
        "COPY flashgrep.text TO PROGRAM 'cat'",
    ],
)
def test_a_reader_may_do_nothing_else(two: Rig, statement: str) -> None:
    ann = two.ask_as("ann", ["open"])
    with as_reader(two, ann.token) as connection, pytest.raises(psycopg.Error):
        connection.execute(statement.encode())


def test_a_reader_signs_in_for_twelve_hours_at_most_and_signs_out_no_other_browser(
    two: Rig,
) -> None:
    ann = two.ask_as("ann", ["open"])
    with as_reader(two, ann.token) as connection:
        for byte in (1, 2, 3):
            query = "SELECT flashgrep.sign_in(%s, 999999999, 1)"
            assert connection.execute(query, [bytes([byte]) * 32]).fetchone() == (
                "ann",
            )
        for wrong in (b"", b"x" * 31, b"x" * 2000):
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT flashgrep.sign_in(%s, 10, 32)", [wrong])
        for byte in range(4, 60):
            connection.execute(
                "SELECT flashgrep.sign_in(%s, 10, 999999)", [bytes([byte]) * 32]
            )
    with closing(connect(two.dsn)) as owner:
        query = (
            "SELECT count(*), max(expires) <= now() + interval '12 hours', bool_or(hash = %s) "
            "FROM flashgrep.token WHERE kind = 'browser'"
        )
        assert owner.execute(query, [bytes([59]) * 32]).fetchone() == (
            MOST_BROWSERS,
            True,
            True,
        )


def test_a_readers_audit_lines_are_short_and_not_too_many(two: Rig) -> None:
    ann = two.ask_as("ann", ["open"])
    note = "SELECT flashgrep.note(%s, %s, %s, 1::real)"
    with as_reader(two, ann.token) as connection:
        connection.execute(note, ["m" * 10_000_000, "a" * 10_000_000, "o" * 10_000_000])
        with pytest.raises(psycopg.Error, match="too many calls"):
            connection.execute(
                "SELECT count(flashgrep.note('m', 'a', 'o', 1::real)::text) FROM generate_series(1, 7000)"
            )
    with (
        as_reader(two, "guessed") as connection,
        pytest.raises(psycopg.Error, match="token"),
    ):
        connection.execute(note, ["m", "a", "o"])
    with closing(connect(two.dsn)) as owner:
        query = "SELECT max(length(method)), max(length(asked)), max(length(outcome)), count(*) FROM flashgrep.audit"
        assert owner.execute(query).fetchone() == (100, 500, 100, 1)


def test_requests_of_one_repository_do_not_pile_up(two: Rig) -> None:
    ann = two.ask_as("ann", ["open"])
    with as_reader(two, ann.token) as connection:
        for _ in range(40):
            assert connection.execute(
                "SELECT flashgrep.request('open') IS NOT NULL"
            ).fetchone() == (True,)
        assert connection.execute("SELECT flashgrep.request('closed')").fetchone() == (
            None,
        )
    with closing(connect(two.dsn)) as owner:
        assert owner.execute("SELECT count(*) FROM flashgrep.job").fetchone() == (16,)


def test_nobody_has_a_token_in_the_name_of_a_proxys_group(dsn: str) -> None:
    with closing(connect(dsn)) as connection, pytest.raises(InvalidParams):
        access.make_token(connection, "group:devs")


def test_a_connection_of_the_pool_is_always_the_one_of_who_asks(two: Rig) -> None:
    ann, all_seeing = two.ask_as("ann", ["open"]), two.ask_as("root")
    catalogue = two.open_catalogue()
    for _ in range(10):
        for asked, expected in ((ann, ["open"]), (all_seeing, ["closed", "open"])):
            digest = hashlib.sha256(asked.token.encode()).hexdigest()
            assert list(catalogue.find_access(digest).repositories) == expected
