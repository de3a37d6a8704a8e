"""Who may come in: the first thing every request meets, before any of its body is understood.

A page in a browser can send requests here and, by a name it controls, even read the answers. So the host must be one
of ours with our port, an origin, where there is one, too, a body must be declared JSON, and a token must be shown.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Final

import anyio

from flashgrep.scheduler import FLOW

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES: Final = ("127.0.0.1", "localhost")
OPEN_PATHS: Final = frozenset({"/healthz", "/docs", "/openapi.json"})
"""What tells nothing of anybody's code."""
DRAINED: Final = 64 * 1024
DRAIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is turned away."""

    status: int
    reason: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True)
class Guard:
    """Lets through what may come in; ``token`` is asked at each request, None: nobody has to show one."""

    app: App
    port: int
    token: Callable[[], str] | None
    max_body: int
    seen: Callable[[], None]
    """Called for every request let in, so that the daemon does not take itself for idle."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI event."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = self._judge(scope)
        if refusal is not None:
            await _drain(receive)
            await _refuse(refusal, _with(send, _date()))
            return
        self.seen()
        FLOW.set(("http", *scope["client"]))
        headers = _date()
        if not self._knows(_headers(scope)[0]):  # what is open to everybody: nobody keeps a connection by it
            headers.append((b"connection", b"close"))
        await self.app(scope, _Capped(receive, self.max_body), _with(send, headers))

    def _judge(self, scope: Scope) -> Refusal | None:
        headers, twice = _headers(scope)
        if twice or headers.get("host") not in {f"{name}:{self.port}" for name in NAMES}:
            return Refusal(421, "foreign_host", "this is not the host you are looking for")
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{name}:{self.port}" for name in NAMES}:
            return Refusal(403, "foreign_origin", "requests from this origin are refused")
        if scope["method"] == "POST" and not _is_json(headers.get("content-type", "")):
            return Refusal(415, "not_json", "the body must be application/json")
        if not self._knows(headers) and scope["path"] not in OPEN_PATHS:
            message = "a bearer token is required; it is in the file `token` of flashgrep's state folder"
            return Refusal(401, "auth_required", message, ((b"www-authenticate", b"Bearer"),))
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > self.max_body:
            return Refusal(413, "payload_too_large", f"at most {self.max_body} bytes are taken")
        return None

    def _knows(self, headers: Mapping[str, str]) -> bool:
        if self.token is None:
            return True
        kind, _, shown = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), self.token().encode())


class _Capped:
    """Receives until the bound; past it the connection is given up."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            return {"type": "http.disconnect"}
        return message


def _headers(scope: Scope) -> tuple[dict[str, str], bool]:
    """Return the headers, and whether one that we judge by came twice."""
    found: dict[str, str] = {}
    twice = False
    for raw_name, value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        twice = twice or (name in found and name in {"host", "origin", "authorization", "content-type"})
        found[name] = value.decode("latin-1")
    return found, twice


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _date() -> list[tuple[bytes, bytes]]:
    """Return the header that every answer of a server with a clock must have (RFC 9110, 6.6.1)."""
    return [(b"date", formatdate(usegmt=True).encode())]


def _with(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    """Put headers on the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return sending


async def _drain(receive: Receive) -> None:
    """Take a small body in before refusing: closing on unread bytes resets the connection, and the answer is lost."""
    left = DRAINED
    with anyio.move_on_after(DRAIN_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body", False):
                return


async def _refuse(refusal: Refusal, send: Send) -> None:
    told = {"error": {"code": -32006, "message": refusal.message, "data": {"reason": refusal.reason}}}
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})
