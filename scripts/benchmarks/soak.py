"""Runs many clients without a pause: scripts/soak [--seconds N] [--clients N] [--only KIND …] [--rest-seconds N].

By default 16 clients for 10 minutes, and two minutes of rest.

Half of the clients save files under new names and query the newest by `outline`, `get_symbol` and `query`, which must
find it; sometimes one floods the daemon with large calls and disconnects. The others ask questions of every kind one
after the other, as fast as they are answered (``KINDS``). A polite client asks twenty times a second and is timed. The
daemon never has five seconds without a lookup.

Printed at intervals: memory, descriptors and threads of the daemon, answers per second, the polite client's median and
99th percentile, errors, wrong answers. At the end the daemon is left idle. The status is 0 if there was no error and no
wrong answer, it is the same process, its memory and descriptors did not grow in a line while it worked, memory,
descriptors and threads are back near the level after a short warm-up, and it takes no processor time.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashgrep.daemon import lifecycle
from flashgrep.rpc.connect import connect_unix
from scripts.benchmarks.fairness import GREEDY, IN_FLIGHT, make_tree
from scripts.benchmarks.private import (
    PAGE,
    Client,
    Private,
    adopt,
    private_daemon,
    wait_until,
)

MIB = 1 << 20
WARM_SECONDS = 10.0
RECOVERY_SECONDS = 120.0
"""Memory is released 5 s after a flood; indexing the last saved files takes longer."""
MEMORY_MIB, DESCRIPTORS, THREADS, IDLE_PERCENT = 60, 20, 40, 1.0
"""Most growth of each from the end of the warm-up, and the processor's share when idle.
Threads are kept for as long as anyio keeps idle ones."""
SETTLED_SHARE = 0.3
"""Caches fill during this share of the run: three minutes of ten. A line is fitted to the rest."""
MOST_MIB_A_MINUTE = 2.0
LEAST_FITTED_SECONDS = 300.0
"""In a shorter run, caches that are still filling look like a leak: the line is printed, and not judged."""
POLITE_SECONDS = 0.05
Question = tuple[str, dict[str, object]]
KINDS: dict[str, tuple[Question, ...]] = {
    "symbols": (
        ("get_symbol", {"symbol_name": "other_7"}),
        ("outline", {"path": "soaked_0.py"}),
        ("read_code", {"symbol_name": "other_3"}),
    ),
    "maps": (("repo_map", {}),),
    "research": (("code_research", {"query": "callers of other_7", "max_depth": 1}),),
    "meaning": (("search_code", {"query": "return one more than the argument"}),),
    "text": (("query", {"query": "other one return"}),),
    "files": (
        ("list_files", {"query": "soaked"}),
        ("glob", {"query": "**/*.py"}),
        ("stats", {}),
    ),
    "mcp": (
        ("tools/list", {}),
        (
            "tools/call",
            {
                "name": "query",
                "arguments": {"query": "def other_7(", "mode": "literal"},
            },
        ),
    ),
}
"""Questions that are asked without a pause, with their parameters; ``mcp`` are messages of that protocol."""
EDITS = "edits"
"""The kind of the clients that save files and look for what they saved."""
FLOOD_EVERY = 50
STAGES = {"listing", "indexing", "words", "merging", "symbols", "chunks", "vectors"}


@dataclass(frozen=True, slots=True)
class Figures:
    """Resources of the daemon's process."""

    memory_mib: float
    descriptors: int
    threads: int


@dataclass(slots=True)
class Tally:
    """Counts over all clients."""

    answers: int = 0
    floods: int = 0
    problems: list[str] = field(default_factory=list)
    polite_ms: list[float] = field(default_factory=list)
    """Times of the polite client's answers."""
    samples: list[tuple[float, Figures]] = field(default_factory=list)
    """The daemon's figures, each with its second."""


def figures(pid: int) -> Figures:
    """Return the figures of a process."""
    here = Path(f"/proc/{pid}")
    pages = int((here / "statm").read_text(encoding="ascii").split()[1])
    return Figures(
        pages * PAGE / MIB,
        len(list((here / "fd").iterdir())),
        len(list((here / "task").iterdir())),
    )


def be_client(
    daemon: Private, number: int, stop: threading.Event, tally: Tally
) -> None:
    """Save files and query until ``stop`` is set."""
    rng = random.Random(number)  # noqa: S311 - no secret
    client, round_ = daemon.client(), 0
    path = daemon.root / f"soaked_{number}.py"
    while not stop.is_set():
        round_ += 1
        name = f"newest_{number}_{round_}"
        filler = "".join(
            f"def other_{at}(one):\n    return one + {at}\n\n\n"
            for at in range(rng.randrange(10, 1_500))
        )
        path.write_text(f"{filler}def {name}():\n    return 1\n", encoding="ascii")
        try:
            for method, is_right in asked(client, path.name, name):
                if not is_right:
                    tally.problems.append(f"{method}: not {name}")
                tally.answers += 1
            if rng.randrange(FLOOD_EVERY) == 0:
                flood(daemon, rng)
                tally.floods += 1
        except (OSError, RuntimeError, ValueError) as error:
            tally.problems.append(repr(error)[:200])
            if stop.wait(1):
                break
            client = daemon.client()
    client.close()


def ask_without_pause(
    daemon: Private,
    number: int,
    stop: threading.Event,
    tally: Tally,
    kinds: Sequence[str] = tuple(KINDS),
) -> None:
    """Ask questions of these kinds until ``stop`` is set; what is asked for may be gone for a moment."""
    rng = random.Random(number)  # noqa: S311 - no secret
    client = daemon.client()
    questions = [question for kind in kinds for question in KINDS[kind]]
    while not stop.is_set():
        method, params = rng.choice(questions)
        try:
            client.call(method, **params)
        except RuntimeError as error:
            # No such symbol, or a file that is just being written: an answer as well.
            if "-32603" in str(error):
                tally.problems.append(repr(error)[:200])
        except (OSError, ValueError) as error:
            tally.problems.append(repr(error)[:200])
            client = daemon.client()
        tally.answers += 1
    client.close()


def be_polite(daemon: Private, stop: threading.Event, tally: Tally) -> None:
    """Ask a small question twenty times a second, and note how long each answer takes."""
    client = daemon.client()
    while not stop.wait(POLITE_SECONDS):
        begun = time.monotonic()
        client.call("query", query="def other_7(", mode="literal", limit=3)
        tally.polite_ms.append((time.monotonic() - begun) * 1000)
    client.close()


def fit_slope(samples: list[tuple[float, float]]) -> float:
    """Return the growth a minute of a line through samples (second, value), by least squares."""
    count = len(samples)
    mean_time = sum(second for second, _ in samples) / count
    mean_value = sum(value for _, value in samples) / count
    spread = sum((second - mean_time) ** 2 for second, _ in samples)
    if not spread:
        return 0.0
    return (
        60
        * sum((second - mean_time) * (value - mean_value) for second, value in samples)
        / spread
    )


def describe_times(times: list[float]) -> str:
    """Return the median and the 99th percentile of times in ms."""
    if not times:
        return "      -      -"
    ordered = sorted(times)
    return f"{ordered[len(ordered) // 2]:7.0f} {ordered[int(len(ordered) * 0.99)]:6.0f}"


def asked(client: Client, file: str, name: str) -> Iterator[tuple[str, bool]]:
    """Query a just saved function by three methods; yield each method and whether its answer has the function."""
    yield (
        "outline",
        name in json.dumps(client.call("outline", path=file, max_tokens=1_000_000)),
    )
    for method, params in (
        ("get_symbol", {"symbol_name": name, "role": ["definition"]}),
        ("query", {"text": f"def {name}(", "mode": "literal"}),
    ):
        answer = client.call(method, **params)
        yield method, len(answer["results"]) == 1 or not answer["coverage"]["complete"]


def flood(daemon: Private, rng: random.Random) -> None:
    """Send large calls, and disconnect without reading the answers."""
    method, params = GREEDY[rng.choice(sorted(GREEDY))]
    line = (
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ).encode()
        + b"\n"
    )
    with connect_unix(daemon.socket, 30) as connection:
        connection.sendall(line * IN_FLIGHT)
        time.sleep(rng.random())


def make_threads(
    daemon: Private,
    clients: int,
    only: Sequence[str],
    stop: threading.Event,
    tally: Tally,
) -> list[threading.Thread]:
    """Return the clients, not started yet; ``only``: kinds of questions, or EDITS; none: all of them."""
    threads = [threading.Thread(target=be_polite, args=(daemon, stop, tally))]
    questions = [kind for kind in only or KINDS if kind != EDITS]
    for number in range(clients):
        saves = EDITS in only or not only
        if saves and (number % 2 == 0 or not questions):
            thread = threading.Thread(
                target=be_client, args=(daemon, number, stop, tally)
            )
        else:
            thread = threading.Thread(
                target=ask_without_pause, args=(daemon, number, stop, tally, questions)
            )
        threads.append(thread)
    return threads


def soak(
    daemon: Private,
    seconds: float,
    clients: int,
    only: Sequence[str] = (),
    rest_seconds: float = RECOVERY_SECONDS,
) -> int:
    """Run the clients and return the status."""
    tally = Tally()
    stop = threading.Event()
    threads = make_threads(daemon, clients, only, stop, tally)
    print(
        f"{'s':>5} {'MiB':>7} {'descriptors':>11} {'threads':>7} {'answers/s':>9}"
        f" {'p50 ms':>7} {'p99':>6} {'floods':>6} {'problems':>8}"
    )
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    base = figures(daemon.pid)
    printed = 0.0
    answered = 0
    timed = 0
    interval = min(30.0, seconds / 6)
    try:
        while (spent := time.monotonic() - begun) < seconds and lifecycle.find_holder(
            daemon.paths
        ) == daemon.pid:
            now = figures(daemon.pid)
            tally.samples.append((spent, now))
            if spent < min(WARM_SECONDS, seconds / 2):
                base = now
            if spent - printed >= interval:
                rate = (tally.answers - answered) / (spent - printed)
                times = describe_times(tally.polite_ms[timed:])
                print(
                    f"{spent:5.0f} {now.memory_mib:7.0f} {now.descriptors:11} {now.threads:7} {rate:9.1f} {times}"
                    f" {tally.floods:6} {len(tally.problems):8}",
                    flush=True,
                )
                printed = spent
                answered = tally.answers
                timed = len(tally.polite_ms)
            time.sleep(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    return verdict(daemon, base, tally, rest_seconds)


def judge_slopes(tally: Tally) -> list[str]:
    """Print how memory and descriptors grew while the daemon worked, and return what is wrong with that."""
    if not tally.samples:
        return []
    seconds = tally.samples[-1][0]
    settled = [
        (second, now)
        for second, now in tally.samples
        if second >= seconds * SETTLED_SHARE
    ]
    memory = fit_slope([(second, now.memory_mib) for second, now in settled])
    descriptors = fit_slope(
        [(second, float(now.descriptors)) for second, now in settled]
    )
    print(f"slopes a minute: {memory:.2f} MiB, {descriptors:.2f} descriptors")
    print(f"polite client, p50 and p99 in ms: {describe_times(tally.polite_ms)}")
    if seconds < LEAST_FITTED_SECONDS:
        return []
    wrong: list[str] = []
    if memory > MOST_MIB_A_MINUTE:
        wrong.append(
            f"memory grows by {memory:.2f} MiB a minute, at most {MOST_MIB_A_MINUTE} allowed"
        )
    if descriptors * seconds / 60 > DESCRIPTORS:
        wrong.append(f"descriptors grow by {descriptors:.2f} a minute")
    return wrong


def verdict(daemon: Private, base: Figures, tally: Tally, rest_seconds: float) -> int:
    """Leave the daemon idle, print its resources, and return 0 if they are back at ``base``."""
    wrong = [*dict.fromkeys(tally.problems)][:10]
    wrong += judge_slopes(tally)
    if lifecycle.find_holder(daemon.paths) != daemon.pid:
        print(Path(daemon.paths.crash_log).read_text(errors="replace")[-3_000:])
        print("FAILED: the daemon has ended")
        return 1
    client = daemon.client()
    wait_until(client, STAGES)
    client.close()
    time.sleep(rest_seconds)
    before, now = daemon.cpu(), figures(daemon.pid)
    time.sleep(10)
    idle = (daemon.cpu() - before) * 10
    print(
        f"before: {base}\nafter:  {now}\nidle processor: {idle:.2f} %; answers: {tally.answers}"
    )
    for name, more, most in (
        ("MiB of memory", now.memory_mib - base.memory_mib, MEMORY_MIB),
        ("descriptors", now.descriptors - base.descriptors, DESCRIPTORS),
        ("threads", now.threads - base.threads, THREADS),
        ("% of a processor", idle, IDLE_PERCENT),
    ):
        if more > most:
            wrong.append(f"{more:.1f} {name} more, at most {most} allowed")
    print("\n".join(f"FAILED: {problem}" for problem in wrong) or "passed")
    return int(bool(wrong))


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument(
        "--only",
        action="append",
        choices=[*KINDS, EDITS],
        default=[],
        metavar="KIND",
        help=f"run clients of this kind only, of {', '.join(KINDS)}, {EDITS}; may be repeated",
    )
    parser.add_argument(
        "--rest-seconds",
        type=float,
        default=RECOVERY_SECONDS,
        help="how long the daemon is left idle at the end",
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    base = Path(tempfile.mkdtemp(prefix="fgsoak"))
    try:
        root = base / "project"
        make_tree(root, files=300, big_lines=100_000)
        with private_daemon(base / "state") as daemon:
            adopt(daemon, root)
            client = daemon.client()
            wait_until(client, STAGES)
            client.close()
            return soak(
                daemon,
                options.seconds,
                options.clients,
                options.only,
                options.rest_seconds,
            )
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
