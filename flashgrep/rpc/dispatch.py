"""Requests to methods: rights, parameters, deadline and cancellation of each call, and what becomes of its errors."""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import BaseModel

from flashgrep.errors import Cancelled, DeadlineExceeded, FlashgrepError, Forbidden, InvalidParams
from flashgrep.registry import Call, Handler, Progress, Registry, Session
from flashgrep.rpc.codec import encode
from flashgrep.rpc.context import Extension, Log, Peer, RequestContext
from flashgrep.rpc.core import Method, Outcome, as_method, failed, respond, succeeded
from flashgrep.rpc.intake import Intake
from flashgrep.rpc.limits import Limits
from flashgrep.rpc.message import Params, Request, error_line
from flashgrep.rpc.openings import Openings
from flashgrep.rpc.progress import ProgressReporter

OPEN_METHODS = frozenset({"auth"})
"""What a connection may call before it has shown the token."""
WIRE_PARAMS = frozenset({"_meta", "progress_token"})
"""Parameters that are the wire's, not the method's."""
CARRIERS = {"tools/call": "name"}
"""Methods that call another, and the parameter that names it."""
COMMAND_LINE = "$/cli"
"""A whole command line: it may be one that writes."""


@dataclass(slots=True, eq=False)
class Pending:
    """A call between its arrival and its answer."""

    request: Request
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancelled: bool = False
    silent: bool = False
    """Whether a cancelled call goes unanswered, as the Model Context Protocol has it."""

    def cancel(self, *, silent: bool) -> None:
        """End the call at its next wait, or before it starts."""
        self.cancelled = True
        self.silent = silent
        self.scope.cancel()


class Dispatcher:
    """Answers requests by the methods of a registry, and by extensions for names outside it."""

    def __init__(
        self,
        registry: Registry,
        host: Any,
        *,
        log: Log,
        limits: Limits | None = None,
        extensions: Mapping[str, Extension] | None = None,
        control: Mapping[str, Extension] | None = None,
    ) -> None:
        """Make one; ``control`` holds the extensions that only a connection with that capability may call."""
        self.registry = registry
        self.limits = limits or Limits()
        self.log = log
        self.openings = Openings()
        self.intake = Intake(self.limits, self._writes)
        self.running = 0
        """Calls in flight on all wires."""
        self._host = host
        self._control = frozenset(control or {})
        self._extensions = {**(extensions or {}), **(control or {})}
        taken = self._extensions.keys() & set(registry.names())
        if taken:
            raise ValueError(f"method name taken twice: {', '.join(sorted(taken))}")
        names = [*registry.names(), *self._extensions]
        self._methods: dict[str, Method] = dict.fromkeys(names, as_method(self._outcome))

    async def call(self, session: Session, name: str, params: Params, *, progress: Progress | None = None) -> Any:
        """Call a registered method from within the process; the result is JSON-ready.

        Raises:
            FlashgrepError: whatever goes wrong; what has no name of ours comes as the internal error.

        """
        call = self._call(session, None, progress)
        pending = Pending(Request(name, params, None, wants_answer=True, progress_token=None))
        return await self._bounded(pending, lambda: self._run(call, name, params))

    async def answer(self, peer: Peer, pending: Pending) -> bytes | None:
        """Run one request and return its answer as JSON, None where none is wanted."""
        request = pending.request
        if not peer.session.authenticated and request.method not in OPEN_METHODS:
            return error_line(request.id, _unknown_caller()) if request.wants_answer else None
        token = request.progress_token
        reporter = None if token is None else ProgressReporter(token, peer.notify)
        call = self._call(peer.session, request, reporter)
        context = RequestContext(peer, request, call, self._run)
        response = await respond(self._methods, (context, pending), request)
        if reporter is not None:
            reporter.end()
        if not request.wants_answer or pending.silent:
            return None
        return self._encoded(request, response)

    async def shutdown(self, grace: float) -> None:
        """Stop listening and reading, give the calls in flight ``grace`` seconds to be answered, then close all."""
        await self.openings.close(grace)

    def _writes(self, name: Any, params: Any) -> bool:
        """Tell whether a request may carry the text of a file."""
        if name in CARRIERS and isinstance(params, dict):
            name = params.get(CARRIERS[name])
        return name == COMMAND_LINE or (
            isinstance(name, str) and name in self.registry and self.registry.get(name).writes
        )

    def _call(self, session: Session, request: Request | None, progress: Progress | None) -> Call[Any]:
        call = Call(self._host, session, deadline=time.monotonic() + self.limits.call_seconds)
        if progress is not None:
            call.progress = progress
        if request is not None and request.wants_answer:
            call.request_id = str(request.id)
        return call

    async def _outcome(self, job: tuple[RequestContext, Pending]) -> Outcome:
        context, pending = job
        name, params = pending.request.method, pending.request.params
        extension = self._extensions.get(name)
        try:
            if name in self._control and not context.session.capabilities.control:
                raise _not_on_control(name)
            if extension is None:
                result = await self._bounded(pending, lambda: self._run(context.call, name, params))
            else:
                result = await self._bounded(pending, lambda: extension(context, params))
        except FlashgrepError as error:
            return failed(error)
        return succeeded(result)

    async def _run(self, call: Call[Any], name: str, params: Params) -> Any:
        handler = self.registry.get(name)
        if handler.writes and not call.session.may_write:
            raise _may_not_write(call.session, name)
        started, code = time.perf_counter(), 0
        try:
            return await handler.call(call, _by_name(handler, params))
        except FlashgrepError as error:
            code = error.code
            raise
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self.log.debug("call", method=name, wire=call.session.wire, took_ms=took, code=code)

    async def _bounded(self, pending: Pending, run: Callable[[], Awaitable[Any]]) -> Any:
        pending.scope.deadline = anyio.current_time() + self.limits.call_seconds
        if not pending.cancelled:
            self.running += 1
            try:
                with pending.scope:
                    result = await run()
                    return result.model_dump(mode="json") if isinstance(result, BaseModel) else result
            except FlashgrepError:
                raise
            except Exception:
                internal = _internal_error()
                self.log.exception("call failed", method=pending.request.method, id=internal.data["id"])
                raise internal from None
            finally:
                self.running -= 1
        if pending.cancelled:
            raise Cancelled("the call was cancelled", method=pending.request.method)
        raise DeadlineExceeded("the call ran out of time", limit_seconds=self.limits.call_seconds)

    def _encoded(self, request: Request, response: dict[str, Any]) -> bytes:
        try:
            return encode(response)
        except (TypeError, ValueError, RecursionError):
            internal = _internal_error()
            self.log.exception("result has no JSON form", method=request.method, id=internal.data["id"])
            return error_line(request.id, internal)


def _internal_error() -> FlashgrepError:
    """Return the error for what has no name: its text stays in the log, under the id."""
    return FlashgrepError("internal error", id=secrets.token_hex(4))


def _unknown_caller() -> Forbidden:
    return Forbidden("this connection has to show the token first", reason="auth_required", suggestion="call auth")


def _not_on_control(name: str) -> Forbidden:
    message = f"{name} is answered on the daemon's control socket alone"
    return Forbidden(message, reason="control_only", suggestion="run the fgrep command that does it")


def _may_not_write(session: Session, name: str) -> Forbidden:
    if session.lacks_token:
        message = f"{name} writes, and over TCP that needs the token"
        return Forbidden(message, reason="auth_required", suggestion="call auth")
    return Forbidden(f"{name} writes, and this connection may only read", reason="read_only")


def _by_name(handler: Handler, params: Params) -> dict[str, Any]:
    if isinstance(params, dict):
        if WIRE_PARAMS.isdisjoint(params):
            return params
        return {key: value for key, value in params.items() if key not in WIRE_PARAMS}
    fields = [field.alias or name for name, field in handler.params.model_fields.items()]
    if len(params) > len(fields):
        message = f"{handler.name}: {len(params)} parameters by position, at most {len(fields)} allowed"
        raise InvalidParams(message, allowed=fields)
    return dict(zip(fields, params, strict=False))
