"""Document and workspace symbols, folding ranges and selection ranges."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from flashgrep.parts.lsp.convert import (
    Plain,
    find_path,
    kind_of,
    plain_range_of,
    range_of,
    uri_of,
)
from flashgrep.parts.lsp.folders import Feature, Folder, OutsideProjects, find_file

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server

FOLDS: Final = {
    "comment": types.FoldingRangeKind.Comment,
    "imports": types.FoldingRangeKind.Imports,
    "region": types.FoldingRangeKind.Region,
}
SHOWN: Final = 50
"""Symbols of a folder shown for a query; each further letter asks again."""


async def document_symbol(
    server: "Server", params: types.DocumentSymbolParams
) -> Plain:
    """Return the definitions in a file: as a tree, or as a list if the editor supports no tree."""
    folder, path = find_file(server, params.text_document.uri)
    entries = await ask_outline(server, folder, path)
    client = server.client_capabilities.text_document
    capabilities = client and client.document_symbol
    if not (capabilities and capabilities.hierarchical_document_symbol_support):
        uri = params.text_document.uri
        return Plain(
            {
                "name": entry["name"],
                "kind": kind_of(entry["kind"]),
                "location": {"uri": uri, "range": plain_range_of(entry["range"])},
            }
            for entry in entries
        )
    return make_tree(entries)


async def ask_outline(
    server: "Server", folder: Folder, path: str
) -> list[dict[str, Any]]:
    """Return all definitions in a file, in order of position, each with its ``depth``."""
    query = {
        "structured": True,
        "everything": True,
        "position_encoding": server.encoding,
    }
    files = (await folder.ask("outline", query, path))["results"]
    return [entry for file in files for entry in file["entries"]]


def make_tree(entries: list[dict[str, Any]]) -> Plain:
    """Return outline entries, given in order of position, as a tree."""
    top = Plain()
    around: list[list[dict[str, Any]]] = [top]
    for entry in entries:
        # The last remaining list is that of the entry's parent.
        del around[entry["depth"] + 1 :]
        children: list[dict[str, Any]] = []
        around[-1].append({
            "name": entry["name"] or "?",  # editors reject the whole list if a name is empty
            "kind": kind_of(entry["kind"]),
            "range": plain_range_of(entry["range"]),
            "selectionRange": plain_range_of(entry["selection_range"]),
            "detail": entry["signature"],
            "children": children,
        })  # fmt: skip
        around.append(children)
    return top


async def workspace_symbol(
    server: "Server", params: types.WorkspaceSymbolParams
) -> Plain:
    """Return the symbols of all folders with a name that starts with the query or resembles it.

    If the editor asks for partial results, they are sent as they are found.
    """
    plain = Plain()
    seen: set[tuple[str, int, int]] = set()

    def take(folder: Folder, hits: list[dict[str, Any]]) -> None:
        items = []
        for hit in hits:
            uri = uri_of(find_path(folder.root or "", hit))
            line = hit["line_number"] - 1
            start, end = (
                {"line": line, "character": hit[column] - 1}
                for column in ("column", "end_column")
            )
            key = (uri, line, start["character"])
            if key not in seen:
                seen.add(key)
                items.append({
                    "name": hit["symbol_name"],
                    "kind": kind_of(hit.get("kind", "")),
                    "location": {"uri": uri, "range": {"start": start, "end": end}},
                    "containerName": hit.get("container") or hit["file_path"],
                })  # fmt: skip
        if params.partial_result_token is None:
            plain.extend(items)
        elif items:
            server.report_part(params.partial_result_token, items)

    async def ask(folder: Folder, match: str) -> bool:
        """Take a folder's answer, and return whether there is room for more symbols."""
        query = {
            "symbol_name": params.query,
            "match": match,
            "case": "insensitive",
            "role": ["definition"],
        }
        try:
            answer = await folder.ask(
                "get_symbol",
                {**query, "limit": SHOWN, "position_encoding": server.encoding},
            )
        except OutsideProjects:
            return False
        take(folder, answer["results"])
        return len(answer["results"]) < SHOWN

    if not params.query.strip():
        return Plain()
    # Prefixes first: most queries are the start of a name. Fuzzy matching costs more,
    # especially for short queries.
    folders = list(server.folders)
    has_room = await asyncio.gather(*(ask(folder, "prefix") for folder in folders))
    await asyncio.gather(
        *(
            ask(folder, "fuzzy")
            for folder, room in zip(folders, has_room, strict=True)
            if room
        )
    )
    return plain


async def folding_range(server: "Server", params: types.FoldingRangeParams) -> Plain:
    """Return the folding ranges; if the editor has a limit, the longest ones."""
    folder, path = find_file(server, params.text_document.uri)
    folds = (await folder.ask("folds", {}, path))["results"]
    client = server.client_capabilities.text_document
    if client and client.folding_range:
        limit = client.folding_range.range_limit
    else:
        limit = None
    if limit is not None and len(folds) > limit:
        longest = sorted(folds, key=lambda one: one["start_line"] - one["end_line"])[
            :limit
        ]
        folds = sorted(longest, key=lambda one: one["start_line"])
    return Plain(
        {
            "startLine": fold["start_line"] - 1,
            "endLine": fold["end_line"] - 1,
            "kind": FOLDS[fold["kind"]],
        }
        for fold in folds
    )


async def selection_range(
    server: "Server", params: types.SelectionRangeParams
) -> list[types.SelectionRange]:
    """Return, for each position, the nested ranges around it."""
    folder, path = find_file(server, params.text_document.uri)
    places = [
        {"line": place.line + 1, "column": place.character + 1}
        for place in params.positions
    ]
    query = {"places": places, "position_encoding": server.encoding}
    selections = []
    for place, around in zip(
        params.positions,
        (await folder.ask("enclosing", query, path))["results"],
        strict=True,
    ):
        new_selection_range: types.SelectionRange | None = None
        for span in reversed(around):
            new_selection_range = types.SelectionRange(
                range_of(span), new_selection_range
            )
        selections.append(
            new_selection_range or types.SelectionRange(types.Range(place, place))
        )
    return selections


FEATURES: Final = (
    Feature(
        "documentSymbol",
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
        document_symbol,
        types.DocumentSymbolOptions(label="flashgrep"),
    ),
    Feature("workspaceSymbol", types.WORKSPACE_SYMBOL, workspace_symbol),
    Feature("foldingRange", types.TEXT_DOCUMENT_FOLDING_RANGE, folding_range),
    Feature("selectionRange", types.TEXT_DOCUMENT_SELECTION_RANGE, selection_range),
)
