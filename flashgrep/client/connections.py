"""Connections of the synchronous client: some idle ones are kept, and each carries one call at a time.

A call that is interrupted leaves its connection in an unknown state, so that is closed, which also tells the daemon to
give the call up. A daemon that ended is started again, and a question that only reads is asked once more.
"""

import os
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from flashgrep.base.errors import DeadlineExceeded, FlashgrepError, read_error
from flashgrep.base.paths import (
    Paths,
    as_latin1,
    cache_folder,
    from_latin1,
    state_folder,
)
from flashgrep.client.errors import DaemonEnded, Unreachable
from flashgrep.client.questions import Request
from flashgrep.rpc.connect import (
    connect,
    encode_request,
    has_input,
    receive_answer,
    send_request,
)

ValueT = TypeVar("ValueT")
MOST: Final = 16
"""Connections at once; further threads or tasks wait for one of them."""
ATTEMPTS: Final = 3
"""To reach a daemon: one may be ending, and the next one be replaced."""
PERHAPS_DONE: Final = "it may or may not have been carried out"


def open_connection() -> socket.socket:
    """Return a connection to this user's daemon, which is started if need be; raise Unreachable."""
    paths = Paths(state_folder(os.environ), cache_folder(os.environ))
    for _ in range(ATTEMPTS):
        try:
            return connect(paths, os.environ)
        except ConnectionError as error:
            # It was just ending; the next one answers.
            reason: OSError = error
        except OSError as error:
            raise Unreachable(str(error)) from error
    raise Unreachable(str(reason)) from reason


def find_project(path: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Return the root and the name of the project around a folder, which becomes one if it is named and in none.

    Raises:
        Unreachable: there is no daemon.
        FlashgrepError: the folder cannot be a project, or no folder was named and the current one is in no project.

    """
    folder = str(Path(path or "").expanduser().absolute())
    params = {"folder": as_latin1(folder), "adopt": path is not None}
    try:
        with open_connection() as control:
            answer: dict[str, Any] = {**send_request(control, "$/open", params)}
    except ConnectionError as error:
        raise Unreachable(str(error)) from error
    if "error" in answer:
        raise read_error(answer["error"])
    result = answer["result"]
    if result["root"] is None:
        raise FlashgrepError(
            f"not in a project: {folder}; name a folder to make it one",
            reason="project_not_found",
        )
    return from_latin1(result["root"]), result["name"]


def decode_answer(line: bytes) -> Any:
    """Return the result in a line, or raise its error."""
    answer = orjson.loads(line)
    if "error" in answer:
        raise read_error(answer["error"])
    return answer["result"]


def describe_end(request: Request, error: Exception) -> DaemonEnded:
    """Return the failure of a call whose connection ended."""
    message = f"the daemon ended before it answered {request.method}: {error}"
    if not request.repeats:
        message = f"{message}; {PERHAPS_DONE}"
    return DaemonEnded(message, method=request.method)


class Connections:
    """Connections to the daemon, for any number of threads; a process forked off opens its own."""

    def __init__(self, timeout: float) -> None:
        """``timeout``: seconds to wait for an answer, or longer if the call itself allows more."""
        self.timeout = timeout
        self._idle: list[socket.socket] = []
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST)
        self._process = os.getpid()
        self._is_closed = False

    def run(self, steps: Generator[Request, Any, ValueT]) -> ValueT:
        """Send the requests of a question, and return its value."""
        try:
            request = next(steps)
            while True:
                request = steps.send(self.ask(request))
        except StopIteration as end:
            value: ValueT = end.value
            return value

    def ask(self, request: Request) -> Any:
        """Return the result of a request.

        Raises:
            FlashgrepError: as the daemon answered.
            Unreachable: it ended; a question that only reads has been asked twice.
            DeadlineExceeded: it did not answer in time.

        """
        with self._room:
            try:
                return self._ask_once(request)
            except DaemonEnded:
                if not request.repeats:
                    raise
            # The next daemon has the same answer.
            return self._ask_once(request)

    def close(self) -> None:
        """Close all that are idle; those in use are closed when they are."""
        self._is_closed = True
        while (connection := self._take()) is not None:
            connection.close()

    def _ask_once(self, request: Request) -> Any:
        if self._is_closed:
            raise Unreachable("this project is closed; open it again", reason="closed")
        connection = self._take() or open_connection()
        is_whole = False
        try:
            connection.settimeout(request.seconds(self.timeout))
            line = self._exchange(connection, request)
            is_whole = True
        finally:
            if is_whole:
                self._put(connection)
            else:
                connection.close()
        return decode_answer(line)

    def _exchange(self, connection: socket.socket, request: Request) -> bytes:
        try:
            connection.sendall(encode_request(request.method, request.params))
            return receive_answer(connection)
        except TimeoutError:
            raise DeadlineExceeded(
                f"no answer to {request.method} within {request.seconds(self.timeout):g} s"
            ) from None
        except OSError as error:
            raise describe_end(request, error) from error

    def _take(self) -> socket.socket | None:
        """Return an idle connection that is still open."""
        with self._lock:
            if self._process != os.getpid():
                # They are the parent's: two processes would read each other's answers.
                self._idle.clear()
                self._process = os.getpid()
            while self._idle:
                connection = self._idle.pop()
                # Nothing was asked on it: what waits there is its end.
                if not has_input(connection):
                    return connection
                connection.close()
        return None

    def _put(self, connection: socket.socket) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()
