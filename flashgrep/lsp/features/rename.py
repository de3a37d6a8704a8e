"""Rename by what is known of a name: never where it is open which definition is meant, and what is unsure is asked.

The editor makes the edits; nothing is written here.
"""

import re
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from flashgrep.lsp.convert import find_path, range_of, uri_of
from flashgrep.lsp.features.navigation import page_uses
from flashgrep.lsp.folders import Feature, Folder, ask_about

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server

REQUEST_FAILED: Final = -32803
SURE: Final = 0.6
"""Confidence from which on a use is renamed without a question."""
KNOWN, PERHAPS = "flashgrep", "flashgrep-unsure"
MOST_NAME: Final = 200


async def prepare_rename(server: "Server", params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder:
    """Return the name at a place, if it can be renamed."""
    _, found = await find_one(server, params.text_document.uri, params.position)
    return types.PrepareRenamePlaceholder(range_of(found["range"]), found["symbol_name"])


async def rename(server: "Server", params: types.RenameParams) -> types.WorkspaceEdit:
    """Return the edits that give a definition and its uses another name."""
    uri, place, name = params.text_document.uri, params.position, params.new_name
    folder, found = await find_one(server, uri, place)
    old = found["symbol_name"]
    check_name(name, old)
    uses: list[dict[str, Any]] = []
    is_open = False
    async for _, page, answer in page_uses(server, uri, place, include_declaration=True):
        # Where it has another name, by an import that gives it one, that stays.
        uses += [one for one in page if one["symbol_name"] == old]
        # Then there may be uses that are not in the list.
        is_open = is_open or bool(answer.get("unsure")) or not answer["coverage"]["complete"]
    await check_free(folder, name, {one["file_path"] for one in uses})
    client = server.client_capabilities.workspace
    edits = client.workspace_edit if client else None
    may_ask = bool(edits and edits.document_changes and edits.change_annotation_support)
    if not may_ask and (is_open or any(one["confidence"] < SURE for one in uses)):
        raise JsonRpcException(f"flashgrep: it is not sure of all uses of {old} that they are meant", REQUEST_FAILED)
    by_file: dict[str, list[Any]] = {}
    for one in uses:
        kind = KNOWN if one["confidence"] >= SURE else PERHAPS
        edit = types.AnnotatedTextEdit(kind, range_of(one["selection_range"]), name)
        # Annotations are optional in the protocol; a client without them refuses the edit.
        plain = types.TextEdit(edit.range, name)
        by_file.setdefault(find_path(folder.root or "", one), []).append(edit if may_ask else plain)
    if not (edits and edits.document_changes):
        return types.WorkspaceEdit(changes={uri_of(path): several for path, several in by_file.items()})
    changes = []
    for path, several in by_file.items():
        text = server.texts.find(path)
        file = types.OptionalVersionedTextDocumentIdentifier(
            text.uri if text else uri_of(path), text.version if text else None
        )
        changes.append(types.TextDocumentEdit(file, several))
    return types.WorkspaceEdit(document_changes=changes, change_annotations=annotate(old, name) if may_ask else None)


async def find_one(server: "Server", uri: str, position: types.Position) -> tuple[Folder, dict[str, Any]]:
    """Return what is at a place, and its folder.

    Raises:
        JsonRpcException: it is nothing that is known, or one of several.

    """
    folder, found = await ask_about(server, "definition", uri, position)
    meant = [one for one in found["results"] if one.get("kind") != "module"]
    if not meant:
        why = found.get("detail") or "nothing here has a name"
        raise JsonRpcException(f"flashgrep: {why}", REQUEST_FAILED)
    if len(meant) > 1 or meant[0]["confidence"] < SURE:
        count = f"{len(meant)} definitions" if len(meant) > 1 else "no more than its name"
        raise JsonRpcException(f"flashgrep: {count} speak for {found['symbol_name']} here", REQUEST_FAILED)
    return folder, found


def check_name(name: str, old: str) -> None:
    """Refuse what is not a name: letters, digits, underscores, and what else the old one has.

    Raises:
        JsonRpcException: it is none.

    """
    # Names of some languages have more: "?" in Ruby, "-" in Lisp, "$" in PHP.
    extra = re.escape("".join(set(re.sub(r"\w", "", old))))
    if len(name) > MOST_NAME or not re.fullmatch(rf"(?!\d)[\w{extra}]+", name) or name == old:
        raise JsonRpcException(f"flashgrep: no new name for {old}: {name[:MOST_NAME]}", REQUEST_FAILED)


async def check_free(folder: Folder, name: str, files: set[str]) -> None:
    """Refuse a name that one of the files defines already.

    Raises:
        JsonRpcException: one does.

    """
    asked = {"symbol_name": name, "role": ["definition"], "limit": 1000}
    for one in (await folder.ask("get_symbol", asked))["results"]:
        if one["file_path"] in files:
            where = f"{one['file_path']}:{one['line_number']}"
            raise JsonRpcException(f"flashgrep: {name} is defined already: {where}", REQUEST_FAILED)


def annotate(old: str, name: str) -> dict[str, types.ChangeAnnotation]:
    """Return what the editor shows of the two kinds of edits."""
    label = f"flashgrep: {old} to {name}"
    unsure = f"{label}, perhaps"
    return {
        KNOWN: types.ChangeAnnotation(label, needs_confirmation=False),
        PERHAPS: types.ChangeAnnotation(
            unsure, needs_confirmation=True, description="it is not sure that this is meant"
        ),
    }


FEATURES: Final = (
    Feature("rename", types.TEXT_DOCUMENT_PREPARE_RENAME, prepare_rename),
    Feature("rename", types.TEXT_DOCUMENT_RENAME, rename, types.RenameOptions(prepare_provider=True)),
)
