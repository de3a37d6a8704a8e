"""``fgrep team serve``: the registry's methods that read, over HTTP, for whoever shows a token of the team.

TLS, and names for the outside, are a proxy's in front (docs/team.md). A page in a browser cannot ask: no token of a
user's is in a cookie, and requests that have an origin are refused.
"""

import hashlib
import json
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flashgrep import __version__
from flashgrep.catalogue import Catalogue
from flashgrep.config import Settings
from flashgrep.errors import FlashgrepError, Forbidden, InvalidParams
from flashgrep.handlers import REGISTRY
from flashgrep.mcp.binding import client_of, parse_toolsets
from flashgrep.mcp.http.endpoint import Endpoint, make_server
from flashgrep.mcp.http.guard import (
    OPEN_PATHS,
    VISITOR,
    Receive,
    Refusal,
    Scope,
    Send,
    date_header,
    judge_size,
    judge_type,
    read_bearer,
    receive_at_most,
    refuse,
    send_with,
)
from flashgrep.mcp.http.routes import STATUS, Routes, Sessions, is_on
from flashgrep.mcp.http.server import server
from flashgrep.mcp.service import Service
from flashgrep.registry import Call, Capabilities, Handler, Registry, Session
from flashgrep.rpc.context import Log
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.wire import Limits
from flashgrep.scheduler import FLOW
from flashgrep.team.catalogue import ACCESS, Access, TeamCatalogue

MOST_ASKED: Final = 500
"""Characters of a call's parameters that the audit log keeps."""
NOT_HERE: Final = frozenset({"structural", "changes"})
"""Methods with a revision that need a folder, or two states of one, all the same."""
ROUTES: Final = frozenset({"/rpc", "/call/{method}", "/healthz", "/openapi.json", "/docs"})
"""What is here of the local daemon's routes."""
ASKING: ContextVar[Access] = ContextVar("asking")
"""Who sent the request that is being answered."""


@dataclass(frozen=True, slots=True)
class TeamSessions(Sessions):
    """Makes sessions by an address's query; all read only, for whoever the guard let in."""

    async def make(self, query: QueryParams) -> Session:
        """Return the session of a request.

        Raises:
            InvalidParams: no such parameter or toolset.

        """
        unknown = query.keys() - {"project", "toolsets", "structured", "read_only"}
        if unknown:
            raise InvalidParams(f"no such parameter of an address: {min(unknown)[:100]}", field=min(unknown)[:100])
        session = Session(
            projects=tuple(dict.fromkeys(query.getlist("project"))),
            capabilities=Capabilities(writes="never"),
            read_only=True,
            has_token=True,
            wire="http",
            notes={ACCESS: ASKING.get()},
        )
        client = client_of(session)
        client.toolsets = parse_toolsets(",".join(query.getlist("toolsets")).split(","))
        client.structured = is_on(query, "structured")
        return session


@dataclass(slots=True)
class TeamGuard:
    """Finds out who asks, before anything of a request is understood."""

    app: Any
    catalogue: TeamCatalogue
    max_body: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI event."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        names = [name.lower() for name, _ in scope["headers"]]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self.judge(scope, headers, is_ambiguous=names.count(b"authorization") > 1)
        if refusal is None and scope["path"] not in OPEN_PATHS:
            digest = hashlib.sha256(read_bearer(headers).encode()).hexdigest()
            try:
                ASKING.set(await anyio.to_thread.run_sync(self.catalogue.find_access, digest))
            except Forbidden:
                refusal = Refusal(401, "auth_required", "a token is required", ((b"www-authenticate", b"Bearer"),))
            except FlashgrepError as error:
                refusal = Refusal(503, error.reason or "database_away", error.message)
        if refusal is not None:
            await refuse(refusal, receive, send)
            return
        FLOW.set(("team", ASKING.get().subject if ASKING.get(None) else ""))
        answering = send_with(send, [date_header()])
        await self.app({**scope, VISITOR: False}, receive_at_most(receive, self.max_body), answering)

    def judge(self, scope: Scope, headers: Mapping[str, str], *, is_ambiguous: bool) -> Refusal | None:
        """Return why a request is turned away whoever sends it; None: it is not."""
        if is_ambiguous:
            return Refusal(400, "ambiguous", "one token is enough")
        if "origin" in headers:
            return Refusal(403, "foreign_origin", "requests from this origin are refused")
        return judge_type(scope, headers) or judge_size(headers, self.max_body)


def make_registry(catalogue: TeamCatalogue) -> Registry:
    """Return the methods that read revisions; each call leaves a line in the audit log."""
    return Registry(
        replace(handler, run=partial(_run_and_note, catalogue, handler))
        for handler in REGISTRY
        if "rev" in handler.params.model_fields and not handler.writes and handler.name not in NOT_HERE
    )


async def _run_and_note(catalogue: TeamCatalogue, handler: Handler, call: Call[Any], params: Any) -> Any:
    """Answer a call, and note who asked what."""
    started, outcome = time.monotonic(), "cancelled"
    try:
        result = await handler.run(call, params)
        outcome = "answered"
    except FlashgrepError as error:
        outcome = error.reason or str(error.code)
        raise
    else:
        return result
    finally:
        asked = json.dumps(params.model_dump(mode="json", exclude_defaults=True))[:MOST_ASKED]
        took = (time.monotonic() - started) * 1000
        note = partial(catalogue.note, call.session.notes[ACCESS], handler.name, asked, outcome, took)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(note)


def make_application(catalogue: TeamCatalogue, settings: Settings, log: Log) -> TeamGuard:
    """Return the application: ``/mcp``, ``/rpc``, ``/call/METHOD``, ``/hook/REPOSITORY``, ``/healthz``, ``/docs``."""
    host = cast("Catalogue", catalogue)
    service = Service(host, {"name": "flashgrep team", "version": __version__})
    limits = Limits(max_line=settings.max_line_bytes, call_seconds=settings.call_timeout_seconds)
    service.dispatcher = Dispatcher(make_registry(catalogue), host, log=log, limits=limits)
    sessions = TeamSessions(host, may_write=False)
    plain = Routes(service.dispatcher, sessions)

    async def take_hook(request: Request) -> Response:
        """Have a repository brought up to date: what was pushed to calls this."""
        name = request.path_params["name"]
        try:
            is_known = await anyio.to_thread.run_sync(catalogue.request, ASKING.get(), name)
        except FlashgrepError as error:
            return JSONResponse({"error": error.to_object()}, STATUS.get(error.code, 500))
        return JSONResponse({"queued": name} if is_known else {"error": "no such repository"}, 202 if is_known else 404)

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - takes 0.5 s

    manager = StreamableHTTPSessionManager(
        make_server(service, sessions), stateless=True, max_request_body_size=settings.max_line_bytes
    )
    routes: list[Any] = [
        *(route for route in plain.all() if route.path in ROUTES),
        Route("/hook/{name:path}", take_hook, methods=["POST"]),
        Route("/mcp", Endpoint(manager, service.dispatcher.reader), methods=["POST", "GET", "DELETE"]),
    ]
    app = Starlette(
        routes=routes, lifespan=lambda _app: manager.run(), exception_handlers={Exception: plain.answer_fault}
    )
    return TeamGuard(app, catalogue, settings.max_line_bytes)


async def serve(app: TeamGuard, listener: socket.socket, ready: Callable[[], None], until: Awaitable[None]) -> None:
    """Serve until told to stop."""
    running = server(app)
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await running.serve(sockets=[listener])

        tasks.start_soon(run)
        await running.ready.wait()
        ready()
        await until
        running.stop()
