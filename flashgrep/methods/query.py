"""The `query` method: find text, exactly or by words."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, get_args

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import BadPattern
from flashgrep.base.model import path_to_text
from flashgrep.base.registry import (
    RARE,
    ByteCount,
    Call,
    Handler,
    Params,
    PatternText,
    Usage,
    handler,
)
from flashgrep.files.columns import Range
from flashgrep.files.globs import PathFilter
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    AllLibraries,
    Below,
    Cursor,
    Deadline,
    Encoding,
    Exclude,
    FileChoice,
    Fresh,
    Include,
    InLanguages,
    LibraryName,
    MaxTokensIfSet,
    Owners,
    ProjectName,
    ProjectNames,
    Rev,
    decode_cursor,
    encode_cursor,
    make_path_filter,
    view_of,
)
from flashgrep.methods.nearest_lines import NEAREST, NearestLines
from flashgrep.methods.projects import (
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_projects,
)
from flashgrep.methods.text import Note, Style, note_libraries, render_hits
from flashgrep.pattern import Pattern
from flashgrep.pattern.grep_syntax import (
    BASIC_BAR,
    LOOKS_LIKE_REGEX,
    translate_basic,
)
from flashgrep.search.exact import (
    COUNT_ON_FILES,
    Answer,
    Position,
    Question,
)
from flashgrep.search.path_search import near_paths

MOST_CONTEXT = 100
SUGGESTIONS = 3
MODEL_TOKENS, MODEL_HITS = 500, 100
"""For a model that sets no limit: what a page may take, since a page of a few short lines costs another call."""
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
SmartMode = Literal["literal", "regex", "grep", "words"]
"""Readings of a text, in the order in which they are tried."""
Fallback = Literal["regex", "grep", "words"]
"""Readings used only if nothing has the text itself; ``grep``: a regular expression in grep's basic syntax."""


class QueryParams(Params):
    """What to look for, where, and how much to return."""

    query: PatternText = Field(
        min_length=1,
        description="A text, or a regular expression in ripgrep's syntax.",
    )
    any_of: list[PatternText] = Field(
        default=[],
        max_length=100,
        description="Further texts: a line with any of them matches.",
    )
    mode: Annotated[
        Literal["smart", "literal", "regex"],
        Usage(shortcuts={"-F": "literal", "-e": "regex"}),
    ] = Field(
        "smart",
        description="smart: the text itself, best hits first; if nothing has it, as a regex if it looks like one.",
    )
    case: Annotated[
        Literal["sensitive", "insensitive", "smart"],
        Usage(shortcuts={"-i": "insensitive", "-s": "sensitive"}),
    ] = Field(
        "smart",
        description="smart: insensitive unless the text has a capital letter.",
    )
    word: Annotated[bool, Usage(short="-w")] = Field(
        default=False, description="Match whole words only."
    )
    line: Annotated[bool, RARE] = Field(
        default=False, description="Match whole lines only."
    )
    multiline: Annotated[bool, Usage(short="-U")] = Field(
        default=False, description="Let matches span lines."
    )
    dotall: Annotated[bool, RARE] = Field(
        default=False, description="With multiline: let . match line ends."
    )
    engine: Annotated[Literal["linear", "backtracking"], RARE] = Field(
        "linear",
        description="backtracking: look-around and back-references, by Python's re; reads every file.",
    )
    path: Below = None
    include: Include = []
    exclude: Exclude = []
    language: InLanguages = []
    owner: Owners = []
    output: Literal["lines", "files", "count"] = Field(
        "lines",
        description="files: names only. count: matching lines per file.",
    )
    order: Annotated[Literal["relevance", "path"] | None, RARE] = Field(
        None,
        description="relevance: definitions and sources first (smart mode's default). path: by path and line.",
    )
    context: Annotated[int, Usage(short="-C")] = Field(
        0,
        ge=0,
        le=MOST_CONTEXT,
        description="Lines of context before and after each hit.",
    )
    before: Annotated[int | None, Usage(short="-B", rare=True)] = Field(
        None,
        ge=0,
        le=MOST_CONTEXT,
        description="Lines of context before; overrides `context`.",
    )
    after: Annotated[int | None, Usage(short="-A", rare=True)] = Field(
        None,
        ge=0,
        le=MOST_CONTEXT,
        description="Lines of context after; overrides `context`.",
    )
    spans: Annotated[bool, RARE] = Field(
        default=False,
        description="Return all matches of each hit, up to 1,000 (not in words mode).",
    )
    position_encoding: Encoding = "utf-32"
    limit: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Most hits to return (10 unless set otherwise).",
    )
    cursor: Cursor = None
    max_tokens: MaxTokensIfSet = None
    max_bytes: Annotated[ByteCount | None, RARE] = Field(
        None, ge=200, description="Size of the answer, in bytes."
    )
    deadline_ms: Deadline = 30_000
    max_file_size: Annotated[ByteCount | None, RARE] = Field(
        None,
        ge=1,
        description="Largest file searched, in bytes; overrides the setting.",
    )
    fresh: Fresh = True
    use_index: Annotated[bool, RARE] = Field(
        default=True, description="False: bypass the index and read every file."
    )
    explain: Annotated[bool, RARE] = Field(
        default=False,
        description="Explain how the question was understood and planned.",
    )
    rev: Rev = None
    project: ProjectName = None
    projects: ProjectNames = None
    library: LibraryName = None
    libraries: AllLibraries = False

    @property
    def lines_before(self) -> int:
        """Lines of context before a match."""
        if self.before is None:
            return self.context
        return self.before

    @property
    def lines_after(self) -> int:
        """Lines of context after a match."""
        if self.after is None:
            return self.context
        return self.after


class Explanation(TypedDict):
    """How a question was understood and planned."""

    pattern: str
    grams: str
    candidates: int
    files_read: int
    scanned: bool


class QueryHit(TypedDict, total=False):
    """A hit; with output `files` or `count` only the file, and the count; `project` if several were asked.

    `column` counts characters; with `spans`, it and the spans count as `position_encoding` says.
    """

    project: str
    library: str
    file_path: str
    file_path_bytes: str
    start_line: int
    end_line: int
    column: int
    byte_column: int
    spans: list[Range]
    spans_left_out: int
    text: str
    text_column: int
    cut: bool
    before: list[str]
    after: list[str]
    score: float
    count: int


class QueryResult(TypedDict):
    """Hits in order, their total if known, and what was covered.

    `fallback`: nothing has the text itself; these hits are of it as a regex, or lines with most of its words.
    `suggestions`: if nothing was found, similar names in the code, and files with a similar name.
    """

    results: list[QueryHit]
    total: int | None
    next: str | None
    mode: str
    fallback: NotRequired[Fallback]
    coverage: Coverage
    suggestions: NotRequired[list[str]]
    explained: NotRequired[Explanation]


def render_query(result: QueryResult, style: Style) -> Iterator[str]:
    """Yield the hits as ripgrep prints them, or a line for each file."""
    hits = result["results"]
    if hits and result.get("mode") == "words" and not style.is_person:
        yield "[nothing has this text; nearest:]"
    if hits and "text" in hits[0]:
        yield from render_hits(hits, style)
    else:
        yield from (
            style.path(hit) + (f":{hit['count']}" if "count" in hit else "")
            for hit in hits
        )
    yield from note_libraries(hits)
    if "explained" in result:
        yield Note(f"explained: {json.dumps(result['explained'])}")


@handler("query", title="Search text", listing="by_default", render=render_query)
async def query(call: Call[Host], params: QueryParams) -> QueryResult:
    """Search text like grep: find the lines with a text or regular expression, exactly as ripgrep would now.

    Use it when you know some of the text; get_symbol for a name's definition or references, search_code when you only
    know what the code does. Ignored, hidden and binary files are left out.
    """
    limit, _ = _choose_page(call, params)
    result = await ask_projects(call, params, _query_project, _join, limit=limit)
    if call.as_text and result["mode"] == "words":
        # Of several projects, too.
        del result["results"][NEAREST:]
        result["total"] = len(result["results"])
        result["next"] = None
    return result


HANDLERS: tuple[Handler, ...] = (query,)


def _choose_page(call: Call[Host], params: QueryParams) -> tuple[int, int]:
    """Return the most hits of an answer, and the most characters."""
    settings = call.host.settings.query
    limit = params.limit or settings.default_limit
    tokens = params.max_tokens or settings.max_tokens
    # With context ten hits fill a page already.
    has_context = params.context or params.before or params.after
    if call.as_text and params.limit is None and not has_context:
        limit = MODEL_HITS
        tokens = params.max_tokens or MODEL_TOKENS
    return limit, tokens * CHARS_PER_TOKEN


class Reading(NamedTuple):
    """A text taken in one of the ways it may be meant, and what was found."""

    mode: SmartMode
    answer: Answer
    fresh: bool = False
    """Whether the answer reflects the disk after the call came in."""
    pattern: Pattern | None = None
    """What was looked for; by words: what no line has. None: a later page of words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectQuery:
    """A call for one project: what is looked for in which view."""

    call: Call[Host]
    params: QueryParams
    view: View
    keep: PathFilter | None
    position: Position | None
    """Where the page begins; None: the first page."""
    projects: int
    """How many are asked: they share what counting may use."""

    async def read(self, modes: Sequence[SmartMode]) -> Reading:
        """Return the first reading with hits; or one that ran out of time, since it may have had some."""
        reading = Reading(modes[0], Answer())
        # From the narrowest on: what is meant literally is not answered by a regex.
        for mode in modes:
            if mode == "words":
                reading = await self._read_words(reading)
            else:
                reading = await self._read_pattern(mode)
            if reading.answer.has_hits or not reading.answer.complete:
                break
        return reading

    async def _read_words(self, before: Reading) -> Reading:
        """Return the lines with most of the words, which no earlier reading has."""
        params = self.params
        words = self.call.host.searchers.words
        if words is None:  # a cursor from a daemon that had the part
            return before
        # Include what was saved while earlier readings were tried.
        fresh = params.fresh and await self.view.refresh()
        if self.call.as_text:
            nearest = NearestLines(
                self.view,
                params.query,
                self.keep,
                self.call.host.searchers.ranking,
                time.monotonic() + params.deadline_ms / 1000,
            )
            # Where no file has any of the words, what was searched for the text stands.
            answer = await nearest.find() or before.answer
        else:
            limit, _ = _choose_page(self.call, params)
            answer = await words(self.view, params.query, limit, self.keep)
        return Reading("words", answer, fresh, before.pattern)

    async def _read_pattern(self, mode: Literal["literal", "regex", "grep"]) -> Reading:
        """Return the lines that match."""
        pattern = _make_pattern(self.params, mode)
        question = self._ask_for(pattern)
        answer, fresh = await _search(self.view, question, self.params)
        return Reading(mode, answer, fresh, pattern)

    def _ask_for(self, pattern: Pattern) -> Question:
        call = self.call
        params = self.params
        limit, chars = _choose_page(call, params)
        ranking = None
        is_smart = params.order is None and params.mode == "smart"
        if is_smart or params.order == "relevance":
            ranking = call.host.searchers.ranking
        # Else the hits are merged with others, or rendered.
        is_passed_on = self.projects == 1 and not call.is_rendered
        return Question(
            pattern=pattern,
            keep=self.keep,
            output=params.output,
            ranking=ranking,
            limit=limit,
            before=params.lines_before,
            after=params.lines_after,
            max_chars=min(chars, params.max_bytes or chars),
            as_text=call.as_text,
            # Anew for each reading, since the one before may have taken its time.
            deadline=time.monotonic() + params.deadline_ms / 1000,
            use_index=params.use_index,
            engine=params.engine,
            position=self.position,
            count_on=COUNT_ON_FILES // self.projects,
            spans=params.position_encoding if params.spans else None,
            as_json=is_passed_on,
        )

    async def describe(self, reading: Reading, started: float) -> QueryResult:
        """Return the answer to send; ``started``: when the call came in, on the clock of time.perf_counter()."""
        params = self.params
        answer = reading.answer
        is_smart = params.mode == "smart"
        is_linear = params.engine == "linear"
        result: QueryResult = {
            "results": answer.hits,  # type: ignore[typeddict-item]  # built as QueryHit, untyped for speed
            "total": answer.total,
            "next": None,
            "mode": reading.mode,
            "coverage": self.view.coverage(
                answer,
                fresh=reading.fresh,
                started=started,
                keep=self.keep,
            ),
        }
        if is_smart and is_linear and reading.mode != "literal" and answer.has_hits:
            result["fallback"] = reading.mode
        if answer.next is not None:
            tier, path, *reached = answer.next
            name = path.decode("latin-1")
            result["next"] = encode_cursor(params, reading.mode, tier, name, *reached)
        # Before a later page there were hits.
        if is_smart and not answer.has_hits and self.position is None:
            result["suggestions"] = await _suggest(self.call, self.view, params)
        if params.explain and is_linear and reading.pattern is not None:
            result["explained"] = _explain(reading.pattern, answer)
        return result


def _explain(pattern: Pattern, answer: Answer) -> Explanation:
    return {
        "pattern": str(pattern),
        "grams": str(pattern.grams()),
        "candidates": answer.candidates,
        "files_read": answer.files_read,
        "scanned": answer.scanned,
    }


async def _query_project(
    call: Call[Host],
    params: QueryParams,
    project: Project,
    among: ProjectSelection,
) -> Page[QueryResult]:
    """Answer for one project."""
    started = time.perf_counter()
    view = await view_of(call, project, params.rev)
    keep = await make_path_filter(
        view,
        FileChoice(
            include=params.include,
            exclude=params.exclude,
            languages=params.language,
            without=among.nested,
            holds=among.holds,
            below=params.path,
            owners=params.owner,
        ),
    )
    position: Position | None = None
    if params.cursor is None:
        has_words = call.host.searchers.words is not None
        modes = await _choose_modes(view, params, has_words=has_words)
    else:  # later pages use the reading that the first one settled on
        mode, position = decode_cursor(params, params.cursor, _read_state)
        modes = [mode]
    project_query = ProjectQuery(
        call=call,
        params=params,
        view=view,
        keep=keep,
        position=position,
        projects=among.projects,
    )
    reading = await project_query.read(modes)
    result = await project_query.describe(reading, started)
    answer = reading.answer
    # By score, by relevance, or not at all, where the order is that of paths.
    rank = (
        answer.ranks.__getitem__
        if answer.ranks
        else lambda at: -answer.hits[at].get("score", 0)
    )
    return Page(result, rank, get_args(SmartMode).index(reading.mode))


def _make_pattern(
    params: QueryParams, mode: Literal["literal", "regex", "grep"]
) -> Pattern:
    texts = (params.query, *params.any_of)
    if mode == "grep":
        texts = tuple(map(translate_basic, texts))
    return Pattern(
        texts=texts,
        mode="literal" if mode == "literal" else "regex",
        case=params.case,
        word=params.word,
        line=params.line,
        multiline=params.multiline,
        dotall=params.dotall,
    )


async def _suggest(call: Call[Host], view: View, params: QueryParams) -> list[str]:
    """Return names and paths that are similar to a text that was not found."""
    if params.fresh:  # ripgrep may have answered before the files were listed
        await view.refresh()
    near = await view.in_turn(
        lambda: near_paths(params.query, view.paths(), SUGGESTIONS)
    )
    names = await _find_near_names(call, view, params)
    return [*names, *map(path_to_text, near)][:SUGGESTIONS]


async def _find_near_names(
    call: Call[Host], view: View, params: QueryParams
) -> list[str]:
    """Return names in the code that are similar to the one searched for; none if the text is not one name."""
    near_names = call.host.searchers.near_names
    name = params.query.strip()
    if near_names is None or params.any_of or not IDENTIFIER.fullmatch(name):
        return []
    return await near_names(view, name)


def _name_in(root: str, suggestion: str) -> str:
    """Return a suggestion of one of several projects: a name as it is, a path below the project's root."""
    if IDENTIFIER.fullmatch(suggestion):
        return suggestion
    return f"{root}/{suggestion}"


def _join(result: QueryResult, answers: Sequence[ProjectAnswer[QueryResult]]) -> None:
    """Merge the suggestions of projects, and how each was searched."""
    if not result["results"] and "suggestions" in result:
        of_answers = [
            [
                _name_in(answer.root, near)
                for near in answer.result.get("suggestions", ())
            ]
            for answer in answers
        ]
        suggestions = [
            near for of_turn in zip_longest(*of_answers) for near in of_turn if near
        ]
        # Several projects may have the same name.
        result["suggestions"] = list(dict.fromkeys(suggestions))[:SUGGESTIONS]
    explained = [
        answer.result["explained"] for answer in answers if "explained" in answer.result
    ]
    if explained:
        result["explained"] = {
            **explained[0],
            "candidates": sum(explanation["candidates"] for explanation in explained),
            "files_read": sum(explanation["files_read"] for explanation in explained),
            "scanned": any(explanation["scanned"] for explanation in explained),
        }


async def _choose_modes(
    workspace: View, params: QueryParams, *, has_words: bool
) -> list[SmartMode]:
    """Return how a text may be meant, in the order in which it is tried; ``has_words``: a part finds single words."""
    if params.engine == "backtracking":
        return ["literal" if params.mode == "literal" else "regex"]
    if params.mode != "smart":
        return [params.mode]
    modes: list[SmartMode] = ["literal"]
    texts = (params.query, *params.any_of)
    looks_like_regex = any(LOOKS_LIKE_REGEX.search(text) is not None for text in texts)
    # Compiling shows whether it is one, and takes up to a second.
    if looks_like_regex and await workspace.in_turn(partial(selects_text, texts)):
        modes.append("regex")
    # Whoever is used to grep writes a\|b, which in ripgrep's syntax is a text with a bar.
    has_basic_bar = any(BASIC_BAR in text for text in texts)
    if has_basic_bar and await workspace.in_turn(partial(selects_by_basic, texts)):
        modes.append("grep")
    # Lines with some of the words have no single match that could be a whole word, a
    # whole line or of a given case.
    is_restricted = (
        not has_words
        or params.word
        or params.line
        or params.multiline
        or params.case == "sensitive"
    )
    if (
        len(params.query.split()) > 1
        and not params.any_of
        and not is_restricted
        and params.output == "lines"
    ):
        modes.append("words")
    return modes


def selects_by_basic(texts: tuple[str, ...]) -> bool:
    """Return what ``selects_text`` says of texts as basic regular expressions; a long one takes 0.1 s to translate."""
    return selects_text(tuple(map(translate_basic, texts)))


def selects_text(texts: tuple[str, ...]) -> bool:
    """Return whether texts compile as a regular expression every match of which has at least one character.

    ``x || y`` compiles too, and matches the empty text, so it would select every line of the project.
    """
    try:
        return not Pattern(texts=texts, mode="regex").matches_empty()
    except BadPattern:
        return False


async def _search(
    workspace: View, question: Question, params: QueryParams
) -> tuple[Answer, bool]:
    """Return the answer, and whether it reflects the disk after the call came in."""
    if params.fresh:
        return await workspace.search_fresh(
            question, max_file_size=params.max_file_size
        )
    return await workspace.search(question, max_file_size=params.max_file_size), False


def _read_state(
    mode: SmartMode, tier: int, path: str, *state: Any
) -> tuple[SmartMode, Position]:
    taken, total, led = state
    # A cursor comes from outside, even if its digest is right.
    if mode not in get_args(SmartMode):
        raise ValueError(mode)
    if total is None:
        total = None
    else:
        total = int(total)
    return mode, Position(
        int(tier), str(path).encode("latin-1"), int(taken), total, led=bool(led)
    )
