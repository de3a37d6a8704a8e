"""Writes a comparison with other tools as tables."""

from collections.abc import Iterator, Sequence

from scripts.benchmarks.machine import described
from scripts.benchmarks.peer_results import (
    CHANGES,
    Comparison,
    PeerResult,
    QuestionResult,
    WayTimes,
)

BEST_TOLERANCE = 1.05
WHOLE = 10
"""Milliseconds from which on no decimal is shown."""
"""A time within five per cent of the least counts as the least, too."""


def lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of all tables, as Markdown."""
    yield f"Machine: {described(comparison.machine)}; load at the end {comparison.load_after:g}"
    yield ""
    yield f"Tree: {described(comparison.tree)}"
    yield ""
    yield from question_table(comparison)
    yield ""
    yield from tool_table(comparison)


def question_table(comparison: Comparison) -> Iterator[str]:
    """Yield a row for each question, a column for each way to ask: ms, the least bold, and processor ms."""
    ways = list(comparison.ways)
    yield _row(["Question (lines)", *ways])
    yield "|---" + "|---:" * len(ways) + "|"
    for question in comparison.questions:
        yield _row([_title(question), *_cells(question, ways)])


def tool_table(comparison: Comparison) -> Iterator[str]:
    """Yield a row for each tool: its index, its memory, and its wrong answers."""
    yield _row(
        [
            "Tool", "index: s", "CPU s", "MB", "peak MB", "server MB", "wrong answers",
            *(f"stale after: {change}" for change in CHANGES), "stale later", "right again after s",
        ]
    )  # fmt: skip
    yield "|---" + "|---:" * 5 + "|---" + "|---:" * (len(CHANGES) + 2) + "|"
    for peer in comparison.peers:
        yield _row(_tool(peer))


def milliseconds(value: float) -> str:
    """Return a time with as many digits as mean something."""
    if value < WHOLE:
        return f"{value:.1f}"
    return f"{value:,.0f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _title(question: QuestionResult) -> str:
    if question.lines < 0:
        return question.kind
    return f"{question.kind} ({question.lines:,})"


def _cells(question: QuestionResult, ways: Sequence[str]) -> list[str]:
    times = [
        cell.p50
        for cell in question.times.values()
        if cell.is_whole and not cell.refusal
    ]
    least = min(times, default=0.0) * BEST_TOLERANCE
    return [_cell(question.times.get(way), least) for way in ways]


def _cell(times: WayTimes | None, least: float) -> str:
    if times is None:
        return ""
    if times.refusal:
        return "fails"
    wall = milliseconds(times.p50)
    if times.is_whole and times.p50 <= least:
        wall = f"**{wall}**"
    return f"{wall} ({times.cpu:.0f})"


def _tool(peer: PeerResult) -> list[str]:
    name = f"{peer.name} {peer.version}".strip()
    empty = [""] * (len(CHANGES) + 2)
    if peer.not_run:
        return [
            name,
            "",
            "",
            "",
            "",
            "",
            f"not run: {peer.not_run}".replace("|", "/"),
            *empty,
        ]
    index = ["", "", "", ""]
    if peer.indexing:
        made = peer.indexing
        index = [
            f"{made.seconds:.0f}",
            f"{made.cpu_seconds:.0f}",
            f"{made.disk_mb:.0f}",
            f"{made.peak_mb:.0f}",
        ]
    server = f"{peer.server_mb:.0f}" if peer.server_mb else ""
    wrong = "; ".join(peer.wrong) or "none"
    if peer.freshness is None:
        return [name, *index, server, "", *empty]
    fresh = peer.freshness
    stale = [f"{fresh.stale[change]} of {fresh.of_each}" for change in CHANGES]
    later = f"{fresh.later} of {fresh.of_each * len(CHANGES)}"
    again = f"{fresh.caught_up_seconds:g}" if any(fresh.stale.values()) else ""
    return [name, *index, server, wrong, *stale, later, again]
