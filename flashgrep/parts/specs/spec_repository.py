"""The specifications of a project: finding their files, assigning ids, and looking them up.

The id of a file is the path of its folder below the specification folder, preceded by the text that a `*` in the latter
matched: ``openspec/specs/auth/spec.md`` is ``auth``, ``openspec/changes/add-sso/specs/auth/spec.md`` is
``add-sso/auth``. If two files would have the same id, the later one gets the whole path of its folder.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, count
from typing import Final, TypeVar

from rapidfuzz import fuzz, process

from flashgrep.base.errors import NotFound
from flashgrep.base.model import Document, Skipped
from flashgrep.files.columns import SHOWN
from flashgrep.parts.specs.openspec import parse
from flashgrep.parts.specs.spec import Problem, Requirement, Scenario, Spec

FILE: Final = b"spec.md"
NEAREST: Final = 3
NEAR_ENOUGH: Final = 50
"""Of 100; less similar names are not suggested."""

Read = Callable[[bytes], Document | Skipped]
"""Reads a file of the project by its path, and never a file outside of it."""
PartT = TypeVar("PartT", Requirement, Scenario)


@dataclass(frozen=True, slots=True)
class SpecFile:
    """The id and path of a specification."""

    id: str
    path: bytes

    @property
    def text_path(self) -> str:
        """Its path as text."""
        return self.path.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ProjectSpec:
    """A specification of a project, or why it cannot be read."""

    file: SpecFile
    spec: Spec
    unreadable: Problem | None = None
    """Why it cannot be read, or not completely."""

    @property
    def id(self) -> str:
        """Its id."""
        return self.file.id

    @property
    def title(self) -> str:
        """Its title, or the last part of its id."""
        return self.spec.title or self.id.rpartition("/")[2]


def find_spec_files(paths: Iterable[bytes], folders: Sequence[str]) -> list[SpecFile]:
    """Return the specifications among a project's files, ordered by folder, then by id."""
    candidates = [
        path
        for path in paths
        if path.endswith(FILE) and path.rpartition(b"/")[2] == FILE
    ]
    files: dict[str, SpecFile] = {}
    seen: set[bytes] = set()
    for folder in folders:
        ids = [
            (spec_id, path)
            for path in candidates
            if (spec_id := _id_below(folder, path)) is not None
        ]
        for spec_id, path in sorted(ids):
            # A file below two of the folders belongs to the first.
            if path not in seen:
                seen.add(path)
                file = SpecFile(spec_id, path)
                parent = file.text_path.rpartition("/")[0]
                # Different paths that are not UTF-8 may decode to the same text, hence
                # the number at the end.
                names = chain(
                    (spec_id, parent, file.text_path),
                    (f"{file.text_path}~{at}" for at in count(2)),
                )
                free = next(name for name in names if name and name not in files)
                files[free] = SpecFile(free, path)
    return list(files.values())


def _id_below(folder: str, path: bytes) -> str | None:
    """Return the id of a file if it is below a folder; a `*` matches any text within one component of the path."""
    parts = [part for part in folder.split("/") if part not in {"", "."}]
    *parents, _ = path.decode("utf-8", "replace").split("/")
    if len(parents) < len(parts):
        return None
    starred = []
    for pattern, part in zip(parts, parents, strict=False):
        if "*" in pattern and fnmatchcase(part, pattern):
            starred.append(part)
        elif pattern != part:
            # "*" does not match a slash: patterns and components are compared pairwise.
            return None
    return "/".join([*starred, *parents[len(parts) :]]) or (
        parts[-1] if parts else "spec"
    )


def parse_all_specs(files: Iterable[SpecFile], read: Read) -> list[ProjectSpec]:
    """Read and parse files; a file that has vanished meanwhile is left out."""
    return [spec for file in files if (spec := _parse_file(file, read)) is not None]


def get_spec_by_id(files: Sequence[SpecFile], read: Read, spec_id: str) -> ProjectSpec:
    """Return the specification with an id, or at a file's path.

    Raises:
        NotFound: spec_not_found, with the nearest ids.

    """
    for file in files:
        if (
            spec_id in {file.id, file.text_path}
            and (spec := _parse_file(file, read)) is not None
        ):
            return spec
    raise _missing("spec", spec_id, [file.id for file in files])


def get_requirement(spec: ProjectSpec, name: str) -> Requirement:
    """Return a requirement by name, ignoring case.

    Raises:
        NotFound: requirement_not_found, with the nearest names.

    """
    requirements = spec.spec.requirements
    requirement = _find_by_name(requirements, name.removeprefix("Requirement:"))
    if requirement is None:
        raise _missing(
            "requirement",
            name,
            [current_requirement.name for current_requirement in requirements],
            spec_id=spec.id,
        )
    return requirement


def get_scenario(
    spec: ProjectSpec, requirement: Requirement, name: str | None
) -> Scenario:
    """Return a scenario by name, ignoring case; without a name, the first one.

    Raises:
        NotFound: scenario_not_found, with the nearest names.

    """
    scenarios = requirement.scenarios
    if name is None and scenarios:
        return scenarios[0]
    if name is None:
        scenario = None
    else:
        scenario = _find_by_name(scenarios, name.removeprefix("Scenario:"))
    if scenario is None:
        names = [current_scenario.name for current_scenario in scenarios]
        raise _missing(
            "scenario", name or "", names, spec_id=spec.id, requirement=requirement.name
        )
    return scenario


def _find_by_name(parts: Sequence[PartT], name: str) -> PartT | None:
    # Prefer an exact match, since names may differ only in case.
    exact = (part for part in parts if part.name.strip() == name.strip())
    folded = (part for part in parts if _fold(part.name) == _fold(name))
    return next(chain(exact, folded), None)


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())


def _missing(kind: str, wanted: str, known: list[str], **where: str) -> NotFound:
    """Return the error for an unknown name, with the nearest known ones."""

    def similarity(
        left: str, right: str, *, score_cutoff: float | None = None
    ) -> float:
        """Return the similarity of two names, 0 to 100: a partial match counts, a full match more."""
        ratio = (fuzz.ratio(left, right) + fuzz.WRatio(left, right)) / 2
        if ratio >= (score_cutoff or 0):
            return ratio
        return 0.0

    near = process.extract(
        wanted,
        known,
        scorer=similarity,
        processor=_fold,
        limit=NEAREST,
        score_cutoff=NEAR_ENOUGH,
    )
    nearest = [name for name, _, _ in near]
    if nearest:
        hint = f"; did you mean {nearest[0]}?"
    elif known:
        hint = ""
    else:
        hint = f"; there is no {kind}"
    if wanted:
        message = f"{kind} not found: {wanted}{hint}"
    else:
        message = f"{kind} not found{hint}"
    return NotFound(
        message, reason=f"{kind}_not_found", **{kind: wanted}, **where, nearest=nearest
    )


def _parse_file(file: SpecFile, read: Read) -> ProjectSpec | None:
    try:
        content = read(file.path)
    except NotFound:
        return None
    if isinstance(content, Skipped):
        why = ": ".join(
            part for part in (content.reason.replace("_", " "), content.detail) if part
        )
        # List it with its problem: if it were left out, it would look as if it had been
        # removed.
        return ProjectSpec(file, parse(""), Problem(1, f"cannot be read: {why}"))
    if content.encoding == "latin-1":
        problem = Problem(1, "not UTF-8: read as latin-1", "warning")
        return ProjectSpec(file, parse(content.data.decode("latin-1")), problem)
    if content.binary_at is None:
        unreadable = None
    else:
        unreadable = Problem(1, "only the part before a NUL byte can be read")
    try:
        text = content.data.decode()
    except UnicodeDecodeError as error:
        text = content.data.decode("utf-8", SHOWN)
        line = content.data.count(b"\n", 0, error.start) + 1
        unreadable = unreadable or Problem(
            line, "invalid UTF-8 is shown as U+FFFD", "warning"
        )
    return ProjectSpec(file, parse(text), unreadable)
