"""Exact questions to a project: which of them ripgrep walks for, and what makes its counts ours."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

import anyio

from flashgrep.ingest.walk import Walker
from flashgrep.search.exact import Answer, Question
from flashgrep.search.relevance import search
from flashgrep.search.snapshot import Snapshot
from flashgrep.search.walks import search_or_count, search_unlisted
from flashgrep.workspace.lookups import Lookups
from flashgrep.workspace.tree import Tree

ResultT = TypeVar("ResultT")

HEAD_START = 1.0
"""Seconds that a question may scan before the files are listed."""


class Project(Protocol):
    """What is asked here of a project."""

    tree: Tree
    walker: Walker
    lookups: Lookups

    @property
    def sees_events(self) -> bool:
        """Whether the system tells of every change, and at once."""

    async def refresh(self) -> bool:
        """Take in all that was saved before this call."""

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run what needs no index in a thread."""

    def snapshot(self) -> Snapshot:
        """Return the project as it is known now."""


async def ask_listed(project: Project, question: Question, max_size: int | None) -> Answer:
    """Answer a question about the files as known now."""
    tree = project.tree
    listed = tree.listed_since
    with tree.marks() as marked:
        ask = partial(search_or_count, question=question, max_size=max_size, walks=project.sees_events)
        portable = question.engine == "linear"
        found = await project.lookups.run(ask, portable=portable, deadline=question.deadline)
        if isinstance(found, Answer):
            return found
        # ripgrep opens files by path: a folder may have been a link to elsewhere for a moment. Its count is a file's
        # own unless an event tells of the file or of a folder above it, or events were lost.
        told = await project.refresh() and tree.listed_since == listed
    counts = {path: count for path, count in found.items() if path not in marked} if told else None

    def ask_again(snapshot: Snapshot) -> Answer:
        snapshot = snapshot if max_size is None else snapshot.with_max_size(max_size)
        return search(replace(snapshot, counts=counts), question)

    return await project.lookups.run(ask_again)


class UnlistedSearch:
    """Exact questions that come before the files of a project have been listed: ripgrep walks and searches at once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._ended: anyio.Event | None = None

    async def search(self, question: Question, *, max_file_size: int | None = None) -> Answer | None:
        """Answer about the disk as it is; None: ``refresh`` first, and ask as always."""
        project = self._project
        tree = project.tree
        if tree.listed_since is not None or len(tree.table) or question.position is not None:
            return None
        snapshot = project.snapshot()
        snapshot = snapshot if max_file_size is None else replace(snapshot, max_size=max_file_size)
        ended = self._ended = anyio.Event()
        try:
            return await project.in_turn(partial(search_unlisted, snapshot, question, project.walker.accepts))
        finally:
            ended.set()

    async def wait(self) -> None:
        """Wait while such a question is answered, a second at most: listing would take its processor."""
        if self._ended is not None:
            with anyio.move_on_after(HEAD_START):
                await self._ended.wait()
