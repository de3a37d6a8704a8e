"""Runs questions about a repository like the daemon: a workspace in this process, with the real index and rules."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.fusion import RULES, Rules
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer, MeaningQuestion
from flashgrep.project import Workspace, WorkspaceOptions
from scripts.benchmarks.search.asking import Question
from scripts.benchmarks.search.metrics import Figures, distinct, figures

RESULTS: Final = 60
"""Results requested: enough for ten files with several chunks each."""
SHOWN: Final = 10
"""Results of ``search_code`` without a limit."""
INDEX_SECONDS: Final = 600.0


class Way(NamedTuple):
    """A way of ranking: the rules, and the weight of similarity unless the rules choose it."""

    rules: Rules
    semantic_weight: float | None
    as_shown: bool = False
    """Whether the results are those that ``search_code`` shows, in its order and number."""


OFF: Final[dict[str, dict[str, float]]] = {
    "semantic weight by kind": {
        "symbol_weight": RULES.semantic_weight,
        "path_weight": RULES.semantic_weight,
    },
    "other forms of words": {"form": 0.0},
    "the name asked for": {"defined": 0.0},
    "how many words a file has": {"said": 0.0},
    "adjacent words side by side": {"side_by_side": 0.0},
    "types named in the question": {"names_type": 0.0},
    "a file named whole": {"named_whole": 0.0},
    "name and question covering each other": {"named_both": 0.0},
    "name cover": {"name_cover": 0.0},
    "file name cover": {"file_cover": 0.0},
    "path cover": {"path_cover": 0.0},
    "coherence of a file": {"coherence": 0.0},
    "the whole file": {"whole": 0.0},
    "further chunks count less": {"repeated": 1.0},
    "tests": {"test": 1.0},
    "generated": {"generated": 1.0},
    "vendored": {"vendored": 1.0},
    "type stubs": {"stub": 1.0},
    "headers": {"header": 1.0},
    "files that re-export": {"re_export": 1.0},
    "prose": {"prose": 1.0},
    "data": {"data": 1.0},
}
"""Settings that disable each rule."""
PLAIN: Final = RULES.__class__(
    **{name: value for change in OFF.values() for name, value in change.items()}  # type: ignore[arg-type] # only floats are changed
)
SIDES: Final[dict[str, Way]] = {
    "hybrid": Way(RULES, None),
    "words": Way(RULES, 0.0),
    "meaning": Way(RULES, 1.0),
    "hybrid, no rules": Way(PLAIN, None),
    "BM25, no rules": Way(PLAIN, 0.0),
    "model, no rules": Way(PLAIN, 1.0),
    "as shown": Way(RULES, None, as_shown=True),
}
"""Both sides with and without ranking rules, and the results as shown."""


def ablations() -> dict[str, Way]:
    """Return ways with one rule disabled in each."""
    return {
        f"without {name}": Way(replace(RULES, **change), None)  # type: ignore[arg-type] # as PLAIN
        for name, change in OFF.items()
    }


async def judged(
    root: Path, questions: Sequence[Question], ways: Mapping[str, Way]
) -> dict[str, list[Figures]]:
    """Return, for each way, the figures of every question."""
    found: dict[str, list[Figures]] = {}
    async with open_repository(root) as workspace:
        for name, way in ways.items():
            answers = [
                await answer_question(workspace, question, way, RESULTS)
                for question in questions
            ]
            found[name] = [
                _figures(answer, question)
                for answer, question in zip(answers, questions, strict=True)
            ]
    return found


async def answer_question(
    workspace: Workspace, question: Question, way: Way, limit: int
) -> MeaningAnswer:
    """Return an answer ranked in one way."""
    asked = MeaningQuestion(
        text=question.text,
        limit=SHOWN if way.as_shown else limit,
        passages=way.as_shown,
        rules=way.rules,
        semantic_weight=way.semantic_weight,
    )
    return await search_by_meaning(workspace, asked)


def _figures(answer: MeaningAnswer, question: Question) -> Figures:
    paths = [os.fsdecode(piece.path) for piece in answer.results]
    first = next(
        (at for at, path in enumerate(paths) if path in question.files), len(paths)
    )
    read = sum(len(piece.text.encode()) for piece in answer.results[: first + 1])
    return figures(distinct(paths), question.files, read)


def _user(root: Path) -> Path:
    """Return the folder for a repository's index, next to the repository."""
    return root.with_name(f"{root.name}-user")


@asynccontextmanager
async def open_repository(root: Path) -> AsyncIterator[Workspace]:
    """Open a repository and wait until its vectors are ready."""
    options = WorkspaceOptions(
        state_dir=_user(root) / "state", cache_dir=_user(root) / "cache"
    )
    async with anyio.create_task_group() as tasks:
        workspace = Workspace(root.name, os.fsencode(root), options, parts=BUILT_IN)
        await workspace.open(tasks)
        try:
            with anyio.fail_after(INDEX_SECONDS):
                await workspace.wait_embedded()
            yield workspace
        finally:
            await workspace.close()
            tasks.cancel_scope.cancel()
