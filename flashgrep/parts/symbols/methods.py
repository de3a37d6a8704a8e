"""Symbols: where a name is defined and used, and what a file or project defines."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.checkpoint import checkpoint, release
from flashgrep.base.errors import NotFound
from flashgrep.base.model import EncodedList, path_to_json, path_to_text
from flashgrep.base.places import SYMBOL_OF_FILE
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    NameText,
    Params,
    PathText,
    SymbolName,
    Usage,
    handler,
)
from flashgrep.files.columns import Columns, PositionEncoding, Range
from flashgrep.files.globs import PathFilter
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    AllLibraries,
    Below,
    Budget,
    Cursor,
    Deadline,
    Encoding,
    Exclude,
    FileChoice,
    FilePlace,
    Fresh,
    Include,
    InLanguages,
    LibraryName,
    MaxTokens,
    MaxTokensIfSet,
    ProjectName,
    ProjectNames,
    Rev,
    decode_cursor,
    encode_cursor,
    find_project_with,
    make_path_filter,
    resolve_path,
    tell_near,
    view_of,
)
from flashgrep.methods.projects import (
    AskProject,
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_each,
    ask_projects,
)
from flashgrep.methods.text import (
    Note,
    Style,
    Use,
    note_libraries,
    render_uses,
    shorten_entries,
    span,
)
from flashgrep.parts.symbols.outlines import Outline, nest, open_all, outline
from flashgrep.parts.symbols.parse.lookup import Role
from flashgrep.parts.symbols.parse.model import END, NAME, NAME_END, START
from flashgrep.parts.symbols.qualified_names import find_resolution
from flashgrep.parts.symbols.repository_map import repository_map
from flashgrep.parts.symbols.symbol_search import (
    SUGGESTED,
    FoundSymbol,
    Match,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.search.declared_kinds import read_kinds
from flashgrep.search.snapshot import Snapshot

RESULT_OVERHEAD, TEXT_OVERHEAD = 260, 30
"""Overhead of one occurrence in characters, as JSON and as text."""
OUTLINE_TOKENS = 2_000
"""Default size of an outline."""
MOST_UNMAPPED = 6
"""Folders that a map names beside itself."""
MOST_ENTRIES, ENTRY_CHARS = 20_000, 300
"""Default number of symbols in a structured outline, and the approximate characters of JSON of one."""
FEW = 2
"""Uses of one role; if there are more, the role is said once, above all of them."""
NOTES: Final[tuple[tuple[Literal["namesakes", "unsure", "as_text"], str], ...]] = (
    (
        "namesakes",
        "[{} definitions have this name, a use may be of any; Container.name asks about one]",
    ),
    ("unsure", "[{} uses left out: too ambiguous to resolve]"),
    (
        "as_text",
        "[no symbol; the word is in comments, texts or files that are not parsed, {} times at least: query finds it]",
    ),
)
SymbolKind = Literal[
    "function", "method", "constructor", "class", "struct", "union", "interface", "trait", "enum", "enumerator",
    "type", "constant", "variable", "field", "property", "event", "macro", "module", "namespace", "object",
    "extension", "heading", "package",
]  # fmt: skip


class GetSymbolParams(Params):
    """Which symbol, how its name is compared, and which occurrences are wanted."""

    symbol_name: SymbolName = Field(
        description="A name, or a qualified one: Class.method, pkg.Name, mod::fn, path:NAME."
    )
    match: Match = Field(
        "exact",
        description="prefix: definitions whose name starts so. fuzzy: similar names.",
    )
    case: Annotated[
        Literal["sensitive", "insensitive"],
        Usage(rare=True, shortcuts={"-i": "insensitive", "-s": "sensitive"}),
    ] = Field("sensitive", description="How letter case is compared.")
    kind: list[SymbolKind] = Field(
        default=[],
        max_length=100,
        description="Only definitions of these kinds, as function, class.",
    )
    role: list[Role] = Field(
        default=[], max_length=100, description="Only these occurrences."
    )
    body: bool = Field(
        default=False,
        description="Include the code of definitions.",
    )
    path: Below = None
    include: Include = []
    exclude: Annotated[Exclude, RARE] = []
    language: InLanguages = []
    limit: Annotated[int, Usage(short="-l")] = Field(
        50, ge=1, le=10_000, description="Most occurrences to return."
    )
    cursor: Cursor = None
    max_tokens: MaxTokens = 8_000
    deadline_ms: Deadline = 10_000
    fresh: Fresh = True
    position_encoding: Annotated[PositionEncoding | None, RARE] = Field(
        None, description="What columns of names count, e.g. utf-16; adds end columns."
    )
    rev: Rev = None
    project: ProjectName = None
    projects: ProjectNames = None
    library: LibraryName = None
    libraries: AllLibraries = False


class SymbolHit(FilePlace):
    """One occurrence: lines of the whole construct, `line_number` and `column` of the name.

    `column` counts characters or, if that is given, by `position_encoding`; then `end_column` is after the name.
    """

    library: NotRequired[str]
    symbol_name: str
    start_line: int
    end_line: int
    line_number: int
    column: int
    end_column: NotRequired[int]
    role: str
    kind: NotRequired[str]
    symbol_type: str
    container: NotRequired[str]
    signature: NotRequired[str]
    doc: NotRequired[str]
    body: NotRequired[str]
    language: str


class GetSymbolResult(TypedDict):
    """Occurrences, definitions first and sources before tests; how many there are in all, and what was covered.

    `total`: null while there is a `next` for a name in more than 500 files, or a prefix with more than 100 defining
    files: these are answered some files at a time, defining files first. `namesakes`: the number of definitions with
    the name; a use may be of any of them, and a qualified name selects one. `unsure`: uses left out because they may or
    may not be of the qualified name. `as_text`: nothing was found, but the word is so often, at least, in comments,
    texts or files of languages that are not parsed.
    """

    symbol_name: str
    results: list[SymbolHit]
    total: int | None
    next: str | None
    coverage: Coverage
    suggestions: NotRequired[list[str]]
    namesakes: NotRequired[int]
    unsure: NotRequired[int]
    as_text: NotRequired[int]


def render_symbols(result: GetSymbolResult, style: Style) -> Iterator[str]:
    """Yield each occurrence's place: a definition with kind and signature, a use with role, container and line."""
    roles = {hit["role"] for hit in result["results"]}
    is_said = (
        not style.is_person
        and len(result["results"]) > FEW
        and len(roles) == 1
        and "definition" not in roles
    )
    if is_said:
        yield f"{result['results'][0]['role']} in:"

    def describe(hit: SymbolHit) -> Use:
        path = style.path(hit)
        kind = hit.get("kind", "")
        role = hit["role"]
        text = hit.get("signature") or hit["symbol_name"]
        if style.is_person:
            label = " ".join(filter(None, [role, kind]))
            return Use(
                path, str(hit["start_line"]), "", f"{hit['column']}:{label}: {text}"
            )
        container = hit.get("container", "")
        if container:
            within = f" in {container}"
        else:
            within = ""
        if role == "definition":
            return Use(path, span(hit), "", f"{kind}{within} {text}")
        if is_said:
            return Use(path, span(hit), container, text)
        return Use(path, span(hit), f"{role}{within}", text)

    hits_shown = (
        result["results"] if style.is_person else drop_doubles(result["results"])
    )
    for has_body, hits in groupby(hits_shown, key=lambda hit: "body" in hit):
        if has_body:  # its signature is in it
            for hit in hits:
                if hit.get("container"):
                    within = f" in {hit['container']}"
                else:
                    within = ""
                kind = hit.get("kind", "")
                yield f"{style.path(hit)}:{span(hit)} {kind}{within}"
                yield style.text(hit["body"])
            continue
        yield from render_uses(map(describe, hits), style)
    yield from note_libraries(result["results"])
    for key, note in NOTES:
        count = result.get(key)
        if count:
            yield Note(note.format(count))


def drop_doubles(hits: Sequence[SymbolHit]) -> list[SymbolHit]:
    """Return hits without further uses on a line already shown: a model sees the whole line with the first."""
    lines: set[tuple[str, str, int]] = set()
    distinct: list[SymbolHit] = []
    for hit in hits:
        line = (hit.get("project", ""), hit["file_path"], hit["line_number"])
        if line in lines and "kind" not in hit:
            continue
        lines.add(line)
        distinct.append(hit)
    return distinct


@handler(
    "get_symbol",
    title="Find a symbol",
    listing="by_default",
    command="symbol symbol_name",
    render=render_symbols,
)
async def get_symbol(call: Call[Host], params: GetSymbolParams) -> GetSymbolResult:
    """Find a symbol: its definition first, then declarations, implementations, imports, callers, other references.

    Use it for names in code; comments and strings do not count (query finds those).
    """
    return await ask_projects(call, params, _look_up_in_project, _join)


async def _look_up_in_project(
    call: Call[Host],
    params: GetSymbolParams,
    project: Project,
    among: ProjectSelection,
) -> Page[GetSymbolResult]:
    """Answer for one project."""
    started = time.perf_counter()
    workspace = await view_of(call, project, params.rev)
    if params.fresh:
        fresh = await workspace.refresh()
    else:
        fresh = False
    keep = await make_path_filter(
        workspace,
        FileChoice(
            include=params.include,
            exclude=params.exclude,
            languages=params.language,
            without=among.nested,
            holds=among.holds,
            below=params.path,
        ),
    )
    name = params.symbol_name
    if params.path is None and (placed := SYMBOL_OF_FILE.fullmatch(name)):
        # ``path:NAME``, as read_code takes it; a name may look like that, so the file
        # must be there.
        with suppress(NotFound):
            await workspace.resolve(placed["path"])
            name = placed["symbol"]
            keep = await make_path_filter(
                workspace,
                FileChoice(
                    include=params.include,
                    exclude=params.exclude,
                    languages=params.language,
                    without=among.nested,
                    holds=among.holds,
                    below=placed["path"],
                ),
            )
    kinds = set(params.kind)
    # Other tools and models call methods functions.
    if "function" in kinds:
        kinds |= {"method", "constructor"}
    question = SymbolQuestion(
        name=name,
        match=params.match,
        fold=params.case == "insensitive",
        kinds=frozenset(kinds),
        roles=frozenset(params.role or (["definition"] if params.body else [])),
        body_chars=params.max_tokens * CHARS_PER_TOKEN if params.body else 0,
        keep=keep,
        limit=params.limit,
        after=0 if params.cursor is None else decode_cursor(params, params.cursor, int),
        deadline=time.monotonic() + params.deadline_ms / 1000,
        encoding=params.position_encoding,
        resolve=find_resolution(workspace),
    )
    answer = await workspace.in_thread(
        lambda snapshot: SymbolSearch(SnapshotSource(snapshot), question).run()
    )
    # Budget what is sent: a line of text takes far less than the same hit as JSON.
    overhead = TEXT_OVERHEAD if call.as_text else RESULT_OVERHEAD
    hits = Budget(params.max_tokens).fit(
        map(_format_hit, answer.results),
        lambda hit: (
            overhead
            + len(hit.get("signature", ""))
            + len(hit.get("doc", ""))
            + len(hit.get("body", ""))
            + len(hit["file_path"])
        ),
    )
    # A cursor counts occurrences, ordered by role, tier and path, which later pages
    # share.
    reached = question.after + len(hits)
    result: GetSymbolResult = {
        "symbol_name": params.symbol_name,
        "results": hits,
        "total": answer.total,
        "next": encode_cursor(params, reached)
        if hits and (answer.total is None or reached < answer.total)
        else None,
        "coverage": workspace.coverage(answer, fresh=fresh, started=started, keep=keep),
    }
    if answer.suggestions:
        result["suggestions"] = answer.suggestions
    if answer.namesakes:
        result["namesakes"] = answer.namesakes
    if answer.unsure:
        result["unsure"] = answer.unsure
    if answer.as_text:
        result["as_text"] = answer.as_text
    return Page(result, lambda at: answer.results[at].order)


def _join(
    result: GetSymbolResult, answers: Sequence[ProjectAnswer[GetSymbolResult]]
) -> None:
    """Suggest the nearest names of all projects if none has the symbol."""
    result.pop("suggestions", None)
    if namesakes := sum(answer.result.get("namesakes", 0) for answer in answers):
        result["namesakes"] = namesakes
    if unsure := sum(answer.result.get("unsure", 0) for answer in answers):
        result["unsure"] = unsure
    # Only if no project has it; next to results a suggestion would be noise.
    near = [name for answer in answers for name in answer.result.get("suggestions", ())]
    if near and not result["results"]:
        result["suggestions"] = list(dict.fromkeys(near))[:SUGGESTED]
    result.pop("as_text", None)
    if (
        words := sum(answer.result.get("as_text", 0) for answer in answers)
    ) and not result["results"]:
        result["as_text"] = words


def _format_hit(found: FoundSymbol) -> SymbolHit:
    occurrence = found.occurrence
    hit: SymbolHit = {
        "symbol_name": occurrence.name,
        **path_to_json(found.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": occurrence.start_line,
        "end_line": occurrence.end_line,
        "line_number": occurrence.line,
        "column": occurrence.column,
        "role": occurrence.role,
        "symbol_type": occurrence.kind or occurrence.role,
        "language": found.language,
    }
    if found.columns:
        hit["column"], hit["end_column"] = found.columns
    if occurrence.kind:
        hit["kind"] = occurrence.kind
    if occurrence.container:
        hit["container"] = occurrence.container
    if found.signature:
        hit["signature"] = found.signature
    if found.doc:
        hit["doc"] = found.doc
    if found.body:
        hit["body"] = found.body
    return hit


class OutlineParams(Params):
    """Which file or folder, and how much of it."""

    path: PathText = Field(
        "",
        description="File or folder; empty: the map.",
    )
    mentions: Annotated[list[NameText], Field(max_length=100)] = Field(
        default=[],
        description="A map around these names or parts of paths.",
    )
    everything: Annotated[bool, RARE] = Field(
        default=False, description="Include fields, variables and enumerators."
    )
    structured: Annotated[bool, RARE] = Field(
        default=False,
        description="Return `entries` with their ranges instead of lines, for programs.",
    )
    position_encoding: Encoding = "utf-32"
    max_tokens: MaxTokensIfSet = None
    fresh: Fresh = True
    rev: Rev = None
    project: ProjectName = None
    projects: ProjectNames = None


class OutlineEntry(TypedDict):
    """A symbol of a structured outline; `depth`: its nesting level."""

    name: str
    kind: str
    depth: int
    range: Range
    selection_range: Range
    signature: str


class OutlineFile(FilePlace):
    """A file's symbols, one a line, indented by nesting, each with its lines; or, structured, as entries by place."""

    symbols: list[str]
    entries: NotRequired[list[OutlineEntry]]


class OutlineResult(TypedDict):
    """Files with their symbols; `left_out`: symbols that did not fit the budget.

    `unmapped`: for a map, files without a symbol that could be in it, by folder of the root: prose, data, generated code.
    """

    path: str
    results: list[OutlineFile]
    files: int
    left_out: int
    files_skipped: dict[str, int]
    fresh: bool
    unmapped: NotRequired[dict[str, int]]
    coverage: Coverage


def render_outline(result: OutlineResult, style: Style) -> Iterator[str]:
    """Yield the outline, and how much of it is left out."""
    for file in result["results"]:
        yield style.path(file)
        yield from (
            f"{'  ' * entry['depth']}{span(entry['range'])} {entry['signature']}"
            for entry in file.get("entries", ())
        )
        if style.is_person:
            yield from (f"  {style.text(line)}" for line in file["symbols"])
            continue
        yield from shorten_entries(file["symbols"])
    if result.get("left_out"):
        yield Note(
            f"[{result['left_out']:,} more left out; outline a part of it, or raise max_tokens]"
        )
    unmapped = result.get("unmapped", {})
    if unmapped:
        folders = [f"{name}/ ({count})" for name, count in unmapped.items()]
        yield Note(f"[files not mapped: {', '.join(folders)}; list_files, outline]")


@handler(
    "outline",
    command="outline path",
    title="Outline a file, folder or project",
    listing="by_default",
    toolset="research",
    render=render_outline,
)
async def outline_path(call: Call[Host], params: OutlineParams) -> OutlineResult:
    """Show what a file, or each file of a folder, defines, as a tree; without a path, a map of the project.

    Use it before you read a long file, or first in unfamiliar code. A single line number means: up to the next entry.
    """
    return await _ask_those_with(call, params, _outline)


OutlineT = TypeVar("OutlineT", OutlineParams, "RepoMapParams")


async def _ask_those_with(
    call: Call[Host], params: OutlineT, ask: AskProject[OutlineT, OutlineResult]
) -> OutlineResult:
    """Ask the projects of the connection that have the path; raises as ``ask_each``."""
    # If several have it, all of them are asked.
    if params.path and params.project is None and params.projects is None:
        project = await find_project_with(call, params.path)
        params = params.model_copy(update={"project": project})
    return await ask_each(call, params, ask, _join_outlines)


@dataclass(frozen=True, slots=True)
class _Place:
    """A file or folder of a project that is outlined."""

    view: View
    path: str
    below: bytes
    paths: Sequence[bytes]
    """Its files; of the root none."""
    max_chars: int
    fresh: bool
    started: float
    as_json: bool
    """Whether the answer is sent as it is: neither merged with others, nor rendered."""

    async def map(self, mentions: Sequence[str]) -> Page[OutlineResult]:
        """Return its most important definitions."""

        def make(snapshot: Snapshot) -> tuple[Outline, list[OutlineFile]]:
            outlined = repository_map(
                SnapshotSource(snapshot),
                max_chars=self.max_chars,
                under=self.below,
                mentions=mentions,
                kinds=read_kinds(snapshot),
            )
            return outlined, _format_files(outlined)

        return await self.answer(make)

    async def answer(
        self, make: Callable[[Snapshot], tuple[Outline, list[OutlineFile]]]
    ) -> Page[OutlineResult]:
        """Return what is made in the thread of a lookup, since there can be 100,000 lines.

        There it is encoded, too, and what it was made of is freed: both would hold up the event loop.
        """

        def make_and_release(
            snapshot: Snapshot,
        ) -> tuple[Outline, Any]:
            outlined, files = make(snapshot)
            release(outlined.entries)
            if self.as_json:
                return outlined, _encode_files(files)
            return outlined, files

        files: Any  # a list, or one that is sent as it is
        outlined, files = await self.view.in_thread(make_and_release)
        result: OutlineResult = {
            "path": self.path,
            "results": files,
            "files": outlined.files_read,
            "left_out": outlined.left_out,
            "files_skipped": outlined.skipped,
            "fresh": self.fresh,
            "coverage": self.view.coverage(
                outlined, fresh=self.fresh, started=self.started
            ),
        }
        largest = outlined.unmapped.most_common(MOST_UNMAPPED)
        if largest:
            result["unmapped"] = {path_to_text(name): count for name, count in largest}
        return Page(result)


async def _open_place(
    call: Call[Host],
    params: "OutlineParams | RepoMapParams",
    project: Project,
    among: ProjectSelection,
) -> _Place:
    """Return what is outlined.

    Raises:
        NotFound: there is no such file or folder.

    """
    started = time.perf_counter()
    view = await view_of(call, project, params.rev)
    if params.fresh:
        fresh = await view.refresh()
    else:
        fresh = False
    below = b""
    paths: Sequence[bytes] = ()
    if params.path:
        below = await resolve_path(view, params.path)
    if below:
        paths = view.paths(PathFilter((), (), under=below))
    # An empty folder has nothing to show, and git knows none.
    if below and not paths:
        missing = NotFound(
            f"no file to outline at: {params.path}",
            reason="path_not_found",
            target_path=params.path,
        )
        raise await tell_near(view, missing, params.path)
    max_tokens = (params.max_tokens or OUTLINE_TOKENS) // among.projects
    return _Place(
        view,
        params.path,
        below,
        paths,
        max_chars=max_tokens * CHARS_PER_TOKEN,
        fresh=fresh,
        started=started,
        as_json=among.projects == 1 and not call.is_rendered,
    )


async def _outline(
    call: Call[Host],
    params: OutlineParams,
    project: Project,
    among: ProjectSelection,
) -> Page[OutlineResult]:
    """Answer for one project."""
    place = await _open_place(call, params, project, among)
    if not place.paths or (params.mentions and not params.structured):
        return await place.map(params.mentions)

    def make(snapshot: Snapshot) -> tuple[Outline, list[OutlineFile]]:
        source = SnapshotSource(snapshot)
        if params.structured:
            return _format_structure(source, place.paths, params)
        outlined = outline(
            source,
            place.paths,
            max_chars=place.max_chars,
            everything=params.everything,
        )
        return outlined, _format_files(outlined)

    return await place.answer(make)


def _format_files(made: Outline) -> list[OutlineFile]:
    """Return an outline's lines by file."""
    files: dict[bytes, list[str]] = {}
    for entry in made.entries:
        checkpoint()
        if entry.line == entry.end_line:
            span = f"{entry.line}"
        else:
            span = f"{entry.line}-{entry.end_line}"
        indent = "  " * entry.depth
        head = entry.signature or entry.kind
        files.setdefault(entry.path, []).append(f"{indent}{span} {head}")
    return [
        {**path_to_json(path), "symbols": lines}  # type: ignore[typeddict-item]  # as in _format_hit
        for path, lines in files.items()
    ]


def _encode_files(files: list[OutlineFile]) -> EncodedList:
    """Return files as JSON, and free them one by one."""
    parts = []
    files.reverse()
    while files:
        checkpoint()
        parts.append(orjson.dumps(files.pop()))
    return EncodedList(b"[%b]" % b",".join(parts), len(parts))


def _join_outlines(
    answers: Sequence[ProjectAnswer[OutlineResult]], coverage: Coverage
) -> OutlineResult:
    """Return the outlines of several projects, one after the other."""
    files: list[OutlineFile] = []
    unmapped: Counter[str] = Counter()
    for answer in answers:
        for file in answer.result["results"]:
            files.append({**file, "project": answer.name})
        # Folders of one name are different ones.
        for folder, count in answer.result.get("unmapped", {}).items():
            unmapped[f"{answer.name}: {folder}"] = count
    results = [answer.result for answer in answers]
    joined: OutlineResult = {
        "path": results[0]["path"],
        "results": files,
        "files": sum(result["files"] for result in results),
        "left_out": sum(result["left_out"] for result in results),
        "files_skipped": coverage["files_skipped"],
        "fresh": coverage["fresh"],
        "coverage": coverage,
    }
    if unmapped:
        joined["unmapped"] = dict(unmapped.most_common(MOST_UNMAPPED))
    return joined


def _format_structure(
    source: SnapshotSource, paths: Sequence[bytes], params: OutlineParams
) -> tuple[Outline, list[OutlineFile]]:
    """Return symbols of files with their ranges, up to a limit."""
    new_outline = Outline()
    if params.max_tokens is None:
        room = MOST_ENTRIES
    else:
        room = params.max_tokens * CHARS_PER_TOKEN // ENTRY_CHARS
    files: list[OutlineFile] = []
    for path, symbols in open_all(source, paths, new_outline):
        columns = Columns(symbols.lines, params.position_encoding)
        entries = list[OutlineEntry]()
        for index, depth in nest(symbols, everything=params.everything):
            if not room:
                new_outline.left_out += 1
                continue
            # Budgeted in entries, which are all about the same size.
            room -= 1
            row = symbols.row(index)
            whole = columns.range(row[START], row[END])
            entries.append({
                "name": symbols.name(index),
                "kind": symbols.kind(index),
                "depth": depth,
                "range": whole,
                "selection_range": columns.range(row[NAME], row[NAME_END]),
                "signature": symbols.signature(index),
            })  # fmt: skip
        files.append({**path_to_json(path), "symbols": [], "entries": entries})  # type: ignore[typeddict-item]  # as in _format_hit
    return new_outline, files


class RepoMapParams(Params):
    """Which part of the project, and how much."""

    path: PathText = Field("", description="Only definitions below this folder.")
    mentions: Annotated[list[NameText], Field(max_length=100)] = Field(
        default=[], description="Names, words of names, or parts of paths to focus on."
    )
    max_tokens: MaxTokens = 1_500
    fresh: Annotated[Fresh, RARE] = True
    rev: Annotated[Rev, RARE] = None
    project: ProjectName = None
    projects: ProjectNames = None


@handler(
    "repo_map",
    command="repo-map path",
    title="Map of a project",
    toolset="research",
    render=render_outline,
)
async def repo_map(call: Call[Host], params: RepoMapParams) -> OutlineResult:
    """Show the most important definitions of a project or folder: those the rest depends on.

    Use it first in unfamiliar code.
    """
    return await _ask_those_with(call, params, _map)


async def _map(
    call: Call[Host],
    params: RepoMapParams,
    project: Project,
    among: ProjectSelection,
) -> Page[OutlineResult]:
    """Answer for one project."""
    place = await _open_place(call, params, project, among)
    return await place.map(params.mentions)


HANDLERS: tuple[Handler, ...] = (get_symbol, outline_path, repo_map)
