"""The page for browsers on a team's server: how one signs in and out, and files as they are."""

import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flashgrep.errors import FlashgrepError, Forbidden
from flashgrep.mcp.http.routes import STATUS
from flashgrep.team.catalogue import TeamCatalogue
from flashgrep.team.guard import ASKING, SIGN_IN, SIGN_OUT, AccessRules, hash_browser, hash_secret
from flashgrep.web.site import HEADERS

NO_STORE: Final = {**HEADERS, "cache-control": "no-store"}
MOST_TOKEN: Final = 4096


class SignIn:
    """Signs browsers in and out: a token that is shown once becomes a cookie and a key, which end by themselves."""

    def __init__(self, catalogue: TeamCatalogue, rules: AccessRules) -> None:
        self._catalogue = catalogue
        self._rules = rules

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(SIGN_IN, self._sign_in, methods=["POST"]),
            Route(SIGN_OUT, self._sign_out, methods=["POST"]),
        ]

    async def _sign_in(self, request: Request) -> Response:
        """Take a token; give the cookie, and in the answer the key."""
        try:
            given = await request.json()
            token = given["token"] if set(given) == {"token"} else None
        except (ValueError, TypeError, KeyError):
            token = None
        if not isinstance(token, str) or not 0 < len(token) <= MOST_TOKEN:
            return JSONResponse({"error": {"message": 'send {"token": …}'}}, 400, NO_STORE)
        cookie, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)

        def sign_in() -> str:
            return self._catalogue.sign_in(hash_secret(token), hash_browser(cookie, key))

        async def answer() -> Response:
            return JSONResponse({"key": key, "subject": await anyio.to_thread.run_sync(sign_in)}, headers=NO_STORE)

        response = await _or_error(answer)
        if response.status_code == HTTPStatus.OK:
            is_secure = self._rules.origins[0].startswith("https:")
            name = self._rules.cookie
            response.set_cookie(name, cookie, path="/", httponly=True, samesite="strict", secure=is_secure)
        return response

    async def _sign_out(self, _request: Request) -> Response:
        """Have the store forget the browser that asks."""

        async def answer() -> Response:
            await anyio.to_thread.run_sync(self._catalogue.sign_out, ASKING.get())
            return JSONResponse({}, headers=NO_STORE)

        response = await _or_error(answer)
        response.delete_cookie(self._rules.cookie, path="/", httponly=True, samesite="strict")
        return response


async def _or_error(answer: Callable[[], Awaitable[Response]]) -> Response:
    """Return an answer, or the error that it raised as one."""
    try:
        return await answer()
    except FlashgrepError as error:
        status = 401 if isinstance(error, Forbidden) else STATUS.get(error.code, 500)
        return JSONResponse({"error": error.to_object()}, status, NO_STORE)
