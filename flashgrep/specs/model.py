"""What a specification says: requirements, and the scenarios that show them; lines are counted from 1."""

from dataclasses import dataclass
from typing import Literal

Operation = Literal["ADDED", "MODIFIED", "REMOVED", "RENAMED"]
Keyword = Literal["GIVEN", "WHEN", "THEN", "AND", "BUT"]
Severity = Literal["error", "warning"]


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
    """An example of a requirement; ``text`` is what stands in it beside the steps."""

    name: str
    line: int
    steps: tuple[Step, ...]
    text: str = ""

    @property
    def given(self) -> list[str]:
        """Return what holds before."""
        return self._clauses()["GIVEN"]

    @property
    def when(self) -> str:
        """Return what happens, further conditions on lines of their own."""
        first, *more = self._clauses()["WHEN"] or [""]
        return "\n".join([first, *(f"AND {clause}" for clause in more)])

    @property
    def then(self) -> list[str]:
        """Return what follows, one clause an item."""
        return self._clauses()["THEN"]

    def _clauses(self) -> dict[str, list[str]]:
        """Sort the steps by their clause: AND and BUT go with what they follow, whatever follows THEN with it."""
        found: dict[str, list[str]] = {"GIVEN": [], "WHEN": [], "THEN": []}
        last = "GIVEN"
        for step in self.steps:
            word = step.keyword
            if last == "THEN" and word in {"GIVEN", "WHEN"}:
                found["THEN"].append(f"{word} {step.text}")  # a second round: kept in its order
                continue
            last = word if word in found else last
            found[last].append(f"BUT {step.text}" if word == "BUT" else step.text)
        return found


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

    @property
    def is_delta(self) -> bool:
        """Whether the file adds, modifies, removes or renames requirements of another."""
        return bool(self.operations)
