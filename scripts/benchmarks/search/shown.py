"""Measures answers as they are shown, and every other way, by file, by range, by function, and by what they cost.

A goal is not traded for another in silence: the table is kept (``--save``) and compared with a later one
(``--compare``), question by question. A fall that the bootstrap does not explain by chance is an error.
"""

import json
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from flashgrep.base.config import Settings
from flashgrep.methods.common import CHARS_PER_TOKEN
from flashgrep.methods.text import FOR_MODEL
from flashgrep.parts.meaning.methods import (
    MOST_FILES,
    MOST_FUNCTIONS,
    CodeMatch,
    FileMatch,
    choose_for_model,
    fit_code,
    format_file,
    render_chunks,
)
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.fusion import RULES, Rules
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer, MeaningQuestion
from flashgrep.project import Workspace
from scripts.benchmarks.search.asking import Question
from scripts.benchmarks.search.judging import (
    Function,
    Judged,
    Place,
    judge,
    target_ranges,
)
from scripts.benchmarks.search.metrics import interval
from scripts.benchmarks.search.ranking import (
    RESULTS,
    SHOWN,
    SIDES,
    answer_question,
    open_repository,
)

TEXT: Final = "text"
JSON: Final = "JSON"
FILES: Final = "files of JSON"


class Row(NamedTuple):
    """What one answer is worth, and what it costs; None: does not apply to this question."""

    file: float
    """NDCG@10."""
    range: float
    named: float | None
    head: float | None
    whole: float | None
    distinct: float
    """Different files."""
    tokens: float


COSTS: Final = {"tokens"}
"""Columns that are better if lower."""
DIGITS: Final = 3
"""Decimals that are kept."""
Table = dict[str, list[Row]]
"""Rows of all questions in order, by way."""


async def measure_shown(
    root: Path,
    questions: Sequence[Question],
    *,
    with_sides: bool = False,
    rules: Rules = RULES,
) -> Table:
    """Return the rows of every question for each way; ``with_sides``: also for the ways that nobody is shown."""
    table: Table = {}
    truths = [target_ranges(question, root) for question in questions]
    async with open_repository(root) as workspace:
        for question, truth in zip(questions, truths, strict=True):
            for way, (places, tokens) in (
                await ask_all(workspace, question, rules, with_sides=with_sides)
            ).items():
                row = make_row(judge(places, question, truth), tokens)
                table.setdefault(way, []).append(row)
    return table


async def ask_all(
    workspace: Workspace, question: Question, rules: Rules, *, with_sides: bool
) -> dict[str, tuple[list[Place], float]]:
    """Return the places of an answer, and its tokens, for each way."""
    asked = MeaningQuestion(
        text=question.text,
        limit=SHOWN,
        passages=True,
        files=MOST_FILES,
        rules=rules,
    )
    answer = await search_by_meaning(workspace, asked)
    ways = dict(show_answer(answer, question.text))
    if with_sides:
        for name, way in SIDES.items():
            if not way.as_shown:
                ranked = await answer_question(workspace, question, way, RESULTS)
                chunks = [
                    Place(
                        os.fsdecode(piece.path),
                        piece.chunk.start_line,
                        piece.chunk.end_line,
                        piece.text,
                    )
                    for piece in ranked.results
                ]
                ways[name] = (
                    chunks,
                    count_tokens("".join(place.text for place in chunks[:SHOWN])),
                )
    return ways


def show_answer(
    answer: MeaningAnswer, query: str
) -> Iterator[tuple[str, tuple[list[Place], float]]]:
    """Yield an answer as ``search_code`` shows it: as JSON, its list of files, and as text."""
    files = [
        format_file(file, file.functions[:MOST_FUNCTIONS]) for file in answer.files
    ]
    results = fit_code(
        answer.results, query, Settings().query.max_tokens, as_text=False
    )
    yield JSON, ([*map(place_of, results)], count_tokens(json.dumps(results)))
    yield FILES, ([*places_of(files)], count_tokens(json.dumps(files)))
    chosen, best = choose_for_model(answer, query)
    result: Any = {"results": chosen, "files": best}
    text = "\n".join(render_chunks(result, FOR_MODEL))
    yield TEXT, ([*map(place_of, chosen), *places_of(best)], count_tokens(text))


def place_of(match: CodeMatch) -> Place:
    """Return a result as a place."""
    spans = None
    if "shown" in match:
        spans = tuple(match["shown"])
    return Place(
        match["file_path"],
        match["start_line"],
        match["end_line"],
        match["content"],
        spans,
    )


def places_of(files: Sequence[FileMatch]) -> Iterator[Place]:
    """Yield the functions of files as places, and a file without any as a place without lines."""
    for file in files:
        if not file["functions"]:
            yield Place(file["file_path"], 0, 0, "")
        for function in file["functions"]:
            yield Place(
                file["file_path"], function["start_line"], function["end_line"], ""
            )


def count_tokens(text: str) -> float:
    """Return about how many tokens a text takes."""
    return len(text) / CHARS_PER_TOKEN


def make_row(judged: Judged, tokens: float) -> Row:
    """Return the columns of a judged answer."""
    function = judged.function or Function(None, None, None)
    return Row(
        judged.files.ndcg,
        judged.ranges.ndcg,
        function.named,
        function.head,
        function.whole,
        float(judged.distinct),
        tokens,
    )


def column_of(rows: Sequence[Row], name: str) -> list[float]:
    """Return the values of a column, of the questions to which it applies."""
    values = [getattr(row, name) for row in rows]
    return [value for value in values if value is not None]


def format_table(table: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield a line for each way, with the mean of each column."""
    yield f"{'':18}" + "".join(f"{name:>9}" for name in Row._fields)
    for way, rows in table.items():
        cells = []
        for name in Row._fields:
            values = column_of(rows, name)
            mean = statistics.fmean(values) if values else float("nan")
            digits = 1 if name in {"distinct", "tokens"} else 3
            cells.append(f"{mean:9.{digits}f}")
        yield f"{way:18}" + "".join(cells)


def save_table(table: Mapping[str, Sequence[Row]], file: Path) -> None:
    """Keep the rows of every question, one line each."""
    lines = []
    for way, rows in table.items():
        for row in rows:
            values = [None if value is None else round(value, DIGITS) for value in row]
            lines.append(json.dumps([way, *values]))
    file.write_text("\n".join(lines) + "\n")


def load_table(file: Path) -> Table:
    """Return the rows that ``save_table`` kept."""
    table: Table = {}
    for line in file.read_text().splitlines():
        way, *values = json.loads(line)
        table.setdefault(way, []).append(Row(*values))
    return table


TRIFLE = 0.002
"""Of the mean before: a letter more in six of 200 answers is no chance, and no fall."""


def find_falls(
    before: Mapping[str, Sequence[Row]], after: Mapping[str, Sequence[Row]]
) -> Iterator[str]:
    """Yield each column of each way that is worse than before, beyond chance and by more than a trifle.

    Beyond chance: the 95 % interval of the mean difference, question by question, is on the worse side of zero.
    """
    for way, rows in before.items():
        now = after.get(way, [])
        if len(now) != len(rows):
            yield f"{way}: {len(now)} questions instead of {len(rows)}"
            continue
        for name in Row._fields:
            sign = -1 if name in COSTS else 1
            # Both as they are kept.
            gains = [
                sign * (round(new, DIGITS) - round(old, DIGITS))
                for new, old in zip(
                    column_of(now, name), column_of(rows, name), strict=True
                )
            ]
            if not gains:
                continue
            low, high = interval(gains)
            trifle = TRIFLE * statistics.fmean(column_of(rows, name))
            if high < 0 and -statistics.fmean(gains) > trifle:
                yield (
                    f"{way}: {name} is worse by {-statistics.fmean(gains):.3f} "
                    f"({-high:.3f} to {-low:.3f})"
                )
