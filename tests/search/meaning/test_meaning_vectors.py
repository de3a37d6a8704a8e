"""Vectors on disk: what is stored, what is nearest, and files that are not what was written."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.index.schema import list_vector_files
from flashgrep.parts.meaning.index.vectors import (
    RESCORED,
    Floats,
    Vectors,
    VectorsDamaged,
    append,
    holds,
    new_name,
    quantise,
    row_type,
)

BY_ROW = np.zeros_like
"""Where nothing else tells them apart, equal rows come by number."""


def units(count: int, dims: int, seed: int) -> Floats:
    """Return random vectors of unit length."""
    rows = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    lengths: Floats = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


def stored(folder: Path, rows: Floats) -> Vectors:
    """Return vectors written to a file and taken in."""
    file = folder / new_name()
    append(file, 0, quantise(rows))
    vectors = Vectors(file, rows.shape[1])
    vectors.grow(len(rows))
    return vectors


def file_of(folder: Path) -> Path:
    """Return the only file of vectors in a folder."""
    (file,) = list_vector_files(folder)
    return file


@given(
    count=st.integers(0, 300),
    dims=st.integers(1, 200),
    seed=st.integers(0, 2**32),
    limit=st.integers(1, 40),
)
def test_the_nearest_are_those_of_plain_floats_within_what_quantising_loses(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    dims: int,
    seed: int,
    limit: int,
) -> None:
    rows, question = units(count, dims, seed), units(1, dims, seed + 1)[0]
    folder = tmp_path_factory.mktemp("vectors")
    found = stored(folder, rows).nearest(question, limit, BY_ROW)
    truth = rows @ question
    assert len(found.rows) == len(set(found.rows.tolist())) == min(limit, count)
    assert (np.diff(found.similarity) <= 0).all()
    # A component is off by half a step of largest/127, so the cosine by at most the sum
    # of |question| times that.
    loss = 0.5 / 127 * np.abs(question).sum() * np.abs(rows).max(initial=0) + 1e-5
    assert np.allclose(found.similarity, truth[found.rows], atol=loss)
    best = np.sort(truth)[::-1][: len(found.rows)]
    assert np.allclose(found.similarity, best, atol=2 * loss)
    file_of(folder).unlink()


@given(
    wanted=st.lists(st.integers(0, 299), min_size=1, max_size=60),
    seed=st.integers(0, 2**32),
)
def test_rows_that_are_read_together_are_compared_as_each_by_itself(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[int], seed: int
) -> None:
    rows, question = units(300, 40, seed), units(1, 40, seed + 1)[0]
    vectors = stored(tmp_path_factory.mktemp("vectors"), rows)
    together = vectors.similarity(question, np.array(wanted))
    alone = [vectors.similarity(question, np.array([row]))[0] for row in wanted]
    assert together.tolist() == alone


def test_among_many_rows_the_near_ones_are_found_by_their_signs(tmp_path: Path) -> None:
    rows = units(6 * RESCORED, 256, 7)
    question = units(1, 256, 8)[0]
    planted = np.array([5, 77, 3 * RESCORED, len(rows) - 1])
    for place, share in zip(planted, (0.9, 0.8, 0.7, 0.6), strict=True):
        mixed = share * question + (1 - share) * rows[place]
        rows[place] = mixed / np.linalg.norm(mixed)
    found = stored(tmp_path, rows).nearest(question, 4, BY_ROW)
    assert found.rows.tolist() == planted.tolist()
    assert np.allclose(found.similarity, rows[planted] @ question, atol=0.01)


@given(seed=st.integers(0, 2**32), kept=st.floats(0, 1))
def test_only_rows_that_count_are_found(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kept: float
) -> None:
    rows, question = units(200, 16, seed), units(1, 16, seed + 1)[0]
    among = np.random.default_rng(seed).random(200) < kept
    folder = tmp_path_factory.mktemp("vectors")
    found = stored(folder, rows).nearest(question, 30, BY_ROW, among)
    assert among[found.rows].all()
    assert len(found.rows) == min(30, among.sum())
    file_of(folder).unlink()


def test_few_rows_that_count_are_found_among_many_that_do_not(tmp_path: Path) -> None:
    rows, question = units(4 * RESCORED, 64, 1), units(1, 64, 2)[0]
    among = np.zeros(len(rows), np.bool_)
    furthest = np.argsort(rows @ question)[:3]
    among[furthest] = True
    found = stored(tmp_path, rows).nearest(question, 10, BY_ROW, among)
    assert sorted(found.rows.tolist()) == sorted(furthest.tolist())


def test_rows_beyond_the_stated_number_do_not_count(tmp_path: Path) -> None:
    """The last texts were deleted, or the file has grown since it was told which rows count."""
    rows = units(50, 8, 3)
    vectors = stored(tmp_path, rows)
    found = vectors.nearest(rows[45], 50, BY_ROW, np.ones(40, np.bool_))
    assert sorted(found.rows.tolist()) == list(range(40))
    assert sorted(
        vectors.nearest(rows[0], 50, BY_ROW, np.ones(60, np.bool_)).rows.tolist()
    ) == list(range(50))


def test_equal_rows_come_in_the_given_order_not_by_when_they_were_made(
    tmp_path: Path,
) -> None:
    """More rows are equal than are compared in full, so the order decides who is, too."""
    rows = np.repeat(units(1, 64, 3), RESCORED + 200, axis=0)
    rank = np.random.default_rng(5).permutation(len(rows))
    found = stored(tmp_path, rows).nearest(rows[0], 20, lambda numbers: rank[numbers])
    assert rank[found.rows].tolist() == list(range(20))


def test_a_row_is_as_near_wherever_it_stands(tmp_path: Path) -> None:
    rows, question = units(999, 256, 4), units(1, 256, 5)[0]
    there = np.random.default_rng(6).permutation(len(rows))
    together = stored(tmp_path, rows[there]).similarity(question, np.arange(len(rows)))
    alone = stored(tmp_path, rows).similarity(question, there)
    assert together.tolist() == alone.tolist()


def test_a_row_without_direction_is_like_nothing(tmp_path: Path) -> None:
    rows = np.zeros((2, 8), np.float32)
    rows[1, 3] = 1
    vectors = stored(tmp_path, rows)
    assert vectors.nearest(rows[1], 2, BY_ROW).similarity.tolist() == pytest.approx(
        [1, 0]
    )
    assert vectors.nearest(rows[0], 2, BY_ROW).similarity.tolist() == [0, 0]


def test_the_similarity_of_chosen_rows_is_in_their_order(tmp_path: Path) -> None:
    rows, question = units(100, 32, 4), units(1, 32, 5)[0]
    vectors = stored(tmp_path, rows)
    chosen = np.array([99, 0, 50, 50])
    assert np.allclose(
        vectors.similarity(question, chosen), (rows @ question)[chosen], atol=0.02
    )
    assert len(vectors.similarity(question, np.zeros(0, np.int64))) == 0


def test_appended_rows_are_found_and_rows_written_twice_are_the_last(
    tmp_path: Path,
) -> None:
    file = tmp_path / new_name()
    rows = units(30, 16, 6)
    append(
        file, 0, quantise(units(30, 16, 9))
    )  # a batch that was written before the indexer was killed
    append(file, 0, quantise(rows[:20]))
    vectors = Vectors(file, 16)
    vectors.grow(20)
    append(file, 20, quantise(rows[20:]))
    assert vectors.nearest(rows[25], 1, BY_ROW).similarity[0] < 0.99
    vectors.grow(30)
    vectors.grow(10)  # an older reader asks: what is there stays
    assert [int(vectors.nearest(row, 1, BY_ROW).rows[0]) for row in rows] == list(
        range(30)
    )


def test_a_file_that_is_missing_or_too_short_is_damaged(tmp_path: Path) -> None:
    rows = units(10, 8, 1)
    vectors = stored(tmp_path, rows)
    file = file_of(tmp_path)
    assert holds(file, 8, 10)
    assert not holds(file, 8, 11)
    with pytest.raises(VectorsDamaged):
        Vectors(file, 8).grow(11)
    os.truncate(file, 10 * row_type(8).itemsize - 1)
    with pytest.raises(VectorsDamaged):
        Vectors(file, 8).grow(10)
    with pytest.raises(VectorsDamaged):
        vectors.nearest(rows[0], 10, BY_ROW)
    assert not holds(file, 8, 10)
    file.unlink()
    assert not holds(file, 8, 10)
    assert holds(file, 8, 0)
    with pytest.raises(VectorsDamaged):
        vectors.nearest(rows[0], 10, BY_ROW)
    with pytest.raises(VectorsDamaged):
        Vectors(file, 8).grow(1)


def test_a_failed_growth_leaves_what_was_there(tmp_path: Path) -> None:
    rows = units(10, 8, 1)
    vectors = stored(tmp_path, rows)
    with pytest.raises(VectorsDamaged):
        vectors.grow(1000)
    assert int(vectors.nearest(rows[3], 1, BY_ROW).rows[0]) == 3


@pytest.mark.parametrize(
    "name",
    ["index.db", "vectors-0123456789abcdef.bin.bak", "vectors-XYZ.bin", "vectors-.bin"],
)
def test_a_name_that_is_none_of_ours_is_not_opened(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"kept")
    with pytest.raises(VectorsDamaged):
        append(file, 0, quantise(units(1, 4, 0)))
    with pytest.raises(VectorsDamaged):
        Vectors(file, 4).grow(1)
    assert file.read_bytes() == b"kept"
    assert list_vector_files(tmp_path) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"kept" * 100)
    file = tmp_path / new_name()
    file.symlink_to(victim)
    with pytest.raises(VectorsDamaged):
        append(file, 0, quantise(units(1, 4, 0)))
    with pytest.raises(VectorsDamaged):
        Vectors(file, 4).grow(1)
    assert not holds(file, 4, 1)
    assert not holds(file, 4, 0)
    assert victim.read_bytes() == b"kept" * 100


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    stored(tmp_path, units(1, 4, 0))
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600


def test_threads_ask_while_the_vectors_grow(tmp_path: Path) -> None:
    rows = units(3000, 64, 11)
    file = tmp_path / new_name()
    append(file, 0, quantise(rows))
    vectors = Vectors(file, 64)
    vectors.grow(100)
    wrong: list[str] = []
    done = threading.Event()

    def ask(seed: int) -> None:
        asked = 0
        while not done.is_set() or not asked:
            place = (seed + 7 * asked) % 100
            found = vectors.nearest(
                rows[place], 3, BY_ROW, np.ones(100, np.bool_) if seed % 2 else None
            )
            if int(found.rows[0]) != place:
                wrong.append(f"{place}: {found}")
            asked += 1

    threads = [threading.Thread(target=ask, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for count in range(100, 3001, 50):
        vectors.grow(count)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert int(vectors.nearest(rows[2999], 1, BY_ROW).rows[0]) == 2999
