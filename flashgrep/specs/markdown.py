"""As much of Markdown as specifications need: headings, and the lines between them.

What stands in a code fence is text, whatever it looks like; front matter and comments are left out. A fence or comment
that is never closed goes on to the end of the file, as CommonMark has it.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flashgrep.specs.model import Problem

TAB = 4

_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"[ \t>]*(?:[-*+] +|\d+[.)] +)?(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?P<text>[ \t].*|)$")
_TIGHT = re.compile(r" {0,3}(?P<marks>#{1,6})(?P<text>(?:requirement|scenario):.*)$", re.IGNORECASE)
_BREAK = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")


class Line(NamedTuple):
    """A line without its end; ``code``: inside a fence, or a fence itself."""

    number: int
    text: str
    code: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether it shows nothing: empty, or a rule between parts."""
        return not self.text.strip() or (not self.code and _BREAK.match(self.text) is not None)

    @property
    def is_item(self) -> bool:
        """Whether it begins an item of a list."""
        return not self.code and _ITEM.match(self.text) is not None


@dataclass(slots=True)
class Block:
    """A heading and the lines below it, up to the next one; level 0: the lines before the first."""

    level: int
    heading: str
    line: int
    body: list[Line] = field(default_factory=list)


def blocks_of(text: str) -> tuple[list[Block], list[Problem]]:
    """Return a document's headings with their lines, and what is wrong with its Markdown."""
    problems: list[Problem] = []
    blocks = [Block(0, "", 1)]
    for line in _Reader(problems).lines(text):
        found = None if line.code else _HEADING.match(line.text) or _TIGHT.match(line.text)
        if found is None:
            blocks[-1].body.append(line)
            continue
        if found.re is _TIGHT:
            problems.append(Problem(line.number, "no space after the # of a heading", "warning"))
        blocks.append(Block(len(found["marks"]), _title(found["text"]), line.number))
    return blocks, problems


def _title(text: str) -> str:
    """Return a heading's text without the # that may close it; by hand, a pattern would look back at every space."""
    shown = text.strip(" \t")
    bare = shown.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) or not bare else shown


def prose(lines: Iterable[Line]) -> str:
    """Return lines as they are, without blank ones around, rules, and more than one blank line in between."""
    shown: list[str] = []
    for line in lines:
        text = "" if line.is_blank else line.text.expandtabs(TAB).rstrip()
        if text or (shown and (shown[-1] or line.code)):
            shown.append(text)
    return textwrap.dedent("\n".join(shown)).strip("\n")


def flowing(first: str, more: list[Line]) -> str:
    """Return a clause: wrapped lines joined to the line they go on from, lists and code on lines of their own."""
    shown, goes_on = [[first.strip()]], True
    margin = min((_indent(line) for line in more if line.text.strip()), default=0)
    for line in more:
        text = "" if line.is_blank else line.text.expandtabs(TAB)[margin:].rstrip()
        if goes_on and text and not line.code and not line.is_item:
            shown[-1].append(text.strip())
        else:
            shown.append([text])
        goes_on = bool(text) and not line.code
    return "\n".join(
        " ".join(part for part in parts if part) if len(parts) > 1 else parts[0] for parts in shown
    ).strip()


def _indent(line: Line) -> int:
    text = line.text.expandtabs(TAB)
    return len(text) - len(text.lstrip())


class _Reader:
    """Reads lines, knowing what they stand in."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._fence = ""
        self._since = 0

    def lines(self, text: str) -> Iterator[Line]:
        lines = [Line(number, line) for number, line in enumerate(_END.split(text), 1)]
        rest = iter(lines[_front_matter(lines) :])
        for line in rest:
            if not self._fence and line.text.lstrip().startswith("<!--"):
                self._skip_comment(line, rest)
            else:
                yield self._told(line)
        if self._fence:
            self._problems.append(Problem(self._since, f"code fence {self._fence} is never closed"))

    def _told(self, line: Line) -> Line:
        if self._fence:
            if self._closes(line.text):
                self._fence = ""
            return line._replace(code=True)
        found = _FENCE.match(line.text)
        if found is None or (found["mark"][0] == "`" and "`" in found["info"]):
            return line
        self._fence, self._since = found["mark"], line.number
        return line._replace(code=True)

    def _closes(self, text: str) -> bool:
        mark = text.strip(" \t>")
        return len(mark) >= len(self._fence) and set(mark) == {self._fence[0]}

    def _skip_comment(self, line: Line, rest: Iterator[Line]) -> None:
        begun = line.number
        while "-->" not in line.text:
            following = next(rest, None)
            if following is None:
                self._problems.append(Problem(begun, "comment <!-- is never closed"))
                return
            line = following


def _front_matter(lines: list[Line]) -> int:
    """Return how many lines of metadata the document begins with."""
    if lines[0].text.rstrip() != "---":
        return 0
    ends = (line.number for line in lines[1:] if line.text.rstrip() in {"---", "..."})
    return next(ends, 0)
