"""A queue of jobs that survives a restart: what was taken and not finished is given out again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

RETRIES = 5
"""Times a job is tried before it is set aside."""
PAUSE = 0.25
_SUFFIX = ".job"


@dataclass(frozen=True)
class Job:
    """One piece of work and how often it was tried."""

    name: str
    payload: dict[str, object] = field(default_factory=dict)
    tries: int = 0

    def again(self) -> Job:
        """Return the job as it is after a failure."""
        return Job(self.name, self.payload, self.tries + 1)


class Queue:
    """Jobs in a folder, one file each; the oldest comes out first.

    Several processes may share the folder: taking a job renames its file, and only one rename can win.
    """

    def __init__(self, folder: str, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.clock = clock
        os.makedirs(folder, exist_ok=True)

    def put(self, job: Job) -> None:
        """Store a job so that no reader ever sees half of it."""
        text = json.dumps({"name": job.name, "payload": job.payload, "tries": job.tries})
        temporary = os.path.join(self.folder, f".{job.name}.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path(job.name))

    def take(self) -> Job | None:
        """Return the oldest job, or None when there is nothing to do."""
        for name in self._waiting():
            source = self._path(name)
            target = source + ".taken"
            try:
                os.rename(source, target)
            except FileNotFoundError:
                continue
            with open(target, encoding="utf-8") as file:
                return Job(**json.load(file))
        return None

    def done(self, job: Job) -> None:
        """Forget a job that succeeded."""
        os.unlink(self._path(job.name) + ".taken")

    @property
    def size(self) -> int:
        """Jobs that wait."""
        return sum(1 for _ in self._waiting())

    def _waiting(self) -> Iterator[str]:
        entries = sorted(os.scandir(self.folder), key=lambda entry: entry.stat().st_mtime)
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                yield entry.name.removesuffix(_SUFFIX)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name + _SUFFIX)


def work(queue: Queue, run: Callable[[Job], None], log: Callable[[str], None] = print) -> int:
    """Run jobs until none is left, and return how many succeeded.

    A job that fails goes back with one try more; after ``RETRIES`` it is set aside under another name.
    """
    succeeded = 0
    failed: dict[str, str] = {}

    # The pause grows with each empty round, so that an idle worker costs nothing.
    empty = 0
    while empty < RETRIES:
        job = queue.take()
        if job is None:
            empty += 1
            time.sleep(PAUSE * empty)
            continue

        empty = 0
        try:
            run(job)
        except KeyboardInterrupt:
            queue.put(job)
            raise
        except Exception as problem:
            failed[job.name] = str(problem)
            log(f"{job.name}: try {job.tries + 1} of {RETRIES} failed: {problem}")
            if job.tries + 1 < RETRIES:
                queue.put(job.again())
            else:
                aside = Job("aside-" + job.name, job.payload, job.tries + 1)
                queue.put(aside)
                log(f"{job.name}: set aside as {aside.name}")
        else:
            succeeded += 1
            failed.pop(job.name, None)
            log(f"{job.name}: done")
        finally:
            if job.name not in failed:
                queue.done(job)

    if failed:
        log(f"{len(failed)} jobs failed, the last errors were:")
        for name, problem in sorted(failed.items()):
            log(f"  {name}: {problem}")

    log(f"{succeeded} jobs succeeded, {queue.size} are left")
    return succeeded


def main() -> None:
    work(Queue("jobs"), lambda job: print(job.payload))


if __name__ == "__main__":
    main()
