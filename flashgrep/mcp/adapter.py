"""The protocol's methods as extensions of the dispatcher, in both of its eras.

Revisions up to 2025-11-25 begin with a handshake (legacy); in the stateless one each request says all of its sender in
an envelope (modern). Facts of the wire after the specification's revisions 2024-11-05 to 2025-11-25, and 2026-07-28.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from flashgrep.errors import InvalidParams, MethodNotFound, UnsupportedVersion
from flashgrep.mcp.binding import LEGACY, Binder, Client, client_of
from flashgrep.mcp.prompts import INSTRUCTIONS, get_prompt
from flashgrep.mcp.service import CAPABILITIES, Service
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.message import Params

MODERN: Final = ("2026-07-28",)
PREFIX: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = PREFIX + "protocolVersion"
CAPABILITIES_KEY: Final = PREFIX + "clientCapabilities"
LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
SERVER_KEY: Final = PREFIX + "serverInfo"
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LISTS_KEPT_MS: Final = 300_000
"""What is listed changes only with the connection's own settings."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request of the stateless revision says of its sender."""

    version: str
    capabilities: dict[str, Any]
    log_level: str | None


@dataclass(slots=True)
class McpRequest:
    """One request, with what its sender has told of itself."""

    context: RequestContext
    params: dict[str, Any]
    client: Client
    envelope: Envelope | None

    @property
    def log_level(self) -> str | None:
        """The level from which on the client wants to hear of calls; None: not at all."""
        return self.client.log_level if self.envelope is None else self.envelope.log_level


@dataclass(frozen=True, slots=True)
class Route:
    """One method: what answers it, in which era it exists, and how long its result may be kept (None: not at all)."""

    answer: Callable[[McpRequest], Awaitable[dict[str, Any]]]
    era: Literal["both", "legacy", "modern"] = "both"
    keep_ms: int | None = None


class Adapter:
    """Answers the protocol's methods by a service."""

    def __init__(self, service: Service, binder: Binder) -> None:
        self.service = service
        self._binder = binder

    def extensions(self) -> dict[str, Extension]:
        """Return the protocol's methods and notifications by name, and ``$/bind``, which ``fgrep mcp`` sends."""
        routes = {
            "initialize": Route(self._initialize, "legacy"),
            "ping": Route(_ping, "legacy"),
            "logging/setLevel": Route(_set_level, "legacy"),
            "server/discover": Route(_discover, "modern", LISTS_KEPT_MS),
            "tools/list": Route(self._list_tools, "both", LISTS_KEPT_MS),
            "tools/call": Route(self._call_tool),
            "resources/list": Route(self._list_resources, "both", 0),
            "resources/templates/list": Route(self._list_templates, "both", LISTS_KEPT_MS),
            "resources/read": Route(self._read_resource, "both", 0),
            "prompts/list": Route(self._list_prompts, "both", LISTS_KEPT_MS),
            "prompts/get": Route(_get_prompt),
        }
        return {
            **{name: partial(self._answer, name, route) for name, route in routes.items()},
            "notifications/initialized": _ignore,
            "notifications/roots/list_changed": self._binder.choose_again,
            "$/bind": self._binder.bind,
        }

    async def _answer(self, name: str, route: Route, context: RequestContext, params: Params) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise InvalidParams(f"{name}: parameters by name are required")
        envelope = read_envelope(params)
        if envelope is None and route.era == "modern":
            raise InvalidParams(f"{name}: _meta with the protocol version and the client's capabilities is required")
        if envelope is not None and route.era == "legacy":
            raise MethodNotFound(f"method not found: {name} (not in {envelope.version})", method=name)
        client = client_of(context.session)
        if envelope is not None:
            client.capabilities = envelope.capabilities
        result = await route.answer(McpRequest(context, params, client, envelope))
        if envelope is None:
            return result
        meta = {**result.get("_meta", {}), SERVER_KEY: dict(self.service.server)}
        result = {**result, "resultType": "complete", "_meta": meta}
        # What is listed depends on who asks (its toolsets, its projects), so nothing may be kept for others.
        return result if route.keep_ms is None else result | {"ttlMs": route.keep_ms, "cacheScope": "private"}

    async def _initialize(self, request: McpRequest) -> dict[str, Any]:
        wanted, capabilities = request.params.get("protocolVersion"), request.params.get("capabilities")
        if not isinstance(wanted, str):
            raise InvalidParams("initialize: protocolVersion: a string is required", field="protocolVersion")
        request.client.version = wanted if wanted in LEGACY else LEGACY[-1]
        request.client.capabilities = capabilities if isinstance(capabilities, dict) else {}
        return {
            "protocolVersion": request.client.version,
            "capabilities": CAPABILITIES | {"logging": {}},
            "serverInfo": dict(self.service.server),
            "instructions": INSTRUCTIONS,
        }

    async def _settle(self, request: McpRequest) -> None:
        """Have the project chosen; a stateless revision does not let a server ask for roots."""
        await self._binder.settle(request.context, may_ask=request.envelope is None)

    async def _list_tools(self, request: McpRequest) -> dict[str, Any]:
        await self._settle(request)
        return self.service.list_tools(request.context.session, request.client.toolsets, request.params.get("cursor"))

    async def _call_tool(self, request: McpRequest) -> dict[str, Any]:
        await self._settle(request)
        name, arguments = request.params.get("name"), request.params.get("arguments")
        call, started = request.context.call, time.perf_counter()
        result = await self.service.call_tool(call.session, request.client.toolsets, name, arguments, call.progress)
        wanted = request.log_level
        level = "warning" if result["isError"] else "debug"
        if wanted in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted):
            data: dict[str, Any] = {"tool": name, "took_ms": round((time.perf_counter() - started) * 1000, 3)}
            if result["isError"]:
                error = result["structuredContent"].value
                data |= {"code": error["code"], "message": error["message"]}
            request.context.notify("notifications/message", {"level": level, "logger": "flashgrep", "data": data})
        return result

    async def _list_resources(self, request: McpRequest) -> dict[str, Any]:
        await self._settle(request)
        return self.service.list_resources(request.context.session, request.params.get("cursor"))

    async def _list_templates(self, request: McpRequest) -> dict[str, Any]:
        return self.service.list_templates(request.params.get("cursor"))

    async def _read_resource(self, request: McpRequest) -> dict[str, Any]:
        await self._settle(request)
        return await self.service.read_resource(request.context.session, request.params.get("uri"))

    async def _list_prompts(self, request: McpRequest) -> dict[str, Any]:
        return self.service.list_prompts(request.params.get("cursor"))


async def _get_prompt(request: McpRequest) -> dict[str, Any]:
    return get_prompt(request.params.get("name"), request.params.get("arguments"))


async def _discover(_request: McpRequest) -> dict[str, Any]:
    return {"supportedVersions": list(MODERN), "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}


async def _ping(_request: McpRequest) -> dict[str, Any]:
    return {}


async def _set_level(request: McpRequest) -> dict[str, Any]:
    level = request.params.get("level")
    if level not in LEVELS:
        raise InvalidParams(f"logging/setLevel: no such level: {level}", field="level", allowed=list(LEVELS))
    request.client.log_level = level
    return {}


async def _ignore(_context: RequestContext, _params: Params) -> None:
    """Do nothing: the answer to the handshake holds all a client needs."""


def read_envelope(params: Mapping[str, Any]) -> Envelope | None:
    """Return the envelope of a stateless request, None for a request of the handshake's era.

    Raises:
        InvalidParams: the envelope is there and incomplete.
        UnsupportedVersion: it names a revision we do not speak.

    """
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise InvalidParams(f"_meta: {VERSION_KEY} must be a string", field=VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if not isinstance(capabilities, dict):
        raise InvalidParams(f"_meta: {CAPABILITIES_KEY}: an object is required", field=CAPABILITIES_KEY)
    if version not in MODERN:
        raise UnsupportedVersion(f"unsupported protocol version: {version}", supported=list(MODERN), requested=version)
    level = meta.get(LOG_LEVEL_KEY)
    return Envelope(version, capabilities, level if isinstance(level, str) else None)
