"""The ranking must not be worse than the kept table, in any column: no goal is traded for another in silence."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from flashgrep.parts.meaning.search.fusion import RULES, Rules
from scripts.benchmarks.search.installed import place_packages
from scripts.benchmarks.search.shown import (
    FILES,
    JSON,
    TEXT,
    Table,
    find_falls,
    load_table,
    measure_shown,
)

Measure = Callable[[Rules, int], Table]
SAVED = Path(__file__).parents[2] / "scripts/bench-results/search-installed.jsonl"
"""The table of answers to these questions that a later one must not fall short of."""
ALL = 1_000
BY_HAND = 46
"""The questions that come first."""
WHAT_TO_DO = """If that is meant, or a package has another version now, keep the new table and say so in the commit:
scripts/eval_search --shown --installed --save scripts/bench-results/search-installed.jsonl"""


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Return what measures answers to the first questions about the installed packages, which are indexed once."""
    folder = tmp_path_factory.mktemp("ranking") / "installed"
    questions = place_packages(folder)

    def run(rules: Rules, most: int) -> Table:
        asked = questions[:most]
        return anyio.run(partial(measure_shown, folder, asked, rules=rules))

    return run


@pytest.mark.timeout(600)
def test_no_column_of_the_ranking_has_fallen(measure: Measure) -> None:
    table = measure(RULES, ALL)
    assert set(table) == {JSON, FILES, TEXT}
    assert list(find_falls(load_table(SAVED), table)) == [], WHAT_TO_DO


@pytest.mark.timeout(600)
def test_a_worse_ranking_falls_short_of_the_kept_table(measure: Measure) -> None:
    # What the rest of a file says no longer counts: 0.04 by file.
    worse = replace(RULES, whole=0.0, coherence=0.0)
    before = {way: rows[:BY_HAND] for way, rows in load_table(SAVED).items()}
    falls = "\n".join(find_falls(before, measure(worse, BY_HAND)))
    assert f"{FILES}: file is worse" in falls, falls
    assert f"{TEXT}: file is worse" in falls, falls
