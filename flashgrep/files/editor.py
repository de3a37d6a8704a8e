"""State for reading and writing one project, open as long as the project is."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from flashgrep.base.registry import Call
from flashgrep.files.lines import (
    MOST_INDEXES,
    MOST_KEPT_BYTES,
    LineIndex,
    SmallFile,
    VersionCache,
)
from flashgrep.files.root import Place, Root

KIB = 1024
MIB = 1024 * KIB

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of reading and writing, from the settings; sizes in bytes unless the name says otherwise."""

    read_bytes: int = 192 * KIB
    """Maximum number of bytes of a file in one answer."""
    read_tokens: int = 8_000
    """Tokens (characters / 4) of one ``read_code`` answer whose caller set no budget."""
    write_bytes: int = 128 * KIB
    """Most UTF-8 bytes of new text in one call, chunk or operation of a batch."""
    staged_bytes: int = 16 * MIB
    """Most UTF-8 bytes a staged write may gather."""
    staged_sessions: int = 32
    """Staged writes under way at once."""
    staged_seconds: float = 24 * 3600
    """A staged write unused for this long is dropped."""
    edit_bytes: int = 64 * MIB
    """Largest file that is edited: an edit holds its file in memory."""
    whole_bytes: int = 1 * MIB
    """Files up to this size are read at once; larger ones block by block."""
    count_bytes: int = 16 * MIB
    """Lines are counted for an answer in files up to this size; in larger ones their number is given once known."""
    hash_bytes: int = 1 * MIB
    """Files up to this size are hashed unasked: a megabyte takes about a millisecond."""
    batch_operations: int = 500
    """Most operations in a batch; each file takes a descriptor."""
    tree_entries: int = 100_000
    """Most entries of a folder that one call copies, moves or removes."""


class Locks:
    """One lock per file, created on demand; several are taken in a fixed order, which excludes deadlocks."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._users: dict[tuple[int, int, bytes], tuple[threading.Lock, int]] = {}
        """The locks in use, and by how many."""

    @contextmanager
    def hold(self, places: Sequence[Place]) -> Iterator[None]:
        """Hold the locks of these files."""
        keys = sorted({place.key() for place in places})  # the fixed order
        locks = []
        with self._guard:
            for key in keys:
                lock, users = self._users.get(key, (threading.Lock(), 0))
                self._users[key] = (lock, users + 1)
                locks.append(lock)
        try:
            for lock in locks:
                # Every caller takes its locks in the order of their keys, which
                # excludes deadlocks.
                lock.acquire()
            yield
        finally:
            for key, lock in zip(keys, locks, strict=True):
                lock.release()
                with self._guard:
                    # The last user removes the lock, so the table holds only files that
                    # are being written.
                    _, users = self._users.pop(key)
                    if users > 1:
                        self._users[key] = (lock, users - 1)


@dataclass(slots=True)
class Editor:
    """A project's root, its limits, what was read of its files recently and the locks of those being written."""

    root: Root
    limits: Limits = field(default_factory=Limits)
    small_files: VersionCache[SmallFile] = field(
        default_factory=lambda: VersionCache(MOST_KEPT_BYTES, attrgetter("size"))
    )
    line_indexes: VersionCache[LineIndex] = field(
        default_factory=lambda: VersionCache(MOST_INDEXES, lambda _: 1)
    )
    locks: Locks = field(default_factory=Locks)
    staging: threading.Lock = field(default_factory=threading.Lock)
    """Held while a chunk of a staged write is stored."""
    step: Callable[[str], None] = lambda _step: None
    """Called before each named step of a write; tests end the process or change the file there."""

    def close(self) -> None:
        """Close the root."""
        self.root.close()


class Listing(Protocol):
    """The files of a project as they are now."""

    async def refresh(self) -> bool:
        """Take in all that was saved before this call; return whether answers now equal the disk."""

    def paths(self) -> list[bytes]:
        """Return the files, by path."""

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something long in a thread, scheduled fairly with other calls."""


class Project(Protocol):
    """The interface that reading and writing need; the workspace implements it."""

    @property
    def editor(self) -> Editor:
        """The project's open root and limits."""

    @property
    def read_only(self) -> bool:
        """Whether every write is refused."""

    def current(self) -> Listing:
        """Return its files as they are now."""

    def note_changes(self, paths: Sequence[bytes], /) -> None:
        """Make the next query read these paths from disk."""

    def in_turn(self, work: Callable[[], ResultT], /) -> Awaitable[ResultT]:
        """Run something long in a thread, scheduled fairly with other calls."""


class Projects(Protocol):
    """Finds the project a call is about."""

    def workspace(self, call: Call[Any], name: str | None, /) -> Awaitable[Project]:
        """Return the project of this name, or the connection's own."""
