"""The specifications of a project: which files they are, what they are called, and one of them by its name.

A file's id is its folder's path below the folder of specifications, after what a `*` in that one stands for:
``openspec/specs/auth/spec.md`` is ``auth``, ``openspec/changes/add-sso/specs/auth/spec.md`` is ``add-sso/auth``. Where
two files would have the same id, the later one goes by its folder's whole path.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain, count
from typing import Final, TypeVar

from rapidfuzz import fuzz, process

from flashgrep.errors import NotFound
from flashgrep.ingest.decoding import SHOWN
from flashgrep.model import Document, Skipped
from flashgrep.specs.model import Problem, Requirement, Scenario, Spec
from flashgrep.specs.parse import parse

FILE: Final = b"spec.md"
NEAREST: Final = 3
NEAR_ENOUGH: Final = 50
"""Of 100; what is less alike was not meant."""

Read = Callable[[bytes], Document | Skipped]
"""Reads a file of the project by its path, and never one outside."""
NamedT = TypeVar("NamedT")


@dataclass(frozen=True, slots=True)
class SpecFile:
    """Where a specification is, and what it is called."""

    id: str
    path: bytes


@dataclass(frozen=True, slots=True)
class Shelved:
    """A specification, or why it cannot be read."""

    file: SpecFile
    spec: Spec
    unreadable: Problem | None = None
    """Why it cannot be read, or not whole."""

    @property
    def id(self) -> str:
        """What it is called."""
        return self.file.id

    @property
    def title(self) -> str:
        """Its heading, or else its own name."""
        return self.spec.title or self.id.rpartition("/")[2]


def spec_files(paths: Iterable[bytes], folders: Sequence[str]) -> list[SpecFile]:
    """Return the specifications among a project's files, in the order of the folders and then of their ids."""
    files = [path for path in paths if path.endswith(FILE) and path.rpartition(b"/")[2] == FILE]
    found: dict[str, bytes] = {}
    seen: set[bytes] = set()
    for folder in folders:
        named = [(name, path) for path in files if (name := _name_below(folder, path)) is not None]
        for name, path in sorted(named):
            if path not in seen:
                seen.add(path)
                found[_free(name, _shown(path), found)] = path
    return [SpecFile(name, path) for name, path in found.items()]


def parse_all_specs(files: Iterable[SpecFile], read: Read) -> list[Shelved]:
    """Read and parse files; one that is gone meanwhile is left out."""
    return [shelved for file in files if (shelved := _shelved(file, read)) is not None]


def get_spec_by_id(files: Sequence[SpecFile], read: Read, spec_id: str) -> Shelved:
    """Return the specification of an id, or of a file's path.

    Raises:
        NotFound: spec_not_found, with the nearest ids.

    """
    for file in files:
        if spec_id in {file.id, _shown(file.path)} and (shelved := _shelved(file, read)) is not None:
            return shelved
    raise _missing("spec", spec_id, [file.id for file in files])


def get_requirement(shelved: Shelved, name: str) -> Requirement:
    """Return a requirement by its name, in any case.

    Raises:
        NotFound: requirement_not_found, with the nearest names.

    """
    requirements = shelved.spec.requirements
    found = _by_name(requirements, [one.name for one in requirements], name.removeprefix("Requirement:"))
    if found is None:
        names = [one.name for one in requirements]
        raise _missing("requirement", name, names, spec_id=shelved.id)
    return found


def get_scenario(shelved: Shelved, requirement: Requirement, name: str | None) -> Scenario:
    """Return a scenario by its name, in any case; without a name the first.

    Raises:
        NotFound: scenario_not_found, with the nearest names.

    """
    scenarios = requirement.scenarios
    names = [one.name for one in scenarios]
    if name is None and scenarios:
        return scenarios[0]
    found = None if name is None else _by_name(scenarios, names, name.removeprefix("Scenario:"))
    if found is None:
        raise _missing("scenario", name or "", names, spec_id=shelved.id, requirement=requirement.name)
    return found


def _by_name(things: Sequence[NamedT], names: Sequence[str], wanted: str) -> NamedT | None:
    for told in (str.strip, _folded):
        for thing, name in zip(things, names, strict=True):
            if told(name) == told(wanted):
                return thing
    return None


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _missing(kind: str, wanted: str, known: list[str], **where: str) -> NotFound:
    """Return the error for a name that is none, with those that may have been meant."""
    near = process.extract(wanted, known, scorer=_likeness, processor=_folded, limit=NEAREST, score_cutoff=NEAR_ENOUGH)
    nearest = [name for name, _, _ in near]
    hint = f"; did you mean {nearest[0]}?" if nearest else "" if known else f"; there is no {kind} at all"
    message = f"{kind} not found: {wanted}{hint}" if wanted else f"{kind} not found{hint}"
    return NotFound(message, reason=f"{kind}_not_found", **{kind: wanted}, **where, nearest=nearest)


def _likeness(wanted: str, known: str, *, score_cutoff: float | None = None) -> float:
    """Compare two names, 0 to 100: a part will do, but the whole is better."""
    likeness = (fuzz.ratio(wanted, known) + fuzz.WRatio(wanted, known)) / 2
    return likeness if likeness >= (score_cutoff or 0) else 0.0


def _shelved(file: SpecFile, read: Read) -> Shelved | None:
    try:
        found = read(file.path)
    except NotFound:
        return None
    if isinstance(found, Skipped):
        told = ": ".join(part for part in (found.reason.replace("_", " "), found.detail) if part)
        return Shelved(file, parse(""), Problem(1, f"cannot be read: {told}"))
    if found.encoding == "latin-1":
        return Shelved(file, parse(found.data.decode("latin-1")), Problem(1, "not UTF-8: read as latin-1", "warning"))
    problem = None if found.binary_at is None else Problem(1, "a NUL byte ends what can be read")
    try:
        text = found.data.decode()
    except UnicodeDecodeError as error:
        text = found.data.decode("utf-8", SHOWN)
        line = found.data.count(b"\n", 0, error.start) + 1
        problem = problem or Problem(line, "bytes that are no UTF-8 are shown as U+FFFD", "warning")
    return Shelved(file, parse(text), problem)


def _name_below(folder: str, path: bytes) -> str | None:
    """Return what a file is called if it is below a folder; a `*` stands for any text in one name of the path."""
    wanted = [part for part in folder.split("/") if part not in {"", "."}]
    *given, _ = _shown(path).split("/")
    if len(given) < len(wanted):
        return None
    starred = []
    for pattern, part in zip(wanted, given, strict=False):
        if "*" in pattern and fnmatchcase(part, pattern):
            starred.append(part)
        elif pattern != part:
            return None
    return "/".join([*starred, *given[len(wanted) :]]) or (wanted[-1] if wanted else "spec")


def _free(name: str, path: str, taken: Container[str]) -> str:
    """Return the first of a file's possible names that no other has."""
    names = chain((name, path.rpartition("/")[0], path), (f"{path}~{number}" for number in count(2)))
    return next(one for one in names if one and one not in taken)


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "replace")
