"""Questions that nobody writes, drawn from histories by ``flashgrep.parts.models.history``, and how each way answers.

``history.tsv`` lists the commits of the set: 1,050 of 35 repositories in 17 languages, with permissive licences, none
of which the embedded table was trained on or tuned with. Only their numbers are kept; the questions are made of clones
that the user has, each a folder named OWNER+NAME, bare or not. Nothing is fetched, and nothing is written to them. A
repository that is not in the list is asked about commits that are drawn from its history.
"""

import os
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from flashgrep.files.openat import RootFolder
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import MOST_COMMIT, Commit, Repository
from flashgrep.parts.meaning.embed import static
from flashgrep.parts.meaning.methods import MOST_FILES
from flashgrep.parts.meaning.questions import find_best_lines, search_by_meaning
from flashgrep.parts.meaning.search.fusion import query_words
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.models.history import (
    HistoryQuestion,
    ask_commit,
    draw_questions,
)
from flashgrep.project import Workspace
from scripts.benchmarks.search.asking import Question, Target
from scripts.benchmarks.search.judging import Place, target_ranges
from scripts.benchmarks.search.metrics import distinct
from scripts.benchmarks.search.ranking import (
    RESULTS,
    SIDES,
    answer_question,
    open_repository,
)
from scripts.benchmarks.search.rivals import open_semble
from scripts.benchmarks.search.shown import TEXT, count_tokens, show_answer

COMMITS: Final = Path(__file__).parent / "history.tsv"
BUDGETS: Final = (1_000, 2_000, 4_000, 8_000)
"""Tokens at which recall is measured."""
HALVES: Final = 2
MOST_LINES: Final = 3
"""Lines that one reads of a file found by ``rg``."""
TOOL_SECONDS: Final = 120.0


class Case(NamedTuple):
    """A question from a commit."""

    rev: str
    """The commit's parent, whose code is asked."""
    question: Question


class Found(NamedTuple):
    """What an answer has of what was wanted: ranks from 1 (0: not found), and recall by tokens."""

    file: int
    function: int
    recall: tuple[float, ...]
    """Share of the wanted files within each of ``BUDGETS``."""
    function_recall: tuple[float, ...]


def is_held(repository: str) -> bool:
    """Return whether a repository's questions are held out: half of the repositories, by name (OWNER/NAME)."""
    return crc32(repository.encode()) % HALVES == 1


def name_repository(repository: Path) -> str:
    """Return the name of a clone's repository."""
    return repository.name.replace("+", "/")


@cache
def list_commits() -> dict[str, list[str]]:
    """Return the commits of the set by repository."""
    commits = dict[str, list[str]]()
    for line in COMMITS.read_text().splitlines()[1:]:
        repository, _licence, _language, commit = line.split("\t")
        commits.setdefault(repository, []).append(commit)
    return commits


def collect_cases(repository: Path, most: int) -> list[Case]:
    """Return up to ``most`` questions of a repository: those of the set, or drawn from its history.

    Raises:
        ValueError: the clone lacks a commit of the set, or no question is made of it any more.

    """
    chosen = list_commits().get(name_repository(repository))
    with open_git(repository) as git_repository:
        if chosen is None:
            questions = draw_questions(git_repository, most)
        else:
            questions = [make_question(git_repository, one) for one in chosen[:most]]
    return [
        Case(
            question.parent,
            Question(
                repository.name,
                question.text,
                "history",
                tuple(Target(*target) for target in question.targets),
            ),
        )
        for question in questions
    ]


def make_question(repository: Repository, commit: str) -> HistoryQuestion:
    """Return the question of a commit of the set; raises ValueError if there is none."""
    record = repository.objects.find(commit.encode(), MOST_COMMIT)
    if record is None or record.data is None:
        raise ValueError(f"the clone lacks {commit}")
    head, _, message = record.data.decode("utf-8", "replace").partition("\n\n")
    parents = [
        line.removeprefix("parent ")
        for line in head.split("\n")
        if line.startswith("parent ")
    ]
    # As git's %s: the lines of the first paragraph, joined.
    subject = " ".join(message.strip().split("\n\n")[0].split("\n"))
    question = ask_commit(
        repository, Commit(commit, tuple(parents), 0, "", subject[:300])
    )
    if question is None:
        raise ValueError(f"{commit} is no question")
    return question


@contextmanager
def open_git(repository: Path) -> Iterator[Repository]:
    """Open a clone, bare or not."""
    store = RootFolder(os.fsencode(find_store(repository)))
    with closing(Repository.open(Git.find(store, os.environ))) as opened:
        yield opened


def find_store(repository: Path) -> Path:
    """Return the folder of a repository's commits."""
    printed = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "--absolute-git-dir"],
        capture_output=True,
        check=True,
    ).stdout
    return Path(printed.decode().strip())


async def ask_history(
    repository: Path, cases: Sequence[Case], work: Path
) -> dict[str, list[Found]]:
    """Return for each way what was found for each question, at its revision.

    ``work``: an empty folder for the repository's files, which are changed from one revision to the next.
    """
    tree = work / repository.name
    tree.mkdir()
    found = dict[str, list[Found]]()
    place_files(repository, cases[0].rev, tree)
    async with open_repository(tree) as workspace:
        for case in cases:
            place_files(repository, case.rev, tree)
            await workspace.refresh()
            await workspace.wait_embedded()
            truth = target_ranges(case.question, tree)
            ways = await ask_ways(workspace, case.question, tree)
            for way, places in ways.items():
                judged = judge_found(places, case.question, truth)
                found.setdefault(way, []).append(judged)
    return found


def place_files(repository: Path, rev: str, tree: Path) -> None:
    """Make a folder's files those of a revision; its index is beside the folder, not in the repository."""
    where = str(find_store(repository))
    placing = ["--work-tree", str(tree), "read-tree", "--reset", "-u", rev]
    subprocess.run(
        ["git", "--git-dir", where, *placing],
        check=True,
        cwd=tree,
        env=os.environ | {"GIT_INDEX_FILE": str(tree.with_suffix(".index"))},
        capture_output=True,
    )


async def ask_ways(
    workspace: Workspace, question: Question, tree: Path
) -> dict[str, list[Place]]:
    """Return the places that each way finds, best first."""
    asked = MeaningQuestion(
        text=question.text, limit=RESULTS, passages=True, files=MOST_FILES
    )
    answer = await search_by_meaning(workspace, asked)
    functions = [
        Place(
            os.fsdecode(piece.path),
            *(piece.passage.whole if piece.passage else (1, 1)),
            piece.text,
        )
        for piece in answer.results
    ]
    ways = {"search_code": functions}
    shown = MeaningQuestion(
        text=question.text, limit=MOST_FILES, passages=True, files=MOST_FILES
    )
    text = await search_by_meaning(workspace, shown)
    ways["search_code as text"] = dict(show_answer(text, question.text))[TEXT][0]
    for name in ("words", "BM25, no rules"):
        ranked = await answer_question(workspace, question, SIDES[name], RESULTS)
        ways[name] = [
            Place(
                os.fsdecode(piece.path),
                piece.chunk.start_line,
                piece.chunk.end_line,
                piece.text,
            )
            for piece in ranked.results
        ]
    lines = await find_best_lines(workspace, question.text, RESULTS, None)
    ways["query"] = [
        Place(hit["file_path"], hit["start_line"], hit["end_line"], hit["text"])
        for hit in lines.results
    ]
    ways["rg"] = list(ask_ripgrep(question.text, tree))
    if find_spec("semble"):
        ask_semble = open_semble(tree, static.load(static.DATA))
        ways["semble, our table"] = list(ask_semble(question.text))
    return ways


def ask_ripgrep(text: str, tree: Path) -> Iterator[Place]:
    """Yield lines of files with most of the question's words, as one who greps well reads them: rarest words first."""
    by_file: dict[str, dict[str, list[tuple[int, str]]]] = {}
    words = query_words(text)
    for word in words:
        done = subprocess.run(
            ["rg", "-niw", "--no-heading", "-M", "200", "-F", "--", word],
            cwd=tree,
            capture_output=True,
            timeout=TOOL_SECONDS,
            check=False,
        )
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            path, number, content = (*line.split(":", 2), "", "")[:3]
            if number.isdigit():
                hits = by_file.setdefault(path, {}).setdefault(word, [])
                hits.append((int(number), content))
    having = {word: sum(word in hits for hits in by_file.values()) for word in words}
    scores = {
        path: sum(1 / having[word] for word in hits) for path, hits in by_file.items()
    }
    for path in sorted(scores, key=lambda path: (-scores[path], path)):
        rarest = min(by_file[path], key=lambda word: (having[word], word))
        for line_number, content in by_file[path][rarest][:MOST_LINES]:
            yield Place(path, line_number, line_number, content)


def judge_found(
    places: Sequence[Place], question: Question, truth: Sequence[Sequence[Place]]
) -> Found:
    """Return the ranks of the first wanted file and function, and the recall of both by tokens."""
    files = distinct(place.path for place in places)
    ranks = [at for at, path in enumerate(files, 1) if path in question.files]
    wanted = [target for target in truth if any(place.code for place in target)]
    function = 0
    for at, place in enumerate(places, 1):
        if any(_answers(place, target) for target in wanted):
            function = at
            break
    return Found(
        ranks[0] if ranks else 0,
        function,
        tuple(
            _recall_files(_take(places, budget), question.files) for budget in BUDGETS
        ),
        tuple(_recall_functions(_take(places, budget), wanted) for budget in BUDGETS),
    )


def _answers(place: Place, target: Sequence[Place]) -> bool:
    return any(
        place.path == one.path and place.start <= one.end and one.start <= place.end
        for one in target
    )


def _take(places: Sequence[Place], tokens: int) -> list[Place]:
    """Return the places that fit, each with its path."""
    taken = list[Place]()
    room = float(tokens)
    for place in places:
        room -= count_tokens(f"{place.path}:{place.start}-{place.end} {place.text}")
        if room < 0:
            break
        taken.append(place)
    return taken


def _recall_files(places: Sequence[Place], wanted: frozenset[str]) -> float:
    return len({place.path for place in places} & wanted) / len(wanted)


def _recall_functions(
    places: Sequence[Place], wanted: Sequence[Sequence[Place]]
) -> float:
    if not wanted:
        return 0.0
    hits = [any(_answers(place, target) for place in places) for target in wanted]
    return sum(hits) / len(wanted)


def format_history(found: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """Yield a line for each way: Acc@1, 5 and 10, and recall by tokens, by file and by function."""
    yield f"{'':22}" + "".join(
        f"{title:>8}"
        for title in (
            *("f@1", "f@5", "f@10", "f 1k", "f 2k", "f 4k", "f 8k"),
            *("fn@1", "fn@5", "fn@10", "fn 1k", "fn 2k", "fn 4k", "fn 8k"),
        )
    )
    for way, rows in found.items():
        cells = list[float]()
        for place, recalls in (("file", "recall"), ("function", "function_recall")):
            for depth in (1, 5, 10):
                cells.append(
                    statistics.fmean(1 <= getattr(row, place) <= depth for row in rows)
                )
            for at in range(len(BUDGETS)):
                cells.append(
                    statistics.fmean(getattr(row, recalls)[at] for row in rows)
                )
        yield f"{way:22}" + "".join(f"{cell:8.3f}" for cell in cells)
