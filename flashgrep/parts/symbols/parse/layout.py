"""A text with errors, repaired by the indentation of its lines, so that what follows an error is parsed as intended.

A grammar that meets an error guesses how to continue, and may take all that follows for a part of what is still open.
But people and formatters indent: lines at one level are siblings, deeper ones belong to a line before them. So each
part is parsed by itself, between the lines that enclose it; a part with an error is divided in the same way, down to
the error, where a bracket is added or a line blanked out. The text keeps its length, so offsets stay the same.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tree_sitter import Node

from flashgrep.parts.symbols.parse.grammar import Grammar, parse_tree

Span = tuple[int, int]

LAID_OUT: Final = frozenset(
    (
        *(
            "cpp",
            "csharp",
            "dart",
            "go",
            "java",
            "javascript",
            "kotlin",
            "lua",
            "php",
            "python",
            "ruby",
        ),
        *("rust", "scala", "swift", "tsx", "typescript", "zig"),
    )
)
"""Grammars whose texts are repaired. That of C loses no more without it, and macros would be taken for errors."""
_BEFORE: Final = {"php": b"<?php\n"}
"""What a grammar requires before any code."""
_EMPTY_BODY: Final = {"python": b"pass\n"}
"""What replaces a body that is left out, in languages where a missing one is an error."""
_MOST_TIMES: Final = 2
"""How many times the length of a text may be parsed to find its errors."""
_LEAST_BYTES: Final = 50_000
"""Bytes that may be parsed for any text: 10 ms."""
_PARSE_COST: Final = 300
"""The fixed cost of a parse, in bytes."""
_MOST_JOINED: Final = 4_000
"""The most bytes of two parts that are tried as one."""
_MOST_TRIES: Final = 8
"""Lines at a part's own level that are left out by trial."""
_BLANK: Final = re.compile(rb"[^\r\n]")
_LINE: Final = re.compile(rb"^([ \t]*)([^\s][^\n]*)?\n?", re.MULTILINE)
_CONTINUES: Final = re.compile(
    rb"[)\]}{.,?=|+>]|&&|\*/|:(?!:)|(?:end|else|elif|elsif|elseif|except|finally|catch|rescue|ensure|until|where)\b"
)
"""What begins a line that belongs to the part before it, though at the same level."""
_HEAD_ENDS: Final = re.compile(rb"[ \t]*(?:>|[)>\]][^\n]*(?:[{:>]|\bdo))\s*\Z")
"""A line that ends a head of several lines."""
_LEADS: Final = re.compile(rb"@|\[|template\b|#\[")
"""What begins a line that belongs to the part after it."""
_COMMENT: Final = rb"\A/\*|\*/"
_LONG: Final = {
    "python": re.compile(rb"\"\"\"|'''"),
    **dict.fromkeys(
        ("javascript", "typescript", "tsx", "go"), re.compile(_COMMENT + rb"|`")
    ),
    **dict.fromkeys(
        ("kotlin", "scala", "swift", "java", "csharp", "groovy", "dart"),
        re.compile(_COMMENT + rb"|\"\"\"|'''"),
    ),
    **dict.fromkeys(("cpp", "php", "rust", "zig"), re.compile(_COMMENT)),
}
"""What begins and ends strings and comments of several lines."""
_CONDITIONAL: Final = frozenset(("cpp", "csharp", "swift"))
_CONDITION: Final = re.compile(
    rb"^[ \t]*#[ \t]*(?:if|else|elif|endif)[^\r\n]*", re.MULTILINE
)
_NAMESPACE: Final = re.compile(
    rb"(?:(?:inline[ \t]+)?namespace\b[^;{}()=]*|extern[ \t]+\"C\"[ \t]*)\{[ \t]*(?://[^\n]*)?\r?\n?\Z"
)
_CONTAINERS: Final = re.compile(
    rb"\b(?:class|struct|interface|enum|impl|trait|module|mod|namespace|object|extension|protocol|describe|record|union)\b"
)
"""What begins a part whose content is worth parsing even if the error is in its head."""
_CLOSERS: Final = (b"}", b")", b"})")


class _Line(NamedTuple):
    start: int
    end: int
    level: int
    """Columns before its first character; -1 for an empty line."""


class LayoutRepairer:
    """One text being repaired."""

    def __init__(
        self, name: str, grammar: Grammar, data: bytes, deadline: float
    ) -> None:
        """``deadline``: when to give up, in processor time of this thread."""
        self.text = bytearray(data)
        self._data = data
        self.blanked: list[Span] = []
        self._grammar = grammar
        self._deadline = deadline
        self._left = max(_MOST_TIMES * len(data), _LEAST_BYTES)
        self._before = _BEFORE.get(name, b"")
        self._flat = name == "cpp"
        self._empty = _EMPTY_BODY.get(name, b"")
        # Conditional code has the level of its surroundings, without the directives.
        if name in _CONDITIONAL:
            self._conditions = [match.span() for match in _CONDITION.finditer(data)]
        else:
            self._conditions = []
        for start, end in self._conditions:
            self.text[start:end] = b" " * (end - start)
        self._lines = [
            _Line(*line.span(), -1 if line[2] is None else len(line[1].expandtabs(8)))
            for line in _LINE.finditer(bytes(self.text))
            if line[0]
        ]
        texts = [bytes(self.text[line.start : line.end]) for line in self._lines]
        if name in _LONG:
            self._inside = find_inner_lines(texts, _LONG[name])
        else:
            self._inside = frozenset[int]()

    def repair(self, root: Node) -> None:
        """Find and repair the errors of the text, whose tree is given, as far as that is affordable.

        Raises:
            ParseTimeout: the bound was reached.

        """
        # What the grammar parsed without an error, and with the same layout, needs no
        # check.
        spans = [
            (node.start_byte, node.end_byte)
            for node in root.children
            if node.is_named and not node.has_error and not root.is_error
        ]
        self._repair_run(0, len(self._lines), self._before, b"", spans)
        for start, end in self._conditions:
            self.text[start:end] = self._data[start:end]

    def count_strays(self, root: Node) -> int:
        """Return how many parts of the text begin inside a top-level node of the tree."""
        if self._flat:
            return 0
        starts = {node.start_byte for node in root.children}
        blanked = {start for start, _ in self.blanked}
        parts = self._split(0, len(self._lines))
        lines = [self._lines[first] for first, _ in parts]
        own = {
            line.end - len(self._data[line.start : line.end].lstrip())
            for line in lines
            if line.start not in blanked
        }
        return len(own - starts)

    def _repair_run(
        self,
        low: int,
        high: int,
        before: bytes,
        after: bytes,
        known: Sequence[Span] = (),
    ) -> None:
        """Repair sibling parts: the lines from ``low`` to ``high``, between the texts that enclose them.

        ``known``: spans that need no check, sorted and disjoint.
        """
        parts = self._split(low, high)
        at = 0
        while at < len(parts) and self._left >= 0:
            first, last = parts[at]
            at += 1
            if self._is_known(first, last, known):
                continue
            if len(parts) > 1 and self._is_whole(
                before, self._read(first, last), after
            ):
                continue
            if at < len(parts):
                second, end = parts[at]
                # A string or an annotation may continue at the same level.
                joined = self._read(first, end)
                if len(joined) < _MOST_JOINED and self._is_whole(before, joined, after):
                    at += 1
                    continue
                if not self._is_known(second, end, known) and self.join(
                    first, second, end, before, after
                ):
                    last = end
                    at += 1
            if self._empty and at > 1 and first + 1 < last:
                ahead = self._read(parts[at - 2][0], first)
                if self._is_whole(before, ahead, self._read(first + 1, last), after):
                    self._blank([first])
                    continue
            self.repair_part(first, last, before, after)

    def join(
        self, first: int, second: int, end: int, before: bytes, after: bytes
    ) -> bool:
        """Join two parts if the second begins with an error: a line at a wrong level, in the middle of one part."""
        if self._is_whole(
            before, self._read(second, end), after
        ) or self._is_whole_without_runs(first, second, before, after):
            return False
        line_text = self._read(second, second + 1)
        self._blank([second])
        if self._is_whole_without_runs(first, end, before, after):
            return True
        line = self._lines[second]
        self.text[line.start : line.end] = line_text
        self.blanked.pop()
        return False

    def _is_whole_without_runs(
        self, first: int, last: int, before: bytes, after: bytes
    ) -> bool:
        """Return whether a part parses without the lines that are deeper than its first."""
        own, runs = self._find_runs(first, last)
        return self._is_whole(before, self._read_own_lines(own, runs), after)

    def _find_runs(
        self, first: int, last: int
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the lines at a part's own level, and the runs of deeper lines between them."""
        level = next(
            (line.level for line in self._lines[first:last] if line.level >= 0), 0
        )
        own = [
            at
            for at in range(first, last)
            if 0 <= self._lines[at].level <= level
            and at not in self._inside
            and not self._read(at, at + 1).isspace()
        ]
        # All lines of a long head (``run(``, parameters, ``) {``) count as its own.
        heads = (
            range(low + 1, high)
            for low, high in pairwise(own)
            if _HEAD_ENDS.match(self._read(high, high + 1))
        )
        own = sorted({*own, *(at for head in heads for at in head)})
        runs = []
        for above, high in pairwise([*own, last]):
            low = above + 1
            if any(line.level >= 0 for line in self._lines[low:high]):
                runs.append((low, high))
        return own, runs

    def repair_part(self, first: int, last: int, before: bytes, after: bytes) -> None:
        """Repair a part that has an error, between the texts that enclose it."""
        own, runs = self._find_runs(first, last)
        own_text = self._read_own_lines(own, runs)
        closer = self.repair_own(own, runs, before, after)
        if self._left < 0:
            return
        if closer is None:
            if _CONTAINERS.search(self._read(first, first + 1)) is None:
                self._blank(range(first, last))
            else:
                self._repair_content(own, runs, before, after)
            return
        for number, (low, high) in enumerate(runs):
            own_above = [at for at in own if at < low]
            ahead = self._read_own_lines(own_above, runs[:number])
            behind = (
                self._read_own_lines(
                    [at for at in own if at >= high], runs[number + 1 :]
                )
                + closer
                + b"\n"
                + after
            )
            is_sole = (
                len(runs) == 1
                and not closer
                and own_text == self._read_own_lines(own, runs)
            )
            if is_sole or not self._is_whole(
                before, ahead, self._read(low, high), behind
            ):
                self._repair_run(low, high, before + ahead, behind)
            if self._left < 0:
                return
        if closer:
            self._write_closer(last, closer)

    def _repair_content(
        self, own: list[int], runs: list[tuple[int, int]], before: bytes, after: bytes
    ) -> None:
        """Blank the lines that enclose runs of deeper ones, and repair the runs."""
        self._blank(own)
        for low, high in runs:
            self._repair_run(low, high, before, after)

    def _write_closer(self, line: int, closer: bytes) -> None:
        """Write what closes a part before a line, if there is room."""
        start = self._find_room(line)
        if start is None:
            return
        end = start + len(closer)
        if self.text[start : end + 1].isspace():
            self.text[start:end] = closer[: len(self.text) - start]

    def repair_own(
        self, own: list[int], runs: list[tuple[int, int]], before: bytes, after: bytes
    ) -> bytes | None:
        """Repair the lines that enclose runs of deeper ones; return what must close them, or None if nothing helps."""
        own_text = self._read_own_lines(own, runs)
        if self._is_whole(before, own_text, after):
            return b""
        if runs:
            for closer in _CLOSERS:
                if self._is_whole(before, own_text, closer + b"\n", after):
                    return closer
            for low, _ in runs[:_MOST_TRIES]:
                if (brace := self._find_room(low)) is not None:
                    letter = self.text[brace]
                    self.text[brace] = ord("{")
                    if self._is_whole(before, self._read_own_lines(own, runs), after):
                        return b""
                    self.text[brace] = letter
        for at in own[1 : _MOST_TRIES + 1]:
            if self._is_whole(
                before,
                self._read_own_lines([other for other in own if other != at], runs),
                after,
            ):
                self._blank([at])
                return b""
        return None

    def _find_room(self, line: int) -> int | None:
        """Return where the last non-blank character before a line ends, or None if no blank follows it."""
        for at in range(line - 1, -1, -1):
            if text := self._read(at, at + 1).rstrip():
                end = self._lines[at].start + len(text)
                if end < self._lines[line - 1].end:
                    return end
                return None
        return 0

    def _split(self, low: int, high: int) -> list[tuple[int, int]]:
        """Return the parts of some lines: each from one line at the level of the first line to the next such line."""
        parts = list[tuple[int, int]]()
        start = -1
        level = -1
        leads = False
        open_spaces = 0
        for at in range(low, high):
            line = self._lines[at]
            if line.level < 0 or at in self._inside:
                continue
            if level < 0:
                level = line.level
            if line.level != level:
                continue
            text = bytes(self.text[line.start : line.end]).lstrip()
            # In C++ the content of a namespace is at its level, so the namespace's
            # lines enclose nothing.
            opens = self._flat and _NAMESPACE.match(text) is not None
            if opens or (
                open_spaces
                and text.startswith(b"}")
                and (start < 0 or self._lines[at - 1].level < 0 or b"namespace" in text)
            ):
                if opens:
                    open_spaces += 1
                else:
                    open_spaces -= 1
                if start >= 0:
                    parts.append((start, at))
                start = -1
                leads = False
                continue
            if start >= 0 and _CONTINUES.match(text):
                continue
            if not leads:
                if start >= 0:
                    parts.append((start, at))
                start = at
            leads = _LEADS.match(text) is not None
        if start >= 0:
            parts.append((start, high))
        return parts

    def _is_known(self, first: int, last: int, known: Sequence[Span]) -> bool:
        """Return whether a part begins and ends where nodes without an error do."""
        text = self._read(first, last)
        begin = self._lines[first].start
        start = begin + len(text) - len(text.lstrip())
        end = begin + len(text.rstrip())
        at = bisect_left(known, (start, 0))
        while at < len(known) and known[at][0] == start:
            at += 1
            start = known[at - 1][1]
            while start < end and self.text[start : start + 1].isspace():
                start += 1
        if start < end or at == 0:
            return False
        return known[at - 1][1] <= self._lines[last - 1].end

    def _is_whole(self, *texts: bytes) -> bool:
        """Return whether texts, joined, parse without an error; False once enough has been parsed."""
        text = b"".join(texts)
        self._left -= len(text) + _PARSE_COST
        if self._left < 0:
            return False
        seconds = self._deadline - time.thread_time()
        tree = parse_tree(self._grammar, text, seconds)
        return not tree.root_node.has_error

    def _read_own_lines(
        self, own: Iterable[int], runs: Iterable[tuple[int, int]]
    ) -> bytes:
        """Return a part's own lines without the runs between them."""
        if self._empty:
            heads = {low - 1 for low, _ in runs}
        else:
            heads = set[int]()
        texts = list[bytes]()
        for at in own:
            line = self._read(at, at + 1)
            texts.append(line)
            if at in heads and line.rstrip().endswith(b":"):
                indent = b" " * (self._lines[at].level + 1)
                texts.append(indent + self._empty)
        return b"".join(texts)

    def _read(self, first: int, last: int) -> bytes:
        start = self._lines[first].start
        end = self._lines[last - 1].end
        return bytes(self.text[start:end])

    def _blank(self, lines: Iterable[int]) -> None:
        for at in lines:
            start, end, level = self._lines[at]
            if level >= 0:
                line = self._read(at, at + 1)
                self.text[start:end] = _BLANK.sub(b" ", line)
                self.blanked.append((start, end))


def find_inner_lines(
    lines: Iterable[bytes], quotes: re.Pattern[bytes]
) -> frozenset[int]:
    """Return the lines that begin inside a string or comment of several lines."""
    inside = set[int]()
    closer = b""
    for at, line in enumerate(lines):
        if closer:
            inside.add(at)
        elif line.lstrip().startswith((b"//", b"#")):
            continue
        for quote in quotes.findall(line.lstrip()):
            if not closer and quote != b"*/":
                closer = b"*/" if quote == b"/*" else quote
            elif quote == closer:
                closer = b""
    return frozenset(inside)
