"""Giving way to a newer daemon: what code this one runs, and its end once nothing is in flight."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

import flashgrep
from flashgrep import __version__
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.dispatch import Dispatcher

LOOK_SECONDS = 1.0
"""One look at the package's files (1.4 ms for 260) serves all clients that come within this time."""
POLL_SECONDS = 0.05
FOLDER = str(Path(flashgrep.__file__).parent)


@dataclass(slots=True)
class Handover:
    """Answers clients that want to know whether the daemon runs the code they have."""

    stopping: anyio.Event
    tasks: TaskGroup
    dispatcher: Dispatcher = field(init=False)
    """Set once it is made: it answers by these methods."""
    _loaded: tuple[int, int] = field(default_factory=lambda: newest_source(FOLDER))
    _changed: bool = False
    _looked: float = float("-inf")
    _retiring: bool = False

    def extensions(self) -> Mapping[str, Extension]:
        """Return the methods of the control socket by name."""
        return {"$/version": self.version, "$/retire": self.retire}

    async def version(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """Return the version, the package's folder, and whether the files in it have changed since the start.

        The last tells of upgrades that keep the version: a reinstallation, a pull into an editable installation.
        """
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now  # whoever comes before this look is done hears of the one before
            self._changed = await run_sync(newest_source, FOLDER) != self._loaded
        return {"version": __version__, "folder": FOLDER, "changed": self._changed}

    async def retire(self, _context: RequestContext, _params: Any) -> dict[str, Any]:
        """End the daemon when no other call is in flight; say whether that is now, and how many there are."""
        others = self.dispatcher.running - 1
        if not others:
            self.stopping.set()
        elif not self._retiring:
            self._retiring = True
            self.tasks.start_soon(self._end_when_idle)
        return {"ending": not others, "calls": others}

    async def _end_when_idle(self) -> None:
        while self.dispatcher.running:  # noqa: ASYNC110 - calls end thousands of times a second, and this is rare
            await anyio.sleep(POLL_SECONDS)
        self.stopping.set()


def newest_source(folder: str) -> tuple[int, int]:
    """Return the time of the newest source file below a folder in nanoseconds, and how many there are."""
    newest, count, folders = 0, 0, [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith((".py", ".scm")):
                    newest, count = max(newest, entry.stat().st_mtime_ns), count + 1
    return newest, count
