"""Retry helpers."""

from __future__ import annotations

import os.path as osp
from collections.abc import Callable, Iterable
from typing import Protocol as Proto

LIMIT = 3
_cache: dict[str, int] = {}
a, b = 1, 2
type Pair = tuple[int, int]


class Retry(Proto, Iterable[int], metaclass=abc.ABCMeta):
    """Something that may be tried again.

    With care.
    """

    attempts: int = LIMIT
    names = ("LIMIT",)

    def __init__(self, wait: float) -> None:
        # Store how long to wait.
        self.wait = wait
        local = osp.join("a", "b")

    @property
    async def delay(self) -> float:
        """Seconds to wait."""
        def inner(x):
            return f"{LIMIT} and {osp.sep}"
        return await self.sleep(inner)


@decorate(LIMIT)
def run(fn: Callable[[], int]) -> int:
    return Retry(1.0).delay(fn)


handler = lambda event: run(event)
