"""Measurements while things change: indexing, edits, a branch switch, many clients; and idling."""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.benchmarks.machine import TreeFacts
from scripts.benchmarks.private import Client, Private, adopt, connect_many, wait_until
from scripts.benchmarks.rows import Row, least, most, p50, p99
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import Times, percentile, program, repeated

MIB = 1 << 20
GRAM_STAGES = {"listing", "indexing"}
WORD_STAGES = GRAM_STAGES | {"words"}
SYMBOL_STAGES = WORD_STAGES | {"symbols", "merging"}
ALL_STAGES = SYMBOL_STAGES | {"chunks", "vectors"}
SWITCHED = 10_000
CLIENTS = 64
LOAD_SECONDS = 10.0
IDLE_SECONDS = 60.0


def indexing(
    daemon: Private, root: Path, rg: Path, facts: TreeFacts, targets: Targets
) -> Iterator[Row]:
    """Index the tree from scratch, with queries during indexing."""
    started = time.perf_counter()
    adopt(daemon, root)
    client = daemon.client()
    hits = len(
        client.call("query", text=targets.rare, mode="literal", limit=1000)["results"]
    )
    first = Times((time.perf_counter() - started) * 1000, 0, 0, 1, hits)
    yield Row(
        "first query, no index",
        first,
        program([rg, "--no-config", "-nF", targets.rare], root, most=3),
    )
    meanwhile: list[float] = []
    with daemon.sampled():
        while client.call("stats")["stage"] in GRAM_STAGES:
            asked = time.perf_counter()
            client.call("query", text=targets.rare, mode="literal", limit=1000)
            meanwhile.append((time.perf_counter() - asked) * 1000)
            time.sleep(0.5)
        grams = time.perf_counter() - started
        exact_peak = dict(daemon.peak)
        wait_until(client, WORD_STAGES)
        words = time.perf_counter() - started
        wait_until(client, SYMBOL_STAGES)
        whole = time.perf_counter() - started
    size = client.call("stats")
    client.close()
    if meanwhile:
        yield Row(
            "rare literal while indexing",
            Times(percentile(meanwhile, 0.5), max(meanwhile), 0, len(meanwhile)),
        )
    yield Row("exact index built", value=grams, unit="s", bars=[most(90, "s")])
    yield Row("exact index built, pace", value=facts.bytes / MIB / grams, unit="MB/s")
    yield Row("grams and words built", value=words, unit="s")
    yield Row(
        "grams and words built, pace",
        value=facts.bytes / MIB / words,
        unit="MB/s",
        bars=[least(8, "MB/s")],
    )
    yield Row("symbols built too", value=whole, unit="s")
    yield Row(
        "gram bytes / text bytes",
        value=size["gram_bytes"] / facts.bytes,
        bars=[most(0.25)],
    )
    yield Row(
        "index bytes / text bytes",
        value=size["index_size_bytes"] / facts.bytes,
        bars=[most(0.6)],
    )
    yield Row(
        "most memory, exact index",
        value=exact_peak["all"] / MIB,
        unit="MB",
        bars=[most(700, "MB")],
    )
    yield Row(
        "most memory, daemon",
        value=daemon.peak["daemon"] / MIB,
        unit="MB",
        bars=[most(200, "MB")],
    )
    yield Row(
        "most memory, its children",
        value=daemon.peak["others"] / MIB,
        unit="MB",
        bars=[most(800, "MB")],
    )


def touched(daemon: Private, path: Path, runs: int) -> Row:
    """Measure the time from the return of a write to an answer that contains it."""
    client = daemon.client()
    before = path.read_bytes()
    turn = 0

    def once() -> int:
        nonlocal turn
        turn += 1
        text = f"fresh_text_of_turn_{turn}_end"
        with path.open("ab") as file:
            file.write(f"\n/* {text} */\n".encode())
        started = time.perf_counter()
        answer = client.call("query", text=text, mode="literal")
        walls.append((time.perf_counter() - started) * 1000)
        if len(answer["results"]) != 1:
            raise RuntimeError(f"stale: {answer}")
        return 1

    walls: list[float] = []
    cpu = repeated(once, daemon.cpu, seconds=60, most=runs).cpu
    path.write_bytes(before)
    client.close()
    times = Times(percentile(walls, 0.5), percentile(walls, 0.99), cpu, len(walls), 1)
    return Row("first query after touching a file", times, bars=[p50(20), p99(60)])


def branch_switch(daemon: Private, root: Path, rg: Path) -> Iterator[Row]:
    """Switch between two branches that differ in 10,000 files; the .git folder is outside the tree."""
    names = _two_branches(root)
    client = daemon.client()
    wait_until(client, ALL_STAGES)
    _git(root, "checkout", "-q", "after")
    started = time.perf_counter()
    question = {
        "text": "text_of_the_other_branch",
        "mode": "literal",
        "output": "files",
        "limit": 10_000,
    }
    answer = client.call("query", **question, max_tokens=1_000_000)
    at_once = (time.perf_counter() - started) * 1000
    wrong = abs(answer["total"] - len(names))
    wait_until(client, GRAM_STAGES)
    again = time.perf_counter() - started
    client.close()
    theirs = program(
        [rg, "--no-config", "-lF", "text_of_the_other_branch"], root, most=3
    )
    note = (
        f"{len(names)} files changed; {'all found' if not wrong else f'{wrong} WRONG'}"
    )
    yield Row(
        "first query after a branch switch",
        Times(at_once, at_once, 0, 1, answer["total"]),
        theirs,
        note=note,
    )
    yield Row(
        "branch switch indexed again", value=again, unit="s", bars=[most(20, "s")]
    )


def _two_branches(root: Path) -> list[str]:
    """Create both branches; the second one's files are written elsewhere, so that none has been indexed."""
    _git(root, "init", "-q", "-b", "before")
    _git(root, "add", "-A", "-f")
    _git(root, "commit", "-qm", "before")
    names = [
        os.fsdecode(name)
        for name in _git(root, "ls-files", "-z", "*.c", "*.h").split(b"\0")[:-1]
    ][:SWITCHED]
    other = root.with_name("other")
    other.mkdir()
    for at, name in enumerate(names):
        (other / str(at)).write_bytes(
            (root / name).read_bytes() + b"\n/* text_of_the_other_branch */\n"
        )
    paths = "".join(f"{other / str(at)}\n" for at in range(len(names))).encode()
    hashes = (
        _git(root, "hash-object", "-w", "--no-filters", "--stdin-paths", given=paths)
        .decode()
        .split()
    )
    entries = "".join(
        f"100644 text_id {found}\t{name}\0"
        for found, name in zip(hashes, names, strict=True)
    )
    _git(root, "update-index", "-z", "--index-info", given=os.fsencode(entries))
    tree = _git(root, "write-tree").decode().strip()
    commit = (
        _git(root, "commit-tree", tree, "-p", "before", "-m", "after").decode().strip()
    )
    _git(root, "branch", "after", commit)
    _git(root, "reset", "-q")
    return names


def _git(root: Path, *words: str, given: bytes = b"") -> bytes:
    where = ["--git-dir", str(root.with_name("repository")), "--work-tree", str(root)]
    settings = [
        "core.compression=0",
        "gc.auto=0",
        "user.name=bench",
        "user.email=bench@example.invalid",
    ]
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["git", *where, *options, *words]
    return subprocess.run(
        command, cwd=root, input=given, check=True, capture_output=True
    ).stdout


def crowd(daemon: Private, targets: Targets) -> Iterator[Row]:
    """Query the rare literal from 64 clients at full speed."""
    params = {
        "text": targets.rare,
        "mode": "literal",
        "case": "sensitive",
        "order": "path",
    }
    line = (
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "query", "params": params}
        ).encode()
        + b"\n"
    )
    walls: list[float] = []
    errors = 0
    asked: dict[int, float] = {}
    sockets = connect_many(daemon.socket, CLIENTS)
    by_number = {one.fileno(): one for one in sockets}
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            selector.register(one, selectors.EVENT_READ, bytearray())
            asked[one.fileno()] = time.perf_counter()
            one.sendall(line)
        started = time.perf_counter()
        while time.perf_counter() - started < LOAD_SECONDS:
            for key, _ in selector.select(1):
                key.data.extend(by_number[key.fd].recv(1 << 16))
                if key.data.endswith(b"\n"):
                    now = time.perf_counter()
                    walls.append((now - asked[key.fd]) * 1000)
                    errors += b'"error"' in key.data[:60]
                    key.data.clear()
                    asked[key.fd] = now
                    by_number[key.fd].sendall(line)
        spent = time.perf_counter() - started
    for one in sockets:
        one.close()
    pace = len(walls) / spent
    yield Row(
        f"{CLIENTS} clients, queries",
        value=pace,
        unit="/s",
        note=f"{errors} errors",
        bars=[least(600, "/s")],
    )
    times = Times(percentile(walls, 0.5), percentile(walls, 0.99), 0, len(walls))
    yield Row(f"{CLIENTS} clients, rare literal", times, bars=[p99(150)])


def idling(daemon: Private, seconds: float) -> Iterator[Row]:
    """Measure an idle daemon, after its workers have ended."""
    client = daemon.client()
    wait_until(client, ALL_STAGES)
    client.close()
    until = time.monotonic() + 130
    while len(daemon.processes()) > 1 and time.monotonic() < until:
        time.sleep(1)
    before = daemon.cpu()
    time.sleep(seconds)
    share = (daemon.cpu() - before) / seconds * 100
    yield Row(
        "idle processor",
        value=share,
        unit="%",
        note=f"over {seconds:.0f} s",
        bars=[most(0.1, "%")],
    )
    yield Row(
        "idle memory, all processes",
        value=daemon.resident() / MIB,
        unit="MB",
        bars=[most(150, "MB")],
    )


def pick_file(client: Client, targets: Targets) -> str:
    """Return a file to modify."""
    found: str = client.call("query", text=targets.rare, mode="literal", limit=1)[
        "results"
    ][0]["file_path"]
    return found
