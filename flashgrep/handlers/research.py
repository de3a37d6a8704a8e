"""Research questions about code, answered with a graph."""

import time
from collections.abc import Iterator
from typing import Annotated, NotRequired

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
)
from flashgrep.handlers.text import Style, render_places, span
from flashgrep.model import path_to_json, path_to_text
from flashgrep.registry import RARE, Call, Handler, Params, Usage, handler
from flashgrep.search.research import Research
from flashgrep.search.research_graph import Node
from flashgrep.search.snapshot import SearchStats
from flashgrep.search.symbol_source import SnapshotSource

NODE_OVERHEAD, EDGE_OVERHEAD = 150, 130
"""Characters of JSON around a symbol and an edge."""
SPAN_CHARS, EDGE_TEXT = 12, 60
"""Characters of text for a symbol's lines, and for the names and the number of an edge."""
SURE = 0.6
"""Confidence of a use below which it is told as one perhaps."""


class CodeResearchParams(Params):
    """The question, and how far to follow it."""

    query: Annotated[str, Usage(words=True)] = Field(
        min_length=1,
        max_length=2000,
        description="As `who calls X`, `what implements P`, `what does X call`, `subclasses of C`, `where is X used`, "
        "`path from A to B`, `what imports M`, or a free question.",
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


class CodeResearchResult(TypedDict):
    """The answer as a graph; `chains` in words, `left_out` what did not fit, `unsure` uses too vague to show."""

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

    def describe(edge: EdgeShown) -> str:
        unsure = "" if edge["confidence"] >= SURE else " perhaps"
        ends = [named[edge[end]]["name"].rpartition(".")[2] for end in ("source", "target")]
        if edge["kind"] == "implements" and not unsure and all(end in edge["text"] for end in ends):
            seen.add(edge["source"])
            return edge["text"]  # the line itself says who builds upon whom
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
    # A chain of two is an edge, which is shown.
    yield from (chain for chain in result["chains"] if chain.count("←") + chain.count("→") > 1)
    if result["left_out"]:
        yield f"[{result['left_out']} more did not fit; raise max_tokens]"
    if result["unsure"]:
        yield f"[{result['unsure']} uses of such names left out: too vague to tell whose]"


@handler("code_research", title="Research code", toolset="research", render=render_research)
async def code_research(call: Call[Catalogue], params: CodeResearchParams) -> CodeResearchResult:
    """Answer who calls, implements, uses or imports what, hop by hop, with the lines that show it and call chains.

    Use it for callers of callers and paths between symbols; get_symbol for the direct uses of one name.
    """
    started = time.perf_counter()
    workspace = await current_view(call, await call.host.workspace(call, params.project))
    fresh = await workspace.refresh() if params.fresh else False
    research = Research(params.query, params.depth, time.monotonic() + params.deadline_ms / 1000)
    # One look-up a hop: between hops others have their turn, progress is told, and a cancelled call ends.
    more = True
    while more:
        more = await workspace.in_thread(lambda snapshot: research.advance(SnapshotSource(snapshot)))
        call.progress(research.hop, research.hops, f"hop {research.hop}: {len(research.graph.nodes)} symbols")
    stats = SearchStats(complete=research.complete, files_read=research.files_read)
    coverage = coverage_of(workspace, stats, fresh=fresh, started=started)
    return format_research(research, coverage, Budget(params.max_tokens), as_text=call.as_text)


HANDLERS: tuple[Handler, ...] = (code_research,)


def format_research(
    research: Research, coverage: Coverage, budget: Budget, *, as_text: bool = False
) -> CodeResearchResult:
    """Return the research as an answer within a budget: nearest symbols and surest edges first."""
    graph = research.graph
    near_first = sorted(graph.nodes.values(), key=lambda node: node.hop)
    nodes = budget.fit(
        map(_format_node, range(len(near_first)), near_first),
        lambda node: (
            len(node["name"])
            + (SPAN_CHARS if as_text else NODE_OVERHEAD + len(node["file_path"]) + len(node.get("signature", "")))
        ),
    )
    numbers = {node.definition.key: number for number, node in enumerate(near_first[: len(nodes)])}
    sure_first = sorted(graph.edges, key=lambda edge: (graph.nodes[edge.source].hop, -edge.resolution.confidence))
    around = EDGE_TEXT if as_text else EDGE_OVERHEAD
    fitting = budget.fit(sure_first, lambda edge: around + len(edge.text) + len(edge.path), least=0)
    # An edge is shown only between symbols that fitted.
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
        if edge.source in numbers and edge.target in numbers
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
    what = f"{research.question.kind} of {named}" if research.question.kind != "free" else research.query
    if research.goals:
        reached = any(goal.key in research.graph.nodes for goal in research.goals)
        return f"{what}: {'a path was found' if reached else f'no path within {research.hop} hops'}"
    if not research.graph.nodes:
        return f"{what}: nothing found"
    return f"{what}: {found} symbols in {research.hop} hops, {len(research.graph.edges)} edges"
