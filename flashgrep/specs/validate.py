"""What is missing from a specification, or said twice, beside what could not be read in it."""

import re
from collections.abc import Iterable, Iterator

from flashgrep.specs.model import Problem, Requirement, Scenario, Spec

_BINDING = re.compile(r"\b(?:SHALL|MUST)\b")


def validate(spec: Spec) -> list[Problem]:
    """Return everything that is wrong with a file, in the order of its lines."""
    found = [*spec.problems, *_about_the_whole(spec), *_repeated_requirements(spec)]
    for requirement in spec.requirements:
        found += _about_requirement(requirement)
    return sorted(found, key=lambda problem: (problem.line, problem.message))


def _about_the_whole(spec: Spec) -> Iterator[Problem]:
    if not spec.requirements:
        yield Problem(1, "no requirements: none has a heading like ### Requirement: name")
    if spec.is_delta:
        return
    if not spec.title:
        yield Problem(1, "no title: the file has no heading with one #", "warning")
    if not spec.purpose:
        yield Problem(spec.purpose_line, "no purpose: nothing stands under ## Purpose", "warning")


def _repeated_requirements(spec: Spec) -> Iterator[Problem]:
    """Find names said twice; what is renamed may be modified as well, by its new name."""
    renamed = [one for one in spec.requirements if one.operation == "RENAMED"]
    others = [one for one in spec.requirements if one.operation != "RENAMED"]
    for group in (renamed, others):
        yield from _repeated("requirement", ((one.name, one.line) for one in group))


def _repeated(kind: str, named: Iterable[tuple[str, int]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for name, line in named:
        if name and name in first:
            yield Problem(line, f"{kind} {name!r} stands in line {first[name]} already")
        first.setdefault(name, line)


def _about_requirement(requirement: Requirement) -> Iterator[Problem]:
    name, line = requirement.name, requirement.line
    if not name:
        yield Problem(line, "requirement without a name")
    if requirement.operation in {"REMOVED", "RENAMED"}:
        return
    if not requirement.text:
        yield Problem(line, f"requirement {name!r} says nothing before its first scenario")
    elif not _BINDING.search(requirement.text):
        yield Problem(line, f"requirement {name!r} says neither SHALL nor MUST", "warning")
    if not requirement.scenarios:
        yield Problem(line, f"requirement {name!r} has no scenario")
    yield from _repeated("scenario", ((one.name, one.line) for one in requirement.scenarios))
    for scenario in requirement.scenarios:
        yield from _about_scenario(scenario)


def _about_scenario(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.name:
        yield Problem(scenario.line, "scenario without a name")
    words = {step.keyword for step in scenario.steps}
    for word in ("WHEN", "THEN"):
        if word not in words:
            yield Problem(scenario.line, f"scenario {scenario.name!r} has no {word}")
    for step in scenario.steps:
        if not step.text:
            yield Problem(step.line, f"{step.keyword} without a text")
