"""Symbols: where a name is defined and used, what a file or project has in it."""

import base64
import hashlib
import time
from typing import Annotated, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.checkpoint import checkpoint
from flashgrep.errors import InvalidParams, NotFound
from flashgrep.handlers.covering import Coverage, coverage_of
from flashgrep.handlers.filtering import path_filter
from flashgrep.ingest.globs import PathFilter
from flashgrep.ingest.parse.lookup import Role
from flashgrep.model import show_path
from flashgrep.params import CursorText, Globs, Languages, PathText, SymbolName
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.exact import Answer
from flashgrep.search.outline import Entry, Outline, outline, repository_map
from flashgrep.search.symbol_source import SnapshotSource
from flashgrep.search.symbols import Found, Match, SymbolAnswer, SymbolQuestion, SymbolSearch

CHARS_PER_TOKEN = 4
RESULT_OVERHEAD = 260
"""Characters of JSON around one occurrence's texts."""
SymbolKind = Literal[
    "function", "method", "constructor", "class", "struct", "union", "interface", "trait", "enum", "enumerator",
    "type", "constant", "variable", "field", "property", "event", "macro", "module", "namespace", "object",
    "extension", "heading", "package",
]  # fmt: skip


class GetSymbolParams(Params):
    """Which symbol, how its name is compared, and which occurrences are wanted."""

    symbol_name: SymbolName = Field(description="A name, or a qualified one as Class.method or mod::fn.")
    match: Match = Field(
        "exact",
        description="exact: the whole name, all its occurrences. prefix: definitions whose name begins so. fuzzy: "
        "occurrences of the defined names most like it.",
    )
    case: Annotated[Literal["sensitive", "insensitive"], Usage(shortcuts={"-i": "insensitive", "-s": "sensitive"})] = (
        Field("sensitive", description="How letters are compared.")
    )
    kind: list[SymbolKind] = Field(default=[], max_length=100, description="Only definitions of these kinds.")
    role: list[Role] = Field(default=[], max_length=100, description="Only occurrences of these roles.")
    include: Annotated[Globs, Usage(short="-g")] = Field(
        default=[], description="Only files that match one of these globs, as src/**/*.py."
    )
    exclude: Globs = Field(default=[], description="No files that match one of these globs.")
    language: Annotated[Languages, Usage(short="-t")] = Field(
        default=[], description="Only files of these languages, as py or rust."
    )
    limit: Annotated[int, Usage(short="-l")] = Field(50, ge=1, le=10_000, description="Most occurrences to send back.")
    cursor: Annotated[CursorText | None, Usage(short="-c")] = Field(
        None, description="`next` of the answer before, to go on behind it."
    )
    max_tokens: int = Field(8_000, ge=50, le=1_000_000, description="Size of the answer, in tokens of 4 characters.")
    deadline_ms: Annotated[int, RARE] = Field(
        10_000, ge=1, le=600_000, description="After so long, what was found so far is sent."
    )
    fresh: Annotated[bool, RARE] = Field(default=True, description="Take in all that was saved before this call.")
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class SymbolHit(TypedDict):
    """One occurrence: lines of the whole construct, `line_number` and `column` of the name."""

    symbol_name: str
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int
    line_number: int
    column: int
    role: str
    kind: NotRequired[str]
    symbol_type: str
    container: NotRequired[str]
    signature: NotRequired[str]
    doc: NotRequired[str]
    language: str


class GetSymbolResult(TypedDict):
    """Occurrences, definitions first and sources before tests; how many there are in all, and what was covered."""

    symbol_name: str
    results: list[SymbolHit]
    total: int
    next: str | None
    coverage: Coverage
    suggestions: NotRequired[list[str]]


@handler("get_symbol", title="Find a symbol", command="symbol symbol_name")
async def get_symbol(call: Call[Catalogue], params: GetSymbolParams) -> GetSymbolResult:
    """Find every occurrence of a symbol: definitions first, then declarations, implementations, imports, calls, uses.

    Right from the first moment: files not parsed yet are parsed for the answer. Comments and strings do not count.
    """
    started = time.perf_counter()
    workspace = await call.host.workspace(call, params.project)
    fresh = await workspace.refresh() if params.fresh else False
    keep = await path_filter(workspace, params.include, params.exclude, params.language)
    question = _question(params, keep)
    answer = await workspace.in_thread(lambda snapshot: SymbolSearch(SnapshotSource(snapshot), question).run())
    hits = _within_budget(answer, params.max_tokens)
    reached = question.after + len(hits)
    result: GetSymbolResult = {
        "symbol_name": params.symbol_name,
        "results": hits,
        "total": answer.total,
        "next": _cursor(params, reached) if hits and reached < answer.total else None,
        "coverage": coverage_of(
            workspace,
            Answer(complete=answer.complete, files_read=answer.files_read, skipped=answer.skipped),
            fresh=fresh,
            started=started,
            keep=keep,
        ),
    }
    if answer.suggestions:
        result["suggestions"] = answer.suggestions
    return result


def _question(params: GetSymbolParams, keep: PathFilter | None) -> SymbolQuestion:
    return SymbolQuestion(
        name=params.symbol_name,
        match=params.match,
        fold=params.case == "insensitive",
        kinds=frozenset(params.kind),
        roles=frozenset(params.role),
        keep=keep,
        limit=params.limit,
        after=_position(params),
        deadline=time.monotonic() + params.deadline_ms / 1000,
    )


def _within_budget(answer: SymbolAnswer, max_tokens: int) -> list[SymbolHit]:
    """Return as many hits as the budget holds, at least one."""
    hits: list[SymbolHit] = []
    spent = 0
    for found in answer.results:
        hit = _hit(found)
        spent += RESULT_OVERHEAD + len(found.signature) + len(found.doc) + len(hit["file_path"])
        if hits and spent > max_tokens * CHARS_PER_TOKEN:
            break
        hits.append(hit)
    return hits


def _hit(found: Found) -> SymbolHit:
    one = found.occurrence
    hit: SymbolHit = {
        "symbol_name": one.name,
        **show_path(found.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": one.start_line,
        "end_line": one.end_line,
        "line_number": one.line,
        "column": one.column,
        "role": one.role,
        "symbol_type": one.kind or one.role,
        "language": found.language,
    }
    if one.kind:
        hit["kind"] = one.kind
    if one.container:
        hit["container"] = one.container
    if found.signature:
        hit["signature"] = found.signature
    if found.doc:
        hit["doc"] = found.doc
    return hit


def _digest(params: GetSymbolParams) -> str:
    passing = {"cursor", "limit", "max_tokens", "deadline_ms", "fresh"}
    return hashlib.blake2b(params.model_dump_json(exclude=passing).encode(), digest_size=6).hexdigest()


def _cursor(params: GetSymbolParams, reached: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([_digest(params), reached])).decode()


def _position(params: GetSymbolParams) -> int:
    if params.cursor is None:
        return 0
    try:
        digest, reached = orjson.loads(base64.urlsafe_b64decode(params.cursor))
        after = int(reached)
    except (ValueError, TypeError):
        raise InvalidParams("cursor: not one of ours", field="cursor") from None
    if digest != _digest(params):
        raise InvalidParams("cursor: it belongs to another question; pass the same parameters", field="cursor")
    return after


class OutlineParams(Params):
    """Which file or folder, and how much of it."""

    path: PathText = Field(
        "", description="File or folder, relative to the project; empty: a map of the whole project."
    )
    everything: Annotated[bool, RARE] = Field(default=False, description="Fields, variables and enumerators too.")
    max_tokens: int = Field(2_000, ge=50, le=1_000_000, description="Size of the answer, in tokens of 4 characters.")
    fresh: Annotated[bool, RARE] = Field(default=True, description="Take in all that was saved before this call.")
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class OutlineFile(TypedDict):
    """A file's symbols, one a line, indented by nesting, each with its lines."""

    file_path: str
    file_path_bytes: NotRequired[str]
    symbols: list[str]


class OutlineResult(TypedDict):
    """Files with their symbols; `left_out`: symbols that did not fit the budget."""

    path: str
    results: list[OutlineFile]
    files: int
    left_out: int
    files_skipped: dict[str, int]
    fresh: bool


@handler("outline", command="outline path", title="Outline a file, folder or project", toolset="research")
async def outline_path(call: Call[Catalogue], params: OutlineParams) -> OutlineResult:
    """Show what a file or folder defines as a tree; without a path, a map of the project's most used definitions."""
    workspace = await call.host.workspace(call, params.project)
    fresh = await workspace.refresh() if params.fresh else False
    chars = params.max_tokens * CHARS_PER_TOKEN
    below = params.path.strip("/").removeprefix("./").encode()
    if below in {b"", b"."}:
        made, files = await workspace.in_thread(
            lambda snapshot: _by_file(repository_map(SnapshotSource(snapshot), max_chars=chars))
        )
    else:
        paths = [path for path in workspace.paths() if path == below or path.startswith(below + b"/")]
        if not paths:
            raise NotFound(f"no such file or folder: {params.path}", reason="path_not_found", target_path=params.path)
        made, files = await workspace.in_thread(
            lambda snapshot: _by_file(
                outline(SnapshotSource(snapshot), paths, max_chars=chars, everything=params.everything)
            )
        )
    return {
        "path": params.path,
        "results": files,
        "files": made.files,
        "left_out": made.left_out,
        "files_skipped": made.skipped,
        "fresh": fresh,
    }


def _by_file(made: Outline) -> tuple[Outline, list[OutlineFile]]:
    """Return an outline with its lines by file; in the thread that made it, for there can be 100,000."""
    files: dict[bytes, list[str]] = {}
    for entry in made.entries:
        checkpoint()
        files.setdefault(entry.path, []).append(_line(entry))
    return made, [
        {**show_path(path), "symbols": lines}  # type: ignore[typeddict-item]  # as in _hit
        for path, lines in files.items()
    ]


def _line(entry: Entry) -> str:
    span = f"{entry.line}" if entry.line == entry.end_line else f"{entry.line}-{entry.end_line}"
    used = f" (used in {entry.uses} files)" if entry.uses else ""
    return f"{'  ' * entry.depth}{span} {entry.signature or entry.kind}{used}"


HANDLERS: tuple[Handler, ...] = (get_symbol, outline_path)
