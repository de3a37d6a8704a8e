"""Research questions about code, answered with a graph."""

import time
from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.catalogue import Catalogue
from flashgrep.handlers.common import (
    Budget,
    Coverage,
    Deadline,
    FilePlace,
    Fresh,
    ProjectName,
    coverage_of,
    current_view,
    resolve_path,
)
from flashgrep.handlers.text import Style, render_places, span
from flashgrep.index.table import TEST, tier_of
from flashgrep.model import path_to_json, path_to_text
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.references import UnusedSearch
from flashgrep.search.research import Research, Vague
from flashgrep.search.research_graph import Edge, Graph, Node
from flashgrep.search.research_questions import ASKED
from flashgrep.search.snapshot import SearchStats
from flashgrep.search.symbol_source import SnapshotSource
from flashgrep.workspace import CurrentView

NODE_OVERHEAD, EDGE_OVERHEAD = 150, 130
"""Characters of JSON around a symbol and an edge."""
SIGNATURE = 40
"""Characters of a signature, as most are."""
SPAN_CHARS, EDGE_TEXT = 12, 60
"""Characters of text for a symbol's lines, and for the names and the number of an edge."""
TESTS_SHOWN = 100
SURE = 0.6
"""Confidence of a use below which it is told as one perhaps."""


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
        "the symbol alone (of a path both, of unused a folder or file).",
    )
    kind: AskedKind | None = Field(None, description="What is asked of the symbol.")
    unsure: Annotated[bool, RARE] = Field(
        default=False, description="List the uses too vague to tell, with the reason."
    )
    depth: int = Field(2, ge=1, le=3, description="Hops followed from what is asked about.")
    max_tokens: Annotated[int, RARE] = Field(
        8_000, ge=200, le=1_000_000, description="Size of the answer, in tokens of 4 characters."
    )
    deadline_ms: Deadline = 20_000
    fresh: Fresh = True
    project: ProjectName = None


class NodeShown(FilePlace):
    """A symbol, and how many hops it is from what was asked about (0: that itself)."""

    id: int
    name: str
    kind: str
    start_line: int
    end_line: int
    hop: int
    signature: NotRequired[str]


class EdgeShown(TypedDict):
    """`source` uses `target`: the line that shows it, how sure it is (0 to 1) and by what."""

    source: int
    target: int
    kind: str
    file_path: str
    line: int
    text: str
    confidence: float
    resolved: str


class ConformanceShown(TypedDict):
    """`type` implements or extends `base`; `extension`: an extension of it says so."""

    type: str
    base: str
    file_path: str
    line: int
    extension: bool


# `from` is a keyword of the language, hence the functional form.
DependencyShown = TypedDict("DependencyShown", {"from": str, "to": str, "edges": int})


class VagueShown(TypedDict):
    """A use too vague to tell whose it is, and why."""

    file_path: str
    line: int
    text: str
    why: str


class CodeResearchResult(TypedDict):
    """The answer as a graph; `chains` in words, `left_out` what did not fit, `unsure` uses too vague to show.

    `tests`: of an impact, the tests that it reaches. `excluded`: of unused definitions, how many were not told, by
    reason. `vague`: uses that `unsure` counts. `asks`: of a question not understood, what can be asked.
    """

    query: str
    understood_as: str
    names: list[str]
    summary: str
    results: list[NodeShown]
    edges: list[EdgeShown]
    chains: list[str]
    conformances: list[ConformanceShown]
    dependencies: list[DependencyShown]
    hops: int
    left_out: int
    unsure: int
    coverage: Coverage
    tests: NotRequired[list[str]]
    excluded: NotRequired[dict[str, int]]
    vague: NotRequired[list[VagueShown]]
    asks: NotRequired[list[str]]


def render_research(result: CodeResearchResult, style: Style) -> Iterator[str]:
    """Yield the summary, the symbols asked about, then each use with the line that shows it, nearest ones first."""
    nodes = result["results"]
    if style.is_person:
        yield from render_places(
            ((style.path(node), f"{node['start_line']}", f"{node['kind']}: {node['name']}") for node in nodes), style
        )
        return
    yield result["summary"]
    used = {edge[end] for edge in result["edges"] for end in ("source", "target")}
    told = [node for node in nodes if not node["hop"] or node["id"] not in used]
    yield from render_places(((style.path(node), span(node), f"{node['kind']} {node['name']}") for node in told), style)
    named, seen = {node["id"]: node for node in nodes}, {node["id"] for node in told}

    def name(number: int) -> str:
        """Return a symbol's name, with its lines when it is named first."""
        node = named[number]
        lines = "" if number in seen else f" ({span(node)})"
        seen.add(number)
        return node["name"] + lines

    def is_told_by_line(edge: EdgeShown) -> bool:
        """Return whether the line itself says who builds upon whom."""
        ends = [named[edge[end]]["name"].rpartition(".")[2] for end in ("source", "target")]
        return edge["kind"] == "implements" and edge["confidence"] >= SURE and all(end in edge["text"] for end in ends)

    def describe(edge: EdgeShown) -> str:
        if is_told_by_line(edge):
            seen.add(edge["source"])
            return edge["text"]
        unsure = "" if edge["confidence"] >= SURE else " perhaps"
        return f"{name(edge['source'])}{unsure} {edge['kind']} {name(edge['target'])}: {edge['text']}"

    yield from render_places(
        ((edge["file_path"], f"{edge['line']}", describe(edge)) for edge in result["edges"]), style
    )
    edges = {(edge["file_path"], edge["line"]) for edge in result["edges"] if edge["kind"] == "implements"}
    yield from (
        f"{one['file_path']}:{one['line']} {one['type']} is a {one['base']}{' by extension' * one['extension']}"
        for one in result["conformances"]
        if one["extension"] or (one["file_path"], one["line"]) not in edges
    )
    # A chain of two is an edge, which is shown; where every line names both its ends, chains say nothing else.
    if not all(map(is_told_by_line, result["edges"])):
        yield from (chain for chain in result["chains"] if chain.count("←") + chain.count("→") > 1)
    if result["left_out"]:
        yield f"[{result['left_out']} more did not fit; raise max_tokens]"
    yield from (
        f"{one['file_path']}:{one['line']} perhaps: {one['text']} ({one['why']})" for one in result.get("vague", ())
    )
    if result["unsure"] and "vague" not in result:
        yield f"[{result['unsure']} uses of such names left out: too vague to tell whose; unsure=true lists them]"
    yield from (f"tests: {test}" for test in result.get("tests", ()))
    if excluded := result.get("excluded"):
        yield f"[not told: {', '.join(f'{count} {reason}' for reason, count in excluded.items())}]"


@handler("code_research", title="Research code", toolset="research", render=render_research)
async def code_research(call: Call[Catalogue], params: CodeResearchParams) -> CodeResearchResult:
    """Answer who calls, implements, uses or imports what, hop by hop, with the lines that show it and call chains.

    Use it for callers of callers and paths between symbols; get_symbol for the direct uses of one name.
    """
    started = time.perf_counter()
    workspace = await current_view(call, await call.host.workspace(call, params.project))
    fresh = await workspace.refresh() if params.fresh else False
    deadline = time.monotonic() + params.deadline_ms / 1000
    research = Research(params.query, params.depth, deadline, params.kind)
    if research.question.kind == "unused":
        return await find_unused(workspace, params, research, fresh=fresh)
    # One look-up a hop: between hops others have their turn, progress is told, and a cancelled call ends.
    more = True
    while more:
        more = await workspace.in_thread(lambda snapshot: research.advance(SnapshotSource(snapshot)))
        call.progress(research.hop, research.hops, f"hop {research.hop}: {len(research.graph.nodes)} symbols")
    stats = SearchStats(complete=research.complete, files_read=research.files_read)
    coverage = coverage_of(workspace, stats, fresh=fresh, started=started)
    result = format_research(research, coverage, Budget(params.max_tokens), as_text=call.as_text)
    if research.question.kind == "impact":
        result["tests"] = find_tests(research)[:TESTS_SHOWN]
    if research.question.kind == "unknown":
        result["asks"] = list(ASKED)
    if params.unsure:
        result["vague"] = [
            {"file_path": path_to_text(one.path), "line": one.line, "text": one.text, "why": explain(one)}
            for one in research.vague
        ]
    return result


def explain(vague: Vague) -> str:
    """Return why nothing tells whose a use is."""
    how = vague.resolution.how
    return f"what it is used on is not told, {vague.resolution.confidence:.2f}" if how == "name only" else how


async def find_unused(
    workspace: CurrentView, params: CodeResearchParams, research: Research, *, fresh: bool
) -> CodeResearchResult:
    """Answer what below a path nothing uses."""
    started = time.perf_counter()
    under = await resolve_path(workspace, research.question.names[0]) if research.question.names else b""
    search = UnusedSearch(under, research.deadline)
    await workspace.in_thread(lambda snapshot: search.run(SnapshotSource(snapshot)))
    for one in search.unused:
        research.graph.add_node(one, 0)
    stats = SearchStats(complete=search.complete, files_read=search.files_read)
    coverage = coverage_of(workspace, stats, fresh=fresh, started=started)
    result = format_research(research, coverage, Budget(params.max_tokens))
    result["summary"] = f"unused: {len(search.unused)} of {search.checked} definitions"
    result["excluded"] = dict(search.excluded)
    return result


HANDLERS: tuple[Handler, ...] = (code_research,)


def format_research(
    research: Research, coverage: Coverage, budget: Budget, *, as_text: bool = False
) -> CodeResearchResult:
    """Return the research as an answer within a budget: nearest symbols and surest edges first."""
    graph = research.graph
    near, fitting = fit_graph(graph, budget, as_text=as_text)
    nodes = list(map(_format_node, range(len(near)), near))
    numbers = {node.definition.key: number for number, node in enumerate(near)}
    edges: list[EdgeShown] = [
        {
            "source": numbers[edge.source],
            "target": numbers[edge.target],
            "kind": edge.kind,
            "file_path": path_to_text(edge.path),
            "line": edge.line,
            "text": edge.text,
            "confidence": round(edge.resolution.confidence, 2),
            "resolved": edge.resolution.how,
        }
        for edge in fitting
    ]
    left = len(graph.nodes) - len(nodes) + len(graph.edges) - len(edges)
    arrow = " ← " if research.is_inward else " → "
    chains = graph.chains([root.key for root in research.roots], inward=research.is_inward)
    return {
        "query": research.query,
        "understood_as": research.question.kind,
        "names": list(research.question.names),
        "summary": _summarize(research),
        "results": nodes,
        "edges": edges,
        "chains": [arrow.join(graph.nodes[key].definition.qualified for key in chain) for chain in chains],
        "conformances": [
            {
                "type": one.type,
                "base": one.base,
                "file_path": path_to_text(one.path),
                "line": one.line,
                "extension": one.extension,
            }
            for one in research.conformances
        ],
        "dependencies": [
            {"from": path_to_text(here), "to": path_to_text(there), "edges": count}
            for (here, there), count in graph.dependencies().most_common(100)
        ],
        "hops": research.hop,
        "left_out": research.left_out + left,
        "unsure": research.unsure,
        "coverage": coverage,
    }


def fit_graph(graph: Graph, budget: Budget, *, as_text: bool) -> tuple[list[Node], list[Edge]]:
    """Return the symbols and edges that fit, those of one user together.

    First what was asked about, then the surest edges with the symbols at their ends, since a symbol without the line
    that leads to it says nothing; then symbols that have no edge.
    """

    def size_of(node: Node) -> int:
        definition = node.definition
        around = SPAN_CHARS if as_text else NODE_OVERHEAD + len(definition.path) + SIGNATURE
        return len(definition.qualified) + around

    near_first = sorted(graph.nodes.values(), key=lambda node: node.hop)
    shown = {node.definition.key for node in budget.fit((one for one in near_first if not one.hop), size_of)}
    edges: list[Edge] = []
    around = EDGE_TEXT if as_text else EDGE_OVERHEAD
    for edge in sorted(graph.edges, key=lambda edge: (graph.nodes[edge.source].hop, -edge.resolution.confidence)):
        ends = {edge.source, edge.target} - shown
        size = around + len(edge.text) + len(edge.path) + sum(size_of(graph.nodes[key]) for key in ends)
        if size > budget.chars and edges:
            break
        budget.chars -= size
        shown |= ends
        edges.append(edge)
    linked = {key for edge in graph.edges for key in (edge.source, edge.target)}
    alone = [one for one in near_first if one.hop and one.definition.key not in linked]
    shown |= {node.definition.key for node in budget.fit(alone, size_of, least=0)}
    first = {edge.source: number for number, edge in reversed(list(enumerate(edges)))}
    edges.sort(key=lambda edge: first[edge.source])
    return [node for node in near_first if node.definition.key in shown], edges


def _format_node(number: int, node: Node) -> NodeShown:
    definition = node.definition
    one: NodeShown = {
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
        one["start_line"], one["end_line"] = place.start_line, place.end_line
        one["signature"] = definition.symbols.signature(definition.index)
    return one


def _summarize(research: Research) -> str:
    named = " to ".join(research.question.names) or research.query
    found = len(research.graph.nodes) - len(research.roots)
    what = f"{research.question.kind} of {named}"
    if research.question.kind == "unknown":
        return f"not understood; ask as: {'; '.join(ASKED)}; or semantic_search for a question in other words"
    if research.goals:
        reached = any(goal.key in research.graph.nodes for goal in research.goals)
        return f"{what}: {'a path was found' if reached else f'no path within {research.hop} hops'}"
    if not research.graph.nodes:
        return f"{what}: nothing found"
    told = f"{what}: {found} symbols in {research.hop} hops, {len(research.graph.edges)} edges"
    return told + (f", {len(find_tests(research))} tests" if research.question.kind == "impact" else "")


def find_tests(research: Research) -> list[str]:
    """Return the tests among what was found, as path and name."""
    found = (node.definition for node in research.graph.nodes.values() if node.hop)
    return sorted(f"{path_to_text(one.path)} {one.qualified}" for one in found if tier_of(one.path) == TEST)
