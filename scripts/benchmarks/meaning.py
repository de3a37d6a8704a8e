"""Search by meaning over the socket: its speed, the size of its vectors, and the cost of making them for others."""

import os
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from flashgrep.base.own_folders import store_folder
from scripts.benchmarks.machine import TreeFacts
from scripts.benchmarks.private import Client, Private
from scripts.benchmarks.rows import Row, most, p50
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import Times, percentile, repeated

MIB = 1 << 20
STAGES = {"chunks", "vectors"}
PAUSE_SECONDS = 0.2
FEW_CHUNKS, MANY_CHUNKS = 15_000, 260_000
"""Most chunks for which an answer may take 15 ms, and 60 ms."""

QUESTIONS = (
    "where is the configuration file read and checked",
    "retry a failed request after waiting",
    "parse command line arguments",
    "free memory when the last user is gone",
    "convert a date to a string",
    "who decides which worker gets the next job",
    "write bytes to a socket without blocking",
    "sort items by several keys",
    "check that the user may do this",
    "remove entries that are too old from the cache",
    "read a file line by line",
    "compute a checksum over a block of data",
)


def building(
    daemon: Private, root: Path, facts: TreeFacts, targets: Targets
) -> Iterator[Row]:
    """Wait for the vectors, with exact queries in the meantime."""
    client = daemon.client()
    started = time.perf_counter()
    meanwhile: list[float] = []
    daemon.peak.update(dict.fromkeys(daemon.peak, 0))
    with daemon.sampled():
        while client.call("stats")["stage"] in STAGES:
            meanwhile.append(_exact(client, targets))
            time.sleep(PAUSE_SECONDS)
    took = time.perf_counter() - started
    idle = [_exact(client, targets) for _ in range(100)]
    client.close()
    store = store_folder(Path(daemon.paths.cache), os.fsencode(root))
    size = sum(file.stat().st_size for file in store.glob("vectors-*.bin"))
    yield Row("chunks and vectors built", value=took, unit="s")
    yield Row("vector bytes / text bytes", value=size / facts.bytes, bars=[most(0.3)])
    yield Row(
        "most memory, vectors",
        value=daemon.peak["all"] / MIB,
        unit="MB",
        bars=[most(1024, "MB")],
    )
    if meanwhile:
        ratio = percentile(meanwhile, 0.99) / percentile(idle, 0.99)
        yield Row(
            "rare literal meanwhile",
            Times(percentile(meanwhile, 0.5), max(meanwhile), 0, len(meanwhile)),
        )
        yield Row("its p99 / idle p99", value=ratio, bars=[most(3)])


def _exact(client: Client, targets: Targets) -> float:
    asked = time.perf_counter()
    client.call("query", text=targets.rare, mode="literal", limit=1000)
    return (time.perf_counter() - asked) * 1000


def measure(daemon: Private) -> Iterator[Row]:
    """Yield the row of questions in words; the index must have all vectors."""
    client = daemon.client()
    chunks = client.call("stats")["total_chunks"]
    asked = cycle(QUESTIONS)
    times = repeated(
        lambda: len(client.call("search_code", query=next(asked))["results"]),
        daemon.cpu,
    )
    client.close()
    bars = (
        [p50(15)]
        if chunks <= FEW_CHUNKS
        else [p50(60)]
        if chunks <= MANY_CHUNKS
        else []
    )
    yield Row("search_code, warm", times, bars=bars, note=f"{chunks:,} chunks")
