"""Admission of requests, before the body is parsed.

A page in a browser can send requests here and, by DNS rebinding, even read the answers. So Host, and Origin if present,
must be ours with our port, the body must be declared as JSON, and a token is required.
"""

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, Final

import anyio

from flashgrep.base.scheduler import FLOW
from flashgrep.parts.http.site import (
    COOKIE,
    KEY_HEADER,
    VISITED,
    Visitors,
    is_open,
    is_page,
)

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES: Final = ("127.0.0.1", "localhost")
JUDGED_BY: Final = frozenset(
    {"host", "origin", "sec-fetch-site", "authorization", "content-type", KEY_HEADER}
)
HEALTH: Final = "/healthz"
OPEN_PATHS: Final = frozenset({HEALTH, "/docs", "/openapi.json"})
"""Paths that reveal nothing about anybody's code."""
VISITOR: Final = "flashgrep.visitor"
"""Set in the scope of requests from a browser on our page, known by its cookie and key: they may only read."""
ADMITTED: Final = "flashgrep.admitted"
"""In the scope: called with ``is_known`` before a request is answered; it returns whether that may be done in full."""
MOST_DRAINED: Final = 64 * 1024
DRAIN_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is rejected."""

    status: int
    reason: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


TOO_MANY: Final = Refusal(
    429,
    "too_many_requests",
    "too many requests without a token; try again in a second",
    ((b"retry-after", b"1"),),
)
FOREIGN_ORIGIN: Final = Refusal(
    403, "foreign_origin", "requests from this origin are refused"
)


@dataclass(slots=True)
class Guard:
    """Admits requests; ``token`` returns the current token; None: none is required."""

    app: App
    port: int
    token: Callable[[], str] | None
    max_body: int
    seen: Callable[[], None]
    """Called for every admitted request, so that the daemon does not count as idle."""
    visitors: Visitors = field(default_factory=Visitors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ASGI event."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[str, str] = {}
        is_ambiguous = False
        for raw_name, value in scope["headers"]:
            name = raw_name.decode("latin-1").lower()
            # Two Host or Origin headers: servers and proxies disagree on which one
            # counts.
            is_ambiguous |= name in headers and name in JUDGED_BY
            headers[name] = value.decode("latin-1")
        cookies = (
            pair.strip().partition("=") for pair in headers.get("cookie", "").split(";")
        )
        name = COOKIE.format(port=self.port)
        key = headers.get(KEY_HEADER, "")
        is_visitor = any(
            self.visitors.is_known(value, key)
            for cookie, _, value in cookies
            if cookie == name
        )
        has_token = self._has_token(headers)
        scope[VISITOR] = is_visitor and not has_token
        is_known = is_visitor or has_token
        if scope[ADMITTED](is_known=is_known):
            refusal = self._judge(scope, headers, is_ambiguous=is_ambiguous)
        else:
            refusal = TOO_MANY
        if refusal is not None:
            await refuse(refusal, receive, send)
            return
        self.seen()
        FLOW.set(("http", *scope["client"]))
        added = [date_header()]
        if not is_known:  # anonymous requests do not keep connections open
            added.append((b"connection", b"close"))
        await self.app(
            scope, receive_at_most(receive, self.max_body), send_with(send, added)
        )

    def _judge(
        self, scope: Scope, headers: Mapping[str, str], *, is_ambiguous: bool
    ) -> Refusal | None:
        # DNS rebinding: a page's name may resolve to us, but its Host header still has
        # that name.
        if is_ambiguous or headers.get("host") not in {
            f"{name}:{self.port}" for name in NAMES
        }:
            return Refusal(421, "foreign_host", "unknown Host header")
        origin = headers.get("origin")
        if origin is not None and origin not in {
            f"http://{name}:{self.port}" for name in NAMES
        }:
            return FOREIGN_ORIGIN
        if is_cross_site(scope, headers):
            return FOREIGN_ORIGIN
        if (refusal := judge_type(scope, headers)) is not None:
            return refusal
        path = scope["path"]
        if scope[VISITOR]:
            is_let_in = path in VISITED
        else:
            is_let_in = self._has_token(headers)
        if not (is_let_in or path in OPEN_PATHS or is_open(path)):
            message = "a bearer token is required; it is in the file `token` of flashgrep's state folder"
            return Refusal(
                401, "auth_required", message, ((b"www-authenticate", b"Bearer"),)
            )
        return judge_size(headers, self.max_body)

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        if self.token is None:
            return True
        token = read_bearer(headers)
        return bool(token) and hmac.compare_digest(
            token.encode(), self.token().encode()
        )


def is_cross_site(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Return whether a page of another site caused a request, by an image or a frame of ours for instance.

    Browsers say so in headers that no page can change, since such a request has our Host and often no Origin. Other
    programs do not send them. A link from elsewhere may open our page in a window.
    """
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return False
    is_visit = (
        headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    return not (is_visit and scope["method"] == "GET" and is_page(scope["path"]))


def judge_type(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    """Return why a body's type is refused; None: it is not."""
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and content_type != "application/json":
        return Refusal(415, "not_json", "the body must be application/json")
    return None


def judge_size(headers: Mapping[str, str], max_body: int) -> Refusal | None:
    """Return why a body of the declared length is refused; None: it is not."""
    declared = headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > max_body:
        return Refusal(
            413, "payload_too_large", f"at most {max_body} bytes are accepted"
        )
    return None


def read_bearer(headers: Mapping[str, str]) -> str:
    """Return the request's bearer token, or ""."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    return ""


def receive_at_most(receive: Receive, max_body: int) -> Receive:
    """Return a ``receive`` that reports a disconnect if the body exceeds ``max_body``."""
    left = max_body

    async def receive_rest() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        # Declared lengths have been checked; this is for chunked bodies, which declare
        # none.
        if left >= 0:
            return message
        return {"type": "http.disconnect"}

    return receive_rest


def send_with(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    """Return a ``send`` that adds headers to the answer's."""

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return send_more


def date_header() -> tuple[bytes, bytes]:
    """Return the header that every answer of a server with a clock must have (RFC 9110, 6.6.1)."""
    return (b"date", formatdate(usegmt=True).encode())


async def refuse(refusal: Refusal, receive: Receive, send: Send) -> None:
    """Answer a rejected request."""
    # Read a small body first: closing with unread bytes resets the connection, and the
    # answer would be lost.
    room = MOST_DRAINED
    with anyio.move_on_after(DRAIN_SECONDS):
        while room > 0:
            message = await receive()
            room -= len(message.get("body", b""))
            if not message.get("more_body", False):
                break
    error = {
        "code": -32006,
        "message": refusal.message,
        "data": {"reason": refusal.reason},
    }
    headers = [
        (b"content-type", b"application/json"),
        (b"connection", b"close"),
        *refusal.headers,
        date_header(),
    ]
    await send(
        {"type": "http.response.start", "status": refusal.status, "headers": headers}
    )
    await send(
        {"type": "http.response.body", "body": json.dumps({"error": error}).encode()}
    )
