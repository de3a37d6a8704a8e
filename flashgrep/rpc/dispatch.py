"""Requests to methods: rights, parameters, deadline and cancellation of each call, and what becomes of its errors.

Only jsonrpcserver's step for a single request is used. Its loop over a batch runs each item in its own task, outside
our cancel scopes, where a shielded write would be cut in half; its parser and schema check fail three of the
specification's batch examples; and it puts the text of exceptions on the wire, so no exception may reach it.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from typing import Any, ClassVar, Protocol, cast

import anyio
from jsonrpcserver.async_dispatcher import dispatch_request
from jsonrpcserver.codes import ERROR_METHOD_NOT_FOUND
from jsonrpcserver.dispatcher import to_response
from jsonrpcserver.request import Request as ServerRequest
from jsonrpcserver.response import to_serializable_one
from jsonrpcserver.result import Error, Success
from pydantic import BaseModel
from rapidfuzz import fuzz, process

from flashgrep.base.errors import (
    Cancelled,
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
)
from flashgrep.base.habits import read_habits
from flashgrep.base.registry import Call, Handler, Progress, Registry, Session
from flashgrep.rpc.context import Extension, Log, Peer, ProgressReporter, RequestContext
from flashgrep.rpc.message import MessageReader, Params, Request, encode, error_line
from flashgrep.rpc.wire import Backlog, Limits

OPEN_METHODS = frozenset({"auth"})
"""Methods that another user's connection may call before it has shown the token."""
WIRE_PARAMS = frozenset({"_meta", "progress_token"})
"""Parameters for the dispatcher, not for the method."""
CARRIERS = {"tools/call": "name"}
"""Methods that call another, and the parameter that names it."""
COMMAND_LINE = "$/cli"
"""Runs a command line, which may write."""
LONGEST_NAME = 60
"""Of a method that is not there, to look for one like it."""
LEAST_LIKE = 60
"""How alike both are, of 100."""
FIRST_PART, PART_GROWTH = 20, 4
"""Parts are pages, each starting where the previous one ended, so they are in order and none is sent twice. The first
is small, since somebody waits for it; each is this many times as large as the previous one, since each has a cost."""
UNSAVED_TEXT = "buffers"
"""Carries the text of a file but does not write one."""


class Closable(Protocol):
    """A connection or a listener, for shutting down."""

    is_listener: ClassVar[bool]

    def stop_reading(self) -> None:
        """Accept nothing more, finish what is in flight, then close."""

    def abort(self) -> None:
        """Close now."""


class OpenConnections:
    """The listeners and connections that are open, so that shutting down can wait for them."""

    def __init__(self) -> None:
        self._open: set[Closable] = set()
        self._closing = False
        self._empty = anyio.Event()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def clients(self) -> int:
        """How many connections are open, listeners apart."""
        return sum(not closable.is_listener for closable in self._open)

    def add(self, opened: Closable) -> None:
        """Register something opened."""
        self._open.add(opened)
        if self._closing:  # accepted just before its listener stopped
            opened.stop_reading()

    def discard(self, closed: Closable) -> None:
        """Unregister something closed."""
        self._open.discard(closed)
        if not self._open:
            self._empty.set()

    async def close(self, grace: float) -> None:
        """Stop all, wait for ``grace`` seconds, then abort the rest."""
        self._closing = True
        for opened in tuple(
            self._open
        ):  # a copy: what is stopped may close and leave the set
            opened.stop_reading()
        with anyio.move_on_after(grace):
            # A new event each time: the set may have become empty and been refilled by
            # a connection accepted meanwhile.
            while self._open:
                self._empty = anyio.Event()
                await self._empty.wait()
        for opened in tuple(self._open):
            opened.abort()


@dataclass(slots=True, eq=False)
class Pending:
    """A call between its arrival and its answer."""

    request: Request
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancelled: bool = False
    silent: bool = False
    """Whether a cancelled call gets no answer, as in the Model Context Protocol."""

    def cancel(self, *, silent: bool) -> None:
        """End the call at its next wait, or before it starts."""
        self.cancelled = True
        self.silent = silent
        self.scope.cancel()


class Method:
    """What jsonrpcserver calls for every name."""

    __signature__: ClassVar = Signature([Parameter("job", Parameter.POSITIONAL_ONLY)])
    """It asks for the signature at each call, which takes 12 µs unless it is made."""

    def __init__(
        self, run: Callable[[RequestContext, Pending], Awaitable[Any]]
    ) -> None:
        self._run = run

    async def __call__(self, job: tuple[RequestContext, Pending], /) -> Any:
        """Run a request in its context."""
        return await self._run(*job)


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
        """``control`` holds the extensions that only a connection with that capability may call."""
        self.registry = registry
        self.limits = limits or Limits()
        self.log = log
        self.open_connections = OpenConnections()
        self.reader = MessageReader(self.limits, self._is_writing)
        self.backlog = Backlog()
        self.running = 0
        """Calls in flight on all wires."""
        self._host = host
        self._control = frozenset(control or {})
        self._extensions = {**(extensions or {}), **(control or {})}
        names = self._extensions.keys() & set(registry.names())
        # An extension would hide a method of the same name, but only from JSON-RPC.
        if names:
            raise ValueError(f"method name taken twice: {', '.join(sorted(names))}")

        method: Callable[..., Awaitable[Any]] = Method(self._run_method)
        self._methods = dict.fromkeys([*registry.names(), *self._extensions], method)

    async def call(
        self,
        session: Session,
        name: str,
        params: Params,
        *,
        progress: Progress | None = None,
        as_text: bool = False,
    ) -> Any:
        """Call a registered method from within the process; the result is JSON-ready.

        ``as_text``: the caller renders it, so budgets apply to the text.

        Raises:
            FlashgrepError: any failure; unnamed ones become the internal error.

        """
        call = self._make_call(session, progress)
        call.as_text = as_text
        pending = Pending(
            Request(name, params, None, wants_answer=True, progress_token=None)
        )
        return await self._run_in_time(
            pending, lambda: self._run_handler(call, name, params)
        )

    async def answer(self, peer: Peer, pending: Pending) -> bytes | None:
        """Run one request and return its answer as JSON, None where none is wanted."""
        request = pending.request
        if not peer.session.authenticated and request.method not in OPEN_METHODS:
            message = "this connection has to show the token first"
            # Unknown methods are refused the same way: without the token nobody learns
            # which methods exist.
            refused = Forbidden(message, reason="auth_required", suggestion="call auth")
            if request.wants_answer:
                return error_line(request.id, refused)
            return None
        token = request.progress_token
        if token is None:
            reporter = None
        else:
            reporter = ProgressReporter(token, peer.notify)
        call = self._make_call(peer.session, reporter)
        context = RequestContext(peer, request, call, self._run_handler)
        # The parameters stay in the context: the method's model validates them, not a
        # signature.
        core = ServerRequest(request.method, [], request.id)
        _, outcome = await dispatch_request(self._methods, (context, pending), core)
        response = cast(
            "dict[str, Any]", to_serializable_one(to_response(core, outcome))
        )
        error = response.get("error")
        if (
            error is not None
            and error["code"] == ERROR_METHOD_NOT_FOUND
            and error["data"] == request.method
        ):
            error["data"] = {
                "reason": "method_not_found",
                "method": request.method,
                "suggestion": self._suggest_method(request.method),
            }
        if reporter is not None:
            reporter.end()  # no progress may come after the answer
        if not request.wants_answer or pending.silent:
            return None
        try:
            return encode(response)
        except (TypeError, ValueError, RecursionError):
            internal = _make_internal_error()
            self.log.exception(
                "result has no JSON form", method=request.method, id=internal.data["id"]
            )
            return error_line(request.id, internal)

    def _suggest_method(self, name: str) -> str:
        """Return what to call in place of a method that there is not."""
        # Of a long name none is near.
        if len(name) <= LONGEST_NAME:
            public = [known for known in self._methods if not known.startswith("$")]
            near = process.extractOne(
                name, public, scorer=fuzz.ratio, score_cutoff=LEAST_LIKE
            )
            if near is not None:
                return f"did you mean {near[0]}?"
        return "skills/reference.md lists the methods"

    async def shutdown(self, grace: float) -> None:
        """Stop listening and reading, give the calls in flight ``grace`` seconds to be answered, then close all."""
        await self.open_connections.close(grace)

    def _is_writing(self, name: Any, params: Any) -> bool:
        """Return whether a request may carry the text of a file, and so be long."""
        # MCP's tools/call is as long as the tool it calls needs.
        if name in CARRIERS and isinstance(params, dict):
            name = params.get(CARRIERS[name])
        return name in {COMMAND_LINE, UNSAVED_TEXT} or (
            isinstance(name, str)
            and name in self.registry
            and self.registry.get(name).writes
        )

    def _make_call(self, session: Session, progress: Progress | None) -> Call[Any]:
        call = Call(
            self._host, session, deadline=time.monotonic() + self.limits.call_seconds
        )
        if progress is not None:
            call.progress = progress
        return call

    async def _run_method(self, context: RequestContext, pending: Pending) -> Any:
        """Run a handler or an extension; its result or error is wrapped for jsonrpcserver, which is not typed."""
        name = pending.request.method
        params = pending.request.params
        extension = self._extensions.get(name)
        try:
            if name in self._control and not context.call.session.capabilities.control:
                message = f"{name} is answered only on the daemon's control socket"
                raise Forbidden(
                    message,
                    reason="control_only",
                    suggestion="run the fgrep command that does it",
                )
            # Extensions declare no safety, so none counts as read-only.
            if context.call.session.capabilities.only_reads and extension is not None:
                raise Forbidden(f"{name} is not a read-only method", reason="read_only")
            if extension is None:
                result = await self._run_in_time(
                    pending, lambda: self._run_in_parts(context, name, params)
                )
            else:
                result = await self._run_in_time(
                    pending, lambda: extension(context, params)
                )
        except FlashgrepError as error:
            return Error(**error.to_object())
        return Success(result)

    async def _run_in_parts(
        self, context: RequestContext, name: str, params: Params
    ) -> Any:
        """Run a handler; if requested, its results are sent in parts before its answer."""
        token = context.request.partial_token
        handler = self.registry.get(name)
        if token is None or not has_parts(handler):
            return await self._run_handler(context.call, name, params)
        parts = Parts(token, context.notify)
        return await parts.send(
            handler,
            self._name_params(handler, params),
            partial(self._run_handler, context.call),
        )

    async def _run_handler(self, call: Call[Any], name: str, params: Params) -> Any:
        handler = self.registry.get(name)
        session = call.session
        # Rights are checked at each call: the token may have been shown in between.
        if handler.writes and session.lacks_token:
            message = f"{name} writes, and over TCP that needs the token"
            raise Forbidden(message, reason="auth_required", suggestion="call auth")
        if handler.writes and not session.may_write:
            raise Forbidden(
                f"{name} writes, and this connection may only read", reason="read_only"
            )
        if session.capabilities.only_reads and handler.safety != "reads":
            raise Forbidden(
                f"{name} changes the index, and this connection may only read",
                reason="read_only",
            )
        params = self._name_params(handler, params)
        started = time.perf_counter()
        code = 0
        paths = session.path_map
        try:
            # Validate after checking rights: validation errors are for those who may
            # call the method.
            result = await handler.call(
                call, params if paths is None else paths.translate_params(params)
            )
            if paths is None:
                return result
            return paths.translate_result(result)
        except FlashgrepError as error:
            code = error.code
            if paths is not None:
                paths.translate_error(error)
            raise
        finally:
            took = round((time.perf_counter() - started) * 1000, 3)
            self.log.debug(
                "call",
                method=name,
                wire=session.wire,
                took_ms=took,
                code=code,
            )

    @staticmethod
    def _name_params(handler: Handler, params: Params) -> dict[str, Any]:
        """Return a method's parameters by name, without those that are for the dispatcher.

        Raises:
            InvalidParams: more positional parameters than the method has.

        """
        if isinstance(params, list):
            fields = handler.params.field_names()
            if len(params) > len(fields):
                message = f"{handler.name}: {len(params)} parameters by position, at most {len(fields)} allowed"
                raise InvalidParams(message, allowed=fields)
            return dict(zip(fields, params, strict=False))
        own = {key: value for key, value in params.items() if key not in WIRE_PARAMS}
        return read_habits(handler.name, own)

    async def _run_in_time(
        self, pending: Pending, run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Await ``run`` until the deadline or a cancellation, which may have come before it began.

        Raises:
            FlashgrepError: its own; Cancelled, DeadlineExceeded, or the internal error for what has no name of ours.

        """
        # Set when the call begins: waiting for a slot does not count.
        pending.scope.deadline = anyio.current_time() + self.limits.call_seconds
        if not pending.cancelled:
            self.running += 1
            try:
                with pending.scope:
                    result = await run()
                    if isinstance(result, BaseModel):
                        return result.model_dump(mode="json")
                    return result
            except FlashgrepError:
                raise
            except (
                Exception
            ):  # its text may quote what a client must not see; it stays in the log
                internal = _make_internal_error()
                self.log.exception(
                    "call failed", method=pending.request.method, id=internal.data["id"]
                )
                raise internal from None
            finally:
                self.running -= 1
        # The scope ended it: by a cancellation or, if there was none, at its deadline.
        if pending.cancelled:
            raise Cancelled("the call was cancelled", method=pending.request.method)
        raise DeadlineExceeded(
            "the call ran out of time", limit_seconds=self.limits.call_seconds
        )


def _make_internal_error() -> FlashgrepError:
    """Return the error for an unnamed failure: its text stays in the log, under the id."""
    return FlashgrepError("internal error", id=secrets.token_hex(4))


def has_parts(handler: Handler) -> bool:
    """Return whether a method's results can be asked for in parts."""
    return {
        "cursor",
        "limit",
    } <= handler.params.model_fields.keys() and not handler.writes


class Parts:
    """A call's results in parts, before its answer: notifications ``$/progress`` with ``token`` and ``value``."""

    def __init__(self, token: str | int, notify: Callable[[str, Any], bool]) -> None:
        self._token = token
        self._notify = notify

    async def send(
        self,
        handler: Handler,
        raw: dict[str, Any],
        run: Callable[[str, dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Send the results in parts; return the answer, which has the last part.

        Parts that a client is too far behind to take, or that cannot be sent (HTTP), are in the answer.

        Raises:
            InvalidParams: as the method does.

        """
        # Validate once before sending any part: a wrong parameter is an error of the
        # call, not of its second part.
        started = time.monotonic()
        checked = handler.validate(raw)
        limit_left: int | None = checked.model_dump(include={"limit"})["limit"]
        size = FIRST_PART
        if (
            limit_left is None or limit_left <= size
        ):  # a page whose size comes from a setting is one part
            return await run(handler.name, raw)
        fields = checked.model_dump(exclude_unset=True)
        unsent = list[Any]()
        allowed = fields.get("deadline_ms")
        while True:
            if allowed is not None:
                fields["deadline_ms"] = max(
                    1, allowed - int((time.monotonic() - started) * 1000)
                )
            result = await run(handler.name, {**fields, "limit": min(size, limit_left)})
            # An incomplete page, as at a deadline, also ends it: the next page would be
            # no better.
            results = result["results"]
            limit_left -= len(results)
            if (
                limit_left <= 0
                or not result.get("next")
                or not result["coverage"]["complete"]
            ):
                # Only then: a list that is JSON already would be decoded to be joined.
                if unsent:
                    results = [*unsent, *results]
                return {**result, "results": results}
            part = {"token": self._token, "value": {"results": results}}
            if unsent or not self._notify("$/progress", part):
                unsent += results
            size, fields["cursor"] = (
                limit_left if unsent else size * PART_GROWTH,
                result["next"],
            )
