"""Runs many clients for a long time: scripts/soak [--seconds N] [--clients N] (default: 10 minutes, 16 clients).

Each client saves files under new names and queries the newest by `outline`, `get_symbol` and `query`, which must find
it; sometimes one floods the daemon with large calls and disconnects. Printed at intervals: memory, descriptors and
threads of the daemon, answers per second, errors, wrong answers. At the end the daemon is left idle. The status is 0 if
there was no error and no wrong answer, it is the same process, its memory, descriptors and threads are back at the
level after a short warm-up, and it takes no processor time.
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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashgrep.daemon import lifecycle
from flashgrep.rpc import longpath
from scripts.benchmarks.fairness import GREEDY, IN_FLIGHT, make_tree
from scripts.benchmarks.private import PAGE, Client, Private, adopt, private_daemon, wait_until

MIB = 1 << 20
WARM_SECONDS = 10.0
RECOVERY_SECONDS = 30.0
"""Memory is released 5 s after a flood; indexing the last saved files takes longer."""
MEMORY_MIB, DESCRIPTORS, THREADS, IDLE_PERCENT = 50, 20, 40, 1.0
"""Most growth of each from the end of the warm-up, and the processor's share when idle.
Threads are kept for as long as anyio keeps idle ones."""
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


def figures(pid: int) -> Figures:
    """Return the figures of a process."""
    here = Path(f"/proc/{pid}")
    pages = int((here / "statm").read_text(encoding="ascii").split()[1])
    return Figures(pages * PAGE / MIB, len(list((here / "fd").iterdir())), len(list((here / "task").iterdir())))


def be_client(daemon: Private, number: int, stop: threading.Event, tally: Tally) -> None:
    """Save files and query until ``stop`` is set."""
    rng = random.Random(number)  # noqa: S311 - no secret
    client, round_ = daemon.client(), 0
    path = daemon.root / f"soaked_{number}.py"
    while not stop.is_set():
        round_ += 1
        name = f"newest_{number}_{round_}"
        filler = "".join(f"def other_{at}(one):\n    return one + {at}\n\n\n" for at in range(rng.randrange(10, 1_500)))
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


def asked(client: Client, file: str, name: str) -> Iterator[tuple[str, bool]]:
    """Query a just saved function by three methods; yield each method and whether its answer has the function."""
    yield "outline", name in json.dumps(client.call("outline", path=file, max_tokens=1_000_000))
    for method, params in (
        ("get_symbol", {"symbol_name": name, "role": ["definition"]}),
        ("query", {"text": f"def {name}(", "mode": "literal"}),
    ):
        answer = client.call(method, **params)
        yield method, len(answer["results"]) == 1 or not answer["coverage"]["complete"]


def flood(daemon: Private, rng: random.Random) -> None:
    """Send large calls, and disconnect without reading the answers."""
    method, params = GREEDY[rng.choice(sorted(GREEDY))]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
    with longpath.connect_unix(daemon.socket, 30) as connection:
        connection.sendall(line * IN_FLIGHT)
        time.sleep(rng.random())


def soak(daemon: Private, seconds: float, clients: int) -> int:
    """Run the clients and return the status."""
    tally, stop = Tally(), threading.Event()
    threads = [threading.Thread(target=be_client, args=(daemon, at, stop, tally)) for at in range(clients)]
    print(f"{'s':>5} {'MiB':>7} {'descriptors':>11} {'threads':>7} {'answers/s':>9} {'floods':>6} {'problems':>8}")
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    base, told, answered = figures(daemon.pid), 0.0, 0
    interval = min(30.0, seconds / 6)
    try:
        while (spent := time.monotonic() - begun) < seconds and lifecycle.find_holder(daemon.paths) == daemon.pid:
            if spent < min(WARM_SECONDS, seconds / 2):
                base = figures(daemon.pid)
            if spent - told >= interval:
                rate, answered = (tally.answers - answered) / (spent - told), tally.answers
                told = spent
                now = figures(daemon.pid)
                print(
                    f"{spent:5.0f} {now.memory_mib:7.0f} {now.descriptors:11} {now.threads:7} {rate:9.1f}"
                    f" {tally.floods:6} {len(tally.problems):8}",
                    flush=True,
                )
            time.sleep(0.5)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    return verdict(daemon, base, tally)


def verdict(daemon: Private, base: Figures, tally: Tally) -> int:
    """Leave the daemon idle, print its resources, and return 0 if they are back at ``base``."""
    wrong = [*dict.fromkeys(tally.problems)][:10]
    if lifecycle.find_holder(daemon.paths) != daemon.pid:
        print(Path(daemon.paths.crash_log).read_text(errors="replace")[-3_000:])
        print("FAILED: the daemon has ended")
        return 1
    client = daemon.client()
    wait_until(client, STAGES)
    client.close()
    time.sleep(RECOVERY_SECONDS)
    before, now = daemon.cpu(), figures(daemon.pid)
    time.sleep(10)
    idle = (daemon.cpu() - before) * 10
    print(f"before: {base}\nafter:  {now}\nidle processor: {idle:.2f} %; answers: {tally.answers}")
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
            return soak(daemon, options.seconds, options.clients)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
