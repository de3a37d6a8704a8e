"""Plain HTTP: a route for each method, JSON-RPC, health, and their documentation.

Each request has its own session, bound by its URL; no state is kept between requests.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import anyio
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flashgrep import __version__
from flashgrep.api.host import Host
from flashgrep.base.errors import (
    FlashgrepError,
    InvalidParams,
    MethodNotFound,
    TooLarge,
    Unavailable,
)
from flashgrep.base.model import path_from_json, path_to_text
from flashgrep.base.registry import Call, Capabilities, Session
from flashgrep.mcp.binding import client_of, read_path_map
from flashgrep.mcp.tool_choice import choose_tools
from flashgrep.methods.common import view_of
from flashgrep.parts.http.site import HEADERS
from flashgrep.parts.http.wire.admission import VISITOR
from flashgrep.parts.http.wire.documents import PARAMETERS, SEARCHES, STATUS, Documents
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import InvalidItem, Reply, encode, error_line

NO_CONTENT: Final = 204
TOO_LARGE: Final = 413
NOT_IMPLEMENTED: Final = 501
NO: Final = frozenset({"0", "false", "no", "off", ""})
"""Values of a switch that mean off; if it is repeated, it is on if any value means on."""
MOST_RAW: Final = 64 << 20
"""Bytes of a raw file; all are held in memory while they are sent."""
RAW_PARAMETERS: Final = frozenset({"project", "path", "path_bytes", "rev"})
RAW_HEADERS: Final = {
    **HEADERS,
    "content-security-policy": "default-src 'none'; sandbox",
    "cache-control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Sessions:
    """Makes sessions from a URL's query, like ``?project=P&toolsets=A,B&read_only=1``; see PARAMETERS."""

    host: Host
    may_write: bool

    async def make(self, query: QueryParams) -> Session:
        """Return the session that the URL of a request with a token asks for.

        Raises:
            InvalidParams: no such parameter or toolset, or several projects.
            NotFound: no such project.

        """
        unknown = query.keys() - set(PARAMETERS)
        if unknown:  # ?readonly=1 must not be a connection that may write
            field = min(unknown)[:100]
            raise InvalidParams(
                f"no such parameter of an address: {field}",
                field=field,
                allowed=list(PARAMETERS),
            )
        collections = [
            *query.getlist("collection"),
            *",".join(query.getlist("collections")).split(","),
        ]
        projects = set(query.getlist("project"))
        if len(projects) > 1:
            raise InvalidParams("project: named more than once", field="project")
        names = [name for name in collections if name] or projects
        path_map = read_path_map(query.getlist("path_map"))
        if path_map is not None:
            names = [path_map.to_ours(name) for name in names]
        roots: list[str] = []
        for name in names:
            project = await self.host.workspace(Call(self.host, Session()), name)
            roots.append(str(project.path))
        session = Session(
            projects=tuple(roots),
            collections=tuple(roots),
            capabilities=Capabilities(writes="always" if self.may_write else "never"),
            read_only=is_on(query, "read_only"),
            has_token=True,
            path_map=path_map,
            wire="http",
        )
        client = client_of(session)
        client.tools = choose_tools(",".join(query.getlist("toolsets")).split(","))
        client.structured = is_on(query, "structured")
        return session


def is_on(query: QueryParams, switch: str) -> bool:
    """Return whether a switch in a URL's query is on."""
    return any(value.lower() not in NO for value in query.getlist(switch))


class Caller:
    """The client's end of one HTTP request: nothing can be sent to it before the answer."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def notify(self, _method: str, _params: Any) -> bool:
        """Drop a notification: it cannot be sent."""
        return False

    async def request(self, method: str, _params: Any) -> Any:
        """Refuse: a client over HTTP cannot be sent requests."""
        raise Unavailable(
            f"over HTTP a client cannot be sent requests: {method}",
            reason="client_refused",
        )

    def follow(self, _key: str, _work: Callable[[], Awaitable[None]]) -> bool:
        """Refuse: there is no connection to send notifications on."""
        return False

    def unfollow(self, _key: str) -> bool:
        """Return False: nothing can be followed."""
        return False


class Routes:
    """All routes except ``/mcp``."""

    def __init__(self, dispatcher: Dispatcher, sessions: Sessions) -> None:
        self._dispatcher = dispatcher
        self._sessions = sessions
        self._documents = Documents(dispatcher.registry)

    def all(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/rpc", self._answer_rpc, methods=["POST"]),
            Route("/call/{method}", self._call, methods=["POST"]),
            *(Route(path, self._call, methods=["POST"]) for path in SEARCHES),
            Route("/raw", self._send_raw, methods=["GET"]),
            Route("/healthz", self._answer_health),
            *self._documents.routes(),
        ]

    async def _answer_rpc(self, request: Request) -> Response:
        try:
            message = await self._dispatcher.reader.read(await request.body())
            caller = Caller(await self._make_session(request, request.query_params))
        except ClientDisconnect:
            return _json(error_line(None, _body_too_long()), TOO_LARGE)
        except FlashgrepError as error:
            return _json(error_line(None, error))
        answers: list[bytes] = []

        async def cancel_when_gone() -> None:
            """Cancel the calls of a client that disconnects, as a page does at the next keystroke."""
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_when_gone)
            # One after the other, since a batch's answers have an order; other requests
            # run concurrently.
            for item in message.items:
                if isinstance(item, InvalidItem):
                    answers.append(error_line(item.id, item.error))
                elif not isinstance(item, Reply):
                    answer = await self._dispatcher.answer(caller, Pending(item))
                    if answer is not None:
                        answers.append(answer)
            tasks.cancel_scope.cancel()
        if not answers:
            return Response(status_code=NO_CONTENT)
        return _json(
            b"[" + b",".join(answers) + b"]" if message.is_batch else answers[0]
        )

    async def _make_session(self, request: Request, query: QueryParams) -> Session:
        """Return the session of a request; read-only for a browser on our page, whatever the URL says."""
        if request.scope[VISITOR]:
            return Session(
                capabilities=Capabilities(writes="never", only_reads=True),
                read_only=True,
                wire="http",
            )
        return await self._sessions.make(query)

    async def _call(self, request: Request) -> Response:
        name = SEARCHES.get(request.url.path) or request.path_params["method"]
        if request.url.path in SEARCHES and name not in self._dispatcher.registry:
            missing = MethodNotFound(
                f"not implemented yet: {name}", reason="not_implemented", method=name
            )
            return answer_error(missing, NOT_IMPLEMENTED)
        try:
            params = await self._dispatcher.reader.read_params(
                name, await request.body()
            )
            if not isinstance(params, dict):
                raise InvalidParams("the body must be an object")
            session = await self._make_session(request, request.query_params)
            return _json(encode(await self._dispatcher.call(session, name, params)))
        except ClientDisconnect:
            return answer_error(_body_too_long(), TOO_LARGE)
        except FlashgrepError as error:
            return answer_error(error)

    async def _send_raw(self, request: Request) -> Response:
        # The session is not bound: here ``project`` is a parameter of the file.
        session = await self._make_session(request, QueryParams())
        try:
            return await send_raw(self._sessions.host, session, request.query_params)
        except FlashgrepError as error:
            return answer_error(error)

    async def answer_fault(self, request: Request, _error: Exception) -> Response:
        """Answer an internal error with an id; the error itself is logged under it."""
        internal = FlashgrepError("internal error", id=secrets.token_hex(4))
        noted = {"path": request.url.path, "id": internal.data["id"]}
        self._dispatcher.log.exception("request failed", **noted)  # noqa: LOG004 - Starlette calls us in its handler
        return answer_error(internal, 500)

    async def _answer_health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})


def _body_too_long() -> TooLarge:
    """Return the error for a body that the guard cut off; a client that has disconnected will not read it."""
    return TooLarge("the body is too long", guidance="send the request in parts")


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def answer_error(error: FlashgrepError, status: int = 0) -> Response:
    """Return the response for an error, with the status of its code unless another is given."""
    return _json(
        encode({"error": error.to_object()}), status or STATUS.get(error.code, 500)
    )


async def send_raw(host: Host, session: Session, query: QueryParams) -> Response:
    """Return a file of a project, at a revision if one is given, as the URL's query says.

    Raises:
        FlashgrepError: as ``read_code``; TooLarge.

    """
    unknown = sorted(set(query) - RAW_PARAMETERS)
    if unknown:
        raise InvalidParams(
            f"no such parameter of an address: {unknown[0]}",
            allowed=sorted(RAW_PARAMETERS),
        )
    path = path_from_json(query.get("path"), query.get("path_bytes"))
    call = Call(host, session)
    project = await host.workspace(call, query.get("project"))
    view = await view_of(call, project, query.get("rev"))
    data = await view.read(path, MOST_RAW)
    name = quote(path_to_text(path).rpartition("/")[2], errors="replace")
    headers = {**RAW_HEADERS, "content-disposition": f"inline; filename*=UTF-8''{name}"}
    # Never as HTML: a hostile repository's page would run with our origin.
    return Response(data, headers=headers, media_type="text/plain")
