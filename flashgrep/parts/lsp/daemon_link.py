"""A connection to the daemon: JSON-RPC lines, concurrent calls; cancelling a caller cancels its call at the daemon."""

import asyncio
import json
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, Final

LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of an answer; the daemon's own limits are far below."""
MOST_SENT: Final = 8 * 1024 * 1024
"""Bytes of a request: the daemon's default limit; its setting may be lower."""
TOO_LARGE: Final = -32003
CLOSED: Final = {"stage": "closed"}
"""Status of a closed project; here also reported when the connection ends."""
INVALID_PARAMS: Final = -32602


class DaemonError(Exception):
    """An error answer of the daemon; ``data`` has its reason."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", "the daemon refused"))
        self.code: int = error.get("code", 0)
        data = error.get("data")
        if isinstance(data, dict):
            self.data: dict[str, Any] = data
        else:
            self.data = {}


class DaemonEnded(ConnectionError):
    """The connection ended before the answer arrived."""


class DaemonLink:
    """Calls over one socket."""

    def __init__(self) -> None:
        self.on_status: Callable[[dict[str, Any]], None] | None = None
        """Called with each ``status`` notification that the daemon sends after ``$/subscribe``."""
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls can be sent."""
        return (
            self._writer is not None
            and self._reading is not None
            and not self._reading.done()
        )

    async def open(self, connected: socket.socket) -> None:
        """Take over a connection that is already bound to a project."""
        reader, self._writer = await asyncio.open_unix_connection(
            sock=connected, limit=LONGEST_LINE
        )
        self._reading = asyncio.create_task(self._read(reader))

    def send(
        self, method: str, params: dict[str, Any]
    ) -> tuple[int, asyncio.Future[Any]]:
        """Send a request at once; return its id, and the future of its result or error.

        Raises:
            DaemonEnded: there is no connection.

        """
        if self._writer is None:
            raise DaemonEnded("the daemon ended")
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        # Marks an error as retrieved even if the call was cancelled; else asyncio would
        # log it.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            line = encode(
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            )
        except UnicodeEncodeError:
            answer.set_exception(
                DaemonError(
                    {"code": INVALID_PARAMS, "message": "the text has a lone surrogate"}
                )
            )
            return number, answer
        if len(line) > MOST_SENT:
            answer.set_exception(
                DaemonError(
                    {
                        "code": TOO_LARGE,
                        "message": "the text is too large for the daemon",
                    }
                )
            )
            return number, answer
        # Registered before the write, so that an immediate answer finds its future.
        self._waiting[number] = answer
        self._writer.write(line)
        return number, answer

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return a method's result; cancelling the caller cancels the request at the daemon.

        Raises:
            DaemonError: the daemon's error.
            DaemonEnded: the connection ended before the answer arrived.

        """
        number, answer = self.send(method, params)
        try:
            return await answer
        except asyncio.CancelledError:
            # If it is not in the table, the answer has just arrived and there is
            # nothing to cancel.
            if self._waiting.pop(number, None) is not None and self._writer is not None:
                self._writer.write(
                    encode(
                        {
                            "jsonrpc": "2.0",
                            "method": "$/cancelRequest",
                            "params": {"id": number},
                        }
                    )
                )
            raise

    def close(self) -> None:
        """Close the connection; calls in flight fail with ``DaemonEnded``."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(DaemonEnded("the daemon ended"))
        self._waiting.clear()
        if self.on_status is not None:
            self.on_status(CLOSED)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        except (OSError, ValueError):  # the connection ended, or sent invalid JSON
            pass
        finally:
            self.close()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if message["method"] == "status" and self.on_status is not None:
                self.on_status(message["params"])
            return
        if (
            message.get("id") is None
        ):  # a request that was too long to be parsed: it may be any of those in flight
            for waiting in list(self._waiting.values()):
                if not waiting.done():
                    waiting.set_exception(DaemonError(message.get("error") or {}))
            self._waiting.clear()
            return
        # None if its caller was cancelled.
        answer = self._waiting.pop(message["id"], None)
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(DaemonError(message["error"]))
        else:
            answer.set_result(message["result"])


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as a line.

    Raises:
        UnicodeEncodeError: it contains a lone surrogate, which the daemon would reject as invalid JSON.

    """
    return (
        json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    )
