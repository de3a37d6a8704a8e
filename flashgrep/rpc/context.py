"""What a method sees of the request it answers: the client's end, the call, its progress."""

import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import anyio.from_thread

from flashgrep.registry import Call, Session
from flashgrep.rpc.message import Params, Request

PROGRESS_SECONDS = 0.05
"""Between two reports: twenty a second look smooth, more cost more than the work reported."""


class Log(Protocol):
    """What we ask of a logger."""

    def debug(self, event: str, **values: Any) -> Any:
        """Note what is only of interest when looking for it."""

    def warning(self, event: str, **values: Any) -> Any:
        """Note what somebody should look at."""

    def exception(self, event: str, **values: Any) -> Any:
        """Note a failure of ours, with the trace of the exception being handled."""


class Peer(Protocol):
    """The client's end of a connection."""

    session: Session

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; return whether it was sent."""

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result."""

    def follow(self, key: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Run something until it or the connection ends, in place of what runs by that key; say whether it is begun."""

    def unfollow(self, key: str) -> bool:
        """End what runs by a key; return whether anything did."""


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request: who asks, what, and the means to answer it by other methods."""

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
        # A notification may only be queued on the event loop.
        if threading.get_ident() == self._thread:
            self._send(params)
        else:
            anyio.from_thread.run_sync(self._send, params)

    def end(self) -> None:
        """Report nothing any more: the answer is on its way."""
        self._ended = True

    def _send(self, params: dict[str, object]) -> None:
        if not self._ended:  # it may have ended while a thread waited for the event loop
            self._notify("notifications/progress", params)
