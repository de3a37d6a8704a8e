"""Measures a team's store: loading, size, and the time of queries, by numbers of shards and of clients.

Each shard is a separate server on this machine, queried by postgres_fdw. Clients run in this process, without HTTP. The
times are from a query to its whole answer, with our caches empty and PostgreSQL's warm. The processor time of this
process and all servers is also measured; it hardly depends on other processes.
"""

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio

from flashgrep.base.config import Settings
from flashgrep.base.cores import count_cores
from flashgrep.base.registry import Call, Session
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.team import access, migrations
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.jobs import Team
from flashgrep.parts.team.migrations import SHARDED
from flashgrep.parts.team.store_connection import Store
from flashgrep.parts.team.team_catalogue import ACCESS, TeamCatalogue
from tests.support.postgres import Server, run_server

QUESTIONS = 60
"""Queries for each kind and each number of clients."""
GROWN_BYTES = 16 << 20
"""Text of the largest corpus; each is twice the previous one, and all take less than ten minutes."""
GROWN_QUESTIONS = 30
STAGES = ("fetching", "contents", "symbols", "chunks", "dropped", "merged")
NAME = "measured"


def main() -> None:
    """Print a table for each number of shards."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument(
        "--growth", action="store_true", help="4, 8 and 16 MB of text instead of all"
    )
    options = parser.parse_args()
    for shards in options.shards:
        measure(
            options.repository,
            shards,
            options.clients,
            [GROWN_BYTES >> n for n in (2, 1, 0)] * options.growth,
        )


def measure(
    repository: Path, shards: int, clients: list[int], sizes: list[int]
) -> None:
    """Print the table of a store with this many shards; ``sizes``: bytes of text at each step, empty: all at once."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-team-"))
        )
        server = stack.enter_context(run_server())
        others = [
            stack.enter_context(run_server())
            for _ in range(shards if shards > 1 else 0)
        ]
        bare = folder / "bare.git"
        subprocess.run(
            ["git", "clone", "-q", "--mirror", str(repository), str(bare)], check=True
        )
        branch = choose_files(bare, sizes[0]) if sizes else current_branch(repository)
        questions = draw_questions(
            bare, branch, GROWN_QUESTIONS if sizes else QUESTIONS
        )
        store = Filled(server, others, folder)
        store.team.add(str(bare), NAME, (branch,))
        for size in sizes or [0]:
            if size:
                choose_files(bare, size)
            store.load()
            with open_catalogue(store.dsn, folder) as (catalogue, token):
                anyio.run(
                    ask_all, catalogue, token, questions, clients, store.read_processor
                )


def choose_files(bare: Path, most: int) -> str:
    """Create a branch with about ``most`` bytes of HEAD's files, sampled by a hash of their paths, and return it."""

    def run(*command: str, text: bytes = b"") -> bytes:
        environ = {**os.environ, "GIT_INDEX_FILE": str(bare / "index-of-some")}
        for who in ("AUTHOR", "COMMITTER"):
            environ |= {
                f"GIT_{who}_NAME": "bench",
                f"GIT_{who}_EMAIL": "bench@example.org",
            }
        git = ["git", "-C", str(bare), *command]
        return subprocess.run(
            git, input=text, env=environ, check=True, capture_output=True
        ).stdout

    lines = run("ls-tree", "-r", "-l", "-z", "HEAD").split(b"\0")[:-1]
    lines.sort(key=lambda line: hashlib.sha256(line.partition(b"\t")[2]).digest())
    chosen, size = [], 0
    for line in lines:
        (mode, kind, blob, length), path = (
            line.partition(b"\t")[0].split(),
            line.partition(b"\t")[2],
        )
        if kind == b"blob" and mode != b"120000":
            chosen.append(mode + b" " + blob + b"\t" + path)
            size += int(length)
        if size > most:
            break
    run("update-index", "-z", "--index-info", text=b"\0".join(chosen) + b"\0")
    tree = run("write-tree").decode().strip()
    commit = run("commit-tree", tree, "-m", "some of the files").decode().strip()
    run("update-ref", "refs/heads/some", commit)
    return "some"


def read_ticks(process: Path) -> list[int]:
    """Return the user and system ticks of a process and of its ended children; empty if it is gone."""
    try:
        return list(
            map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:15])
        )
    except (FileNotFoundError, ProcessLookupError):
        return []


class Filled:
    """A store that is filled step by step, and the cost of it."""

    def __init__(self, server: Server, others: list[Server], folder: Path) -> None:
        self._servers = [server, *others]
        self.dsn = server.make_database("team")
        self._remote = [other.make_database("shard") for other in others]
        with closing(connect(self.dsn)) as connection:
            migrations.migrate(
                connection,
                {f"s{number}": address for number, address in enumerate(self._remote)},
            )
        self.team = Team(self.dsn, folder, os.environ, count_cores())

    def read_processor(self) -> float:
        """Return the seconds of processor time that this process, the servers and all their children took until now."""
        ticks = 0
        for server in self._servers:
            assert server.process is not None  # noqa: S101 - started by run_server
            main = Path(f"/proc/{server.process.pid}")
            # Of the main process with what its ended children took, of a child without:
            # it has none.
            ticks += sum(read_ticks(main))
            children = (main / "task" / main.name / "children").read_text().split()
            ticks += sum(
                sum(read_ticks(main.with_name(child))[:2]) for child in children
            )
        return sum(os.times()[:4]) + ticks / os.sysconf("SC_CLK_TCK")

    def load(self) -> None:
        """Update the store to the state of the branch, and print its speed and the store's size."""
        last = begun = time.monotonic()
        before, processor = self.measure_texts()[0], self.read_processor()
        stages = dict.fromkeys(STAGES, 0.0)

        def tell(what: str) -> None:
            nonlocal last
            stages[next(stage for stage in STAGES if stage in what)] += (
                time.monotonic() - last
            )
            last = time.monotonic()

        self.team.request()
        self.team.work(tell)
        took, processor = time.monotonic() - begun, self.read_processor() - processor
        size, texts = self.measure_texts()
        loaded, stored = (size - before) / 1e6, self.measure_bytes()
        print(
            f"\n{max(1, len(self._remote))} shards: {texts} texts, {size / 1e6:.1f} MB;",
            end=" ",
        )
        print(
            f"{loaded:.1f} MB loaded in {took:.1f} s, {loaded / took:.2f} MB/s,",
            end=" ",
        )
        print(
            f"{processor / loaded:.2f} s of processor time per MB; {stored / size:.2f} bytes stored per byte of text"
        )
        print(
            ", ".join(
                f"{stage} {seconds:.1f} s"
                for stage, seconds in stages.items()
                if seconds
            ),
            "\n",
        )
        print(
            "| question | clients | p50 ms | p99 ms | answers a second | processor ms |\n|---|---|---|---|---|---|"
        )

    def measure_texts(self) -> tuple[int, int]:
        """Return the size and number of contents."""
        with closing(connect(self.dsn)) as connection:
            query = (
                "SELECT coalesce(sum(length(data)), 0), count(*) FROM flashgrep.text"
            )
            size, texts = connection.execute(query).fetchone() or (0, 0)
        return int(size), int(texts)

    def measure_bytes(self) -> int:
        """Return the size of the shards' tables on disk."""
        stored = 0
        for address in self._remote or [self.dsn]:
            with closing(connect(address)) as connection:
                for table in SHARDED:
                    query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname ~ %s"
                    row = connection.execute(query, [f"^{table}(_[0-9]+)?$"]).fetchone()
                    stored += int(row[0] or 0) if row else 0
        return stored


def current_branch(repository: Path) -> str:
    """Return the branch that is checked out."""
    command = ["git", "-C", str(repository), "rev-parse", "--abbrev-ref", "HEAD"]
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.strip()


def draw_questions(
    bare: Path, branch: str, most: int
) -> dict[str, list[dict[str, str]]]:
    """Return queries by kind, the same in every run: rare and common words, regular expressions, symbols."""
    printed = subprocess.run(
        ["git", "-C", str(bare), "grep", "-ohIE", "[A-Za-z_]{6,24}", branch],
        check=True,
        capture_output=True,
    ).stdout.decode("utf-8", "replace")
    counts: dict[str, int] = {}
    for word in printed.split():
        counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts, key=lambda word: (counts[word], word))
    drawn = random.Random(1)  # noqa: S311 - the same questions every time
    rare = drawn.sample(ordered[: len(ordered) // 2], min(most, len(ordered) // 2))
    common = [ordered[-1 - number % min(50, len(ordered))] for number in range(most)]
    literal = {"mode": "literal", "case": "sensitive"}
    return {
        "rare word": [{"query": word, **literal} for word in rare],
        "common word": [{"query": word, **literal} for word in common],
        "expression": [
            {"query": rf"{word[:5]}\w+\(", "mode": "regex", "case": "sensitive"}
            for word in rare
        ],
        "symbol": [{"symbol_name": word} for word in rare],
        "by meaning": [
            {"query": f"where {one} is used with {other}"}
            for one, other in zip(rare, common, strict=False)
        ],
    }


@contextmanager
def open_catalogue(dsn: str, folder: Path) -> Iterator[tuple[TeamCatalogue, str]]:
    """Yield a catalogue, and the hash of a token with access to everything."""
    with closing(connect(dsn)) as connection:
        access.allow(connection, "bench", None)
        token = hashlib.sha256(
            access.make_token(connection, "bench").encode()
        ).hexdigest()
    store = Store(dsn)
    store.open()
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    with closing(TeamCatalogue(store, Settings(), empty, os.environ)) as catalogue:
        yield catalogue, token


async def ask_all(
    catalogue: TeamCatalogue,
    token: str,
    kinds: dict[str, list[dict[str, str]]],
    clients: list[int],
    read_processor: Callable[[], float],
) -> None:
    """Run the queries of each kind with each number of clients, and print their times."""
    session = Session(notes={ACCESS: catalogue.find_access(token)})
    for kind, questions in kinds.items():
        method = REGISTRY.get(
            {"symbol": "get_symbol", "by meaning": "search_code"}.get(kind, "query")
        )
        for count in clients:
            times: list[float] = []
            left = iter(questions)

            async def ask(
                left: Iterator[dict[str, str]] = left, times: list[float] = times
            ) -> None:
                for question in left:
                    begun = time.perf_counter()
                    result = await method.call(  # noqa: B023 - awaited in this round
                        Call(catalogue, session), {**question, "project": NAME}
                    )
                    assert result["coverage"]["complete"], result["coverage"]  # noqa: S101 - an answer cut short is no measure
                    times.append((time.perf_counter() - begun) * 1000)

            begun, processor = time.perf_counter(), read_processor()
            async with anyio.create_task_group() as tasks:
                for _ in range(count):
                    tasks.start_soon(ask)
            rate = len(times) / (time.perf_counter() - begun)
            cuts, spent = (
                statistics.quantiles(times, n=100, method="inclusive"),
                (read_processor() - processor) / len(times) * 1000,
            )
            print(
                f"| {kind} | {count} | {cuts[49]:.1f} | {cuts[98]:.1f} | {rate:.0f} | {spent:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
