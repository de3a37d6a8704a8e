"""Quick look-ups one after another: side by side, threads of one interpreter only take the processor from each other.

Measured with 64 clients that ask for a rare literal as fast as they are answered: 254 a second and 320 ms for the
slowest in a hundred when all run at once; 329 a second and 220 ms one after another.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

PATIENCE = 0.02
"""A look-up that has not ended after so many seconds is a slow one: from then on others run beside it."""


class Turns:
    """Lets look-ups begin in the order in which they come, each when the one before has ended or shown to be slow."""

    def __init__(self) -> None:
        self._line = anyio.Lock()
        self._last = anyio.Event()
        self._last.set()
        self._begun = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn, and have the next wait until this block ends."""
        async with self._line:  # who is first in line watches the one before
            if not self._last.is_set():
                with anyio.move_on_after(self._begun + PATIENCE - anyio.current_time()):
                    await self._last.wait()
            mine = self._last = anyio.Event()
            self._begun = anyio.current_time()
        try:
            yield
        finally:
            mine.set()
