"""Lines to JSON-RPC 2.0 messages and back: parsed within bounds, and written whatever strings contain.

Reading is strict (NaN, lone surrogates, bad UTF-8 and more than 1,024 levels are not JSON) and counts before it parses.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from pydantic import BaseModel

from flashgrep.base.errors import FlashgrepError, InvalidRequest, Parse, TooLarge
from flashgrep.base.model import Encoded
from flashgrep.rpc.wire import Limits

JsonId: TypeAlias = str | int | float | None
Params: TypeAlias = dict[str, Any] | list[Any]

MAX_VALUES = 100_000
"""Most JSON values in one line. Parsing holds the interpreter's lock throughout: half a million empty lists take 100
ms, during which no other client is answered."""
LONG = 64 * 1024
"""Size in bytes from which a text is parsed in a thread; handing over costs as much as parsing a tenth of that."""
PARSING_AT_ONCE = 2
WIDE = 2.0**63
"""orjson returns integers from here on as floats, which may be rounded."""


ABOUT_REQUESTS = (
    ("progressToken", "progress_token"), ("partialResultToken", "partial_result_token"), ("replace", "replace")
)  # fmt: skip
"""Members about a request, as they are called in ``_meta`` and alongside the parameters."""
MOST_WORD = 100


@dataclass(slots=True)
class Request:
    """A call, or (without ``wants_answer``) a notification."""

    method: str
    params: Params
    id: JsonId
    wants_answer: bool
    progress_token: str | int | None
    partial_token: str | int | None = None
    """Requests the results in parts, as they are found (``rpc.dispatch``)."""
    replaces: str | None = None
    """Cancels the caller's previous request with the same word here, and is cancelled by the next one."""


@dataclass(slots=True)
class Reply:
    """The client's answer to a request of ours."""

    id: JsonId
    result: Any
    error: Any


@dataclass(slots=True)
class InvalidItem:
    """An item that is not a request: what is wrong, and its id where it had one."""

    id: JsonId
    error: FlashgrepError


Item: TypeAlias = Request | Reply | InvalidItem


@dataclass(slots=True)
class Message:
    """What one line holds."""

    items: list[Item]
    is_batch: bool


class MessageReader:
    """Parses the lines of all connections of one dispatcher.

    ``writes`` tells by method and parameters whether a request may carry the text of a file, and so be long.
    """

    def __init__(self, limits: Limits, writes: Callable[[str, Any], bool]) -> None:
        self._limits = limits
        self._writes = writes
        # Not the threads used by searches: a flood of long lines must not delay
        # searches, nor the reverse.
        self._threads = CapacityLimiter(PARSING_AT_ONCE)

    async def read(self, line: bytes) -> Message:
        """Parse a line; a request too long for its method is returned as faulty, with its id.

        Raises:
            Parse: it is not JSON.
            InvalidRequest: it is an empty batch.
            TooLarge: it has too many values, or is a batch too long for the methods it calls.

        """
        # Shorter than every limit, so the methods need not be checked.
        if len(line) <= LONG:
            return read_message(line, self._limits.batch_items)
        message = await run_sync(
            read_message, line, self._limits.batch_items, limiter=self._threads
        )
        if all(
            isinstance(item, Request) and self._writes(item.method, item.params)
            for item in message.items
        ):
            return message
        try:
            self._check_length(len(line))
        except TooLarge as error:
            if message.is_batch:
                raise
            return Message(
                [InvalidItem(item.id, error) for item in message.items], is_batch=False
            )
        return message

    async def read_params(self, method: str, body: bytes) -> Any:
        """Parse the body of a call of ``method``; an empty one has no parameters.

        Raises:
            Parse: it is not JSON.
            TooLarge: it is too long for the method, or has too many values.

        """
        # Over HTTP the method is in the path, so an oversized body is refused before
        # parsing.
        if not self._writes(method, {}):
            self._check_length(len(body))
        if len(body) <= LONG:
            if body:
                return decode(body)
            return {}
        return await run_sync(decode, body, limiter=self._threads)

    def _check_length(self, observed: int) -> None:
        limit = self._limits.max_line_reading
        if observed > limit:
            message = "request too long for a method that does not write"
            guidance = "send it in parts"
            # One answer for the whole batch: no single item is at fault.
            raise TooLarge(
                message, limit_bytes=limit, observed_bytes=observed, guidance=guidance
            )


def read_message(line: bytes, batch_items: int) -> Message:
    """Return what the line holds.

    Raises:
        Parse: it is not JSON.
        InvalidRequest: it is an empty batch.
        TooLarge: it is a batch of more than ``batch_items``, or holds too many values.

    """
    value = decode(line)
    is_batch = isinstance(value, list)
    if is_batch and not value:
        raise InvalidRequest("Invalid Request", detail="an empty batch")
    if is_batch and len(value) > batch_items:
        guidance = "send the batch in parts"
        raise TooLarge(
            "batch too large",
            limit_items=batch_items,
            observed_items=len(value),
            guidance=guidance,
        )
    if is_batch:
        items = value
    else:
        items = [value]
    for item in items:
        if isinstance(item, dict):
            request_id = item.get("id")
        else:
            request_id = None
        if type(request_id) is float and abs(request_id) >= WIDE:
            # An answer must have exactly the id it got, so an integer rounded by orjson
            # is parsed again.
            try:
                again = json.loads(line)
            except (
                ValueError,
                RecursionError,
            ) as error:  # more digits than Python converts
                raise Parse("Parse error", detail=str(error)) from None
            if is_batch:
                items = again
            else:
                items = [again]
            break
    return Message([_read_item(item) for item in items], is_batch)


def _read_request(value: Mapping[str, Any]) -> Request:
    params = value.get("params")
    if params is None:  # null means none: many clients write it
        params = {}
    # Metadata of the request is next to the parameters or, in the Model Context
    # Protocol, among them.
    meta = None
    if isinstance(params, dict):
        meta = params.get("_meta")
    if not isinstance(meta, dict):
        meta = {}
    token, partial, replaces = (
        meta.get(among, value.get(beside)) for among, beside in ABOUT_REQUESTS
    )
    is_word = isinstance(replaces, str) and len(replaces) <= MOST_WORD
    return Request(
        value["method"],
        params,
        value.get("id"),
        "id" in value,
        token if is_token(token) else None,
        partial if is_token(partial) else None,
        replaces if is_word else None,
    )


def _read_item(value: Any) -> Item:
    if isinstance(value, dict):
        request_id = value.get("id")
    else:
        request_id = None
    if not isinstance(value, dict):
        problem = "a request is an object"
    elif not is_id(request_id):
        # The answer has a null id: an invalid one cannot be repeated.
        request_id = None
        problem = "id must be a string, a number or null"
    elif value.get("jsonrpc") != "2.0":
        problem = 'jsonrpc must be "2.0"'
    elif (
        "method" not in value
        and "id" in value
        and ("result" in value or "error" in value)
    ):
        # A reply to a request of ours: the connection goes both ways.
        return Reply(request_id, value.get("result"), value.get("error"))
    elif not isinstance(value.get("method"), str):
        problem = "method must be a string"
    elif not isinstance(value.get("params"), dict | list | None):
        problem = "params must be an object or an array"
    else:
        return _read_request(value)
    return InvalidItem(request_id, InvalidRequest("Invalid Request", detail=problem))


def is_id(value: Any) -> bool:
    """Return whether a value may be the id of a request: a text, a number or null; true equals 1, but is none."""
    return value is None or (
        isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )


def is_token(value: Any) -> bool:
    """Return whether a value may be a token: a text or an integer."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def error_line(request_id: JsonId, error: FlashgrepError) -> bytes:
    """Return the error answer to a request."""
    return encode({"jsonrpc": "2.0", "error": error.to_object(), "id": request_id})


def request_line(request_id: JsonId, method: str, params: Any) -> bytes:
    """Return a request of ours to the client."""
    return encode(
        {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}
    )


def notification_line(method: str, params: Any) -> bytes:
    """Return a notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def decode(line: bytes) -> Any:
    """Return the value of a line of JSON.

    Raises:
        Parse: with what is wrong and where in ``data.detail``.
        TooLarge: it holds more than MAX_VALUES values.

    """
    # A value takes at least two bytes (itself and a comma), so most lines need no
    # counting.
    if len(line) > 2 * MAX_VALUES and _count_marks(line) >= MAX_VALUES:
        # Only marks outside of strings count, since a file's text may be full of them.
        # Two quotes make a string, and a value has at most two strings: itself and its
        # name.
        unescaped = line.replace(b"\\\\", b"").replace(b'\\"', b"")
        if (
            unescaped.count(b'"') > 4 * MAX_VALUES
            or _count_marks(b"".join(unescaped.split(b'"')[::2])) >= MAX_VALUES
        ):
            guidance = "send the request in parts"
            raise TooLarge(
                "too many values in one line",
                limit_values=MAX_VALUES,
                guidance=guidance,
            )
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Parse("Parse error", detail=str(error)) from None


def _count_marks(text: bytes) -> int:
    """Return the number of values in a text without strings, less one: all but the first follow such a mark."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def encode(value: Any) -> bytes:
    """Return the value as one line of UTF-8 JSON without its line end.

    Raises:
        TypeError: the value holds something that has no JSON form.

    """
    try:
        # Passed through: orjson would write the dataclass Encoded as an object with
        # these two members.
        return orjson.dumps(
            value, default=_convert, option=orjson.OPT_PASSTHROUGH_DATACLASS
        )
    except TypeError:
        # Rare: lone surrogates, integers beyond 64 bits, more than 254 levels.
        return json.dumps(
            _repair(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()


def _convert(value: Any) -> Any:
    if isinstance(value, Encoded):
        return orjson.Fragment(value.json)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"no JSON form: {type(value).__name__}")


def _repair(value: Any) -> Any:
    """Return a value with U+FFFD for lone surrogates and null for NaN and infinities."""
    match value:
        case str():
            # Through UTF-16, which joins surrogate pairs; lone ones become U+FFFD.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float():
            if math.isfinite(value):
                return value
            return None
        case dict():
            return {_repair(key): _repair(item) for key, item in value.items()}
        case list() | tuple():
            return [_repair(item) for item in value]
        case None | int():
            return value
        case _:
            if isinstance(value, Encoded):
                return value.decode()
            return _repair(_convert(value))
