"""Who calls whom, and which types build upon which, one step at a time.

An item carries nothing but its place: the next step asks about that.
"""

from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types

from flashgrep.lsp.convert import find_path, kind_of, range_of, uri_of
from flashgrep.lsp.features.feature import Feature, ask_about
from flashgrep.lsp.folders import Folder

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server

CALLABLE: Final = frozenset({"function", "method", "constructor", "macro", "class", "struct", "module"})
TYPES: Final = frozenset(
    {"class", "struct", "union", "interface", "trait", "enum", "type", "object", "extension", "namespace", "module"}
)


async def prepare_calls(server: "Server", params: types.CallHierarchyPrepareParams) -> list[types.CallHierarchyItem]:
    """Return what stands at a place, if it can be called."""
    folder, found = await ask_about(server, "definition", params.text_document.uri, params.position)
    return [call_item(folder, one) for one in found["results"] if one.get("kind") in CALLABLE]


async def incoming_calls(
    server: "Server", params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall]:
    """Return who calls an item."""
    folder, steps = await _step(server, "callers", params.item)
    return [types.CallHierarchyIncomingCall(call_item(folder, one), _uses(one)) for one in steps]


async def outgoing_calls(
    server: "Server", params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall]:
    """Return whom an item calls."""
    folder, steps = await _step(server, "calls", params.item)
    return [types.CallHierarchyOutgoingCall(call_item(folder, one), _uses(one)) for one in steps]


async def prepare_types(server: "Server", params: types.TypeHierarchyPrepareParams) -> list[types.TypeHierarchyItem]:
    """Return what stands at a place, if it is a type."""
    folder, found = await ask_about(server, "definition", params.text_document.uri, params.position)
    return [type_item(folder, one) for one in found["results"] if one.get("kind") in TYPES]


async def supertypes(server: "Server", params: types.TypeHierarchySupertypesParams) -> list[types.TypeHierarchyItem]:
    """Return the types that an item builds upon."""
    folder, steps = await _step(server, "supertypes", params.item)
    return [type_item(folder, one) for one in steps]


async def subtypes(server: "Server", params: types.TypeHierarchySubtypesParams) -> list[types.TypeHierarchyItem]:
    """Return the types that build upon an item."""
    folder, steps = await _step(server, "implementations", params.item)
    return [type_item(folder, one) for one in steps if one.get("kind") in TYPES]


def call_item(folder: Folder, place: dict[str, Any]) -> types.CallHierarchyItem:
    """Return a definition as an item."""
    return types.CallHierarchyItem(**_describe(folder, place))


def type_item(folder: Folder, place: dict[str, Any]) -> types.TypeHierarchyItem:
    """Return a type as an item."""
    return types.TypeHierarchyItem(**_describe(folder, place))


async def _step(
    server: "Server", method: str, item: types.CallHierarchyItem | types.TypeHierarchyItem
) -> tuple[Folder, list[dict[str, Any]]]:
    folder, found = await ask_about(server, method, item.uri, item.selection_range.start)
    return folder, found["results"]


def _describe(folder: Folder, place: dict[str, Any]) -> dict[str, Any]:
    container = place.get("container")
    return {
        "name": place["symbol_name"] or place["file_path"],
        "kind": kind_of(place.get("kind", "")),
        "uri": uri_of(find_path(folder.root or "", place)),
        "range": range_of(place["range"]),
        "selection_range": range_of(place["selection_range"]),
        "detail": f"{container}, {place['file_path']}" if container else place["file_path"],
    }


def _uses(step: dict[str, Any]) -> list[types.Range]:
    return [range_of(use) for use in step["uses"]]


FEATURES: Final = (
    Feature("callHierarchy", types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, prepare_calls),
    Feature("callHierarchy", types.CALL_HIERARCHY_INCOMING_CALLS, incoming_calls),
    Feature("callHierarchy", types.CALL_HIERARCHY_OUTGOING_CALLS, outgoing_calls),
    Feature("typeHierarchy", types.TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY, prepare_types),
    Feature("typeHierarchy", types.TYPE_HIERARCHY_SUPERTYPES, supertypes),
    Feature("typeHierarchy", types.TYPE_HIERARCHY_SUBTYPES, subtypes),
)
