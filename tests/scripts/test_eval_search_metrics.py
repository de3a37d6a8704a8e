"""The figures of the search evaluation, against rankings reckoned by hand."""

import math

import pytest

from scripts.benchmarks.search.metrics import Figures, distinct, figures, interval, mean


def test_the_wanted_file_on_top_is_perfect() -> None:
    assert figures(["a", "b"], {"a"}, read=400) == Figures(
        ndcg=1.0, reciprocal=1.0, recall=1.0, tokens=100.0
    )


def test_the_third_place_is_worth_half() -> None:
    found = figures(["x", "y", "a"], {"a"})
    assert found.ndcg == pytest.approx(1 / math.log2(4))
    assert found.reciprocal == pytest.approx(1 / 3)


def test_two_wanted_files_share_the_ideal() -> None:
    found = figures(["a", "x", "b"], {"a", "b"})
    ideal = 1 + 1 / math.log2(3)
    assert found.ndcg == pytest.approx((1 + 1 / math.log2(4)) / ideal)
    assert found.recall == 1.0


def test_one_of_two_wanted_files_found_is_half_the_recall() -> None:
    assert figures(["a"], {"a", "b"}).recall == 0.5


def test_past_the_tenth_place_only_the_reciprocal_rank_counts() -> None:
    found = figures([*"0123456789", "a"], {"a"})
    assert found == Figures(ndcg=0.0, reciprocal=1 / 11, recall=0.0, tokens=0.0)


def test_nothing_found_is_worth_nothing() -> None:
    assert figures([], {"a"}, read=40) == Figures(
        ndcg=0.0, reciprocal=0.0, recall=0.0, tokens=10.0
    )


def test_a_mean_is_taken_column_by_column() -> None:
    assert mean([Figures(1, 1, 1, 10), Figures(0, 0.5, 0, 30)]) == Figures(
        0.5, 0.75, 0.5, 20
    )


def test_a_file_is_ranked_where_it_came_first() -> None:
    assert distinct(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


def test_the_interval_of_a_mean_narrows_with_the_square_root_of_the_questions() -> None:
    few, many = (interval([0.0, 1.0] * count) for count in (25, 400))
    for (low, high), count in ((few, 50), (many, 800)):
        assert (high - low) / 2 == pytest.approx(1.96 * 0.5 / math.sqrt(count), rel=0.1)
        assert (high + low) / 2 == pytest.approx(0.5, abs=0.01)


def test_equal_values_have_no_interval() -> None:
    assert interval([0.7] * 9) == pytest.approx((0.7, 0.7))
