"""Research questions about code, answered with a graph."""

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, groupby
from typing import Annotated, Final, Literal, NotRequired

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import FlashgrepError, InvalidParams
from flashgrep.base.model import path_to_json, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    CursorText,
    Handler,
    Params,
    Usage,
    handler,
)
from flashgrep.methods.common import (
    DIGEST_BYTES,
    Budget,
    Deadline,
    FilePlace,
    Fresh,
    ProjectName,
    ProjectNames,
    current_view,
    decode_cursor,
    encode_cursor,
    find_project_with,
    resolve_path,
)
from flashgrep.methods.projects import (
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_each,
)
from flashgrep.methods.text import (
    Note,
    Style,
    Use,
    render_places,
    render_text,
    render_uses,
    span,
)
from flashgrep.parts.navigation.qualified_targets import find_targets
from flashgrep.parts.navigation.references import UnusedSearch
from flashgrep.parts.navigation.research.finished_walks import (
    WalkState,
    find_walk,
    keep_walk,
)
from flashgrep.parts.navigation.research.research_questions import (
    ASKED,
    Kind,
    is_like_code,
)
from flashgrep.parts.navigation.research.research_walk import DIRECT, Research
from flashgrep.parts.navigation.resolution.resolver import OVERRIDDEN
from flashgrep.parts.navigation.resolution.symbol_graph import (
    SURE,
    UNDEFINED,
    Edge,
    Graph,
    Node,
    SymbolKey,
)
from flashgrep.parts.symbols.symbol_search import find_near_names
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.search.snapshot import SearchStats

HEADS = 3
"""Definitions without uses that are listed beside those that have some."""
NODE_OVERHEAD, EDGE_OVERHEAD = 150, 130
"""Characters of JSON around a symbol and an edge."""
SIGNATURE = 40
"""Typical characters of a signature."""
SPAN_CHARS, EDGE_TEXT = 12, 60
"""Overhead in characters of text for a symbol's lines, and for the names and number of an edge."""
TESTS_SHOWN = 100
SEARCH = "search_code"
"""The method that answers questions in other words."""
REASONS = {
    "name only": "of unknown receiver",
    "type in sight": "of unknown receiver",
    OVERRIDDEN: "of a base's method",
}
"""Why uses are only possible, by the evidence for them."""


AskedKind = Literal[
    "callers", "callees", "implementations", "supertypes", "usages", "path", "imports", "definition", "overrides",
    "hierarchy", "impact", "unused",
]  # fmt: skip


class CodeResearchParams(Params):
    """The question, and how far to follow it."""

    query: Annotated[str, Usage(words=True)] = Field(
        min_length=1,
        max_length=2000,
        description="As `who calls X`, `what implements P`, `what does X call`, `subclasses of C`, `where is X used`, "
        "`path from A to B`, `what imports M`, `what overrides C.m`, `impact of X`, `unused code in PATH`; with `kind` "
        "only the symbol (for a path both, for unused a folder or file).",
    )
    kind: AskedKind | None = Field(None, description="What is asked about the symbol.")
    unsure: Annotated[bool, RARE] = Field(
        default=False,
        description="List the uses that are only possible, with the reason.",
    )
    depth: int | None = Field(
        None,
        ge=1,
        le=3,
        description="Hops to follow from the symbol asked about: 1 for callers and uses, 2 for others, unless given.",
    )
    tests: Annotated[bool, RARE] = Field(
        default=False,
        description="List callers and uses in tests too, not only how many there are.",
    )
    max_tokens: Annotated[int, RARE] = Field(
        8_000,
        ge=200,
        le=1_000_000,
        description="Size of the answer, in tokens of 4 characters.",
    )
    cursor: Annotated[CursorText | None, Usage(short="-c", rare=True)] = Field(
        None, description="`next` of the previous answer, to continue after it."
    )
    deadline_ms: Deadline = 20_000
    fresh: Fresh = True
    project: ProjectName = None
    projects: ProjectNames = None


class NodeEntry(FilePlace):
    """A symbol, and its distance in hops from what was asked about (0: itself); `id` is the same on all pages."""

    id: int
    name: str
    kind: str
    start_line: int
    end_line: int
    hop: int
    signature: NotRequired[str]


class EdgeEntry(FilePlace):
    """`source` uses `target`: the line that shows it, its confidence (0 to 1) and the rule.

    Without `target`: a name that was asked about but is not defined here.
    """

    source: int
    target: NotRequired[int]
    kind: str
    line: int
    text: str
    confidence: float
    resolved: str


class ConformanceEntry(FilePlace):
    """`type` implements or extends `base`; `extension`: declared by an extension of the type."""

    type: str
    base: str
    line: int
    extension: bool


# `from` is a keyword of the language, hence the functional form.
DependencyShown = TypedDict(
    "DependencyShown",
    {"project": NotRequired[str], "from": str, "to": str, "edges": int},
)


class InTests(TypedDict):
    """Uses in tests that are counted, not listed."""

    uses: int
    files: int


class UncertainUseEntry(FilePlace):
    """A use that is only possible, and why."""

    line: int
    text: str
    why: str


class CodeResearchResult(TypedDict):
    """The answer as a graph; `chains` in words, `left_out` what is not shown yet, `unsure` uses that are only possible.

    Later pages (`next`, passed as `cursor`) have further edges; what concerns all of them is on the first.
    `tests`: for an impact, the tests it reaches. `excluded`: for unused definitions, how many were left out, by reason.
    `possible`: how many uses are only possible, by reason; `vague`: these uses. `in_tests`: the uses in tests that are
    not listed. `asks`: if the question was not understood, what can be asked; `answer`: what search_code says to it.
    `suggestions`: names similar to one that is not defined. `continued`: of several projects, those that have more to
    say if they are asked alone.
    """

    query: str
    understood_as: str
    names: list[str]
    summary: str
    results: list[NodeEntry]
    edges: list[EdgeEntry]
    chains: list[str]
    conformances: list[ConformanceEntry]
    dependencies: list[DependencyShown]
    hops: int
    left_out: int
    unsure: int
    next: str | None
    coverage: Coverage
    tests: NotRequired[list[str]]
    excluded: NotRequired[dict[str, int]]
    possible: NotRequired[dict[str, int]]
    in_tests: NotRequired[InTests]
    answer: NotRequired[str]
    vague: NotRequired[list[UncertainUseEntry]]
    asks: NotRequired[list[str]]
    suggestions: NotRequired[list[str]]
    continued: NotRequired[list[str]]


def render_research(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield the summary, the symbols asked about, then each use with the line that shows it, nearest first.

    On a terminal, uses are listed below the symbol they are in; in a pipe each line is complete.
    """
    if style.is_person:
        yield from _render_for_person(result, style)
    elif "answer" in result:
        yield result["summary"]
        yield result["answer"]
    elif result["understood_as"] in DIRECT and result["hops"] == 1 and result["edges"]:
        # The lines say what the summary would.
        yield from _render_sites(result, style)
    else:
        yield result["summary"]
        yield from _render_graph(result, style)
    if "in_tests" in result:
        uses = result["in_tests"]["uses"]
        files = result["in_tests"]["files"]
        yield Note(f"[tests: {uses} in {files} file{'s'[: files > 1]}; tests=true]")
    if "continued" in result:
        yield Note(f"[there is more; ask by project: {', '.join(result['continued'])}]")
    yield from _render_possible(result, style)
    yield from _render_tests(result)
    if excluded := result.get("excluded"):
        yield Note(f"[not listed: {_count_each(excluded)}]")


def _render_tests(result: CodeResearchResult) -> Iterator[str]:
    """Yield the tests that something reaches and whose lines are not listed, those of one file together."""
    listed = {edge["source"] for edge in result["edges"]}
    tests_in_lines = {
        f"{node['file_path']} {node['name']}"
        for node in result["results"]
        if node["id"] in listed
    }
    names = dict[str, list[str]]()
    for test in result.get("tests", ()):
        if test in tests_in_lines:
            continue
        path, _, name = test.partition(" ")
        # With more blanks it is not sure where the path ends.
        if " " in name:
            yield f"tests: {test}"
        else:
            names.setdefault(path, []).append(name)
    for path, of_file in names.items():
        yield f"tests: {path} {', '.join(of_file)}"


def _count_each(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def _render_possible(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield how many uses are only possible, or these uses by reason."""
    if "possible" not in result:
        return
    if "vague" not in result:
        counts = _count_each(result["possible"])
        yield Note(f"[possible: {counts}; unsure=true]")
        return
    by_reason = dict[str, list[UncertainUseEntry]]()
    for use in result["vague"]:
        by_reason.setdefault(use["why"], []).append(use)
    for why, uses in by_reason.items():
        yield f"possible, {why}:"
        yield from render_places(
            ((style.path(use), f"{use['line']}", use["text"]) for use in uses), style
        )


def _find_heads(result: CodeResearchResult) -> list[NodeEntry]:
    """Return the symbols asked about, and others to which no edge leads."""
    used = {
        edge[end]
        for edge in result["edges"]
        for end in ("source", "target")
        if end in edge
    }
    return [
        node for node in result["results"] if not node["hop"] or node["id"] not in used
    ]


def _render_heads(nodes: list[NodeEntry], style: Style) -> Iterator[str]:
    """Yield the places of symbols."""
    yield from render_places(
        (
            (
                style.path(node),
                f"{node['start_line']}" if style.is_person else span(node),
                f"{node['kind']}{':' * style.is_person} {node['name']}",
            )
            for node in nodes
        ),
        style,
    )


def _render_for_person(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield the symbols asked about, and their uses below the symbols they are in."""
    yield from _render_heads(_find_heads(result), style)
    named = {node["id"]: node for node in result["results"]}
    yield from _render_uses(result["edges"], named, style)
    if "answer" in result:
        yield from result["answer"].splitlines()


def _render_sites(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield each symbol asked about, and below it the lines that use it."""
    named = {node["id"]: node for node in result["results"]}
    sites = dict[int | None, list[EdgeEntry]]()
    for edge in result["edges"]:
        sites.setdefault(edge.get("target"), []).append(edge)
    roots = [node for node in result["results"] if not node["hop"]]
    used = [node for node in roots if node["id"] in sites]
    others = [node for node in roots if node["id"] not in sites]
    if not used or len(others) <= HEADS:
        yield from _render_heads(others[: 2 * HEADS], style)
        others = others[2 * HEADS :]
    if others:
        yield Note(f"[{len(others)} other definitions have no such use]")
    for target in [*(node["id"] for node in used), None]:
        if target is not None:
            yield from _render_heads([named[target]], style)
        yield from render_uses(
            (_describe_site(edge, named, style) for edge in sites.get(target, ())),
            style,
        )


def _describe_site(edge: EdgeEntry, named: dict[int, NodeEntry], style: Style) -> Use:
    """Return a use with the symbol around it; a line of a file's own has only itself."""
    user = named[edge["source"]]
    around = user["name"]
    text = edge["text"]
    is_sure = edge["confidence"] >= SURE
    if user["kind"] == "file":
        around = ""
        text = text if is_sure else f"perhaps {text}"
    elif not is_sure:
        around = f"perhaps {around}"
    return Use(style.path(edge), str(edge["line"]), around, text)


def _render_uses(
    edges: list[EdgeEntry], named: dict[int, NodeEntry], style: Style
) -> Iterator[str]:
    """Yield the lines of each symbol that uses something, below its own place."""
    for number, group in groupby(edges, key=lambda edge: edge["source"]):
        user = named[number]
        around = style.path(named[number])
        if style.headings:
            yield f"{around}:{style.line(user['start_line'])}:{user['kind']}: {user['name']}"
        for edge in group:
            if edge["confidence"] >= SURE:
                unsure = ""
            else:
                unsure = f"perhaps ({edge['confidence']}) "
            if "target" in edge:
                target = named[edge["target"]]["name"]
            else:
                target = "it"
            line = f"{unsure}{edge['kind']} {target}: {style.text(edge['text'])}"
            path = style.path(edge)
            if style.headings:
                yield f"  {'' if path == around else f'{path}:'}{style.line(edge['line'])}: {line}"
            else:
                yield f"{path}:{style.line(edge['line'])}:{user['name']} {line}"


def _render_graph(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield the symbols asked about, each use with its line, by file; then what the lines do not show."""
    listed = _find_heads(result)
    if result["understood_as"] == "path" and result["edges"]:
        # Of several definitions of a name, those on a path.
        on_path = {edge["source"] for edge in result["edges"]}
        on_path |= {edge["target"] for edge in result["edges"] if "target" in edge}
        listed = [node for node in listed if node["id"] in on_path]
    yield from _render_heads(listed, style)
    named = {node["id"]: node for node in result["results"]}
    seen = {node["id"] for node in listed}
    roots = [node["id"] for node in result["results"] if not node["hop"]]

    def name(number: int) -> str:
        """Return a symbol's name, with its lines on first mention."""
        node = named[number]
        if number in seen or node["kind"] == "file":
            lines = ""
        else:
            lines = f" ({span(node)})"
        seen.add(number)
        return node["name"] + lines

    def is_told_by_line(edge: EdgeEntry) -> bool:
        """Return whether the line itself shows who extends whom, or what a file imports."""
        if edge["kind"] == "imports":
            is_of_file = named[edge["source"]]["kind"] == "file"
            return is_of_file and edge.get("target") in {None, *roots}
        if "target" not in edge:
            return False
        ends = [
            named[edge[end]]["name"].rpartition(".")[2] for end in ("source", "target")
        ]
        words = set(re.findall(r"[\w$]+", edge["text"]))
        return (
            edge["kind"] == "implements"
            and edge["confidence"] >= SURE
            and words.issuperset(ends)
        )

    def describe(edge: EdgeEntry) -> str:
        if is_told_by_line(edge):
            seen.add(edge["source"])
            return edge["text"]
        # The first line says of whom all are implementations.
        if edge["kind"] == "implements" and [edge.get("target")] == roots:
            unsure = "" if edge["confidence"] >= SURE else "perhaps "
            return f"{unsure}{name(edge['source'])}: {edge['text']}"
        unsure = "" if edge["confidence"] >= SURE else " perhaps"
        if "target" in edge:
            target = name(edge["target"])
        else:
            target = "it"
        return f"{name(edge['source'])}{unsure} {edge['kind']} {target}: {edge['text']}"

    yield from render_places(
        (
            (style.path(edge), f"{edge['line']}", describe(edge))
            for edge in result["edges"]
        ),
        style,
    )
    implementing = [edge for edge in result["edges"] if edge["kind"] == "implements"]
    lines = {(style.path(edge), edge["line"]) for edge in implementing}
    heads = {
        (named[edge["source"]]["file_path"], named[edge["source"]]["start_line"])
        for edge in implementing
    }
    for conformance in result["conformances"]:
        path = style.path(conformance)
        line = conformance["line"]
        # The line shows whether it is an extension.
        if (path, line) in lines or (conformance["file_path"], line) in heads:
            continue
        how = " by extension" if conformance["extension"] else ""
        what = f"{conformance['type']} is a {conformance['base']}"
        yield f"{path}:{line} {what}{how}"
    # Of other questions the edges say it, one by one.
    if result["understood_as"] == "path":
        yield from result["chains"]


@handler(
    "code_research",
    title="Research code",
    toolset="research",
    listing="by_default",
    render=render_research,
)
async def code_research(
    call: Call[Host], params: CodeResearchParams
) -> CodeResearchResult:
    """Find callers, implementations, references or imports of a symbol, hop by hop, with the lines that show them.

    Use it for callers of callers and paths between symbols; get_symbol for the direct uses of one name.
    """
    asked = Research(params.query, kind=params.kind)
    question = asked.question
    path = asked.lines_path
    if question.kind == "unused" and question.names:
        path = question.names[0]
    # A path that one project alone has is that one's; a symbol may be used in all.
    if path is not None and params.project is None and params.projects is None:
        project = await find_project_with(call, path)
        params = params.model_copy(update={"project": project})
    result = await ask_each(call, params, _research_project, join_answers)
    # Whoever names the kind means a name.
    if params.kind is None and is_about_words(result):
        answer = None
        # Where it cannot be asked, nothing was found.
        with suppress(FlashgrepError):
            answer = await answer_by_search(call, params)
        if answer is not None:
            result["answer"] = answer
            result["summary"] += "; as search_code answers it:"
    if question.kind == "unknown":
        result["asks"] = list(ASKED)
        answer = await answer_by_search(call, params)
        if answer is not None:
            result["answer"] = answer
            result["summary"] = "a question in other words, as search_code answers it:"
    return result


async def _research_project(
    call: Call[Host],
    params: CodeResearchParams,
    project: Project,
    among: ProjectSelection,
) -> Page[CodeResearchResult]:
    """Answer for one project."""
    started = time.perf_counter()
    workspace = await current_view(call, project)
    is_alone = among.projects == 1
    params = params.model_copy(
        update={"max_tokens": params.max_tokens // among.projects}
    )
    if params.fresh:
        fresh = await workspace.refresh()
    else:
        fresh = False
    deadline = time.monotonic() + params.deadline_ms / 1000
    research = Research(params.query, params.depth, deadline, params.kind)
    if research.question.kind == "unused":
        return Page(
            await find_unused_definitions(workspace, params, research, fresh=fresh)
        )
    if research.lines_path is not None:
        research.path = await resolve_path(workspace, research.lines_path)
    question = (params.query, params.kind, params.depth, params.deadline_ms)
    reading = WalkState()
    if params.cursor:
        walk = await workspace.in_thread(partial(find_walk, question))
    else:
        walk = None
    research = walk or research
    more = walk is None
    # One lookup per hop: between hops others get their turn, progress is reported, and
    # a cancelled call ends.
    while more:
        more = await workspace.in_thread(partial(reading.advance, research))
        # Progress only grows, and each of several projects has its own.
        if not is_alone:
            continue
        call.progress(
            research.hop,
            research.hops,
            f"hop {research.hop}: {len(research.graph.nodes)} symbols",
        )
    stats = SearchStats(
        complete=research.complete,
        files_read=research.files_read,
        skipped=research.skipped,
    )
    coverage = workspace.coverage(stats, fresh=fresh, started=started)
    reasons = (coverage.get("detail"), research.reason)
    if any(reasons):
        coverage["detail"] = "; ".join(filter(None, reasons))
    result = format_research(research, coverage, params, as_text=call.as_text)
    # An answer of several projects has no second page.
    if result["next"] is not None and walk is None and is_alone:
        keep_walk(question, research, reading)
    if research.question.kind == "impact" and not params.cursor:
        result["tests"] = find_tests(research)[:TESTS_SHOWN]
    if research.missing_names and not research.graph.edges and research.complete:
        names = research.missing_names
        near = await workspace.in_thread(
            lambda snapshot: [
                find_near_names(SnapshotSource(snapshot), name, find_targets)
                for name in names
            ]
        )
        result["suggestions"] = [one for several in near for one in several]
    if params.unsure and not params.cursor:
        result["vague"] = [
            {
                "file_path": path_to_text(use.path),
                "line": use.line,
                "text": use.text,
                "why": explain(use.resolution.how),
            }
            for use in research.vague
        ]
    return Page(result)


def join_answers(
    answers: Sequence[ProjectAnswer[CodeResearchResult]], coverage: Coverage
) -> CodeResearchResult:
    """Return the answers of several projects as one, with its symbols numbered anew."""
    # A project that knows nothing of a name says so only if none does.
    telling = [answer for answer in answers if answer.result["results"]] or answers
    results = [answer.result for answer in answers]
    joined: CodeResearchResult = {
        "query": results[0]["query"],
        "understood_as": results[0]["understood_as"],
        "names": results[0]["names"],
        "summary": _join_summaries(telling),
        "results": [],
        "edges": [],
        "chains": [],
        "conformances": [],
        "dependencies": [],
        "hops": max(result["hops"] for result in results),
        "left_out": sum(result["left_out"] for result in results),
        "unsure": sum(result["unsure"] for result in results),
        "next": None,
        "coverage": coverage,
    }
    for answer in answers:
        _append(joined, answer)
    near = chain.from_iterable(result.get("suggestions", ()) for result in results)
    # Beside results a suggestion would be noise.
    if not joined["results"]:
        joined["suggestions"] = list(dict.fromkeys(near))
    continued = [answer.name for answer in answers if answer.result["next"] is not None]
    if continued:
        joined["continued"] = continued
    return joined


def _join_summaries(answers: Sequence[ProjectAnswer[CodeResearchResult]]) -> str:
    """Return what several projects say in one line, each by its name unless all say the same."""
    summaries = {answer.result["summary"] for answer in answers}
    if len(summaries) == 1:
        return summaries.pop()
    return "; ".join(f"{answer.name}: {answer.result['summary']}" for answer in answers)


def _append(
    joined: CodeResearchResult, answer: ProjectAnswer[CodeResearchResult]
) -> None:
    """Append a project's part of the graph: its numbers go on after those of the last one."""
    name = answer.name
    result = answer.result
    first = 1 + max((node["id"] for node in joined["results"]), default=-1)
    for node in result["results"]:
        joined["results"].append({**node, "project": name, "id": first + node["id"]})
    for edge in result["edges"]:
        entry: EdgeEntry = {**edge, "project": name, "source": first + edge["source"]}
        # A name that is defined in another project only has no target here.
        if "target" in edge:
            entry["target"] = first + edge["target"]
        joined["edges"].append(entry)
    joined["chains"] += [f"{name}: {text}" for text in result["chains"]]
    for conformance in result["conformances"]:
        joined["conformances"].append({**conformance, "project": name})
    for dependency in result["dependencies"]:
        joined["dependencies"].append({**dependency, "project": name})
    if "tests" in result:
        tests = [f"{name}: {test}" for test in result["tests"]]
        joined["tests"] = [*joined.get("tests", ()), *tests]
    for use in result.get("vague", ()):
        joined.setdefault("vague", []).append({**use, "project": name})
    # What is not listed is counted over all.
    for reason, count in result.get("possible", {}).items():
        possible = joined.setdefault("possible", {})
        possible[reason] = possible.get(reason, 0) + count
    for reason, count in result.get("excluded", {}).items():
        excluded = joined.setdefault("excluded", {})
        excluded[reason] = excluded.get(reason, 0) + count
    if "in_tests" in result:
        in_tests = joined.setdefault("in_tests", {"uses": 0, "files": 0})
        in_tests["uses"] += result["in_tests"]["uses"]
        in_tests["files"] += result["in_tests"]["files"]


def is_about_words(result: CodeResearchResult) -> bool:
    """Return whether nothing was found of what may be plain words: ``tests for authentication``."""
    names = result["names"]
    if not names or result["results"] or not result["coverage"]["complete"]:
        return False
    return not any(map(is_like_code, names))


async def answer_by_search(call: Call[Host], params: CodeResearchParams) -> str | None:
    """Return what search_code answers to a question in other words; None where it cannot be asked."""
    registry = call.host.registry
    if SEARCH not in registry or registry.get(SEARCH).render is None:
        return None
    method = registry.get(SEARCH)
    asked = method.validate(
        {
            "query": params.query,
            "project": params.project,
            "projects": params.projects,
        }
    )
    result = await method.run(replace(call, as_text=True), asked)
    return await run_sync(render_text, result, method.render)


def explain(how: str) -> str:
    """Return why a use is only possible, by the evidence for it."""
    return REASONS.get(how, how)


async def find_unused_definitions(
    workspace: View, params: CodeResearchParams, research: Research, *, fresh: bool
) -> CodeResearchResult:
    """Answer which definitions below a path are unused."""
    started = time.perf_counter()
    if research.question.names:
        under = await resolve_path(workspace, research.question.names[0])
    else:
        under = b""
    search = UnusedSearch(under, research.deadline)
    await workspace.in_thread(lambda snapshot: search.run(SnapshotSource(snapshot)))
    for definition in search.unused:
        research.graph.add_node(definition, 0)
    stats = SearchStats(
        complete=search.complete, files_read=search.files_read, skipped=search.skipped
    )
    coverage = workspace.coverage(stats, fresh=fresh, started=started)
    result = format_research(research, coverage, params)
    result["summary"] = f"unused: {len(search.unused)} of {search.checked} definitions"
    result["excluded"] = dict(search.excluded)
    return result


HANDLERS: tuple[Handler, ...] = (code_research,)


def format_research(
    research: Research,
    coverage: Coverage,
    params: CodeResearchParams,
    *,
    as_text: bool = False,
) -> CodeResearchResult:
    """Return a page of the research: the most certain edges of the nearest symbols first.

    Raises:
        InvalidParams: the cursor belongs to another question, or what earlier pages showed has changed.

    """
    graph = research.graph
    start = 0
    digest = NOTHING_SHOWN
    if params.cursor is not None:
        start, digest = decode_cursor(
            params, params.cursor, lambda start, digest: (int(start), str(digest))
        )
    page = fit_graph(
        graph,
        Budget(params.max_tokens),
        as_text=as_text,
        with_tests=params.tests or lists_tests(research.question.kind, as_text=as_text),
        with_overridden=params.unsure or research.question.kind not in DIRECT,
        start=start,
    )
    # A cursor is a number of edges. It is valid only if those before it are the ones
    # that were shown.
    if page.digest_before != digest:
        raise InvalidParams(
            "cursor: the code has changed since that answer; ask again without it",
            field="cursor",
        )
    # In the order in which they were found, which the research of each page repeats: a
    # number means the same on all pages.
    numbers = {key: number for number, key in enumerate(graph.nodes)}
    edges = list[EdgeEntry]()
    for edge in page.edges:
        entry: EdgeEntry = {
            "source": numbers[edge.source],
            "kind": edge.kind,
            **path_to_json(edge.path),  # type: ignore[typeddict-item]  # as in _format_node
            "line": edge.line,
            "text": edge.text,
            "confidence": round(edge.resolution.confidence, 2),
            "resolved": edge.resolution.how,
        }
        if edge.target != UNDEFINED:
            entry["target"] = numbers[edge.target]
        edges.append(entry)
    arrow = " ← " if research.is_inward else " → "
    if not start:
        chains = graph.chains(
            [root.key for root in research.roots], inward=research.is_inward
        )
    else:
        chains = []
    possible = research.unsure + Counter({OVERRIDDEN: page.overridden})
    result: CodeResearchResult = {
        "query": research.query,
        "understood_as": research.question.kind,
        "names": list(research.question.names),
        "summary": _summarize(research),
        "results": [
            _format_node(numbers[node.definition.key], node) for node in page.nodes
        ],
        "edges": edges,
        "chains": [
            arrow.join(graph.nodes[key].definition.qualified for key in chain)
            for chain in chains
        ],
        "conformances": [
            {
                "type": conformance.type,
                "base": conformance.base,
                "file_path": path_to_text(conformance.path),
                "line": conformance.line,
                "extension": conformance.extension,
            }
            for conformance in (research.conformances if not start else ())
        ],
        "dependencies": [
            {"from": path_to_text(here), "to": path_to_text(there), "edges": count}
            for (here, there), count in (
                graph.dependencies().most_common(100) if not start else ()
            )
        ],
        "hops": research.hop,
        "left_out": research.left_out + page.left,
        "unsure": possible.total(),
        "next": encode_cursor(params, page.end, page.digest) if page.left else None,
        "coverage": coverage,
    }
    if possible and not start:
        result["possible"] = {
            explain(how): count for how, count in possible.most_common()
        }
    if page.in_tests:
        result["in_tests"] = {
            "uses": len(page.in_tests),
            "files": len({edge.path for edge in page.in_tests}),
        }
    return result


def lists_tests(kind: Kind, *, as_text: bool) -> bool:
    """Return whether the lines of tests are listed unasked: of an impact a text names the tests in any case."""
    if kind == "impact":
        return not as_text
    return kind not in DIRECT


NOTHING_SHOWN: Final = ""


@dataclass(frozen=True, slots=True)
class GraphPage:
    """Part of a graph: edges with the symbols at their ends, and symbols without an edge."""

    nodes: list[Node]
    edges: list[Edge]
    end: int
    """How many edges, and symbols without one, were shown up to and including this page."""
    left: int
    digest_before: str
    """The same, before this page."""
    digest: str
    in_tests: list[Edge]
    """Edges of tests, which are only counted."""
    overridden: int
    """Lines that call only the base of what was asked about."""


def leave_out_heads(graph: Graph, items: list[Edge | Node]) -> list[Edge | Node]:
    """Return items, of each type that names its base in a line only such lines, and not also its head."""
    heads = list[Edge]()
    naming = set[tuple[SymbolKey, SymbolKey]]()
    for item in items:
        if not isinstance(item, Edge) or item.kind != "implements":
            continue
        if item.target == UNDEFINED:
            continue
        base = graph.nodes[item.target].definition.name
        # As Go's embedded types do, whose methods make the type an implementation as well.
        if base in re.findall(r"[\w$]+", item.text):
            naming.add((item.source, item.target))
        else:
            heads.append(item)
    return without(
        items, [edge for edge in heads if (edge.source, edge.target) in naming]
    )


def find_one_a_site(graph: Graph, items: list[Edge | Node]) -> list[Edge | Node]:
    """Return the items without edges that say of a line what a more certain one has said: of overrides, one."""
    best = dict[tuple[SymbolKey, int, str], Edge]()
    for item in items:
        if not isinstance(item, Edge) or item.target == UNDEFINED:
            continue
        site = (item.source, item.line, graph.nodes[item.target].definition.name)
        if site not in best or (
            item.resolution.confidence > best[site].resolution.confidence
        ):
            best[site] = item
    chosen = {id(edge) for edge in best.values()}
    return [
        item
        for item in items
        if not isinstance(item, Edge) or item.target == UNDEFINED or id(item) in chosen
    ]


def find_overridden(items: list[Edge | Node]) -> list[Edge]:
    """Return the edges to methods that a call on their base may run: true of nearly every such call."""
    return [
        item
        for item in items
        if isinstance(item, Edge) and item.resolution.how == OVERRIDDEN
    ]


def without(items: list[Edge | Node], edges: list[Edge]) -> list[Edge | Node]:
    """Return items without some of their edges."""
    left_out = {id(edge) for edge in edges}
    return [item for item in items if id(item) not in left_out]


def find_in_tests(graph: Graph, items: list[Edge | Node]) -> list[Edge]:
    """Return the edges of tests; none if all edges are, since then they are the answer."""
    edges = [item for item in items if isinstance(item, Edge)]
    in_tests = [edge for edge in edges if graph.nodes[edge.source].definition.is_test]
    if len(in_tests) == len(edges):
        return []
    return in_tests


def fit_graph(
    graph: Graph,
    budget: Budget,
    *,
    as_text: bool,
    with_tests: bool = True,
    with_overridden: bool = True,
    start: int = 0,
) -> GraphPage:
    """Return what fits, from a position on, the edges of one source together.

    First the most certain edges with the symbols at their ends, since a symbol without the line that leads to it says
    nothing; then symbols without an edge.
    """

    def size_of(node: Node) -> int:
        definition = node.definition
        if as_text:
            around = SPAN_CHARS
        else:
            around = NODE_OVERHEAD + len(definition.path) + SIGNATURE
        return len(definition.qualified) + around

    digest = blake2b(digest_size=DIGEST_BYTES)
    digest_before = NOTHING_SHOWN
    shown = set[SymbolKey]()
    edges: list[Edge] = []
    items = graph.in_order()
    if as_text:
        items = leave_out_heads(graph, find_one_a_site(graph, items))
    overridden = [] if with_overridden else find_overridden(items)
    items = without(items, overridden)
    told = {(item.path, item.line) for item in items if isinstance(item, Edge)}
    only_base = {(edge.path, edge.line) for edge in overridden} - told
    in_tests = [] if with_tests else find_in_tests(graph, items)
    items = without(items, in_tests)
    around = EDGE_TEXT if as_text else EDGE_OVERHEAD
    end = 0
    for item in items:
        is_edge = isinstance(item, Edge)
        ends = set(item.ends) if isinstance(item, Edge) else {item.definition.key}
        if end >= start:
            size = sum(size_of(graph.nodes[key]) for key in ends - shown)
            size += (
                around + len(item.text) + len(item.path)
                if isinstance(item, Edge)
                else 0
            )
            if size > budget.chars and (edges if is_edge else shown):
                break
            budget.chars -= size
            shown |= ends
            edges += [item] if isinstance(item, Edge) else []
        said = (item.path, item.line, item.text) if isinstance(item, Edge) else ()
        digest.update(repr((said, sorted(ends))).encode())
        end += 1
        if end == start:
            digest_before = digest.hexdigest()
    first = {edge.source: number for number, edge in reversed(list(enumerate(edges)))}
    edges.sort(key=lambda edge: first[edge.source])
    nodes = [node for node in graph.nodes.values() if node.definition.key in shown]
    nodes.sort(key=lambda node: node.hop)
    return GraphPage(
        nodes,
        edges,
        end,
        len(items) - end,
        digest_before,
        digest.hexdigest(),
        in_tests,
        len(only_base),
    )


def _format_node(number: int, node: Node) -> NodeEntry:
    definition = node.definition
    entry: NodeEntry = {
        "id": number,
        "name": definition.qualified,
        "kind": definition.kind,
        **path_to_json(definition.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": 1,
        "end_line": 1,
        "hop": node.hop,
    }
    if definition.index >= 0:
        place = definition.symbols.defined(definition.index)
        entry["start_line"], entry["end_line"] = place.start_line, place.end_line
        entry["signature"] = definition.symbols.signature(definition.index)
    return entry


def _summarize(research: Research) -> str:
    named = " to ".join(research.question.names) or research.query
    what = f"{research.question.kind} of {named}"
    if research.question.kind == "unknown":
        return f"question not understood; forms: {'; '.join(ASKED)}; or use semantic_search for a question in other words"
    # What was not found in time may still be defined.
    missing = "not defined here" if research.complete else "not found so far"
    if research.missing_names:
        undefined = f"; {missing}: {', '.join(research.missing_names)}"
    else:
        undefined = ""
    if research.question.kind == "path" and undefined:
        return f"{what}: no path{undefined}"
    if research.question.kind == "path":
        if research.left_out:
            cut = f" among the symbols followed; {research.left_out} were not"
        else:
            cut = ""
        return f"{what}: {'a path was found' if research.is_reached else f'no path within {research.hop} hops{cut}'}"
    if not research.graph.nodes:
        return f"{what}: nothing found{undefined}"
    found = len(research.answers)
    if research.hop > 1:
        hops = f" in {research.hop} hops"
    else:
        hops = ""
    summary = f"{what}: {found} symbols{hops}, {len(research.graph.edges)} edges"
    summary += (
        f", {len(find_tests(research))} tests"
        if research.question.kind == "impact"
        else ""
    )
    return summary + undefined


def find_tests(research: Research) -> list[str]:
    """Return the tests among what was found, as (path, name)."""
    definitions = (
        node.definition for node in research.graph.nodes.values() if node.hop
    )
    return sorted(
        f"{path_to_text(definition.path)} {definition.qualified}"
        for definition in definitions
        if definition.is_test
    )
