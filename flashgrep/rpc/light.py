"""One request to a daemon that runs already, for commands that live 10 ms.

The modules ``socket`` and ``json`` take 9 ms to import; the C code that they are written around takes none.
"""

import os
from _json import encode_basestring_ascii, make_scanner
from _socket import AF_UNIX, SOCK_STREAM, socket

from flashgrep import __version__
from flashgrep.base.paths import PACKAGE
from flashgrep.rpc.longpath import use_short_name

TYPE_CHECKING = False
"""As in ``typing``, whose import takes longer than ours."""
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PIECE_BYTES = 262_144
CONNECT_SECONDS = 5.0
"""Connecting to a live daemon takes microseconds; one that is stopped (SIGSTOP) with a full backlog never answers."""
Answer = dict[str, dict[str, str]]
"""A JSON-RPC response whose result or error is an object; ``status`` and ``code`` in them are numbers."""


class _Reading:
    """How values are read: as ``json.loads`` reads them."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def connect(path: str, seconds: float) -> socket:
    """Return a connection to the daemon at ``path``, which waits ``seconds`` for each step.

    Raises:
        OSError: none listens there.

    """
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        use_short_name(os.fsencode(path), connection.connect)
    except BaseException:
        connection.close()
        raise
    return connection


def is_current(connection: socket) -> bool:
    """Return whether the daemon runs this very code; if not, it may have to be replaced."""
    daemon: Mapping[str, object] = send(connection, "$/version", {}).get("result", {})
    is_ours = daemon.get("folder") == PACKAGE and not daemon.get("changed")
    return is_ours and daemon.get("version") == __version__


def send(connection: socket, method: str, params: "Mapping[str, object]") -> Answer:
    """Send the only request in flight, and return its answer.

    Raises:
        ConnectionError: the daemon exited first.
        TimeoutError: it does not answer in time.
        ValueError: it answers in other words.

    """
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    # As long as one is in flight, the first line end ends its answer.
    connection.sendall(encode(request).encode() + b"\n")
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = connection.recv(PIECE_BYTES)
        if not piece:
            raise ConnectionResetError("the daemon ended before it answered")
        pieces.append(piece)
    answer: Answer = decode(b"".join(pieces).decode())
    return answer


def encode(value: object) -> str:
    """Return a value as JSON: text, numbers, lists and objects with names of text."""
    match value:
        case str():
            return encode_basestring_ascii(value)
        case None:
            return "null"
        # Before numbers, which truth values are, too.
        case bool():
            if value:
                return "true"
            return "false"
        case int() | float():
            return repr(value)
        case dict():
            members = [f"{encode(name)}:{encode(item)}" for name, item in value.items()]
            return "{" + ",".join(members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(encode, value)) + "]"
    raise TypeError(type(value).__name__)


def decode(text: str) -> "Any":
    """Return the value that a text of JSON begins with.

    Raises:
        ValueError: it does not.

    """
    reading: Any = _Reading()
    try:
        value, _ = make_scanner(reading)(text, 0)
    except StopIteration:
        raise ValueError("no JSON") from None
    return value
