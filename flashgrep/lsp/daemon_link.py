"""One connection to the daemon: JSON-RPC lines, many calls at once, each ended at the daemon when its caller is."""

import asyncio
import json
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, Final

LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes of an answer; its own limits keep the daemon far below."""
MOST_SENT: Final = 8 * 1024 * 1024
"""Bytes of a request: the daemon's own limit, unless a setting of its says less."""
TOO_LARGE: Final = -32003
CLOSED: Final = {"stage": "closed"}
"""What is told of a project that is gone, here also when the connection is."""
INVALID_PARAMS: Final = -32602


class DaemonError(Exception):
    """The daemon's error answer; ``data`` has its reason."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", "the daemon refused"))
        self.code: int = error.get("code", 0)
        data = error.get("data")
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}


class DaemonEnded(ConnectionError):
    """The connection ended before the answer came."""


class DaemonLink:
    """Calls over one socket; the reader ends with it."""

    def __init__(self) -> None:
        self.on_status: Callable[[dict[str, Any]], None] | None = None
        """Called with each state of the project that the daemon tells after ``$/subscribe``."""
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls can be sent."""
        return self._writer is not None and self._reading is not None and not self._reading.done()

    async def open(self, connected: socket.socket) -> None:
        """Take a connection over that is bound and ready."""
        reader, self._writer = await asyncio.open_unix_connection(sock=connected, limit=LONGEST_LINE)
        self._reading = asyncio.create_task(self._read(reader))

    def send(self, method: str, params: dict[str, Any]) -> tuple[int, asyncio.Future[Any]]:
        """Send a request at once; return its id, and the future of its result or error.

        Raises:
            DaemonEnded: there is no connection.

        """
        if self._writer is None:
            raise DaemonEnded("the daemon ended")
        number = next(self._ids)
        answer = asyncio.get_running_loop().create_future()
        # An error that nobody waits for any more, as of a cancelled call, is none to report.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            line = encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        except UnicodeEncodeError:
            answer.set_exception(DaemonError({"code": INVALID_PARAMS, "message": "half a surrogate pair is no text"}))
            return number, answer
        if len(line) > MOST_SENT:
            answer.set_exception(DaemonError({"code": TOO_LARGE, "message": "the text is too large for the daemon"}))
            return number, answer
        # Before it is written: the answer finds its future even if it comes at once.
        self._waiting[number] = answer
        self._writer.write(line)
        return number, answer

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return a method's result; the daemon stops working at it when the caller is cancelled.

        Raises:
            DaemonError: the daemon's error.
            DaemonEnded: the connection ended first.

        """
        number, answer = self.send(method, params)
        try:
            return await answer
        except asyncio.CancelledError:
            # Not in the table: the answer came in the same step of the loop, and there is nothing to cancel.
            if self._waiting.pop(number, None) is not None and self._writer is not None:
                self._writer.write(encode({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}}))
            raise

    def close(self) -> None:
        """Hang up; whoever waits hears it."""
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
        except (OSError, ValueError):  # it ended, or speaks something else
            pass
        finally:
            self.close()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if message["method"] == "status" and self.on_status is not None:
                self.on_status(message["params"])
            return
        if message.get("id") is None:  # of what was too long to be read: whose it was is not told
            for waiting in list(self._waiting.values()):
                if not waiting.done():
                    waiting.set_exception(DaemonError(message.get("error") or {}))
            self._waiting.clear()
            return
        # None: its caller was cancelled.
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
        UnicodeEncodeError: there is half a surrogate pair in it, which the daemon would take for no JSON.

    """
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
