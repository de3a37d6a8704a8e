"""What is kept by size: the value used longest ago leaves first, however many threads keep some at once."""

import threading

from flashgrep.base.bounded_cache import BoundedCache

BOUND = 30


def test_the_value_used_longest_ago_leaves_first() -> None:
    cache = BoundedCache[str, str](10)
    cache.put("a", 4, "first")
    cache.put("b", 4, "second")
    assert cache.find("a") == "first"
    cache.put("c", 4, "third")
    assert [cache.find(key) for key in "abc"] == ["first", None, "third"]


def test_a_value_takes_the_place_and_the_size_of_what_its_key_had() -> None:
    cache = BoundedCache[str, str](10)
    for size in (9, 3, 6):
        cache.put("a", size, str(size))
    cache.put("b", 4, "beside")
    assert (cache.find("a"), cache.find("b")) == ("6", "beside")
    cache.put("b", 5, "too much for both")
    assert (cache.find("a"), cache.find("b")) == (None, "too much for both")


def test_a_value_too_large_is_not_kept_and_puts_no_other_out() -> None:
    cache = BoundedCache[str, str](10, largest=5)
    cache.put("a", 5, "kept")
    cache.put("b", 6, "too large")
    cache.put("b", 0, "weighs nothing")
    assert (cache.find("a"), cache.find("b")) == ("kept", "weighs nothing")
    cache.put("a", 6, "grown")
    assert cache.find("a") is None
    cache.clear()
    cache.put("c", 5, "after")
    cache.put("d", 5, "all")
    assert [cache.find(key) for key in "bcd"] == [None, "after", "all"]


def test_threads_that_keep_at_once_lose_no_count() -> None:
    cache = BoundedCache[int, int](100)
    together = threading.Barrier(4)

    def keep(first: int) -> None:
        together.wait(BOUND)
        for at in range(2_000):
            cache.put(at % 7, at % 20, at)
            cache.find(first + at % 5)

    threads = [threading.Thread(target=keep, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    for key in range(7):
        cache.put(key, 0, 0)
    cache.put(99, 100, 99)  # all the room is there again
    assert [cache.find(key) for key in (*range(7), 99)] == [*[0] * 7, 99]
