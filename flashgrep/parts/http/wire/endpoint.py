"""``/mcp``: the official SDK's streamable HTTP, answered by our service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from flashgrep.base.errors import FlashgrepError, TooLarge
from flashgrep.base.registry import Progress, Session
from flashgrep.mcp.adapter import CAPABILITIES_KEY, KEEP_MS
from flashgrep.mcp.binding import client_of
from flashgrep.mcp.service import INSTRUCTIONS, Service
from flashgrep.parts.http.wire.routes import Sessions
from flashgrep.rpc.context import ProgressReporter
from flashgrep.rpc.message import LONG, InvalidItem, MessageReader, error_line

Context = ServerRequestContext[Any, Request]
QUEUED: Final = 64
"""Most progress reports waiting for the network; further ones are dropped, since later ones replace them."""


def make_server(service: Service, sessions: Sessions) -> Server[Any]:
    """Return the SDK's server, whose handlers ask the service."""

    def handler(
        method: str, shape: type[types.Result]
    ) -> Callable[[Context, Any], Awaitable[Any]]:
        async def answer(context: Context, params: Any) -> types.Result:
            if context.request is not None:
                query = context.request.query_params
            else:
                query = QueryParams()
            try:
                session = await sessions.make(query)
                declared: Any = (context.meta or {}).get(CAPABILITIES_KEY)
                client_of(session).capabilities = (
                    declared if isinstance(declared, dict) else {}
                )
                return shape.model_validate(
                    await _ask(service, method, session, dict(params), context)
                )
            except FlashgrepError as error:
                error_object = error.to_object()
                raise MCPError(
                    error_object["code"], error_object["message"], error_object["data"]
                ) from None

        return answer

    return Server(
        service.server["name"],
        version=service.server["version"],
        instructions=INSTRUCTIONS,
        cache_hints={
            name: CacheHint(ttl_ms=keep)  # type: ignore[misc]  # a Literal
            for name, keep in KEEP_MS.items()
            if keep
        },
        on_list_tools=handler("tools/list", types.ListToolsResult),
        on_call_tool=handler("tools/call", types.CallToolResult),
        on_list_resources=handler("resources/list", types.ListResourcesResult),
        on_list_resource_templates=handler(
            "resources/templates/list", types.ListResourceTemplatesResult
        ),
        on_read_resource=handler("resources/read", types.ReadResourceResult),
        on_list_prompts=handler("prompts/list", types.ListPromptsResult),
        on_get_prompt=handler("prompts/get", types.GetPromptResult),
    )


async def _ask(
    service: Service,
    method: str,
    session: Session,
    params: dict[str, Any],
    context: Context,
) -> dict[str, Any]:
    if method != "tools/call":
        return await service.answer(method, session, params)
    outcome: dict[str, Any] | FlashgrepError
    async with _carry_progress(context) as progress:
        try:
            outcome = await service.answer(method, session, params, progress)
        except FlashgrepError as error:  # a task group would wrap it
            outcome = error
    if isinstance(outcome, FlashgrepError):
        raise outcome
    # Decoded: the SDK validates and encodes the value itself.
    structured = outcome.get("structuredContent")
    if structured is None:
        return outcome
    return {**outcome, "structuredContent": structured.decode()}


@asynccontextmanager
async def _carry_progress(context: Context) -> AsyncIterator[Progress]:
    """Forward progress reports from any thread to the client's stream."""
    sender, receiver = anyio.create_memory_object_stream[dict[str, Any]](QUEUED)

    def notify(_method: str, params: Any) -> bool:
        try:
            sender.send_nowait(params)
        except anyio.WouldBlock:
            return False
        return True

    async def carry() -> None:
        async with receiver:
            async for report in receiver:
                await context.session.report_progress(
                    report["progress"], report.get("total"), report.get("message")
                )

    reporter = ProgressReporter(0, notify)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carry)
        try:
            yield reporter
        finally:
            reporter.end()
            sender.close()


class Endpoint:
    """The SDK's manager as an ASGI application.

    The SDK parses every body on the event loop, whatever its size, so long ones are checked here first.
    """

    def __init__(
        self, manager: StreamableHTTPSessionManager, reader: MessageReader
    ) -> None:
        self._manager = manager
        self._reader = reader

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if (
            scope["method"] != "POST"
        ):  # stateless: there is no stream to listen to and no session to end
            await send(
                {
                    "type": "http.response.start",
                    "status": 405,
                    "headers": [(b"allow", b"POST")],
                }
            )
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            event = await self._take_body(receive)
        except FlashgrepError as error:
            status = 413 if isinstance(error, TooLarge) else 400
            await Response(
                error_line(None, error), status, media_type="application/json"
            )(scope, receive, send)
            return
        # The SDK receives the body as if it had just arrived, then the client's further
        # events.
        events = [event]

        async def receive_again() -> Any:
            if events:
                return events.pop()
            return await receive()

        await self._manager.handle_request(scope, receive_again, send)

    async def _take_body(self, receive: Any) -> Any:
        """Return the checked body as one event.

        Raises:
            FlashgrepError: it is too long for its method, or not a message.

        """
        parts = []
        more = True
        while more:
            message = await receive()
            if (
                message["type"] != "http.request"
            ):  # the client is gone, or the body too long: left to the SDK
                return message
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        # A short body cannot hold enough values to matter.
        if len(body) > LONG:
            found_message = await self._reader.read(body)
            for item in found_message.items:
                if isinstance(item, InvalidItem):
                    raise item.error
        return {"type": "http.request", "body": body, "more_body": False}
