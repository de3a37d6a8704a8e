"""A real HTTP server with the formats of embedding, reranking and chat APIs, and faults on demand."""

import json
import math
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

DIMS = 6


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drip: float = 0
    """Seconds between single bytes of the body; below 0: never answer."""


Answer = Callable[[Request], Reply]


class Api:
    """The server: its requests so far, and its next replies; by default it answers correctly."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.next: deque[Reply | Answer] = deque()
        self.models = ["only-embed"]
        self.closing = Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = (
            f"http{'s' if certificate else ''}://127.0.0.1:{self.server.server_port}"
        )
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(
                self.server.socket, server_side=True
            )

    @property
    def texts(self) -> list[list[str]]:
        """The texts of every embedding request."""
        return [
            request.body["input"]
            for request in self.requests
            if request.body and "input" in request.body
        ]

    def answer(self, request: Request) -> Reply:
        reply = self.next.popleft() if self.next else self._well
        return reply if isinstance(reply, Reply) else reply(request)

    def _well(self, request: Request) -> Reply:
        path, body = request.path, request.body
        if path.endswith("/models"):
            return Reply(
                {
                    "object": "list",
                    "data": [{"id": name, "object": "model"} for name in self.models],
                }
            )
        if path.endswith("/api/embed"):
            return Reply(
                {
                    "model": body["model"],
                    "embeddings": [vector(text) for text in body["input"]],
                }
            )
        if path.endswith("/embeddings"):
            return openai_reply(request)
        if path.endswith("/rerank") and "texts" in body:
            return Reply(
                [
                    {"index": n, "score": overlap(body["query"], t)}
                    for n, t in enumerate(body["texts"])
                ]
            )
        if path.endswith("/rerank"):
            return Reply({"results": ranking(body["query"], body["documents"])})
        return Reply(status=404, body={"error": f"no {path}"})


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Api]:
    """Serve until the block ends; over TLS with a certificate."""
    api = Api(certificate)
    thread = Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        api.closing.set()
        api.server.shutdown()
        api.server.server_close()
        thread.join(10)


def vector(text: str, dims: int = DIMS) -> list[float]:
    """Return a vector that depends only on the text, not normalised."""
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:dims]]


def unit(text: str, dims: int = DIMS) -> list[float]:
    """Return ``vector`` at unit length."""
    numbers = vector(text, dims)
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]


def openai_reply(
    request: Request, order: Callable[[list[Any]], list[Any]] = list
) -> Reply:
    dims = (
        request.body.get("dimensions") or request.body.get("output_dimension") or DIMS
    )
    rows = [
        {"object": "embedding", "index": place, "embedding": vector(text, dims)}
        for place, text in enumerate(request.body["input"])
    ]
    return Reply(
        {"object": "list", "data": order(rows), "model": request.body["model"]}
    )


def overlap(query: str, text: str) -> float:
    """Return the share of a query's words that occur in a text."""
    words = set(query.split())
    return len(words & set(text.split())) / len(words)


def ranking(query: str, documents: list[str]) -> list[dict[str, Any]]:
    rows = [
        {"index": place, "relevance_score": overlap(query, text)}
        for place, text in enumerate(documents)
    ]
    return sorted(rows, key=lambda row: -row["relevance_score"])


def _handler(api: Api) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(
                self.command,
                self.path,
                dict(self.headers),
                json.loads(data) if data else None,
            )
            api.requests.append(request)
            with suppress(ConnectionError):
                self._send(api.answer(request))

        do_GET = do_POST  # noqa: N815 - the base class finds methods by these names

        def _send(self, reply: Reply) -> None:
            if reply.drip < 0:
                api.closing.wait(30)
                return
            data = json.dumps(reply.body).encode() if reply.raw is None else reply.raw
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not reply.drip:
                self.wfile.write(data)
                return
            for byte in data:
                self.wfile.write(bytes([byte]))
                if api.closing.wait(reply.drip):
                    return

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
