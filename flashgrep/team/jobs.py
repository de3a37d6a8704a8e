"""What workers do: they take a repository whose turn it is, fetch it, and bring the store to its branches' state.

Any number of workers on any machines: a row of ``turn`` is locked while one works (FOR UPDATE SKIP LOCKED), so a
worker that dies gives its repository back by losing its connection, and another continues after its last batch.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flashgrep.errors import FlashgrepError, InvalidParams, NotFound
from flashgrep.git.program import Git
from flashgrep.git.repository import Repository, is_bare
from flashgrep.ingest.openat import RootFolder
from flashgrep.team.clones import ADDRESS, fetch, list_branches, list_tags
from flashgrep.team.cutting import Cutter
from flashgrep.team.database import connect, translate_errors
from flashgrep.team.load import Content, Loader
from flashgrep.team.migrations import SHARDED, check
from flashgrep.team.queue import Job, postpone, take
from flashgrep.team.stored_segments import clean, drop_dead, merge
from flashgrep.team.tree_listing import find_new_trees, name_of, publish, put_listing

if TYPE_CHECKING:
    from psycopg import Connection

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
STATE: Final = ("branch", "revision", "listing", "content", "segment", "job")
"""Tables that say what a repository has; they lie in one place."""
Tell = Callable[[str], None]
"""Is told, in words, what is being done."""


@dataclass(frozen=True, slots=True)
class Team:
    """A team's store, as who fills it sees it."""

    dsn: str
    cache: Path
    """Where clones of addresses are kept."""
    environ: Mapping[str, str]
    workers: int = 2
    """Processes that parse, cut and embed."""
    embedding: str = "{}"
    """Settings of the embedder, as JSON."""

    def open(self) -> "Connection[Any]":
        """Return a connection, once the tables are known to be those of this version; raises as ``schema.check``."""
        connection = connect(self.dsn)
        try:
            check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def add(self, source: str, name: str = "", branches: tuple[str, ...] = (), tags: tuple[str, ...] = ()) -> str:
        """Add a repository by the path of a bare clone or by an address, have it indexed, and return its name.

        Raises:
            InvalidParams: it can be neither; or the name is taken, or a folder of another's.

        """
        if not ADDRESS.fullmatch(source):
            folder = Path(source).resolve()
            if not is_bare(folder):
                message = f"neither an address nor a bare clone: {source}"
                raise InvalidParams(message, field="source", suggestion="git clone --mirror makes one")
            source = str(folder)
        name = name or re.split(r"[/:]", source.rstrip("/"))[-1].removesuffix(".git")
        if not NAME.fullmatch(name):
            raise InvalidParams(f"not a name for a repository: {name!r}", field="name", pattern=NAME.pattern)
        with self.open() as connection, translate_errors(), connection.transaction():
            # Two that are added at once could each be a folder of the other; no constraint of the table says that.
            connection.execute("LOCK TABLE flashgrep.repository IN SHARE ROW EXCLUSIVE MODE")
            for (other,) in connection.execute("SELECT name FROM flashgrep.repository").fetchall():
                if f"{name}/".startswith(f"{other}/") or f"{other}/".startswith(f"{name}/"):
                    raise InvalidParams(f"the name is taken, or a folder of another's: {other}", field="name")
            row = connection.execute(
                "INSERT INTO flashgrep.repository (name, source, branches, tags) VALUES (%s, %s, %s, %s) RETURNING id",
                [name, source, list(branches), list(tags)],
            ).fetchone()
            connection.execute("INSERT INTO flashgrep.turn VALUES (%s)", row)
            connection.execute("INSERT INTO flashgrep.job (repository) VALUES (%s)", row)
        return name

    def remove(self, name: str) -> None:
        """Delete a repository with all its rows, once no worker is at it.

        Shards commit by themselves, so first it is left without a state, then without rows: if a shard dies, nothing
        answers from the rows of the others, and to remove it once more deletes the rest.

        Raises:
            NotFound: there is none of the name.

        """
        query = (
            "SELECT turn.repository FROM flashgrep.turn JOIN flashgrep.repository ON id = turn.repository "
            "WHERE name = %s FOR UPDATE OF turn"
        )
        state = "UPDATE flashgrep.repository SET generation = generation + 1 WHERE id = %s"
        # Shards may be foreign tables, to which no foreign key leads: their rows are deleted by hand.
        forget = [f"DELETE FROM flashgrep.{table} WHERE repository = %s" for table in STATE]
        delete = [f"DELETE FROM flashgrep.{table} WHERE repository = %s" for table in SHARDED]
        with self.open() as connection, translate_errors():
            for statements in ([state, *forget], [*delete, "DELETE FROM flashgrep.repository WHERE id = %s"]):
                with connection.transaction():
                    row = connection.execute(query, [name]).fetchone()
                    if row is None:
                        raise NotFound(f"no such repository: {name}", reason="project_not_found")
                    for statement in statements:
                        connection.execute(statement.encode(), row)

    def request(self, names: tuple[str, ...] = ()) -> None:
        """Have repositories brought up to date: these, or all.

        Raises:
            NotFound: there is none of a name.

        """
        with self.open() as connection, translate_errors(), connection.transaction():
            known = {row[0] for row in connection.execute("SELECT name FROM flashgrep.repository").fetchall()}
            if missing := sorted(set(names) - known):
                raise NotFound(f"no such repository: {', '.join(missing)}", reason="project_not_found")
            connection.execute(
                "INSERT INTO flashgrep.job (repository) SELECT id FROM flashgrep.repository WHERE name = ANY(%s)",
                [list(names or known)],
            )

    def work(self, tell: Tell) -> int:
        """Do the jobs that are due and that no other worker is at, and return how many there were."""
        done = 0
        # Two connections: the one holds the repository's lock for the whole job, the other commits step by step.
        with self.open() as locked, self.open() as connection:
            while True:
                with translate_errors(), locked.transaction():
                    job = take(locked)
                    if job is None:
                        return done
                    done += 1
                    try:
                        self.sync(connection, job, tell)
                    except FlashgrepError as error:
                        # The database went away, which is no fault of the job; the next worker takes it as it is.
                        if connection.closed:
                            raise
                        postpone(locked, connection, job, error)
                        tell(f"{job.name}: {error.message}")
                    else:
                        locked.execute("DELETE FROM flashgrep.job WHERE id = ANY(%s)", [job.requests])

    def sync(self, connection: "Connection[Any]", job: Job, tell: Tell) -> None:
        """Bring the store to the state of a repository's branches."""
        tell(f"{job.name}: fetching")
        repository = Repository.open(
            Git.find(RootFolder(os.fsencode(fetch(job, self.cache, self.environ))), self.environ)
        )
        try:
            branches = list_branches(repository, job.branches)
            head = (
                repository.git.run("rev-parse", "--abbrev-ref", "HEAD").decode("utf-8", "replace").strip()
                if branches
                else ""
            )
            branches |= list_tags(repository, job.tags)
            row = connection.execute("SELECT count(*) FROM flashgrep.shard").fetchone()
            loader = Loader(connection, job.repository, row[0] if row else 1)
            with translate_errors():
                # First what dead workers have left, so that their rows are not read as ours.
                clean(connection, job.repository)
                trees = find_new_trees(connection, job, branches)
                known = loader.known()
                for revision in trees.values():
                    listed = repository.list_files(revision)
                    names = {path: name_of(file.blob, path) for path, file in listed.items()}
                    wanted = {name: Content(name, path) for path, name in names.items() if name not in known}
                    for found in loader.store(wanted.values(), repository):
                        known |= found
                        tell(f"{job.name}: {len(known)} contents")
                    put_listing(connection, job, revision, listed, known)
                # As soon as texts and grams are there: exact questions are answered while symbols and chunks are made.
                publish(connection, job, branches, head, job.generation)
                for count in loader.renew():
                    tell(f"{job.name}: postings of {count} texts made anew")
                for at in loader.parse(self.workers):
                    tell(f"{job.name}: symbols of {at} texts")
                cutter = Cutter(connection, job.repository, self.embedding)
                for count in cutter.run(self.workers):
                    tell(f"{job.name}: chunks of {count} texts")
                # Last, when nothing of the new state can fail any more.
                if dead := drop_dead(connection, job.repository):
                    tell(f"{job.name}: {dead} contents dropped")
                for count in merge(connection, job.repository):
                    tell(f"{job.name}: {count} segments merged")
        finally:
            repository.close()
