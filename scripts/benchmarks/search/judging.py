"""Judges an answer: by file, by range, and by what it shows of the function that was asked for."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, NAME, NAME_END, START
from flashgrep.parts.symbols.symbol_source import parse_file
from scripts.benchmarks.search.asking import Question
from scripts.benchmarks.search.metrics import Figures, distinct, figures

Span = tuple[int, int]
"""First and last line, from 1, both inclusive."""


class Place(NamedTuple):
    """A range of a file in an answer."""

    path: str
    start: int
    end: int
    """Lines count from 1; both ends are inclusive."""
    text: str
    shown: tuple[Span, ...] | None = None
    """The lines whose text is shown; None: all of the range if there is any text."""
    code: frozenset[int] = frozenset()
    """Of a wanted range: its lines that are neither blank nor comments."""

    def lines(self) -> set[int]:
        """Return the lines whose text is shown."""
        spans = self.shown
        if spans is None:
            spans = ((self.start, self.end),) if self.text else ()
        return {line for first, last in spans for line in range(first, last + 1)}


class Function(NamedTuple):
    """What an answer shows of the functions asked for, each 0 or 1; None: the question asks for none."""

    named: float | None
    """A place is in the function, or is the function itself."""
    head: float | None
    """The function's first line is shown."""
    whole: float | None
    """All lines of the function are shown, except comments and blank lines."""


class Judged(NamedTuple):
    """The quality of an answer by file, by range and by function."""

    files: Figures
    ranges: Figures
    function: Function | None = None
    """None: the question asks for no function."""
    distinct: int = 0
    """Different files."""


def judge(
    found: Sequence[Place], question: Question, truth: Sequence[Sequence[Place]]
) -> Judged:
    """Judge an answer, best first; ``truth``: for each target, the ranges that answer it."""
    paths = [one.path for one in found]
    first = next(
        (at for at, path in enumerate(paths) if path in question.files), len(paths)
    )
    read = sum(len(one.text.encode()) for one in found[: first + 1])
    # Each range counts for the first target it answers that no earlier range has
    # answered.
    names, left = list[str](), dict(enumerate(truth))
    for at, one in enumerate(found):
        answered = next(
            (
                number
                for number, places in left.items()
                if any(_overlap(one, place) for place in places)
            ),
            -1,
        )
        names.append(f"result {at}" if answered < 0 else f"answer {answered}")
        left.pop(answered, None)
    wanted = [f"answer {number}" for number in range(len(truth))]
    files = distinct(paths)
    return Judged(
        figures(files, question.files, read),
        figures(names, wanted, read),
        _judge_functions(found, truth),
        len(files),
    )


def _judge_functions(
    found: Sequence[Place], truth: Sequence[Sequence[Place]]
) -> Function | None:
    """Return what is shown of the best shown of the functions asked for."""
    definitions = [place for places in truth for place in places if place.code]
    if not definitions:
        return None
    lines = dict[str, set[int]]()
    for one in found:
        lines.setdefault(one.path, set()).update(one.lines())
    named = head = whole = False
    for definition in definitions:
        shown = lines.get(definition.path, set())
        named |= any(_names(one, definition) for one in found)
        head |= definition.start in shown
        whole |= definition.code <= shown
    return Function(float(named or whole), float(head), float(whole))


def _names(one: Place, definition: Place) -> bool:
    """Return whether a place is mostly inside a definition."""
    if one.path != definition.path:
        return False
    shared = min(one.end, definition.end) - max(one.start, definition.start) + 1
    return 2 * shared > one.end - one.start + 1


def _overlap(one: Place, other: Place) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end


def target_ranges(question: Question, root: Path) -> list[list[Place]]:
    """Return, for each target, the definitions of its name, else its occurrences; without a name, the whole file."""
    ranges = []
    for target in question.targets:
        data = (root / target.path).read_bytes()
        symbols = parse_file(target.path.encode(), data, {})
        spans = []
        if isinstance(symbols, FileSymbols):
            rows = symbols.parsed.definitions[:, [NAME, NAME_END, START, END]].tolist()
            wanted = target.name.encode()
            spans = [
                (start, end)
                for name, after, start, end in rows
                if wanted and data[name:after] == wanted
            ]
        code = _code_lines(symbols) if spans else frozenset[int]()
        if not spans and target.name:
            spans = [
                found.span()
                for found in re.finditer(re.escape(target.name.encode()), data)
            ]
        lines = [
            (data.count(b"\n", 0, start) + 1, data.count(b"\n", 0, end) + 1)
            for start, end in spans
        ]
        ranges.append(
            [
                Place(
                    target.path,
                    first,
                    last,
                    "",
                    code=code & frozenset(range(first, last + 1)),
                )
                for first, last in lines or [(1, data.count(b"\n") + 1)]
            ]
        )
    return ranges


def _code_lines(symbols: object) -> frozenset[int]:
    """Return the lines of a file that have more than a comment or a quoted text."""
    if not isinstance(symbols, FileSymbols):
        return frozenset()
    data = bytearray(symbols.data)
    for start, end in symbols.parsed.skips.tolist():
        # Line ends stay, so that lines keep their numbers.
        data[start:end] = re.sub(rb"[^\n]", b" ", bytes(data[start:end]))
    return frozenset(
        number
        for number, line in enumerate(bytes(data).split(b"\n"), 1)
        if line.strip(b" \t\r\"'")
    )
