"""``fgrep team serve``: the registry's read-only methods over HTTP, for clients with a token of the team.

Methods whose local version reads a folder or a clone are implemented here. A proxy in front provides TLS
(docs/team.md). Pages of other origins are refused (``parts.team.guard``).
"""

import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flashgrep import __version__
from flashgrep.base.config import Settings
from flashgrep.base.errors import FlashgrepError, InvalidParams, Unavailable
from flashgrep.base.registry import Call, Capabilities, Handler, Registry, Session
from flashgrep.mcp.binding import client_of
from flashgrep.mcp.service import Service
from flashgrep.mcp.tool_choice import choose_tools
from flashgrep.methods.common import ProjectParams
from flashgrep.methods.indexing import StatsResult
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.git.history_methods import (
    MOST_NAMES,
    RevisionsResult,
    blame,
    history,
)
from flashgrep.parts.git.repository import list_addresses, name_address
from flashgrep.parts.http.site import Site
from flashgrep.parts.http.wire.endpoint import Endpoint, make_server
from flashgrep.parts.http.wire.routes import (
    Routes,
    Sessions,
    answer_error,
    is_on,
    send_raw,
)
from flashgrep.parts.http.wire.server import server
from flashgrep.parts.team.clones import TAGS
from flashgrep.parts.team.guard import (
    CURRENT_ACCESS,
    AccessRules,
    Attempts,
    SignIn,
    TeamGuard,
)
from flashgrep.parts.team.team_catalogue import (
    ACCESS,
    Access,
    TeamCatalogue,
    TeamProject,
)
from flashgrep.rpc.context import Log
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.wire import Limits

HOW: Final = "name a repository by `project`, or several by `projects`"
MOST_ASKED: Final = 500
"""Characters of a call's parameters that the audit log keeps."""
NOT_HERE: Final = frozenset({"structural", "changes"})
"""Methods that take a revision, but also need a folder, or two states of one."""
OF_CLONES: Final = frozenset({"history", "blame"})
"""They are here where this machine has a clone."""
ROUTES: Final = frozenset(
    {"/rpc", "/call/{method}", "/healthz", "/openapi.json", "/docs"}
)
"""The local daemon's routes that this server has, too."""


async def list_revisions(
    call: Call[TeamCatalogue], params: ProjectParams
) -> RevisionsResult:
    """Return the branches and tags of a repository, the newest first."""
    project = await call.host.workspace(call, params.project)
    query = (
        "SELECT name, encode(commit, 'hex'), seconds FROM flashgrep.branch JOIN flashgrep.revision "
        "USING (repository, commit) WHERE repository = %s ORDER BY seconds DESC, name LIMIT %s::bigint"
    )
    rows = await _fetch(project, query, [project.row.id, MOST_NAMES])
    kinds = {True: "tag", False: "branch"}
    return {
        "results": [
            {
                "name": name.removeprefix(TAGS),
                "kind": kinds[name.startswith(TAGS)],
                "commit": commit,
                "time": at,
            }
            for name, commit, at in rows
        ]
    }


def ask_clone(method: Handler) -> Callable[[Call[TeamCatalogue], Any], Awaitable[Any]]:
    """Return a history method limited to commits in the store: the clone may have branches that are not published."""

    async def ask(call: Call[TeamCatalogue], params: Any) -> Any:
        project = await call.host.workspace(call, params.project)
        commit = (await project.at(params.rev)).revision.commit.decode("ascii")
        return await method.run(call, params.model_copy(update={"rev": commit}))

    return ask


async def stats(call: Call[TeamCatalogue], params: ProjectParams) -> StatsResult:
    """Return the visible repositories, or figures of one at HEAD."""
    reachable = call.host.list_reachable(call.session)
    if params.project is None and len(call.session.projects) != 1:
        return {
            "project": None,
            "version": __version__,
            "projects": reachable,
            "message": HOW,
        }
    project = await call.host.workspace(call, params.project)
    query = (
        "SELECT extract(epoch FROM synced)::float8, (SELECT coalesce(sum(bytes), 0)::bigint FROM flashgrep.segment "
        "WHERE segment.repository = repository.id) FROM flashgrep.repository WHERE id = %s"
    )
    rows = await _fetch(project, query, [project.row.id])
    if rows:
        synced, posting_bytes = rows[0]
    else:
        synced = None
        posting_bytes = 0
    result: StatsResult = {
        "project": project.name,
        "version": __version__,
        "projects": reachable,
        "stage": "ready" if project.row.generation else "waiting",
        "generation": project.generation,
        "gram_bytes": posting_bytes,
        "last_update": synced,
        "problem": project.row.problem,
    }
    address = name_address(project.row.source)
    if not address:  # a bare clone added by path: the address of its remote
        with suppress(Unavailable):
            address = next(
                iter(
                    await project.ask_repository(
                        lambda clone: list_addresses(clone.git)
                    )
                ),
                "",
            )
    if address:
        result["address"] = address
    if project.row.generation:
        table = (await project.at("HEAD")).table
        result["total_files"] = len(table)
        result["files_skipped"] = dict(Counter(table.skipped.values()))
    return result


async def _fetch(
    project: TeamProject, query: str, params: list[Any]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, with the asker's permissions."""

    def read() -> list[tuple[Any, ...]]:
        with project.store_access.read() as reading:
            return reading.fetch(query, params)

    return await project.in_turn(read)


OURS: Final[Mapping[str, Callable[[Any, Any], Awaitable[Any]]]] = {
    "list_revisions": list_revisions,
    "stats": stats,
    "history": ask_clone(history),
    "blame": ask_clone(blame),
}


@dataclass(frozen=True, slots=True)
class TeamSessions(Sessions):
    """Makes read-only sessions from a URL's query, for the client that the guard authenticated."""

    async def make(self, query: QueryParams) -> Session:
        """Return the session of a request.

        Raises:
            InvalidParams: no such parameter or toolset.

        """
        unknown = query.keys() - {"project", "toolsets", "structured", "read_only"}
        if unknown:
            raise InvalidParams(
                f"no such parameter of an address: {min(unknown)[:100]}",
                field=min(unknown)[:100],
            )
        session = Session(
            projects=tuple(dict.fromkeys(query.getlist("project"))),
            capabilities=Capabilities(writes="never"),
            # In addition to the capabilities, for methods that check only this.
            read_only=True,
            has_token=True,
            wire="http",
            notes={ACCESS: CURRENT_ACCESS.get()},
        )
        client = client_of(session)
        client.tools = choose_tools(",".join(query.getlist("toolsets")).split(","))
        client.structured = is_on(query, "structured")
        return session


def make_registry(catalogue: TeamCatalogue) -> Registry:
    """Return the methods that read revisions; each call is recorded in the audit log."""
    if catalogue.has_clones:
        missing = NOT_HERE
    else:
        missing = NOT_HERE | OF_CLONES
    return Registry(
        replace(
            handler,
            run=partial(
                _run_and_note,
                catalogue,
                handler.name,
                OURS.get(handler.name, handler.run),
            ),
        )
        for handler in REGISTRY
        if handler.name not in missing
        and (
            handler.name in OURS
            or ("rev" in handler.params.model_fields and not handler.writes)
        )
    )


async def _run_and_note(
    catalogue: TeamCatalogue,
    name: str,
    run: Callable[[Any, Any], Awaitable[Any]],
    call: Call[Any],
    params: Any,
) -> Any:
    """Answer a call, and record it in the audit log."""
    question = json.dumps(params.model_dump(mode="json", exclude_defaults=True))
    async with audit(catalogue, call.session.notes[ACCESS], name, question):
        return await run(call, params)


@asynccontextmanager
async def audit(
    catalogue: TeamCatalogue, access: Access, name: str, asked: str
) -> AsyncIterator[None]:
    """Run a block, and record it and its outcome in the audit log; raises as ``TeamCatalogue.note``."""
    started = time.monotonic()
    outcome = "cancelled"
    try:
        yield
        outcome = "answered"
    except FlashgrepError as error:
        # Only the reason: a message may quote the parameters, which have their own
        # column.
        outcome = error.reason or str(error.code)
        raise
    finally:
        took = (time.monotonic() - started) * 1000
        note = partial(catalogue.note, access, name, asked[:MOST_ASKED], outcome, took)
        # Cancelled calls are recorded, too.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(note)


def make_application(
    catalogue: TeamCatalogue, settings: Settings, log: Log, rules: AccessRules
) -> TeamGuard:
    """Return the application: the page, ``/mcp``, ``/rpc``, ``/call/METHOD``, ``/hook/REPOSITORY``, ``/docs``."""
    service = Service(catalogue, {"name": "flashgrep team", "version": __version__})
    limits = Limits(
        max_line=settings.max_line_bytes, call_seconds=settings.call_timeout_seconds
    )
    catalogue.registry = make_registry(catalogue)
    service.dispatcher = Dispatcher(
        catalogue.registry, catalogue, log=log, limits=limits
    )
    sessions = TeamSessions(catalogue, may_write=False)
    facts = {
        "sign_in": "proxy" if rules.person_header else "token",
        "is_team": True,
        "methods": service.dispatcher.registry.names(),
    }
    plain = Routes(service.dispatcher, sessions)

    async def take_hook(request: Request) -> Response:
        """Queue an update of a repository; called by its git host after a push."""
        name = request.path_params["name"]
        try:
            is_known = await anyio.to_thread.run_sync(
                catalogue.request, CURRENT_ACCESS.get(), name
            )
        except FlashgrepError as error:
            return answer_error(error)
        return JSONResponse(
            {"queued": name} if is_known else {"error": "no such repository"},
            202 if is_known else 404,
        )

    async def send_file(request: Request) -> Response:
        """Send a file unchanged."""
        session = await sessions.make(QueryParams())
        try:
            async with audit(
                catalogue, CURRENT_ACCESS.get(), "raw", str(request.query_params)
            ):
                return await send_raw(catalogue, session, request.query_params)
        except FlashgrepError as error:
            return answer_error(error)

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - takes 0.5 s

    manager = StreamableHTTPSessionManager(
        make_server(service, sessions),
        stateless=True,
        max_request_body_size=settings.max_line_bytes,
    )
    attempts = Attempts()
    routes: list[Any] = [
        *(route for route in plain.all() if route.path in ROUTES),
        Route("/hook/{name:path}", take_hook, methods=["POST"]),
        Route("/raw", send_file, methods=["GET"]),
        *Site(facts, rules.origins[0]).routes(),
        *SignIn(catalogue, rules, attempts).routes(),
        Route(
            "/mcp",
            Endpoint(manager, service.dispatcher.reader),
            methods=["POST", "GET", "DELETE"],
        ),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lambda _app: manager.run(),
        exception_handlers={Exception: plain.answer_fault},
    )
    return TeamGuard(app, catalogue, settings.max_line_bytes, rules, attempts)


async def serve(
    app: TeamGuard,
    listener: socket.socket,
    ready: Callable[[], None],
    until: Awaitable[object],
) -> None:
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
