"""For editors: who calls whom, and which types build upon which, one step from a place of a file."""

from collections.abc import Callable, Iterator
from typing import NotRequired

from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.handlers.common import Coverage
from flashgrep.handlers.navigation import NamedPlace, PlaceParams, ask_at, render_named
from flashgrep.handlers.text import Style
from flashgrep.ingest.columns import Columns, Range
from flashgrep.registry import Call, Handler, handler
from flashgrep.search.hierarchy import Hierarchy, find_called, find_callers, find_supertypes
from flashgrep.search.named import Named
from flashgrep.search.symbol_source import SymbolSource


class StepPlace(NamedPlace):
    """A definition one step away; `uses`: where it is called, or calls, in the file of the caller."""

    uses: list[Range]


class StepsResult(TypedDict):
    """The definitions one step away, by path and place; for the rest as `definition`."""

    symbol_name: str | None
    range: Range | None
    results: list[StepPlace]
    reason: NotRequired[str]
    detail: NotRequired[str]
    unsure: NotRequired[int]
    coverage: Coverage


def render_steps(result: StepsResult, style: Style) -> Iterator[str]:
    """Yield each definition with its place; or why there is none."""
    yield from render_named({**result, "results": [*result["results"]], "next": None}, style)


@handler("callers", command="callers path line column", toolset="editors", render=render_steps)
async def callers(call: Call[Catalogue], params: PlaceParams) -> StepsResult:
    """Find the functions that call the one at a place of a file; calls outside of any count for their file."""
    return await _ask_steps(call, params, find_callers)


@handler("calls", command="calls path line column", toolset="editors", render=render_steps)
async def calls(call: Call[Catalogue], params: PlaceParams) -> StepsResult:
    """Find what the function at a place of a file calls, but for what is called by functions inside it."""
    return await _ask_steps(call, params, find_called)


@handler("supertypes", command="supertypes path line column", toolset="editors", render=render_steps)
async def supertypes(call: Call[Catalogue], params: PlaceParams) -> StepsResult:
    """Find the types that the one at a place of a file builds upon; `implementations` finds those upon it."""
    return await _ask_steps(call, params, find_supertypes)


HANDLERS: tuple[Handler, ...] = (callers, calls, supertypes)


async def _ask_steps(
    call: Call[Catalogue], params: PlaceParams, find: Callable[[SymbolSource, Named], Hierarchy]
) -> StepsResult:
    uses: list[list[Range]] = []

    def look(source: SymbolSource, named: Named) -> Hierarchy:
        found = find(source, named)
        for step in found.steps:
            columns = Columns(step.user.lines, params.position_encoding)
            uses.append([columns.range(*use) for use in sorted(step.uses)])
        return found

    found = await ask_at(call, params, look)
    found.pop("next", None)
    steps = [{**one, "uses": several} for one, several in zip(found["results"], uses, strict=True)]
    return {**found, "results": steps}  # type: ignore[typeddict-item]  # mypy does not see that the cursor is out
