"""States of a repository's branches: the files of their trees, and the step by which a state is the one asked.

The files of a tree are one value: 80,000 of them are read in the time that 500 rows of a table take.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flashgrep.damage import Damaged
from flashgrep.errors import Conflict
from flashgrep.git.repository import File, Files, Revision
from flashgrep.index.kept import Name
from flashgrep.index.table import FileRow, FileTable
from flashgrep.languages import name_class
from flashgrep.team.queue import Job

if TYPE_CHECKING:
    from psycopg import Connection


_HEADER: Final = 12
_LEVEL: Final = 1
MOST_BYTES: Final = 1 << 30
"""A listing is inflated to no more."""


class ListedFile(NamedTuple):
    """A file of a tree: what git calls its content, its size, and its text by number (0: it has none, and why)."""

    path: bytes
    blob: bytes
    size: int
    text_id: int
    skip: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a tree, ready to be asked."""

    files: Files
    table: FileTable


def pack(files: Sequence[ListedFile]) -> bytes:
    """Return files, in the order of their paths, as they are stored: deflated, with a checksum.

    Counts (u32: files, bytes of a blob's name, reasons), then columns: text numbers and sizes (i64), reasons by place
    (u8, 0: none), blobs; at last the reasons and the paths, each with a NUL after it.
    """
    reasons = sorted({file.skip for file in files if file.skip})
    width = len(files[0].blob) if files else 0
    body = b"".join(
        (
            # Columns rather than rows: they deflate better, and reading one of them needs none of the others.
            np.array([len(files), width, len(reasons)], "<u4").tobytes(),
            np.array([file.text_id for file in files], "<i8").tobytes(),
            np.array([file.size for file in files], "<i8").tobytes(),
            bytes(reasons.index(file.skip) + 1 if file.skip else 0 for file in files),
            b"".join(file.blob for file in files),
            b"".join(reason.encode() + b"\0" for reason in reasons),
            b"".join(file.path + b"\0" for file in files),
        )
    )
    return zlib.compress(body, _LEVEL)


def read_text_ids(stored: bytes) -> list[int]:
    """Return the numbers of the texts of a packed listing's files, 0 for those without.

    Raises:
        Damaged: it is not what was written.

    """
    try:
        body = zlib.decompressobj().decompress(stored, MOST_BYTES)
        numbers: list[int] = np.frombuffer(body, "<i8", int(np.frombuffer(body, "<u4", 1)[0]), _HEADER).tolist()
    except (zlib.error, ValueError) as error:
        raise Damaged("a listing of files") from error
    return numbers


def unpack(stored: bytes) -> Listing:
    """Return what ``pack`` was given.

    Raises:
        Damaged: it is not what was written.

    """
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(stored, MOST_BYTES)
        if not inflater.eof:
            raise Damaged("a listing of files")
        count, width, reasons = np.frombuffer(body, "<u4", 3).tolist()
        text_ids = np.frombuffer(body, "<i8", count, _HEADER).tolist()
        sizes = np.frombuffer(body, "<i8", count, _HEADER + 8 * count).tolist()
        at = _HEADER + 16 * count
        skips, at = body[at : at + count], at + count
        blobs = [body[start : start + width].hex().encode() for start in range(at, at + count * width, width or 1)]
        *names, last = body[at + count * width :].split(b"\0")
    except (zlib.error, ValueError) as error:
        raise Damaged("a listing of files") from error
    # zlib's checksum is right for whatever was packed; this is for a listing that was packed wrongly.
    if last or len(names) != reasons + count or len(blobs) != count:
        raise Damaged("a listing of files")
    why = ["", *(name.decode() for name in names[:reasons])]
    paths = names[reasons:]
    files = {path: File(blob, size) for path, blob, size in zip(paths, blobs, sizes, strict=True)}
    rows = zip(paths, text_ids, skips, sizes, strict=True)
    return Listing(
        files, FileTable.of([FileRow(path, number, why[skip], size, 0, 0, 0) for path, number, skip, size in rows])
    )


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
