"""Lines to messages: what a JSON-RPC 2.0 request is, and what is wrong with one that is none."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from flashgrep.errors import FlashgrepError, InvalidRequest, TooLarge
from flashgrep.rpc.codec import decode, decode_wide, encode

JsonId: TypeAlias = str | int | float | None
Params: TypeAlias = dict[str, Any] | list[Any]

# Integers from here on have come as floats that may be rounded.
_WIDE = 2.0**63


@dataclass(slots=True)
class Request:
    """A call, or (without ``wants_answer``) a notification."""

    method: str
    params: Params
    id: JsonId
    wants_answer: bool
    progress_token: str | int | None


@dataclass(slots=True)
class Reply:
    """The client's answer to a request of ours."""

    id: JsonId
    result: Any
    error: Any


@dataclass(slots=True)
class Faulty:
    """An item that is no request: what is wrong, and its id where it had one."""

    id: JsonId
    error: FlashgrepError


Item: TypeAlias = Request | Reply | Faulty


@dataclass(slots=True)
class Message:
    """What one line holds."""

    items: list[Item]
    is_batch: bool


def read_message(line: bytes, batch_items: int) -> Message:
    """Return what the line holds.

    Raises:
        Parse: it is not JSON.
        InvalidRequest: it is an empty batch.
        TooLarge: it is a batch of more than ``batch_items``, or holds too many values.

    """
    value = decode(line)
    if not isinstance(value, list):
        if _has_wide_id(value):
            value = decode_wide(line)
        return Message([_item(value)], is_batch=False)
    if not value:
        raise InvalidRequest("Invalid Request", detail="an empty batch")
    if len(value) > batch_items:
        guidance = "send the batch in parts"
        raise TooLarge("batch too large", limit_items=batch_items, observed_items=len(value), guidance=guidance)
    if any(map(_has_wide_id, value)):
        value = decode_wide(line)
    return Message([_item(item) for item in value], is_batch=True)


def error_line(request_id: JsonId, error: FlashgrepError) -> bytes:
    """Return the error answer to a request."""
    return encode({"jsonrpc": "2.0", "error": error.to_object(), "id": request_id})


def request_line(request_id: JsonId, method: str, params: Any) -> bytes:
    """Return a request of ours to the client."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params, "id": request_id})


def notification_line(method: str, params: Any) -> bytes:
    """Return a notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def _has_wide_id(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    request_id = value.get("id")
    return type(request_id) is float and abs(request_id) >= _WIDE


def _item(value: Any) -> Item:
    if not isinstance(value, dict):
        return _faulty(None, "a request is an object")
    request_id = value.get("id")
    if not (request_id is None or isinstance(request_id, (str, int, float))) or isinstance(request_id, bool):
        return _faulty(None, "id must be a string, a number or null")
    if value.get("jsonrpc") != "2.0":
        return _faulty(request_id, 'jsonrpc must be "2.0"')
    if "method" not in value and "id" in value and ("result" in value or "error" in value):
        return Reply(request_id, value.get("result"), value.get("error"))
    return _request(value, request_id)


def _request(value: dict[str, Any], request_id: JsonId) -> Item:
    method = value.get("method")
    if not isinstance(method, str):
        return _faulty(request_id, "method must be a string")
    params = value.get("params")
    if params is None:  # null stands for none: many a client writes it
        params = {}
    if not isinstance(params, (dict, list)):
        return _faulty(request_id, "params must be an object or an array")
    return Request(method, params, request_id, "id" in value, _progress_token(value, params))


def _progress_token(value: dict[str, Any], params: Params) -> str | int | None:
    token = value.get("progress_token")
    if isinstance(params, dict):
        meta = params.get("_meta")
        if isinstance(meta, dict) and "progressToken" in meta:
            token = meta["progressToken"]
    return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None


def _faulty(request_id: JsonId, detail: str) -> Faulty:
    return Faulty(request_id, InvalidRequest("Invalid Request", detail=detail))
