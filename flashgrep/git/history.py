"""What git knows of the past: names of revisions, commits that changed a file, and the commit each line is from.

As everywhere here, only commands run that start nothing a repository names: ``rev-list`` reads no settings of ``log``
(signatures, mailmaps), and ``blame`` gets a commit and ``--no-textconv``: without a commit it would run the clean
filters of the work tree. Of a repository's settings it heeds ``blame.ignoreRevsFile``, which names a file to be read.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import NotFound, Unavailable
from flashgrep.git.repository import Repository
from flashgrep.model import path_to_text

_FIELDS: Final = "%H%x00%P%x00%at%x00%an%x00%s"
_NAMES: Final = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:unix)"
_KINDS: Final = {b"refs/heads/": "branch", b"refs/remotes/": "remote", b"refs/tags/": "tag"}
_BLAMED: Final = re.compile(rb"([0-9a-f]{40,64}) (\d+) (\d+)(?: (\d+))?")
MOST_SUBJECT: Final = 300
"""Characters of a commit's first line, and of a name of a person."""


class Commit(NamedTuple):
    """A commit: its name, its parents, when it was written, by whom, and its first line."""

    name: str
    parents: tuple[str, ...]
    time: int
    author: str
    subject: str


class NamedRevision(NamedTuple):
    """A branch or tag: its short name, what it is, the commit it stands for, its time."""

    name: str
    kind: str
    commit: str
    time: int


class Blamed(NamedTuple):
    """Lines in a row that are from one commit: the first, how many, and the first one's number in that commit."""

    start: int
    lines: int
    commit: str
    old_start: int


def list_names(repository: Repository, most: int) -> list[NamedRevision]:
    """Return branches and tags, the newest first; raises as ``Git.run``."""
    printed = repository.git.run(
        "for-each-ref", "--sort=-creatordate", f"--count={most}", f"--format={_NAMES}", *map(bytes.decode, _KINDS)
    )
    found = []
    for line in printed.splitlines():
        full, commit, peeled, time = line.split(b"\0")
        prefix = next(prefix for prefix in _KINDS if full.startswith(prefix))
        name = full.removeprefix(prefix).decode("utf-8", "replace")
        found.append(NamedRevision(name, _KINDS[prefix], (peeled or commit).decode("ascii"), int(time or 0)))
    return found


def list_commits(repository: Repository, rev: str, path: bytes, skip: int, most: int) -> list[Commit]:
    """Return the commits before a revision, itself included, that changed a path (empty: the project), newest first.

    Raises:
        NotFound: revision_not_found.
        Unavailable, Forbidden, Abandoned, Expired: as ``Git.run``.

    """
    start = repository.resolve(rev).commit
    limits = (f"--max-count={most}", f"--skip={skip}")
    # A project below the repository's top asks about its own folder alone.
    under = [path] if path else [b"."] if repository.prefix else []
    printed = repository.git.run("rev-list", *limits, f"--format={_FIELDS}", start, "--", *under)
    return list(_parse_commits(printed))


def blame(repository: Repository, rev: str, path: bytes, lines: tuple[int, int]) -> tuple[list[Blamed], list[Commit]]:
    """Return which commits lines of a file at a revision are from, by place, and these commits.

    Raises:
        NotFound: revision_not_found, or file_not_found: the revision has no such file, or not this many lines.
        Unavailable, Forbidden, Abandoned, Expired: as ``Git.run``.

    """
    start = repository.resolve(rev).commit
    wanted = f"-L{lines[0]},{lines[1]}"
    try:
        printed = repository.git.run(
            "blame", "--no-textconv", "--no-progress", "--porcelain", wanted, start, "--", path
        )
    except Unavailable as error:
        # git has one status for all failures; LC_ALL=C keeps its words the same everywhere.
        if "no such path" in error.message or "has only" in error.message:
            message = f"no such file, or no such line, in the revision: {path_to_text(path)}"
            raise NotFound(message, reason="file_not_found", target_path=path_to_text(path)) from None
        raise
    found: list[Blamed] = []
    for line in printed.split(b"\n"):
        head = _BLAMED.fullmatch(line)
        # In porcelain a line with a fourth field begins a group of lines from one commit.
        if head is None or head[4] is None:
            continue
        checkpoint()
        found.append(Blamed(int(head[3]), int(head[4]), head[1].decode("ascii"), int(head[2])))
    names = list(dict.fromkeys(one.commit for one in found))
    if not names:  # rev-list without a revision is an error
        return found, []
    printed = repository.git.run("rev-list", "--no-walk=unsorted", f"--format={_FIELDS}", *names, "--")
    return found, list(_parse_commits(printed))


def _parse_commits(printed: bytes) -> Iterator[Commit]:
    for line in printed.decode("utf-8", "replace").split("\n"):
        parts = line.split("\0", 4)
        if len(parts) > 4:  # noqa: PLR2004 - the fields of _FIELDS
            name, parents, time, author, subject = parts
            yield Commit(name, tuple(parents.split()), int(time or 0), author[:MOST_SUBJECT], subject[:MOST_SUBJECT])
