"""The `query` method: find text, exactly or by words."""

import base64
import hashlib
import re
import time
from functools import partial
from typing import Annotated, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.errors import BadPattern, InvalidParams
from flashgrep.handlers.covering import Coverage, coverage_of
from flashgrep.handlers.filtering import path_filter
from flashgrep.ingest.globs import PathFilter
from flashgrep.model import show_path
from flashgrep.params import ByteCount, CursorText, Globs, Languages, PathText, PatternText
from flashgrep.pattern import Pattern
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.exact import Answer, Position, Question
from flashgrep.search.near import near_paths
from flashgrep.workspace import Workspace

CHARS_PER_TOKEN = 4
MOST_CONTEXT = 100
SUGGESTIONS = 3
LOOKS_LIKE_REGEX = re.compile(r"[\\^$|*+?\[\](){}]|\.[*+]")
"""What only a regular expression is likely to have."""
SmartMode = Literal["literal", "regex", "words"]
"""How a text may be meant, in the order in which it is tried."""


class QueryParams(Params):
    """What to look for, where, and how much of it to send back."""

    text: PatternText = Field(min_length=1, description="Words, a literal string or a regular expression, by `mode`.")
    any_of: list[PatternText] = Field(
        default=[], max_length=100, description="More texts; a line with any of them matches."
    )
    mode: Annotated[
        Literal["smart", "literal", "regex"], Usage(short="-m", shortcuts={"-F": "literal", "-e": "regex"})
    ] = Field(
        "smart",
        description="literal: the text itself. regex: ripgrep's syntax. smart: the text itself, best hits first; where "
        "nothing has it, as a regex if it looks like one, else the texts with most of its words.",
    )
    case: Annotated[
        Literal["sensitive", "insensitive", "smart"], Usage(shortcuts={"-i": "insensitive", "-s": "sensitive"})
    ] = Field("smart", description="smart: insensitive unless the text has a capital letter.")
    word: Annotated[bool, Usage(short="-w")] = Field(default=False, description="Match whole words only.")
    line: Annotated[bool, RARE] = Field(default=False, description="Match whole lines only.")
    multiline: Annotated[bool, Usage(short="-U")] = Field(default=False, description="Let matches span lines.")
    dotall: Annotated[bool, RARE] = Field(default=False, description="With multiline: let . match a line end.")
    engine: Literal["linear", "backtracking"] = Field(
        "linear",
        description="backtracking: look-around and back-references, by Python's re; reads every file.",
    )
    include: Annotated[Globs, Usage(short="-g")] = Field(
        default=[], description="Only files that match one of these globs, as src/**/*.py."
    )
    exclude: Globs = Field(default=[], description="No files that match one of these globs.")
    language: Annotated[Languages, Usage(short="-t")] = Field(
        default=[], description="Only files of these languages, as py or rust."
    )
    output: Literal["lines", "files", "count"] = Field(
        "lines", description="lines: each matching line. files: names only. count: matching lines of each file."
    )
    order: Annotated[Literal["relevance", "path"] | None, RARE] = Field(
        None, description="relevance: definitions and sources first (smart mode's default). path: by path and line."
    )
    context: Annotated[int, Usage(short="-C")] = Field(
        0, ge=0, le=MOST_CONTEXT, description="Lines of context before and after each hit."
    )
    before: Annotated[int | None, Usage(short="-B", rare=True)] = Field(
        None, ge=0, le=MOST_CONTEXT, description="Lines of context before, over `context`."
    )
    after: Annotated[int | None, Usage(short="-A", rare=True)] = Field(
        None, ge=0, le=MOST_CONTEXT, description="Lines of context after, over `context`."
    )
    limit: Annotated[int | None, Usage(short="-l")] = Field(
        None, ge=1, le=10_000, description="Most hits to send back (10 unless set otherwise)."
    )
    cursor: Annotated[CursorText | None, Usage(short="-c")] = Field(
        None, description="`next` of the answer before, to go on behind it."
    )
    max_tokens: int | None = Field(
        None, ge=50, le=1_000_000, description="Size of the answer, in tokens of 4 characters."
    )
    max_bytes: Annotated[ByteCount | None, RARE] = Field(None, ge=200, description="Size of the answer, in bytes.")
    deadline_ms: Annotated[int, RARE] = Field(
        30_000, ge=1, le=600_000, description="After so long, what was found so far is sent."
    )
    max_file_size: Annotated[ByteCount | None, RARE] = Field(
        None, ge=1, description="Largest file searched, in bytes, over the setting."
    )
    fresh: Annotated[bool, RARE] = Field(default=True, description="Take in all that was saved before this call.")
    use_index: Annotated[bool, RARE] = Field(default=True, description="False: read every file, the slow truth.")
    explain: Annotated[bool, RARE] = Field(
        default=False, description="Say how the question was understood and planned."
    )
    project: PathText | None = Field(None, description="Project, by name or root; the connection's own by default.")


class Explained(TypedDict):
    """How a question was understood and planned."""

    pattern: str
    grams: str
    candidates: int
    files_read: int
    scanned: bool


class QueryHit(TypedDict, total=False):
    """A hit; with output `files` or `count` only the file, and the count."""

    file_path: str
    file_path_bytes: str
    start_line: int
    end_line: int
    column: int
    byte_column: int
    text: str
    text_column: int
    cut: bool
    before: list[str]
    after: list[str]
    score: float
    count: int


class QueryResult(TypedDict):
    """Hits in order, how many there are in all where that is known, and what was covered.

    `suggestions`: where nothing was found, files of a similar name.
    """

    results: list[QueryHit]
    total: int | None
    next: str | None
    mode: str
    coverage: Coverage
    suggestions: NotRequired[list[str]]
    explained: NotRequired[Explained]


@handler("query", title="Search text")
async def query(call: Call[Catalogue], params: QueryParams) -> QueryResult:
    """Find lines that match a literal text, a regular expression or words, exactly as ripgrep would now.

    Respects .gitignore and skips hidden and binary files, as ripgrep does. An answer is cut at `limit` or its size;
    pass `next` back as `cursor` for more. `coverage` says what was searched and what was left out.
    """
    started = time.perf_counter()
    workspace = await call.host.workspace(call, params.project)
    fresh = await workspace.refresh() if params.fresh else False
    keep = await path_filter(workspace, params.include, params.exclude, params.language)
    cursor_mode, position = _position(params)
    answer, pattern, mode = Answer(), None, ""
    for mode in await _modes(workspace, params, cursor_mode):
        if mode == "words":
            fresh = params.fresh and await workspace.refresh()
            answer = await workspace.words(params.text, _limit(call, params), keep)
        else:
            question = _question(call, params, mode, position, keep)
            pattern = question.pattern
            answer, fresh = await _ask(workspace, question, params)
        if answer.results or not answer.complete:
            break
    result: QueryResult = {
        "results": answer.results,  # type: ignore[typeddict-item]  # built as QueryHit, untyped for speed
        "total": answer.total,
        "next": _cursor(params, mode, answer.next),
        "mode": mode,
        "coverage": coverage_of(workspace, answer, fresh=fresh, started=started, keep=keep),
    }
    if not answer.results and params.mode == "smart" and position is None:
        near = await workspace.in_turn(lambda: near_paths(params.text, workspace.paths(), SUGGESTIONS))
        result["suggestions"] = [show_path(path)["file_path"] for path in near]
    if params.explain and pattern is not None and params.engine == "linear":
        result["explained"] = _explained(pattern, answer)
    return result


async def _modes(workspace: Workspace, params: QueryParams, cursor_mode: SmartMode | None) -> list[SmartMode]:
    if cursor_mode is not None:
        return [cursor_mode]
    if params.engine == "backtracking":
        return ["literal" if params.mode == "literal" else "regex"]
    if params.mode != "smart":
        return [params.mode]
    modes: list[SmartMode] = ["literal"]
    # Whether it is one is found by compiling it, which takes up to a second.
    if LOOKS_LIKE_REGEX.search(params.text) is not None and await workspace.in_turn(partial(is_regex, params.text)):
        modes.append("regex")
    if len(params.text.split()) > 1:
        modes.append("words")
    return modes


def is_regex(text: str) -> bool:
    """Return whether a text compiles as a regular expression."""
    try:
        Pattern(texts=(text,), mode="regex").matcher()
    except BadPattern:
        return False
    return True


async def _ask(workspace: Workspace, question: Question, params: QueryParams) -> tuple[Answer, bool]:
    """Return the answer, and whether it is of the disk as it was after the call came in."""
    if params.fresh:
        answer = await workspace.lookups.search_unlisted(question, max_file_size=params.max_file_size)
        if answer is not None:
            return answer, True
    fresh = params.fresh and await workspace.refresh()
    return await workspace.search(question, max_file_size=params.max_file_size), fresh


def _limit(call: Call[Catalogue], params: QueryParams) -> int:
    return params.limit or call.host.settings.query.default_limit


def _question(
    call: Call[Catalogue], params: QueryParams, mode: str, position: Position | None, keep: PathFilter | None
) -> Question:
    settings = call.host.settings.query
    chars = (params.max_tokens or settings.max_tokens) * CHARS_PER_TOKEN
    order = params.order or ("relevance" if params.mode == "smart" else "path")
    return Question(
        pattern=_pattern(params, "regex" if mode == "regex" else "literal"),
        keep=keep,
        output=params.output,
        order=order if params.output == "lines" else "path",
        limit=_limit(call, params),
        before=params.context if params.before is None else params.before,
        after=params.context if params.after is None else params.after,
        max_chars=min(chars, params.max_bytes or chars),
        deadline=time.monotonic() + params.deadline_ms / 1000,
        use_index=params.use_index,
        engine=params.engine,
        position=position,
    )


def _pattern(params: QueryParams, mode: Literal["literal", "regex"]) -> Pattern:
    return Pattern(
        texts=(params.text, *params.any_of),
        mode=mode,
        case=params.case,
        word=params.word,
        line=params.line,
        multiline=params.multiline,
        dotall=params.dotall,
    )


def _explained(pattern: Pattern, answer: Answer) -> Explained:
    return {
        "pattern": str(pattern),
        "grams": str(pattern.grams()),
        "candidates": answer.candidates,
        "files_read": answer.files_read,
        "scanned": answer.scanned,
    }


# A cursor carries its whole state: which question it belongs to, how that was understood, and where to go on.


def _digest(params: QueryParams) -> str:
    passing = {"cursor", "limit", "max_tokens", "max_bytes", "deadline_ms", "fresh", "explain", "use_index"}
    return hashlib.blake2b(params.model_dump_json(exclude=passing).encode(), digest_size=6).hexdigest()


def _cursor(params: QueryParams, mode: str, position: Position | None) -> str | None:
    if position is None:
        return None
    state = [_digest(params), mode, position.tier, position.path.decode("latin-1"), position.taken, position.total]
    state.append(position.led)
    return base64.urlsafe_b64encode(orjson.dumps(state)).decode()


def _position(params: QueryParams) -> tuple[SmartMode | None, Position | None]:
    if params.cursor is None:
        return None, None
    try:
        digest, mode, tier, path, taken, total, led = orjson.loads(base64.urlsafe_b64decode(params.cursor))
        total = None if total is None else int(total)
        position = Position(int(tier), str(path).encode("latin-1"), int(taken), total, led=bool(led))
    except (ValueError, TypeError):
        raise InvalidParams("cursor: not one of ours", field="cursor") from None
    if digest != _digest(params) or mode not in {"literal", "regex", "words"}:
        raise InvalidParams("cursor: it belongs to another question; pass the same parameters", field="cursor")
    return mode, position


HANDLERS: tuple[Handler, ...] = (query,)
