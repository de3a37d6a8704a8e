"""Conversion of the daemon's answers to the protocol's types: ranges, symbol kinds, URIs."""

import base64
import os
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes, urlsplit

from lsprotocol.types import Position, Range, SymbolKind

KINDS: Final = {
    "function": SymbolKind.Function, "method": SymbolKind.Method, "constructor": SymbolKind.Constructor,
    "class": SymbolKind.Class, "struct": SymbolKind.Struct, "union": SymbolKind.Struct,
    "interface": SymbolKind.Interface, "trait": SymbolKind.Interface, "enum": SymbolKind.Enum,
    "enumerator": SymbolKind.EnumMember, "type": SymbolKind.Class, "constant": SymbolKind.Constant,
    "variable": SymbolKind.Variable, "field": SymbolKind.Field, "property": SymbolKind.Property,
    "event": SymbolKind.Event, "macro": SymbolKind.Constant, "module": SymbolKind.Module,
    "namespace": SymbolKind.Namespace, "object": SymbolKind.Object, "extension": SymbolKind.Class,
    "heading": SymbolKind.String, "package": SymbolKind.Package,
}  # fmt: skip


class Plain(list[dict[str, Any]]):
    """A list of plain JSON objects for long answers: an lsprotocol object takes 25 µs."""


def path_of(uri: str) -> str | None:
    """Return the path of a file URI; None: it is not a file on this machine."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote_to_bytes(parts.path)
    if (
        parts.scheme != "file"
        or parts.netloc not in {"", "localhost"}
        or not path.startswith(b"/")
        or b"\0" in path
    ):
        return None
    return os.path.normpath(os.fsdecode(path))


def uri_of(path: str) -> str:
    """Return the URI of a path."""
    # Percent-encoded bytes: a name need not be UTF-8.
    return "file://" + quote(os.fsencode(path))


def find_path(root: str, place: dict[str, Any]) -> str:
    """Return the path of a result's file."""
    named = place.get("file_path_bytes")
    return os.path.join(
        root, os.fsdecode(base64.b64decode(named)) if named else place["file_path"]
    )


def kind_of(kind: str) -> SymbolKind:
    """Return the protocol's kind of a symbol; several of our kinds may map to one."""
    return KINDS.get(kind, SymbolKind.Variable)


def range_of(span: dict[str, Any]) -> Range:
    """Return a range of the protocol; the daemon counts lines and columns from 1."""
    start, end = (
        Position(span[f"{side}_line"] - 1, span[f"{side}_column"] - 1)
        for side in ("start", "end")
    )
    return Range(start, end)


def plain_range_of(span: dict[str, Any]) -> dict[str, Any]:
    """Return the same range as JSON."""
    return {
        "start": {
            "line": span["start_line"] - 1,
            "character": span["start_column"] - 1,
        },
        "end": {"line": span["end_line"] - 1, "character": span["end_column"] - 1},
    }


def plain_location_of(root: str, place: dict[str, Any]) -> dict[str, Any]:
    """Return the location of a result's name, as JSON."""
    return {
        "uri": uri_of(find_path(root, place)),
        "range": plain_range_of(place["selection_range"]),
    }
