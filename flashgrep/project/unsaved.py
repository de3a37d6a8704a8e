"""A project as it is in one client's editor: its files, some replaced by unsaved texts."""

import os
from bisect import insort
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from flashgrep.api.coverage import Coverage
from flashgrep.base.errors import NotFound, TooLarge
from flashgrep.base.model import path_from_json, path_to_text
from flashgrep.files.buffers import UnsavedText
from flashgrep.files.finder import GlobPage, Window
from flashgrep.files.globs import GlobOptions, PathFilter
from flashgrep.files.read import SliceQuery, SliceResult, slice_content
from flashgrep.project.project import Workspace, cover_tree
from flashgrep.search.exact import Answer, Question
from flashgrep.search.snapshot import SearchStats, Snapshot

ResultT = TypeVar("ResultT")
MOST_NAMED: Final = 10
"""Maximum number of files named in a detail."""


@dataclass(frozen=True, slots=True)
class UnsavedView:
    """A project with unsaved texts, as if they were saved; a ``View``.

    Ignore rules are those on disk: an ignore file's unsaved text is searched, but applies only once saved.
    """

    project: Workspace
    texts: Mapping[bytes, UnsavedText]
    """By path from the root."""
    behind: tuple[bytes, ...] = ()
    """Files with a refused edit: the client's text differs from ours."""

    @property
    def revision_id(self) -> None:
        """None: the files as they are now."""

    @property
    def is_on_disk(self) -> bool:
        """False: some texts are not saved."""
        return False

    @property
    def is_stored(self) -> bool:
        """False: it can be asked by meaning only once the project is indexed."""
        return False

    @property
    def base(self) -> bytes:
        """The root: globs may begin with it."""
        return self.project.root

    @property
    def stages(self) -> Collection[str]:
        """The late stages of the index that have all texts."""
        return self.project.stages

    async def refresh(self) -> bool:
        """Read all events of what was saved before this call."""
        return await self.project.refresh()

    def find_new(self) -> list[bytes]:
        """Return the files that exist only as unsaved texts."""
        # Excluded files are not searched, saved or not.
        tree = self.project.tree
        accepts = self.project.walker.accepts
        return sorted(
            path for path in self.texts if not tree.has(path) and accepts(path)
        )

    def count_extra(self) -> int:
        """Return how many files are searched that are not on disk."""
        return len(self.find_new())

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        paths, new = self.project.paths(keep, part), self.find_new()
        folded = part.encode(errors="surrogateescape").lower()
        new = [path for path in filter(keep, new) if folded in path.lower()]
        # Copy only if something is added: the list belongs to the table.
        paths = [*paths] if new else paths
        for path in new:
            insort(paths, path)
        return paths

    def prepare(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot of the project with the texts."""
        return snapshot.with_buffers(self.texts, self.project.walker.accepts)

    async def search(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer:
        """Answer an exact question; ``max_file_size``: other than the setting."""
        return await self.project.lookups.search(question, max_file_size, self.prepare)

    async def search_fresh(
        self, question: Question, *, max_file_size: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer an exact question after a refresh; return also whether the answer equals the disk."""
        fresh = await self.refresh()
        return await self.search(question, max_file_size=max_file_size), fresh

    async def find_files(
        self, options: GlobOptions, window: Window, deadline: float | None
    ) -> GlobPage:
        """Return the files that match wildcards, with the sizes and times of unsaved texts."""
        project = self.project
        is_known = project.tree.is_watched and await project.refresh()

        def look(snapshot: Snapshot) -> GlobPage:
            # Only now, since making the snapshot compares the texts with the disk.
            changed = {
                path: (len(text.data), text.time_ns)
                for path, text in self.texts.items()
                if not text.is_saved
            }
            return project.find_in(
                snapshot, options, window, deadline, is_known=is_known, unsaved=changed
            )

        return await self.in_thread(look)

    def list_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return the files changed since a time, at most so many, and those that are open."""
        return self.project.list_recent(since_ns, most).union(self.texts)

    async def resolve(self, path: str, *, folder: bool = False) -> bytes:
        """Return a file or folder that a caller named, relative to the root; raises NotFound, Forbidden."""
        try:
            return await self.project.resolve(path, folder=folder)
        except NotFound:
            # A new file, never saved: only the editor has it.
            if folder or not self.has(path):
                raise
            return self.locate(path_from_json(path))

    async def read(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes, unsaved or not; raises as ``Workspace.read``."""
        located = self.locate(path)
        if located not in self.texts:
            return await self.project.read(path, most)
        data = self.texts[located].data
        if len(data) > most:
            raise TooLarge(
                f"too large to send: {path_to_text(path)}",
                observed_bytes=len(data),
                limit_bytes=most,
            )
        return data

    def coverage(
        self,
        stats: SearchStats,
        *,
        fresh: bool,
        started: float,
        keep: PathFilter | None = None,
    ) -> Coverage:
        """Return the coverage of an answer; ``started`` on the clock of time.perf_counter()."""
        coverage = cover_tree(
            self.project, self, stats, fresh=fresh, started=started, keep=keep
        )
        if self.behind:
            names = ", ".join(map(path_to_text, self.behind[:MOST_NAMED]))
            problem = f"an edit was refused, so the text before it is used; open again: {names}"
            coverage["detail"] = "; ".join(
                filter(None, (coverage.get("detail"), problem))
            )
        coverage["unsaved"] = sum(not text.is_saved for text in self.texts.values())
        return coverage

    async def in_thread(
        self, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True
    ) -> ResultT:
        """Run a lookup in a thread."""
        del symbols  # all texts are indexed with them
        return await self.project.in_thread(
            lambda snapshot: ask(self.prepare(snapshot))
        )

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something that needs no snapshot but may take long, in a thread."""
        return await self.project.in_turn(work)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""
        inside = self.locate(path)
        if inside not in self.texts:
            return await self.project.read_slice(path, query)
        text = self.texts[inside]
        return await self.in_turn(
            lambda: slice_content(self.project.editor, inside, text.data, query)
        )

    def locate(self, path: bytes) -> bytes:
        """Return a file's path relative to the root, with links resolved if it has an unsaved text.

        Raises:
            Forbidden: an absolute path is outside.

        """
        inside = b"/".join(self.project.editor.root.split(path, path))
        if inside in self.texts:
            return inside
        root = self.project.walker.root
        # Editors send the path that was opened, which may go through a link; texts are
        # kept by the real one.
        return os.path.relpath(os.path.realpath(root + b"/" + inside), root)

    def has(self, path: str) -> bool:
        """Return whether a file with an unsaved text is at a path, or below it."""
        inside = self.locate(path_from_json(path))
        return any(
            text == inside or text.startswith(inside + b"/") for text in self.texts
        )
