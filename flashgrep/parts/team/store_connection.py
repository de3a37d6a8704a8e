"""Connections for questions: with the asker's permissions, time limits, and a record of shards that did not answer."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.base.checkpoint import blocking
from flashgrep.base.errors import Unavailable
from flashgrep.parts.team.database import INSTALL, load_psycopg, translate_errors
from flashgrep.parts.team.migrations import check

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

MOST_CONNECTIONS: Final = 16
WAIT_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 3.0
"""Time limit of a statement, enforced by PostgreSQL."""
CUT_SECONDS: Final = 3.5
"""The connection is cut after this long without an answer: a backend waiting for a hung shard takes half a minute."""
PROBE_SECONDS: Final = 1.0
"""Time limit when a shard that did not answer before is tried again."""
AVOID_SECONDS: Final = 15.0
"""A shard that did not answer is not queried for this long, so that further questions do not wait for it."""
_AS_READER: Final = (
    "SELECT set_config('role', 'flashgrep_reader', false), set_config('flashgrep.token', %s, false), "
    "set_config('flashgrep.person', %s, false), set_config('flashgrep.groups', %s, false), "
    "set_config('statement_timeout', %s, false)"
)


@contextlib.contextmanager
def cut_after(connection: "Connection[Any]", seconds: float) -> Iterator[None]:
    """Run a block, and shut the connection down if it takes longer, so that a pending statement fails."""
    # Not Socket.dup(): it would make libpq's socket blocking.
    own = socket.socket(fileno=connection.fileno())
    lock = threading.Lock()

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
    """Raise if a pooled connection does not answer."""
    with cut_after(connection, CUT_SECONDS):
        connection.execute("")


class Credentials(NamedTuple):
    """A client's credentials: a token's hash in hexadecimal digits; for a proxy's token, the person it acts for."""

    token: str
    person: str = ""
    groups: tuple[str, ...] = ()


class Store:
    """The pool of connections to a team's database, and the shards to avoid; thread-safe."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()
        self._avoided: dict[int, float] = {}
        self.shards: list[str] = []
        """Names of the shards, by number."""
        self.sources: list[tuple[int, str]] = []
        """Number and source of each repository, as of ``open``."""

    def open(self) -> None:
        """Connect, and check that the tables are those of this version.

        Raises:
            Unavailable: as ``migrations.check`` and ``database.translate_errors``; postgres_not_installed.

        """
        load_psycopg()
        try:
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = f"the team's store needs psycopg's pool: {error}"
            raise Unavailable(
                message, reason="postgres_not_installed", suggestion=INSTALL
            ) from error
        logging.getLogger("psycopg.pool").addHandler(
            logging.NullHandler()
        )  # the asker gets the error
        pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            self._dsn,
            min_size=0,
            max_size=MOST_CONNECTIONS,
            timeout=WAIT_SECONDS,
            kwargs={
                "autocommit": True,
                "application_name": "flashgrep",
                "connect_timeout": int(WAIT_SECONDS),
            },
            check=check_answers,
            reconnect_timeout=WAIT_SECONDS,
            open=True,
        )
        self._pool = pool
        with self._connection() as connection, translate_errors():
            connection.execute("RESET role")
            check(connection)
            rows = connection.execute(
                "SELECT name FROM flashgrep.shard ORDER BY number"
            ).fetchall()
            self.sources = connection.execute(
                "SELECT id, source FROM flashgrep.repository"
            ).fetchall()
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
    def read(self, credentials: Credentials) -> "Iterator[QueryConnection]":
        """Lend a connection with the permissions of the given credentials.

        Raises:
            Unavailable: database_away.

        """
        with contextlib.ExitStack() as stack:

            def open_connection() -> "Connection[Any]":
                connection = stack.enter_context(self._connection())
                with translate_errors(), cut_after(connection, CUT_SECONDS):
                    groups = json.dumps(credentials.groups)
                    milliseconds = str(int(STATEMENT_SECONDS * 1000))
                    connection.execute(
                        _AS_READER,
                        [credentials.token, credentials.person, groups, milliseconds],
                    )
                return connection

            yield QueryConnection(self, open_connection)

    def list_shards_to_avoid(self) -> set[int]:
        """Return the shards that are avoided now, since they recently did not answer."""
        now = time.monotonic()
        with self._lock:
            return {number for number, until in self._avoided.items() if until > now}

    def take_probes(self, among: set[int]) -> set[int]:
        """Return the shards whose avoidance has just ended: the caller probes them, others keep avoiding them."""
        now = time.monotonic()
        with self._lock:
            numbers = {
                number for number in among if self._avoided.get(number, now + 1) <= now
            }
            self._avoided.update(dict.fromkeys(numbers, now + AVOID_SECONDS))
        return numbers

    def trust(self, shard: int) -> None:
        """Stop avoiding a shard: it has answered."""
        with self._lock:
            self._avoided.pop(shard, None)

    def avoid(self, shard: int) -> None:
        """Avoid a shard for ``AVOID_SECONDS``."""
        with self._lock:
            self._avoided[shard] = time.monotonic() + AVOID_SECONDS


class QueryConnection:
    """The connection of one question; not thread-safe."""

    def __init__(
        self, store: Store, open_connection: "Callable[[], Connection[Any]]"
    ) -> None:
        self._store = store
        self._open = open_connection
        self._connection = open_connection()
        self.missing: set[int] = set()
        """Shards that did not answer."""

    def fetch(self, query: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on unsharded tables."""
        with blocking(), translate_errors():
            return self._execute(query, params)

    def _execute(
        self, query: str, params: Sequence[object], seconds: float = CUT_SECONDS
    ) -> list[tuple[Any, ...]]:
        if self._connection.closed:
            self._connection = self._open()
        with cut_after(self._connection, seconds):
            return self._connection.execute(
                query.encode(), params, binary=True
            ).fetchall()

    def fetch_shards(
        self, query: str, params: Sequence[object], shards: Sequence[int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement on sharded tables; shards that do not answer are added to ``missing``.

        ``{shards}`` in ``query`` is replaced by a condition on the column ``shard``. All shards are queried at once;
        if that fails, one by one. A shard that did not answer before is queried alone, with less time.
        """
        psycopg = load_psycopg()
        rows: list[tuple[Any, ...]] = []
        shards_wanted = set(
            range(len(self._store.shards)) if shards is None else shards
        )
        self.missing |= shards_wanted & self._store.list_shards_to_avoid()
        shards_wanted -= self.missing

        def ask(
            some: Sequence[int], seconds: float = CUT_SECONDS
        ) -> list[tuple[Any, ...]]:
            condition = f"shard IN ({', '.join(map(str, some))})"  # constants: the planner drops the other shards
            with blocking():
                return self._execute(
                    query.replace("{shards}", condition), params, seconds
                )

        def ask_alone(shard: int, seconds: float = CUT_SECONDS) -> None:
            try:
                rows.extend(ask([shard], seconds))
                self._store.trust(shard)
            except psycopg.OperationalError:
                self._store.avoid(shard)
                self.missing.add(shard)

        for shard in sorted(self._store.take_probes(shards_wanted)):
            ask_alone(shard, PROBE_SECONDS)
            shards_wanted.discard(shard)
        if not shards_wanted:
            return rows
        try:
            return rows + ask(sorted(shards_wanted))
        except psycopg.OperationalError:
            for shard in sorted(shards_wanted):
                ask_alone(shard)
        return rows

    def name_missing(self) -> list[str]:
        """Return the names of the shards that did not answer."""
        return [self._store.shards[number] for number in sorted(self.missing)]


OpenQuery = Callable[[], "contextlib.AbstractContextManager[QueryConnection]"]
"""Lends the connection of this thread's question."""
