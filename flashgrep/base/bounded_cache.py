"""A cache of bounded size."""

import sys
import threading
from collections import OrderedDict
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class BoundedCache(Generic[KeyT, ValueT]):
    """Values by key, up to a total size; the one used longest ago leaves first. Threads share it."""

    def __init__(self, most: int, largest: int = sys.maxsize) -> None:
        """``most``: the maximum size of all values; ``largest``: that of one, which is not kept beyond it."""
        self._most = most
        self._largest = largest
        self._size = 0
        self._held: OrderedDict[KeyT, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many values are held."""
        return len(self._held)

    @property
    def size(self) -> int:
        """The size of all values."""
        return self._size

    def find(self, key: KeyT) -> ValueT | None:
        """Return the value of a key, if it is known."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def put(self, key: KeyT, size: int, value: ValueT) -> None:
        """Store a value, replacing the key's former one."""
        with self._lock:
            self._size -= self._held.pop(key, (value, 0))[1]
            if size <= self._largest:
                self._size += size
                self._held[key] = value, size
            while self._size > self._most:
                self._size -= self._held.popitem(last=False)[1][1]

    def remove(self, key: KeyT) -> None:
        """Remove a key's value, if it is known."""
        with self._lock:
            if key in self._held:
                self._size -= self._held.pop(key)[1]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._held.clear()
            self._size = 0
