"""Repeated queries to a warm daemon over the Unix socket, and to ripgrep on the same tree."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scripts.benchmarks.private import FGREP, Client, Private
from scripts.benchmarks.rows import Bar, Row, faster, p50
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import program, repeated

ALL = 10_000
BUDGET = 1_000_000
"""Tokens per answer, enough for all answers here."""


def measure(daemon: Private, rg: Path, targets: Targets) -> Iterator[Row]:
    """Yield the rows of all queries."""
    client = daemon.client()
    one = {"mode": "literal", "case": "sensitive", "order": "path"}
    regex = {**one, "mode": "regex"}
    asked: list[tuple[str, dict[str, Any], list[str], list[Bar]]] = [
        ("rare literal", {**one, "text": targets.rare, "limit": ALL}, ["-nF", targets.rare], [p50(4), faster(100)]),
        ("rarest literal", {**one, "text": targets.rarest, "limit": ALL}, ["-nF", targets.rarest], [p50(2)]),
        ("miss", {**one, "text": targets.miss}, ["-nF", targets.miss], [p50(1)]),
        ("common literal, limit 50", {**one, "text": targets.common, "limit": 50}, ["-nF", targets.common], [p50(10)]),
        ("regex with literal parts, all hits", {**regex, "text": targets.regex, "limit": ALL},
         ["-n", "-e", targets.regex], [p50(25)]),
        ("regex without literals, count", {**regex, "text": targets.scan, "output": "count"},
         ["-c", "-e", targets.scan], [faster(0.5)]),
        ("literal, case-insensitive", {**one, "case": "insensitive", "text": targets.insensitive, "limit": ALL},
         ["-niF", targets.insensitive], []),
        ("files only", {**one, "output": "files", "text": targets.rare, "limit": ALL}, ["-lF", targets.rare], []),
        ("smart mode, as people ask", {"text": targets.rare}, ["-nF", targets.rare], []),
    ]  # fmt: skip
    for name, question, flags, bars in asked:
        ask = partial(_query, client, {**question, "max_tokens": BUDGET})
        theirs = program(
            [rg, "--no-config", "--color=never", "--no-heading", *flags], daemon.root
        )
        yield Row(
            name,
            repeated(ask, daemon.cpu),
            theirs,
            bars=bars,
            note=_note(client, question),
        )
    yield from _others(daemon, client, rg, targets)
    client.close()


def _query(client: Client, question: dict[str, Any]) -> int:
    return len(client.call("query", **question)["results"])


def _note(client: Client, question: dict[str, Any]) -> str:
    explained = client.call("query", **question, explain=True).get("explained", {})
    return f"{explained['candidates']} candidates" if explained else ""


def _others(
    daemon: Private, client: Client, rg: Path, targets: Targets
) -> Iterator[Row]:
    found = client.call("query", text=targets.rare, limit=1)["results"][0]
    slice_of = {
        "file_path": found["file_path"],
        "start_line": found["start_line"],
        "end_line": found["start_line"] + 20,
    }
    methods: list[tuple[str, str, dict[str, Any], list[Bar]]] = [
        ("get_slice", "get_slice", slice_of, [p50(1)]),
        ("stats", "stats", {}, [p50(1)]),
        (
            "list_files, filter",
            "list_files",
            {"filter": found["file_path"].rpartition("/")[2]},
            [],
        ),
    ]
    for name, method, params, bars in methods:
        yield Row(
            name,
            repeated(partial(_call, client, method, params), daemon.cpu),
            bars=bars,
        )
    name = found["file_path"].rpartition("/")[2]
    globbed = program([rg, "--no-config", "--files", "-g", f"**/{name}"], daemon.root)
    ask = partial(_call, client, "glob", {"pattern": f"**/{name}"})
    yield Row("glob of one name", repeated(ask, daemon.cpu, most=20), globbed)
    command = [FGREP, "query", targets.rare]
    yield Row(
        "fgrep query, whole process",
        program(command, daemon.root, most=30, env=daemon.environ),
        bars=[p50(45)],
    )


def _call(client: Client, method: str, params: dict[str, Any]) -> int:
    client.call(method, **params)
    return 1
