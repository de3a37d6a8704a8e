"""What a method sees of its request: the client, the call, its progress."""

import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import anyio.from_thread

from flashgrep.base.registry import Call, Session
from flashgrep.rpc.message import Params, Request

PROGRESS_SECONDS = 0.05
"""Seconds between two reports: twenty a second look smooth, more cost more than the work reported."""


class Log(Protocol):
    """A logger's interface."""

    def debug(self, event: str, **values: Any) -> Any:
        """Log a detail for debugging."""

    def warning(self, event: str, **values: Any) -> Any:
        """Log something that needs attention."""

    def exception(self, event: str, **values: Any) -> Any:
        """Log an internal failure with the traceback of the exception being handled."""


class Peer(Protocol):
    """The client of a connection."""

    session: Session

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; return whether it was sent."""

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result."""

    def follow(self, key: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Run a task until it or the connection ends, in place of the one with this key; return whether it started."""

    def unfollow(self, key: str) -> bool:
        """Cancel the task with this key; return whether there was one."""


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request: its caller, its call, and access to other methods."""

    peer: Peer
    request: Request
    call: Call[Any]
    run_method: Callable[[Call[Any], str, Params], Awaitable[Any]]

    @property
    def session(self) -> Session:
        """What the connection is bound to; an extension may change it."""
        return self.call.session

    async def call_method(self, name: str, raw_params: Mapping[str, Any]) -> Any:
        """Call a registered method within this request: its deadline, progress and cancellation hold.

        Raises:
            FlashgrepError: as the method does; MethodNotFound for no such method.

        """
        return await self.run_method(self.call, name, dict(raw_params))

    def notify(self, method: str, params: Any) -> bool:
        """Send the client a notification unless it is too far behind; return whether it was sent."""
        return self.peer.notify(method, params)


Extension: TypeAlias = Callable[[RequestContext, Params], Awaitable[Any]]
"""Answers a method outside the registry; its result is JSON-ready."""


class ProgressReporter:
    """Sends ``notifications/progress`` for one token; may be called from a worker thread of anyio's."""

    def __init__(self, token: str | int, notify: Callable[[str, object], bool]) -> None:
        self._token = token
        self._notify = notify
        self._thread = threading.get_ident()
        self._next = 0.0
        self._ended = False

    def __call__(self, done: float, total: float | None, message: str) -> None:
        """Report, unless the last report was just now or the call has been answered."""
        now = time.monotonic()
        if self._ended or now < self._next:
            return
        self._next = now + PROGRESS_SECONDS
        params: dict[str, object] = {"progressToken": self._token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        # Notifications may only be queued on the event loop.
        if threading.get_ident() == self._thread:
            self._send(params)
        else:
            anyio.from_thread.run_sync(self._send, params)

    def end(self) -> None:
        """Stop reporting: the answer is on its way."""
        self._ended = True

    def _send(self, params: dict[str, object]) -> None:
        if (
            not self._ended
        ):  # it may have stopped while a thread waited for the event loop
            self._notify("notifications/progress", params)
