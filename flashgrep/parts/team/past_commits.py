"""Commits behind those in the store, read from a clone: a permanent link lasts longer than the head it was made at."""

import re
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, TypeVar

from flashgrep.base.errors import NotFound, Unavailable
from flashgrep.parts.git.program import Object
from flashgrep.parts.git.repository import Files, Repository, Revision
from flashgrep.parts.git.revision import Blobs, RevisionTable
from flashgrep.search.snapshot import Snapshot

FULL_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A commit's whole id, as a permanent link has it; names and abbreviations are those of the store alone."""
MOST_HEADS: Final = 20_000
"""Heads that a commit is sought behind: a command line has room for twice as many."""
ResultT = TypeVar("ResultT")
OpenClone = Callable[[], Repository]


def find_past_commit(
    clone: Repository, name: str, heads: Sequence[bytes]
) -> Revision | None:
    """Return the commit of this id if one of the heads comes after it.

    The clone may have other branches: who asks may see what led to the heads, and no more.
    """
    try:
        revision = clone.resolve(name)
        heads_left_out = [b"^" + head.hex().encode() for head in heads[:MOST_HEADS]]
        # Nothing is printed if the heads lead to it; a head may not have been fetched here.
        unknown = clone.git.run(
            "rev-list",
            "--max-count=1",
            "--ignore-missing",
            revision.commit,
            *heads_left_out,
        )
    except (NotFound, Unavailable):
        return None
    if unknown:
        return None
    return revision


class PastFiles:
    """The files of such a commit; implements ``parts.git.revisions.RevisionFiles``.

    Each lookup opens the clone: links to old commits are rare, and a git that is kept would have to be ended.
    """

    is_stored = False
    unreached: Sequence[str] = ()

    def __init__(self, files: Files, clone: Repository, open_clone: OpenClone) -> None:
        self.files = files
        self.table = RevisionTable(files, Blobs(clone)).table
        self._open = open_clone

    def ask(
        self,
        project: Snapshot,
        ask: Callable[[Snapshot], ResultT],
        *,
        symbols: bool = True,
    ) -> ResultT:
        """Run a lookup on the revision, without an index."""
        with closing(self._open()) as clone:
            table = RevisionTable(self.files, Blobs(clone))
            return table.ask(project, ask, symbols=symbols)

    def take_foreign(
        self,
        project: Snapshot,
        *,
        symbols: bool,
    ) -> list[tuple[bytes, bytes]]:
        """Return nothing: the store has heads alone."""
        # Other revisions take what the index lacks of them. Nothing of a past commit is
        # indexed here, whatever is asked.
        del project, symbols
        return []

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file; raises as ``Repository.read``."""
        with closing(self._open()) as clone:
            return clone.read(path, blob, most)
