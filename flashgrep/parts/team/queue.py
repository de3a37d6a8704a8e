"""The queue of repositories to update: requests, and the turn that one worker at a time holds."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flashgrep.base.errors import FlashgrepError
from flashgrep.parts.team.database import translate_errors

if TYPE_CHECKING:
    from psycopg import Connection

AGAIN_SECONDS: Final = 30
"""Delay before a failed job is retried; doubled after each failure, up to a day."""


class Job(NamedTuple):
    """A repository taken by a worker, and the requests that its update fulfils."""

    repository: int
    name: str
    source: str
    branches: list[str]
    tags: list[str]
    generation: int
    requests: list[int]
    attempts: int


def take(connection: "Connection[Any]") -> Job | None:
    """Return a repository with a due job, locked until the transaction ends; None: there is none."""
    row = connection.execute(
        "SELECT id, name, source, branches, tags, generation FROM flashgrep.turn "
        "JOIN flashgrep.repository ON repository.id = turn.repository "
        "WHERE EXISTS (SELECT FROM flashgrep.job WHERE job.repository = turn.repository AND due <= now()) "
        "ORDER BY (SELECT min(due) FROM flashgrep.job WHERE job.repository = turn.repository) "
        # However a worker dies, the lock ends with its connection: abandoned jobs need
        # no detection.
        "FOR UPDATE OF turn SKIP LOCKED LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    # Read under the lock: its previous holder may have completed requests seen before.
    jobs = connection.execute(
        "SELECT id, attempts FROM flashgrep.job WHERE repository = %s AND due <= now()",
        [row[0]],
    ).fetchall()
    number, name, source, branches, tags, generation = row
    attempts = max((job[1] for job in jobs), default=0)
    return Job(
        number,
        name,
        source,
        branches,
        tags,
        generation,
        [job[0] for job in jobs],
        attempts,
    )


def postpone(
    locked: "Connection[Any]",
    connection: "Connection[Any]",
    job: Job,
    error: FlashgrepError,
) -> None:
    """Record why a job failed, and schedule its retry."""
    seconds = min(AGAIN_SECONDS * 2**job.attempts, 24 * 3600)
    with translate_errors():
        connection.execute(
            "UPDATE flashgrep.repository SET problem = %s WHERE id = %s",
            [error.message, job.repository],
        )
        locked.execute(
            "UPDATE flashgrep.job SET attempts = attempts + 1, due = now() + make_interval(secs => %s) "
            "WHERE id = ANY(%s)",
            [seconds, job.requests],
        )
