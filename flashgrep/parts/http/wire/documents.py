"""The documents about the methods: OpenAPI, and a page for people. Anybody may ask for them."""

import html
import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from flashgrep import __version__
from flashgrep.base.registry import Handler, Registry
from flashgrep.parts.http.site import Document, make_document, send_document

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
"""HTTP statuses of our error codes; all others are 500."""
PARAMETERS: Final = (
    "project",
    "collection",
    "collections",
    "toolsets",
    "read_only",
    "structured",
    "path_map",
)


class Documents:
    """Sends the documents; each is built once, in a thread, when it is first asked for: that takes 0.1 s."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._made: dict[str, Document] = {}
        self._making = anyio.Lock()

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/openapi.json", self._send_openapi),
            Route("/docs", self._send_page),
        ]

    async def _send_openapi(self, request: Request) -> Response:
        return send_document(await self._find("openapi", make_openapi), request)

    async def _send_page(self, request: Request) -> Response:
        return send_document(await self._find("page", make_page), request)

    async def _find(
        self, name: str, make: Callable[[Sequence[Handler]], Document]
    ) -> Document:
        """Return a document; whoever asks while it is built waits for that one."""
        async with self._making:
            if name not in self._made:
                self._made[name] = await run_sync(make, list(self._registry))
        return self._made[name]


def make_openapi(handlers: Sequence[Handler]) -> Document:
    """Return the OpenAPI document as it is sent."""
    return make_document(
        json.dumps(openapi(handlers), separators=(",", ":")).encode(),
        "application/json",
    )


def make_page(handlers: Sequence[Handler]) -> Document:
    """Return the methods as a page for people, without scripts or external resources."""
    rows = "".join(
        f"<section><h2>POST /call/{html.escape(handler.name)}</h2><p>{html.escape(handler.doc)}</p>"
        f"<pre>{html.escape(json.dumps(handler.params_schema()['properties'], indent=1))}</pre></section>"
        for handler in handlers
    )
    head = "<!doctype html><meta charset=utf-8><title>flashgrep</title>"
    links = "<p><a href=/openapi.json>OpenAPI</a></p>"
    return make_document(
        f"{head}<h1>flashgrep {__version__}</h1>{links}{rows}".encode(), "text/html"
    )


def openapi(handlers: Sequence[Handler]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the HTTP wire."""
    query = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in PARAMETERS
    ]
    statuses = sorted({*STATUS.values(), 401, 415, 500})
    failures = {str(status): {"description": "the error object"} for status in statuses}

    def body(schema: dict[str, Any], name: str) -> dict[str, Any]:
        # A schema with definitions gets its own URI, so that its references resolve
        # inside it.
        if "$defs" in schema:
            alone = {"$id": f"urn:flashgrep:{name}", **schema}
        else:
            alone = schema
        return {"content": {"application/json": {"schema": alone}}}

    def post(
        name: str, summary: str, params: dict[str, Any], result: dict[str, Any]
    ) -> dict[str, Any]:
        operation = {
            "operationId": name,
            "summary": summary,
            "parameters": query,
            "requestBody": body(params, f"{name}:params"),
            "responses": {
                "200": {"description": "the result", **body(result, f"{name}:result")},
                **failures,
            },
        }
        return {"post": operation}

    paths: dict[str, Any] = {}
    by_name = {handler.name: handler for handler in handlers}
    operations = {
        f"/call/{name}": (f"call_{name}", handler) for name, handler in by_name.items()
    }
    operations |= {
        path: (name, by_name[name])
        for path, name in SEARCHES.items()
        if name in by_name
    }
    for path, (name, handler) in operations.items():
        paths[path] = post(
            name, handler.summary, handler.params_schema(), handler.result_schema()
        )
    paths["/rpc"] = post("rpc", "JSON-RPC 2.0, batches included", {}, {})
    paths["/healthz"] = {
        "get": {
            "operationId": "healthz",
            "security": [],
            "responses": {"200": {"description": "up"}},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "flashgrep", "version": __version__},
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
        },
        "paths": paths,
    }
