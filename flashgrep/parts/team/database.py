"""Connections to PostgreSQL by psycopg, an optional dependency imported at first use."""

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from flashgrep.base.errors import Unavailable
from flashgrep.base.installation import advise_install

if TYPE_CHECKING:
    from psycopg import Connection

INSTALL: Final = advise_install("flashgrep[postgres]")
CONNECT_SECONDS: Final = 10
LEAST_VERSION: Final = 160_000
"""PostgreSQL 16: it scans foreign partitions concurrently and applies row security to them."""
_OPTIONS: Final = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "flashgrep",
    # A worker whose machine died loses its locks, and so its job, after 25 seconds.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


def load_psycopg() -> Any:
    """Return the module ``psycopg``.

    Raises:
        Unavailable: postgres_not_installed.

    """
    try:
        return import_module("psycopg")
    except ImportError as error:
        raise Unavailable(
            f"the team's store needs psycopg: {error}",
            reason="postgres_not_installed",
            suggestion=INSTALL,
        ) from error


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Translate database errors into ours.

    Raises:
        Unavailable: database_away, it cannot be reached or closed the connection; database_failed.

    """
    psycopg = load_psycopg()
    try:
        yield
    except psycopg.OperationalError as error:
        raise Unavailable(
            f"the team's database does not answer: {describe(error)}",
            reason="database_away",
        ) from error
    except psycopg.Error as error:
        raise Unavailable(
            f"the team's database: {describe(error)}", reason="database_failed"
        ) from error


def describe(error: Exception) -> str:
    """Return the first line of PostgreSQL's message; later ones may contain a password."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def connect(dsn: str, *, autocommit: bool = True) -> "Connection[Any]":
    """Return a connection.

    Raises:
        Unavailable: as ``translate_errors``; postgres_too_old.

    """
    psycopg = load_psycopg()
    with translate_errors():
        connection: Connection[Any] = psycopg.connect(
            dsn, autocommit=autocommit, **_OPTIONS
        )
    if connection.info.server_version < LEAST_VERSION:
        version = connection.info.server_version // 10_000
        connection.close()
        raise Unavailable(
            f"PostgreSQL {version} is too old: 16 or later is needed",
            reason="postgres_too_old",
        )
    return connection
