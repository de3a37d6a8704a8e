"""``fgrep rg`` on parts of a tree: each question is asked of both programs, and the start is left out of the bar."""

import os
import sys
from pathlib import Path

import pytest

from scripts.benchmarks import sizes
from scripts.benchmarks.rows import Row
from scripts.benchmarks.sizes import LEAST_MS, Part, make_bar
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import Times

RG = Path(sys.executable).with_name("rg")
TARGETS = Targets(
    rare="needle",
    rarest="pin",
    common="int",
    regex=r"need\w+",
    insensitive="NEEDLE",
    many="int",
    wide=r"in\w+",
)


def test_each_question_is_asked_of_both_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "MOST_RUNS", 1)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.c").write_bytes(b"int needle;\nint interest;\nreturn;\n")
    environ = {**os.environ, "FLASHGREP_STATE_DIR": str(tmp_path / "none")}
    rows = [*Part(tree, 1, RG, TARGETS).compare("before", environ, None)]
    lines = {}
    for row in rows:
        assert row.ours is not None
        assert row.rg is not None
        assert row.ours.hits == row.rg.hits
        lines[row.name.rpartition(": ")[2]] = row.rg.hits
    assert lines == {
        "rare literal": 1,
        "common literal": 2,
        "whole word": 1,
        "wide regex": 2,
        "no gram": 0,
        "insensitive": 1,
    }


def test_the_start_is_left_out_of_the_bar() -> None:
    bar = make_bar(start=40.0)
    rg = Times(p50=1, p99=1, cpu=100, runs=1)
    for cpu, is_met in ((145 + LEAST_MS, True), (146 + LEAST_MS, False)):
        ours = Times(p50=1, p99=1, cpu=cpu, runs=1)
        assert bar.holds(Row("a question", ours, rg)) is is_met
