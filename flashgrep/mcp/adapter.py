"""The protocol's methods as extensions of the dispatcher, in both of its eras (with and without a handshake).

Revisions up to 2025-11-25 begin with a handshake (legacy). In the stateless one, each request describes its sender in
an envelope (modern). Written after the specification's revisions 2024-11-05 to 2025-11-25, and 2026-07-28.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from flashgrep.base.errors import (
    FlashgrepError,
    InvalidParams,
    MethodNotFound,
    UnsupportedVersion,
)
from flashgrep.base.installation import REPOSITORY
from flashgrep.mcp.binding import LEGACY, Binder, Client, client_of
from flashgrep.mcp.icon import ICONS
from flashgrep.mcp.service import CAPABILITIES, INSTRUCTIONS, METHODS, Service
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.message import Params

MODERN: Final = ("2026-07-28",)
PREFIX: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = PREFIX + "protocolVersion"
CAPABILITIES_KEY: Final = PREFIX + "clientCapabilities"
LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
SERVER_KEY: Final = PREFIX + "serverInfo"
NAME: Final = "flashgrep"
SUMMARY: Final = "Exact, fresh and fast answers about code from one local daemon: search, symbols, safe edits."
LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
LEGACY_METHODS: Final = ("initialize", "ping", "logging/setLevel")
MODERN_METHODS: Final = ("server/discover",)
ABOUT_A_PROJECT: Final = frozenset(
    {"tools/list", "tools/call", "resources/list", "resources/read"}
)
KEEP_MS: Final = {
    **dict.fromkeys(
        ("server/discover", "tools/list", "prompts/list", "resources/templates/list"),
        300_000,
    ),
    **dict.fromkeys(("resources/list", "resources/read"), 0),
}
"""How long a client may cache a result: lists change only with the connection's settings."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request of the stateless revision says about its sender."""

    version: str
    capabilities: dict[str, Any]
    log_level: str | None


class Adapter:
    """Answers the protocol's methods with a service."""

    def __init__(self, service: Service, binder: Binder) -> None:
        self.service = service
        self._binder = binder

    def extensions(self) -> dict[str, Extension]:
        """Return the protocol's methods and notifications by name, and ``$/bind``, which ``fgrep mcp`` sends."""

        async def ignore(_context: RequestContext, _params: Params) -> None:
            """Do nothing: the handshake needs no further reaction."""

        names = (*LEGACY_METHODS, *MODERN_METHODS, *METHODS)
        answers: dict[str, Extension] = {
            name: partial(self._answer, name) for name in names
        }
        return answers | {
            "notifications/initialized": ignore,
            "notifications/roots/list_changed": self._binder.choose_again,
            "$/bind": self._binder.bind,
        }

    async def _answer(
        self, name: str, context: RequestContext, params: Params
    ) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise InvalidParams(f"{name}: parameters by name are required")
        envelope = read_envelope(params)
        client = client_of(context.session)
        if envelope is None:
            if name in MODERN_METHODS:
                needed = "_meta with the protocol version and the client's capabilities is required"
                raise InvalidParams(f"{name}: {needed}")
            if name in LEGACY_METHODS:
                return self._answer_legacy(name, client, params)
            return await self._answer_common(
                name, context, params, client.log_level, may_ask=True
            )
        if name in LEGACY_METHODS:
            raise MethodNotFound(
                f"method not found: {name} (not in {envelope.version})", method=name
            )
        # Sent with each request; the last one counts.
        client.capabilities = envelope.capabilities
        result: dict[str, Any]
        if name == "server/discover":
            result = {
                "supportedVersions": list(MODERN),
                "capabilities": CAPABILITIES,
                "instructions": INSTRUCTIONS,
            }
        else:  # this revision does not allow a server to ask for roots
            result = await self._answer_common(
                name, context, params, envelope.log_level, may_ask=False
            )
        # Of a server that is discovered there is more to say than of one that answers.
        if name == "server/discover":
            server = self._introduce_server()
        else:
            server = dict(self.service.server)
        meta = {**result.get("_meta", {}), SERVER_KEY: server}
        result |= {"resultType": "complete", "_meta": meta}
        # Lists depend on the client's toolsets and projects, so a shared cache must not
        # store them.
        return result | (
            {"ttlMs": KEEP_MS[name], "cacheScope": "private"} if name in KEEP_MS else {}
        )

    def _introduce_server(self) -> dict[str, Any]:
        """Return what a host shows of this server beside its tools."""
        server = dict(self.service.server)
        # Under a name that the user gave it, it is not ours to adorn.
        if server["name"] != NAME:
            return server
        return {
            **server,
            "title": NAME,
            "description": SUMMARY,
            "websiteUrl": REPOSITORY,
            "icons": ICONS,
        }

    def _answer_legacy(
        self, name: str, client: Client, params: dict[str, Any]
    ) -> dict[str, Any]:
        if name == "logging/setLevel":
            level = params.get("level")
            if level not in LEVELS:
                raise InvalidParams(
                    f"logging/setLevel: no such level: {level}",
                    field="level",
                    allowed=list(LEVELS),
                )
            client.log_level = level
        if name != "initialize":
            return {}
        param = params.get("protocolVersion")
        capabilities = params.get("capabilities")
        if not isinstance(param, str):
            raise InvalidParams(
                "initialize: protocolVersion: a string is required",
                field="protocolVersion",
            )
        # The specification: answer with the newest version we speak, and let the client
        # decide whether to continue.
        if param in LEGACY:
            client.version = param
        else:
            client.version = LEGACY[-1]
        if isinstance(capabilities, dict):
            client.capabilities = capabilities
        else:
            client.capabilities = {}
        return {
            "protocolVersion": client.version,
            "capabilities": CAPABILITIES | {"logging": {}},
            "serverInfo": self._introduce_server(),
            "instructions": INSTRUCTIONS,
        }

    async def _answer_common(
        self,
        name: str,
        context: RequestContext,
        params: dict[str, Any],
        log_level: str | None,
        *,
        may_ask: bool,
    ) -> dict[str, Any]:
        """Answer a method of both eras; the caller of a tool gets log messages from ``log_level`` up."""
        if name in ABOUT_A_PROJECT:
            await self._binder.settle(context, may_ask=may_ask)
        started = time.perf_counter()
        failed: list[FlashgrepError] = []
        result = await self.service.answer(
            name, context.session, params, context.call.progress, failed.append
        )
        if name == "tools/call" and log_level in LEVELS:
            level = "warning" if failed else "debug"
            data: dict[str, Any] = {
                "tool": params.get("name"),
                "took_ms": round((time.perf_counter() - started) * 1000, 3),
            }
            for error in failed:
                data |= {"code": error.code, "message": error.message}
            if LEVELS.index(level) >= LEVELS.index(log_level):
                context.notify(
                    "notifications/message",
                    {"level": level, "logger": "flashgrep", "data": data},
                )
        return result


def read_envelope(params: Mapping[str, Any]) -> Envelope | None:
    """Return the envelope of a stateless request, None for a request of the handshake's era.

    Raises:
        InvalidParams: the envelope is incomplete.
        UnsupportedVersion: it names a revision we do not speak.

    """
    meta = params.get("_meta")
    # _meta alone is not an envelope: the earlier era uses it, too, for progress.
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise InvalidParams(f"_meta: {VERSION_KEY} must be a string", field=VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if not isinstance(capabilities, dict):
        raise InvalidParams(
            f"_meta: {CAPABILITIES_KEY}: an object is required", field=CAPABILITIES_KEY
        )
    if version not in MODERN:
        raise UnsupportedVersion(
            f"unsupported protocol version: {version}",
            supported=list(MODERN),
            requested=version,
        )
    level = meta.get(LOG_LEVEL_KEY)
    # Unlike the version, a wrong level harms no answer.
    if not isinstance(level, str):
        level = None
    return Envelope(version, capabilities, level)
