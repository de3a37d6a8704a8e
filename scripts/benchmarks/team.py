"""A team's store, measured: loading, bytes, and how long questions take over some shards, with some clients at once.

Each shard is a server of its own on this machine, asked by postgres_fdw. Clients ask in this process, without HTTP; the
times are those from a question to its whole answer, read from empty caches of ours, but warm ones of PostgreSQL.
"""

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio

from flashgrep.config import Settings
from flashgrep.handlers import REGISTRY
from flashgrep.machine import count_cores
from flashgrep.registry import Call, Session
from flashgrep.team import access, schema
from flashgrep.team.catalogue import ACCESS, TeamCatalogue
from flashgrep.team.database import connect
from flashgrep.team.jobs import Team
from flashgrep.team.reading import Store
from flashgrep.team.shards import SHARDED
from tests.support.postgres import Server, run_server

QUESTIONS = 60
"""Of each kind and each number of clients."""
NAME = "measured"


def main() -> None:
    """Print a table for each number of shards."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    options = parser.parse_args()
    for shards in options.shards:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-team-")))
            server = stack.enter_context(run_server())
            others = [stack.enter_context(run_server()) for _ in range(shards if shards > 1 else 0)]
            dsn = fill(server, others, options.repository, folder)
            with open_catalogue(dsn, folder) as (catalogue, token):
                anyio.run(ask_all, catalogue, token, draw_questions(options.repository), options.clients)


def fill(server: Server, others: list[Server], repository: Path, folder: Path) -> str:
    """Load the repository into a new store, print how fast that is, and return the store's address."""
    dsn = server.make_database("team")
    remote = [other.make_database("shard") for other in others]
    with closing(connect(dsn)) as connection:
        schema.migrate(connection, {f"s{number}": address for number, address in enumerate(remote)})
        bare = folder / "bare.git"
        subprocess.run(["git", "clone", "-q", "--mirror", str(repository), str(bare)], check=True)
        team = Team(dsn, folder, os.environ, count_cores())
        team.add(str(bare), NAME, (current_branch(repository),))
        begun = time.monotonic()
        team.work(lambda _what: None)
        took = time.monotonic() - begun
        size, texts = connection.execute("SELECT sum(length(data)), count(*) FROM flashgrep.text").fetchone() or (0, 0)
    stored = 0
    for address in remote or [dsn]:
        with closing(connect(address)) as connection:
            for table in SHARDED:
                query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname ~ %s"
                row = connection.execute(query, [f"^{table}(_[0-9]+)?$"]).fetchone()
                stored += int(row[0] or 0) if row else 0
    print(f"\n{max(1, len(others))} shards: {texts} texts, {size / 1e6:.1f} MB; loaded in {took:.1f} s,", end=" ")
    print(f"{size / 1e6 / took:.2f} MB/s; {stored / size:.2f} bytes stored a byte of text\n")
    print("| question | clients | p50 ms | p99 ms | answers a second |\n|---|---|---|---|---|")
    return dsn


def current_branch(repository: Path) -> str:
    """Return the branch that is checked out."""
    command = ["git", "-C", str(repository), "rev-parse", "--abbrev-ref", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def draw_questions(repository: Path) -> dict[str, list[dict[str, str]]]:
    """Return questions by kind, the same for every run: rare and common words, expressions, symbols."""
    printed = subprocess.run(
        ["git", "-C", str(repository), "grep", "-ohIE", "[A-Za-z_]{6,24}", "HEAD"], check=True, capture_output=True
    ).stdout.decode("utf-8", "replace")
    counts: dict[str, int] = {}
    for word in printed.split():
        counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts, key=lambda word: (counts[word], word))
    drawn = random.Random(1)  # noqa: S311 - the same questions every time
    rare = drawn.sample(ordered[: len(ordered) // 2], min(QUESTIONS, len(ordered) // 2))
    common = [ordered[-1 - number % min(50, len(ordered))] for number in range(QUESTIONS)]
    literal = {"mode": "literal", "case": "sensitive"}
    return {
        "rare word": [{"query": word, **literal} for word in rare],
        "common word": [{"query": word, **literal} for word in common],
        "expression": [{"query": rf"{word[:5]}\w+\(", "mode": "regex", "case": "sensitive"} for word in rare],
        "symbol": [{"symbol_name": word} for word in rare],
    }


@contextmanager
def open_catalogue(dsn: str, folder: Path) -> Iterator[tuple[TeamCatalogue, str]]:
    """Yield what answers, and the hash of a token that sees everything."""
    with closing(connect(dsn)) as connection:
        access.allow(connection, "bench", None)
        token = hashlib.sha256(access.make_token(connection, "bench").encode()).hexdigest()
    store = Store(dsn)
    store.open()
    empty = folder / "empty"
    empty.mkdir()
    with closing(TeamCatalogue(store, Settings(), empty)) as catalogue:
        yield catalogue, token


async def ask_all(
    catalogue: TeamCatalogue, token: str, kinds: dict[str, list[dict[str, str]]], clients: list[int]
) -> None:
    """Ask the questions of each kind, so many at once, and print how long they took."""
    session = Session(notes={ACCESS: catalogue.find_access(token)})
    for kind, questions in kinds.items():
        method = REGISTRY.get("get_symbol" if kind == "symbol" else "query")
        for count in clients:
            times: list[float] = []
            left = iter(questions)

            async def ask(left: Iterator[dict[str, str]] = left, times: list[float] = times) -> None:
                for question in left:
                    begun = time.perf_counter()
                    result = await method.call(Call(catalogue, session), {**question, "project": NAME})  # noqa: B023 - awaited in this round
                    assert result["coverage"]["complete"], result["coverage"]  # noqa: S101 - an answer cut short is no measure
                    times.append((time.perf_counter() - begun) * 1000)

            begun = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(count):
                    tasks.start_soon(ask)
            rate = len(times) / (time.perf_counter() - begun)
            cuts = statistics.quantiles(times, n=100)
            print(f"| {kind} | {count} | {cuts[49]:.1f} | {cuts[98]:.1f} | {rate:.0f} |")


if __name__ == "__main__":
    main()
