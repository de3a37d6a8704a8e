r"""The indexer: the daemon's child process, and the only one that writes a store, for all open projects of that store.

It reads commands from stdin and writes events to stdout, JSON in frames (``base.frames``); paths are bytes decoded as
latin-1. It ends when stdin is closed, and yields to everything else on the machine (nice 10).

    {"op": "update", "project": ProjectJob.to_json(),          in this project:
     "batch": 7, "files": [[path, size], …],                   read these again, and forget those that are missing
     "forget": [path, …]}                                      forget these: they are excluded now
    {"op": "symbols" | "chunks" | "vectors", "project": […],   store them for all texts that have none yet; vectors are
     "embedding": "{…}"}                                       made by the embedder of these settings
    {"op": "keep", "project": […],                             store the texts of these files of revisions, and parse
     "contents": [[blob, path, parse], …]}                     those where ``parse`` is true
    {"op": "stop"}                                             end such a stage, or "keep", after its present batch
    {"op": "merge"}                                            merge segments if there are many; drop dead texts
    {"op": "forget", "roots": [root, …], "kept": [root, …]}    forget these projects, and all whose root is gone except
                                                               those in "kept", which are open
    → {"event": "stored", "batch": 7, "generation": 3, "rows": [[path, text_id, skip, size, mtime, ctime, inode], …],
       "gone": [path, …], "bytes": 123, "last": true}          several per batch; "last" ends it
    → {"event": "left", "texts": 9, "bytes": 999,              how much a stage has left, after each batch
       "problem": "", "remade": false, "last": true}           problem: why the embedder does not answer
    → {"event": "kept", "left": 9, "last": true}               how many texts are left to store, after each batch
    → {"event": "merged", "share": 0.4, "remade": false}       progress, 1.0 at the end; remade: chunks or vectors of
                                                               all projects were dropped
    → {"event": "forgotten", "remade": false}
    → {"event": "lost", "detail": "…"}                         the project's root is missing; nothing was done
    → {"event": "failed", "reason": "damaged" | "full" | "error", "detail": "…"}
"""

import errno
import faulthandler
import gc
import os
import select
import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

import orjson

from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Busy, ProviderUnavailable
from flashgrep.base.frames import frame, receive
from flashgrep.base.own_folders import belongs_to, identify, library_owner
from flashgrep.index import schema
from flashgrep.index.schema import StageBacklog
from flashgrep.index.stage import load_rows
from flashgrep.index.writer import Writer, drop_old_rows
from flashgrep.indexer.job import IndexJob, ProjectJob
from flashgrep.indexer.project_work import Contents, ProjectWork
from flashgrep.indexer.worker_pool import WorkerPool
from flashgrep.indexer.workers import prepare

BATCH_BYTES = 16 << 20
"""Bytes of text in a batch, which makes a segment: half a second's work, in four times as much memory."""

FIRST_BYTES = 4 << 20
"""Bytes of text in the first batch; each one after has twice as many as the one before."""

BATCH_FILES = 8192

SMALL_BYTES = 4 << 20
"""Less than this is done in this process: starting workers takes 0.3 s."""

COMMAND_BYTES = 1 << 30
"""Maximum size of a command: the paths of a million files take about 100 MB."""

_NICE = 10
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Indexer:
    """Carries out commands on one store."""

    def __init__(
        self,
        job: IndexJob,
        out: BinaryIO,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_interrupted``: whether another command waits."""
        self._job = job
        self._out = out
        self._is_interrupted = is_interrupted
        rows = load_rows(job.rows)
        self._writer = Writer(job.index, rows)
        drop_old_rows(self._writer.connection, job.versions, rows)
        self._pool = WorkerPool(job.workers)

    def close(self) -> None:
        """Stop the workers and close the index."""
        self._pool.stop()
        self._writer.close()

    def run(self, command: dict[str, Any]) -> None:
        """Carry out one command, reporting progress as events."""
        match command["op"]:
            case "merge":
                self._pool.stop()
                for share, remade in self._writer.merge():
                    self._report("merged", share=share, remade=remade)
                if self._writer.has_dropped:
                    deque(self._writer.shrink(), maxlen=0)
            case "forget":
                roots, roots_to_keep = (
                    {root.encode("latin-1") for root in command[name]}
                    for name in ("roots", "kept")
                )
                gone = [
                    root
                    for root in self._writer.list_roots()
                    if root in roots
                    or not (root in roots_to_keep or self._has_place(root))
                ]
                self._report("forgotten", remade=self._writer.drop_projects(gone))
            case "stop":
                pass
            case stage:
                try:
                    project = ProjectJob.from_json(command["project"])
                    project.root.descriptor()
                except OSError as error:
                    self._report("lost", detail=str(error))
                    return
                if stage == "keep":
                    self._keep(project, command["contents"])
                    return
                if stage != "update":
                    self._finish(project, stage, command["embedding"])
                    return
                forget = [path.encode("latin-1") for path in command["forget"]]
                # Taken out of the command: a large tree's sizes are not kept while its
                # files are read.
                parts, size = _cut_parts(command.pop("files"))
                self._update(project, command["batch"], parts, size, forget)

    def _has_place(self, root: bytes) -> bool:
        """Return whether a project that is not open keeps its part of the store."""
        owner = self._job.owner
        # A library is in the store whatever repository its folder may be in.
        cache = self._job.index.parent.parent.parent
        if owner == library_owner(cache):
            return identify(root) is not None
        return belongs_to(root, owner)

    def _report(self, event: str, **facts: object) -> None:
        _send(self._out, event, facts)

    def _update(
        self,
        project: ProjectJob,
        batch: int,
        parts: Sequence[list[bytes]],
        size: int,
        forget: list[bytes],
    ) -> None:
        """Store the files as they are now, and their grams; ``size``: of all of them."""
        writer = self._writer
        number = self._writer.add_project(project.root.path)
        calls = (
            (
                project.root,
                part,
                writer.reserve(len(part)),
                self._job.index,
                project.max_size,
            )
            for part in parts
        )
        prepared = self._pool.map(prepare, calls, spread=size > SMALL_BYTES)
        for at, matching_batch in enumerate(prepared, 1):
            gone = matching_batch.gone
            if at == 1:
                gone = gone + forget
            generation, rows = writer.put(
                number,
                matching_batch.reserved,
                matching_batch.texts,
                matching_batch.blocks,
                matching_batch.files,
                gone,
            )
            self._report(
                "stored",
                batch=batch,
                generation=generation,
                rows=[[row.path.decode("latin-1"), *row[1:]] for row in rows],
                gone=[path.decode("latin-1") for path in gone],
                bytes=matching_batch.bytes_read,
                last=at == len(parts),
            )

    def _keep(self, project: ProjectJob, contents: Contents) -> None:
        """Store texts of revisions until another command arrives; then parse those for which that was requested."""
        work = self._begin(project)
        waiting = 0
        for waiting in self._find_function("keep")(work, contents):
            self._report("kept", left=waiting, last=False)
        # What is left for another reason cannot be stored: git fails, or there is no
        # space.
        unstored = 0
        if self._is_interrupted():
            unstored = waiting
        self._report("kept", left=unstored, last=True)

    def _finish(self, project: ProjectJob, stage: str, embedding: str) -> None:
        """Run a late stage over every text of a project, or until another command arrives."""
        stage_backlog = StageBacklog(-1, 0)
        problem = ""
        work = self._begin(project)
        try:
            for stage_backlog in self._find_function(stage)(work, embedding):
                self._report(
                    "left",
                    texts=stage_backlog.texts,
                    bytes=stage_backlog.bytes,
                    problem="",
                    remade=False,
                    last=False,
                )
        except ProviderUnavailable as error:
            stage_backlog = StageBacklog(-1, 0)
            problem = str(error)
        self._report(
            "left",
            texts=stage_backlog.texts,
            bytes=stage_backlog.bytes,
            problem=problem,
            remade=work.remade,
            last=True,
        )

    def _begin(self, project: ProjectJob) -> ProjectWork:
        return ProjectWork(
            self._job, project, self._writer, self._pool, self._is_interrupted
        )

    def _find_function(self, command: str) -> Callable[..., Iterator[Any]]:
        """Return what carries out a command of a part.

        Imported at its first use: the meaning's takes as long as everything else here, and an edit's first stages are
        urgent.
        """
        module, _, name = self._job.functions[command].partition(":")
        function: Callable[..., Iterator[Any]] = getattr(import_module(module), name)
        return function


def _cut_parts(files: Sequence[tuple[str, int]]) -> tuple[list[list[bytes]], int]:
    """Return the paths in parts that are bounded in bytes and number, and the size of all files.

    There is at least one part, perhaps empty, since the last part's event ends the command. The first are small, so that
    progress shows soon and no process waits long for its first part.
    """
    parts: list[list[bytes]] = [[]]
    total = 0
    weight = 0
    most = FIRST_BYTES
    for path, size in files:
        if parts[-1] and (weight + size > most or len(parts[-1]) >= BATCH_FILES):
            parts.append([])
            weight = 0
            most = min(2 * most, BATCH_BYTES)
        parts[-1].append(path.encode("latin-1"))
        weight += size
        total += size
    return parts, total


def _receive_commands() -> Iterator[dict[str, Any]]:
    """Yield the commands until stdin ends; nothing is read ahead, so a command that waits is seen by ``select``."""
    while (command := receive(0, COMMAND_BYTES)) is not None:
        read = orjson.loads(command)
        del command  # 4 MB for 78,000 files, while they are indexed
        yield read


def _send(out: BinaryIO, event: str, facts: Mapping[str, object]) -> None:
    out.write(frame(orjson.dumps({"event": event, **facts})))
    out.flush()


def _take_output() -> BinaryIO:
    """Return the pipe of the events, for this process alone: what is printed, here or in a worker, goes to the errors."""
    out = os.fdopen(os.dup(1), "wb")
    with suppress(OSError):  # the errors may be closed
        os.dup2(2, 1)
    return out


def main() -> None:
    """Serve commands until stdin ends; the arguments are those of ``IndexJob.command``."""
    faulthandler.enable()
    gc.freeze()  # as the daemon does
    gc.enable()
    # Questions, and everything else that the user runs, go first.
    os.nice(_NICE)
    out = _take_output()
    try:
        indexer = Indexer(
            IndexJob.parse(sys.argv[1:]),
            out,
            lambda: bool(select.select([0], [], [], 0)[0]),
        )
        try:
            for command in _receive_commands():
                indexer.run(command)
        finally:
            indexer.close()
    except (Damaged, sqlite3.Error, OSError, Busy) as error:
        reason = "error"
        if isinstance(error, Damaged) or (
            isinstance(error, sqlite3.Error) and schema.is_damage(error)
        ):
            reason = "damaged"
        elif isinstance(error, schema.Unreadable):
            reason = "unreadable"
        elif "full" in str(error) or getattr(error, "errno", 0) in _NO_ROOM:
            reason = "full"
        _send(out, "failed", {"reason": reason, "detail": str(error)})
        sys.exit(1)
