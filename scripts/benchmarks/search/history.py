"""Questions that nobody writes: what a commit says it changes, asked of the code before that commit.

The question is the commit's subject and the first sentence of its body, without names that occur in the change. Wanted
are the functions and the files that it changed. It is the closest to what agents ask: where to make a change.
Repositories are given as folders with a ``.git``, or bare; nothing is fetched, and nothing is written to them.
"""

import os
import re
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from flashgrep.base.identifiers import find_identifiers
from flashgrep.base.languages import language_of
from flashgrep.index.table import SOURCE, tier_of
from flashgrep.parts.meaning.methods import MOST_FILES
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.fusion import query_words
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, START
from flashgrep.parts.symbols.symbol_source import parse_file
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
from scripts.benchmarks.search.shown import TEXT, count_tokens, show_answer
from scripts.train_embedder.commits import MOST_SOURCES, commits_of

MOST_FUNCTIONS: Final = 8
"""Functions that one commit changes at most: more are no answer to a question."""
FEWEST_WORDS: Final = 4
"""Words that a question must keep without the names of the change."""
BUDGETS: Final = (1_000, 2_000, 4_000, 8_000)
"""Tokens at which recall is measured."""
HALVES: Final = 2
MOST_LINES: Final = 3
"""Lines that one reads of a file found by ``rg``."""
TOOL_SECONDS: Final = 120.0
_HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)
_NAME: Final = re.compile(r"`[^`]*`|[A-Za-z_][\w.:]*(?:\(\))?")
_IS_NAME: Final = re.compile(r"[a-z][A-Z]|_|::|\w\.\w|\(\)|`")


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
    """Return whether a repository's questions are held out: half of the repositories, by name."""
    return crc32(repository.encode()) % HALVES == 1


def collect_cases(repository: Path, most: int) -> list[Case]:
    """Return up to ``most`` questions from a repository's history, newest commit first.

    The commits are drawn by their number: at random, but the same each time.
    """
    commits = commits_of(find_store(repository))
    # A commit's number says nothing about it.
    chosen = sorted(commits, key=lambda commit: commit.number)
    order = {commit.number: at for at, commit in enumerate(commits)}
    cases = list[tuple[int, Case]]()
    for commit in chosen:
        if len(cases) == most:
            break
        text = f"{commit.subject}. {commit.sentence}".strip(". ")
        question = ask_about(repository, commit.number, text)
        if question is not None:
            cases.append((order[commit.number], Case(f"{commit.number}^", question)))
    return [case for _, case in sorted(cases)]


def ask_about(repository: Path, commit: str, text: str) -> Question | None:
    """Return the question of one commit; None: it is not usable as one."""
    parents = git(repository, "rev-list", "--parents", "-n", "1", commit).split()[1:]
    if not parents:
        return None
    changes = dict(read_changes(repository, commit))
    if not 1 <= len(changes) <= MOST_SOURCES:
        return None
    targets = list[Target]()
    names = set[str]()
    for path, (lines, changed) in changes.items():
        before = git(repository, "show", f"{commit}^:{path}")
        functions = find_functions(path, before, lines)
        targets += [Target(path, name) for name in functions] or [Target(path, "")]
        names.update(functions)
        names.add(Path(path).stem)
        names.update(
            name.decode("ascii", "replace") for name in find_identifiers(changed)
        )
    if len(targets) > MOST_FUNCTIONS:
        return None
    asked = remove_names(text, names)
    if len(asked.split()) < FEWEST_WORDS:
        return None
    return Question(repository.name, asked, "history", tuple(targets))


def read_changes(
    repository: Path, commit: str
) -> Iterator[tuple[str, tuple[list[int], bytes]]]:
    """Yield the sources that a commit changes, each with the changed lines before it, and the text of the change."""
    listing = git(
        repository,
        *("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=M", "--name-only"),
        *(f"{commit}^", commit),
    )
    for raw in filter(None, listing.split(b"\0")):
        is_code = language_of(raw).nature == "code" and language_of(raw).symbols
        if not is_code or tier_of(raw) != SOURCE:
            continue
        path = os.fsdecode(raw)
        patch = git(
            repository,
            *("diff", "-U0", "--no-ext-diff", "--no-color"),
            *(f"{commit}^", commit, "--", path),
        )
        lines = list[int]()
        for first, count in _HUNK.findall(patch):
            # Where only lines are added, the line before them is the place.
            lines += range(int(first), int(first) + max(1, int(count or 1)))
        changed = b"\n".join(
            line[1:]
            for line in patch.split(b"\n")
            if line[:1] in {b"+", b"-"} and line[:3] not in {b"+++", b"---"}
        )
        if lines:
            yield path, (lines, changed)


def find_functions(path: str, data: bytes, lines: Sequence[int]) -> list[str]:
    """Return the names of the innermost functions around lines, in order of first occurrence."""
    symbols = parse_file(os.fsencode(path), data, {})
    if not isinstance(symbols, FileSymbols):
        return []
    spans = []
    for index, row in enumerate(symbols.rows):
        if symbols.kind(index) in CALLABLE_KINDS:
            first = symbols.lines.line(row[START])
            last = symbols.lines.line(max(row[START], row[END] - 1))
            spans.append((last - first, first, last, symbols.name(index)))
    spans.sort()
    names = dict[str, None]()
    for line in lines:
        for _, first, last, name in spans:
            if first <= line <= last:
                names[name] = None
                break
    return [*names]


def remove_names(text: str, names: set[str]) -> str:
    """Return a sentence without the names of a change, as far as they look like names and not like words."""

    def replace_name(found: re.Match[str]) -> str:
        word = found[0]
        bare = word.strip("`").removesuffix("()")
        last = re.split(r"\.|::", bare)[-1]
        is_name = _IS_NAME.search(word) is not None
        return "" if is_name and (bare in names or last in names) else word

    return re.sub(r"\s+", " ", _NAME.sub(replace_name, text)).strip()


def git(repository: Path, *arguments: str, **environ: str) -> bytes:
    """Return what a git command prints."""
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],
        capture_output=True,
        check=True,
        env=os.environ | environ,
    ).stdout


def find_store(repository: Path) -> Path:
    """Return the folder of a repository's commits."""
    return Path(git(repository, "rev-parse", "--absolute-git-dir").decode().strip())


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
    ways["rg"] = list(ask_ripgrep(question.text, tree))
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
