"""Rename: refused if the definition is ambiguous; the editor asks before it renames uncertain uses.

The editor applies the edits; the server writes no file.
"""

import re
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
    uses: list[dict[str, Any]] = []
    is_open = False
    async for _, page, answer in page_references(
        server, uri, place, include_declaration=True
    ):
        # An alias, made by an import, keeps its name.
        uses += [
            current_use for current_use in page if current_use["symbol_name"] == old
        ]
        # Then the list of uses may be incomplete.
        is_open = (
            is_open or bool(answer.get("unsure")) or not answer["coverage"]["complete"]
        )
    await check_free(folder, name, {current_use["file_path"] for current_use in uses})
    client = server.client_capabilities.workspace
    edits = client.workspace_edit if client else None
    may_ask = bool(edits and edits.document_changes and edits.change_annotation_support)
    if not may_ask and (
        is_open or any(current_use["confidence"] < SURE for current_use in uses)
    ):
        message = f"flashgrep: some uses of {old} are uncertain, and this editor cannot confirm them"
        raise JsonRpcException(message, REQUEST_FAILED)
    by_file: dict[str, list[Any]] = {}
    for use in uses:
        kind = KNOWN if use["confidence"] >= SURE else PERHAPS
        edit = types.AnnotatedTextEdit(kind, range_of(use["selection_range"]), name)
        # A client without support for annotations refuses annotated edits.
        plain = types.TextEdit(edit.range, name)
        by_file.setdefault(find_path(folder.root or "", use), []).append(
            edit if may_ask else plain
        )
    if not (edits and edits.document_changes):
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
