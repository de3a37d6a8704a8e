"""For editors: what is at a position of a file, where it is defined and used, its documentation, who calls it."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.libraries import LibraryLookup
from flashgrep.api.view import View
from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.base.errors import Forbidden
from flashgrep.base.model import path_to_json
from flashgrep.base.registry import Call, Handler, LineNumber, Params, PathText, handler
from flashgrep.files.columns import Columns, Range
from flashgrep.methods.common import (
    PATH,
    Cursor,
    Deadline,
    Encoding,
    FilePlace,
    Fresh,
    ProjectName,
    Rev,
    decode_cursor,
    encode_cursor,
    locate_in_libraries,
    look_up_libraries,
    open_view,
    resolve_path,
)
from flashgrep.methods.text import Note, Style, note_libraries, render_places
from flashgrep.parts.navigation import language_server_source
from flashgrep.parts.navigation.hierarchy import (
    MODULE,
    Hierarchy,
    find_callees,
    find_callers,
    find_supertypes,
)
from flashgrep.parts.navigation.navigation import (
    Hover,
    Navigation,
    Navigator,
    Place,
    describe,
)
from flashgrep.parts.navigation.references import ReferenceQuestion, ReferenceSearch
from flashgrep.parts.navigation.scip import scip_source
from flashgrep.parts.symbols.name_at_position import (
    NameAtPosition,
    NoResult,
    find_name_at,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource, SymbolSource
from flashgrep.search.snapshot import Snapshot

SOURCES: Final = {
    scip_source.HOW: "an imported SCIP index",
    language_server_source.HOW: "a language server",
}
"""Names, in answers, of sources other than flashgrep itself."""
_IN_FOLDERS: Final = re.compile(rb"(?:^|/)(?:site-packages|node_modules|vendor)/")
"""Folders of libraries that may be inside a project."""
MOST_LINE: Final = 200
"""Maximum number of characters of a use's line."""


class PlaceParams(Params):
    """A place in a file."""

    path: PathText = Field(description=PATH)
    line: LineNumber = Field(description="Line, from 1.")
    column: LineNumber = Field(
        description="Column, from 1; right after a name counts as on it."
    )
    position_encoding: Encoding = "utf-32"
    deadline_ms: Deadline = 10_000
    fresh: Fresh = True
    rev: Rev = None
    project: ProjectName = None


class NamedPlace(FilePlace):
    """A definition, or a use, of a name.

    `range` is that of the whole definition, `selection_range` that of its name. `confidence`: how certain it is that
    this is meant, 0 to 1, `resolved`: by which rule; `source`: if not flashgrep itself, `scip` (an index the user
    imported) or `server` (a language server). A use has its line as `text`. `library`: the name and version of the
    library that has the file; its path is then absolute.
    """

    symbol_name: str
    kind: NotRequired[str]
    role: str
    container: NotRequired[str]
    signature: NotRequired[str]
    range: Range
    selection_range: Range
    text: NotRequired[str]
    confidence: float
    resolved: str
    source: NotRequired[str]
    library: NotRequired[str]
    language: str


class PlacesResult(TypedDict):
    """What was asked about the name at a position, most certain first; uses by path and line.

    `symbol_name` and `range` are those of the name there. `reason`: in a word, why there is nothing, with a `detail`:
    `blank`, `text` (a comment or a string), `no_name`, `past_line_end`; `undefined`, `outside` (not of this project),
    `not_reached` (too many files, perhaps since symbols are not stored yet), `unused`, `unimplemented`, `module`; of
    the file `binary`, `too_large`, `unreadable`, `encoding`, `unparsed`, `not_a_file`, `no_language`.
    `unsure`: uses of such a name that are too ambiguous to resolve.
    """

    symbol_name: str | None
    range: Range | None
    results: list[NamedPlace]
    reason: NotRequired[str]
    detail: NotRequired[str]
    unsure: NotRequired[int]
    next: NotRequired[str | None]
    coverage: Coverage


def render_targets(result: PlacesResult, style: Style) -> Iterator[str]:
    """Yield each place with its kind and signature, or a use's line; or why there is none."""
    yield from render_places(
        (
            (
                style.path(named_place),
                f"{named_place['selection_range']['start_line']}:{named_place['selection_range']['start_column']}",
                named_place.get("text")
                or f"{named_place.get('kind', '')} {named_place.get('signature') or named_place['symbol_name']}",
            )
            for named_place in result["results"]
        ),
        style,
    )
    for source, text in SOURCES.items():
        if number := sum(
            named_place.get("source") == source for named_place in result["results"]
        ):
            yield Note(f"[{number} of {len(result['results'])} from {text}]")
    yield from note_libraries(result["results"])
    if "reason" in result and not style.is_person:
        yield Note(f"[{result['reason']}: {result.get('detail', '')}]")


@handler(
    "definition",
    command="definition path line column",
    toolset="editors",
    render=render_targets,
)
async def definition(call: Call[Host], params: PlaceParams) -> PlacesResult:
    """Find the definition of the name at a position of a file: what it means there, not other things of that name."""
    return await ask_at(
        call, params, lambda source, named: Navigator(source).find_definitions(named)
    )


@handler(
    "declaration",
    command="declaration path line column",
    toolset="editors",
    render=render_targets,
)
async def declaration(call: Call[Host], params: PlaceParams) -> PlacesResult:
    """Find the declaration, without a body, of the name at a position of a file; if there is none, its definition."""
    return await ask_at(
        call, params, lambda source, named: Navigator(source).find_declarations(named)
    )


@handler(
    "implementations",
    command="implementations path line column",
    toolset="editors",
    render=render_targets,
)
async def implementations(call: Call[Host], params: PlaceParams) -> PlacesResult:
    """Find the types that implement or extend the one at a position of a file, or the overrides of a method there."""
    return await ask_at(
        call,
        params,
        lambda source, named: Navigator(source).find_implementations(named),
    )


class ReferencesParams(PlaceParams):
    """A position in a file, and which uses are wanted."""

    include_declaration: bool = Field(
        default=True, description="Include the definitions and declarations."
    )
    limit: int = Field(1_000, ge=1, le=10_000, description="Most uses to return.")
    only_here: bool = Field(default=False, description="Only those in this file.")
    cursor: Cursor = None


@handler(
    "references",
    command="references path line column",
    toolset="editors",
    render=render_targets,
)
async def references(call: Call[Host], params: ReferencesParams) -> PlacesResult:
    """Find the uses of what is at a position of a file, each with its confidence."""
    question = ReferenceQuestion(
        limit=params.limit,
        include_declaration=params.include_declaration,
        only_here=params.only_here,
        after=(b"", -1)
        if params.cursor is None
        else decode_cursor(
            params,
            params.cursor,
            lambda path, offset: (path.encode("latin-1"), int(offset)),
        ),
    )
    return await ask_at(
        call, params, lambda source, named: ReferenceSearch(source, question).run(named)
    )


class HoverResult(TypedDict):
    """The signature and documentation, as written, of what is at a position; `range`: of the name there."""

    symbol_name: str | None
    range: Range | None
    results: list[NamedPlace]
    signature: str
    documentation: str
    language: str
    reason: NotRequired[str]
    detail: NotRequired[str]
    coverage: Coverage


def render_hover(result: HoverResult, style: Style) -> Iterator[str]:
    """Yield the signature and the documentation, or why there is none."""
    yield from (
        style.text(text)
        for text in (result["signature"], result["documentation"])
        if text
    )
    if "reason" in result and not style.is_person:
        yield Note(f"[{result['reason']}: {result.get('detail', '')}]")


@handler(
    "hover", command="hover path line column", toolset="editors", render=render_hover
)
async def hover(call: Call[Host], params: PlaceParams) -> HoverResult:
    """Show the signature and documentation of what is at a position of a file."""
    said = Hover("", "", "")

    def find(source: SymbolSource, named: NameAtPosition) -> Navigation:
        # Read in the lookup's own thread, where the file is open.
        nonlocal said
        definitions = Navigator(source).find_definitions(named)
        if definitions.places:
            said = describe(definitions.places[0])
        return definitions

    places_result = await ask_at(call, params, find)
    result: HoverResult = {
        "symbol_name": places_result["symbol_name"],
        "range": places_result["range"],
        "results": places_result["results"],
        "signature": said.signature,
        "documentation": said.documentation,
        "language": said.language,
        "coverage": places_result["coverage"],
    }
    if "reason" in places_result:
        result["reason"], result["detail"] = (
            places_result["reason"],
            places_result["detail"],
        )
    return result


class StepPlace(NamedPlace):
    """A definition one step away; `uses`: the places of the calls in the caller's file."""

    uses: list[Range]


class StepsResult(TypedDict):
    """The definitions one step away, by path and line; for the rest as `definition`."""

    symbol_name: str | None
    range: Range | None
    results: list[StepPlace]
    reason: NotRequired[str]
    detail: NotRequired[str]
    unsure: NotRequired[int]
    coverage: Coverage


def render_steps(result: StepsResult, style: Style) -> Iterator[str]:
    """Yield each definition with its place, or why there is none."""
    yield from render_targets(
        {**result, "results": [*result["results"]], "next": None}, style
    )


def render_callers(result: StepsResult, style: Style) -> Iterator[str]:
    """Yield each caller with its place; of a file that calls outside of functions, the place of its first call."""
    callers = list[StepPlace]()
    for caller in result["results"]:
        place = caller["selection_range"]
        if caller.get("kind") == MODULE and caller["uses"]:
            place = caller["uses"][0]
        callers.append({**caller, "selection_range": place})
    yield from render_targets({**result, "results": [*callers], "next": None}, style)


@handler(
    "callers",
    command="callers path line column",
    toolset="editors",
    render=render_callers,
)
async def callers(call: Call[Host], params: PlaceParams) -> StepsResult:
    """Find the functions that call the one at a position of a file; calls outside of functions count for their file."""
    return await _ask_steps(call, params, find_callers)


@handler(
    "calls", command="calls path line column", toolset="editors", render=render_steps
)
async def calls(call: Call[Host], params: PlaceParams) -> StepsResult:
    """Find what the function at a position of a file calls, except for calls by functions inside it."""
    return await _ask_steps(call, params, find_callees)


@handler(
    "supertypes",
    command="supertypes path line column",
    toolset="editors",
    render=render_steps,
)
async def supertypes(call: Call[Host], params: PlaceParams) -> StepsResult:
    """Find the types that the one at a position of a file extends; `implementations` finds the reverse."""
    return await _ask_steps(call, params, find_supertypes)


HANDLERS: tuple[Handler, ...] = (
    definition, declaration, implementations, references, hover, callers, calls, supertypes
)  # fmt: skip


async def ask_at(
    call: Call[Host],
    params: PlaceParams,
    find: Callable[[SymbolSource, NameAtPosition], Navigation],
    *,
    reaches: bool = True,
) -> PlacesResult:
    """Answer a question about the name at a position; ``reaches``: in libraries as well, if the project does not tell."""
    started = time.perf_counter()
    view = await open_view(call, params)
    if params.fresh:
        fresh = await view.refresh()
    else:
        fresh = False
    libraries = look_up_libraries(view)
    path = await _resolve_place(view, libraries, params.path)
    deadline = time.monotonic() + params.deadline_ms / 1000

    def look(snapshot: Snapshot) -> tuple[PlacesResult, Navigation]:
        source = SnapshotSource(snapshot, path)
        if path.startswith(b"/"):
            source.libraries = libraries
        found_navigation = Navigation()
        named: NameAtPosition | NoResult = NoResult(
            "deadline", "the deadline was reached"
        )
        try:
            with expiring(deadline):
                named = find_name_at(
                    source, path, params.line, params.column, params.position_encoding
                )
                if isinstance(named, NoResult):
                    found_navigation = Navigation(no_result=named)
                else:
                    found_navigation = find(source, named)
                    if reaches and not found_navigation.is_settled:
                        source.libraries = libraries
                        beyond = find(source, named)
                        if beyond.places:
                            found_navigation = beyond
        except Expired:
            found_navigation.complete = False
        # Even if nothing was found: a server that did not answer may be why.
        if source.imported is not None:
            found_navigation.detail = source.imported.problem
        else:
            found_navigation.detail = ""
        result = _format(params, named, found_navigation)
        label_libraries(libraries, found_navigation.places, result["results"])
        return result, found_navigation

    result, navigation = await view.in_thread(look)
    result["coverage"] = view.coverage(navigation, fresh=fresh, started=started)
    return result


async def _resolve_place(
    view: View, libraries: LibraryLookup | None, path: str
) -> bytes:
    """Return a file of the project, relative to its root, or of a library that it uses, as an absolute path."""
    raw = path.encode("utf-8", "surrogateescape")
    try:
        resolved = await resolve_path(view, path)
    except Forbidden:
        located = await locate_in_libraries(view, libraries, raw)
        if located is None:
            raise
        return located
    if _IN_FOLDERS.search(resolved):
        located = await locate_in_libraries(view, libraries, resolved)
        return located or resolved
    return resolved


def label_libraries(
    libraries: LibraryLookup | None,
    places: Sequence[Place],
    entries: Sequence[NamedPlace],
) -> None:
    """Say of each place in a library, which one and in which version."""
    for place, entry in zip(places, entries, strict=True):
        if libraries is not None and place.path.startswith(b"/"):
            library = libraries.find_library(place.path)
            if library is not None:
                entry["library"] = library.label


async def _ask_steps(
    call: Call[Host],
    params: PlaceParams,
    find: Callable[[SymbolSource, NameAtPosition], Hierarchy],
) -> StepsResult:
    uses: list[list[Range]] = []
    first_lines: list[str] = []

    def look(source: SymbolSource, named: NameAtPosition) -> Hierarchy:
        answer = find(source, named)
        for step in answer.steps:
            columns = Columns(step.user.lines, params.position_encoding)
            several = [columns.range(*use) for use in sorted(step.uses)]
            uses.append(several)
            line = ""
            # A file has no signature: what tells more than its first line is the call.
            if step.place.kind == MODULE and step.place.symbols is step.user:
                line = step.user.lines.text(several[0]["start_line"])
            first_lines.append(line.strip()[:MOST_LINE])
        return answer

    places_result = await ask_at(call, params, look, reaches=False)
    places_result.pop("next", None)
    steps = []
    rows = zip(places_result["results"], uses, first_lines, strict=True)
    for named_place, several, line in rows:
        step = {**named_place, "uses": several}
        if line:
            step["text"] = line
        steps.append(step)
    return {**places_result, "results": steps}  # type: ignore[typeddict-item]  # mypy does not see that the cursor is out


def _format(
    params: PlaceParams, named: NameAtPosition | NoResult, found: Navigation
) -> PlacesResult:
    """Return what was found, except for its coverage; called in the thread of the lookup."""
    columns: dict[bytes, Columns] = {}

    def measure(place: Place | NameAtPosition, start: int, end: int) -> Range:
        counted = columns.setdefault(
            place.path, Columns(place.symbols.lines, params.position_encoding)
        )
        return counted.range(start, end)

    result: PlacesResult = {  # type: ignore[typeddict-item]  # the caller adds its coverage
        "symbol_name": None if isinstance(named, NoResult) else named.text,
        "range": None
        if isinstance(named, NoResult)
        else measure(named, named.start, named.end),
        "results": [_format_place(place, measure) for place in found.places],
    }
    if found.no_result is not None:
        result["reason"], result["detail"] = (
            found.no_result.reason,
            found.no_result.detail,
        )
    if found.unsure:
        result["unsure"] = found.unsure
    if isinstance(params, ReferencesParams):
        if found.has_more:
            last = found.places[-1]
        else:
            last = None
        result["next"] = (
            encode_cursor(params, last.path.decode("latin-1"), last.start)
            if last
            else None
        )
    return result


def _format_place(
    place: Place, measure: Callable[[Place, int, int], Range]
) -> NamedPlace:
    symbols = place.symbols
    index = place.index
    # Editors put the cursor on the name and show the whole definition around it.
    selection = measure(place, place.start, place.end)
    entry: NamedPlace = {
        **path_to_json(place.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "symbol_name": symbols.data[place.start : place.end].decode("utf-8", "replace"),
        "role": place.role,
        "range": selection if index < 0 else measure(place, *place.span),
        "selection_range": selection,
        "confidence": round(place.resolution.confidence, 2),
        "resolved": place.resolution.how,
        "language": symbols.language,
    }
    if place.resolution.how in SOURCES:
        entry["source"] = place.resolution.how
    if place.kind:
        entry["kind"] = place.kind
    if index >= 0:
        around = index
    else:
        around = symbols.enclosing(place.start)
    if index >= 0:
        container = symbols.container(index)
    elif around >= 0:
        container = symbols.qualified(around)
    else:
        container = ""
    if container:
        entry["container"] = container
    if index >= 0:
        entry["signature"] = symbols.signature(index)
    else:
        entry["text"] = symbols.lines.text(selection["start_line"]).strip()[:MOST_LINE]
    return entry
