r"""The indexer: the child process that alone writes a project's index.

It reads commands from stdin and writes events to stdout, one JSON object a line; a path stands as its bytes decoded as
latin-1. It ends when stdin does, and gives way to everything else on the machine (nice 10).

    {"op": "update", "batch": 7, "files": [[path, size], …],   read these again; those not there are forgotten
     "forget": [path, …]}                                      forget these: they are not ours any more
    {"op": "symbols" | "chunks" | "vectors",                   store them of all texts that have none yet, vectors by
     "embedding": "{…}"}                                       the embedder of these settings
    {"op": "stop"}                                             end such a stage where it is
    {"op": "merge"}                                            merge segments where they are many; drop dead texts
    → {"event": "stored", "batch": 7, "generation": 3, "rows": [[path, blob, skip, size, mtime, ctime, inode], …],
       "gone": [path, …], "bytes": 123, "last": true}          several a batch; "last" closes it
    → {"event": "left", "texts": 9, "bytes": 999,              how much a stage has left, after each batch
       "problem": "", "last": true}                            problem: why the embedder does not answer
    → {"event": "merged"}
    → {"event": "failed", "reason": "damaged" | "full" | "error", "detail": "…"}
"""

import faulthandler
import os
import select
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import orjson

from flashgrep.daemon.parsing import Parsers
from flashgrep.daemon.prepare import Prepared, prepare
from flashgrep.daemon.workers import Workers
from flashgrep.damage import Damaged
from flashgrep.errors import Busy, ProviderUnavailable
from flashgrep.index import schema, symbols
from flashgrep.index.rows import Left
from flashgrep.index.stages import drop_outdated
from flashgrep.index.writer import Writer
from flashgrep.ingest.openat import RootFolder

BATCH_BYTES = 16 << 20
"""Text in one batch, half a second's work: a worker needs four times as much memory for it; each makes a segment."""

BATCH_FILES = 8192
PARSE_BATCH = 32
PARSE_BYTES = 1 << 20
"""Text parsed at a time: half a second's work."""

SMALL_BYTES = 4 << 20
"""Less than this is done in this process: starting workers takes 0.3 s."""

_NICE = 10

TextT = TypeVar("TextT", bound=tuple[Any, ...])

if TYPE_CHECKING:
    from flashgrep.daemon.meaning import Meaning


@dataclass(frozen=True, slots=True)
class Job:
    """What the daemon wants of an indexer."""

    root: RootFolder
    index: Path
    max_size: int
    workers: int
    stages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the code that makes each late stage's rows; rows of others are dropped."""


class Indexer:
    """Carries out commands on one index."""

    def __init__(self, job: Job, out: BinaryIO, interrupted: Callable[[], bool] = lambda: False) -> None:
        """``interrupted``: whether another command waits."""
        self._job = job
        self._out = out
        self._interrupted = interrupted
        self._writer = Writer(job.index)
        drop_outdated(self._writer.connection, job.stages)
        self._workers = Workers(job.workers)

    def close(self) -> None:
        """Stop the workers and close the index."""
        self._workers.stop()
        self._writer.close()

    def run(self, command: dict[str, Any]) -> None:
        """Carry out one command, telling what happens as events."""
        if command["op"] == "update":
            files = [(path.encode("latin-1"), size) for path, size in command["files"]]
            self._update(command["batch"], files, [path.encode("latin-1") for path in command["forget"]])
        elif command["op"] == "merge":
            self._workers.stop()
            self._writer.merge()
            self._tell("merged")
        elif command["op"] != "stop":
            self._finish(command["op"], command["embedding"])

    def _meaning(self) -> "Meaning":
        """Return the last stages; loading them takes as long as all else here, and an edit's first stages go before."""
        job = self._job
        stages: type[Meaning] = import_module("flashgrep.daemon.meaning").Meaning
        return stages(job.root, job.index, job.max_size, self._writer, self._workers)

    def _tell(self, event: str, **facts: object) -> None:
        self._out.write(orjson.dumps({"event": event, **facts}) + b"\n")
        self._out.flush()

    def _update(self, batch: int, files: Sequence[tuple[bytes, int]], forget: list[bytes]) -> None:
        parts = list(_parts(files))
        big = sum(size for _, size in files) > SMALL_BYTES
        for at, prepared in enumerate(self._prepared(parts, big=big)):
            prepared.gone.extend(forget)
            forget = []
            self._store(batch, prepared, last=at == len(parts) - 1)

    def _prepared(self, parts: Sequence[Sequence[bytes]], *, big: bool) -> Iterator[Prepared]:
        """Yield the batches read, in order."""
        job = self._job
        calls = ((job.root, part, self._writer.reserve(len(part)), job.index, job.max_size) for part in parts)
        return self._workers.each(prepare, calls, spread=big)

    def _store(self, batch: int, prepared: Prepared, *, last: bool) -> None:
        generation, rows = self._writer.put(
            prepared.reserved, prepared.texts, prepared.blocks, prepared.files, prepared.gone
        )
        self._tell(
            "stored",
            batch=batch,
            generation=generation,
            rows=[[row.path.decode("latin-1"), *row[1:]] for row in rows],
            gone=[path.decode("latin-1") for path in prepared.gone],
            bytes=prepared.bytes_read,
            last=last,
        )

    def _finish(self, stage: str, embedding: str) -> None:
        """Have a late stage reach every text, or as many as it can before another command comes."""
        left, problem = Left(-1, 0), ""
        try:
            for left in self._stage(stage, embedding):
                self._tell("left", texts=left.texts, bytes=left.bytes, problem="", last=False)
        except ProviderUnavailable as error:
            left, problem = Left(-1, 0), str(error)
        self._tell("left", texts=left.texts, bytes=left.bytes, problem=problem, last=True)

    def _stage(self, stage: str, embedding: str) -> Iterator[Left]:
        if stage == "symbols":
            return self._symbols()
        meaning = self._meaning()
        return meaning.chunks(self._batches) if stage == "chunks" else meaning.vectors(self._batches, embedding)

    def _symbols(self) -> Iterator[Left]:
        connection = self._writer.connection
        left = symbols.unparsed_left(connection)
        yield left
        if not left.texts:
            return
        self._workers.stop()
        with Parsers(self._job.root, self._job.max_size, self._job.workers) as parsers:
            texts = self._batches(lambda after: symbols.unparsed(connection, PARSE_BATCH, PARSE_BYTES, after))
            for done in parsers.run(texts):
                self._writer.put_symbols(done.rows, done.declined)
                left = Left(left.texts - len(done.rows) - len(done.declined), left.bytes - done.bytes)
                yield left
        yield symbols.unparsed_left(connection)

    def _batches(self, choose: Callable[[int], list[TextT]]) -> Iterator[list[TextT]]:
        """Yield batches of texts, each chosen by the last number of the one before, until another command waits."""
        after = 0
        while not self._interrupted() and (texts := choose(after)):
            after = texts[-1][0]
            yield texts


def _parts(files: Sequence[tuple[bytes, int]]) -> Iterator[list[bytes]]:
    """Cut files into batches bounded in bytes and number; always at least one, perhaps empty."""
    part: list[bytes] = []
    weight = 0
    for path, size in files:
        if part and (weight + size > BATCH_BYTES or len(part) >= BATCH_FILES):
            yield part
            part, weight = [], 0
        part.append(path)
        weight += size
    yield part


def main() -> None:
    """Serve commands until stdin ends; the arguments are those of ``Indexing.command``."""
    root, device, inode, index, max_size, workers, stages = sys.argv[1:]
    faulthandler.enable()
    os.nice(_NICE)
    folder = RootFolder(os.fsencode(root), (int(device), int(inode)))
    job = Job(folder, Path(index), int(max_size), int(workers), orjson.loads(stages))
    out = sys.stdout.buffer
    try:
        indexer = Indexer(job, out, lambda: bool(select.select([sys.stdin], [], [], 0)[0]))
        try:
            for line in sys.stdin.buffer:
                indexer.run(orjson.loads(line))
        finally:
            indexer.close()
    except (Damaged, sqlite3.Error, OSError, Busy) as error:
        out.write(orjson.dumps({"event": "failed", "reason": _reason(error), "detail": str(error)}) + b"\n")
        out.flush()
        sys.exit(1)


def _reason(error: Exception) -> str:
    if isinstance(error, Damaged) or (isinstance(error, sqlite3.Error) and schema.is_damage(error)):
        return "damaged"
    return "full" if "full" in str(error) or getattr(error, "errno", 0) in {28, 122} else "error"


if __name__ == "__main__":
    main()
