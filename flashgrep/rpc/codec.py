"""JSON in and out: strict when reading, never failing on a string when writing."""

import json
import math
from typing import Any

import orjson
from pydantic import BaseModel

from flashgrep.errors import Parse, TooLarge

MAX_VALUES = 100_000
"""JSON values in one text. Parsing holds the interpreter's lock from its beginning to its end: half a million empty
lists take 100 ms, in which no other client is answered."""


def decode(line: bytes) -> Any:
    """Return the value of a line of JSON; NaN, lone surrogates, bad UTF-8 and over 1,024 levels are no JSON.

    Raises:
        Parse: with what is wrong and where in ``data.detail``.
        TooLarge: it holds more than MAX_VALUES values.

    """
    if len(line) > 2 * MAX_VALUES and _has_too_many_values(line):
        raise TooLarge("too many values in one line", limit_values=MAX_VALUES, guidance="send the request in parts")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Parse("Parse error", detail=str(error)) from None


def _has_too_many_values(line: bytes) -> bool:
    """Count values without parsing: marks outside of strings, which a text of a file may be full of."""
    if _marks(line) < MAX_VALUES:
        return False
    unescaped = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if unescaped.count(b'"') > 4 * MAX_VALUES:  # two a string; a member's name is one too
        return True
    return _marks(b"".join(unescaped.split(b'"')[::2])) >= MAX_VALUES


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def decode_wide(line: bytes) -> Any:
    """Return the value of a line that ``decode`` took, integers beyond 64 bits kept exactly (orjson rounds them).

    Raises:
        Parse: an integer of more digits than Python converts.

    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Parse("Parse error", detail=str(error)) from None


def encode(value: Any) -> bytes:
    """Return the value as one line of UTF-8 JSON without its line end.

    Raises:
        TypeError: the value holds something that has no JSON form.

    """
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        # Rare: lone surrogates, integers beyond 64 bits, more than 254 levels.
        return json.dumps(_mended(value), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"no JSON form: {type(value).__name__}")


def _mended(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case list() | tuple():
            return [_mended(item) for item in value]
        case None | int():
            return value
        case _:
            return _mended(_plain(value))
