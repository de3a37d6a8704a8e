"""Plain HTTP: a route for each method, JSON-RPC in a body, health, and what describes them."""

import html
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from flashgrep import __version__
from flashgrep.errors import FlashgrepError, InvalidParams, MethodNotFound, TooLarge, Unavailable
from flashgrep.mcp.http.sessions import PARAMETERS, Sessions
from flashgrep.registry import Handler, Session
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import Faulty, Item, JsonId, Reply, encode, error_line

SEARCHES: Final = {
    "/search": "search_code_semantic",
    "/search/fulltext": "search_code_fulltext",
    "/search/payload": "search_code_by_payload",
}
STATUS: Final = {
    -32700: 400,
    -32600: 400,
    -32602: 400,
    -32601: 404,
    -32001: 404,
    -32002: 409,
    -32003: 413,
    -32004: 504,
    -32005: 503,
    -32000: 503,
    -32006: 403,
}
"""HTTP statuses of our codes; all others are 500."""
NO_CONTENT: Final = 204
TOO_LARGE: Final = 413
NOT_IMPLEMENTED: Final = 501


class Caller:
    """The client's end of one HTTP request: nothing can be sent to it before the answer."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def notify(self, _method: str, _params: Any) -> bool:
        """Drop a notification: there is no way to send it."""
        return False

    async def request(self, method: str, _params: Any) -> Any:
        """Refuse to ask."""
        raise Unavailable(f"over HTTP nothing can be asked of a client: {method}", reason="client_refused")

    def cancel(self, _request_id: JsonId, *, silent: bool = False) -> bool:  # noqa: ARG002 - as every peer's
        """Find no call: what an HTTP client wants to cancel it hangs up on."""
        return False


class Routes:
    """Everything but ``/mcp``."""

    def __init__(self, dispatcher: Dispatcher, sessions: Sessions) -> None:
        self._dispatcher = dispatcher
        self._sessions = sessions

    def all(self) -> list[Route]:
        """Return the routes."""
        searches = [Route(path, self._calling(name), methods=["POST"]) for path, name in SEARCHES.items()]
        return [
            Route("/rpc", self._rpc, methods=["POST"]),
            Route("/call/{method}", self._call, methods=["POST"]),
            *searches,
            Route("/healthz", _healthz),
            Route("/openapi.json", self._openapi),
            Route("/docs", self._docs),
        ]

    async def _rpc(self, request: Request) -> Response:
        try:
            message = await self._dispatcher.reader.read(await request.body())
            caller = Caller((await self._sessions.bound(request.query_params)).session)
        except ClientDisconnect:
            return _json(error_line(None, _cut_off()), TOO_LARGE)
        except FlashgrepError as error:
            return _json(error_line(None, error))
        answers = [answer for item in message.items if (answer := await self._answer(caller, item)) is not None]
        if not answers:
            return Response(status_code=NO_CONTENT)
        return _json(b"[" + b",".join(answers) + b"]" if message.is_batch else answers[0])

    async def _answer(self, caller: Caller, item: Item) -> bytes | None:
        if isinstance(item, Faulty):
            return error_line(item.id, item.error)
        if isinstance(item, Reply):
            return None
        return await self._dispatcher.answer(caller, Pending(item))

    async def _call(self, request: Request) -> Response:
        return await self._run(request, request.path_params["method"])

    def _calling(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def call(request: Request) -> Response:
            if name not in self._dispatcher.registry:
                missing = MethodNotFound(f"not implemented yet: {name}", reason="not_implemented", method=name)
                return _failed(missing, NOT_IMPLEMENTED)
            return await self._run(request, name)

        return call

    async def _run(self, request: Request, name: str) -> Response:
        try:
            params = await self._dispatcher.reader.read_params(name, await request.body())
            if not isinstance(params, dict):
                raise InvalidParams("the body must be an object")
            bound = await self._sessions.bound(request.query_params)
            return _json(encode(await self._dispatcher.call(bound.session, name, params)))
        except ClientDisconnect:
            return _failed(_cut_off(), TOO_LARGE)
        except FlashgrepError as error:
            return _failed(error, STATUS.get(error.code, 500))

    async def broken(self, request: Request, _error: Exception) -> Response:
        """Answer for a fault of ours: its text stays in the log, under the id."""
        internal = FlashgrepError("internal error", id=secrets.token_hex(4))
        noted = {"path": request.url.path, "id": internal.data["id"]}
        self._dispatcher.log.exception("request failed", **noted)  # noqa: LOG004 - Starlette calls us in its handler
        return _failed(internal, 500)

    async def _openapi(self, _request: Request) -> Response:
        return JSONResponse(openapi(list(self._dispatcher.registry)))

    async def _docs(self, _request: Request) -> Response:
        return HTMLResponse(page(list(self._dispatcher.registry)))


async def _healthz(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


def openapi(handlers: list[Handler]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the HTTP wire."""
    by_name = {handler.name: handler for handler in handlers}
    paths = {f"/call/{name}": _operation(handler, f"call_{name}") for name, handler in by_name.items()}
    for path, name in SEARCHES.items():
        if name in by_name:
            paths[path] = _operation(by_name[name], name)
    paths["/rpc"] = {"post": _described("rpc", "JSON-RPC 2.0, batches included", {}, {})}
    paths["/healthz"] = {"get": {"operationId": "healthz", "security": [], "responses": {"200": {"description": "up"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "flashgrep", "version": __version__},
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": paths,
    }


def page(handlers: list[Handler]) -> str:
    """Return the methods as a page for people, without a script and without anything from elsewhere."""
    rows = "".join(
        f"<section><h2>POST /call/{html.escape(handler.name)}</h2><p>{html.escape(handler.doc)}</p>"
        f"<pre>{html.escape(json.dumps(handler.params_schema()['properties'], indent=1))}</pre></section>"
        for handler in handlers
    )
    head = "<!doctype html><meta charset=utf-8><title>flashgrep</title>"
    return f"{head}<h1>flashgrep {__version__}</h1><p><a href=/openapi.json>OpenAPI</a></p>{rows}"


def _operation(handler: Handler, operation: str) -> dict[str, Any]:
    return {"post": _described(operation, handler.summary, handler.params_schema(), handler.result_schema())}


def _described(operation: str, summary: str, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    query = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in PARAMETERS]
    failures = {
        str(status): {"description": "the error object"} for status in sorted({*STATUS.values(), 401, 415, 500})
    }
    answered = {
        "description": "the result",
        "content": {"application/json": {"schema": _standing_alone(result, f"{operation}:result")}},
    }
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": query,
        "requestBody": {"content": {"application/json": {"schema": _standing_alone(params, f"{operation}:params")}}},
        "responses": {"200": answered, **failures},
    }


def _standing_alone(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Give a schema with definitions an address of its own, so that its references are found inside it."""
    return {"$id": f"urn:flashgrep:{name}", **schema} if "$defs" in schema else schema


def _cut_off() -> TooLarge:
    """Return the error for a body that the guard gave up; a client that hung up will not read it."""
    return TooLarge("the body is longer than is taken", guidance="send the request in parts")


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def _failed(error: FlashgrepError, status: int) -> Response:
    return _json(encode({"error": error.to_object()}), status)
