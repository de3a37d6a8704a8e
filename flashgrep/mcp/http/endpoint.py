"""``/mcp``: the official SDK's streamable HTTP, answering by our service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

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

from flashgrep.errors import FlashgrepError, TooLarge
from flashgrep.mcp.adapter import CAPABILITIES_KEY, LISTS_KEPT_MS
from flashgrep.mcp.binding import client_of
from flashgrep.mcp.http.routes import Sessions
from flashgrep.mcp.prompts import INSTRUCTIONS, get_prompt
from flashgrep.mcp.service import Service
from flashgrep.registry import Progress, Session
from flashgrep.rpc.context import ProgressReporter
from flashgrep.rpc.message import LONG, Faulty, MessageReader, error_line

Context = ServerRequestContext[Any, Request]
ResultT = TypeVar("ResultT", bound=types.Result)
QUEUED: Final = 64
"""Reports of progress waiting for the network; more are dropped, the next one says more than they did."""
LISTS: Final = ("tools/list", "prompts/list", "resources/templates/list", "server/discover")


class Answers:
    """The handlers of the SDK's server."""

    def __init__(self, service: Service, sessions: Sessions) -> None:
        self._service = service
        self._sessions = sessions

    def server(self) -> Server[Any]:
        """Return the SDK's server."""
        return Server(
            self._service.server["name"],
            version=self._service.server["version"],
            instructions=INSTRUCTIONS,
            cache_hints={name: CacheHint(ttl_ms=LISTS_KEPT_MS) for name in LISTS},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        async def answer(session: Session) -> dict[str, Any]:
            return self._service.list_tools(session, client_of(session).toolsets, params.cursor)

        return await self._answer(types.ListToolsResult, context, answer)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def answer(session: Session) -> dict[str, Any]:
            toolsets = client_of(session).toolsets
            outcome: dict[str, Any] | FlashgrepError
            async with _carry_progress(context) as progress:
                try:
                    outcome = await self._service.call_tool(session, toolsets, params.name, params.arguments, progress)
                except FlashgrepError as error:  # a task group would wrap it
                    outcome = error
            if isinstance(outcome, FlashgrepError):
                raise outcome
            return {**outcome, "structuredContent": outcome["structuredContent"].value}

        return await self._answer(types.CallToolResult, context, answer)

    async def _list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        async def answer(session: Session) -> dict[str, Any]:
            return self._service.list_resources(session, params.cursor)

        return await self._answer(types.ListResourcesResult, context, answer)

    async def _list_templates(self, context: Context, params: Any) -> types.ListResourceTemplatesResult:
        async def answer(_session: Session) -> dict[str, Any]:
            return self._service.list_templates(params.cursor)

        return await self._answer(types.ListResourceTemplatesResult, context, answer)

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async def answer(session: Session) -> dict[str, Any]:
            return await self._service.read_resource(session, str(params.uri))

        return await self._answer(types.ReadResourceResult, context, answer)

    async def _list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        async def answer(_session: Session) -> dict[str, Any]:
            return self._service.list_prompts(params.cursor)

        return await self._answer(types.ListPromptsResult, context, answer)

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        async def answer(_session: Session) -> dict[str, Any]:
            return get_prompt(params.name, params.arguments)

        return await self._answer(types.GetPromptResult, context, answer)

    async def _answer(
        self, shape: type[ResultT], context: Context, answer: Callable[[Session], Awaitable[dict[str, Any]]]
    ) -> ResultT:
        query = context.request.query_params if context.request is not None else QueryParams()
        try:
            session = await self._sessions.make(query)
            declared: Any = (context.meta or {}).get(CAPABILITIES_KEY)
            client_of(session).capabilities = declared if isinstance(declared, dict) else {}
            return shape.model_validate(await answer(session))
        except FlashgrepError as error:
            found = error.to_object()
            raise MCPError(found["code"], found["message"], found["data"]) from None


@asynccontextmanager
async def _carry_progress(context: Context) -> AsyncIterator[Progress]:
    """Carry progress, reported from wherever the work is done, to the client's stream."""
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
                await context.session.report_progress(report["progress"], report.get("total"), report.get("message"))

    reporter = ProgressReporter(0, notify)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carry)
        try:
            yield reporter
        finally:
            reporter.end()
            sender.close()


class Endpoint:
    """The SDK's manager as an application of its own, which a route then leaves alone.

    The SDK parses a body on the event loop, whatever is in it; so a long one is looked at here first.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, reader: MessageReader) -> None:
        self._manager = manager
        self._reader = reader

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["method"] != "POST":  # no stream to listen on and no session to end: there is no state
            await send({"type": "http.response.start", "status": 405, "headers": [(b"allow", b"POST")]})
            await send({"type": "http.response.body", "body": b""})
            return
        try:
            event = await self._take_body(receive)
        except FlashgrepError as error:
            status = 413 if isinstance(error, TooLarge) else 400
            await Response(error_line(None, error), status, media_type="application/json")(scope, receive, send)
            return
        events = [event]

        async def receive_again() -> Any:
            return events.pop() if events else await receive()

        await self._manager.handle_request(scope, receive_again, send)

    async def _take_body(self, receive: Any) -> Any:
        """Return the body as one event, checked.

        Raises:
            FlashgrepError: it is too long for what it calls, or no message.

        """
        parts, more = [], True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # gone, or longer than is taken: the SDK is told
                return message
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        if len(body) > LONG:
            found = await self._reader.read(body)
            for item in found.items:
                if isinstance(item, Faulty):
                    raise item.error
        return {"type": "http.request", "body": body, "more_body": False}
