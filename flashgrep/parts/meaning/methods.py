"""Search by meaning: `search_code` in one project, `semantic_search` over several."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage, milliseconds_since
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import NotFound, Unavailable, clip
from flashgrep.base.languages import language_of
from flashgrep.base.model import path_from_json, path_to_json
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    NameText,
    Params,
    Usage,
    handler,
)
from flashgrep.base.vocabulary import VERBATIM
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    AllLibraries,
    Below,
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
    current_view,
    make_path_filter,
    view_of,
)
from flashgrep.methods.projects import (
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_projects,
)
from flashgrep.methods.text import Code, Style, note_libraries, render_places, span
from flashgrep.parts.meaning.questions import (
    find_best_lines,
    open_reranker,
    search_by_meaning,
)
from flashgrep.parts.meaning.search.current_chunks import FoundChunk, FoundFile
from flashgrep.parts.meaning.search.functions import FoundFunction, narrow
from flashgrep.parts.meaning.search.meaning_search import (
    LIKELY_FILE,
    NEAR_FILE,
    MeaningAnswer,
    MeaningQuestion,
)
from flashgrep.parts.meaning.search.passages import MOST_WHOLE, Excerpt, Span
from flashgrep.parts.meaning.search.word_search import spellings_of
from flashgrep.project.project import BARE
from flashgrep.search.exact import Answer
from flashgrep.search.snapshot import SearchStats

CHUNK_OVERHEAD, TEXT_OVERHEAD = 220, 40
"""Characters around a chunk's text: of JSON, and of its heading."""
MODEL_TOKENS = 525
"""Default budget of code for a model; the names of functions that follow take 60 to 180 tokens more."""
MOST_FILES, MOST_FUNCTIONS = 10, 3
"""Files of an answer, each with its best functions."""
MOST_NAMED = 24
"""Functions of all near files that a model is told by name and lines, with at least one of each."""
SAME_PLACE = 0.8
"""Of all lines of two functions, the share that both have from which they are one place: a class and its only method,
a definition and the statement that exports it. It is named once."""
MOSTLY_SHOWN = 0.5
"""Share of its lines from which a function that is shown is not named again: of a class, most methods."""
OF_FILE, OF_PLACE = 0.7, 0.12
"""What a file's score, relative to the best file, adds to the score of its functions, and what each function of the
file takes from the next: more of both name fewer of the functions asked for, less shows fewer files."""
MOST_LINES, LINE_LENGTH = 10, 200
"""Lines, with most of the question's words, in the error returned before there is an index, and the characters of
each."""
LEAST_CUT = 900
"""Minimum characters left for which a model is shown the most relevant lines of a function that does not fit."""
MOST_SHOWN = 12
"""Lines of a chunk that a terminal shows."""
LINE_KIND = "line"
"""The kind of what is found by its words alone while there are no chunks."""
NEAR = 0.94
"""Results below this share of the best score show no code to a model, but are named in the line of their file."""
NEAR_IF_SHORT, SHORT = 0.85, 400
"""The same for results of up to so many bytes, which cost little more than their names. All of the code asked for is
then shown for 31.8 instead of 30.4 % of our questions, with fewer tokens, since four functions fewer are named: for 81.0
instead of 81.4 % the one asked for."""


OUTSIDE = frozenset({"block", "macro", "module", "namespace", "variable"})
OF_OUTSIDE = 0.8
"""What a result of these kinds, code outside of functions and types such as a file's first lines, counts to a model: it is
the code asked for once in 400. All of the code asked for is then shown for 32.9 instead of 30.8 % of our questions."""


class SearchCodeParams(Params):
    """What to look for, where, and how."""

    query: Annotated[str, Usage(words=True)] = Field(
        min_length=1,
        max_length=2000,
        description="A question in words, or names of code.",
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        10, ge=1, le=100, description="Most chunks of code to return."
    )
    semantic_weight: Annotated[float | None, RARE] = Field(
        None,
        ge=0,
        le=1,
        description="Weight of meaning against words, 0 to 1; default: 0.7 for questions in words, 0.3 for names.",
    )
    path: Below = None
    include: Include = []
    exclude: Annotated[Exclude, RARE] = []
    language: InLanguages = []
    owner: Owners = []
    rev: Annotated[Rev, RARE] = None
    threshold: Annotated[float, RARE] = Field(
        0.0, ge=0, le=1, description="Minimum score of a result."
    )
    max_tokens: MaxTokensIfSet = None
    fresh: Fresh = True
    project: ProjectName = None
    projects: ProjectNames = None
    library: LibraryName = None
    libraries: AllLibraries = False


class CodeMatch(TypedDict):
    """A chunk of code; `kind`: function, class, section, block and so on; `score` 0 to 1; lines from 1, both inclusive.

    A function is shown whole; of a long one its head and the part that answers, of a long comment its first line. A
    line `… 12-40` in `content` stands for lines left out, and `shown` has the first and last line of each range shown.
    In plain text `content` is empty if it did not fit. `path`, `startLine` and `endLine` repeat `file_path`,
    `start_line` and `end_line`; `project`: if several were asked.
    """

    project: NotRequired[str]
    library: NotRequired[str]
    content: str
    shown: NotRequired[list[Span]]
    path: str
    startLine: int
    endLine: int
    score: float
    kind: str
    name: str
    language: str
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int


class FunctionPlace(TypedDict):
    """A function of a file, by its lines from 1, both inclusive; `name` is empty for code outside of functions."""

    name: str
    start_line: int
    end_line: int


class FileMatch(TypedDict):
    """One of the best files, with its best functions, best first; `project`: if several were asked."""

    project: NotRequired[str]
    library: NotRequired[str]
    path: str
    file_path: str
    file_path_bytes: NotRequired[str]
    functions: list[FunctionPlace]


class SearchCodeResult(TypedDict):
    """Chunks of code, best first; `ranked_by` is `words` until there are vectors, then `words and meaning`.

    `files`: the best files, best first. A file with several good functions comes before one with a single better one,
    so this is the list for choosing a file, and `results` for reading code.
    """

    results: list[CodeMatch]
    files: list[FileMatch]
    ranked_by: str
    chunks_searched: int
    coverage: Coverage


def render_chunks(result: SearchCodeResult, style: Style) -> Iterator[str]:
    """Yield each chunk's place and name; for a model those with code first, then functions by file, then other files.

    A file whose result without code comes before all code is told before it.
    """
    if style.is_person and style.headings:
        yield from _render_on_terminal(result, style)
        yield from note_libraries(result["results"])
        return
    if style.is_person:
        # For a pipe a line each, as grep prints them.
        yield from render_places(
            (
                (style.path(piece), str(piece["start_line"]), describe_chunk(piece))
                for piece in result["results"]
            ),
            style,
        )
        yield from note_libraries(result["results"])
        return
    further = name_functions(result, style)
    lines = list[tuple[str, str, str]]()
    pieces = list[CodeMatch]()
    leading = list[str]()
    for piece in result["results"]:
        path = style.path(piece)
        if piece["kind"] == LINE_KIND:
            lines.append((path, span(piece), piece["content"]))
        elif piece["content"]:
            pieces.append(piece)
        elif not pieces and path not in leading:
            leading.append(path)
    yield from render_places(lines, style)
    for path in leading:
        if path in further:
            yield f"{path}: {', '.join(further.pop(path))}"
            yield ""
    last_places = {style.path(piece): at for at, piece in enumerate(pieces)}
    for at, piece in enumerate(pieces):
        path = style.path(piece)
        # What kind of definition it is, its code says.
        heading = f"{path}:{span(piece)} {piece['name'] or piece['kind']}"
        if at == 0:
            heading += f" ({piece['score']:.2f})"
        yield heading
        yield piece["content"]
        # Below the last code of a file, its other functions need no path.
        if at == last_places[path] and path in further:
            yield f"also: {', '.join(further.pop(path))}"
        yield ""
    for path, places in further.items():
        yield f"{path}: {', '.join(places)}"
    likely = [style.path(file) for file in result["files"] if not file["functions"]]
    if likely:
        yield f"less likely: {', '.join(likely)}"
    yield from note_libraries([*result["results"], *result["files"]])


def _render_on_terminal(result: SearchCodeResult, style: Style) -> Iterator[str]:
    """Yield each chunk's place, kind and name, and the first lines of its code."""
    for at, piece in enumerate(result["results"]):
        if at:
            yield ""
        place = f"{style.path(piece)}:{style.line(piece['start_line'])}:"
        if piece["kind"] == LINE_KIND:
            yield f"{place}{style.text(describe_chunk(piece))}"
            continue
        yield f"{place} {style.text(describe_chunk(piece))} ({piece['score']:.2f})"
        yield from _show_code(piece, style)


def _show_code(piece: CodeMatch, style: Style) -> Iterator[str]:
    """Yield the code of a chunk that is shown, up to a bound, with a line for what is left out."""
    lines = piece["content"].split("\n") if piece["content"] else []
    whole = (piece["start_line"], piece["end_line"])
    room = MOST_SHOWN
    at = 0
    last = whole[0] - 1
    for first, end in piece.get("shown", [whole] if lines else []):
        if first > last + 1:
            yield f"… {last + 1}-{first - 1}"
            at += 1  # the line that says so in the content
        shown = min(end, first + room - 1)
        code = lines[at : at + shown - first + 1]
        if code:
            yield Code(style.text("\n".join(code)), piece["file_path"], first)
        at += end - first + 1
        room -= len(code)
        last = shown
        if room <= 0:
            break
    if last < whole[1] and lines:
        yield f"… {last + 1}-{whole[1]}"


def describe_chunk(piece: CodeMatch) -> str:
    """Return a chunk's kind and name; of a line that was found by its words the line."""
    if piece["kind"] == LINE_KIND:
        return piece["content"]
    return f"{piece['kind']} {piece['name']}".rstrip()


def name_functions(result: SearchCodeResult, style: Style) -> dict[str, list[str]]:
    """Return by file the functions whose code is not shown: ``name 12-40``; results without code are among them."""
    lines = dict[str, list[str]]()
    seen = {
        (style.path(piece), piece["start_line"], piece["end_line"])
        for piece in result["results"]
        if piece["content"]
    }
    functions = [
        (style.path(file), function)
        for file in result["files"]
        for function in file["functions"]
    ]
    bare = [
        (style.path(piece), piece)
        for piece in result["results"]
        if not piece["content"]
    ]
    for path, function in (*functions, *bare):
        place = (path, function["start_line"], function["end_line"])
        if place not in seen:
            seen.add(place)
            # Its class is evident from its file, or from a look at it.
            name = function["name"].rpartition(".")[2]
            described = f"{name} {span(function)}".lstrip()
            lines.setdefault(path, []).append(described)
    return lines


@handler(
    "search_code",
    title="Search code by meaning",
    listing="by_default",
    toolset="research",
    render=render_chunks,
)
async def search_code(call: Call[Host], params: SearchCodeParams) -> SearchCodeResult:
    """Search code by what it does: find the functions, classes and sections that answer a question in words.

    Use it when you do not know names; query finds text, get_symbol names.
    """
    return await ask_projects(
        call,
        params,
        _search_code_in_project,
        _join,
    )


async def _search_code_in_project(
    call: Call[Host],
    params: SearchCodeParams,
    workspace: Project,
    among: ProjectSelection,
) -> Page[SearchCodeResult]:
    """Answer for one project."""
    started = time.perf_counter()
    view = await view_of(call, workspace, params.rev)
    fresh = await view.refresh() if params.fresh else False
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
    try:
        if view.revision_id is None or (workspace.is_bare and not view.is_stored):
            await require_index(view)
    except Unavailable as error:
        if (
            not workspace.is_bare
        ):  # an error by contract, with what can be said without an index
            likely = await find_best_lines(
                view, params.query, min(params.limit, MOST_LINES), keep
            )
            if (call.as_text or call.for_person) and likely.results:
                # An agent drops a tool that fails in its first minutes, and a person, too.
                lines = _format_lines(
                    workspace,
                    view,
                    likely,
                    started,
                )
                return Page(lines, lambda at: -lines["results"][at]["score"])
            error.data["likely_lines"] = [
                f"{hit['file_path']}:{hit['start_line']}: {clip(hit['text'].strip(), LINE_LENGTH)}"
                for hit in likely.results
            ]
        raise
    is_for_model = call.as_text and "limit" not in params.model_fields_set
    question = MeaningQuestion(
        text=params.query,
        limit=params.limit,
        semantic_weight=params.semantic_weight,
        keep=keep,
        threshold=params.threshold,
        reranker=await open_reranker(call.host),
        passages=True,
        files=min(params.limit, MOST_FILES),
        least_file=LIKELY_FILE if is_for_model else 0.0,
    )
    answer = await search_by_meaning(view, question)
    unseen = f"{answer.unseen} files are not indexed yet; those with most of the words were searched"
    coverage = view.coverage(
        SearchStats(), fresh=fresh and not answer.unseen, started=started
    )
    # An answer is complete if every chunk could be found by words and by meaning.
    coverage["complete"] &= (
        workspace.progress.stage == "ready" and answer.ranked_by == "words and meaning"
    )
    coverage["complete"] &= not answer.unseen
    details = (coverage.get("detail"), answer.problem, unseen if answer.unseen else "")
    if any(details):
        coverage["detail"] = "; ".join(filter(None, details))
    # A model that reads text gets less by default than a program that asks for JSON.
    default = MODEL_TOKENS if call.as_text else call.host.settings.query.max_tokens
    tokens = params.max_tokens or default
    if is_for_model:
        results, files = choose_for_model(answer, params.query, tokens)
    else:
        if call.for_person and params.max_tokens is None:
            results = crop_for_terminal(answer.results, params.query)
        else:
            results = fit_code(
                answer.results,
                params.query,
                tokens,
                as_text=call.as_text,
            )
        files = [
            format_file(file, file.functions[:MOST_FUNCTIONS]) for file in answer.files
        ]
    result: SearchCodeResult = {
        "results": results,
        "files": files,
        "ranked_by": answer.ranked_by,
        "chunks_searched": answer.chunks,
        "coverage": coverage,
    }
    # Scores are absolute, so those of several projects compare.
    return Page(result, lambda at: -result["results"][at]["score"])


def _format_lines(
    workspace: Project, view: View, likely: Answer, started: float
) -> SearchCodeResult:
    """Return the lines with most of a question's words as pieces of code, for a project that has no chunks yet."""
    results: list[CodeMatch] = []
    for hit in likely.results:
        path = path_from_json(hit["file_path"], hit.get("file_path_bytes"))
        results.append(
            {
                **path_to_json(path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
                "content": clip(hit["text"].strip(), LINE_LENGTH),
                "path": hit["file_path"],
                "startLine": hit["start_line"],
                "endLine": hit["end_line"],
                "score": hit["score"],
                "kind": LINE_KIND,
                "name": "",
                "language": language_of(path).name,
                "start_line": hit["start_line"],
                "end_line": hit["end_line"],
            }
        )
    coverage = view.coverage(likely, fresh=False, started=started)
    coverage["complete"] = False
    coverage["detail"] = f"the index is at {workspace.progress.share():.0%}"
    return {
        "results": results,
        "files": [],
        "ranked_by": "words",
        "chunks_searched": 0,
        "coverage": coverage,
    }


def _join(
    result: SearchCodeResult, answers: Sequence[ProjectAnswer[SearchCodeResult]]
) -> None:
    """Report how all projects were ranked."""
    result["ranked_by"] = min(
        (current_answer.result["ranked_by"] for current_answer in answers), key=len
    )  # words, or words and meaning
    result["chunks_searched"] = sum(
        current_answer.result["chunks_searched"] for current_answer in answers
    )
    # Each project's files are in order; the better projects' files come first.
    files = list[FileMatch]()
    for answer in sorted(answers, key=_rank_project):
        for file in answer.result["files"]:
            files.append({**file, "project": answer.name})
    result["files"] = files[:MOST_FILES]


def _rank_project(answer: ProjectAnswer[SearchCodeResult]) -> float:
    """Return the negative of its best score: those are absolute."""
    return -max((piece["score"] for piece in answer.result["results"]), default=0.0)


class SemanticSearchParams(Params):
    """What to look for, and in which repository; as strict as its contract."""

    query: Annotated[str, VERBATIM] = Field(
        min_length=1,
        max_length=1000,
        description="Natural language search query describing what you're looking for.",
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        10, ge=1, le=50, description="Maximum number of results to return."
    )
    threshold: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Minimum similarity score; 0.7 is reached by one in a hundred unrelated chunks of code.",
    )
    repository: Annotated[NameText, VERBATIM] | None = Field(
        None, min_length=1, description="Filter results to a specific repository name."
    )


class RepositoryCode(CodeMatch):
    """A chunk of code and its repository."""

    repository: str


class SearchMetadata(TypedDict):
    """Timing, and what was searched; `problems`: repositories that could not be searched, and why."""

    total_results: int
    query_time_ms: float
    embedding_time_ms: float
    repositories_searched: list[str]
    chunks_searched: int
    threshold: float
    ranked_by: str
    problems: dict[str, str]


class SemanticSearchResult(TypedDict):
    """Chunks of code from all repositories searched, best first."""

    results: list[RepositoryCode]
    metadata: SearchMetadata


@handler("semantic_search", title="Semantic search", toolset="knowledge")
async def semantic_search(
    call: Call[Host], params: SemanticSearchParams
) -> SemanticSearchResult:
    """Search indexed code repositories using natural language queries.

    Returns relevant code snippets ranked by semantic similarity.
    """
    started = time.perf_counter()
    if params.repository is not None:
        try:
            projects: Sequence[Project] = [
                await call.host.workspace(call, params.repository)
            ]
        except NotFound as error:
            reachable = call.host.list_reachable(call.session)
            message = f"no such repository: {params.repository}"
            raise NotFound(
                message, reason="repository_not_found", known=reachable
            ) from error
    elif call.session.projects:
        projects = await call.host.open_bound(call)
    else:  # as its contract requires, without a default: results and metadata name their repository
        projects = call.host.list_open() or [await call.host.workspace(call, None)]

    found: list[tuple[FoundChunk, str]] = []
    metadata: SearchMetadata = {
        "total_results": 0,
        "query_time_ms": 0.0,
        "embedding_time_ms": 0.0,
        "repositories_searched": [],
        "chunks_searched": 0,
        "threshold": params.threshold,
        "ranked_by": "words and meaning",
        "problems": {},
    }
    reranker = await open_reranker(call.host)
    question = MeaningQuestion(
        text=params.query,
        limit=params.limit,
        threshold=params.threshold,
        reranker=reranker,
        passages=True,
    )
    for project in projects:
        try:
            view = await current_view(call, project)
            await view.refresh()
            await require_index(view)
            answer = await search_by_meaning(view, question)
        except Unavailable as error:
            if len(projects) == 1:
                raise
            metadata["problems"][project.name] = error.message
            continue
        metadata["repositories_searched"].append(project.name)
        metadata["chunks_searched"] += answer.chunks
        metadata["embedding_time_ms"] = round(
            metadata["embedding_time_ms"] + answer.embedding_ms, 3
        )
        if answer.ranked_by == "words":
            metadata["ranked_by"] = "words"
        if answer.problem:
            metadata["problems"][project.name] = answer.problem
        found.extend((piece, project.name) for piece in answer.results)
    # Scores are absolute, so those of several repositories compare.
    found.sort(key=lambda item: -item[0].score)
    best = [piece for piece, _ in found[: params.limit]]
    fitting = fit_code(
        best, params.query, call.host.settings.query.max_tokens, as_text=False
    )
    results: list[RepositoryCode] = [
        {**code, "repository": name}
        for code, (_, name) in zip(fitting, found, strict=False)
    ]
    metadata["total_results"] = len(results)
    metadata["query_time_ms"] = milliseconds_since(started)
    return {"results": results, "metadata": metadata}


HANDLERS: tuple[Handler, ...] = (search_code, semantic_search)


def choose_for_model(
    answer: MeaningAnswer, query: str, tokens: int = MODEL_TOKENS
) -> tuple[list[CodeMatch], list[FileMatch]]:
    """Return what a model sees that set no limit: the code that fits of the best functions, and the best files.

    A function whose code does not fit has its place in the line of its file, if that is among the best.
    """
    pieces = order_for_model(answer.results)
    fitted = fit_code(
        [piece for piece in pieces if is_worth_showing(piece)],
        query,
        tokens,
        as_text=True,
    )
    code = [piece for piece in fitted if piece["content"]]
    # The code of a file stands together, the file of the best result first.
    ranks = dict[str, int]()
    for rank, result in enumerate(answer.results):
        ranks.setdefault(path_to_json(result.path)["file_path"], rank)
    code.sort(key=lambda piece: ranks[piece["file_path"]])
    told = choose_functions(answer.files, code)
    return [*find_leading(answer, ranks, code), *code], told


def find_leading(
    answer: MeaningAnswer, ranks: Mapping[str, int], code: Sequence[CodeMatch]
) -> Iterator[CodeMatch]:
    """Yield the best result without code if its file is the best one, too, and shows none.

    Its file is then told first, as it is in both orders.
    """
    if not answer.files:
        return
    file = answer.files[0]
    path = path_to_json(file.path)["file_path"]
    is_shown = any(piece["file_path"] == path for piece in code)
    if ranks.get(path) != 0 or is_shown:
        return
    match = format_chunk(answer.results[0], None)
    # A function says more than lines without a name.
    for function in file.functions:
        if function.plain_name:
            match["name"] = function.name
            match["start_line"] = function.lines[0]
            match["end_line"] = function.lines[1]
            break
    match["startLine"] = match["start_line"]
    match["endLine"] = match["end_line"]
    yield match


def order_for_model(results: Sequence[FoundChunk]) -> list[FoundChunk]:
    """Return what a model is shown of results, best first: code outside of functions and types counts less."""
    pieces = list[FoundChunk]()
    for result in results:
        piece = narrow_piece(result)
        kind = piece.chunk.kind
        if piece.passage is not None and piece.passage.kind:
            kind = piece.passage.kind
        if kind in OUTSIDE:
            piece = replace(piece, near=OF_OUTSIDE * piece.near)
        pieces.append(piece)
    pieces.sort(key=attrgetter("near"), reverse=True)
    best = pieces[0].near if pieces else 0.0
    return [replace(piece, near=piece.near / (best or 1.0)) for piece in pieces]


def is_worth_showing(piece: FoundChunk) -> bool:
    """Return whether a model is shown the code of a result, if it fits."""
    if piece.near >= NEAR:
        return True
    if piece.near < NEAR_IF_SHORT or piece.passage is None:
        return False
    return piece.passage.size <= SHORT


def narrow_piece(piece: FoundChunk) -> FoundChunk:
    """Return a chunk of several functions with those that answer."""
    if piece.passage is None:
        return piece
    return replace(piece, passage=narrow(piece.passage, piece.functions))


def choose_functions(
    files: Sequence[FoundFile], code: Sequence[CodeMatch]
) -> list[FileMatch]:
    """Return the files that a model is told of, with the best functions of all near ones that ``code`` does not show."""
    lines = find_lines(code)
    ranked = list[tuple[bool, float, int, FoundFunction]]()
    chosen = defaultdict[int, list[FoundFunction]](list)
    for at, file in enumerate(files):
        if file.near < LIKELY_FILE:
            break
        path = path_to_json(file.path)["file_path"]
        if file.near < NEAR_FILE:
            # Only its path, unless its code is shown.
            if path not in lines:
                chosen[at] = []
            continue
        functions = list_unshown(file.functions, lines[path])
        for place, function in enumerate(functions):
            worth = function.score
            worth += OF_FILE * file.near
            worth -= OF_PLACE * place
            ranked.append((place > 0, -worth, at, function))
    ranked.sort(key=itemgetter(0, 1, 2))
    for _, _, at, function in ranked[:MOST_NAMED]:
        chosen[at].append(function)
    return [format_file(files[at], chosen[at]) for at in sorted(chosen)]


def list_unshown(
    functions: Sequence[FoundFunction],
    shown: set[int],
) -> list[FoundFunction]:
    """Return the functions of a file, each place once, that are not mostly among the lines shown of it."""
    unshown = list[FoundFunction]()
    for function in functions:
        is_listed = any(
            are_same_place(function.lines, other.lines) for other in unshown
        )
        if not is_listed and not is_mostly_within(function.lines, shown):
            unshown.append(function)
    # Lines without a name tell something only of a file of which nothing else is said.
    named = [function for function in unshown if function.plain_name]
    if named or shown:
        return named
    return unshown


def find_lines(code: Sequence[CodeMatch]) -> Mapping[str, set[int]]:
    """Return by file the lines of shown code."""
    lines = defaultdict[str, set[int]](set)
    for piece in code:
        whole = (piece["start_line"], piece["end_line"])
        for first, last in piece.get("shown", [whole]):
            lines[piece["path"]].update(range(first, last + 1))
    return lines


def is_mostly_within(span: Span, lines: set[int]) -> bool:
    """Return whether most lines of a range are among others."""
    first, last = span
    common = lines.intersection(range(first, last + 1))
    return len(common) >= MOSTLY_SHOWN * (last - first + 1)


def are_same_place(span: Span, other: Span) -> bool:
    """Return whether two ranges have nearly all of their lines in common."""
    shared = min(span[1], other[1]) - max(span[0], other[0]) + 1
    lines = max(span[1], other[1]) - min(span[0], other[0]) + 1
    return shared >= SAME_PLACE * lines


def format_file(file: FoundFile, functions: Sequence[FoundFunction]) -> FileMatch:
    """Return a file with the places of some of its functions."""
    path = path_to_json(file.path)
    match: FileMatch = {
        "path": path["file_path"],
        "file_path": path["file_path"],
        "functions": [
            {
                "name": function.name,
                "start_line": function.lines[0],
                "end_line": function.lines[1],
            }
            for function in functions
        ],
    }
    if "file_path_bytes" in path:
        match["file_path_bytes"] = path["file_path_bytes"]
    return match


def crop_for_terminal(pieces: Sequence[FoundChunk], query: str) -> list[CodeMatch]:
    """Return chunks as a terminal shows them: of a long one the lines that a model is shown, as many as it has room for."""
    results = list[CodeMatch]()
    words = spellings_of(query)
    for piece in pieces:
        excerpt = None
        passage = piece.passage
        if passage is not None:
            excerpt = passage.fit(MOST_WHOLE)
            if excerpt is None or excerpt.count_lines() > MOST_SHOWN:
                excerpt = passage.crop_to_lines(MOST_SHOWN, words)
        results.append(format_chunk(piece, excerpt))
    return results


def fit_code(
    pieces: Sequence[FoundChunk], query: str, tokens: int, *, as_text: bool
) -> list[CodeMatch]:
    """Return the chunks whose code fits, the first one cut if needed; as text also the others, cut or without code."""
    room, results = tokens * CHARS_PER_TOKEN, list[CodeMatch]()
    for piece in pieces:
        room -= (TEXT_OVERHEAD if as_text else CHUNK_OVERHEAD) + len(piece.path)
        excerpt = piece.passage.fit(room) if piece.passage else None
        # The first is shown however small the budget, so that an answer is never empty
        # for lack of room.
        if (
            excerpt is None
            and piece.passage
            and (not results or (as_text and room >= LEAST_CUT))
        ):
            excerpt = piece.passage.crop(room, spellings_of(query))
        if excerpt is not None:
            room -= len(excerpt.text)
        elif not as_text:
            break
        results.append(format_chunk(piece, excerpt))
    return results


def format_chunk(piece: FoundChunk, shown: Excerpt | None) -> CodeMatch:
    """Return a chunk as both methods show it: with the function around it, as far as it is shown."""
    path, chunk = path_to_json(piece.path), piece.chunk
    kind, name, (first, last) = (
        chunk.kind,
        chunk.name,
        (chunk.start_line, chunk.end_line),
    )
    # Without code, point to the chunk itself; for a comment, to what it documents.
    if piece.passage is not None and (
        shown is not None or piece.passage.part[0] > last
    ):
        first, last = piece.passage.whole
        kind, name = piece.passage.kind or kind, piece.passage.name or name
    match: CodeMatch = {
        "content": shown.text if shown else "",
        "path": path["file_path"],
        "startLine": first,
        "endLine": last,
        "score": piece.score,
        "kind": kind,
        "name": name,
        "language": name_language(piece),
        **path,  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": first,
        "end_line": last,
    }
    if shown is not None and shown.lines != ((first, last),):
        match["shown"] = list(shown.lines)
    return match


def name_language(piece: FoundChunk) -> str:
    """Return the language of a chunk's file by its name, or ``text``."""
    return language_of(piece.path).name or "text"


async def require_index(view: View) -> None:
    """Refuse a project of which nothing is indexed yet; asking has already started indexing it.

    Raises:
        Unavailable: with the project's path and what to do.

    """
    project = view.project
    if project.is_bare:
        raise Unavailable(BARE, reason="bare_repository")
    size = await project.size()
    if size is None or (not size.chunks and size.files and "chunks" not in view.stages):
        raise Unavailable(
            "Index not found: it is being built now",
            path=str(project.path),
            suggestion="Run index_codebase first: it waits until the index is ready; query works without one",
        )
