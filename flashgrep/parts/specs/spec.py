"""The model of a specification: requirements and their scenarios; and its validation.

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
    """A problem of a file, and its line; despite a warning everything can be read."""

    line: int
    message: str
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Step:
    """A clause of a scenario, with its continuation lines."""

    keyword: Keyword
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """An example of a requirement; ``text`` is everything except its steps."""

    name: str
    line: int
    steps: tuple[Step, ...]
    text: str = ""

    @property
    def given(self) -> list[str]:
        """Return the preconditions."""
        return self._sort_steps()["GIVEN"]

    @property
    def when(self) -> str:
        """Return what happens, with further conditions on their own lines."""
        first, *more = self._sort_steps()["WHEN"] or [""]
        return "\n".join([first, *(f"AND {clause}" for clause in more)])

    @property
    def then(self) -> list[str]:
        """Return the outcomes, one item per clause."""
        return self._sort_steps()["THEN"]

    def _sort_steps(self) -> dict[str, list[str]]:
        """Group the steps by clause: AND and BUT belong to the clause before them; everything after THEN, to THEN."""
        clauses: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
        last = "GIVEN"
        for step in self.steps:
            word = step.keyword
            if last == "THEN" and word in {"GIVEN", "WHEN"}:
                clauses["THEN"].append(
                    f"{word} {step.text}"
                )  # a second round of steps; keep their order
                continue
            if word in clauses:
                last = word
            # Without its word the step would say the opposite.
            if word == "BUT":
                clauses[last].append(f"BUT {step.text}")
            else:
                clauses[last].append(step.text)
        return clauses


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement, and in a delta file the operation on it."""

    name: str
    line: int
    operation: Operation | None
    text: str = ""
    renamed_from: str | None = None
    scenarios: tuple[Scenario, ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """One file: a specification, or (``is_delta``) proposed changes to one."""

    title: str | None
    """None: there is no title."""
    purpose: str | None
    purpose_line: int
    requirements: tuple[Requirement, ...]
    operations: frozenset[Operation]
    problems: tuple[Problem, ...]
    """Faults of its Markdown."""

    @property
    def is_delta(self) -> bool:
        """Whether the file adds, modifies, removes or renames requirements of another file."""
        return bool(self.operations)


def _check_scenario(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.name:
        yield Problem(scenario.line, "scenario without a name")
    for word in sorted({"WHEN", "THEN"} - {step.keyword for step in scenario.steps}):
        yield Problem(scenario.line, f"scenario {scenario.name!r} has no {word}")
    for step in scenario.steps:
        if not step.text:
            yield Problem(step.line, f"{step.keyword} without text")


def validate(spec: Spec) -> list[Problem]:
    """Return all problems of a file, in the order of lines."""
    problems = list(spec.problems)
    if not spec.requirements:
        problems.append(
            Problem(
                1, "no requirements: there is no heading like ### Requirement: name"
            )
        )
    if not spec.is_delta and not spec.title:
        problems.append(
            Problem(1, "no title: there is no heading with one #", "warning")
        )
    if not spec.is_delta and not spec.purpose:
        problems.append(
            Problem(
                spec.purpose_line,
                "no purpose: there is no text under ## Purpose",
                "warning",
            )
        )
    # A renamed requirement may also be modified, under its new name.
    for is_renamed in (True, False):
        group = [
            current_requirement
            for current_requirement in spec.requirements
            if (current_requirement.operation == "RENAMED") == is_renamed
        ]
        problems += _find_duplicates("requirement", group)
    for requirement in spec.requirements:
        problems += _check_requirement(requirement)
        # To remove or rename a requirement, a delta only names it; the text is in the
        # specification.
        if requirement.operation not in _WITHOUT_TEXT:
            for scenario in requirement.scenarios:
                problems += _check_scenario(scenario)
    return sorted(problems, key=lambda problem: (problem.line, problem.message))


def _find_duplicates(
    kind: str, parts: Iterable[Requirement | Scenario]
) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for part in parts:
        if part.name and part.name in first:
            yield Problem(
                part.line,
                f"{kind} {part.name!r} is already defined in line {first[part.name]}",
            )
        first.setdefault(part.name, part.line)


def _check_requirement(requirement: Requirement) -> Iterator[Problem]:
    name = requirement.name
    line = requirement.line
    if not name:
        yield Problem(line, "requirement without a name")
    if requirement.operation in _WITHOUT_TEXT:
        return
    if not requirement.text:
        yield Problem(
            line, f"requirement {name!r} has no text before its first scenario"
        )
    elif not _BINDING.search(requirement.text):
        # RFC 2119's key words, in capitals: an ordinary "must" does not make a
        # requirement.
        yield Problem(
            line, f"requirement {name!r} has neither SHALL nor MUST", "warning"
        )
    if not requirement.scenarios:
        yield Problem(line, f"requirement {name!r} has no scenario")
    yield from _find_duplicates("scenario", requirement.scenarios)
