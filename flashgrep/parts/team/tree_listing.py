"""Publishes a state of a repository's branches: stores the files of their trees, then switches questions to them.

The files of a tree are one stored value: 80,000 files are read in the time of 500 table rows.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flashgrep.base.damage import Damaged
from flashgrep.base.errors import Conflict
from flashgrep.base.languages import name_class
from flashgrep.index.kept import Name
from flashgrep.index.table import FileRow, FileTable
from flashgrep.parts.git.repository import File, Files, Revision
from flashgrep.parts.team.queue import Job

if TYPE_CHECKING:
    from psycopg import Connection


_HEADER: Final = 12
_LEVEL: Final = 1
MOST_BYTES: Final = 1 << 30
"""Bound on the size of an inflated listing."""


class ListedFile(NamedTuple):
    """A file of a tree: path, git blob, size, and its text's number (0: it has none; ``skip`` says why)."""

    path: bytes
    blob: bytes
    size: int
    text_id: int
    skip: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a tree, unpacked."""

    files: Files
    table: FileTable


def pack(files: Sequence[ListedFile]) -> bytes:
    """Return files, sorted by path, in their stored form: deflated, with zlib's checksum.

    Three counts (u32: files, bytes per blob name, reasons), then columns: text numbers and sizes (i64), the index of
    the reason plus one (u8, 0: none), blob names; last the reasons and the paths, each with a NUL after it.
    """
    reasons = sorted({file.skip for file in files if file.skip})
    if files:
        width = len(files[0].blob)
    else:
        width = 0
    body = b"".join(
        (
            # Columns rather than rows: they compress better, and one can be read
            # without the others.
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
    """Return the text number of each file of a packed listing, 0 for files without a text.

    Raises:
        Damaged: the listing cannot be unpacked.

    """
    try:
        body = zlib.decompressobj().decompress(stored, MOST_BYTES)
        numbers: list[int] = np.frombuffer(
            body, "<i8", int(np.frombuffer(body, "<u4", 1)[0]), _HEADER
        ).tolist()
    except (zlib.error, ValueError) as error:
        raise Damaged("a listing of files") from error
    return numbers


def unpack(stored: bytes) -> Listing:
    """Return the listing of a packed one, the inverse of ``pack``.

    Raises:
        Damaged: the listing cannot be unpacked.

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
        skips = body[at : at + count]
        at = at + count
        blobs = [
            body[start : start + width].hex().encode()
            for start in range(at, at + count * width, width or 1)
        ]
        *names, last = body[at + count * width :].split(b"\0")
    except (zlib.error, ValueError) as error:
        raise Damaged("a listing of files") from error
    # The checksum covers damage after packing; this check covers a listing that was
    # packed wrongly.
    if last or len(names) != reasons + count or len(blobs) != count:
        raise Damaged("a listing of files")
    why = ["", *(name.decode() for name in names[:reasons])]
    paths = names[reasons:]
    files = {
        path: File(blob, size)
        for path, blob, size in zip(paths, blobs, sizes, strict=True)
    }
    rows = zip(paths, text_ids, skips, sizes, strict=True)
    return Listing(
        files,
        FileTable.of(
            [
                FileRow(path, number, why[skip], size, 0, 0, 0)
                for path, number, skip, size in rows
            ]
        ),
    )


def find_new_trees(
    connection: "Connection[Any]", job: Job, branches: dict[str, Revision]
) -> dict[bytes, Revision]:
    """Return one revision for each tree of the branches that has no listing yet."""
    rows = connection.execute(
        "SELECT tree FROM flashgrep.listing WHERE repository = %s", [job.repository]
    ).fetchall()
    trees_known = {row[0] for row in rows}
    return {
        revision.tree: revision
        for revision in branches.values()
        if _hex(revision.tree) not in trees_known
    }


def content_key(blob: bytes, path: bytes) -> Name:
    """Return the key of a content; ``blob``: its git object name in hexadecimal digits."""
    return _hex(blob), name_class(path)


def _hex(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode("ascii"))


def put_listing(
    connection: "Connection[Any]",
    job: Job,
    revision: Revision,
    files: Files,
    known: Mapping[Name, tuple[int, str]],
) -> None:
    """Store the listing of a tree; all its contents must be in ``known``."""
    listed = []
    for path, file in files.items():
        name = content_key(file.blob, path)
        text_id, skip = known[name]
        size = max(0, file.size)
        listed.append(ListedFile(path, name[0], size, text_id, skip))
    connection.execute(
        "INSERT INTO flashgrep.listing (repository, tree, files) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        [job.repository, _hex(revision.tree), pack(listed)],
    )


def publish(
    connection: "Connection[Any]",
    job: Job,
    branches: dict[str, Revision],
    head: str,
    generation: int,
) -> None:
    """Make this state of the branches the current one, atomically.

    Raises:
        Conflict: another worker has published a state in the meantime.

    """
    repository = job.repository
    with connection.transaction():
        matching_cursor = connection.execute(
            "UPDATE flashgrep.repository SET generation = generation + 1, head = %s, synced = now(), problem = '' "
            "WHERE id = %s AND generation = %s",
            [head, repository, generation],
        )
        if not matching_cursor.rowcount:
            raise Conflict(
                f"another worker has updated {job.name}", reason="generation_changed"
            )
        # All rows are replaced: a deleted branch must not answer, and branches are few.
        connection.execute(
            "DELETE FROM flashgrep.branch WHERE repository = %s", [repository]
        )
        connection.execute(
            "DELETE FROM flashgrep.revision WHERE repository = %s", [repository]
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO flashgrep.branch VALUES (%s, %s, %s)",
                [
                    (repository, name, _hex(revision.commit))
                    for name, revision in branches.items()
                ],
            )
            cursor.executemany(
                "INSERT INTO flashgrep.revision VALUES (%s, %s, %s, %s)",
                {
                    (repository, _hex(branch.commit), _hex(branch.tree), branch.time)
                    for branch in branches.values()
                },
            )
        connection.execute(
            "DELETE FROM flashgrep.listing WHERE repository = %s AND tree NOT IN "
            "(SELECT tree FROM flashgrep.revision WHERE repository = %s)",
            [repository, repository],
        )
