"""The tables of a team's store: numbered migrations, each applied once, and shards.

Shards are parts of the store, on this server or, by postgres_fdw, on others; texts are placed by their hash.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.base.errors import InvalidParams, Unavailable
from flashgrep.parts.team.database import connect, load_psycopg, translate_errors

if TYPE_CHECKING:
    from psycopg import Connection


_COLUMNS: Final = {
    "text": "repository integer, shard smallint, id bigint, path bytea, data bytea",
    "block": "repository integer, shard smallint, segment bigint, key bigint, data bytea",
    "symbol": "repository integer, shard smallint, text bigint, packed bytea",
    "symbol_name": "repository integer, shard smallint, name bytea, text bigint",
    "chunk": "repository integer, shard smallint, text bigint, packed bytea, whole bytea",
    "vector": "repository integer, shard smallint, chunk bigint, components bytea",
    "signs": "repository integer, shard smallint, segment bigint, data bytea",
}
_KEYS: Final = {
    "text": "PRIMARY KEY (repository, id)",
    "block": "PRIMARY KEY (repository, segment, key)",
    "symbol": "PRIMARY KEY (repository, text)",
    "symbol_name": "PRIMARY KEY (repository, name, text)",
    "chunk": "PRIMARY KEY (repository, text)",
    "vector": "PRIMARY KEY (repository, chunk)",
    "signs": "PRIMARY KEY (repository, segment)",
}
SHARDED: Final = tuple(_COLUMNS)
"""Tables that are partitioned by shard."""
_SERVER: Final = {
    "async_capable": "true",
    "fetch_size": "1000",
    "batch_size": "100",
    "use_remote_estimate": "false",
    "keep_connections": "on",
    # Else a shard's planner assumes that only a part of a cursor is read, and scans
    # tables with outdated statistics.
    "options": "-c cursor_tuple_fraction=1.0 -c enable_seqscan=off",
    "connect_timeout": "5",
}
LOCK: Final = 0x666C6772
"""The advisory lock held while tables change, so that only one process migrates at a time."""


def add_shard(
    connection: "Connection[Any]", number: int, name: str, dsn: str | None
) -> None:
    """Create the partitions of a shard, here or on another server, which is queried by postgres_fdw."""
    connection.execute("INSERT INTO flashgrep.shard VALUES (%s, %s)", [number, name])
    if dsn is not None:
        with connect(dsn) as remote, translate_errors():
            remote.execute("CREATE SCHEMA flashgrep")
        connect_server(connection, number, dsn)
    add_tables(connection, number, dsn, SHARDED)


def complete_shards(connection: "Connection[Any]") -> None:
    """Create the partitions that shards made by an older version lack."""
    for (number,) in connection.execute(
        "SELECT number FROM flashgrep.shard ORDER BY number"
    ).fetchall():
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'flashgrep'::regnamespace AND relname = ANY(%s)",
            [[f"{table}_{number}" for table in SHARDED]],
        ).fetchall()
        there = {row[0] for row in rows}
        missing = [table for table in SHARDED if f"{table}_{number}" not in there]
        if missing:
            add_tables(connection, number, find_server(connection, number), missing)


def add_tables(
    connection: "Connection[Any]", number: int, dsn: str | None, tables: Sequence[str]
) -> None:
    """Create the partitions of some tables in a shard; ``dsn``: its server, None: this one."""
    sql = load_psycopg().sql
    if dsn is not None:
        make_remote(dsn, tables)
    for table in tables:
        part = sql.Identifier("flashgrep", f"{table}_{number}")
        parent = sql.Identifier("flashgrep", table)
        at = sql.Literal(number)
        if dsn is None:
            connection.execute(
                sql.SQL("CREATE TABLE {} PARTITION OF {} FOR VALUES IN ({})").format(
                    part, parent, at
                )
            )
            connection.execute(
                sql.SQL("ALTER TABLE {} ADD " + _KEYS[table]).format(part)
            )
        else:
            make = "CREATE FOREIGN TABLE {} PARTITION OF {} FOR VALUES IN ({}) SERVER {} OPTIONS ({})"
            options = sql.SQL("schema_name 'flashgrep', table_name {}").format(
                sql.Literal(table)
            )
            server = sql.Identifier(f"flashgrep_{number}")
            connection.execute(sql.SQL(make).format(part, parent, at, server, options))


def make_remote(dsn: str, tables: Sequence[str]) -> None:
    """Create the tables of a shard on its own server."""
    with connect(dsn) as remote, translate_errors(), remote.transaction():
        for table in tables:
            columns = ", ".join(
                f"{column} NOT NULL" for column in _COLUMNS[table].split(", ")
            )
            remote.execute(
                f"CREATE TABLE IF NOT EXISTS flashgrep.{table} ({columns}, {_KEYS[table]})".encode()
            )


def find_server(connection: "Connection[Any]", number: int) -> str | None:
    """Return the address of a shard's server, with user and password; None: it is this server."""
    row = connection.execute(
        "SELECT srvoptions, umoptions FROM pg_foreign_server JOIN pg_user_mappings USING (srvname) WHERE srvname = %s",
        [f"flashgrep_{number}"],
    ).fetchone()
    if row is None:
        return None
    parts = {}
    # PostgreSQL has options as ``name=value``.
    for option in [*row[0], *row[1]]:
        name, _, value = option.partition("=")
        if name not in {*_SERVER, "password_required"}:
            parts[name] = value
    address: str = load_psycopg().conninfo.make_conninfo(**parts)
    return address


def connect_server(connection: "Connection[Any]", number: int, dsn: str) -> None:
    """Create the foreign server of a shard, with the user and password of its address."""
    psycopg = load_psycopg()
    sql = psycopg.sql
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    user = {
        name: str(parts.pop(name)) for name in ("user", "password") if name in parts
    }
    server = sql.Identifier(f"flashgrep_{number}")
    is_superuser = connection.execute(
        "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if is_superuser is not None and is_superuser[0]:
        user["password_required"] = "false"  # noqa: S105 - an option's name; the shard decides about passwords

    def options(of: Mapping[str, Any]) -> Any:
        pairs: Sequence[Any] = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(str(value)))
            for name, value in of.items()
        ]
        return sql.SQL(", ").join(pairs)

    connection.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
    make = sql.SQL("CREATE SERVER {} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({})")
    connection.execute(make.format(server, options({**parts, **_SERVER})))
    mapping = sql.SQL("CREATE USER MAPPING FOR PUBLIC SERVER {} OPTIONS ({})")
    connection.execute(mapping.format(server, options(user)))


class Migration(NamedTuple):
    """A numbered change of the tables."""

    number: int
    name: str
    statements: str


def list_migrations() -> list[Migration]:
    """Return the migrations of this version, in order."""
    entries = (files("flashgrep.parts.team") / "migrations").iterdir()
    named = (
        (re.fullmatch(r"(\d{4})_(\w+)\.sql", entry.name), entry) for entry in entries
    )
    return sorted(
        Migration(int(name[1]), name[2], entry.read_text(encoding="utf-8"))
        for name, entry in named
        if name
    )


def read_history(connection: "Connection[Any]") -> dict[int, str]:
    """Return the numbers and names of the applied migrations; empty if the database has no store."""
    with translate_errors():
        row = connection.execute("SELECT to_regclass('flashgrep.migration')").fetchone()
        if row is None or row[0] is None:
            return {}
        return dict(
            connection.execute(
                "SELECT number, name FROM flashgrep.migration"
            ).fetchall()
        )


def check(connection: "Connection[Any]") -> None:
    """Raise Unavailable (wrong_migration), with advice, unless the tables are those of this version."""
    here = {migration.number: migration.name for migration in list_migrations()}
    there = read_history(connection)
    if there == here:
        return
    advice = "run: fgrep team init"
    if not there:
        message = "the database contains no team's store"
    elif extra := sorted(there.items() - here.items()):
        message = f"the store was made by a newer flashgrep: migration {extra[-1][0]}"
        advice = "install that version here"
    else:
        message = f"the store was made by an older flashgrep: migration {max(there)} of {max(here)}"
    raise Unavailable(
        f"{message}; {advice}", reason="wrong_migration", suggestion=advice
    )


def migrate(
    connection: "Connection[Any]", shards: Mapping[str, str | None]
) -> list[str]:
    """Create or update the tables in one transaction, and return a line for each change.

    ``shards``: names, each with its server's address (None: this server); fixed when the store is created.

    Raises:
        Unavailable: wrong_migration, the store is of a newer version; as ``translate_errors``.
        InvalidParams: the store has other shards than those given.

    """
    there = read_history(connection)
    steps = []
    migrations = list_migrations()
    # Migrations unknown to this version: a newer one made them, and there is no
    # downgrade.
    if (
        there.items()
        - {
            current_migration.number: current_migration.name
            for current_migration in migrations
        }.items()
    ):
        check(connection)
    with translate_errors(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        connection.execute("CREATE SCHEMA IF NOT EXISTS flashgrep")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS flashgrep.migration "
            "(number integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
        )
        # Read again under the lock: another process may have migrated while this one
        # waited.
        there = dict(
            connection.execute(
                "SELECT number, name FROM flashgrep.migration"
            ).fetchall()
        )
        for migration in migrations:
            if migration.number not in there:
                connection.execute(migration.statements.encode())
                connection.execute(
                    "INSERT INTO flashgrep.migration VALUES (%s, %s)",
                    [migration.number, migration.name],
                )
                steps.append(f"{migration.number:04} {migration.name}")
        addresses = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM flashgrep.shard ORDER BY number"
            ).fetchall()
        ]
        if addresses and shards and list(shards) != addresses:
            message = f"the shards of a store cannot change, since texts are placed by hash; it has {', '.join(addresses)}"
            raise InvalidParams(message, field="shards")
        complete_shards(connection)
        if not addresses:
            for number, (name, dsn) in enumerate((shards or {"main": None}).items()):
                add_shard(connection, number, name, dsn)
                steps.append(f"shard {name}")
    return steps
