"""A proxy for clients of streamable HTTP without a token, to a server's address or to a process.

Used by ``scripts/conformance``; for tests only, one client at a time on 127.0.0.1.
"""

import http.client
import json
import queue
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from scripts.tools.pipes import pipes_of

SECONDS = 30
OWN = frozenset({"host", "connection", "content-length", "transfer-encoding"})


class Proxy(BaseHTTPRequestHandler):
    """Answers POST by ``answer_post``; other methods are not allowed, since there is no stream to listen to."""

    def do_POST(self) -> None:
        """Answer a message."""
        self.send_answer(
            *self.answer_post(
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
            )
        )

    def do_GET(self) -> None:
        """Refuse."""
        self.send_answer(405, {"Allow": "POST"}, b"")

    do_DELETE = do_GET  # noqa: N815 - the base class finds methods by these names

    def answer_post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body."""
        raise NotImplementedError

    def send_answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def proxy_to_address(url: str, token: str) -> Iterator[str]:
    """Forward requests to an address with the token; all other headers are forwarded unchanged."""
    target = urlsplit(url)

    class ToAddress(Proxy):
        def answer_post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in OWN
            }
            ours = (
                f"localhost:{self.server.server_port}",  # type: ignore[attr-defined]
                f"127.0.0.1:{self.server.server_port}",  # type: ignore[attr-defined]
            )
            asked = self.headers.get("Host", "")
            headers |= {
                "Authorization": f"Bearer {token}",
                "Host": target.netloc if asked in ours else asked,
            }
            if headers.get("Origin") in {f"http://{name}" for name in ours}:
                headers["Origin"] = f"http://{target.netloc}"
            connection = http.client.HTTPConnection(
                target.hostname or "", target.port, timeout=SECONDS
            )
            try:
                connection.request(
                    "POST", f"{target.path}?{target.query}", body, headers
                )
                answer = connection.getresponse()
                told = {
                    name: value
                    for name, value in answer.getheaders()
                    if name.lower() not in OWN
                }
                return answer.status, told, answer.read()
            finally:
                connection.close()

    with _serve(ToAddress) as here:
        yield here


@contextmanager
def proxy_to_process(command: Sequence[str], environ: dict[str, str]) -> Iterator[str]:
    """Forward messages to a process as lines, and return its answers; its notifications are dropped."""
    waiting: dict[Any, queue.Queue[bytes]] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    ) as process:
        given, told = pipes_of(process)

        class ToProcess(Proxy):
            def answer_post(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
                message = json.loads(body)
                answers: queue.Queue[bytes] = queue.Queue()
                asked = message.get("id") if "method" in message else None
                if asked is not None:
                    waiting[asked] = answers
                given.write(json.dumps(message).encode() + b"\n")
                given.flush()
                if asked is None:
                    return 202, {}, b""
                return (
                    200,
                    {"Content-Type": "application/json"},
                    answers.get(timeout=SECONDS),
                )

        def route() -> None:
            for line in told:
                answer = json.loads(line)
                if "method" not in answer and answer.get("id") in waiting:
                    waiting.pop(answer["id"]).put(line)

        reader = Thread(target=route, daemon=True)
        reader.start()
        try:
            with _serve(ToProcess) as here:
                yield here
        finally:
            given.close()
            reader.join(SECONDS)


@contextmanager
def _serve(proxy: type[Proxy]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), proxy)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
