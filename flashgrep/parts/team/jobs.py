"""The work of a team's workers: take a queued repository, fetch it, and update the store to the state of its branches.

There may be any number of workers on any machines. A worker locks its repository's row of ``turn`` (FOR UPDATE SKIP
LOCKED); if it dies, its connection and the lock go, and another worker continues after its last batch.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flashgrep.base.errors import FlashgrepError, InvalidParams, NotFound
from flashgrep.files.openat import RootFolder
from flashgrep.files.repositories import is_bare
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.team.chunk_writer import Chunker
from flashgrep.parts.team.clones import ADDRESS, fetch, list_branches, list_tags
from flashgrep.parts.team.database import connect, translate_errors
from flashgrep.parts.team.load import Content, Loader
from flashgrep.parts.team.migrations import SHARDED, check
from flashgrep.parts.team.queue import Job, postpone, take
from flashgrep.parts.team.stored_segments import delete_leftovers, drop_dead, merge
from flashgrep.parts.team.tree_listing import (
    content_key,
    find_new_trees,
    publish,
    put_listing,
)

if TYPE_CHECKING:
    from psycopg import Connection

NAME: Final = re.compile(
    r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*"
)
STATE: Final = ("branch", "revision", "listing", "content", "segment", "job")
"""Unsharded tables that describe a repository's contents."""
Tell = Callable[[str], None]
"""Reports progress as a line of text."""


@dataclass(frozen=True, slots=True)
class Team:
    """A team's store, as its administrator and its workers use it."""

    dsn: str
    cache: Path
    """Folder of the clones of repositories that were added by address."""
    environ: Mapping[str, str]
    workers: int = 2
    """Processes that parse, chunk and embed."""
    embedding: str = "{}"
    """The embedder's settings as JSON."""

    def open(self) -> "Connection[Any]":
        """Return a connection to a store with this version's tables; raises as ``migrations.check``."""
        connection = connect(self.dsn)
        try:
            check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def add(
        self,
        source: str,
        name: str = "",
        branches: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
    ) -> str:
        """Add a repository by address or by the path of a bare clone, queue it for indexing, and return its name.

        Raises:
            InvalidParams: the source is neither; or the name is taken, or one is a folder of the other.

        """
        if not ADDRESS.fullmatch(source):
            folder = Path(source).resolve()
            if not is_bare(folder):
                message = f"neither an address nor a bare clone: {source}"
                raise InvalidParams(
                    message,
                    field="source",
                    suggestion="make a bare clone: git clone --mirror",
                )
            source = str(folder)
        if not name:
            last_part = re.split(r"[/:]", source.rstrip("/"))[-1]
            name = last_part.removesuffix(".git")
        if not NAME.fullmatch(name):
            raise InvalidParams(
                f"invalid repository name: {name!r}", field="name", pattern=NAME.pattern
            )
        with self.open() as connection, translate_errors(), connection.transaction():
            # Without the lock, two names added at once could overlap (``a`` and
            # ``a/b``); no table constraint covers that.
            connection.execute(
                "LOCK TABLE flashgrep.repository IN SHARE ROW EXCLUSIVE MODE"
            )
            for (other,) in connection.execute(
                "SELECT name FROM flashgrep.repository"
            ).fetchall():
                if f"{name}/".startswith(f"{other}/") or f"{other}/".startswith(
                    f"{name}/"
                ):
                    raise InvalidParams(
                        f"the name conflicts with that of another repository: {other}",
                        field="name",
                    )
            row = connection.execute(
                "INSERT INTO flashgrep.repository (name, source, branches, tags) VALUES (%s, %s, %s, %s) RETURNING id",
                [name, source, list(branches), list(tags)],
            ).fetchone()
            connection.execute("INSERT INTO flashgrep.turn VALUES (%s)", row)
            connection.execute(
                "INSERT INTO flashgrep.job (repository) VALUES (%s)", row
            )
        return name

    def remove(self, name: str) -> None:
        """Delete a repository with all its rows, once no worker holds it.

        Each shard commits separately, so the repository's state is deleted first, its rows second: if a shard dies in
        between, the remaining rows answer no question, and a second ``remove`` deletes them.

        Raises:
            NotFound: the name is unknown.

        """
        query = (
            "SELECT turn.repository FROM flashgrep.turn JOIN flashgrep.repository ON id = turn.repository "
            "WHERE name = %s FOR UPDATE OF turn"
        )
        state = (
            "UPDATE flashgrep.repository SET generation = generation + 1 WHERE id = %s"
        )
        # Shards may be foreign tables, which cannot have foreign keys: nothing cascades
        # to their rows.
        forget = [
            f"DELETE FROM flashgrep.{table} WHERE repository = %s" for table in STATE
        ]
        delete = [
            f"DELETE FROM flashgrep.{table} WHERE repository = %s" for table in SHARDED
        ]
        with self.open() as connection, translate_errors():
            for statements in (
                [state, *forget],
                [*delete, "DELETE FROM flashgrep.repository WHERE id = %s"],
            ):
                with connection.transaction():
                    row = connection.execute(query, [name]).fetchone()
                    if row is None:
                        raise NotFound(
                            f"no such repository: {name}", reason="project_not_found"
                        )
                    for statement in statements:
                        connection.execute(statement.encode(), row)

    def request(self, names: tuple[str, ...] = ()) -> None:
        """Queue repositories for an update; without names, all of them.

        Raises:
            NotFound: a name is unknown.

        """
        with self.open() as connection, translate_errors(), connection.transaction():
            repositories = {
                row[0]
                for row in connection.execute(
                    "SELECT name FROM flashgrep.repository"
                ).fetchall()
            }
            if missing := sorted(set(names) - repositories):
                raise NotFound(
                    f"no such repository: {', '.join(missing)}",
                    reason="project_not_found",
                )
            connection.execute(
                "INSERT INTO flashgrep.job (repository) SELECT id FROM flashgrep.repository WHERE name = ANY(%s)",
                [list(names or repositories)],
            )

    def work(self, tell: Tell) -> int:
        """Run all due jobs that no other worker holds, and return their number."""
        count = 0
        # Two connections: one holds the repository's lock for the whole job, the other
        # commits step by step.
        with self.open() as locked, self.open() as connection:
            while True:
                with translate_errors(), locked.transaction():
                    job = take(locked)
                    if job is None:
                        return count
                    count += 1
                    try:
                        self.sync(connection, job, tell)
                    except FlashgrepError as error:
                        # The database went away. The job has not failed: the next
                        # worker takes it unchanged.
                        if connection.closed:
                            raise
                        postpone(locked, connection, job, error)
                        tell(f"{job.name}: {error.message}")
                    else:
                        locked.execute(
                            "DELETE FROM flashgrep.job WHERE id = ANY(%s)",
                            [job.requests],
                        )

    def sync(self, connection: "Connection[Any]", job: Job, tell: Tell) -> None:
        """Update the store to the current state of a repository's branches."""
        tell(f"{job.name}: fetching")
        repository = Repository.open(
            Git.find(
                RootFolder(os.fsencode(fetch(job, self.cache, self.environ))),
                self.environ,
            )
        )
        try:
            branches = list_branches(repository, job.branches)
            if branches:
                head = (
                    repository.git.run("rev-parse", "--abbrev-ref", "HEAD")
                    .decode("utf-8", "replace")
                    .strip()
                )
            else:
                head = ""
            branches |= list_tags(repository, job.tags)
            row = connection.execute("SELECT count(*) FROM flashgrep.shard").fetchone()
            loader = Loader(connection, job.repository, row[0] if row else 1)
            with translate_errors():
                # Rows left by dead workers go first, so that they are not read as ours.
                delete_leftovers(connection, job.repository)
                trees = find_new_trees(connection, job, branches)
                contents = loader.known()
                for revision in trees.values():
                    listed = repository.list_files(revision)
                    names = {
                        path: content_key(file.blob, path)
                        for path, file in listed.items()
                    }
                    contents_wanted = {
                        name: Content(name, path)
                        for path, name in names.items()
                        if name not in contents
                    }
                    for contents_stored in loader.store(
                        contents_wanted.values(), repository
                    ):
                        contents |= contents_stored
                        tell(f"{job.name}: {len(contents)} contents")
                    put_listing(connection, job, revision, listed, contents)
                # Published as soon as texts and grams are stored: exact search works
                # while symbols and chunks are made.
                publish(connection, job, branches, head, job.generation)
                for count in loader.rebuild_segments():
                    tell(f"{job.name}: postings of {count} texts rebuilt")
                for at in loader.parse(self.workers):
                    tell(f"{job.name}: symbols of {at} texts")
                chunker = Chunker(connection, job.repository, self.embedding)
                for count in chunker.run(self.workers):
                    tell(f"{job.name}: chunks of {count} texts")
                # Last, when no step of the new state can fail any more.
                if dead := drop_dead(connection, job.repository):
                    tell(f"{job.name}: {dead} contents dropped")
                for count in merge(connection, job.repository):
                    tell(f"{job.name}: {count} segments merged")
        finally:
            repository.close()
