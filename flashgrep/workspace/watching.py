"""A watcher that can be switched off and on: off, nothing is watched and every question looks at the whole tree."""

import select
from collections.abc import Callable

from flashgrep.ingest.watch import Change, Watcher

STOPPED = "watching was stopped"


class Switch:
    """Stands between a project and its watcher.

    ``fileno`` stays the same over switching, for whoever waits on it: an epoll instance with the watcher's queue in it.
    Off, that queue is closed, so the kernel's watches are given back and nobody is woken.
    """

    def __init__(self, make: Callable[[], Watcher]) -> None:
        self._make = make
        self._watcher: Watcher | None = make()
        self._swept = True
        number = self._watcher.fileno()
        self._poll = None if number is None else select.epoll()
        if self._poll is not None and number is not None:
            self._poll.register(number, select.EPOLLIN)

    @property
    def off(self) -> bool:
        """Whether nothing is watched because somebody wanted it so."""
        return self._watcher is None

    @property
    def failed(self) -> str:
        """Why not all changes are seen, or empty."""
        return STOPPED if self._watcher is None else self._watcher.failed

    @failed.setter
    def failed(self, why: str) -> None:
        if self._watcher is not None:
            self._watcher.failed = why

    def switch(self, *, on: bool) -> bool:
        """Watch, or stop watching; return whether that was a change. What happened meanwhile comes as an overflow."""
        if on == (self._watcher is not None):
            return False
        if self._watcher is None:
            self._watcher = self._make()
            self._swept = False
            number = self._watcher.fileno()
            if self._poll is not None and number is not None:
                self._poll.register(number, select.EPOLLIN)
        else:
            self._watcher.close()  # which takes its queue out of the epoll instance
            self._watcher = None
        return True

    def add(self, folder: bytes) -> None:
        """Watch one folder, if anything is watched."""
        if self._watcher is not None:
            self._watcher.add(folder)

    def drain(self) -> list[Change]:
        """Return what happened since the last call; nothing while off."""
        if self._watcher is None:
            return []
        if not self._swept:
            self._swept = True
            return [Change("overflow")]
        return self._watcher.drain()

    def settle(self, timeout: float) -> bool:
        """Wait until all that happened before this call will be in ``drain``."""
        return self._watcher is None or self._watcher.settle(timeout)

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when ``drain`` has something, or None."""
        return None if self._poll is None else self._poll.fileno()

    def close(self) -> None:
        """Stop watching for good."""
        self.switch(on=False)
        if self._poll is not None:
            self._poll.close()
