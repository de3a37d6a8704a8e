"""Tokens, groups and permissions of a team's store, and a report of what it contains."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from flashgrep.base.errors import InvalidParams, NotFound
from flashgrep.parts.team.database import translate_errors

if TYPE_CHECKING:
    from psycopg import Connection

PROXY_GROUP: Final = "group:"
"""Prefix, in the store, of groups that a proxy reports."""


def make_token(
    connection: "Connection[Any]",
    subject: str,
    days: int | None = None,
    kind: Literal["own", "proxy"] = "own",
) -> str:
    """Return a new token for a subject, valid for ``days``; the store keeps only its hash.

    ``kind``: a ``proxy`` token gives no access by itself; its bearer acts for the person it names.

    Raises:
        InvalidParams: the subject has the name of a proxy's group, so the token would have that group's access.

    """
    if subject.startswith(PROXY_GROUP):
        raise InvalidParams(f"a group cannot have a token: {subject}", field="subject")
    token = secrets.token_urlsafe(32)
    with translate_errors():
        connection.execute(
            "INSERT INTO flashgrep.token (hash, subject, expires, kind) "
            "VALUES (%s, %s, now() + make_interval(days => %s), %s)",
            [hashlib.sha256(token.encode()).digest(), subject, days, kind],
        )
    return token


def revoke_tokens(connection: "Connection[Any]", subject: str) -> int:
    """Delete a subject's tokens and return their number."""
    with translate_errors():
        return connection.execute(
            "DELETE FROM flashgrep.token WHERE subject = %s", [subject]
        ).rowcount


def allow(
    connection: "Connection[Any]", subject: str, repositories: Sequence[str] | None
) -> None:
    """Let a subject or group see repositories; None: all, including later ones.

    Raises:
        NotFound: a name is unknown.

    """
    with translate_errors(), connection.transaction():
        if repositories is None:
            connection.execute(
                "INSERT INTO flashgrep.permission VALUES (%s, NULL) ON CONFLICT DO NOTHING",
                [subject],
            )
            return
        for name in repositories:
            row = connection.execute(
                "SELECT id FROM flashgrep.repository WHERE name = %s", [name]
            ).fetchone()
            if row is None:
                raise NotFound(
                    f"no such repository: {name}", reason="project_not_found"
                )
            connection.execute(
                "INSERT INTO flashgrep.permission VALUES (%s, %s) ON CONFLICT DO NOTHING",
                [subject, row[0]],
            )


def forbid(connection: "Connection[Any]", subject: str) -> None:
    """Revoke what a subject or group was granted directly."""
    with translate_errors():
        connection.execute(
            "DELETE FROM flashgrep.permission WHERE subject = %s", [subject]
        )


def join(connection: "Connection[Any]", subject: str, group: str) -> None:
    """Add a subject to a group, so that it sees the group's repositories."""
    with translate_errors():
        connection.execute(
            "INSERT INTO flashgrep.member VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [subject, group],
        )


def describe(connection: "Connection[Any]") -> list[dict[str, Any]]:
    """Return the state of each repository, ordered by name: texts, posting bytes, branches, queued jobs, problem."""
    query = (
        "SELECT name, source, head, next_text - 1 AS texts, parsed_to AS parsed, generation, "
        "to_char(synced AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS synced, problem, "
        "(SELECT count(*) FROM flashgrep.branch WHERE repository = r.id AND name NOT LIKE 'refs/tags/%') AS branches, "
        "(SELECT count(*) FROM flashgrep.branch WHERE repository = r.id AND name LIKE 'refs/tags/%') AS tags, "
        "(SELECT count(*) FROM flashgrep.segment WHERE repository = r.id) AS segments, "
        "(SELECT coalesce(sum(bytes), 0)::bigint FROM flashgrep.segment WHERE repository = r.id) AS posting_bytes, "
        "(SELECT count(*) FROM flashgrep.job WHERE repository = r.id) AS waiting "
        "FROM flashgrep.repository r ORDER BY name"
    )
    with translate_errors(), connection.cursor() as cursor:
        cursor.execute(query.encode())
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
