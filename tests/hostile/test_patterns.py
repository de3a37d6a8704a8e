"""Patterns made to cost: whoever asks for one waits alone, and not for long."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.pattern import Pattern
from tests.conftest import DaemonAtHand, Wire
from tests.support.workspace import put, repository

PATTERNS: dict[str, dict[str, Any]] = {
    "letters of two cases": {"text": "é" * 1500, "mode": "literal"},
    "a class of thousands": {
        "text": f"[{''.join(map(chr, range(0x4E00, 0x4E00 + 4000, 2)))}]{{40}}",
        "mode": "regex",
    },
    "properties": {"text": r"\pL" * 20_000, "mode": "regex"},
    "a long text": {"text": "z" * 60_000, "mode": "literal"},
}
POLITE_SECONDS = 0.5
"""Alone it is 5 ms; 1.3 s before look-ups stopped sharing a lock while they planned."""
GREEDY_SECONDS = 15.0


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    with repository() as made:
        put(made, {"a.py": b"def function_7(value):\n    return value\n"})
        assert daemon.run("index", cwd=made).returncode == 0
        yield made


def slowest_of(wire: Wire, ended: threading.Event) -> float:
    slowest = 0.0
    while not ended.is_set():
        started = time.monotonic()
        assert wire.call("query", text="function_7(", mode="literal")["total"] == 1
        slowest = max(slowest, time.monotonic() - started)
    return slowest


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_that_costs_keeps_nobody_waiting(
    daemon: DaemonAtHand, root: Path, name: str
) -> None:
    found: list[float] = []
    for attempt in range(3):  # others use the machine too
        ended = threading.Event()
        with (
            closing(daemon.wire("unix", root)) as polite,
            closing(daemon.wire("unix", root)) as greedy,
        ):
            polite.call("query", text="function_7(", mode="literal")
            watching = threading.Thread(
                target=lambda: found.append(slowest_of(polite, ended))  # noqa: B023 - joined
            )
            watching.start()
            started = time.monotonic()
            greedy.ask(
                "query",
                **{**PATTERNS[name], "text": PATTERNS[name]["text"] + "a" * attempt},
            )  # not kept
            took = time.monotonic() - started
            ended.set()
            watching.join()
        assert took < GREEDY_SECONDS
        if found[-1] < POLITE_SECONDS:
            return
    pytest.fail(f"the polite client waited {found} s")


def test_of_a_long_sequence_the_first_parts_narrow() -> None:
    text = "".join(f"word{at} " for at in range(2000))
    held = str(Pattern(texts=(text,), mode="literal", case="sensitive").grams())
    assert held.startswith("(")
    assert "word" in held
