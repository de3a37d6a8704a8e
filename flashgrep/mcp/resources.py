"""What a client can attach to a conversation: the skill, each project's figures, and files by their path."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote, unquote, unquote_to_bytes

from flashgrep.errors import InvalidParams, clip

SCHEME = "flashgrep://"
FILE_TEMPLATE = SCHEME + "{project}/file/{+path}"
MARKDOWN, JSON, TEXT = "text/markdown", "application/json", "text/plain"
MOST_URI = 16 * 1024
"""Characters: a path of 4 KiB with each byte escaped, and its project."""
Kind = Literal["skill", "stats", "file"]


@dataclass(frozen=True, slots=True)
class Address:
    """A resource, taken apart; ``path`` as bytes, for a file."""

    project: str
    kind: Kind
    path: bytes = b""


def listed(names: list[str]) -> list[dict[str, Any]]:
    """Return the resources of these projects as resources/list has them."""
    return [resource for name in names for resource in (_skill(name), _stats(name))]


def templates() -> list[dict[str, Any]]:
    """Return the forms of address as resources/templates/list has them."""
    text = "A file of a project by its path from the project's root; long files come in their first part."
    return [
        {"uriTemplate": FILE_TEMPLATE, "name": "file", "title": "File", "description": text, "mimeType": TEXT},
    ]


def address_of(uri: Any) -> Address:
    """Take a resource's address apart.

    Raises:
        InvalidParams: it is none of ours.

    """
    if isinstance(uri, str) and len(uri) <= MOST_URI and uri.startswith(SCHEME):
        project, _, rest = uri.removeprefix(SCHEME).partition("/")
        kind, _, path = rest.partition("/")
        if project and kind == "file" and path:
            return Address(unquote(project), "file", unquote_to_bytes(path))
        if project and rest in {"skill", "stats"}:
            return Address(unquote(project), "skill" if rest == "skill" else "stats")
    raise missing(uri)


def missing(uri: Any) -> InvalidParams:
    """Return the error for an address that leads nowhere."""
    uri = clip(str(uri), MOST_URI)
    return InvalidParams(f"resource not found: {uri}", reason="resource_not_found", uri=uri)


def contents(uri: str, mime_type: str, text: str, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a resource as resources/read has it."""
    content: dict[str, Any] = {"uri": uri, "mimeType": mime_type, "text": text}
    if meta:
        content["_meta"] = meta
    return {"contents": [content]}


def mime_type_of(path: bytes) -> str:
    """Return the type of a file's text by its suffix; text where we do not know better."""
    suffix = PurePosixPath(path.decode("utf-8", "replace")).suffix
    return {".md": MARKDOWN, ".json": JSON}.get(suffix, TEXT)


def _skill(name: str) -> dict[str, Any]:
    text = "How to use flashgrep's methods, with worked calls."
    return _resource(name, "skill", "flashgrep skill", text, MARKDOWN)


def _stats(name: str) -> dict[str, Any]:
    return _resource(name, "stats", f"{name}: index", "Files, index size, stage and progress.", JSON)


def _resource(project: str, kind: Kind, title: str, description: str, mime_type: str) -> dict[str, Any]:
    uri = f"{SCHEME}{quote(project, safe='')}/{kind}"
    name = f"{project}/{kind}"
    return {"uri": uri, "name": name, "title": title, "description": description, "mimeType": mime_type}
