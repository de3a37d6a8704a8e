"""Requests of a JSON-RPC connection that await an answer, as seen by a relay of its lines. Standard library only."""

import json

MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
"""In the ``_meta`` of requests of the stateless revisions, whose results name their kind."""
SHORTEST_LIMIT = 4096
"""No daemon refuses a shorter line for its length (the minimum of the setting max_line_bytes)."""
OWN_REQUEST = b'{"jsonrpc":"2.0","method":'
ID_BEHIND = b',"id":'
MOST_ID = 4096
"""Bytes at the end of an answer searched for its id before parsing the whole answer."""
NULL = "null"


class Line:
    """A line from the host: its bytes with the line end, and the requests in it."""

    __slots__ = ("asked", "data", "is_batch", "sendings")

    def __init__(self, data: bytes, message: object) -> None:
        self.data = data
        self.is_batch = isinstance(message, list)
        self.asked: dict[str, dict[str, object]] = {}
        """Unanswered requests by the key of their id: ``id``, ``method`` and ``modern``."""
        self.sendings = 0
        for item in items_of(message):
            key = id_key(item)
            if key != NULL and not is_reply(item):
                params = item.get("params")
                meta = params.get("_meta") if isinstance(params, dict) else None
                is_modern = isinstance(meta, dict) and MODERN_KEY in meta
                self.asked[key] = {"id": item["id"], "method": item.get("method"), "modern": is_modern}

    @property
    def methods(self) -> set[object]:
        """The methods of the requests."""
        return {item["method"] for item in self.asked.values()}


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
        """Remove a line whose answers no longer matter."""
        for key in list(line.asked):
            self._take_out(key, line)

    def settle(self, key: str) -> None:
        """Record that the request of this id is answered, or cancelled without an answer.

        The id null answers a line refused as a whole: an oversized batch, or a line that is too long.
        """
        if key != NULL:
            for line in self._by_key.get(key, [])[:1]:  # of several with one id, the oldest
                self._take_out(key, line)
            return
        # The answer does not say which line: assume a batch first, then the oldest line long enough to be refused.
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


def parse(line: bytes) -> object:
    """Return the JSON value of a line; None where the daemon's stricter parser refuses it."""

    def refuse(constant: str) -> object:
        raise ValueError(f"{constant} is not JSON")

    try:
        text = line.decode()
        value: object = json.loads(text, parse_constant=refuse)
        # Only an escape can produce one: UTF-8 has no surrogates.
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is not a character
    except (ValueError, RecursionError):
        return None
    return value


def items_of(message: object) -> list[dict[str, object]]:
    """Return the objects of a message: those of a batch, or itself."""
    return [item for item in (message if isinstance(message, list) else [message]) if isinstance(item, dict)]


def id_key(item: dict[str, object]) -> str:
    """Return the id as JSON text, so that 1, 1.0 and "1" differ; "null" if there is none to be answered by."""
    found = item.get("id")
    return json.dumps(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else NULL


def is_reply(item: dict[str, object]) -> bool:
    """Return whether this is an answer, not a request."""
    return "method" not in item and "id" in item and ("result" in item or "error" in item)


def answered_key(line: bytes) -> str | None:
    """Return the key of the id that a line of the daemon answers, without parsing it; None if it must be parsed.

    The daemon writes the id last. Quotation marks in strings are escaped, so ``,"id":`` is never in one.
    """
    start = line.rfind(ID_BEHIND, -MOST_ID)
    if start < 0 or not line.startswith(b"{") or line.startswith(OWN_REQUEST):
        return None
    try:
        found = json.loads(line[start + len(ID_BEHIND) :].rstrip()[:-1])
    except ValueError:  # something else is last
        return None
    return id_key({"id": found})


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
            text = {"type": "text", "text": f"error {code} {data.get('reason', '')}: {message}"}
            result: dict[str, object] = {"content": [text], "isError": True}
            answer = {"jsonrpc": "2.0", "result": result | ({"resultType": "complete"} if item["modern"] else {})}
        answers.append(answer | {"id": item["id"]})
    if not answers:
        return b""
    return json.dumps(answers if line.is_batch else answers[0]).encode() + b"\n"
