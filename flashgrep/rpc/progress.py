"""Progress of one call as notifications, never more often than anyone can look."""

import threading
import time
from collections.abc import Callable

import anyio.from_thread

INTERVAL = 0.05  # seconds; twenty a second look smooth, more cost more than the work reported


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
        self._next = now + INTERVAL
        params: dict[str, object] = {"progressToken": self._token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        if threading.get_ident() == self._thread:
            self._send(params)
        else:
            anyio.from_thread.run_sync(self._send, params)

    def end(self) -> None:
        """Report nothing any more: the answer is on its way."""
        self._ended = True

    def _send(self, params: dict[str, object]) -> None:
        if not self._ended:
            self._notify("notifications/progress", params)
