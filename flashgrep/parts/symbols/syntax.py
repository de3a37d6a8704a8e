"""For editors: foldable ranges of a file, and the syntax around positions."""

from collections.abc import Callable, Iterator
from typing import Annotated, NotRequired, TypeVar

from pydantic import Field
from tree_sitter import Node
from typing_extensions import TypedDict

from flashgrep.api.host import Host
from flashgrep.base.model import Skipped
from flashgrep.base.registry import Call, Handler, LineNumber, Params, PathText, handler
from flashgrep.files.columns import Columns, Range, find_column
from flashgrep.methods.common import (
    PATH,
    Encoding,
    Fresh,
    ProjectName,
    Rev,
    open_view,
    resolve_path,
)
from flashgrep.methods.text import Style, span
from flashgrep.parts.symbols.name_at_position import read_line
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import SnapshotSource, tree_of
from flashgrep.parts.symbols.syntax_ranges import FoldKind, find_around, find_folds
from flashgrep.search.snapshot import Snapshot

ResultT = TypeVar("ResultT")
MOST_PLACES = 1_000


class FoldsParams(Params):
    """Which file."""

    path: PathText = Field(description=PATH)
    fresh: Fresh = True
    rev: Rev = None
    project: ProjectName = None


class FoldEntry(TypedDict):
    """Lines from 1, the last one included."""

    start_line: int
    end_line: int
    kind: FoldKind


class FoldsResult(TypedDict):
    """Foldable ranges in order; `reason`: why there are none, e.g. `no_language`."""

    results: list[FoldEntry]
    reason: NotRequired[str]


def render_folds(result: FoldsResult, style: Style) -> Iterator[str]:
    """Yield each range of lines with its kind."""
    yield from (
        f"{style.line(span({**fold_entry}))} {fold_entry['kind']}"
        for fold_entry in result["results"]
    )


@handler("folds", command="folds path", toolset="editors", render=render_folds)
async def folds(call: Call[Host], params: FoldsParams) -> FoldsResult:
    """List the foldable ranges of a file: bodies, brackets, runs of comments and of imports."""

    def find(_symbols: FileSymbols, root: Node) -> list[FoldEntry]:
        return [
            {"start_line": fold.start + 1, "end_line": fold.end + 1, "kind": fold.kind}
            for fold in find_folds(root)
        ]

    tree = await _ask_tree(call, params, find)
    if isinstance(tree, str):
        return {"results": [], "reason": tree}
    return {"results": tree}


class FilePlaceParams(Params):
    """A place in the file."""

    line: LineNumber = Field(description="Line, from 1.")
    column: LineNumber = Field(description="Column, from 1.")


class EnclosingParams(FoldsParams):
    """Which places of which file."""

    places: Annotated[
        list[FilePlaceParams], Field(min_length=1, max_length=MOST_PLACES)
    ] = Field(description="Places, as {line, column}.")
    position_encoding: Encoding = "utf-32"


class EnclosingResult(TypedDict):
    """For each place the ranges around it, innermost first; none if it is outside the text."""

    results: list[list[Range]]
    reason: NotRequired[str]


def render_enclosing(result: EnclosingResult, _style: Style) -> Iterator[str]:
    """Yield a line for each place: the ranges around it, innermost first."""
    for ranges in result["results"]:
        yield " ".join(
            f"{range_['start_line']}:{range_['start_column']}-{range_['end_line']}:{range_['end_column']}"
            for range_ in ranges
        )


@handler("enclosing", toolset="editors", render=render_enclosing)
async def enclosing(call: Call[Host], params: EnclosingParams) -> EnclosingResult:
    """List the syntax around places of a file: the name, the expression, the statement, the function, and so on."""

    def find(symbols: FileSymbols, root: Node) -> list[list[Range]]:
        columns = Columns(symbols.lines, params.position_encoding)
        ranges = []
        for place in params.places:
            line = read_line(symbols, place.line)
            if line is None:
                at = None
            else:
                at = find_column(line[1], place.column, params.position_encoding)
            if line is None or at is None:
                around = []
            else:
                around = find_around(root, line[0] + at)
            ranges.append([columns.range(*span) for span in around])
        return ranges

    tree = await _ask_tree(call, params, find)
    if isinstance(tree, str):
        return {"results": [[] for _ in params.places], "reason": tree}
    return {"results": tree}


HANDLERS: tuple[Handler, ...] = (folds, enclosing)


async def _ask_tree(
    call: Call[Host],
    params: FoldsParams,
    find: Callable[[FileSymbols, Node], ResultT],
) -> ResultT | str:
    """Return what is found in the syntax tree of a file, or why it has none."""
    view = await open_view(call, params)
    if params.fresh:
        await view.refresh()
    path = await resolve_path(view, params.path)

    def look(snapshot: Snapshot) -> ResultT | str:
        symbols = SnapshotSource(snapshot, path).open(path)
        if isinstance(symbols, Skipped):
            return symbols.reason
        if symbols is None:
            root = None
        else:
            root = tree_of(symbols)
        if symbols is None or root is None:
            return "no_language"
        return find(symbols, root)

    return await view.in_thread(look)
