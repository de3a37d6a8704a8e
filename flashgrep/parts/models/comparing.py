"""Measures models on the user's own repository, by questions drawn from its history, as the product answers them.

For each question the files of the commit's parent are put into a folder, which is indexed like a project. A large
repository is represented by the files that were wanted and others drawn at random, the same for every model.
"""

import os
import statistics
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import anyio
import numpy as np

from flashgrep.base.config import Embedding
from flashgrep.parts.git.repository import (
    Files,
    Repository,
)
from flashgrep.parts.meaning.embed.models import Reranker
from flashgrep.parts.meaning.part import PART as MEANING
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.models.history import (
    HistoryQuestion,
    is_source,
    read,
)
from flashgrep.parts.symbols.part import PART as SYMBOLS
from flashgrep.project import Workspace
from flashgrep.project.project import WorkspaceOptions

FEWEST_FILES: Final = 30
MOST_FILES: Final = 200
"""Files of a revision that are indexed; fewer for a slow model, besides those that are wanted."""
CHUNKS: Final = 10
"""Chunks of a usual file."""
RESULTS: Final = 10
SECONDS: Final = 300.0
"""For one model. An encoder takes 10 to 50 ms for a chunk on one core; what is answered until then counts."""
FEWEST: Final = 8
"""Questions answered by both models: fewer say nothing."""
LONGEST_NAME: Final = 255
"""Bytes that systems take; a tree of git may have more."""
DEPTHS: Final = (1, 5, 10)
DRAWS: Final = 2000
"""Samples of the bootstrap."""


class Way(NamedTuple):
    """A model to be measured: the settings of an embedder, and a reranker."""

    name: str
    embedding: Embedding
    reranker: Reranker | None = None


@dataclass(slots=True)
class Measured:
    """The rank of the first wanted file of each question, from 1 (0: not among ten), by way."""

    ranks: dict[str, list[int]] = field(default_factory=dict)
    files: int = 0
    """Files of a revision that were indexed."""
    problem: str = ""
    """Why a way could not be measured."""


class Revisions:
    """The indexed files of each question's revision, placed into one folder after the other."""

    def __init__(
        self,
        repository: Repository,
        questions: Sequence[HistoryQuestion],
        most: int,
    ) -> None:
        """``most``: files of a revision beside those that its question wants."""
        self.questions = questions
        self._repository = repository
        self._most = most
        self._placed: dict[bytes, bytes] = {}

    def start(self) -> None:
        """Begin with an empty folder."""
        self._placed = {}

    def place(self, question: HistoryQuestion, tree: Path) -> int:
        """Make the folder's files those of a question's revision; return how many there are."""
        revision = self._repository.resolve(question.parent)
        files = self._repository.list_files(revision)
        chosen = self._choose(files, set(map(os.fsencode, question.files)))
        for path in self._placed.keys() - chosen.keys():
            former = tree / os.fsdecode(path)
            former.unlink()
            # A file may take the place of its folder.
            with suppress(OSError):
                while former.parent != tree:
                    former = former.parent
                    former.rmdir()
        for path, blob in chosen.items():
            if self._placed.get(path) != blob:
                target = tree / os.fsdecode(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(read(self._repository, path, files))
        self._placed = chosen
        return len(chosen)

    def _choose(self, files: Files, wanted: set[bytes]) -> dict[bytes, bytes]:
        """Return the sources to index, each with its content's name: those that are wanted, and drawn ones."""

        def order(path: bytes) -> tuple[bool, int, bytes]:
            # By a hash of the path, so that revisions have the same files.
            return path not in wanted, crc32(path), path

        sources = []
        for path in files:
            # A tree that was made to harm may have entries that lead out of it.
            if is_source(path) and is_plain_path(path):
                sources.append(path)
        most = self._most + len(wanted)
        chosen = sorted(sources, key=order)[:most]
        return {path: files[path].blob for path in chosen}


def is_plain_path(path: bytes) -> bool:
    """Return whether a path of a tree is one that a checkout would write."""
    for name in path.split(b"/"):
        if name in {b"", b".", b"..", b".git"} or len(name) > LONGEST_NAME:
            return False
    return b"\0" not in path


def choose_size(milliseconds: float) -> int:
    """Return how many files to index, so that a model of this pace makes their vectors in half its time."""
    files = int(SECONDS * 1000 / 2 / max(milliseconds * CHUNKS, 1))
    return max(FEWEST_FILES, min(MOST_FILES, files))


async def measure(
    revisions: Revisions,
    ways: Sequence[Way],
    environ: Mapping[str, str],
    work: Path,
    tell: Callable[[str], None],
) -> Measured:
    """Return how each way answers; ``work``: an empty folder; ``tell``: gets what is under way."""
    measured = Measured()
    questions = revisions.questions
    for number, way in enumerate(ways):
        folder = work / str(number)
        tree = folder / "tree"
        tree.mkdir(parents=True)
        # Each way has an index of its own, so that none profits from another's.
        revisions.start()
        measured.files = revisions.place(questions[0], tree)
        options = WorkspaceOptions(
            state_dir=folder / "state",
            cache_dir=folder / "cache",
            embedding=way.embedding.model_dump_json(),
            environ=environ,
        )
        # Filled while it runs: what was answered when the time is up counts.
        ranks = measured.ranks.setdefault(way.name, [])
        with anyio.move_on_after(SECONDS):
            async with _opened(tree, options) as project:
                for question in questions:
                    # In a thread: git may have to be waited for.
                    await anyio.to_thread.run_sync(revisions.place, question, tree)
                    rank, problem = await _ask(project, question, way)
                    # Words alone answer where a model fails, which says nothing of it.
                    measured.problem = project.progress.problem or problem
                    if measured.problem:
                        return measured
                    ranks.append(rank)
                    tell(f"{way.name}: {len(ranks)} of {len(questions)} questions")
        # The same questions for each way: the newest.
        questions = questions[: len(ranks)]
        if len(questions) < FEWEST:
            done = f"{len(ranks)} questions within {SECONDS:g} s"
            measured.problem = f"{way.name} answered {done}"
            return measured
    # The slower way decides how many count.
    for ranks in measured.ranks.values():
        del ranks[len(questions) :]
    return measured


@asynccontextmanager
async def _opened(tree: Path, options: WorkspaceOptions) -> AsyncIterator[Workspace]:
    """Open a folder as a project of this process."""
    async with anyio.create_task_group() as tasks:
        project = Workspace(
            "measured",
            os.fsencode(tree),
            options,
            parts=(SYMBOLS, MEANING),
        )
        await project.open(tasks)
        try:
            yield project
        finally:
            # Its indexer is a process, which must not stay when the time is up.
            with anyio.CancelScope(shield=True):
                await project.close()
            tasks.cancel_scope.cancel()


async def _ask(
    project: Workspace,
    question: HistoryQuestion,
    way: Way,
) -> tuple[int, str]:
    """Return the rank of a question's first wanted file, and why a model did not take part."""
    # The files have just been replaced, and only events would tell of it.
    await project.refresh()
    await project.wait_embedded()
    query = MeaningQuestion(
        text=question.text,
        limit=RESULTS,
        passages=True,
        files=RESULTS,
        reranker=way.reranker,
    )
    answer = await search_by_meaning(project, query)
    # A reranker orders functions; without one files have an order of their own.
    if way.reranker is not None:
        paths = [piece.path for piece in answer.results]
    else:
        paths = [file.path for file in answer.files]
    names = list(map(os.fsdecode, paths))
    return find_rank(names, question.files), answer.problem


def find_rank(paths: Sequence[str], wanted: frozenset[str]) -> int:
    """Return the place of the first wanted file, from 1; 0 if there is none; a path may recur."""
    for place, path in enumerate(dict.fromkeys(paths), 1):
        if path in wanted:
            return place
    return 0


def reciprocals(ranks: Sequence[int]) -> list[float]:
    """Return one divided by each rank, nothing for what was not found."""
    return [1 / rank if rank else 0.0 for rank in ranks]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean (Efron's bootstrap, 1979)."""
    count = len(values)
    # Seeded: the same measurement has the same interval.
    generator = np.random.default_rng(1)
    draws = generator.integers(count, size=(DRAWS, count))
    means = np.array(values)[draws].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975)).tolist()
    return low, high


def difference(
    ranks: Mapping[str, Sequence[int]],
) -> tuple[float, float, float]:
    """Return how much better the second way is than the first, by reciprocal rank, and the interval of it."""
    first, second = map(reciprocals, ranks.values())
    pairs = zip(first, second, strict=True)
    better = [new - old for old, new in pairs]
    return statistics.fmean(better), *interval(better)


def count_questions(measured: Measured) -> int:
    """Return how many questions every way has answered."""
    return len(next(iter(measured.ranks.values())))


def format_comparison(measured: Measured) -> Iterator[str]:
    """Yield the table of what was measured, and what it means."""
    width = max(map(len, measured.ranks))
    yield f"{'':{width}}  first   five    ten    mean reciprocal rank"
    for name, ranks in measured.ranks.items():
        shares = ""
        for depth in DEPTHS:
            hits = [1 <= rank <= depth for rank in ranks]
            shares += f"{statistics.fmean(hits):7.0%}"
        mean = statistics.fmean(reciprocals(ranks))
        yield f"{name:{width}}{shares}    {mean:.3f}"
    better, low, high = difference(measured.ranks)
    interval = f"{low:+.3f} to {high:+.3f}, 95 %"
    yield f"difference {better:+.3f} ({interval}): {judge(low, high)}"


def judge(low: float, high: float) -> str:
    """Return what an interval of a difference means."""
    # An interval that includes zero may be chance.
    if low > 0:
        return "better here"
    if high < 0:
        return "worse here"
    return "no difference that these questions show"
