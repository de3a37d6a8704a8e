"""The queue of repositories that are to be brought up to date: requests, and whose turn it is."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.errors import FlashgrepError
from flashgrep.team.database import translate_errors

if TYPE_CHECKING:
    from psycopg import Connection

AGAIN_SECONDS: Final = 30
"""A job that failed is tried again after this long, twice as long each time, for a day at most."""


class Job(NamedTuple):
    """A repository that a worker has taken, and the requests that are done with it."""

    repository: int
    name: str
    source: str
    branches: list[str]
    tags: list[str]
    generation: int
    requests: list[int]
    attempts: int


def take(connection: "Connection[Any]") -> Job | None:
    """Return a repository with a job that is due, locked until the transaction ends; None: there is none."""
    row = connection.execute(
        "SELECT id, name, source, branches, tags, generation FROM flashgrep.turn "
        "JOIN flashgrep.repository ON repository.id = turn.repository "
        "WHERE EXISTS (SELECT FROM flashgrep.job WHERE job.repository = turn.repository AND due <= now()) "
        "ORDER BY (SELECT min(due) FROM flashgrep.job WHERE job.repository = turn.repository) "
        # The lock ends with the worker's connection, however it dies: nobody has to notice that a job was abandoned.
        "FOR UPDATE OF turn SKIP LOCKED LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    # Read under the lock: whoever had it may have done the requests that were seen before.
    jobs = connection.execute(
        "SELECT id, attempts FROM flashgrep.job WHERE repository = %s AND due <= now()", [row[0]]
    ).fetchall()
    number, name, source, branches, tags, generation = row
    attempts = max((job[1] for job in jobs), default=0)
    return Job(number, name, source, branches, tags, generation, [job[0] for job in jobs], attempts)


def postpone(locked: "Connection[Any]", connection: "Connection[Any]", job: Job, error: FlashgrepError) -> None:
    """Note why a job failed, and put it off."""
    seconds = min(AGAIN_SECONDS * 2**job.attempts, 24 * 3600)
    with translate_errors():
        connection.execute(
            "UPDATE flashgrep.repository SET problem = %s WHERE id = %s", [error.message, job.repository]
        )
        locked.execute(
            "UPDATE flashgrep.job SET attempts = attempts + 1, due = now() + make_interval(secs => %s) "
            "WHERE id = ANY(%s)",
            [seconds, job.requests],
        )
