"""The official SDK's server, answering by our service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from starlette.datastructures import QueryParams
from starlette.requests import Request

from flashgrep.errors import FlashgrepError
from flashgrep.mcp.adapter import LISTS_KEPT_MS
from flashgrep.mcp.era import CAPABILITIES_KEY
from flashgrep.mcp.http.sessions import Bound, Sessions
from flashgrep.mcp.service import Service
from flashgrep.mcp.state import state_of
from flashgrep.mcp.words import INSTRUCTIONS, prompt_message
from flashgrep.registry import Progress
from flashgrep.rpc.context import ProgressReporter

Context = ServerRequestContext[Any, Request]
ResultT = TypeVar("ResultT", bound=types.Result)
QUEUED: Final = 64
"""Reports of progress waiting for the network; more are dropped, the next one says more than they did."""
HINTS: Final = {
    "tools/list": CacheHint(ttl_ms=LISTS_KEPT_MS),
    "prompts/list": CacheHint(ttl_ms=LISTS_KEPT_MS),
    "resources/templates/list": CacheHint(ttl_ms=LISTS_KEPT_MS),
    "server/discover": CacheHint(ttl_ms=LISTS_KEPT_MS),
}


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
            cache_hints=HINTS,  # type: ignore[arg-type]  # its keys are a Literal
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        async def answer(bound: Bound) -> dict[str, Any]:
            return self._service.tools(bound.session, bound.toolsets, params.cursor)

        return await self._answer(types.ListToolsResult, context, answer)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def answer(bound: Bound) -> dict[str, Any]:
            outcome: dict[str, Any] | FlashgrepError
            async with _progress(context) as progress:
                try:
                    outcome = await self._service.call_tool(
                        bound.session, bound.toolsets, params.name, params.arguments, progress
                    )
                except FlashgrepError as error:  # a task group would wrap it
                    outcome = error
            if isinstance(outcome, FlashgrepError):
                raise outcome
            return outcome

        return await self._answer(types.CallToolResult, context, answer)

    async def _list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        async def answer(bound: Bound) -> dict[str, Any]:
            return self._service.resources(bound.session, params.cursor)

        return await self._answer(types.ListResourcesResult, context, answer)

    async def _list_templates(self, context: Context, params: Any) -> types.ListResourceTemplatesResult:
        async def answer(_bound: Bound) -> dict[str, Any]:
            return self._service.templates(params.cursor)

        return await self._answer(types.ListResourceTemplatesResult, context, answer)

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        async def answer(bound: Bound) -> dict[str, Any]:
            return await self._service.read(bound.session, str(params.uri))

        return await self._answer(types.ReadResourceResult, context, answer)

    async def _list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        async def answer(_bound: Bound) -> dict[str, Any]:
            return self._service.prompts(params.cursor)

        return await self._answer(types.ListPromptsResult, context, answer)

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        async def answer(_bound: Bound) -> dict[str, Any]:
            return prompt_message(params.name, params.arguments)

        return await self._answer(types.GetPromptResult, context, answer)

    async def _answer(
        self, shape: type[ResultT], context: Context, answer: Callable[[Bound], Awaitable[dict[str, Any]]]
    ) -> ResultT:
        query = context.request.query_params if context.request is not None else QueryParams()
        try:
            bound = await self._sessions.bound(query)
            declared: Any = (context.meta or {}).get(CAPABILITIES_KEY)
            state_of(bound.session).capabilities = declared if isinstance(declared, dict) else {}
            return shape.model_validate(await answer(bound))
        except FlashgrepError as error:
            told = error.to_object()
            raise MCPError(told["code"], told["message"], told["data"]) from None


@asynccontextmanager
async def _progress(context: Context) -> AsyncIterator[Progress]:
    """Carry progress, reported from wherever the work is done, to the client's stream."""
    sender, receiver = anyio.create_memory_object_stream[dict[str, Any]](QUEUED)

    def notify(_method: str, params: Any) -> bool:
        try:
            sender.send_nowait(params)
        except anyio.WouldBlock:
            return False
        return True

    reporter = ProgressReporter(0, notify)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send, context, receiver)
        try:
            yield reporter
        finally:
            reporter.end()
            sender.close()


async def _send(context: Context, reports: MemoryObjectReceiveStream[dict[str, Any]]) -> None:
    async with reports:
        async for report in reports:
            await context.session.report_progress(report["progress"], report.get("total"), report.get("message"))
