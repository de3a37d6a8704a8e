"""How an answer is judged by the ranges it shows, against answers reckoned by hand."""

import math
from pathlib import Path

import pytest

from scripts.benchmarks.search.asking import Question, Target
from scripts.benchmarks.search.judging import Function, Place, judge, target_ranges

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


def test_a_function_is_named_or_its_head_or_all_its_code_is_shown(
    tmp_path: Path,
) -> None:
    code = b"def load(path):\n    # slow\n    first = 1\n\n    return first\n"
    (tmp_path / "a.py").write_bytes(code)
    question = asked(("a.py", "load"))
    truth = target_ranges(question, tmp_path)

    def shown(*places: Place) -> Function:
        function = judge(places, question, truth).function
        assert function is not None
        return function

    assert shown(Place("a.py", 1, 5, "")) == (1, 0, 0)
    assert shown(Place("a.py", 1, 5, "x", ((1, 1),))) == (1, 1, 0)
    assert shown(Place("a.py", 1, 5, "x", ((1, 1), (3, 3), (5, 5)))) == (1, 1, 1)
    assert shown(Place("a.py", 1, 40, "x")) == (1, 1, 1), "in a longer text"
    assert shown(Place("a.py", 1, 40, "")) == (0, 0, 0)
    assert shown(Place("b.py", 1, 5, "x")) == (0, 0, 0)
    nothing = judge([], asked(("a.py", "slow")), target_ranges(question, tmp_path))
    assert nothing.function == (0, 0, 0)
    without = asked(("a.py", ""))
    assert judge([], without, target_ranges(without, tmp_path)).function is None
