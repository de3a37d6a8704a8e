"""A file's text to what it specifies, after OpenSpec's conventions: never a failure, faults are told beside it.

Headings are known by their first word at any level, so that a file with one # too few can still be read; what is of the
wrong level, of no name or in no place is a problem of the file.
"""

import re
from dataclasses import dataclass, field
from typing import Final, cast

from flashgrep.specs.markdown import Block, Line, blocks_of, flowing, prose
from flashgrep.specs.model import Keyword, Operation, Problem, Requirement, Scenario, Spec, Step

SECTION_LEVEL: Final = 2
REQUIREMENT_LEVEL: Final = 3
SCENARIO_LEVEL: Final = 4

_REQUIREMENT = re.compile(r"requirement:\s*(?P<name>.*)", re.IGNORECASE)
_SCENARIO = re.compile(r"scenario:\s*(?P<name>.*)", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"(?:(?P<operation>added|modified|removed|renamed)\s+)?(?:.*\s)?requirements?", re.IGNORECASE
)
_STEP = re.compile(
    r"[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?"
    r"(?:(?P<mark>\*\*|__)(?P<bold>[A-Za-z]+):?(?P=mark)|(?P<plain>GIVEN|WHEN|THEN|AND|BUT)\b)"
    r":?[ \t]*(?P<text>.*)"
)
_KEYWORDS = frozenset({"GIVEN", "WHEN", "THEN", "AND", "BUT"})
_RENAMING = re.compile(
    r"\s*(?:[-*+]\s+)?[*_]*(?P<end>from|to)[*_]*:[*_]*\s*`?(?:#{1,6}\s*)?(?:requirement:)?(?P<name>.*)", re.IGNORECASE
)
_REMOVED = re.compile(r"\s*[-*+]\s+`?(?:#{1,6}\s*)?requirement:(?P<name>.*)", re.IGNORECASE)


def parse(text: str) -> Spec:
    """Return what a file specifies, and what is wrong with it, in the order of its lines."""
    blocks, problems = blocks_of(text.removeprefix("\ufeff"))
    parser = _Parser(problems)
    for block in blocks:
        parser.take(block)
    return parser.done()


@dataclass(slots=True)
class _Draft:
    """A requirement whose lines are still being gathered; its scenarios are blocks named by their headings."""

    name: str
    line: int
    operation: Operation | None
    body: list[Line] = field(default_factory=list)
    renamed_from: str | None = None
    scenarios: list[Block] = field(default_factory=list)

    def done(self) -> Requirement:
        examples = tuple(_scenario(block) for block in self.scenarios)
        return Requirement(self.name, self.line, self.operation, prose(self.body), self.renamed_from, examples)


class _Parser:
    """Takes one heading after the other; knows the section and the requirement they stand in."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._drafts: list[_Draft] = []
        self._title: str | None = None
        self._purpose: Block | None = None
        self._operations: set[Operation] = set()
        self._operation: Operation | None = None
        self._inside = False
        """Whether a section of requirements is open."""
        self._open: _Draft | None = None

    def done(self) -> Spec:
        purpose = self._purpose
        return Spec(
            title=self._title,
            purpose=None if purpose is None else prose(purpose.body),
            purpose_line=1 if purpose is None else purpose.line,
            requirements=tuple(draft.done() for draft in self._drafts),
            operations=frozenset(self._operations),
            problems=tuple(sorted(self._problems, key=lambda problem: problem.line)),
        )

    def take(self, block: Block) -> None:
        if found := _REQUIREMENT.fullmatch(block.heading):
            self._require(found["name"].strip(), block)
        elif found := _SCENARIO.fullmatch(block.heading):
            self._exemplify(found["name"].strip(), block)
        elif block.level > REQUIREMENT_LEVEL and self._open is not None:
            _go_on(self._open, block)
        elif block.level <= SECTION_LEVEL:
            self._section(block)
        else:
            self._open = None

    def _section(self, block: Block) -> None:
        self._open, self._operation, self._inside = None, None, False
        if found := _REQUIREMENTS.fullmatch(block.heading):
            self._inside = True
            if found["operation"]:
                self._operate(cast("Operation", found["operation"].upper()), block)
        elif block.heading.lower() == "purpose":
            self._purpose = self._purpose or block
        elif block.level == 1 and self._title is None:
            self._title = block.heading

    def _operate(self, operation: Operation, block: Block) -> None:
        self._operation = operation
        self._operations.add(operation)
        if operation == "RENAMED":
            self._rename(block.body)
        elif operation == "REMOVED":
            found = ((line.number, _REMOVED.match(line.text)) for line in block.body if not line.code)
            self._drafts += [_Draft(_bare(name["name"]), number, operation) for number, name in found if name]

    def _rename(self, lines: list[Line]) -> None:
        before: tuple[str, int] | None = None
        for line in lines:
            found = None if line.code else _RENAMING.match(line.text)
            if found is None:
                continue
            name = _bare(found["name"])
            if found["end"].lower() == "from":
                self._unpaired(before)
                before = (name, line.number)
            elif before is None:
                self._say(line.number, f"renamed TO {name!r} without a FROM before it")
            else:
                self._drafts.append(_Draft(name, before[1], "RENAMED", renamed_from=before[0]))
                before = None
        self._unpaired(before)

    def _unpaired(self, before: tuple[str, int] | None) -> None:
        if before is not None:
            self._say(before[1], f"renamed FROM {before[0]!r} without a TO after it")

    def _require(self, name: str, block: Block) -> None:
        self._check_level("requirement", REQUIREMENT_LEVEL, block)
        if not self._inside:
            self._say(block.line, f"requirement {name!r} stands outside a section of requirements")
        self._open = _Draft(name, block.line, self._operation, block.body)
        self._drafts.append(self._open)

    def _exemplify(self, name: str, block: Block) -> None:
        self._check_level("scenario", SCENARIO_LEVEL, block)
        if self._open is None:
            self._say(block.line, f"scenario {name!r} stands outside a requirement")
        else:
            self._open.scenarios.append(Block(block.level, name, block.line, block.body))

    def _check_level(self, kind: str, level: int, block: Block) -> None:
        if block.level != level:
            self._say(block.line, f"heading of a {kind} has {block.level} #, needs {level}")

    def _say(self, line: int, message: str) -> None:
        self._problems.append(Problem(line, message))


def _go_on(draft: _Draft, block: Block) -> None:
    """Take a heading that is none of ours, with its lines, as part of what it stands in."""
    heading = Line(block.line, f"{'#' * block.level} {block.heading}")
    inner = draft.scenarios and block.level > SCENARIO_LEVEL
    (draft.scenarios[-1].body if inner else draft.body).extend([Line(block.line, ""), heading, *block.body])


def _bare(name: str) -> str:
    return name.strip().removesuffix("`").strip()


def _scenario(block: Block) -> Scenario:
    """Sort a scenario's lines into steps, each with what follows it, and the rest."""
    steps: list[tuple[Keyword, str, Line, list[Line]]] = []
    rest: list[Line] = []
    taking, blank = rest, False
    for line in block.body:
        found = _step(line)
        if found is not None:
            taking = []
            steps.append((*found, line, taking))
        elif taking is not rest and blank and _ends_list(line):
            taking = rest
            rest.append(line)
        else:
            taking.append(line)
        blank = line.is_blank
    done = tuple(Step(keyword, flowing(text, more), line.number) for keyword, text, line, more in steps)
    return Scenario(block.heading, block.line, done, prose(rest))


def _step(line: Line) -> tuple[Keyword, str] | None:
    found = None if line.code else _STEP.match(line.text)
    if found is None:
        return None
    word = (found["bold"] or found["plain"]).upper()
    return (cast("Keyword", word), found["text"]) if word in _KEYWORDS else None


def _ends_list(line: Line) -> bool:
    """Whether a line behind a blank one belongs to no item before it: it is not indented, and no item itself."""
    return not line.is_blank and not line.is_item and not line.text.startswith((" ", "\t"))
