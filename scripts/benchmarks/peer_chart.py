"""Draws a comparison with other tools: a row for each question, a mark for each way to ask, time on a logarithmic axis."""

from collections.abc import Iterator
from html import escape
from math import ceil, floor, log10

from scripts.benchmarks.peer_report import milliseconds
from scripts.benchmarks.peer_results import Comparison, QuestionResult

WIDTH = 860
LEFT = 190
"""Where the axis begins, after the names of the questions."""
RIGHT = WIDTH - 30
ROW = 34
TITLE = 52
LEGEND_ROW = 20
LEGEND_COLUMNS = 5
SECOND = 3
"""A second is this power of ten of milliseconds."""
OURS = "flashgrep"
COLOURS = ("#555555", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#8c6d1f", "#7a5195")
"""Of other tools, told apart with common colour blindness too."""
OURS_COLOURS = ("#d55e00", "#e69f00", "#a11d00", "#f0c36d")
STYLE = "font-family:system-ui,sans-serif;font-size:13px"


def draw(comparison: Comparison) -> str:
    """Return the chart as SVG; questions without an exact answer are left out."""
    questions = [row for row in comparison.questions if row.lines >= 0]
    ways = [
        way for way in comparison.ways if any(way in row.times for row in questions)
    ]
    scale = _Scale(questions)
    legend_rows = ceil(len(ways) / LEGEND_COLUMNS)
    top = TITLE + legend_rows * LEGEND_ROW
    bottom = top + len(questions) * ROW
    height = bottom + 34
    marks = _marks(comparison, ways)
    tree = comparison.tree
    title = f"Time of a question, {tree.name}, {tree.files:,} files, {comparison.day}: left is faster"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" style="{STYLE}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="14" y="24" font-weight="bold" fill="#222222">{escape(title)}</text>',
        *_legend(marks),
        *_axis(scale, top, bottom),
    ]
    for number, question in enumerate(questions):
        parts += _row(question, top + number * ROW + ROW // 2, marks, scale)
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Scale:
    """Places times on the axis: whole powers of ten around all of them, in ms."""

    def __init__(self, questions: list[QuestionResult]) -> None:
        times = [
            cell.p50
            for row in questions
            for cell in row.times.values()
            if not cell.refusal
        ]
        self.first = floor(log10(max(min(times, default=1.0), 0.01)))
        self.last = max(ceil(log10(max(times, default=10.0))), self.first + 1)

    def place(self, value: float) -> float:
        """Return the horizontal place of a time."""
        share = (log10(max(value, 0.01)) - self.first) / (self.last - self.first)
        return round(LEFT + share * (RIGHT - LEFT), 1)


def _marks(comparison: Comparison, ways: list[str]) -> dict[str, tuple[str, bool]]:
    """Return each way's colour, and whether it is ours."""
    marks: dict[str, tuple[str, bool]] = {}
    others = 0
    ours = 0
    for way in ways:
        if comparison.ways[way] == OURS:
            marks[way] = (OURS_COLOURS[ours % len(OURS_COLOURS)], True)
            ours += 1
        else:
            marks[way] = (COLOURS[others % len(COLOURS)], False)
            others += 1
    return marks


def _legend(marks: dict[str, tuple[str, bool]]) -> Iterator[str]:
    for number, (way, (colour, is_ours)) in enumerate(marks.items()):
        x = 20 + number % LEGEND_COLUMNS * 165
        y = 46 + number // LEGEND_COLUMNS * LEGEND_ROW
        name = way.replace("`", "")
        if is_ours and not name.startswith("fgrep"):
            name = f"flashgrep {name}"
        yield _mark(x, y - 4, colour, is_ours=is_ours)
        yield f'<text x="{x + 12}" y="{y}" fill="#222222">{escape(name)}</text>'


def _axis(scale: _Scale, top: int, bottom: int) -> Iterator[str]:
    for power in range(scale.first, scale.last + 1):
        x = scale.place(10.0**power)
        label = f"{10.0**power:g} ms"
        if power >= SECOND:
            label = f"{10 ** (power - SECOND)} s"
        yield f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="#cccccc"/>'
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="#444444">{label}</text>'


def _row(
    question: QuestionResult, y: int, marks: dict[str, tuple[str, bool]], scale: _Scale
) -> Iterator[str]:
    name = f"{question.kind} ({question.lines:,})"
    yield f'<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}" stroke="#eeeeee"/>'
    yield f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end" fill="#222222">{escape(name)}</text>'
    for way, (colour, is_ours) in marks.items():
        cell = question.times.get(way)
        if cell is None or cell.refusal:
            continue
        told = f"{way.replace('`', '')}: {milliseconds(cell.p50)} ms"
        yield _mark(scale.place(cell.p50), y, colour, is_ours=is_ours, told=told)


def _mark(x: float, y: float, colour: str, *, is_ours: bool, told: str = "") -> str:
    """Return a diamond for ours, a circle for another tool's, with a text for the pointer."""
    title = f"<title>{escape(told)}</title>" if told else ""
    style = f'fill="{colour}" fill-opacity="0.85"'
    if is_ours:
        points = f"{x},{y - 7} {x + 7},{y} {x},{y + 7} {x - 7},{y}"
        return f'<polygon points="{points}" {style}>{title}</polygon>'
    return f'<circle cx="{x}" cy="{y}" r="5" {style}>{title}</circle>'
