"""What is open: listeners and connections, so that shutting down can wait for them."""

from typing import Protocol

import anyio


class Closable(Protocol):
    """A connection or a listener, as shutting down sees it."""

    def stop_reading(self) -> None:
        """Take nothing further, finish what is in flight, then close."""

    def abort(self) -> None:
        """Close now."""


class Openings:
    """The set of what is open; once closing, whatever opens is stopped at once."""

    def __init__(self) -> None:
        self._open: set[Closable] = set()
        self._closing = False
        self._empty = anyio.Event()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, opened: Closable) -> None:
        """Remember what was opened."""
        self._open.add(opened)
        if self._closing:
            opened.stop_reading()

    def discard(self, closed: Closable) -> None:
        """Forget what was closed."""
        self._open.discard(closed)
        if not self._open:
            self._empty.set()

    async def close(self, grace: float) -> None:
        """Stop all, wait for ``grace`` seconds, then abort what is left."""
        self._closing = True
        for opened in tuple(self._open):
            opened.stop_reading()
        with anyio.move_on_after(grace):
            while self._open:
                self._empty = anyio.Event()
                await self._empty.wait()
        for opened in tuple(self._open):
            opened.abort()
