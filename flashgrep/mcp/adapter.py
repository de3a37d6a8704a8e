"""The protocol's methods as extensions of the dispatcher: legacy by handshake, stateless by each request's envelope."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from flashgrep.errors import InvalidParams, MethodNotFound
from flashgrep.mcp.binding import Binder
from flashgrep.mcp.era import MODERN, Envelope, dressed, envelope_of, negotiated
from flashgrep.mcp.service import CAPABILITIES, Service
from flashgrep.mcp.state import ClientState, state_of
from flashgrep.mcp.words import INSTRUCTIONS, prompt_message
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.message import Params

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LISTS_KEPT_MS: Final = 300_000
"""What is listed changes only with the connection's own settings."""
Era = Literal["both", "legacy", "modern"]


@dataclass(slots=True)
class Asked:
    """One request, with what its sender has told of itself."""

    context: RequestContext
    params: dict[str, Any]
    state: ClientState
    envelope: Envelope | None


Answer = Callable[[Asked], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method: what answers it, in which era it exists, and how long its result may be kept."""

    answer: Answer
    era: Era = "both"
    keep_ms: int | None = None


class Adapter:
    """Answers the protocol's methods by a service."""

    def __init__(self, service: Service, binder: Binder) -> None:
        self.service = service
        self._binder = binder

    def extensions(self) -> dict[str, Extension]:
        """Return the protocol's methods and notifications by name, and the shim's ``$/bind``."""
        answering = {name: partial(self._answer, name, route) for name, route in self._routes().items()}
        noticing: dict[str, Extension] = {
            "notifications/initialized": _noted,
            "notifications/roots/list_changed": self._roots_changed,
        }
        return {**answering, **noticing, "$/bind": self._binder.bind}

    def _routes(self) -> dict[str, Route]:
        lists = LISTS_KEPT_MS
        return {
            "initialize": Route(self._initialize, "legacy"),
            "ping": Route(_nothing, "legacy"),
            "logging/setLevel": Route(_set_level, "legacy"),
            "server/discover": Route(self._discover, "modern", lists),
            "tools/list": Route(self._tools, "both", lists),
            "tools/call": Route(self._call_tool),
            "resources/list": Route(self._resources, "both", 0),
            "resources/templates/list": Route(self._templates, "both", lists),
            "resources/read": Route(self._read, "both", 0),
            "prompts/list": Route(self._prompts, "both", lists),
            "prompts/get": Route(_prompt),
        }

    async def _answer(self, name: str, route: Route, context: RequestContext, params: Params) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise InvalidParams(f"{name}: parameters by name are required")
        envelope = envelope_of(params)
        if envelope is None and route.era == "modern":
            raise InvalidParams(f"{name}: _meta with the protocol version and the client's capabilities is required")
        if envelope is not None and route.era == "legacy":
            raise MethodNotFound(f"method not found: {name} (not in {envelope.version})", method=name)
        state = state_of(context.session)
        if envelope is not None:
            state.capabilities = envelope.capabilities
        result = await route.answer(Asked(context, params, state, envelope))
        return result if envelope is None else dressed(result, self.service.server, route.keep_ms)

    # -- the handshake, and what stands for it -------------------------------------------------------------------------

    async def _initialize(self, asked: Asked) -> dict[str, Any]:
        requested = asked.params.get("protocolVersion")
        if not isinstance(requested, str):
            raise InvalidParams("initialize: protocolVersion: a string is required", field="protocolVersion")
        capabilities = asked.params.get("capabilities")
        asked.state.version = negotiated(requested)
        asked.state.capabilities = capabilities if isinstance(capabilities, dict) else {}
        return {
            "protocolVersion": asked.state.version,
            "capabilities": CAPABILITIES | {"logging": {}},
            "serverInfo": dict(self.service.server),
            "instructions": INSTRUCTIONS,
        }

    async def _discover(self, _asked: Asked) -> dict[str, Any]:
        return {
            "supportedVersions": list(MODERN),
            "capabilities": CAPABILITIES,
            "instructions": INSTRUCTIONS,
        }

    async def _roots_changed(self, context: RequestContext, _params: Params) -> None:
        """Choose again at the next call, if it was by roots or not at all that the project was chosen."""
        state = state_of(context.session)
        if state.fallback is not None:
            context.session.projects = ()
            state.to_choose += 1

    # -- tools, resources, prompts -------------------------------------------------------------------------------------

    async def _tools(self, asked: Asked) -> dict[str, Any]:
        await self._binder.settle(asked.context, may_ask=asked.envelope is None)
        return self.service.tools(asked.context.session, asked.state.toolsets, asked.params.get("cursor"))

    async def _call_tool(self, asked: Asked) -> dict[str, Any]:
        await self._binder.settle(asked.context, may_ask=asked.envelope is None)
        name, arguments = asked.params.get("name"), asked.params.get("arguments")
        call, started = asked.context.call, time.perf_counter()
        result = await self.service.call_tool(call.session, asked.state.toolsets, name, arguments, call.progress)
        if (asked.envelope.log_level if asked.envelope else asked.state.log_level) is not None:
            _log(asked, name, result, time.perf_counter() - started)
        return result

    async def _resources(self, asked: Asked) -> dict[str, Any]:
        await self._binder.settle(asked.context, may_ask=asked.envelope is None)
        return self.service.resources(asked.context.session, asked.params.get("cursor"))

    async def _templates(self, asked: Asked) -> dict[str, Any]:
        return self.service.templates(asked.params.get("cursor"))

    async def _read(self, asked: Asked) -> dict[str, Any]:
        await self._binder.settle(asked.context, may_ask=asked.envelope is None)
        return await self.service.read(asked.context.session, asked.params.get("uri"))

    async def _prompts(self, asked: Asked) -> dict[str, Any]:
        return self.service.prompts(asked.params.get("cursor"))


async def _prompt(asked: Asked) -> dict[str, Any]:
    return prompt_message(asked.params.get("name"), asked.params.get("arguments"))


async def _nothing(_asked: Asked) -> dict[str, Any]:
    return {}


async def _noted(_context: RequestContext, _params: Params) -> None:
    """Take note: the answer to the handshake holds all a client needs."""


async def _set_level(asked: Asked) -> dict[str, Any]:
    level = asked.params.get("level")
    if level not in LEVELS:
        raise InvalidParams(f"logging/setLevel: no such level: {level}", field="level", allowed=list(LEVELS))
    asked.state.log_level = level
    return {}


def _log(asked: Asked, name: Any, result: dict[str, Any], seconds: float) -> None:
    """Tell a client that wants to know how a call went: failures as warnings, all else for debugging."""
    wanted = asked.envelope.log_level if asked.envelope else asked.state.log_level
    level = "warning" if result["isError"] else "debug"
    if wanted not in LEVELS or LEVELS.index(level) < LEVELS.index(wanted):
        return
    data: dict[str, Any] = {"tool": name, "took_ms": round(seconds * 1000, 3)}
    if result["isError"]:
        data |= {"code": result["structuredContent"]["code"], "message": result["structuredContent"]["message"]}
    asked.context.notify("notifications/message", {"level": level, "logger": "flashgrep", "data": data})
