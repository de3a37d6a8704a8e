"""What reading and writing one project needs, held open as long as the project is."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from flashgrep.edit.limits import Limits
from flashgrep.edit.lines import LineIndexes, Wholes
from flashgrep.edit.root import Place, Root

Key = tuple[int, int, bytes]


class Locks:
    """One lock a file, made on demand; several are taken in a fixed order, so nobody waits in a circle."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[Key, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, places: Sequence[Place]) -> Iterator[None]:
        """Hold the locks of these files."""
        keys = sorted({place.key() for place in places})
        locks = [self._take(key) for key in keys]
        try:
            for lock in locks:
                lock.acquire()
            yield
        finally:
            for key, lock in zip(keys, locks, strict=True):
                lock.release()
                self._give(key)

    def _take(self, key: Key) -> threading.Lock:
        with self._guard:
            lock, users = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = (lock, users + 1)
            return lock

    def _give(self, key: Key) -> None:
        with self._guard:
            lock, users = self._held.pop(key)
            if users > 1:
                self._held[key] = (lock, users - 1)


def _pass(_step: str) -> None:
    """Go on."""


@dataclass(slots=True)
class Editor:
    """A project's root, its bounds, what was read of its files lately and the locks of those being written."""

    root: Root
    limits: Limits = field(default_factory=Limits)
    indexes: LineIndexes = field(default_factory=LineIndexes)
    wholes: Wholes = field(default_factory=Wholes)
    locks: Locks = field(default_factory=Locks)
    staging: threading.Lock = field(default_factory=threading.Lock)
    """Held while a chunk of a staged write is stored."""
    step: Callable[[str], None] = _pass
    """Called before each named step of a write; tests end the process or change the file there."""

    def close(self) -> None:
        """Let go of the root."""
        self.root.close()
