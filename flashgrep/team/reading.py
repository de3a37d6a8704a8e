"""One question's connection: as the one who asks, until its deadline, and told which shards did not answer."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from flashgrep.checkpoint import blocking
from flashgrep.errors import Unavailable
from flashgrep.team.database import INSTALL, describe, load_psycopg, translate_errors
from flashgrep.team.schema import check

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS: Final = 16
WAIT_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 3.0
"""What one statement may take; one that a shard hangs in ends then."""
AVOID_SECONDS: Final = 15.0
"""A shard that did not answer is not asked for so long: each further question would wait for it, too."""
_AS_READER: Final = (
    "SELECT set_config('role', 'flashgrep_reader', false), set_config('flashgrep.token', %s, false), "
    "set_config('statement_timeout', %s, false)"
)


class Store:
    """The pool of connections to a team's database, and which shards answer; safe from any thread."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()
        self._avoided: dict[int, float] = {}
        self.shards: list[str] = []
        """Their names, by number."""

    def open(self) -> None:
        """Connect, and see that the tables are those of this version.

        Raises:
            Unavailable: as ``schema.check`` and ``database.translate_errors``; postgres_not_installed.

        """
        load_psycopg()
        try:
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = f"the team's store needs psycopg's pool: {error}"
            raise Unavailable(message, reason="postgres_not_installed", suggestion=INSTALL) from error
        logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what fails is told to who asks
        pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            self._dsn,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            timeout=WAIT_SECONDS,
            kwargs={"autocommit": True, "application_name": "flashgrep", "connect_timeout": int(WAIT_SECONDS)},
            check=ConnectionPool.check_connection,
            reconnect_timeout=WAIT_SECONDS,
            open=True,
        )
        self._pool = pool
        with self._connection() as connection, translate_errors():
            connection.execute("RESET role")
            check(connection)
            rows = connection.execute("SELECT name FROM flashgrep.shard ORDER BY number").fetchall()
        self.shards = [row[0] for row in rows]

    def close(self) -> None:
        """Close the connections."""
        if self._pool is not None:
            self._pool.close()

    @contextlib.contextmanager
    def _connection(self) -> "Iterator[Connection[Any]]":
        if self._pool is None:
            raise Unavailable("the team's store is not open", reason="database_away")
        with translate_errors():
            connection = self._pool.getconn()
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    @contextlib.contextmanager
    def read(self, token: str) -> "Iterator[Reading]":
        """Lend a connection that sees what a token's hash (in hexadecimal digits) may see.

        Raises:
            Unavailable: database_away.

        """
        with self._connection() as connection:
            with translate_errors():
                connection.execute(_AS_READER, [token, str(int(STATEMENT_SECONDS * 1000))])
            yield Reading(self, connection)

    def list_silent(self) -> set[int]:
        """Return the shards that lately did not answer."""
        now = time.monotonic()
        with self._lock:
            return {number for number, until in self._avoided.items() if until > now}

    def avoid(self, shard: int) -> None:
        """Leave a shard alone for a while."""
        with self._lock:
            self._avoided[shard] = time.monotonic() + AVOID_SECONDS


class Reading:
    """What one question reads; not for several threads."""

    def __init__(self, store: Store, connection: "Connection[Any]") -> None:
        self._store = store
        self._connection = connection
        self.missing: set[int] = set()
        """Shards that did not answer."""

    def fetch(self, query: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on tables that lie in one place."""
        with blocking(), translate_errors():
            return self._connection.execute(query.encode(), params, binary=True).fetchall()

    def fetch_shards(
        self, query: str, params: Sequence[object], shards: Sequence[int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on tables that lie in shards; those that do not answer become ``missing``.

        ``query`` has ``{shards}`` where a condition on the column ``shard`` stands. All are asked at once; where that
        fails, one after the other.
        """
        psycopg = load_psycopg()
        asked = set(range(len(self._store.shards)) if shards is None else shards)
        self.missing |= asked & self._store.list_silent()
        asked -= self.missing
        if not asked:
            return []

        def ask(some: Sequence[int]) -> list[tuple[Any, ...]]:
            condition = f"shard IN ({', '.join(map(str, some))})"  # as constants: others are not even planned
            statement = query.replace("{shards}", condition).encode()
            with blocking():
                return self._connection.execute(statement, params, binary=True).fetchall()

        try:
            return ask(sorted(asked))
        except psycopg.OperationalError:
            if self._connection.closed:
                with translate_errors():
                    raise
        found = []
        for shard in sorted(asked):
            try:
                found += ask([shard])
            except psycopg.OperationalError as error:
                if self._connection.closed:
                    raise Unavailable(f"the team's database: {describe(error)}", reason="database_away") from error
                self._store.avoid(shard)
                self.missing.add(shard)
        return found

    def name_missing(self) -> list[str]:
        """Return the names of the shards that did not answer."""
        return [self._store.shards[number] for number in sorted(self.missing)]


ReadingAs = Callable[[], "contextlib.AbstractContextManager[Reading]"]
"""Lends the connection of the question that this thread answers."""
