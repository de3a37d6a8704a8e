"""Messages with every JSON type in every place, and lines that are none; what a relay and a socket answer to them."""

import itertools
import json
import random
import select
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from flashgrep.base.paths import as_latin1
from scripts.attacks.target import Outcome, Target
from tests.conftest import BOUND, FGREP, DaemonAtHand

Relayed = Literal["fgrep rpc", "fgrep mcp"]
RELAYED: tuple[Relayed, ...] = ("fgrep rpc", "fgrep mcp")
ABSENT = object()
VALUES: tuple[Any, ...] = (
    ABSENT, None, True, 0, -1, 1.5, 1e300, 2**53 + 1, 2**64, 10**40, "", "x", "\0", "é\u2028", "2.0",
    [], [[]], [{}], [1, "a", None], {}, {"": {"": []}}, {"id": 1, "method": "ping"},
)  # fmt: skip
PLACES = ("id", "method", "params", "jsonrpc", "result", "error")
METHODS = (
    "ping",
    "no/such",
    "initialize",
    "notifications/cancelled",
    "$/cancelRequest",
    "$/subscribe",
    "auth",
)
"""Methods that a relay or the dispatcher knows by name; none that ends the daemon or waits for another call."""
PARAMS = ("requestId", "id", "project", "token", "_meta", "progress_token")
MIB = 1 << 20
RAW: tuple[bytes, ...] = (
    b"", b"\r", b" \t", b"{", b"}", b"[", b"null", b"1", b'"x"', b"[]", b"[1,[],null,{}]", b"\0", b"\xff\xfe", b"\x0c1",
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":-0,"method":"ping"}', b'{"jsonrpc":"2.0","id":1E2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":"\\udc00","method":"ping"}', b'{"jsonrpc":"2.0","\\ud800":1,"id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\ud83d\\ude00","method":"ping"}', b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":{},"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"ping","method":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"jsonrpc":"2.0","id":1,"method":"$/subscribe","params":{"project":' + b"[" * 900 + b"]" * 900 + b"}}",
    b"[" * 2000, b"[" * 100_000, b'{"a":' * 2000, b"x" * (9 * MIB), b"[" + b"1," * 2000 + b"1]",
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * (2 * MIB) + b'"}}',
)  # fmt: skip
NEXT: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "the next request",
    "method": "no/such/method",
}
"""Must be answered after all the rest."""
MOST_LINES = 60
"""Lines sent over one connection."""


def attack_relays(made: Target) -> Outcome:
    """Send all of them through ``fgrep rpc`` and ``fgrep mcp``, and compare each answer with the Unix socket's."""
    outcome, failures = Outcome(), made.failures()
    lines = make_lines(made.rng)
    with made.watched(outcome):
        for at in range(0, len(lines), MOST_LINES):
            part = lines[at : at + MOST_LINES]
            for relayed in RELAYED:
                if not made.in_time():
                    break
                outcome.tried += len(part)
                problem = compare(made.daemon, made.root, relayed, part).find_problem()
                if problem:
                    outcome.wrong.append(
                        f"{relayed}, lines {at} to {at + len(part)}: {problem}"
                    )
    if made.failures() > failures:
        outcome.wrong.append(
            f"calls failed inside the daemon; see {made.daemon.paths.log}"
        )
    return outcome


def make_messages() -> Iterator[Any]:
    """Yield requests and replies with each value in each place, and with each in the parameters that a relay reads."""
    for method, (place, value) in itertools.product(
        METHODS, itertools.product(PLACES, VALUES)
    ):
        if place == "method" and method != METHODS[0]:
            continue
        base = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {}}
        yield _replace(base, place, value)
    for method, (name, value) in itertools.product(
        METHODS, itertools.product(PARAMS, VALUES)
    ):
        # The id of a call in flight would make the answers depend on what is over
        # first.
        is_scalar = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        if value is not ABSENT and not (name in {"requestId", "id"} and is_scalar):
            yield {"jsonrpc": "2.0", "method": method, "id": 7, "params": {name: value}}
            yield {"jsonrpc": "2.0", "method": method, "params": {name: value}}
    for place, value in itertools.product(PLACES, VALUES):
        yield _replace({"jsonrpc": "2.0", "id": 7}, place, value)


def make_lines(rng: random.Random) -> list[bytes]:
    """Return all of these as lines in random order, some together as batches, and lines that are no message."""
    messages = list(make_messages())
    lines = [json.dumps(message).encode() for message in messages]
    lines += [
        json.dumps(rng.sample(messages, rng.randrange(1, 5))).encode()
        for _ in range(len(messages) // 10)
    ]
    lines += RAW
    rng.shuffle(lines)
    return lines


def _replace(message: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    if value is not ABSENT:
        return {**message, place: value}
    return {name: kept for name, kept in message.items() if name != place}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers to the same lines through a relay and over a Unix socket."""

    relayed: Counter[str]
    direct: Counter[str]
    status: int
    stderr: str

    def find_problem(self) -> str:
        """Return what is wrong; empty if the relay answered like the socket, and ended well."""
        if self.status != 0 or self.stderr:
            return f"exit status {self.status}: {self.stderr[-300:]}"
        missing, more = self.direct - self.relayed, self.relayed - self.direct
        if missing or more:
            return f"missing {list(missing)[:3]!r:.600}, more {list(more)[:3]!r:.600}"
        if not any(NEXT["id"] in answer for answer in self.relayed):
            return "the next request was not answered"
        if any('"internal_error"' in answer for answer in self.relayed):
            return "an internal error"
        return ""


def compare(
    daemon: DaemonAtHand, root: Path, relayed: Relayed, lines: Sequence[bytes]
) -> Comparison:
    """Send the same lines through a relay's process and over the socket to which it connects."""
    data = b"".join(line + b"\n" for line in [*lines, json.dumps(NEXT).encode()])
    direct = _ask_socket(daemon, root, relayed, data)
    command = (
        [FGREP, "rpc", str(root)]
        if relayed == "fgrep rpc"
        else [FGREP, "mcp", "--project", str(root)]
    )
    ours, theirs = socket.socketpair()
    with theirs, ours:
        process = subprocess.Popen(
            command,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.PIPE,
            env=daemon.environ,
            cwd="/",
            text=True,
        )
        theirs.close()
        try:
            # A relay waits a moment only for answers once its input has ended: end it
            # after the last one.
            held = _exchange(ours, data, answers=direct.total())
            _, stderr = process.communicate(timeout=BOUND)
        finally:
            process.kill()
            process.wait()
    return Comparison(_normalize(held), direct, process.returncode, stderr)


def _ask_socket(
    daemon: DaemonAtHand, root: Path, relayed: Relayed, data: bytes
) -> Counter[str]:
    with closing(daemon.wire("unix", root if relayed == "fgrep rpc" else None)) as wire:
        if relayed == "fgrep mcp":
            wire.call("$/bind", project=as_latin1(str(root)))
        return _normalize(_exchange(wire.connection, data))


def _exchange(connection: socket.socket, data: bytes, answers: int = 0) -> bytes:
    """Send all, end the sending side (after so many answers), and return everything up to the end."""
    connection.setblocking(False)
    rest, held, is_open = memoryview(data), bytearray(), True
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        if is_open and not rest and _normalize(bytes(held)).total() >= answers:
            connection.shutdown(socket.SHUT_WR)
            is_open = False
        readable, writable, _ = select.select(
            [connection], [connection] if rest else [], [], 1
        )
        if writable:
            rest = rest[connection.send(rest[:MIB]) :]
        if readable:
            piece = connection.recv(MIB)
            if not piece:
                break
            held += piece
    return bytes(held)


def _normalize(held: bytes) -> Counter[str]:
    """Return the complete answers; those of a batch in order, without notifications and requests of the daemon."""
    answers: Counter[str] = Counter()
    for line in held.split(b"\n")[:-1]:
        answer = json.loads(line)
        if isinstance(answer, dict):
            if "method" in answer:
                continue
            # How much had come when the line was given up depends on the pieces in
            # which it came.
            answer.get("error", {}).get("data", {}).pop("observed_bytes", None)
            if isinstance(answer.get("result"), dict) and "stage" in answer["result"]:
                answer["result"] = sorted(
                    answer["result"]
                )  # how far the index is changes from one to the next
        answers[json.dumps(answer, sort_keys=True)] += 1
    return answers
