"""One request through jsonrpcserver: the method found, run, and its outcome made a response object.

Of the library only the step for one item is used. Its loop over a batch runs each item in a task of its own, outside
our cancel scopes, where a shielded write would be cut in half; its parser and its schema check fail three of the
specification's batch examples; and it puts the text of exceptions on the wire, so none may reach it.
"""

from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Any, TypeAlias, cast

from jsonrpcserver.async_dispatcher import dispatch_request
from jsonrpcserver.codes import ERROR_METHOD_NOT_FOUND
from jsonrpcserver.dispatcher import to_response
from jsonrpcserver.request import Request as CoreRequest
from jsonrpcserver.response import to_serializable_one
from jsonrpcserver.result import Error, Success

from flashgrep.errors import FlashgrepError
from flashgrep.rpc.message import Request

Outcome: TypeAlias = Any
"""A result or an error, in the library's own wrapping (it is not typed)."""
Method: TypeAlias = Callable[..., Awaitable[Outcome]]


_SIGNATURE = Signature([Parameter("context", Parameter.POSITIONAL_ONLY)])


def as_method(run: Method) -> Method:
    """Return ``run`` with its signature noted: the library asks for it at each call, and finding it out is slow."""

    async def method(context: Any, /) -> Outcome:
        return await run(context)

    method.__dict__["__signature__"] = _SIGNATURE
    return method


def succeeded(result: Any) -> Outcome:
    """Wrap a result."""
    return Success(result)


def failed(error: FlashgrepError) -> Outcome:
    """Wrap an error."""
    return Error(**error.to_object())


async def respond(methods: dict[str, Method], context: Any, request: Request) -> dict[str, Any]:
    """Run the request's method with the context as its only argument and return the response object.

    The parameters stay in the context: the method's model checks them, not its signature.
    """
    core = CoreRequest(request.method, [], request.id)
    _, outcome = await dispatch_request(methods, context, core)
    response = cast("dict[str, Any]", to_serializable_one(to_response(core, outcome)))
    error = response.get("error")
    if error is not None and error["code"] == ERROR_METHOD_NOT_FOUND and error["data"] == request.method:
        error["data"] = {"reason": "method_not_found", "method": request.method}
    return response
