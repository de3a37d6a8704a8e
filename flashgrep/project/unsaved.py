"""A project as it is in one client's editor: its files, some replaced by unsaved texts."""

import os
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from flashgrep.base.model import path_from_json
from flashgrep.files.buffers import UnsavedText
from flashgrep.files.editor import Editor
from flashgrep.files.globs import PathFilter
from flashgrep.files.read import SliceQuery, SliceResult, slice_content
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer, MeaningQuestion
from flashgrep.parts.symbols.symbol_search import BestDefinition, find_best_definition
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project.project import Workspace
from flashgrep.search.exact import Answer, Question
from flashgrep.search.snapshot import Snapshot

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class UnsavedView:
    """A project with unsaved texts, as if they were saved; answers the same questions as a workspace.

    Ignore rules are those on disk: an ignore file's unsaved text is searched, but applies only once saved.
    """

    project: Workspace
    texts: Mapping[bytes, UnsavedText]
    """By path from the root."""
    behind: tuple[bytes, ...] = ()
    """Files with a refused edit: the client's text differs from ours."""

    @property
    def editor(self) -> Editor:
        """The project's root, and the limits of reading."""
        return self.project.editor

    async def refresh(self) -> bool:
        """Read all events of what was saved before this call."""
        return await self.project.refresh()

    def find_new(self) -> list[bytes]:
        """Return the files that exist only as unsaved texts."""
        # Excluded files are not searched, saved or not.
        known, accepts = self.project.tree, self.project.walker.accepts
        return sorted(path for path in self.texts if not known.has(path) and accepts(path))

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

    async def search(self, question: Question, *, max_file_size: int | None = None) -> Answer:
        """Answer an exact question; ``max_file_size``: other than the setting."""
        return await self.project.lookups.search(question, max_file_size, self.prepare)

    async def search_words(self, text: str, limit: int, keep: PathFilter | None) -> Answer:
        """Return the best lines for words."""
        return await self.project.search_words(text, limit, keep, self.prepare)

    async def search_by_meaning(self, question: MeaningQuestion) -> MeaningAnswer:
        """Return the chunks that answer a question best."""
        return await self.project.search_by_meaning(question, self.prepare)

    async def find_definition(self, name: str, under: bytes = b"") -> BestDefinition:
        """Return the best definition of a name; raises as ``find_best_definition``."""
        return await self.in_thread(lambda snapshot: find_best_definition(SnapshotSource(snapshot), name, under))

    async def in_thread(self, ask: Callable[[Snapshot], ResultT]) -> ResultT:
        """Run a lookup in a thread."""
        return await self.project.in_thread(lambda snapshot: ask(self.prepare(snapshot)))

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something that needs no snapshot but may take long, in a thread."""
        return await self.project.in_turn(work)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""
        found = self.locate(path)
        if found not in self.texts:
            return await self.project.read_slice(path, query)
        text = self.texts[found]
        return await self.in_turn(lambda: slice_content(self.editor, found, text.data, query))

    def locate(self, path: bytes) -> bytes:
        """Return a file's path relative to the root, with links resolved if it has an unsaved text.

        Raises:
            Forbidden: an absolute path is outside.

        """
        found = b"/".join(self.editor.root.split(path, path))
        if found in self.texts:
            return found
        root = self.project.walker.root
        # Editors send the path that was opened, which may go through a link; texts are kept by the real one.
        return os.path.relpath(os.path.realpath(root + b"/" + found), root)

    def has(self, path: str) -> bool:
        """Return whether a file with an unsaved text is at a path, or below it."""
        found = self.locate(path_from_json(path))
        return any(one == found or one.startswith(found + b"/") for one in self.texts)
