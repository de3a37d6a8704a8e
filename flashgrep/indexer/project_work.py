"""What an indexer lends to a part that makes rows of its own from the texts of one project."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from flashgrep.index.writer import Writer
from flashgrep.indexer.job import IndexJob, ProjectJob
from flashgrep.indexer.worker_pool import WorkerPool

Contents = Sequence[Sequence[str | bool]]
"""Blob ids of revisions' files, each with a path as latin-1, and whether to parse it."""

TextT = TypeVar("TextT", bound=tuple[Any, ...])


@dataclass(slots=True)
class ProjectWork:
    """One command about a project, as the function that carries it out gets it.

    A late stage's function gets this and the embedder's settings, and yields how much is left (``StageBacklog``) first
    and after each batch. The function for "keep" gets this and ``Contents``, and yields how many texts are left.
    """

    job: IndexJob
    project: ProjectJob
    writer: Writer
    pool: WorkerPool
    is_interrupted: Callable[[], bool]
    """Whether another command waits."""
    remade: bool = False
    """Whether data that other projects share was dropped, and must be rebuilt."""

    def add_project(self) -> int:
        """Return the project's number in the store, adding it if it is new."""
        return self.writer.add_project(self.project.root.path)

    def choose_batches(
        self, choose: Callable[[int], list[TextT]]
    ) -> Iterator[list[TextT]]:
        """Yield batches of texts, each chosen by the last number of the one before, until another command waits."""
        after = 0
        while not self.is_interrupted() and (texts := choose(after)):
            after = texts[-1][0]
            yield texts
