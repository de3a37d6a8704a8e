"""States of a repository's branches: the files of their trees, and the step by which a state is the one asked."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flashgrep.errors import Conflict
from flashgrep.git.repository import Files, Revision
from flashgrep.index.kept import Name
from flashgrep.languages import name_class
from flashgrep.team.listing import ListedFile, pack
from flashgrep.team.queue import Job

if TYPE_CHECKING:
    from psycopg import Connection


def find_new_trees(connection: "Connection[Any]", job: Job, branches: dict[str, Revision]) -> dict[bytes, Revision]:
    """Return a revision for each tree of branches whose files are not listed yet."""
    rows = connection.execute("SELECT tree FROM flashgrep.listing WHERE repository = %s", [job.repository]).fetchall()
    known = {row[0] for row in rows}
    return {revision.tree: revision for revision in branches.values() if _hex(revision.tree) not in known}


def name_of(blob: bytes, path: bytes) -> Name:
    """Return what a content is known by; ``blob``: git's name of it in digits."""
    return _hex(blob), name_class(path)


def _hex(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode("ascii"))


def put_listing(
    connection: "Connection[Any]", job: Job, revision: Revision, files: Files, known: Mapping[Name, tuple[int, str]]
) -> None:
    """Store the files of a tree, whose contents are all known."""
    listed = []
    for path, file in files.items():
        name = name_of(file.blob, path)
        text_id, skip = known[name]
        listed.append(ListedFile(path, name[0], max(0, file.size), text_id, skip))
    connection.execute(
        "INSERT INTO flashgrep.listing (repository, tree, files) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        [job.repository, _hex(revision.tree), pack(listed)],
    )


def publish(connection: "Connection[Any]", job: Job, branches: dict[str, Revision], head: str, generation: int) -> None:
    """Make a state of the branches the one that is asked, in one step.

    Raises:
        Conflict: another worker has published a state meanwhile.

    """
    repository = job.repository
    with connection.transaction():
        done = connection.execute(
            "UPDATE flashgrep.repository SET generation = generation + 1, head = %s, synced = now(), problem = '' "
            "WHERE id = %s AND generation = %s",
            [head, repository, generation],
        )
        if not done.rowcount:
            raise Conflict(f"{job.name} has changed meanwhile", reason="generation_changed")
        # All of them again: a branch that is gone must not answer, and there are few.
        connection.execute("DELETE FROM flashgrep.branch WHERE repository = %s", [repository])
        connection.execute("DELETE FROM flashgrep.revision WHERE repository = %s", [repository])
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO flashgrep.branch VALUES (%s, %s, %s)",
                [(repository, name, _hex(one.commit)) for name, one in branches.items()],
            )
            cursor.executemany(
                "INSERT INTO flashgrep.revision VALUES (%s, %s, %s, %s)",
                {(repository, _hex(one.commit), _hex(one.tree), one.time) for one in branches.values()},
            )
        connection.execute(
            "DELETE FROM flashgrep.listing WHERE repository = %s AND tree NOT IN "
            "(SELECT tree FROM flashgrep.revision WHERE repository = %s)",
            [repository, repository],
        )
