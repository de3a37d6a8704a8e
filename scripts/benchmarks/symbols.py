"""Symbols and research over the socket, after parsing; and the speed of parsing."""

import os
import random
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from flashgrep.files.openat import RootFolder
from flashgrep.index.writer import Reserved
from flashgrep.indexer.workers import prepare, read_texts
from flashgrep.parts.symbols.parsing_stage import Parsers
from scripts.benchmarks.private import Client, Private
from scripts.benchmarks.rows import Row, least, p50
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import repeated

SAMPLE_BYTES = 40 << 20
NAMES = 100
DEFINED = (
    r"^(?:static |async )?(?:def|class|func|fn|int|void|bool|struct) (\w{6,}) ?[({]"
)


def measure(daemon: Private, targets: Targets) -> Iterator[Row]:
    """Yield the rows of queries; the index must have all symbols."""
    client = daemon.client()
    names = iter(_names(client))
    one = repeated(lambda: _symbol(client, next(names)), daemon.cpu, most=NAMES // 2)
    yield Row("get_symbol, different names", one, bars=[p50(3)])
    again = repeated(partial(_symbol, client, targets.rare), daemon.cpu)
    yield Row("get_symbol, the rare literal", again, bars=[p50(3)])
    asked = iter([f"who calls {name}" for name in _names(client)])
    research = repeated(lambda: _research(client, next(asked)), daemon.cpu, most=40)
    yield Row("code_research, callers, depth 3", research, bars=[p50(500)])
    client.close()


def parsing(root: Path, max_size: int = 64 << 20) -> Row:
    """Return the row of parsing a sample of the tree with two processes."""
    paths, size = _sample(root)
    whole = prepare(
        RootFolder(os.fsencode(root)), paths, Reserved(1, 1), None, max_size
    )
    hashes = {row.path: text_hash for row, text_hash in whole.files if text_hash}
    texts = [
        (at, hashes[path], path) for at, path in enumerate(paths) if path in hashes
    ]
    parsers = Parsers(partial(read_texts, RootFolder(os.fsencode(root)), max_size), 2)
    try:
        list(
            parsers.run([texts[:32], texts[32:64]])
        )  # starts the processes and loads the grammars
        started = time.perf_counter()
        list(parsers.run([texts[at : at + 32] for at in range(0, len(texts), 32)]))
        pace = size / 1e6 / (time.perf_counter() - started)
    finally:
        parsers.close()
    return Row(
        "parsing, 2 processes",
        value=pace,
        unit="MB/s",
        bars=[least(6, "MB/s")],
        note=f"{size / 1e6:.0f} MB",
    )


def _sample(root: Path) -> tuple[list[bytes], int]:
    files = sorted(
        path
        for path in root.rglob("*.[chp]*")
        if path.is_file() and not path.is_symlink()
    )
    random.Random(3).shuffle(files)  # noqa: S311 - a repeatable draw
    taken, size = [], 0
    for file in files:
        if size > SAMPLE_BYTES:
            break
        taken.append(os.fsencode(file.relative_to(root)))
        size += file.stat().st_size
    return taken, size


def _names(client: Client) -> list[str]:
    """Return names that look like definitions, from all over the tree."""
    question = {
        "text": DEFINED,
        "mode": "regex",
        "case": "sensitive",
        "order": "path",
        "limit": 10_000,
    }
    hits = client.call("query", **question, max_tokens=1_000_000)["results"]
    names = sorted(
        {found[1] for hit in hits if (found := re.search(DEFINED, hit["text"]))}
    )
    return random.Random(7).sample(names, min(NAMES, len(names)))  # noqa: S311 - a repeatable draw


def _symbol(client: Client, name: str) -> int:
    return int(client.call("get_symbol", symbol_name=name)["total"])


def _research(client: Client, question: str) -> int:
    return len(client.call("code_research", query=question, depth=3)["results"])
