"""``fgrep gain``: what models were served, and an estimate of what grep and reading would have cost."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from flashgrep.cli.daemon_client import find_user_paths
from flashgrep.parts.gain.counters import FILE, Row, list_rows

CHARS_A_TOKEN: Final = 4
READ_BYTES: Final = 8_000
"""200 lines of 40 characters: what agents read of a file at once."""
READS_SAVED: Final = {
    "get_symbol": 1,
    "code_research": 2,
    "search_code": 2,
    "outline": 1,
    "repo_map": 1,
    "references": 1,
    "callers": 1,
    "definition": 1,
}
"""Reads of a file that a call makes unnecessary, by method; others save none."""
RULES: Final = (
    f"a token is {CHARS_A_TOKEN} characters",
    f"reading in a file costs {READ_BYTES} characters (200 lines)",
    "get_symbol, outline, repo_map, references, callers, definition: their answer, and one reading",
    "code_research, search_code: their answer, and two readings",
    "every other call: what it answered; grep would have printed as much",
)


class Total(NamedTuple):
    """The sums of several rows."""

    calls: int
    milliseconds: int
    tokens: int
    estimate: int
    unread: int


def add_up(rows: Iterable[Row]) -> Total:
    """Return the sums of rows; ``estimate``: tokens that grep and reading would have cost, by RULES."""
    calls = 0
    milliseconds = 0
    size = 0
    unread = 0
    readings = 0
    for row in rows:
        calls += row.calls
        milliseconds += row.milliseconds
        size += row.size
        unread += row.unread
        readings += READS_SAVED.get(row.name, 0) * row.calls
    return Total(
        calls,
        milliseconds,
        size // CHARS_A_TOKEN,
        (size + readings * READ_BYTES) // CHARS_A_TOKEN,
        unread,
    )


def gain(
    *,
    days: Annotated[
        int, typer.Option("--days", min=1, max=90, help="The last days to show.")
    ] = 7,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every day, project and method as JSON.")
    ] = False,
) -> None:
    """Show what models were served on this machine, by day and project, and what grep and reading would have cost.

    The figures are local; nothing is sent anywhere. The rules of the estimate are printed with it.
    """
    rows = list(list_rows(Path(find_user_paths().state) / FILE))
    recent = sorted({row.day for row in rows})[-days:]
    rows = [row for row in rows if row.day in recent]
    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows], indent=1))
        return
    if not rows:
        typer.echo(
            "nothing has been counted yet; the daemon writes its figures every minute",
            err=True,
        )
        raise typer.Exit(1)
    typer.echo(format_report(rows))


def format_report(rows: list[Row]) -> str:
    """Return the table of rows by day and project, the methods that were called most, and the rules."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    methods: dict[str, int] = defaultdict(int)
    for row in rows:
        groups[row.day, row.project or "-"].append(row)
        methods[row.name] += row.calls
    lines = [
        "day         calls       ms   tokens  grep+read  files unread  project",
    ]
    for (day, project), members in sorted(groups.items()):
        lines.append(f"{day} {_format_total(add_up(members))}  {project}")
    lines.append(f"all        {_format_total(add_up(rows))}")
    by_calls = sorted(methods.items(), key=lambda item: (-item[1], item[0]))
    often = [f"{name} {calls}" for name, calls in by_calls[:6]]
    lines.append("most: " + ", ".join(often))
    lines += [f"  {rule}" for rule in RULES]
    return "\n".join(lines)


def _format_total(total: Total) -> str:
    return (
        f"{total.calls:6} {total.milliseconds:8} {total.tokens:8} {total.estimate:10} "
        f"{total.unread:13}"
    )
