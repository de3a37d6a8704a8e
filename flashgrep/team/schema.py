"""The tables of a team's store: numbered migrations, each applied once, and shards on this server or on others."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.errors import InvalidParams, Unavailable
from flashgrep.team.database import translate_errors
from flashgrep.team.shards import add_shard, complete_shards

if TYPE_CHECKING:
    from psycopg import Connection

LOCK: Final = 0x666C6772
"""Of the advisory lock held while the tables change: two that do it at once would each do it half."""


class Migration(NamedTuple):
    """A numbered change of the tables."""

    number: int
    name: str
    statements: str


def list_migrations() -> list[Migration]:
    """Return the migrations of this version, in order."""
    entries = (files("flashgrep.team") / "migrations").iterdir()
    named = ((re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name), entry) for entry in entries)
    return sorted(Migration(int(name[1]), name[2], entry.read_text(encoding="utf-8")) for name, entry in named if name)


def read_history(connection: "Connection[Any]") -> dict[int, str]:
    """Return the numbers and names of the migrations that were applied; none: nothing of ours is there."""
    with translate_errors():
        found = connection.execute("SELECT to_regclass('flashgrep.migration')").fetchone()
        if found is None or found[0] is None:
            return {}
        return dict(connection.execute("SELECT number, name FROM flashgrep.migration").fetchall())


def check(connection: "Connection[Any]") -> None:
    """Raise Unavailable (wrong_migration) where the tables are not those of this version; it says what to do."""
    here, there = {one.number: one.name for one in list_migrations()}, read_history(connection)
    if there == here:
        return
    advice = "run: fgrep team init"
    if not there:
        message = "the database has no store of a team"
    elif extra := sorted(there.items() - here.items()):
        message, advice = f"the store is of a newer flashgrep: migration {extra[-1][0]}", "install that version here"
    else:
        message = f"the store is of an older flashgrep: migration {max(there)} of {max(here)}"
    raise Unavailable(f"{message}; {advice}", reason="wrong_migration", suggestion=advice)


def migrate(connection: "Connection[Any]", shards: Mapping[str, str | None]) -> list[str]:
    """Make or renew the tables in one transaction, and return what was done.

    ``shards``: names, each with where its server is (None: this one); they are given once, when the store is made.

    Raises:
        Unavailable: wrong_migration, the store is of a newer version; as ``translate_errors``.
        InvalidParams: shards are given to a store that has others.

    """
    there, done = read_history(connection), []
    wanted = list_migrations()
    # Migrations that are unknown here: a newer version was there, and going back is not possible.
    if there.items() - {one.number: one.name for one in wanted}.items():
        check(connection)
    with translate_errors(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        connection.execute("CREATE SCHEMA IF NOT EXISTS flashgrep")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS flashgrep.migration "
            "(number integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        )
        # Read once more under the lock: another process may have migrated while this one waited.
        there = dict(connection.execute("SELECT number, name FROM flashgrep.migration").fetchall())
        for one in wanted:
            if one.number not in there:
                connection.execute(one.statements.encode())
                connection.execute("INSERT INTO flashgrep.migration VALUES (%s, %s)", [one.number, one.name])
                done.append(f"{one.number:04} {one.name}")
        known = [row[0] for row in connection.execute("SELECT name FROM flashgrep.shard ORDER BY number").fetchall()]
        if known and shards and list(shards) != known:
            message = f"the store has the shards {', '.join(known)}: texts lie in them by their hash, so they stay"
            raise InvalidParams(message, field="shards")
        complete_shards(connection)
        if not known:
            for number, (name, dsn) in enumerate((shards or {"main": None}).items()):
                add_shard(connection, number, name, dsn)
                done.append(f"shard {name}")
    return done
