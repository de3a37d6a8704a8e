"""Rename: refused if the definition is ambiguous; the editor asks before it renames uncertain uses.

The editor applies the edits; the server writes no file.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from flashgrep.parts.lsp.convert import find_path, range_of, uri_of
from flashgrep.parts.lsp.features.navigation import page_references
from flashgrep.parts.lsp.folders import Feature, Folder, ask_about

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server

REQUEST_FAILED: Final = -32803
SURE: Final = 0.6
"""Least confidence of a use that is renamed without confirmation."""
KNOWN = "flashgrep"
PERHAPS = "flashgrep-unsure"
MOST_NAME: Final = 200


async def prepare_rename(
    server: "Server", params: types.PrepareRenameParams
) -> types.PrepareRenamePlaceholder:
    """Return the name at a position, if it can be renamed."""
    _, definition = await find_definition(
        server, params.text_document.uri, params.position
    )
    return types.PrepareRenamePlaceholder(
        range_of(definition["range"]), definition["symbol_name"]
    )


async def rename(server: "Server", params: types.RenameParams) -> types.WorkspaceEdit:
    """Return the edits that rename a definition and its uses."""
    uri = params.text_document.uri
    place = params.position
    name = params.new_name
    folder, definition = await find_definition(server, uri, place)
    old = definition["symbol_name"]
    check_name(name, old)
    uses, is_whole = await find_uses(server, uri, place, old)
    await check_free(folder, name, {use["file_path"] for use in uses})
    client = server.client_capabilities.workspace
    edits = client.workspace_edit if client else None
    takes_versions = bool(edits and edits.document_changes)
    may_ask = bool(takes_versions and edits and edits.change_annotation_support)
    is_certain = is_whole and all(use["confidence"] >= SURE for use in uses)
    if not may_ask and not is_certain:
        message = f"flashgrep: some uses of {old} are uncertain, and this editor cannot confirm them"
        raise JsonRpcException(message, REQUEST_FAILED)
    by_file: dict[str, list[Any]] = {}
    for use in uses:
        path = find_path(folder.root or "", use)
        edit = make_edit(use, name, may_ask=may_ask)
        by_file.setdefault(path, []).append(edit)
    if not takes_versions:
        return types.WorkspaceEdit(
            changes={uri_of(path): several for path, several in by_file.items()}
        )
    changes = []
    for path, several in by_file.items():
        text = server.texts.find(path)
        file = types.OptionalVersionedTextDocumentIdentifier(
            text.uri if text else uri_of(path), text.version if text else None
        )
        changes.append(types.TextDocumentEdit(file, several))
    return types.WorkspaceEdit(
        document_changes=changes,
        change_annotations=annotate(old, name) if may_ask else None,
    )


async def find_uses(
    server: "Server", uri: str, position: types.Position, old: str
) -> tuple[list[dict[str, Any]], bool]:
    """Return a definition and its uses by its own name, and whether these are known to be all."""
    uses: list[dict[str, Any]] = []
    is_whole = True
    async for _, page, answer in page_references(
        server, uri, position, include_declaration=True
    ):
        # An alias, made by an import, keeps its name.
        uses += [use for use in page if use["symbol_name"] == old]
        if answer.get("unsure") or not answer["coverage"]["complete"]:
            is_whole = False
    return uses, is_whole


def make_edit(
    use: Mapping[str, Any], name: str, *, may_ask: bool
) -> types.TextEdit | types.AnnotatedTextEdit:
    """Return the edit of one use; annotated for a client that supports it: another refuses annotated edits."""
    where = range_of(use["selection_range"])
    if not may_ask:
        return types.TextEdit(where, name)
    kind = KNOWN if use["confidence"] >= SURE else PERHAPS
    return types.AnnotatedTextEdit(kind, where, name)


async def find_definition(
    server: "Server", uri: str, position: types.Position
) -> tuple[Folder, dict[str, Any]]:
    """Return the folder and the definition of the name at a position.

    Raises:
        JsonRpcException: there is no known definition, or it is ambiguous.

    """
    folder, answer = await ask_about(server, "definition", uri, position)
    definitions = [
        place for place in answer["results"] if place.get("kind") != "module"
    ]
    if not definitions:
        why = answer.get("detail") or "there is no name here"
        raise JsonRpcException(f"flashgrep: {why}", REQUEST_FAILED)
    if "library" in definitions[0]:
        raise JsonRpcException(
            f"flashgrep: {answer['symbol_name']} is defined by {definitions[0]['library']}, a library",
            REQUEST_FAILED,
        )
    if len(definitions) > 1 or definitions[0]["confidence"] < SURE:
        if len(definitions) > 1:
            why = f"it may be any of {len(definitions)} definitions"
        else:
            why = "its definition is uncertain"
        raise JsonRpcException(
            f"flashgrep: cannot rename {answer['symbol_name']}: {why}", REQUEST_FAILED
        )
    return folder, answer


def check_name(name: str, old: str) -> None:
    """Check a new name: letters, digits, underscores, and whatever other characters the old name has.

    Raises:
        JsonRpcException: it is no valid name, or the old one.

    """
    # Some languages allow more characters: "?" in Ruby, "-" in Lisp, "$" in PHP.
    extra = re.escape("".join(set(re.sub(r"\w", "", old))))
    if (
        len(name) > MOST_NAME
        or not re.fullmatch(rf"(?!\d)[\w{extra}]+", name)
        or name == old
    ):
        raise JsonRpcException(
            f"flashgrep: not a valid new name for {old}: {name[:MOST_NAME]}",
            REQUEST_FAILED,
        )


async def check_free(folder: Folder, name: str, files: set[str]) -> None:
    """Check that none of the files defines the new name.

    Raises:
        JsonRpcException: one does.

    """
    question = {"symbol_name": name, "role": ["definition"], "limit": 1000}
    for place in (await folder.ask("get_symbol", question))["results"]:
        if place["file_path"] in files:
            where = f"{place['file_path']}:{place['line_number']}"
            raise JsonRpcException(
                f"flashgrep: {name} is already defined: {where}", REQUEST_FAILED
            )


def annotate(old: str, name: str) -> dict[str, types.ChangeAnnotation]:
    """Return the labels of the two kinds of edits, sure and uncertain."""
    label = f"flashgrep: {old} to {name}"
    unsure = f"{label} (uncertain)"
    return {
        KNOWN: types.ChangeAnnotation(label, needs_confirmation=False),
        PERHAPS: types.ChangeAnnotation(
            unsure,
            needs_confirmation=True,
            description="this may be another symbol of the same name",
        ),
    }


FEATURES: Final = (
    Feature("rename", types.TEXT_DOCUMENT_PREPARE_RENAME, prepare_rename),
    Feature(
        "rename",
        types.TEXT_DOCUMENT_RENAME,
        rename,
        types.RenameOptions(prepare_provider=True),
    ),
)
