"""Authentication of a team's server, before a request is parsed; and sign-in and sign-out of browsers.

There are three ways in: a token (``Authorization: Bearer``); a browser signed in on our page (a cookie, and a key that
only scripts of our origin know, since cookies go to every port of a host); and a proxy that sends its own token and
names the person it has signed in.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flashgrep.base.errors import FlashgrepError, Forbidden
from flashgrep.base.scheduler import FLOW
from flashgrep.parts.http.site import HEADERS, KEY_HEADER, is_open
from flashgrep.parts.http.wire.admission import (
    ADMITTED,
    FOREIGN_ORIGIN,
    HEALTH,
    OPEN_PATHS,
    TOO_MANY,
    VISITOR,
    Receive,
    Refusal,
    Scope,
    Send,
    date_header,
    is_cross_site,
    judge_size,
    judge_type,
    read_bearer,
    receive_at_most,
    refuse,
    send_with,
)
from flashgrep.parts.http.wire.documents import STATUS
from flashgrep.parts.http.wire.protocol import Rate
from flashgrep.parts.team.store_connection import Credentials
from flashgrep.parts.team.team_catalogue import Access, TeamCatalogue

SIGN_IN = "/login"
SIGN_OUT = "/logout"
PROXY_TOKEN: Final = "x-flashgrep-proxy-token"  # noqa: S105 - a header's name
MOST_NAME: Final = 256
"""Characters in the name of a person or a group."""
MOST_GROUPS: Final = 1000
NO_STORE: Final = {**HEADERS, "cache-control": "no-store"}
MOST_TOKEN: Final = 4096
MOST_SIGN_IN: Final = 16 * 1024
"""Bytes of a request that signs in."""
ATTEMPTS_A_SECOND: Final = 10
"""Tokens never seen before that are looked up, in the long run; each takes a thread and a statement."""
ATTEMPTS_AT_ONCE: Final = 100
MOST_PROVEN: Final = 4096
"""Tokens that are remembered to have been right."""
NO_TOKEN: Final = Refusal(
    401, "auth_required", "a token is required", ((b"www-authenticate", b"Bearer"),)
)
CURRENT_ACCESS: ContextVar[Access] = ContextVar("asking")
"""The sender of the current request."""


def _split_groups(header: str) -> tuple[str, ...]:
    return tuple(group.strip() for group in header.split(",") if group.strip())


def _is_name(name: str) -> bool:
    return len(name) <= MOST_NAME and "\0" not in name


@dataclass(frozen=True, slots=True)
class AccessRules:
    """A server's public origins, and the proxy headers it trusts."""

    origins: tuple[str, ...]
    """Our own, like ``https://code.example.org``, the public one first; pages of other origins are refused."""
    person_header: str = ""
    """Header with the person a proxy has signed in; trusted only with the proxy's token. Empty: no proxy."""
    groups_header: str = ""
    """Header with that person's groups, separated by commas."""

    @property
    def hosts(self) -> set[str]:
        """Accepted values of a browser's ``Host`` header."""
        return {origin.partition("://")[2] for origin in self.origins}

    @property
    def cookie(self) -> str:
        """The cookie's name; with TLS it has the ``__Host-`` prefix, so the cookie is never sent without TLS."""
        scheme, _, host = self.origins[0].partition("://")
        if scheme == "https":
            return "__Host-flashgrep"
        return f"flashgrep_team_{host.rpartition(':')[2]}"

    def read_credentials(self, headers: Mapping[str, str]) -> Credentials | None:
        """Return the credentials of a request; None: it has none.

        Raises:
            Forbidden: a proxy sends too many groups, or an invalid name.

        """
        if self.person_header:
            person = headers.get(self.person_header, "")
        else:
            person = ""
        # The header alone proves nothing: anybody can send it.
        if person and (proxy := headers.get(PROXY_TOKEN)):
            groups = _split_groups(headers.get(self.groups_header, ""))
            if len(groups) > MOST_GROUPS or not all(map(_is_name, (person, *groups))):
                raise Forbidden(
                    "too many names, or one that is too long", reason="auth_required"
                )
            return Credentials(hash_secret(proxy), person, groups)
        if token := read_bearer(headers):
            return Credentials(hash_secret(token))
        cookie = ""
        for pair in headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.cookie:
                # The first counts: browsers send the one of the longest path first.
                cookie = value
                break
        key = headers.get(KEY_HEADER, "")
        if cookie and key and headers.get("host") in self.hosts:
            return Credentials(hash_browser(cookie, key))
        return None


def hash_secret(secret: str) -> str:
    """Return the hash of a secret that the store keeps, in hexadecimal digits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hash_browser(cookie: str, key: str) -> str:
    """Return the hash of a browser's two secrets together: neither gives access alone."""
    return hash_secret(f"browser {cookie} {key}")


class Attempts:
    """Bounds how often tokens are guessed: one that was right before is never held up by a crowd of wrong ones."""

    def __init__(self) -> None:
        self._rate = Rate(ATTEMPTS_A_SECOND, ATTEMPTS_AT_ONCE)
        self._proven: OrderedDict[str, None] = OrderedDict()
        """Hashes of tokens, the longest unused first."""

    def may_try(self, token: str) -> bool:
        """Return whether a token, given by its hash, may be looked up now."""
        return token in self._proven or self._rate.take()

    def note(self, token: str, *, is_right: bool) -> None:
        """Remember what the lookup of a token has shown."""
        self._proven.pop(token, None)
        if is_right:
            self._proven[token] = None
            if len(self._proven) > MOST_PROVEN:
                self._proven.popitem(last=False)


@dataclass(slots=True)
class TeamGuard:
    """Authenticates requests before the application sees them."""

    app: Any
    catalogue: TeamCatalogue
    max_body: int
    rules: AccessRules
    attempts: Attempts = field(default_factory=Attempts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI event."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        names = [name.lower() for name, _ in scope["headers"]]
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        judged = {
            "host",
            "origin",
            "sec-fetch-site",
            "authorization",
            "cookie",
            "content-type",
            KEY_HEADER,
            PROXY_TOKEN,
        }
        judged |= {self.rules.person_header, self.rules.groups_header}
        refusal = self.judge(
            scope,
            headers,
            is_ambiguous=any(names.count(header.encode()) > 1 for header in judged),
        )
        path = scope["path"]
        is_known = False
        is_public = path in OPEN_PATHS or path == SIGN_IN or is_open(path)
        if refusal is None and not is_public:
            refusal = await self._authenticate(headers)
            is_known = refusal is None
        if not scope[ADMITTED](is_known=is_known):
            refusal = TOO_MANY
        if refusal is not None:
            await refuse(refusal, receive, send)
            return
        # Turns are scheduled by subject, so one person's flood of questions does not
        # delay others.
        FLOW.set(("team", CURRENT_ACCESS.get().subject if is_known else ""))
        added = [date_header()]
        if not is_known:
            added.append((b"connection", b"close"))
        await self.app(
            {**scope, VISITOR: False},
            receive_at_most(receive, self._find_most(path)),
            send_with(send, added),
        )

    async def _authenticate(self, headers: Mapping[str, str]) -> Refusal | None:
        """Find who sent a request, for ``CURRENT_ACCESS``; return why that is refused, or None."""
        credentials = None
        try:
            credentials = self.rules.read_credentials(headers)
            if credentials is None:
                return NO_TOKEN
            if not self.attempts.may_try(credentials.token):
                return TOO_MANY
            access = await anyio.to_thread.run_sync(
                self.catalogue.find_access, *credentials
            )
        except Forbidden:
            if credentials is not None:
                self.attempts.note(credentials.token, is_right=False)
            return NO_TOKEN
        except FlashgrepError as error:
            return Refusal(503, error.reason or "database_away", error.message)
        self.attempts.note(credentials.token, is_right=True)
        CURRENT_ACCESS.set(access)
        return None

    def _find_most(self, path: str) -> int:
        """Return the most bytes of a request's body."""
        if path == SIGN_IN:
            return MOST_SIGN_IN
        return self.max_body

    def judge(
        self, scope: Scope, headers: Mapping[str, str], *, is_ambiguous: bool
    ) -> Refusal | None:
        """Return why a request is refused regardless of its sender; None: it is not."""
        path = scope["path"]
        if is_ambiguous:
            return Refusal(400, "ambiguous", "an authentication header occurs twice")
        is_foreign = (
            headers.get("origin", self.rules.origins[0]) not in self.rules.origins
        )
        if is_foreign or is_cross_site(scope, headers):
            return FOREIGN_ORIGIN
        if path == SIGN_IN and "origin" not in headers:
            return Refusal(
                403, "foreign_origin", "sign-in is possible only from the page"
            )
        # A page whose name was made to lead here has no token of ours. Programs that
        # have one may use any name of this machine, and checks of health its address.
        has_token = bool(read_bearer(headers)) or PROXY_TOKEN in headers
        is_public = path in {SIGN_IN, SIGN_OUT} or path in OPEN_PATHS or is_open(path)
        if (
            path != HEALTH
            and (is_public or not has_token)
            and headers.get("host") not in self.rules.hosts
        ):
            return Refusal(
                421, "foreign_host", f"the page is at {self.rules.origins[0]}/"
            )
        return judge_type(scope, headers) or judge_size(headers, self._find_most(path))


class SignIn:
    """Signs browsers in and out: exchanges a token for a cookie and a key, which expire."""

    def __init__(
        self, catalogue: TeamCatalogue, rules: AccessRules, attempts: Attempts
    ) -> None:
        self._catalogue = catalogue
        self._rules = rules
        self._attempts = attempts

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(SIGN_IN, self._sign_in, methods=["POST"]),
            Route(SIGN_OUT, self._sign_out, methods=["POST"]),
        ]

    async def _sign_in(self, request: Request) -> Response:
        """Take a token; set the cookie and return the key."""
        try:
            body = await request.json()
            if set(body) == {"token"}:
                token = body["token"]
            else:
                token = None
        except ClientDisconnect:
            return JSONResponse(
                {"error": {"message": "the body is too long"}}, 413, NO_STORE
            )
        except (ValueError, TypeError, KeyError):
            token = None
        if not isinstance(token, str) or not 0 < len(token) <= MOST_TOKEN:
            return JSONResponse(
                {"error": {"message": 'send {"token": …}'}}, 400, NO_STORE
            )
        hashed = hash_secret(token)
        if not self._attempts.may_try(hashed):
            error = {"error": {"message": TOO_MANY.message}}
            return JSONResponse(error, TOO_MANY.status, NO_STORE)
        cookie = secrets.token_urlsafe(32)
        key = secrets.token_urlsafe(32)

        def sign_in() -> str:
            return self._catalogue.sign_in(hashed, hash_browser(cookie, key))

        async def answer() -> Response:
            try:
                subject = await anyio.to_thread.run_sync(sign_in)
            except Forbidden:
                self._attempts.note(hashed, is_right=False)
                raise
            self._attempts.note(hashed, is_right=True)
            # The browser's own token as well: its next request must not wait in the crowd.
            self._attempts.note(hash_browser(cookie, key), is_right=True)
            return JSONResponse({"key": key, "subject": subject}, headers=NO_STORE)

        response = await _answer_or_error(answer)
        if response.status_code == HTTPStatus.OK:
            is_secure = self._rules.origins[0].startswith("https:")
            name = self._rules.cookie
            response.set_cookie(
                name,
                cookie,
                path="/",
                httponly=True,
                samesite="strict",
                secure=is_secure,
            )
        return response

    async def _sign_out(self, _request: Request) -> Response:
        """Delete the browser's token from the store."""

        async def answer() -> Response:
            await anyio.to_thread.run_sync(
                self._catalogue.sign_out, CURRENT_ACCESS.get()
            )
            return JSONResponse({}, headers=NO_STORE)

        response = await _answer_or_error(answer)
        response.delete_cookie(
            self._rules.cookie, path="/", httponly=True, samesite="strict"
        )
        return response


async def _answer_or_error(answer: Callable[[], Awaitable[Response]]) -> Response:
    """Return the answer, or its error as a response."""
    try:
        return await answer()
    except FlashgrepError as error:
        if isinstance(error, Forbidden):
            status = 401
        else:
            status = STATUS.get(error.code, 500)
        return JSONResponse({"error": error.to_object()}, status, NO_STORE)
