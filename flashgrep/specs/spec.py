"""What a specification says: requirements, and the scenarios that show them; and what is missing or wrong in it.

Lines are counted from 1.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Operation = Literal["ADDED", "MODIFIED", "REMOVED", "RENAMED"]
Keyword = Literal["GIVEN", "WHEN", "THEN", "AND", "BUT"]
Severity = Literal["error", "warning"]

_WITHOUT_TEXT = frozenset({"REMOVED", "RENAMED"})
_BINDING = re.compile(r"\b(?:SHALL|MUST)\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, and in which line; a warning leaves everything readable."""

    line: int
    message: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Step:
    """One clause of a scenario, with the lines that belong to it."""

    keyword: Keyword
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """An example of a requirement; ``text`` is what is in it besides the steps."""

    name: str
    line: int
    steps: tuple[Step, ...]
    text: str = ""

    @property
    def given(self) -> list[str]:
        """Return what holds before."""
        return self._sort_steps()["GIVEN"]

    @property
    def when(self) -> str:
        """Return what happens, further conditions on lines of their own."""
        first, *more = self._sort_steps()["WHEN"] or [""]
        return "\n".join([first, *(f"AND {clause}" for clause in more)])

    @property
    def then(self) -> list[str]:
        """Return what follows, one clause an item."""
        return self._sort_steps()["THEN"]

    def _sort_steps(self) -> dict[str, list[str]]:
        """Sort the steps by their clause: AND and BUT go with what they follow, whatever follows THEN with it."""
        clauses: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
        last = "GIVEN"
        for step in self.steps:
            word = step.keyword
            if last == "THEN" and word in {"GIVEN", "WHEN"}:
                clauses["THEN"].append(f"{word} {step.text}")  # a second round: kept in its order
                continue
            last = word if word in clauses else last
            clauses[last].append(f"BUT {step.text}" if word == "BUT" else step.text)
        return clauses


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is required, and in a delta file what becomes of it."""

    name: str
    line: int
    operation: Operation | None
    text: str = ""
    renamed_from: str | None = None
    scenarios: tuple[Scenario, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """One file: a specification, or (``is_delta``) the changes that somebody proposes to one."""

    title: str | None
    """None: no heading says it."""
    purpose: str | None
    purpose_line: int
    requirements: tuple[Requirement, ...]
    operations: frozenset[Operation]
    problems: tuple[Problem, ...]
    """What was wrong with its Markdown."""

    @property
    def is_delta(self) -> bool:
        """Whether the file adds, modifies, removes or renames requirements of another."""
        return bool(self.operations)


def validate(spec: Spec) -> list[Problem]:
    """Return everything that is wrong with a file, in the order of its lines."""
    problems = list(spec.problems)
    if not spec.requirements:
        problems.append(Problem(1, "no requirements: none has a heading like ### Requirement: name"))
    if not spec.is_delta and not spec.title:
        problems.append(Problem(1, "no title: the file has no heading with one #", "warning"))
    if not spec.is_delta and not spec.purpose:
        problems.append(Problem(spec.purpose_line, "no purpose: nothing stands under ## Purpose", "warning"))
    # What is renamed may be modified as well, by its new name.
    for is_renamed in (True, False):
        group = [one for one in spec.requirements if (one.operation == "RENAMED") == is_renamed]
        problems += _find_duplicates("requirement", group)
    for requirement in spec.requirements:
        problems += _check_requirement(requirement)
        # A delta that removes or renames only names the requirement; its text is in the specification.
        if requirement.operation not in _WITHOUT_TEXT:
            for scenario in requirement.scenarios:
                if not scenario.name:
                    problems.append(Problem(scenario.line, "scenario without a name"))
                for word in sorted({"WHEN", "THEN"} - {step.keyword for step in scenario.steps}):
                    problems.append(Problem(scenario.line, f"scenario {scenario.name!r} has no {word}"))
                problems += [
                    Problem(one.line, f"{one.keyword} without a text") for one in scenario.steps if not one.text
                ]
    return sorted(problems, key=lambda problem: (problem.line, problem.message))


def _find_duplicates(kind: str, parts: Iterable[Requirement | Scenario]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for part in parts:
        if part.name and part.name in first:
            yield Problem(part.line, f"{kind} {part.name!r} stands in line {first[part.name]} already")
        first.setdefault(part.name, part.line)


def _check_requirement(requirement: Requirement) -> Iterator[Problem]:
    name, line = requirement.name, requirement.line
    if not name:
        yield Problem(line, "requirement without a name")
    if requirement.operation in _WITHOUT_TEXT:
        return
    if not requirement.text:
        yield Problem(line, f"requirement {name!r} says nothing before its first scenario")
    elif not _BINDING.search(requirement.text):
        # RFC 2119's words, in capitals: "must" in a sentence is not yet a requirement.
        yield Problem(line, f"requirement {name!r} says neither SHALL nor MUST", "warning")
    if not requirement.scenarios:
        yield Problem(line, f"requirement {name!r} has no scenario")
    yield from _find_duplicates("scenario", requirement.scenarios)
