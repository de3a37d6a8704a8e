"""How an answer is judged by the ranges it shows, against answers reckoned by hand."""

import math
from pathlib import Path

import pytest

from scripts.benchmarks.search.asking import Question, Target
from scripts.benchmarks.search.rivals import Place, judge, target_ranges

CODE = b"""import os

def load(path):
    return os.stat(path)

class Store:
    def save(self):
        return load("a")
"""


def asked(*targets: tuple[str, str]) -> Question:
    return Question(
        "r", "where is it", "semantic", tuple(Target(*target) for target in targets)
    )


def lines(path: str, start: int, end: int, text: str = "") -> Place:
    return Place(path, start, end, text)


def test_what_is_asked_for_is_the_definition_else_where_the_name_stands_else_the_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    question = asked(("a.py", "save"), ("a.py", "stat"), ("a.py", ""))
    spans = [
        [(one.start, one.end) for one in places]
        for places in target_ranges(question, tmp_path)
    ]
    assert spans == [[(7, 8)], [(4, 4)], [(1, 9)]]


def test_the_right_file_at_the_wrong_lines_counts_by_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    question = asked(("a.py", "load"))
    truth = target_ranges(question, tmp_path)
    found = judge(
        [lines("a.py", 6, 8, "x" * 40), lines("b.py", 3, 3), lines("a.py", 4, 4)],
        question,
        truth,
    )
    assert (found.files.ndcg, found.files.recall, found.files.tokens) == (
        1.0,
        1.0,
        10.0,
    )
    assert found.ranges.ndcg == pytest.approx(1 / math.log2(4))
    assert found.ranges.recall == 1.0


def test_each_result_answers_one_thing_and_each_thing_counts_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    question = asked(("a.py", "load"), ("a.py", "save"))
    truth = target_ranges(question, tmp_path)
    ideal = 1 + 1 / math.log2(3)
    whole = lines("a.py", 1, 9)
    assert judge([whole, whole], question, truth).ranges.ndcg == pytest.approx(1)
    twice = judge(
        [lines("a.py", 3, 4), lines("a.py", 4, 4), lines("a.py", 8, 8)], question, truth
    )
    assert twice.ranges.ndcg == pytest.approx((1 + 1 / math.log2(4)) / ideal)
    assert judge([lines("a.py", 5, 5)], question, truth).ranges.ndcg == 0
    assert judge([], question, truth).ranges.recall == 0
