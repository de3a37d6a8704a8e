"""One question to several projects, answered as one: in one order, within one budget, with one cursor.

Each project answers by itself, a few at a time, and their items are merged by rank. The order is stable because each
project's own order is, and ties are broken by the order in which the projects were named. A file in two of the projects
is answered by the inner one.

A project's own cursor leads to the end of one of its pages, but a merged page can end anywhere. So the merged cursor
has, for each project with more, its own cursor and the number of items shown after it.
"""

import contextlib
import heapq
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio
import orjson

from flashgrep.api.coverage import Coverage, milliseconds_since
from flashgrep.api.host import Host
from flashgrep.api.libraries import LibraryPlace, UsedLibraries
from flashgrep.api.searchers import Holds
from flashgrep.api.view import Project
from flashgrep.base.errors import (
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    NotFound,
)
from flashgrep.base.model import path_to_text
from flashgrep.base.registry import MOST_PROJECTS, Call, Params
from flashgrep.base.shared_turn import SHARED_TURN, SharedTurn
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    decode_cursor,
    encode_cursor,
    open_all_libraries,
    open_library,
    place_in_library,
)

AT_ONCE: Final = 4
"""Projects opened or listed concurrently. The lookups of all others share a turn."""
GRACE_SECONDS: Final = 1.0
"""At the deadline a project answers with what it has; one that has still not answered after this time is left out."""
MOST_ITEMS: Final = 10_000
"""Of one page."""
STAGES: Final = (
    "failed",
    "listing",
    "indexing",
    "symbols",
    "chunks",
    "vectors",
    "ready",
)
"""Stages in order: several projects report the earliest one."""
FAILED: Final = -1
"""In a cursor, instead of a number of items: the project did not answer and is not asked again."""

ParamsT = TypeVar("ParamsT", bound=Params)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Page(Generic[ResultT]):
    """One project's answer, and how it is merged with those of others."""

    result: ResultT
    rank: Callable[[int], Any] = lambda _at: ()
    """Returns the sort key of the item at an index; by default projects follow one another."""
    reading: int = 0
    """The reading used; if a lower one has found something, answers of higher ones are dropped."""

    @property
    def fields(self) -> Any:
        """The result, whose fields depend on the method."""
        return self.result


@dataclass(frozen=True, slots=True)
class ProjectSelection:
    """What the other projects of a question mean for this one."""

    nested: Sequence[bytes] = ()
    """Folders in it to leave out, since they are asked as projects of their own."""
    projects: int = 1
    """How many are asked: they share what a question may use beyond its page."""
    holds: Holds | None = None
    """Whether a file of it is asked about, of a folder of libraries; None: all are."""


AskProject: TypeAlias = Callable[
    [Call[Host], ParamsT, Project, ProjectSelection], Awaitable[Page[ResultT]]
]
"""Asks one project."""


@dataclass(frozen=True, slots=True)
class ProjectAnswer(Generic[ResultT]):
    """A project and the first page of its answer."""

    name: str
    root: str
    result: ResultT


Join: TypeAlias = Callable[[Any, Sequence[ProjectAnswer[ResultT]]], None]
"""Puts into a merged result what the method says beside items, total and coverage, of which the rest is the first's."""


@dataclass(slots=True)
class Part(Generic[ResultT]):
    """What one of the projects contributes to a page."""

    root: str
    """The name it is opened by; for an unknown project, as given."""
    name: str
    among: ProjectSelection = ProjectSelection()
    cursor: str | None = None
    """The project's own cursor."""
    skip: int = 0
    """Items shown after it."""
    pages: list[tuple[str | None, Page[ResultT]]] = field(default_factory=list)
    """Pages, each with the cursor that requested it."""
    error: FlashgrepError | None = None
    library: LibraryPlace | None = None
    """The folder of libraries that is asked in place of a project."""

    @property
    def reading(self) -> int:
        """The reading of its first page."""
        return self.pages[0][1].reading

    def items(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield the items that have not been shown, with their ranks."""
        skip = self.skip
        for _, page in self.pages:
            results = page.fields["results"]
            for at in range(skip, len(results)):
                yield page.rank(at), results[at]
            skip = max(0, skip - len(results))

    def find_next(self, taken: int) -> tuple[str | None, int] | None:
        """Return where to continue after taking this many items: a cursor, and items to skip; None at the end."""
        skip = self.skip + taken
        following = None
        for cursor, page in self.pages:
            count = len(page.fields["results"])
            if skip < count:
                return cursor, skip
            skip = skip - count
            following = page.fields.get("next")
        if following is None:
            return None
        return (following, 0)


async def ask_projects(
    call: Call[Host],
    params: ParamsT,
    ask: AskProject[ParamsT, ResultT],
    join: Join[ResultT] | None = None,
    *,
    limit: int = MOST_ITEMS,
) -> ResultT:
    """Return the answer of the project a call is about, or a merged one of several.

    ``limit``: items of a page if the call sets none.

    Raises:
        NotFound: none of the projects is there.
        Forbidden: the connection is bound to others.
        FlashgrepError: why the question is refused; if no project answers, the error of the first.

    """
    given: Any = params
    libraries: UsedLibraries | None = None
    if getattr(given, "libraries", False):
        libraries = await open_all_libraries(call, given.project, given)
    else:
        params = _name_own_roots(call, params)
        given = params
    if libraries is None and given.projects is None:
        workspace = await _choose_project(call, given)
        return (await ask(call, params, workspace, ProjectSelection())).result
    if libraries is None:
        _check_choice(given)
    question = _Question(call, params, ask, given.limit or limit)
    if libraries is None:
        every_part = _find_parts(call, params)
    else:
        every_part = _find_library_parts(libraries)
    total, parts = _continue_parts(params, every_part)
    await _ask_parts(question, parts)
    counted = _choose_best_reading(_check_answers(parts))
    items, taken = _merge(counted, question)
    answers = [
        ProjectAnswer(part.name, part.root, part.pages[0][1].result) for part in counted
    ]
    merged: Any = {**counted[0].pages[0][1].fields, "results": items}
    if "total" in merged:
        if given.cursor is None:  # later pages repeat what the first one said
            total = _add_totals(counted)
        nexts = _find_nexts(parts, counted, taken)
        following = None
        if any(skip != FAILED for _, _, skip in nexts):
            following = encode_cursor(params, total, *chain.from_iterable(nexts))
        merged |= {"total": total, "next": following}
    merged["coverage"] = _cover(parts, question.started)
    if join is not None:
        join(merged, answers)
    if libraries is not None:
        place = partial(_place_in_libraries, merged, libraries)
        await anyio.to_thread.run_sync(place)
    result: ResultT = merged
    return result


async def ask_each(
    call: Call[Host],
    params: ParamsT,
    ask: AskProject[ParamsT, ResultT],
    join: Callable[[Sequence[ProjectAnswer[ResultT]], Coverage], ResultT],
) -> ResultT:
    """Return the answer of the project a call is about, or what ``join`` makes of those of several.

    For answers that are more than a list: each project is asked for its first page, and for a share of the size that
    ``ProjectSelection.projects`` tells. ``join`` also gets the coverage of all.

    Raises:
        InvalidParams: several are asked with a cursor, which is that of one.
        FlashgrepError: as ``ask_projects``.

    """
    params = _name_own_roots(call, params)
    given: Any = params
    if given.projects is None:
        workspace = await _choose_project(call, given)
        return (await ask(call, params, workspace, ProjectSelection())).result
    _check_choice(given)
    if getattr(given, "cursor", None) is not None:
        raise InvalidParams(
            "cursor: it is that of one project; name it by `project`", field="cursor"
        )
    # One item is enough: no second page is asked for.
    question = _Question(call, params, ask, 1)
    parts = _find_parts(call, params)
    await _ask_parts(question, parts)
    answered = _check_answers(parts)
    covered = [part for part in parts if part.pages or not _lacks_path(part.error)]
    answers = [
        ProjectAnswer(part.name, part.root, part.pages[0][1].result)
        for part in answered
    ]
    return join(answers, _cover(covered, question.started))


def _lacks_path(error: FlashgrepError | None) -> bool:
    """Return whether a project has no such path: then it is another's, and nothing is missing."""
    return isinstance(error, NotFound) and error.reason == "path_not_found"


def _name_own_roots(call: Call[Host], params: ParamsT) -> ParamsT:
    """Return a question that names the roots of its connection if it names no project and there are several."""
    given: Any = params
    own = call.session.projects or call.session.indexed
    if given.projects is None and given.project is None and len(own) > 1:
        return params.model_copy(update={"projects": list(own)})
    return params


async def _ask_parts(
    question: "_Question[Any, Any]", parts: Sequence[Part[Any]]
) -> None:
    """Ask all projects side by side."""
    async with anyio.create_task_group() as tasks:
        shared = SharedTurn(tasks)
        for part in parts:
            if part.error is None:
                tasks.start_soon(question.ask_part, part, shared)


def _place_in_libraries(merged: dict[str, Any], libraries: UsedLibraries) -> None:
    """Give the results of a merged answer, and what it says of files, their libraries in place of their folders."""
    # The text of a path that is not UTF-8 does not say which it is.
    roots = {
        path_to_text(place.project.root): place.project.root
        for place in libraries.places
    }
    for item in chain(merged["results"], merged.get("files", ())):
        place_in_library(item, roots[item.pop("project")], libraries.lookup)


def _check_answers(parts: Sequence[Part[ResultT]]) -> list[Part[ResultT]]:
    """Return the projects that answered; raise what refuses the question, or why none did."""
    errors = [part.error for part in parts if part.error is not None]
    for error in errors:
        # The question is refused, or the connection may not ask it: so it is for all.
        if isinstance(error, InvalidParams | Forbidden):
            raise error
    answered = [part for part in parts if part.pages]
    if answered:
        return answered
    error = errors[0]
    # One project named by `projects` fails as it would by `project`.
    if len(parts) == 1:
        raise error
    reasons: list[str] = []
    for part in parts:
        if part.error is not None:
            reasons.append(f"{part.name}: {part.error.message}")
    message = f"none of {len(parts)} projects answered: {'; '.join(reasons)}"
    raise type(error)(message, reason=error.reason, **error.data)


def _choose_best_reading(answered: Sequence[Part[ResultT]]) -> list[Part[ResultT]]:
    """Return the projects whose answers count: those with the lowest reading that has items.

    One project found the text itself, another only its words: those hits do not count just because their project has
    nothing better.
    """
    readings = [part.reading for part in answered if any(part.items())]
    lowest = min(readings, default=answered[0].reading)
    return [part for part in answered if part.reading == lowest]


def _add_totals(counted: Sequence[Part[Any]]) -> int | None:
    """Return how many items there are in all; None: one of the projects does not know."""
    totals: list[int] = []
    for part in counted:
        count = part.pages[0][1].fields["total"]
        if count is None:
            return None
        totals.append(count)
    return sum(totals)


def _find_nexts(
    parts: Sequence[Part[Any]], counted: Sequence[Part[Any]], taken: Sequence[int]
) -> list[tuple[str, str | None, int]]:
    """Return where each project continues: its name, its cursor, and the items to skip after it."""
    nexts: list[tuple[str, str | None, int]] = []
    for part, count in zip(counted, taken, strict=True):
        place = part.find_next(count)
        if place is not None:
            nexts.append((part.name, *place))
    # Kept in the cursor, so that later pages also say that a project is missing.
    for part in parts:
        if part.error is not None and not part.pages:
            nexts.append((part.name, None, FAILED))
    return nexts


def _check_choice(given: Any) -> None:
    """Refuse a question that names several projects and something else besides."""
    if getattr(given, "library", None) is not None:
        message = "a library is that of one project: name it by `project`"
        raise InvalidParams(
            message,
            field="library",
            incompatible=["library", "projects"],
        )
    if given.project is not None:
        message = "give either `project` or `projects`"
        raise InvalidParams(
            message,
            field="project",
            incompatible=["project", "projects"],
        )


async def _choose_project(call: Call[Host], given: Any) -> Project:
    """Return the one project that a call is about, or the library of it that it names."""
    project = await call.host.workspace(call, given.project)
    return await open_library(call, project, given)


class _Question(Generic[ParamsT, ResultT]):
    """A call in the form in which each project is asked."""

    def __init__(
        self,
        call: Call[Host],
        params: ParamsT,
        ask: AskProject[ParamsT, ResultT],
        limit: int,
    ) -> None:
        self.started = time.perf_counter()
        self.limit = limit
        self._call = call
        self._params = params
        self._ask = ask
        self._given: Any = params
        tokens = (
            getattr(params, "max_tokens", None) or call.host.settings.query.max_tokens
        )
        self.chars = min(
            tokens * CHARS_PER_TOKEN,
            getattr(params, "max_bytes", None) or tokens * CHARS_PER_TOKEN,
        )
        self._turns = anyio.CapacityLimiter(AT_ONCE)

    async def ask_part(self, part: Part[ResultT], shared: SharedTurn) -> None:
        """Ask one project; an error is noted in its part and does not end the others."""
        rest = self._measure_rest()
        # A project keeps the deadline by itself; this is for one that hangs before it
        # can.
        with anyio.move_on_after(
            None if rest is None else rest + GRACE_SECONDS
        ) as scope:
            try:
                async with contextlib.AsyncExitStack() as stack:
                    # Its files are known, so its lookup is short. The others have to be
                    # opened or listed first, a few at a time.
                    if self._call.host.is_listed(part.root):
                        SHARED_TURN.set(shared)
                    else:
                        await stack.enter_async_context(self._turns)
                    # A call of its own: a project is let go of when it has answered.
                    call = replace(self._call)
                    # It was opened with all others of the project, for the whole call.
                    if part.library is not None:
                        await self._fill(part, part.library.project)
                        return
                    workspace = await call.host.workspace(call, part.root)
                    part.name, part.root = workspace.name, str(workspace.path)
                    await self._fill(part, workspace)
            except FlashgrepError as error:
                part.error = error
            except OSError as error:
                part.error = NotFound(
                    f"{part.root}: {error.strerror}", reason="directory_not_found"
                )
        if scope.cancelled_caught:
            part.error = DeadlineExceeded("it did not answer before the deadline")

    async def _fill(self, part: Part[ResultT], workspace: Project) -> None:
        """Ask for pages until this project alone could fill the whole answer."""
        cursor = part.cursor
        count = 0
        chars = 0
        while True:
            changed: dict[str, Any] = {"project": part.root, "projects": None}
            if "cursor" in self._params.field_names():
                changed["cursor"] = cursor
                if getattr(self._given, "limit", None) is not None:
                    # The page begins at the project's own cursor: items already shown
                    # are returned again and skipped.
                    changed["limit"] = min(part.skip + self.limit, MOST_ITEMS)
            if (rest := self._measure_rest()) is not None:
                changed["deadline_ms"] = max(1, int(rest * 1000))
            params = self._params.model_copy(update=changed)
            page = await self._ask(self._call, params, workspace, part.among)
            results = page.fields["results"]
            following = page.fields.get("next")
            # All of it has been shown.
            if following is not None and part.skip >= len(results):
                part.skip = part.skip - len(results)
                part.cursor = following
            else:
                if part.pages:
                    shown = 0
                else:
                    shown = min(part.skip, len(results))
                part.pages.append((cursor, page))
                for item in results[shown:]:
                    count += 1
                    chars += self.measure(item)
                if following is None or count >= self.limit:
                    return
                if chars >= self.chars:
                    return
            cursor = following

    def measure(self, item: dict[str, Any]) -> int:
        """Return roughly how many characters an item takes in the answer: as JSON, or only its texts."""
        if not self._call.as_text:
            return len(orjson.dumps(item)) + 1
        # About the length of its rendered lines.
        return sum(map(_measure_texts, item.values()))

    def _measure_rest(self) -> float | None:
        """Return the seconds until the call's deadline, if it has one."""
        deadline_ms: int | None = getattr(self._params, "deadline_ms", None)
        if deadline_ms is None:
            return None
        deadline = self.started + deadline_ms / 1000
        return max(0.0, deadline - time.perf_counter())


def _measure_texts(value: Any) -> int:
    """Return how many characters the texts in a value take, one a line."""
    if isinstance(value, str):
        return len(value) + 1
    if isinstance(value, dict):
        return sum(map(_measure_texts, value.values()))
    if isinstance(value, list):
        return sum(map(_measure_texts, value))
    return 0


def _find_parts(call: Call[Host], params: Params) -> list[Part[Any]]:
    """Return the projects that are asked."""
    given: Any = params
    roots = call.host.find_roots(call.session, given.projects)
    if not roots:
        raise NotFound(
            "no project is known",
            reason="project_not_found",
            suggestion="name one by its path",
        )
    if len(roots) > MOST_PROJECTS:
        message = f"projects: {len(roots)} are known, at most {MOST_PROJECTS} can be asked at once: name those you mean"
        raise InvalidParams(message, field="projects", maximum=MOST_PROJECTS)
    projects = call.host.list_projects()
    names = {str(info.root): info.name for info in projects}
    parts = [Part[Any](root, names.get(root, root)) for root in roots]
    for part in parts:
        part.among = ProjectSelection(_find_inner_folders(part.root, roots), len(roots))
    return parts


def _find_library_parts(libraries: UsedLibraries) -> list[Part[Any]]:
    """Return the folders of libraries that are asked, in their order."""
    count = len(libraries.places)
    parts: list[Part[Any]] = []
    for place in libraries.places:
        root = path_to_text(place.project.root)
        among = ProjectSelection(projects=count, holds=place.holds)
        parts.append(Part(root, root, among, library=place))
    return parts


def _continue_parts(
    params: Params, parts: Sequence[Part[Any]]
) -> tuple[int | None, list[Part[Any]]]:
    """Return the total from the first page, and those that contribute to this one."""
    given: Any = params
    if getattr(params, "cursor", None) is None:
        return None, list(parts)

    def read(
        total: int | None, *nexts: Any
    ) -> tuple[int | None, dict[str, tuple[str | None, int]]]:
        triples = zip(nexts[::3], nexts[1::3], nexts[2::3], strict=True)
        places = {
            str(name): (None if cursor is None else str(cursor), int(skip))
            for name, cursor, skip in triples
        }
        if any(skip < FAILED for _, skip in places.values()):
            raise ValueError(places)
        return None if total is None else int(total), places

    total, places = decode_cursor(params, given.cursor, read)
    named = {part.name: part for part in parts}
    going_on = []
    for name, (cursor, skip) in places.items():
        # One removed since then says so.
        part = named.get(name, Part[Any](name, name))
        part.cursor = cursor
        part.skip = skip
        if skip == FAILED:
            part.error = NotFound(
                "it did not answer on an earlier page", reason="project_not_found"
            )
        going_on.append(part)
    return total, going_on


def _find_inner_folders(root: str, roots: Iterable[str]) -> list[bytes]:
    """Return the paths, relative to a root, of those that lie below it."""
    above = root.rstrip("/") + "/"
    nested: list[bytes] = []
    for other in roots:
        if other.startswith(above):
            nested.append(os.fsencode(other.removeprefix(above)))
    return nested


def _merge(
    parts: Sequence[Part[Any]], question: _Question[Any, Any]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the first items of all projects, each with its project, and how many are from each."""
    items: list[dict[str, Any]] = []
    taken = [0] * len(parts)
    chars = question.chars
    streams: list[list[tuple[Any, int, dict[str, Any]]]] = []
    for number, part in enumerate(parts):
        streams.append([(rank, number, item) for rank, item in part.items()])
    # Lazily: items that do not fit are not produced.
    # Equal ranks come in the order of the projects, so that pages follow one another.
    by_rank = itemgetter(0, 1)
    for _, number, item in heapq.merge(*streams, key=by_rank):
        part = parts[number]
        shown = {"project": part.name, **item}
        # The budget is that of one answer, whatever the number of projects.
        chars -= question.measure(shown)
        if part.library is not None:  # its path will be absolute
            chars -= len(part.root)
        # At least one item, however long: an empty page would never end.
        if chars < 0 and items:
            break
        if len(items) == question.limit:
            break
        items.append(shown)
        taken[number] += 1
    return items, taken


def _explain(part: Part[Any]) -> tuple[bool, str]:
    """Return whether a project's answer is complete, and what its reader should know; empty: nothing."""
    coverages = [page.fields["coverage"] for _, page in part.pages]
    reasons = [coverage["detail"] for coverage in coverages if "detail" in coverage]
    if part.error is not None:
        reasons.append(part.error.message)
    is_complete = part.error is None
    for coverage in coverages:
        is_complete &= coverage["complete"]
    reason = "; ".join(dict.fromkeys(reasons))
    if not reason and not is_complete:
        reason = "the deadline was reached"
    return is_complete, reason


def _cover(parts: Sequence[Part[Any]], started: float) -> Coverage:
    """Return the combined coverage of all projects; `detail` names those that are incomplete, and why."""
    skipped: Counter[str] = Counter()
    answered: list[Coverage] = []
    complete = True
    # Who tells something; what makes an answer incomplete comes first.
    details: dict[tuple[bool, str], list[str]] = {}
    for part in parts:
        for _, page in part.pages[:1]:
            answered.append(page.fields["coverage"])
        is_complete, reason = _explain(part)
        complete &= is_complete
        if reason:
            details.setdefault((is_complete, reason), []).append(part.name)
    for coverage in answered:
        skipped.update(coverage["files_skipped"])
    covered: Coverage = {
        "complete": complete,
        "fresh": all(coverage["fresh"] for coverage in answered),
        "files_searched": sum(coverage["files_searched"] for coverage in answered),
        "files_skipped": dict(skipped),
        "stage": min((coverage["stage"] for coverage in answered), key=STAGES.index),
        "generation": sum(coverage["generation"] for coverage in answered),
        "took_ms": milliseconds_since(started),
        "projects": {part.name: part.root for part in parts if part.pages},
    }
    unsaved = [coverage["unsaved"] for coverage in answered if "unsaved" in coverage]
    if unsaved:
        covered["unsaved"] = sum(unsaved)
    if details:
        covered["detail"] = _join_details(details)
    return covered


def _join_details(details: Mapping[tuple[bool, str], list[str]]) -> str:
    """Return what readers should know and of which projects, by whether those are complete and by the reason."""
    texts: list[str] = []
    for (_, reason), names in sorted(details.items()):
        texts.append(f"{', '.join(names)}: {reason}")
    return " | ".join(texts)
