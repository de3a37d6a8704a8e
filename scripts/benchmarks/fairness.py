"""The waiting times of a polite client alongside a greedy one: scripts/fairness [PATH] [--seconds N] [--kind NAME …].

The polite client sends quick queries one at a time, with pauses. The greedy one, a separate process, keeps 32 calls of
one kind in flight on one connection. For each kind: the polite client's median and p99, its p99 when alone in the same
run, and their ratio. The status is 1 if a ratio is over the bar.
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from flashgrep.rpc.connect import connect_unix
from scripts.benchmarks.private import Client, adopt, private_daemon, wait_until

BAR = 10.0
"""Most ratio of the polite client's p99 to its p99 when alone."""
IN_FLIGHT = 32
REST_SECONDS = 0.01
FILES = 1_500
FUNCTIONS = 60
BIG_LINES = 400_000
LARGE: dict[str, Any] = {
    "limit": 10_000,
    "max_tokens": 1_000_000,
    "max_bytes": 8_000_000,
}

Call = tuple[str, dict[str, Any]]
GREEDY: dict[str, Call] = {
    "large answers": ("query", {"text": "return", "mode": "literal", **LARGE}),
    "smart answers": ("query", {"text": "value", "mode": "smart", **LARGE}),
    "counts": ("query", {"text": "e", "mode": "literal", "output": "count", **LARGE}),
    "backtracking": (
        "query",
        {"text": r"(?<=\w)(\w+\s?)+=(?!.)", "mode": "regex", "engine": "backtracking"},
    ),
    "scans": (
        "query",
        {"text": r"[a-z]\d[a-z]\d{3}", "mode": "regex", "use_index": False},
    ),
    "one big file": (
        "query",
        {"text": ".*", "mode": "regex", "include": ["big.txt"], **LARGE},
    ),
    "fuzzy symbol": (
        "get_symbol",
        {"symbol_name": "proces_valeu_12", "match": "fuzzy", "limit": 1000},
    ),
    "all uses": ("get_symbol", {"symbol_name": "value", "limit": 1000}),
    "search_code": (
        "search_code",
        {"query": "combine the values of a record with those before it"},
    ),
    "map": ("outline", {"max_tokens": 1_000_000}),
    "outline of all": (
        "outline",
        {"path": "src", "everything": True, "max_tokens": 1_000_000},
    ),
    "outline of one": (
        "outline",
        {"path": "big.py", "everything": True, "max_tokens": 1_000_000},
    ),
    "end of a big file": (
        "read_code",
        {"file_path": "big.txt", "tail": 2_000, "max_tokens": 1_000_000},
    ),
    "slice of a big file": (
        "get_slice",
        {"file_path": "big.txt", "start_line": BIG_LINES - 9, "end_line": BIG_LINES},
    ),
    "files by a near name": (
        "list_files",
        {"filter": "modlue_12x.py", "limit": 10_000},
    ),
    "glob": ("glob", {"pattern": "**/m*_*[0-9]*.py", "limit": 10_000}),
}
POLITE: tuple[Call, ...] = (
    ("query", {"text": "process_value_77_7", "mode": "literal"}),
    ("get_symbol", {"symbol_name": "process_value_88_3"}),
    (
        "get_slice",
        {"file_path": "src/p1/module_11.py", "start_line": 3, "end_line": 30},
    ),
)


def make_tree(root: Path, files: int = FILES, big_lines: int = BIG_LINES) -> None:
    """Write a project of Python modules, a large module and a large text: about 20 MB by default."""
    rng = random.Random(1)  # noqa: S311 - the same tree every time
    for number in range(files):
        path = root / "src" / f"p{number % 10}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_function(number, at, rng) for at in range(FUNCTIONS)))
    (root / "big.py").write_text(
        "".join(_function(files, at, rng) for at in range(big_lines // 40))
    )
    (root / "big.txt").write_text(
        "".join(f"line {at} of {rng.random()}\n" for at in range(big_lines))
    )


def _function(number: int, at: int, rng: random.Random) -> str:
    other = rng.randrange(FUNCTIONS)
    first = f"    value = record.get('{rng.choice('abcdef')}', {rng.randrange(999)}) + {at}\n"
    last = f"    return process_value_{number}_{other}(value)\n\n"
    return f"def process_value_{number}_{at}(record, before):\n{first}{last}"


@dataclass(frozen=True, slots=True)
class Waits:
    """The polite client's waiting times, in seconds, and the greedy one's answers per second."""

    median: float
    p99: float
    worst: float
    greedy_rate: float = 0.0


def be_greedy(socket: str, call: Call, begun: Event, stop: Event, answers: Any) -> None:
    """Keep 32 calls in flight until told to stop."""
    method, params = call
    connection = connect_unix(socket, 30)
    connection.settimeout(0.1)
    line = (
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ).encode()
        + b"\n"
    )
    connection.sendall(line * IN_FLIGHT)
    begun.set()
    while not stop.is_set():
        try:
            got = connection.recv(1 << 20)
        except TimeoutError:
            continue
        if not got:
            break
        ended = got.count(b"\n")
        answers.value += ended
        connection.sendall(line * ended)
    connection.close()


def be_polite(socket: str, seconds: float) -> list[float]:
    """Send quick queries one at a time, and return the time of each, in seconds."""
    client = Client(socket)
    waits: list[float] = []
    until = time.monotonic() + seconds
    for method, params in cycle(POLITE):
        begun = time.monotonic()
        if begun > until and len(waits) >= len(POLITE):
            break
        client.call(method, **params)
        waits.append(time.monotonic() - begun)
        time.sleep(REST_SECONDS)
    client.close()
    return waits


@contextmanager
def greedy_beside(socket: str, call: Call) -> Iterator[Any]:
    """Run a greedy client while the block runs; yield the count of its answers."""
    spawn = multiprocessing.get_context("spawn")
    begun, stop, answers = spawn.Event(), spawn.Event(), spawn.Value("q", 0)
    process = spawn.Process(target=be_greedy, args=(socket, call, begun, stop, answers))
    process.start()
    try:
        begun.wait(30)
        yield answers
    finally:
        stop.set()
        process.join()


def summary(waits: list[float], greedy_rate: float = 0.0) -> Waits:
    """Return median, p99 and worst."""
    ordered = sorted(waits)
    return Waits(
        statistics.median(ordered),
        ordered[int(0.99 * (len(ordered) - 1))],
        ordered[-1],
        greedy_rate,
    )


def measure(socket: str, call: Call, seconds: float) -> Waits:
    """Return the polite client's waits alongside a greedy one, including its first half second."""
    with greedy_beside(socket, call) as answers:
        begun = time.monotonic()
        waits = be_polite(socket, seconds)
        return summary(waits, answers.value / (time.monotonic() - begun))


def main() -> int:
    """Measure, print a table, and return 0 if all kinds keep to the bar."""
    parser = argparse.ArgumentParser(prog="scripts/fairness", description=__doc__)
    parser.add_argument(
        "path",
        type=Path,
        nargs="?",
        help="project to measure on (default: one made for this)",
    )
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="duration of each measurement"
    )
    parser.add_argument(
        "--kind", action="append", choices=GREEDY, help="only these kinds"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    base = Path(tempfile.mkdtemp(prefix="fgfair"))
    try:
        root = options.path or base / "project"
        if options.path is None:
            make_tree(root)
        with private_daemon(base / "state") as daemon:
            adopt(daemon, root.resolve())
            client = daemon.client()
            wait_until(
                client,
                {
                    "listing",
                    "indexing",
                    "words",
                    "merging",
                    "symbols",
                    "chunks",
                    "vectors",
                },
            )
            client.call("search_code", query="warm")
            client.close()
            return report(daemon.socket, options.kind or list(GREEDY), options.seconds)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def report(socket: str, kinds: list[str], seconds: float) -> int:
    """Measure each kind, after the polite client alone, and print a line for each."""
    be_polite(socket, 1)
    print(f"load average {os.getloadavg()[0]:.1f}")
    print(
        f"{'':22}{'alone p99':>10}{'median':>9}{'p99':>9}{'worst':>9}{'ratio':>7}{'greedy/s':>10}"
    )
    over = 0
    for kind in kinds:
        be_polite(
            socket, 1
        )  # until the after-effects of the last greedy client are over
        alone = summary(be_polite(socket, seconds))
        beside = measure(socket, GREEDY[kind], seconds)
        ratio = beside.p99 / alone.p99
        over += ratio > BAR
        times = "".join(
            f"{1000 * found:9.1f}"
            for found in (beside.median, beside.p99, beside.worst)
        )
        print(
            f"{kind:22}{1000 * alone.p99:10.1f}{times}{ratio:7.1f}{beside.greedy_rate:10.1f}",
            flush=True,
        )
    print(
        "times in ms; "
        + (
            f"{over} of {len(kinds)} over {BAR:g} times"
            if over
            else "all within the bar"
        )
    )
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
