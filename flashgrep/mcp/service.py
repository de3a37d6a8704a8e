"""What the Model Context Protocol offers, whatever carries it and in whichever era: tools, resources, prompts."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anyio.to_thread import run_sync

from flashgrep.catalogue import Catalogue
from flashgrep.errors import Cancelled, FlashgrepError, InvalidParams, MissingCapability, NotFound, clip
from flashgrep.handlers.bootstrap import packaged_skill
from flashgrep.mcp import resources, words
from flashgrep.mcp.schema import input_schema, output_schema
from flashgrep.mcp.toolsets import check_asked_for, shown
from flashgrep.registry import MOST_NAME, Handler, Progress, Session, Toolset
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import encode

PAGE = 50
"""Tools or resources in one answer: any sensible choice of toolsets fits."""
MOST_RESULT_CHARS = 300_000
"""Told to hosts that cut results at a size of their own unless a tool asks for more (Claude Code does): a read of the
most bytes allowed, with what JSON adds. What an answer holds by default is far smaller and up to the method."""
SIZED_BY = frozenset({"max_tokens", "max_bytes", "end_line"})
"""Parameters by which a caller can ask for that much."""
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "prompts": {"listChanged": False},
}


@dataclass(slots=True)
class Service:
    """Lists and calls; the same functions answer on every wire."""

    catalogue: Catalogue
    server: Mapping[str, str]
    """The server's name and version, as it tells them."""
    page: int = PAGE
    dispatcher: Dispatcher = field(init=False)
    """Set once it is made: the adapter is part of what it answers by."""
    _descriptors: dict[tuple[str, bool], dict[str, Any]] = field(default_factory=dict)

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self, session: Session, toolsets: Sequence[Toolset], cursor: Any) -> dict[str, Any]:
        """Return one page of the tools a client is shown."""
        handlers = shown(self.dispatcher.registry, toolsets, may_write=session.may_write)
        bound = len(session.projects) == 1
        return self._paged("tools", [self.descriptor(handler, bound=bound) for handler in handlers], cursor)

    def descriptor(self, handler: Handler, *, bound: bool = False) -> dict[str, Any]:
        """Return a method as tools/list has it; ``bound``: for a connection that cannot name another project."""
        found = self._descriptors.get((handler.name, bound))
        if found is None:
            found = self._descriptors[handler.name, bound] = _descriptor(handler, bound=bound)
        return found

    async def call_tool(
        self,
        session: Session,
        toolsets: Sequence[Toolset],
        name: Any,
        arguments: Any,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Call a method by name or alias; a failure is a result too, so that a model can read it.

        What only reads is called whether or not it is of the ``toolsets`` that the client is shown.

        Raises:
            InvalidParams: no tool has the name, or the arguments are no object.
            Cancelled: the caller took it back.
            MissingCapability: the tool needs what the client has not declared.

        """
        if not isinstance(name, str) or name not in self.dispatcher.registry:
            name = clip(str(name), MOST_NAME)
            raise InvalidParams(f"unknown tool: {name}", reason="unknown_tool", tool=name)
        given = {} if arguments is None else arguments
        if not isinstance(given, dict):
            raise InvalidParams("arguments: an object is required", field="arguments")
        try:
            check_asked_for(self.dispatcher.registry.get(name), toolsets)
            result = await self.dispatcher.call(session, name, given, progress=progress)
        except (Cancelled, MissingCapability):
            raise
        except FlashgrepError as error:
            return _told(dict(error.to_object()), is_error=True)
        return _told(result, is_error=False)

    # -- resources -------------------------------------------------------------------------------------------------

    def resources(self, session: Session, cursor: Any) -> dict[str, Any]:
        """Return one page of the resources of the projects a client is bound to."""
        return self._paged("resources", resources.listed(self.catalogue.names_of(session)), cursor)

    def templates(self, cursor: Any) -> dict[str, Any]:
        """Return the forms of address."""
        return self._paged("resourceTemplates", resources.templates(), cursor)

    async def read(self, session: Session, uri: Any) -> dict[str, Any]:
        """Return a resource.

        Raises:
            InvalidParams: it is not there.
            FlashgrepError: as reading it does.

        """
        address = resources.address_of(uri)
        if address.project not in self.catalogue.reachable(session):
            raise resources.missing(uri)
        if address.kind == "skill":
            return resources.contents(uri, resources.MARKDOWN, await run_sync(packaged_skill))
        asked = {"project": address.project}
        if address.kind == "stats":
            stats = await self.dispatcher.call(session, "stats", asked)
            return resources.contents(uri, resources.JSON, encode(stats).decode())
        path = base64.b64encode(address.path).decode()
        try:
            found = await self.dispatcher.call(session, "read_code", asked | {"file_path_bytes": path})
        except NotFound:
            raise resources.missing(uri) from None
        meta = {"continuation": found["continuation"]} if found["truncated"] else None
        return resources.contents(uri, resources.mime_type_of(address.path), found["content"], meta)

    # -- prompts ---------------------------------------------------------------------------------------------------

    def prompts(self, cursor: Any) -> dict[str, Any]:
        """Return the prompts."""
        return self._paged("prompts", [prompt.listed() for prompt in words.PROMPTS.values()], cursor)

    def _paged(self, name: str, items: list[dict[str, Any]], cursor: Any) -> dict[str, Any]:
        start = _start(cursor)
        end = start + self.page
        page: dict[str, Any] = {name: items[start:end]}
        if end < len(items):
            page["nextCursor"] = base64.urlsafe_b64encode(b"from %d" % end).decode()
        return page


def _descriptor(handler: Handler, *, bound: bool) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if not handler.writes and SIZED_BY & handler.params.model_fields.keys():
        meta["anthropic/maxResultSizeChars"] = MOST_RESULT_CHARS
    if handler.aliases:
        meta["flashgrep/aliases"] = list(handler.aliases)
    listed: dict[str, Any] = {
        "name": handler.name,
        "title": handler.title,
        "description": handler.doc,
        "inputSchema": input_schema(handler, bound=bound),
        "outputSchema": output_schema(handler),
        "annotations": {
            "readOnlyHint": handler.safety == "reads",
            "destructiveHint": handler.safety == "destructive",
            "idempotentHint": handler.idempotent,
            "openWorldHint": False,
        },
    }
    return {**listed, "_meta": meta} if meta else listed


def _told(result: Any, *, is_error: bool) -> dict[str, Any]:
    text = encode(result).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": is_error}


def _start(cursor: Any) -> int:
    if cursor is None:
        return 0
    try:
        word, _, number = base64.urlsafe_b64decode(cursor).partition(b" ")
    except (TypeError, ValueError, binascii.Error):
        word, number = b"", b""
    if word != b"from" or not number.isdigit():
        raise InvalidParams("cursor: not one of ours", field="cursor")
    return int(number)
