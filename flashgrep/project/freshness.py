"""Freshness: after ``settle`` a project's tree equals the disk, so an answer equals a scan made now."""

import select
from collections.abc import Awaitable, Callable
from typing import NoReturn

import anyio
import anyio.to_thread

from flashgrep.base.failures import FailureLog
from flashgrep.files.watch import Change, Watcher
from flashgrep.project.file_tree import Tree

log = FailureLog()

STOPPED = "watching was stopped"

EVENT_PAUSE = 0.05
"""Seconds between wake-ups of the daemon by events; a question reads them itself, without waiting for this."""
SWEEP_SHARE = 50
"""If nothing can be watched, the daemon rests this many times as long as its last sweep took."""
MARKER_SECONDS = 0.25
"""If the barrier is a marker file, its event must come within this time, or the tree is swept."""
MOST_ROUNDS = 50
"""Rounds in which a barrier follows a tree that changes while it is read; then the answer says that it is not fresh."""


class SwitchableWatcher:
    """A watcher that can be switched off and on; if off, nothing is watched and every question sweeps the tree.

    ``fileno`` survives switching, for those who wait on it: an epoll instance containing the watcher's queue. When off,
    that queue is closed, so the kernel's watches are freed and nobody is woken.
    """

    def __init__(self, make: Callable[[], Watcher]) -> None:
        self._make = make
        self._watcher: Watcher | None = make()
        self._missed_events = False
        number = self._watcher.fileno()
        if number is None:
            self._poll = None
        else:
            self._poll = select.epoll()
        if self._poll is not None and number is not None:
            self._poll.register(number, select.EPOLLIN)

    @property
    def is_off(self) -> bool:
        """Whether watching was switched off."""
        return self._watcher is None

    @property
    def failed(self) -> str:
        """Why not all changes are seen, or empty."""
        if self._watcher is None:
            return STOPPED
        return self._watcher.failed

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
            # Changes while nothing was watched are unknown, as if the queue had
            # overflowed.
            self._missed_events = True
            number = self._watcher.fileno()
            if self._poll is not None and number is not None:
                self._poll.register(number, select.EPOLLIN)
        else:
            self._watcher.close()  # which takes its queue out of the epoll instance
            self._watcher = None
        return True

    @property
    def link_problem(self) -> str:
        """Why writes by other names of some files are not seen, or empty."""
        if self._watcher is None or self._watcher.failed:
            return ""
        return self._watcher.link_problem

    def add_file(self, path: bytes) -> None:
        """Watch one file that has other names, if anything is watched."""
        if self._watcher is not None:
            self._watcher.add_file(path)

    def add(self, folder: bytes) -> None:
        """Watch one folder, if anything is watched."""
        if self._watcher is not None:
            self._watcher.add(folder)

    def drain(self) -> list[Change]:
        """Return what happened since the last call; nothing while off."""
        if self._watcher is None:
            return []
        if self._missed_events:
            self._missed_events = False
            return [Change("overflow")]
        return self._watcher.drain()

    def settle(self, timeout: float) -> bool:
        """Wait until everything that happened before this call will be in ``drain``."""
        return self._watcher is None or self._watcher.settle(timeout)

    def fileno(self) -> int | None:
        """Return a descriptor that is readable when ``drain`` has something, or None."""
        if self._poll is None:
            return None
        return self._poll.fileno()

    def close(self) -> None:
        """Stop watching; it cannot be started again."""
        self.switch(on=False)
        if self._poll is not None:
            self._poll.close()


class Freshness:
    """Keeps a tree in step with the disk."""

    def __init__(self, tree: Tree, watcher: SwitchableWatcher) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        """Held while the tree is reread: by ``settle``, and whenever the index is thrown away."""
        self.swept_because = ""
        """Why the last question had to sweep the tree, or empty."""
        self._tree = tree
        self._watcher = watcher

    @property
    def sees_events(self) -> bool:
        """Whether the system reports every change at once, so that after ``settle`` none is unknown."""
        return self._watcher.fileno() is not None and not self._watcher.failed

    @property
    def watch_problem(self) -> str:
        """Why not all changes are seen, or empty."""
        return self._watcher.failed

    @property
    def link_problem(self) -> str:
        """Why writes by other names (hard links) of some files are not seen, or empty."""
        return self._watcher.link_problem

    @property
    def is_switched_off(self) -> bool:
        """Whether watching was switched off: every question sweeps then."""
        return self._watcher.is_off

    async def switch(self, *, on: bool) -> bool:
        """Start or stop watching; return whether that was a change."""
        async with self.lock:
            return self._watcher.switch(on=on)

    async def settle(self) -> bool:
        """Read events and what they require until there are none; False: they do not end.

        Under ``lock``. Whatever is read is recorded in the tree before the next wait, so that a cancellation loses
        nothing. After a failure, the next call sweeps: what it had read is unknown.
        """
        tree, watcher = self._tree, self._watcher
        try:
            self.swept_because = watcher.failed
            if watcher.failed:
                tree.take_sweep(await anyio.to_thread.run_sync(tree.sweep))
                return True
            # The kernel's queue needs no waiting for: an event is queued inside the
            # system call that makes the change.
            if watcher.fileno() is None and not await anyio.to_thread.run_sync(
                watcher.settle, MARKER_SECONDS
            ):
                # The marker did not come back: events may be lost, so list the tree
                # again.
                tree.listed_since = None
            # An endless build would block the question for ever; its answer says that
            # it is not fresh.
            for _ in range(MOST_ROUNDS):
                changes = watcher.drain()
                tree.take(changes)
                if tree.listed_since is None:
                    tree.take_sweep(await anyio.to_thread.run_sync(tree.sweep))
                    continue
                if not changes and not tree.unread:
                    return True
                # A new folder may already have files, which no event reports.
                for folder in list(tree.unread):
                    tree.take_folder(
                        folder, await anyio.to_thread.run_sync(tree.list_folder, folder)
                    )
        except Exception:
            tree.listed_since = None
            raise
        return False

    async def follow(self, refresh: Callable[[], Awaitable[bool]]) -> NoReturn:
        """Refresh as events come, so that the queue does not overflow and the index follows."""
        number = self._watcher.fileno()
        while True:
            start = anyio.current_time()
            # Whatever it was, the next question meets it and reports it. Raised here,
            # it would end the daemon.
            try:
                await refresh()
            except Exception:
                log.exception("reading a project's changes")
            took = anyio.current_time() - start
            if number is not None:
                await anyio.wait_readable(number)
            # One save causes several events; a pause handles them together.
            if number is not None:
                pause = EVENT_PAUSE
            else:
                pause = 1
            await anyio.sleep(
                max(pause, SWEEP_SHARE * took) if self._watcher.failed else pause
            )
