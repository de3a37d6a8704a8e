"""A deadline binds inside one file too: what has been found by then is the answer, within half a second."""

import time
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.parts.symbols.symbol_search import (
    SymbolAnswer,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question
from flashgrep.search.snapshot import Snapshot
from tests.support.pace import paced
from tests.support.workspace import opened, put

pytestmark = pytest.mark.usefixtures("collector_paused")

SECONDS = 0.3
MORE = 1.0
"""Seconds of processor time, which others on the machine cost nothing of; the bar is 0.5 s of any time. Without
checkpoints the cases take 5 to 60 s."""
WIDE = "".join(
    f"line {at} of a text with an é in it and xy at its end\n" for at in range(4_000)
).encode()
MANY = b"a b c d e f\n" * 1_500_000
CASES: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "many stars": (WIDE, {}, ".*" * 5_000),
    "many stars, no hit": (WIDE * 20, {}, ".*q" * 3_000),
    "many stars, counted": (WIDE, {"output": "count"}, ".*" * 5_000),
    "many stars, files": (WIDE * 20, {"output": "files"}, ".*q" * 3_000),
    "a large pattern": (WIDE, {}, "(?:.*[a-z])?" * 800),
    "many lines counted": (MANY, {"output": "count"}, "[a-f] [a-f] f?"),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_search_ends_at_its_deadline(case: str, root: Path) -> None:
    data, options, text = CASES[case]

    put(root, {"file.txt": data})
    async with opened(root) as workspace:
        await workspace.refresh()
        begun, spent = time.monotonic(), time.process_time()
        question = Question(
            pattern=Pattern(texts=(text,), mode="regex", case="sensitive"),
            limit=10_000,
            max_chars=10**8,
            deadline=begun + SECONDS,
            **options,
        )
        answer = await workspace.search(question)
        assert time.process_time() - spent < paced(SECONDS + MORE)
        assert not answer.complete


async def test_what_was_found_by_the_deadline_is_ranked_and_shown(root: Path) -> None:
    put(root, {"file.txt": WIDE * 3})
    async with opened(root) as workspace:
        await workspace.refresh()
        pattern = Pattern(texts=(".*" * 2_000,), mode="regex", case="sensitive")
        next(
            pattern.matcher().lines(WIDE)
        )  # compiled before, so that the time is spent on lines
        pattern.grams()
        begun, spent = time.monotonic(), time.process_time()
        question = Question(
            pattern=pattern,
            ranking=search_by_relevance,
            limit=10,
            deadline=begun + 5 * SECONDS,
        )
        answer = await workspace.search(question)
        assert time.process_time() - spent < paced(5 * SECONDS + MORE)
        assert len(answer.results) == 10
        assert not answer.complete


async def test_a_look_up_of_a_symbol_ends_at_its_deadline_with_what_it_has(
    root: Path,
) -> None:
    put(root, {f"{at}.py": b"value = value + value\n" * 20_000 for at in range(8)})
    async with opened(root) as workspace:
        await workspace.refresh()
        question = SymbolQuestion(
            name="value", limit=1_000, deadline=time.monotonic() + SECONDS
        )

        def look_up(snapshot: Snapshot) -> tuple[SymbolAnswer, float]:
            """Return the answer and this thread's processor time: others of the process are no part of it."""
            begun = time.thread_time()
            answer = SymbolSearch(SnapshotSource(snapshot), question).run()
            return answer, time.thread_time() - begun

        answer, spent = await workspace.in_thread(look_up)
        assert spent < paced(SECONDS + MORE)
        assert not answer.complete
