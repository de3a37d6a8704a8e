"""Requests of a JSON-RPC connection that await an answer, as seen by a relay of its lines. Standard library only."""

import json
import math
from enum import Enum, auto

MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
"""In the ``_meta`` of requests of the stateless revisions, whose results name their kind."""
SHORTEST_LIMIT = 4096
"""No daemon refuses a shorter line for its length (the minimum of the setting max_line_bytes)."""
OWN_REQUEST = b'{"jsonrpc":"2.0","method":'
ID_BEHIND = b',"id":'
MOST_ID = 4096
"""Bytes at the end of an answer searched for its id before parsing the whole answer."""
NULL = "null"


class Kind(Enum):
    """What an item of a message is to the daemon (``rpc.message``), and so whether it is answered."""

    REQUEST = auto()
    NOTIFICATION = auto()
    REPLY = auto()
    INVALID = auto()
    """Answered by an error: under its id, or under the id null if it has none that can be repeated."""


SILENT = frozenset({Kind.NOTIFICATION, Kind.REPLY})
"""Kinds that get no answer."""


class Line:
    """A line from the host: its bytes with the line end, and what in it awaits an answer."""

    __slots__ = ("asked", "data", "is_answered", "is_batch", "sendings")

    def __init__(self, data: bytes, message: object) -> None:
        self.data = data
        self.is_batch = isinstance(message, list)
        self.is_answered = message == []
        """Whether the daemon answers it, be it by an error."""
        self.asked: dict[str, dict[str, object]] = {}
        """What awaits an answer, by the key of its id: ``id``, ``method``, ``tool`` and ``modern``.

        Under the id null only what stands alone: in the answer to a batch it says nothing about other lines.
        """
        self.sendings = 0
        if isinstance(message, list):
            items = message
        else:
            items = [message]
        for item in items:
            if classify(item) in SILENT:
                continue
            self.is_answered = True
            key = id_key(item)
            if key != NULL or not self.is_batch:
                self.asked[key] = _describe(item, key)
        if message == []:
            self.asked[NULL] = _describe(message, NULL)
            self.is_batch = False  # refused as a whole, by one answer

    @property
    def methods(self) -> set[object]:
        """The methods of the requests."""
        return {item["method"] for item in self.asked.values()}

    @property
    def operations(self) -> set[object]:
        """The methods of the requests; of a tool's call the tool."""
        return {item["tool"] or item["method"] for item in self.asked.values()}


class InFlight:
    """The lines with unanswered requests, oldest first."""

    def __init__(self) -> None:
        self._lines: dict[int, Line] = {}
        self._by_key: dict[str, list[Line]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def lines(self) -> list[Line]:
        """Return the lines."""
        return list(self._lines.values())

    def add(self, line: Line) -> None:
        """Record a line if it has requests."""
        for key in line.asked:
            self._lines[id(line)] = line
            self._by_key.setdefault(key, []).append(line)

    def forget(self, line: Line) -> None:
        """Remove a line whose answers no longer matter, if it is recorded."""
        if id(line) in self._lines:
            for key in list(line.asked):
                self._take_out(key, line)

    def settle(self, key: str) -> None:
        """Record that the request of this id is answered, or cancelled without an answer.

        The id null answers a line refused as a whole: an oversized batch, or a line that is too long.
        """
        same = self._by_key.get(key)
        if same:  # of several with one id, the oldest
            self._take_out(key, same[0])
        if same or key != NULL:
            return
        # The answer does not say which line: assume a batch first, then the oldest line
        # long enough to be refused.
        refused = [line for line in self.lines() if line.is_batch]
        refused += [line for line in self.lines() if len(line.data) > SHORTEST_LIMIT]
        if refused:
            self.forget(refused[0])

    def _take_out(self, key: str, line: Line) -> None:
        del line.asked[key]
        same = self._by_key[key]
        same.remove(line)
        if not same:
            del self._by_key[key]
        if not line.asked:
            del self._lines[id(line)]


def _read_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return value


def _read_int(digits: str) -> int:
    value = int(digits)
    float(value)  # the daemon refuses a line with an integer that no float can hold
    return value


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_read_float, parse_int=_read_int
)


def parse(line: bytes) -> object:
    """Return the JSON value of a line; None where the daemon's stricter parser refuses it."""
    try:
        text = line.decode()
        value: object = DECODER.decode(text)
        # Only an escape can produce one: UTF-8 has no surrogates.
        if "\\ud" in text or "\\uD" in text:
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # a lone surrogate is not a character
    except (ValueError, OverflowError, RecursionError):
        return None
    return value


def items_of(message: object) -> list[dict[str, object]]:
    """Return the objects of a message: those of a batch, or itself."""
    return [
        item
        for item in (message if isinstance(message, list) else [message])
        if isinstance(item, dict)
    ]


def classify(item: object) -> Kind:
    """Return what the daemon takes an item of a message for."""
    if (
        not isinstance(item, dict)
        or item.get("jsonrpc") != "2.0"
        or not _is_id(item.get("id"))
    ):
        return Kind.INVALID
    if "method" not in item and "id" in item and ("result" in item or "error" in item):
        return Kind.REPLY
    params = item.get("params")
    if not isinstance(item.get("method"), str) or not (
        params is None or isinstance(params, (dict, list))
    ):
        return Kind.INVALID
    if "id" in item:
        return Kind.REQUEST
    return Kind.NOTIFICATION


def id_key(item: object) -> str:
    """Return the id as JSON text, so that 1, 1.0 and "1" differ; "null" if there is none to be answered by."""
    if isinstance(item, dict):
        request_id = item.get("id")
    else:
        request_id = None
    if _is_id(request_id):
        return json.dumps(request_id)
    return NULL


def _is_id(value: object) -> bool:
    return value is None or (
        isinstance(value, (str, int, float)) and not isinstance(value, bool)
    )


def _describe(item: object, key: str) -> dict[str, object]:
    """Return what an error in place of the answer needs; a method that is no text has no name."""
    # An item of a batch may be anything.
    if isinstance(item, dict):
        fields = item
    else:
        fields = {}
    params = fields.get("params")
    method = fields.get("method")
    if isinstance(params, dict):
        meta = params.get("_meta")
    else:
        meta = None
    is_modern = isinstance(meta, dict) and MODERN_KEY in meta
    if key == NULL:
        request_id = None
    else:
        request_id = fields.get("id")
    tool = None
    if method == "tools/call" and isinstance(params, dict):
        tool = params.get("name")
    return {
        "id": request_id,
        "tool": tool if isinstance(tool, str) else None,
        "method": method if isinstance(method, str) else None,
        "modern": is_modern,
    }


def answered_key(line: bytes) -> str | None:
    """Return the key of the id that a line of the daemon answers, without parsing it; None if it must be parsed.

    The daemon writes the id last. Quotation marks in strings are escaped, so ``,"id":`` is never in one.
    """
    start = line.rfind(ID_BEHIND, -MOST_ID)
    if start < 0 or not line.startswith(b"{") or line.startswith(OWN_REQUEST):
        return None
    try:
        identifier = json.loads(line[start + len(ID_BEHIND) :].rstrip()[:-1])
    except ValueError:  # something else is last
        return None
    return id_key({"id": identifier})


def refuse_line(code: int, message: str, data: dict[str, object]) -> bytes:
    """Return the answer to an unreadable line, as one line."""
    error = {"code": code, "message": message, "data": data}
    return json.dumps({"jsonrpc": "2.0", "error": error, "id": None}).encode() + b"\n"


def refuse_all(line: Line, code: int, message: str, data: dict[str, object]) -> bytes:
    """Return the answer to a line's requests saying why they are not carried out, as one line; empty for none.

    A tool's failure is a result: hosts show results to the model, while many handle errors themselves.
    """
    error: dict[str, object] = {"code": code, "message": message, "data": data}
    answers: list[dict[str, object]] = []
    for item in line.asked.values():
        answer: dict[str, object] = {"jsonrpc": "2.0", "error": error}
        if item["method"] == "tools/call":
            text = {
                "type": "text",
                "text": f"error {code} {data.get('reason', '')}: {message}",
            }
            result: dict[str, object] = {"content": [text], "isError": True}
            answer = {
                "jsonrpc": "2.0",
                "result": result
                | ({"resultType": "complete"} if item["modern"] else {}),
            }
        answers.append(answer | {"id": item["id"]})
    if not answers:
        return b""
    return json.dumps(answers if line.is_batch else answers[0]).encode() + b"\n"
