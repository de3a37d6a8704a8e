"""What the local commands share: asking the daemon, and saying what went wrong."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from flashgrep.connect import connect, send_request, try_connect
from flashgrep.paths import Paths, cache_folder, state_folder

ERROR = 2
PATIENCE_SECONDS = 5.0
"""What a running daemon says of itself takes milliseconds; one that is stopped or stuck never answers."""


def find_user_paths() -> Paths:
    """Return where this user's daemon lives."""
    return Paths(state_folder(os.environ), cache_folder(os.environ))


def ask_daemon(method: str, **params: object) -> Any:
    """Return the result of one of the daemon's methods; the daemon is started if need be."""
    with connect(find_user_paths(), os.environ) as connection:
        return _result(send_request(connection, method, params))


def ask_running(method: str, **params: object) -> Any | None:
    """Return the result of one of the daemon's methods, or None when no daemon runs."""
    connection = try_connect(find_user_paths().socket)
    if connection is None:
        return None
    with connection:
        connection.settimeout(PATIENCE_SECONDS)
        return _result(send_request(connection, method, params))


def fail(message: str) -> NoReturn:
    """End the command with a message on stderr and status 2."""
    sys.stderr.write(f"fgrep: {message}\n")
    raise SystemExit(ERROR)


@contextmanager
def failing_cleanly() -> Iterator[None]:
    """End the command readably when the daemon cannot be reached or a folder not be used."""
    try:
        yield
    except (OSError, ValueError) as error:
        fail(str(error))


def _result(answer: dict[str, dict[str, str]]) -> Any:
    if "error" in answer:
        error = cast("dict[str, Any]", answer["error"])
        suggestion = error.get("data", {}).get("suggestion")
        fail(error["message"] + (f"\nfgrep: {suggestion}" if suggestion else ""))
    return answer["result"]
