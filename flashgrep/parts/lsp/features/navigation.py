"""Definitions, declarations, implementations, references, hover, and call and type hierarchies."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from flashgrep.parts.lsp.convert import (
    Plain,
    find_path,
    kind_of,
    plain_location_of,
    plain_range_of,
    range_of,
    uri_of,
)
from flashgrep.parts.lsp.folders import Answer, Feature, Folder, ask_about

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server

MOST_REFERENCES: Final = 20_000
FIRST_PAGE, PAGE = 200, 2_000
"""References per request; the first page is small, so that partial results appear soon."""
MOST_DOCUMENTATION: Final = 4_000
"""Characters of documentation that a hover shows."""
SOURCE: Final = "*flashgrep*"
CALLABLE: Final = frozenset(
    {"function", "method", "constructor", "macro", "class", "struct", "module"}
)
TYPES: Final = frozenset(
    {
        "class",
        "struct",
        "union",
        "interface",
        "trait",
        "enum",
        "type",
        "object",
        "extension",
        "namespace",
        "module",
    }
)


def go_to(method: str, client_name: str) -> Answer:
    """Return the feature that goes to the locations found by a method of the daemon."""

    async def go(server: "Server", params: types.TextDocumentPositionParams) -> Any:
        folder, answer = await ask_about(
            server, method, params.text_document.uri, params.position
        )
        client = getattr(server.client_capabilities.text_document, client_name, None)
        if client is None or not client.link_support:
            return Plain(
                plain_location_of(folder.root or "", place)
                for place in answer["results"]
            )
        return [
            types.LocationLink(
                target_uri=uri_of(find_path(folder.root or "", place)),
                target_range=range_of(place["range"]),
                target_selection_range=range_of(place["selection_range"]),
                origin_selection_range=range_of(answer["range"]),
            )
            for place in answer["results"]
        ]

    return go


async def references(server: "Server", params: types.ReferenceParams) -> Plain:
    """Return the references; as partial results while they are found, if the editor asks for these."""
    plain = Plain()
    options = {"include_declaration": params.context.include_declaration}
    async for folder, uses, _ in page_references(
        server, params.text_document.uri, params.position, **options
    ):
        locations = [plain_location_of(folder.root or "", use) for use in uses]
        if params.partial_result_token is None:
            plain += locations
        else:
            server.report_part(params.partial_result_token, locations)
    return plain


async def page_references(
    server: "Server", uri: str, position: types.Position, **more: Any
) -> AsyncIterator[tuple[Folder, list[dict[str, Any]], dict[str, Any]]]:
    """Yield the references of the symbol at a position, page by page, each with the whole answer."""
    cursor = None
    count = 0
    limit = FIRST_PAGE
    while count < MOST_REFERENCES:
        going_on: dict[str, Any] = {}
        if cursor:
            going_on = {"cursor": cursor}
        folder, answer = await ask_about(
            server, "references", uri, position, limit=limit, **going_on, **more
        )
        yield folder, answer["results"], answer
        count += len(answer["results"])
        cursor = answer.get("next")
        limit = PAGE
        if not cursor:
            return


async def hover(server: "Server", params: types.HoverParams) -> types.Hover | None:
    """Return the signature and documentation of the symbol at a position."""
    _, answer = await ask_about(
        server, "hover", params.text_document.uri, params.position
    )
    signature = answer["signature"]
    documentation = answer["documentation"][:MOST_DOCUMENTATION]
    if not signature and not documentation:
        return None
    client = server.client_capabilities.text_document
    formats = (client and client.hover and client.hover.content_format) or []
    if answer["range"]:
        where = range_of(answer["range"])
    else:
        where = None
    if types.MarkupKind.Markdown not in formats:
        text = "\n\n".join(filter(None, (signature, documentation)))
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text), where)
    # The fence must be longer than any in the text.
    fence = "```"
    while fence in signature or fence in documentation:
        fence += "`"
    if signature:
        head = f"{fence}{answer['language']}\n{signature}\n{fence}"
    else:
        head = ""
    if documentation:
        body = f"{fence}text\n{documentation}\n{fence}"
    else:
        body = ""
    text = "\n\n".join(filter(None, (head, body, SOURCE)))
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)


async def highlight(server: "Server", params: types.DocumentHighlightParams) -> Plain:
    """Return the references in the file itself."""
    plain = Plain()
    options = {"only_here": True}
    async for _, uses, _ in page_references(
        server, params.text_document.uri, params.position, **options
    ):
        plain += [{"range": plain_range_of(use["selection_range"])} for use in uses]
    return plain


async def prepare_calls(
    server: "Server", params: types.CallHierarchyPrepareParams
) -> list[types.CallHierarchyItem]:
    """Return the symbol at a position, if it can be called."""
    folder, answer = await ask_about(
        server, "definition", params.text_document.uri, params.position
    )
    return [
        call_item(folder, place)
        for place in answer["results"]
        if place.get("kind") in CALLABLE
    ]


async def incoming_calls(
    server: "Server", params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall]:
    """Return the callers of an item."""
    folder, steps = await _step(server, "callers", params.item)
    return [
        types.CallHierarchyIncomingCall(call_item(folder, step), _uses(step))
        for step in steps
    ]


async def outgoing_calls(
    server: "Server", params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall]:
    """Return the functions that an item calls."""
    folder, steps = await _step(server, "calls", params.item)
    return [
        types.CallHierarchyOutgoingCall(call_item(folder, step), _uses(step))
        for step in steps
    ]


async def prepare_types(
    server: "Server", params: types.TypeHierarchyPrepareParams
) -> list[types.TypeHierarchyItem]:
    """Return the symbol at a position, if it is a type."""
    folder, answer = await ask_about(
        server, "definition", params.text_document.uri, params.position
    )
    return [
        type_item(folder, place)
        for place in answer["results"]
        if place.get("kind") in TYPES
    ]


async def supertypes(
    server: "Server", params: types.TypeHierarchySupertypesParams
) -> list[types.TypeHierarchyItem]:
    """Return the direct supertypes of an item."""
    folder, steps = await _step(server, "supertypes", params.item)
    return [type_item(folder, step) for step in steps]


async def subtypes(
    server: "Server", params: types.TypeHierarchySubtypesParams
) -> list[types.TypeHierarchyItem]:
    """Return the subtypes of an item."""
    folder, steps = await _step(server, "implementations", params.item)
    return [type_item(folder, step) for step in steps if step.get("kind") in TYPES]


def call_item(folder: Folder, place: dict[str, Any]) -> types.CallHierarchyItem:
    """Return a definition as a call hierarchy item."""
    return types.CallHierarchyItem(**_describe(folder, place))


def type_item(folder: Folder, place: dict[str, Any]) -> types.TypeHierarchyItem:
    """Return a type as a type hierarchy item."""
    return types.TypeHierarchyItem(**_describe(folder, place))


async def _step(
    server: "Server",
    method: str,
    item: types.CallHierarchyItem | types.TypeHierarchyItem,
) -> tuple[Folder, list[dict[str, Any]]]:
    folder, answer = await ask_about(
        server, method, item.uri, item.selection_range.start
    )
    return folder, answer["results"]


def _describe(folder: Folder, place: dict[str, Any]) -> dict[str, Any]:
    container = place.get("container")
    return {
        "name": place["symbol_name"] or place["file_path"],
        "kind": kind_of(place.get("kind", "")),
        "uri": uri_of(find_path(folder.root or "", place)),
        "range": range_of(place["range"]),
        "selection_range": range_of(place["selection_range"]),
        "detail": f"{container}, {place['file_path']}"
        if container
        else place["file_path"],
    }


def _uses(step: dict[str, Any]) -> list[types.Range]:
    return [range_of(use) for use in step["uses"]]


FEATURES: Final = (
    Feature(
        "definition", types.TEXT_DOCUMENT_DEFINITION, go_to("definition", "definition")
    ),
    Feature(
        "declaration",
        types.TEXT_DOCUMENT_DECLARATION,
        go_to("declaration", "declaration"),
    ),
    Feature(
        "implementation",
        types.TEXT_DOCUMENT_IMPLEMENTATION,
        go_to("implementations", "implementation"),
    ),
    Feature("references", types.TEXT_DOCUMENT_REFERENCES, references),
    Feature("hover", types.TEXT_DOCUMENT_HOVER, hover),
    Feature("documentHighlight", types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, highlight),
    Feature("callHierarchy", types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, prepare_calls),
    Feature("callHierarchy", types.CALL_HIERARCHY_INCOMING_CALLS, incoming_calls),
    Feature("callHierarchy", types.CALL_HIERARCHY_OUTGOING_CALLS, outgoing_calls),
    Feature("typeHierarchy", types.TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY, prepare_types),
    Feature("typeHierarchy", types.TYPE_HIERARCHY_SUPERTYPES, supertypes),
    Feature("typeHierarchy", types.TYPE_HIERARCHY_SUBTYPES, subtypes),
)
