"""The daemon's side of an indexer: starts it, sends commands, reads events, ends it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from subprocess import PIPE
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import orjson
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from flashgrep.base.frames import LENGTH, frame, measure
from flashgrep.base.own_folders import make_store
from flashgrep.index.schema import LateStage, StageBacklog
from flashgrep.index.table import FileRow, Mark
from flashgrep.index.writer import Merging
from flashgrep.indexer.job import IndexJob, ProjectJob

EVENT_BYTES = 256 << 20
"""Maximum size of an event: a batch of some thousand rows. Four letters that a library prints are more as a length."""

END_SECONDS = 0.5
"""An idle indexer ends at once when its stdin is closed."""


Content = tuple[bytes, bytes]
"""A content of a revision: its blob id in hexadecimal, and the path of a file with it."""


class IndexerFailed(Exception):
    """The indexer ended; ``reason`` is damaged, unreadable, full, error or died."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class RootLost(Exception):
    """A project's root is not there, or not the folder that was opened; the indexer continues for others."""


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A stored part of a batch."""

    generation: int
    rows: list[FileRow]
    gone: list[bytes]
    bytes_read: int
    last: bool


class StageReport(NamedTuple):
    """Progress of a late stage; ``problem``: why the embedder does not answer.

    ``remade``: shared data was dropped and must be rebuilt for other projects, too.
    """

    left: StageBacklog
    problem: str
    remade: bool


class IndexerChild:
    """One running indexer."""

    def __init__(self, process: Process) -> None:
        self._process = process
        assert process.stdout is not None  # noqa: S101 - opened with PIPE below
        self._events = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls, job: IndexJob) -> "IndexerChild":
        """Create the folder of the index if needed, and start an indexer.

        Raises:
            OSError: the folder or the process cannot be created.

        """
        await anyio.to_thread.run_sync(make_store, job.index.parent, job.owner)
        return cls(
            await anyio.open_process(
                job.command(),
                stdin=PIPE,
                stdout=PIPE,
                stderr=None,
                cwd="/",
            )
        )

    @property
    def pid(self) -> int:
        """Return the child's process number."""
        return self._process.pid

    async def close(self) -> None:
        """End it, even in the middle of a transaction: what is not stored is indexed again."""
        with anyio.move_on_after(END_SECONDS, shield=True):
            # Closing its input ends it; kill it if it does not react.
            if self._process.stdin is not None:
                await self._process.stdin.aclose()
            await self._process.wait()
        if self._process.returncode is None:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.aclose()

    async def update(
        self, project: ProjectJob, batch: int, marks: Mapping[bytes, Mark]
    ) -> AsyncIterator[StoredPart]:
        """Make the indexer read these paths of a project again; yields as parts are stored."""
        # Not kept here while the parts are awaited: 16 MB for 78,000 files.
        await self._send(_update_command(batch, marks), project)
        last = False
        while not last:
            event = await self._receive()
            rows = [
                FileRow(path.encode("latin-1"), *rest) for path, *rest in event["rows"]
            ]
            gone = [path.encode("latin-1") for path in event["gone"]]
            last = event["last"]
            yield StoredPart(event["generation"], rows, gone, event["bytes"], last)

    async def finish(
        self, project: ProjectJob, stage: LateStage, embedding: str
    ) -> AsyncIterator[StageReport]:
        """Run a stage over a project's texts (vectors by the embedder of these settings); yields its progress."""
        await self._send({"op": stage, "embedding": embedding}, project)
        last = False
        while not last:
            event = await self._receive()
            last = event["last"]
            yield StageReport(
                StageBacklog(event["texts"], event["bytes"]),
                event["problem"],
                event["remade"],
            )

    async def keep(
        self, project: ProjectJob, wanted: Mapping[Content, bool]
    ) -> AsyncIterator[int]:
        """Store texts of revisions, and parse them if requested; yields how many are left."""
        contents = [
            [blob.decode("ascii"), path.decode("latin-1"), parse]
            for (blob, path), parse in wanted.items()
        ]
        await self._send({"op": "keep", "contents": contents}, project)
        last = False
        while not last:
            event = await self._receive()
            last = event["last"]
            yield event["left"]

    async def stop(self) -> None:
        """Stop a stage, or the storing of texts, after the batches in progress."""
        await self._send({"op": "stop"})

    async def merge(self) -> AsyncIterator[Merging]:
        """Merge segments if there are many; yields the progress."""
        await self._send({"op": "merge"})
        merging = Merging(0.0, remade=False)
        while merging.share < 1:
            event = await self._receive()
            merging = Merging(event["share"], event["remade"])
            yield merging

    async def forget(self, roots: Iterable[bytes], kept: Iterable[bytes]) -> bool:
        """Drop projects: these, and all whose root is gone except the ``kept``.

        Returns whether chunks must be rebuilt for every project.
        """
        names = {"roots": roots, "kept": kept}
        lists = {
            name: [root.decode("latin-1") for root in group]
            for name, group in names.items()
        }
        await self._send({"op": "forget", **lists})
        return bool((await self._receive())["remade"])

    async def _send(
        self, command: dict[str, Any], project: ProjectJob | None = None
    ) -> None:
        if project is not None:
            try:
                # With device and inode, so that the child opens the same folder or
                # reports that it is another one.
                command["project"] = project.to_json()
            except OSError as error:
                raise RootLost(str(error)) from error
        assert self._process.stdin is not None  # noqa: S101 - opened with PIPE above
        try:
            await self._process.stdin.send(frame(orjson.dumps(command)))
        # It ended; receiving raises its last event, if any, which says why.
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._receive()

    async def _receive(self) -> dict[str, Any]:
        try:
            size = measure(await self._events.receive_exactly(LENGTH))
            if size > EVENT_BYTES:
                why = f"the indexer is not understood: an event of {size:,} bytes"
                raise IndexerFailed("died", why)
            message = await self._events.receive_exactly(size)
        except (
            anyio.IncompleteRead,
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ):
            raise IndexerFailed(
                "died", "the indexer ended without giving a reason"
            ) from None
        event: dict[str, Any] = orjson.loads(message)
        if event["event"] == "failed":
            raise IndexerFailed(event["reason"], event["detail"])
        if event["event"] == "lost":
            raise RootLost(event["detail"])
        return event


def _update_command(batch: int, marks: Mapping[bytes, Mark]) -> dict[str, Any]:
    """Return the command to read the marked paths again."""
    files = [
        [path.decode("latin-1"), mark.size] for path, mark in marks.items() if mark.ours
    ]
    forget = [path.decode("latin-1") for path, mark in marks.items() if not mark.ours]
    return {"op": "update", "batch": batch, "files": files, "forget": forget}
