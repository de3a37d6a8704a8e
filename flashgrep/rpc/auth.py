"""The method that makes a stranger's connection one of ours: it shows the token."""

import hmac
from collections.abc import Callable
from typing import TypedDict

from flashgrep.errors import Forbidden, InvalidParams
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.rpc.message import Params


class AuthResult(TypedDict):
    """What the connection may do from now on."""

    authenticated: bool
    may_write: bool


def auth_extension(token: Callable[[], str]) -> Extension:
    """Return the ``auth`` method; ``token`` is asked at each call. What is read-only stays so."""

    async def auth(context: RequestContext, params: Params) -> AuthResult:
        shown = _shown(params)
        if not hmac.compare_digest(shown.encode("utf-8", "replace"), token().encode()):
            raise Forbidden("wrong token", reason="auth_required")
        session = context.session
        session.authenticated = session.has_token = True
        return {"authenticated": True, "may_write": session.may_write}

    return auth


def _shown(params: Params) -> str:
    shown = params.get("token") if isinstance(params, dict) else next(iter(params), None)
    if not isinstance(shown, str):
        raise InvalidParams("auth: token: a string is required", field="token")
    return shown
