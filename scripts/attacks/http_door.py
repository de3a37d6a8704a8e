"""Strangers at the HTTP port: crowds, requests that servers read differently, and answers that nobody reads."""

import re
import socket
import time
from contextlib import closing, suppress

from scripts.attacks.target import Outcome, Target
from scripts.benchmarks.private import resident

ODD = (
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 0, 0\r\n\r\n",
    b"X-A: b\nContent-Length: 0\r\n\r\n",
    b"X-A: b\r\n Content-Length: 0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n1\r\na00\r\n\r\n",
)
"""Rest of a head, and a body: nothing after it may be read as a request."""
PATHS = ("/openapi.json", "/docs", "/", "/healthz", "/rpc", "/raw?path=a")
HELD = 200
"""Connections of the crowd that stay open and unread."""
HALVED = 0.2
"""Part of the requests that end in their middle."""
MOST_SECONDS = 20.0
"""Until a connection with an odd request is closed; a head's deadline is 15 s."""
POLITE_P99_MS = 200.0
MOST_GROWTH = 100 << 20


def attack_over_http(made: Target) -> Outcome:
    """Send odd and unread requests without a token while the owner asks over the Unix socket."""
    outcome = Outcome()
    port = int(made.daemon.serve_http()["port"])
    before = resident(made.pid())
    held: list[socket.socket] = []
    with made.watched(outcome):
        while made.in_time():
            for odd in ODD:
                outcome.tried += 1
                try_smuggling(made, port, odd, outcome)
            for _ in range(20):
                outcome.tried += 1
                path = made.rng.choice(PATHS)
                held.append(leave_unread(port, path, made.rng.random()))
                if len(held) > HELD:
                    held.pop(0).close()
    grown = resident(made.pid()) - before
    for connection in held:
        connection.close()
    if grown > MOST_GROWTH:
        outcome.wrong.append(f"memory grew by {grown >> 20} MiB")
    waits = sorted(outcome.polite_ms)
    p99 = waits[int(len(waits) * 0.99)] if waits else 0.0
    if p99 > POLITE_P99_MS:
        outcome.wrong.append(f"the owner's p99 was {p99:.0f} ms")
    if made.failures():
        outcome.wrong.append("internal errors in the log")
    return outcome


def try_smuggling(made: Target, port: int, odd: bytes, outcome: Outcome) -> None:
    """Send a request with a second behind it; more than one answer is harm."""
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    kind = b"Content-Type: application/json\r\n"
    second = b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n"
    told = b""
    started = time.monotonic()
    with (
        closing(socket.create_connection(("127.0.0.1", port), 30)) as connection,
        suppress(OSError),
    ):
        connection.sendall(b"POST /rpc HTTP/1.1\r\n" + host + kind + odd + second)
        while piece := connection.recv(1 << 16):
            told += piece
    answers = len(re.findall(rb"HTTP/1\.1 \d", told))
    if answers > 1:
        outcome.wrong.append(f"{odd!r} had {answers} answers")
    if time.monotonic() - started > MOST_SECONDS:
        outcome.wrong.append(f"{odd!r} was held for too long")
    outcome.wrong += made.told_secrets(told)


def leave_unread(port: int, path: str, kind: float) -> socket.socket:
    """Send a request, or a half of one, and return the connection unread."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(5)
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    if kind < HALVED:
        request = request[: len(request) // 2]
    with suppress(OSError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(request)
    return connection
