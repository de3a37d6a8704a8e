"""Methods on specifications: listing them, their requirements, one scenario, searching and validating them."""

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, NotRequired, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project
from flashgrep.base.errors import (
    Forbidden,
    InvalidParams,
    ProviderUnavailable,
    Unavailable,
)
from flashgrep.base.model import Document, Skipped, path_to_json, path_to_text
from flashgrep.base.registry import Call, Handler, NameText, Usage, handler
from flashgrep.files.extract import extract
from flashgrep.files.openat import Descriptor
from flashgrep.files.system import read_all
from flashgrep.methods.common import FilePlace, ProjectParams
from flashgrep.parts.meaning.embed.providers import embedder_of
from flashgrep.parts.specs.search import SPEC_VECTORS, Kind, SpecMatch, search
from flashgrep.parts.specs.spec import Severity, validate
from flashgrep.parts.specs.spec_repository import (
    ProjectSpec,
    Read,
    SpecFile,
    find_spec_files,
    get_requirement,
    get_spec_by_id,
    parse_all_specs,
)
from flashgrep.parts.specs.spec_repository import get_scenario as find_scenario
from flashgrep.search.snapshot import SearchStats

MOST_BYTES = 1 << 20
"""A specification is read by people; parsing this much takes about a second at worst."""
THRESHOLD = 0.4
NO_SPECS = "no_specs"
LookT = TypeVar("LookT")
SPEC_ID = "Id of a specification from list_specs, or the path of its file."


class SpecParams(ProjectParams):
    """Which specification."""

    spec_id: NameText = Field(min_length=1, description=SPEC_ID)


class ScenarioParams(SpecParams):
    """Which scenario."""

    requirement: NameText = Field(min_length=1, description="Name of a requirement.")
    scenario: NameText | None = Field(
        None,
        min_length=1,
        description="Name of a scenario of it; by default its first.",
    )


class SearchSpecsParams(ProjectParams):
    """What to look for."""

    query: Annotated[str, Usage(words=True)] = Field(
        min_length=1, max_length=1000, description="What to look for, in any words."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        10, ge=1, le=100, description="Most results to return."
    )
    threshold: float = Field(
        THRESHOLD, ge=0, le=1, description="Minimum score of a result."
    )


class ValidateSpecsParams(ProjectParams):
    """Which specifications."""

    spec_id: NameText | None = Field(
        None, min_length=1, description=SPEC_ID + " Default: all."
    )


class SpecSummary(TypedDict):
    """A specification in brief; `problem`: why its file cannot be read, or not completely."""

    id: str
    title: str
    purpose: str
    problem: NotRequired[str]


class NoSpecs(TypedDict):
    """What an answer says if the project has no specification: `reason` is `no_specs`."""

    reason: NotRequired[str]
    detail: NotRequired[str]


class ListSpecsResult(NoSpecs):
    """All specifications, ordered by folder, then by id; without any `detail` says where they are looked for."""

    results: list[SpecSummary]


class RequirementSummary(TypedDict):
    """A requirement without the bodies of its scenarios; `operation`: what a delta file does with it."""

    name: str
    scenario_count: int
    scenarios: list[str]
    operation: NotRequired[str]
    renamed_from: NotRequired[str]


class SpecRequirementsResult(SpecSummary, FilePlace):
    """A specification's requirements, in the order of its file."""

    requirements: list[RequirementSummary]


class StepEntry(TypedDict):
    """A clause of a scenario: `keyword` is GIVEN, WHEN, THEN, AND or BUT."""

    keyword: str
    text: str
    line: int


class ScenarioResult(FilePlace):
    """A scenario, and the description of its requirement; `steps` are all its clauses in order, `notes` the rest."""

    spec_id: str
    requirement: str
    description: str
    operation: NotRequired[str]
    name: str
    given: list[str]
    when: str
    then: list[str]
    steps: list[StepEntry]
    notes: NotRequired[str]
    start_line: int


class SpecHit(FilePlace):
    """A requirement that was found by its own text, by one of its scenarios, or by its specification's purpose."""

    spec_id: str
    requirement: str
    scenario: NotRequired[str]
    kind: Kind
    score: float
    snippet: str
    start_line: int


class SearchSpecsResult(NoSpecs):
    """Requirements, best first; scores are from 0 to 1."""

    results: list[SpecHit]
    coverage: Coverage


class ProblemEntry(FilePlace):
    """What is wrong, and where; after a warning everything is still readable."""

    spec_id: str
    line: int
    message: str
    severity: Severity


class ValidateSpecsResult(TypedDict):
    """Whether everything is valid apart from warnings, how many files were checked, and what is wrong with them."""

    valid: bool
    files: int
    problems: list[ProblemEntry]


@handler("list_specs", title="List specifications", toolset="specs")
async def list_specs(call: Call[Host], params: ProjectParams) -> ListSpecsResult:
    """List the project's specifications: id, title and purpose of each."""
    project = await call.host.workspace(call, params.project)
    specs = await _read_specs(project, parse_all_specs)
    result: ListSpecsResult = {"results": [_format_summary(spec) for spec in specs]}
    if not specs:
        result["reason"] = NO_SPECS
        result["detail"] = _explain_no_specs(project)
    return result


@handler(
    "get_spec_requirements", title="Requirements of a specification", toolset="specs"
)
async def get_spec_requirements(
    call: Call[Host], params: SpecParams
) -> SpecRequirementsResult:
    """Return a specification's requirements by name, each with the names of its scenarios but not their bodies."""
    project = await call.host.workspace(call, params.project)
    specs = await _read_specs(project, partial(get_spec_by_id, spec_id=params.spec_id))
    requirements: list[RequirementSummary] = []
    for requirement in specs.spec.requirements:
        names = [scenario.name for scenario in requirement.scenarios]
        requirements.append(
            {"name": requirement.name, "scenario_count": len(names), "scenarios": names}
        )
        if requirement.operation is not None:
            requirements[-1]["operation"] = requirement.operation
        if requirement.renamed_from is not None:
            requirements[-1]["renamed_from"] = requirement.renamed_from
    return {
        **_format_summary(specs),
        **_format_file(specs.file),
        "requirements": requirements,
    }


@handler("get_scenario", title="Read a scenario", toolset="specs")
async def get_scenario(call: Call[Host], params: ScenarioParams) -> ScenarioResult:
    """Return one scenario of a requirement in full, with the requirement's description."""
    project = await call.host.workspace(call, params.project)
    specs = await _read_specs(project, partial(get_spec_by_id, spec_id=params.spec_id))
    requirement = get_requirement(specs, params.requirement)
    scenario = find_scenario(specs, requirement, params.scenario)
    result: ScenarioResult = {
        "spec_id": specs.id,
        "requirement": requirement.name,
        "description": requirement.text,
        "name": scenario.name,
        "given": scenario.given,
        "when": scenario.when,
        "then": scenario.then,
        "steps": [
            {"keyword": step.keyword, "text": step.text, "line": step.line}
            for step in scenario.steps
        ],
        **_format_file(specs.file),  # type: ignore[typeddict-item]  # it has no key but its own
        "start_line": scenario.line,
    }
    if requirement.operation is not None:
        result["operation"] = requirement.operation
    if scenario.text:
        result["notes"] = scenario.text
    return result


@handler("search_specs", title="Search specifications", toolset="specs")
async def search_specs(
    call: Call[Host], params: SearchSpecsParams
) -> SearchSpecsResult:
    """Find requirements by meaning, over purposes, requirements and scenarios; needs the project's index."""
    started = time.perf_counter()
    project = await call.host.workspace(call, params.project)
    view = project.current()
    fresh = await view.refresh()
    if await project.size() is None:
        root = path_to_text(project.root)
        progress = project.progress
        if progress.detail:
            why = f" ({progress.detail})"
        else:
            why = ""
        raise Unavailable(
            f"index not found: {root}{why}; index_codebase builds it",
            path=root,
            suggestion=f"call index_codebase with path {root}, then ask again",
            stage=progress.stage,
        )
    specs = await _read_specs(project, parse_all_specs)
    vectors = project.service(SPEC_VECTORS)

    def find() -> tuple[list[SpecMatch], str]:
        """Search by meaning or, if that is unavailable, by words; then the second value says why."""
        ask = partial(
            search,
            specs,
            params.query,
            vectors=vectors,
            limit=params.limit,
            threshold=params.threshold,
        )
        try:
            open_embedder = partial(embedder_of, environ=call.host.environ)
            return ask(embedder=vectors.embedder(project.embedding, open_embedder)), ""
        except ProviderUnavailable as problem:
            return ask(embedder=None), f"searched by words only: {problem.message}"

    matches, problem = await project.in_turn(find)
    coverage = view.coverage(SearchStats(), fresh=fresh, started=started)
    # Only the specifications were searched, not all of the project's files.
    coverage["files_searched"] = len(specs)
    if problem:
        coverage["detail"] = problem
    result: SearchSpecsResult = {
        "results": [_format_match(match) for match in matches],
        "coverage": coverage,
    }
    if not specs:
        result["reason"] = NO_SPECS
        result["detail"] = _explain_no_specs(project)
    return result


@handler("validate_specs", title="Validate specifications", toolset="specs")
async def validate_specs(
    call: Call[Host], params: ValidateSpecsParams
) -> ValidateSpecsResult:
    """Report what is malformed or missing in the project's specifications, by file and line."""
    project = await call.host.workspace(call, params.project)
    spec_id = params.spec_id

    def look(files: list[SpecFile], read: Read) -> ValidateSpecsResult:
        if spec_id is None:
            specs = parse_all_specs(files, read)
        else:
            specs = [get_spec_by_id(files, read, spec_id)]
        problems: list[ProblemEntry] = []
        for spec in specs:
            if spec.unreadable:
                found_problems = [spec.unreadable]
            else:
                found_problems = []
            # Otherwise an unreadable file would also be reported to have no
            # requirements.
            if spec.spec.requirements or not spec.unreadable:
                found_problems += validate(spec.spec)
            problems += [
                {
                    "spec_id": spec.id,
                    **_format_file(spec.file),
                    "line": problem.line,
                    "message": problem.message,
                    "severity": problem.severity,
                }
                for problem in found_problems
            ]
        valid = all(problem["severity"] != "error" for problem in problems)
        return {"valid": valid, "files": len(specs), "problems": problems}

    return await _read_specs(project, look)


HANDLERS: tuple[Handler, ...] = (
    list_specs,
    get_spec_requirements,
    get_scenario,
    search_specs,
    validate_specs,
)


async def _read_specs(
    project: Project, look: Callable[[list[SpecFile], Read], LookT]
) -> LookT:
    """Apply ``look`` to the specifications as they are saved now."""
    view = project.current()
    await view.refresh()

    def read(path: bytes) -> Document | Skipped:
        try:
            descriptor, status, _ = project.editor.root.open_file(path)
        except (Forbidden, InvalidParams) as refused:
            # A link out of the project, or a folder called spec.md: a problem of this
            # file only.
            return Skipped("unreadable", refused.message)
        with Descriptor(descriptor):
            if status.st_size > MOST_BYTES:
                return Skipped(
                    "too_large", f"{status.st_size} bytes, {MOST_BYTES} at most"
                )
            return extract(read_all(descriptor, status.st_size))

    def run() -> LookT:
        return look(find_spec_files(view.paths(), project.options.spec_folders), read)

    return await project.in_turn(run)


def _explain_no_specs(project: Project) -> str:
    folders = ", ".join(project.options.spec_folders)
    looked_for = f"no specification: no file spec.md is below {folders}"
    return f"{looked_for} (setting specs.folders)"


def _format_file(file: SpecFile) -> FilePlace:
    return cast("FilePlace", path_to_json(file.path))


def _format_summary(spec: ProjectSpec) -> SpecSummary:
    summary: SpecSummary = {
        "id": spec.id,
        "title": spec.title,
        "purpose": spec.spec.purpose or "",
    }
    if spec.unreadable is not None:
        summary["problem"] = spec.unreadable.message
    return summary


def _format_match(match: SpecMatch) -> SpecHit:
    passage = match.passage
    hit: SpecHit = {
        "spec_id": passage.spec.id,
        "requirement": match.requirement.name if match.requirement else "",
        "kind": passage.kind,
        "score": match.score,
        "snippet": match.snippet,
        **_format_file(passage.spec.file),  # type: ignore[typeddict-item]  # it has no key but its own
        "start_line": passage.line,
    }
    if passage.scenario is not None:
        hit["scenario"] = passage.scenario.name
    return hit
