"""Bounds the indexers of a daemon: few stores are written at once, and few indexers wait for their store's next save.

Without a bound, a client that opens 300 projects one after the other starts as many processes, and each answer waits
for the processor.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import anyio

MOST_AT_WORK = 4
"""Indexers that write at once. Each starts workers of its own for a large batch, so more would only take memory."""
MOST_IDLE = 4
"""Indexers that stay for their store's next save, the last used ones: each takes 40 MB, and starting one 0.3 s."""


class IndexerOwner(Protocol):
    """A store's scheduler."""

    async def end_idle(self) -> None:
        """End the indexer, unless there is work for it again."""


class IndexerTurns:
    """The turns of all stores; those that wait get theirs in the order in which they came."""

    def __init__(self, most: int = MOST_AT_WORK, most_idle: int = MOST_IDLE) -> None:
        self._places = anyio.Semaphore(most)
        self._most_idle = most_idle
        self._idle: dict[IndexerOwner, None] = {}
        """Those with an indexer that does nothing, the longest idle first."""

    @property
    def are_taken(self) -> bool:
        """Whether whoever comes now has to wait."""
        return not self._places.value

    @asynccontextmanager
    async def take(self, owner: IndexerOwner) -> AsyncIterator[None]:
        """Wait for a turn and hold it; afterwards the indexer is idle."""
        self._idle.pop(owner, None)
        async with self._places:
            yield
        self._idle[owner] = None
        while len(self._idle) > self._most_idle:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            await oldest.end_idle()

    def leave(self, owner: IndexerOwner) -> None:
        """Forget an owner that has no indexer any more."""
        self._idle.pop(owner, None)
