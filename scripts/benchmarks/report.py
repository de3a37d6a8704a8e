"""Writes results as a table and as JSON, dated, to scripts/bench-results."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from scripts.benchmarks.machine import Machine, TreeFacts, described
from scripts.benchmarks.rows import Row, as_dict

FOLDER = Path(__file__).parent.parent / "bench-results"
HEAD = "| what | p50 ms | p99 ms | CPU ms | rg p50 ms | rg CPU ms | times faster | hits | bars | note |"


def line(row: Row) -> str:
    """Return a row of the table."""
    if row.value is not None:
        cells = [f"{row.value:.3g} {row.unit}".strip(), "", "", "", "", "", ""]
    else:
        ours, rg = row.ours, row.rg
        cells = [
            f"{ours.p50:.2f}" if ours else "",
            f"{ours.p99:.2f}" if ours else "",
            f"{ours.cpu:.2f}" if ours else "",
            f"{rg.p50:.1f}" if rg else "",
            f"{rg.cpu:.1f}" if rg else "",
            f"{row.ratio:.3g}" if row.ratio else "",
            str(ours.hits) if ours and ours.hits >= 0 else "",
        ]
    return "| " + " | ".join([row.name, *cells, row.verdict(), row.note]) + " |"


def head() -> str:
    """Return the head of the table."""
    return HEAD + "\n|" + "---|" * (HEAD.count("|") - 1)


def save(
    machine: Machine,
    tree: TreeFacts,
    rows: Sequence[Row],
    remark: str,
    folder: Path = FOLDER,
) -> Path:
    """Save a run under its date; return its Markdown file."""
    folder.mkdir(exist_ok=True)
    stem = f"{datetime.now(UTC):%Y-%m-%d-%H%M}-{tree.name}"
    found = {
        "machine": asdict(machine),
        "tree": asdict(tree),
        "remark": remark,
        "rows": [as_dict(row) for row in rows],
    }
    (folder / f"{stem}.json").write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )
    parts = [
        f"# {stem}",
        "",
        f"Machine: {described(machine)}",
        "",
        f"Tree: {described(tree)}",
        "",
        remark,
        "",
        head(),
    ]
    parts += [line(row) for row in rows]
    path = folder / f"{stem}.md"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path
