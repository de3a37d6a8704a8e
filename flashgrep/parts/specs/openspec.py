"""Parsing a specification by OpenSpec's conventions. It never fails; problems are part of the result.

A heading is recognised by its first word, at any level, so that a file with one # too few can still be read; a wrong
level, a missing name or a wrong place is reported as a problem. Of Markdown, only headings and the lines between them
matter. The content of a code fence is always text; front matter and comments are left out. A fence or comment that is
never closed extends to the end of the file, as in CommonMark.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from flashgrep.parts.specs.spec import (
    Keyword,
    Operation,
    Problem,
    Requirement,
    Scenario,
    Spec,
    Step,
)

SECTION_LEVEL: Final = 2
REQUIREMENT_LEVEL: Final = 3
SCENARIO_LEVEL: Final = 4
TAB: Final = 4

_END = re.compile(r"\r\n|\n|\r")
_FENCE = re.compile(r"[ \t>]*(?:[-*+] +|\d+[.)] +)?(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?P<text>[ \t].*|)$")
_TIGHT = re.compile(
    r" {0,3}(?P<marks>#{1,6})(?P<text>(?:requirement|scenario):.*)$", re.IGNORECASE
)
_BREAK = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")
_REQUIREMENT = re.compile(r"requirement:\s*(?P<name>.*)", re.IGNORECASE)
_SCENARIO = re.compile(r"scenario:\s*(?P<name>.*)", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"(?:(?P<operation>added|modified|removed|renamed)\s+)?(?:.*\s)?requirements?",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?"
    r"(?:(?P<mark>\*\*|__)(?P<bold>[A-Za-z]+):?(?P=mark)|(?P<plain>GIVEN|WHEN|THEN|AND|BUT)\b)"
    r":?[ \t]*(?P<text>.*)"
)
_KEYWORDS = frozenset({"GIVEN", "WHEN", "THEN", "AND", "BUT"})
_RENAMING = re.compile(
    r"\s*(?:[-*+]\s+)?[*_]*(?P<end>from|to)[*_]*:[*_]*\s*`?(?:#{1,6}\s*)?(?:requirement:)?(?P<name>.*)",
    re.IGNORECASE,
)
_REMOVED = re.compile(
    r"\s*[-*+]\s+`?(?:#{1,6}\s*)?requirement:(?P<name>.*)", re.IGNORECASE
)


class Line(NamedTuple):
    """A line without its end; ``code``: inside a fence, or a fence itself."""

    number: int
    text: str
    code: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether the line is empty, or a thematic break."""
        return not self.text.strip() or (
            not self.code and _BREAK.match(self.text) is not None
        )

    @property
    def is_item(self) -> bool:
        """Whether it begins a list item."""
        return not self.code and _ITEM.match(self.text) is not None


@dataclass(slots=True)
class Block:
    """A heading and the lines up to the next one; level 0: the lines before the first heading."""

    level: int
    heading: str
    line: int
    body: list[Line] = field(default_factory=list)


def parse(text: str) -> Spec:
    """Return the specification in a file, and its problems, in the order of lines."""
    problems: list[Problem] = []
    parser = _Parser(problems)
    for block in split_blocks(text.removeprefix("\ufeff"), problems):
        parser.take(block)
    purpose = parser.purpose
    return Spec(
        title=parser.title,
        purpose=None if purpose is None else join_prose(purpose.body),
        purpose_line=1 if purpose is None else purpose.line,
        requirements=tuple(
            Requirement(
                draft.name,
                draft.line,
                draft.operation,
                join_prose(draft.body),
                draft.renamed_from,
                tuple(_parse_scenario(block) for block in draft.scenarios),
            )
            for draft in parser.drafts
        ),
        operations=frozenset(parser.operations),
        problems=tuple(sorted(problems, key=lambda problem: problem.line)),
    )


def split_blocks(text: str, problems: list[Problem]) -> list[Block]:
    """Return a document's headings with their lines; adds faults of its Markdown to ``problems``."""
    blocks = [Block(0, "", 1)]
    for line in _read_lines(text, problems):
        if line.code:
            heading = None
        else:
            heading = _HEADING.match(line.text) or _TIGHT.match(line.text)
        if heading is None:
            blocks[-1].body.append(line)
            continue
        if heading.re is _TIGHT:
            problems.append(
                Problem(line.number, "no space after the # of a heading", "warning")
            )
        # Drop a closing sequence of # if a space is before it. Not by a pattern, which
        # would backtrack at every space.
        title = heading["text"].strip(" \t")
        bare = title.rstrip("#")
        if bare.endswith((" ", "\t")) or not bare:
            title = bare.rstrip(" \t")
        blocks.append(Block(len(heading["marks"]), title, line.number))
    return blocks


def _count_front_matter(lines: Sequence[Line]) -> int:
    """Return the number of lines of front matter, which must be closed; otherwise its first is a thematic break."""
    if lines[0].text.rstrip() != "---":
        return 0
    for line in lines[1:]:
        if line.text.rstrip() in {"---", "..."}:
            return line.number
    return 0


def _find_fence(text: str) -> str:
    """Return the mark of the code fence that a line opens, or ""."""
    opening = _FENCE.match(text)
    if opening is None:
        return ""
    # A backtick in the info string makes it inline code in a paragraph (CommonMark
    # 4.5).
    is_inline = opening["mark"][0] == "`" and "`" in opening["info"]
    if is_inline:
        return ""
    return opening["mark"]


def _read_lines(text: str, problems: list[Problem]) -> Iterator[Line]:
    """Yield a document's lines without front matter and comments, marking those that are code."""
    lines = []
    for number, line_text in enumerate(_END.split(text), 1):
        lines.append(Line(number, line_text))
    rest = iter(lines[_count_front_matter(lines) :])
    fence = ""
    fence_line = 0
    for line in rest:
        if fence:
            mark = line.text.strip(" \t>")
            # CommonMark: the closing fence is at least as long, of the same character,
            # with nothing after it.
            if len(mark) >= len(fence) and set(mark) == {fence[0]}:
                fence = ""
            yield line._replace(code=True)
        elif line.text.lstrip().startswith("<!--"):
            if "-->" not in line.text and not any(
                "-->" in following.text for following in rest
            ):
                problems.append(Problem(line.number, "comment <!-- is never closed"))
        else:
            fence = _find_fence(line.text)
            fence_line = line.number
            yield line._replace(code=bool(fence))
    if fence:
        problems.append(Problem(fence_line, f"code fence {fence} is never closed"))


def join_prose(lines: Iterable[Line]) -> str:
    """Return lines as a text, without rules, blank lines at its ends, and repeated blank lines."""
    parts: list[str] = []
    for line in lines:
        if line.is_blank:
            text = ""
        else:
            text = line.text.expandtabs(TAB).rstrip()
        if text or (parts and (parts[-1] or line.code)):
            parts.append(text)
    return textwrap.dedent("\n".join(parts)).strip("\n")


def join_clause(first: str, more: list[Line]) -> str:
    """Return a clause: wrapped lines are joined to the line they continue; lists and code keep their own lines."""
    expanded = [line.text.expandtabs(TAB) for line in more]
    margin = min(
        (len(text) - len(text.lstrip()) for text in expanded if text.strip()), default=0
    )
    paragraphs = [[first.strip()]]
    goes_on = True
    for line, text in zip(more, expanded, strict=True):
        if line.is_blank:
            shown_text = ""
        else:
            shown_text = text[margin:].rstrip()
        if goes_on and shown_text and not line.code and not line.is_item:
            paragraphs[-1].append(shown_text.strip())
        else:
            paragraphs.append([shown_text])
        goes_on = bool(shown_text) and not line.code
    return "\n".join(
        " ".join(part for part in parts if part) if len(parts) > 1 else parts[0]
        for parts in paragraphs
    ).strip()


@dataclass(slots=True)
class _Draft:
    """A requirement that is still being collected; its scenarios are blocks."""

    name: str
    line: int
    operation: Operation | None
    body: list[Line] = field(default_factory=list)
    renamed_from: str | None = None
    scenarios: list[Block] = field(default_factory=list)


class _Parser:
    """Consumes blocks in order, keeping track of the current section and requirement."""

    def __init__(self, problems: list[Problem]) -> None:
        self.drafts: list[_Draft] = []
        self.title: str | None = None
        self.purpose: Block | None = None
        self.operations: set[Operation] = set()
        self._problems = problems
        self._operation: Operation | None = None
        self._in_requirements = False
        """Whether the current section is one of requirements."""
        self._open: _Draft | None = None

    def take(self, block: Block) -> None:
        if match := _REQUIREMENT.fullmatch(block.heading):
            name = match["name"].strip()
            self._check_level("requirement", REQUIREMENT_LEVEL, block)
            if not self._in_requirements:
                self._report(
                    block.line,
                    f"requirement {name!r} is outside a section of requirements",
                )
            # Added all the same: a misplaced heading must not hide a requirement.
            self._open = _Draft(name, block.line, self._operation, block.body)
            self.drafts.append(self._open)
        elif match := _SCENARIO.fullmatch(block.heading):
            name = match["name"].strip()
            self._check_level("scenario", SCENARIO_LEVEL, block)
            if self._open is None:
                self._report(block.line, f"scenario {name!r} is outside a requirement")
            else:
                self._open.scenarios.append(
                    Block(block.level, name, block.line, block.body)
                )
        elif block.level > REQUIREMENT_LEVEL and self._open is not None:
            # Any other heading belongs, with its lines, to the scenario or requirement
            # that contains it.
            inner = self._open.scenarios and block.level > SCENARIO_LEVEL
            heading = Line(block.line, f"{'#' * block.level} {block.heading}")
            if inner:
                body = self._open.scenarios[-1].body
            else:
                body = self._open.body
            body.extend([Line(block.line, ""), heading, *block.body])
        elif block.level <= SECTION_LEVEL:
            # Headings of level 1 and 2 end a section; deeper ones outside a requirement
            # are prose.
            self._begin_section(block)
        else:
            self._open = None

    def _begin_section(self, block: Block) -> None:
        self._open = None
        self._operation = None
        self._in_requirements = False
        if match := _REQUIREMENTS.fullmatch(block.heading):
            self._in_requirements = True
            if match["operation"]:
                self._operation = cast("Operation", match["operation"].upper())
                self.operations.add(self._operation)
            if self._operation == "RENAMED":
                self._take_renamings(block.body)
            elif self._operation == "REMOVED":
                items = (
                    (line.number, _REMOVED.match(line.text))
                    for line in block.body
                    if not line.code
                )
                self.drafts += [
                    _Draft(_clean_name(item["name"]), at, "REMOVED")
                    for at, item in items
                    if item
                ]
        elif block.heading.lower() == "purpose":
            # The first one counts, as for the title.
            self.purpose = self.purpose or block
        elif block.level == 1 and self.title is None:
            self.title = block.heading

    def _take_renamings(self, lines: list[Line]) -> None:
        """Pair each FROM with the following TO."""
        before: tuple[str, int] | None = None

        def report_leftovers() -> None:
            if before is not None:
                self._report(
                    before[1], f"renamed FROM {before[0]!r} without a TO after it"
                )

        for line in lines:
            if line.code:
                match = None
            else:
                match = _RENAMING.match(line.text)
            if match is None:
                continue
            name = _clean_name(match["name"])
            if match["end"].lower() == "from":
                report_leftovers()
                before = (name, line.number)
            elif before is None:
                self._report(
                    line.number, f"renamed TO {name!r} without a FROM before it"
                )
            else:
                self.drafts.append(
                    _Draft(name, before[1], "RENAMED", renamed_from=before[0])
                )
                before = None
        report_leftovers()

    def _check_level(self, kind: str, level: int, block: Block) -> None:
        if block.level != level:
            self._report(
                block.line, f"{kind} heading has {block.level} #, must have {level}"
            )

    def _report(self, line: int, message: str) -> None:
        self._problems.append(Problem(line, message))


def _clean_name(name: str) -> str:
    return name.strip().removesuffix("`").strip()


def _parse_scenario(block: Block) -> Scenario:
    """Divide a scenario's lines into steps, each with its continuation, and the rest."""
    steps: list[tuple[Keyword, str, int, list[Line]]] = []
    rest: list[Line] = []
    current = rest
    after_blank = False
    for line in block.body:
        if line.code:
            match = None
        else:
            match = _STEP.match(line.text)
        if match:
            word = (match["bold"] or match["plain"]).upper()
        else:
            word = ""
        if match is not None and word in _KEYWORDS:
            current = []
            steps.append((cast("Keyword", word), match["text"], line.number, current))
        else:
            # An unindented line after a blank one ends the list, unless it is an item
            # itself.
            if after_blank and not (
                line.is_blank or line.is_item or line.text.startswith((" ", "\t"))
            ):
                current = rest
            current.append(line)
        after_blank = line.is_blank
    clauses = tuple(
        Step(keyword, join_clause(text, more), number)
        for keyword, text, number, more in steps
    )
    return Scenario(block.heading, block.line, clauses, join_prose(rest))
