"""One question's connection: as the one who asks, until its deadline, and told which shards did not answer."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.checkpoint import blocking
from flashgrep.errors import Unavailable
from flashgrep.team.database import INSTALL, load_psycopg, translate_errors
from flashgrep.team.migrations import check

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS: Final = 16
WAIT_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 3.0
"""What one statement may take; PostgreSQL ends it then."""
CUT_SECONDS: Final = 3.5
"""After this long without an answer the connection is cut: a backend that a shard hangs in stays for half a minute."""
PROBE_SECONDS: Final = 1.0
"""What a shard that did not answer before is given by the question that asks it again."""
AVOID_SECONDS: Final = 15.0
"""A shard that did not answer is not asked for this long: each further question would wait for it, too."""
_AS_READER: Final = (
    "SELECT set_config('role', 'flashgrep_reader', false), set_config('flashgrep.token', %s, false), "
    "set_config('flashgrep.person', %s, false), set_config('flashgrep.groups', %s, false), "
    "set_config('statement_timeout', %s, false)"
)


@contextlib.contextmanager
def cut_after(connection: "Connection[Any]", seconds: float) -> Iterator[None]:
    """Run a block, and end the connection if it takes longer: what waits for an answer fails then."""
    # No copy of it: Socket.dup() would make the one that libpq reads a blocking one.
    own, lock = socket.socket(fileno=connection.fileno()), threading.Lock()

    def cut() -> None:
        with lock, contextlib.suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            own.detach()


def check_answers(connection: "Connection[Any]") -> None:
    """Raise if a connection of the pool does not answer."""
    with cut_after(connection, CUT_SECONDS):
        connection.execute("")


class Shown(NamedTuple):
    """What a client has shown: the hash of a token in hexadecimal digits; if it is a proxy's, whom it speaks for."""

    token: str
    person: str = ""
    groups: tuple[str, ...] = ()


class Store:
    """The pool of connections to a team's database, and which shards answer; safe from any thread."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()
        self._avoided: dict[int, float] = {}
        self.shards: list[str] = []
        """Their names, by number."""
        self.sources: list[tuple[int, str]] = []
        """Numbers of the repositories when it was opened, and where they are fetched from."""

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
            check=check_answers,
            reconnect_timeout=WAIT_SECONDS,
            open=True,
        )
        self._pool = pool
        with self._connection() as connection, translate_errors():
            connection.execute("RESET role")
            check(connection)
            rows = connection.execute("SELECT name FROM flashgrep.shard ORDER BY number").fetchall()
            self.sources = connection.execute("SELECT id, source FROM flashgrep.repository").fetchall()
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
    def read(self, shown: Shown) -> "Iterator[Reading]":
        """Lend a connection that sees what is to be seen for what was shown.

        Raises:
            Unavailable: database_away.

        """
        with contextlib.ExitStack() as stack:

            def open_connection() -> "Connection[Any]":
                connection = stack.enter_context(self._connection())
                with translate_errors(), cut_after(connection, CUT_SECONDS):
                    groups, milliseconds = json.dumps(shown.groups), str(int(STATEMENT_SECONDS * 1000))
                    connection.execute(_AS_READER, [shown.token, shown.person, groups, milliseconds])
                return connection

            yield Reading(self, open_connection)

    def list_silent(self) -> set[int]:
        """Return the shards that recently did not answer."""
        now = time.monotonic()
        with self._lock:
            return {number for number, until in self._avoided.items() if until > now}

    def take_suspects(self, among: set[int]) -> set[int]:
        """Return which of these were left alone until now; who is told of one asks it, and all others leave it."""
        now = time.monotonic()
        with self._lock:
            found = {number for number in among if self._avoided.get(number, now + 1) <= now}
            self._avoided.update(dict.fromkeys(found, now + AVOID_SECONDS))
        return found

    def trust(self, shard: int) -> None:
        """Ask a shard like the others again: it has answered."""
        with self._lock:
            self._avoided.pop(shard, None)

    def avoid(self, shard: int) -> None:
        """Leave a shard alone for a while."""
        with self._lock:
            self._avoided[shard] = time.monotonic() + AVOID_SECONDS


class Reading:
    """What one question reads; not for several threads."""

    def __init__(self, store: Store, open_connection: "Callable[[], Connection[Any]]") -> None:
        self._store = store
        self._open = open_connection
        self._connection = open_connection()
        self.missing: set[int] = set()
        """Shards that did not answer."""

    def fetch(self, query: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on tables that lie in one place."""
        with blocking(), translate_errors():
            return self._execute(query, params)

    def _execute(self, query: str, params: Sequence[object], seconds: float = CUT_SECONDS) -> list[tuple[Any, ...]]:
        if self._connection.closed:
            self._connection = self._open()
        with cut_after(self._connection, seconds):
            return self._connection.execute(query.encode(), params, binary=True).fetchall()

    def fetch_shards(
        self, query: str, params: Sequence[object], shards: Sequence[int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on tables that lie in shards; those that do not answer become ``missing``.

        ``query`` has ``{shards}`` where a condition on the column ``shard`` stands. All are asked at once; where that
        fails, one after the other. One that did not answer before is asked alone, and has less time for it.
        """
        psycopg = load_psycopg()
        found: list[tuple[Any, ...]] = []
        asked = set(range(len(self._store.shards)) if shards is None else shards)
        self.missing |= asked & self._store.list_silent()
        asked -= self.missing

        def ask(some: Sequence[int], seconds: float = CUT_SECONDS) -> list[tuple[Any, ...]]:
            condition = f"shard IN ({', '.join(map(str, some))})"  # as constants: others are not even planned
            with blocking():
                return self._execute(query.replace("{shards}", condition), params, seconds)

        def ask_alone(shard: int, seconds: float = CUT_SECONDS) -> None:
            try:
                found.extend(ask([shard], seconds))
                self._store.trust(shard)
            except psycopg.OperationalError:
                self._store.avoid(shard)
                self.missing.add(shard)

        for shard in sorted(self._store.take_suspects(asked)):
            ask_alone(shard, PROBE_SECONDS)
            asked.discard(shard)
        if not asked:
            return found
        try:
            return found + ask(sorted(asked))
        except psycopg.OperationalError:
            for shard in sorted(asked):
                ask_alone(shard)
        return found

    def name_missing(self) -> list[str]:
        """Return the names of the shards that did not answer."""
        return [self._store.shards[number] for number in sorted(self.missing)]


ReadingAs = Callable[[], "contextlib.AbstractContextManager[Reading]"]
"""Lends the connection of the question that this thread answers."""
