"""Sifting by worker processes finds what sifting here finds, in order; one search has them at a time."""

from collections.abc import Iterator
from itertools import islice

import pytest

from flashgrep.ingest.openat import RootFolder
from flashgrep.pattern import Pattern
from flashgrep.search.sift import CHUNK, Sieve, Task, sift_chunk

COUNT = CHUNK * 5 + 17


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[bytes]]:
    root = tmp_path_factory.mktemp("many")
    for at in range(COUNT):
        (root / f"{at}.txt").write_bytes(b"needle\nneedle\n" if at % 7 == 0 else b"\0" if at % 11 == 0 else b"hay\n")
    return bytes(root), [b"%d.txt" % at for at in range(COUNT)] + [b"gone.txt"]


@pytest.fixture
def sieve() -> Iterator[Sieve]:
    sieve = Sieve(2)
    yield sieve
    sieve.close()


def task(root: bytes, *, counting: bool) -> Task:
    return Task(RootFolder(root), Pattern(texts=("needle",), mode="literal"), 1 << 20, counting)


@pytest.mark.parametrize("counting", [True, False])
def test_workers_find_what_is_found_here(sieve: Sieve, paths: tuple[bytes, list[bytes]], counting: bool) -> None:  # noqa: FBT001 - a test's parameter
    root, names = paths
    asked = task(root, counting=counting)
    found = [(chunk[at], lines) for chunk, sifted in sieve.sift(asked, names) for at, lines in sifted.found]
    assert found == [(names[at], lines) for at, lines in sift_chunk(asked, names).found]
    assert found[0] == (b"0.txt", 2 if counting else 1)


def test_a_search_that_stops_early_leaves_no_answers_for_the_next(
    sieve: Sieve, paths: tuple[bytes, list[bytes]]
) -> None:
    root, names = paths
    for _ in range(3):
        chunks = sieve.sift(task(root, counting=True), names)
        assert len(list(islice(chunks, 1))) == 1
        chunks.close()  # type: ignore[attr-defined]  # it is a generator
    whole = [sifted.read for _, sifted in sieve.sift(task(root, counting=True), names)]
    assert sum(whole) == COUNT


def test_two_searches_at_once_both_get_their_answers(sieve: Sieve, paths: tuple[bytes, list[bytes]]) -> None:
    root, names = paths
    asked = task(root, counting=True)
    pairs = list(zip(sieve.sift(asked, names), sieve.sift(asked, names), strict=True))
    assert all(one[1] == other[1] for one, other in pairs)


def test_idle_workers_are_ended(sieve: Sieve, paths: tuple[bytes, list[bytes]]) -> None:
    root, names = paths
    assert len(list(sieve.sift(task(root, counting=True), names))) == 6
    assert len(sieve._workers) == 2
    sieve.close_idle(3600)
    assert len(sieve._workers) == 2
    sieve.close_idle(0)
    assert not sieve._workers
