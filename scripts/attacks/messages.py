"""Invalid messages: mutated bytes on every wire, and values of all wrong types for every method."""

import json
import socket
import subprocess
from contextlib import closing
from typing import Any

from flashgrep.parts.built_in import REGISTRY
from scripts.attacks.target import Outcome, Target, exchange, harmless, tcp
from tests.conftest import BOUND, FGREP

SAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("query", {"text": "needle", "include": ["src/**"], "limit": 3}),
    ("get_slice", {"file_path": "src/file1.py", "start_line": 1, "end_line": 2}),
    ("get_symbol", {"symbol_name": "function_1"}),
    (
        "write_code",
        {
            "file_path": "doc/file2.py",
            "old_text": "value",
            "new_text": "value",
            "dry_run": True,
        },
    ),
    ("tools/call", {"name": "query", "arguments": {"text": "needle"}}),
    (
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        },
    ),
    ("auth", {"token": "wrong"}),
    ("$/cancelRequest", {"id": 1}),
    ("$/bind", {"project": "project"}),
]
SPLICES = [
    b"",
    b"\0",
    b"\n",
    b'"',
    b"}",
    b"]",
    b"{",
    b"[" * 2000,
    b'{"a":' * 500,
    b"\xff\xfe",
    b"\\ud800",
    b"9" * 400,
]
SPLICES += [
    b"1e999",
    b"-0",
    b"null",
    b"true",
    b",,",
    b"\xe2\x80\xa8",
    b" " * 70_000,
    b'"jsonrpc":"2.0",',
    b"NaN",
]
WRONG: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    10**40,
    1.5,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "é" * 1000,
    "../" * 50,
    [],
    {},
]
WRONG += [
    [None],
    [[]],
    [{}],
    ["", "\0"],
    {"a": None},
    {"": {"": {}}},
    ["x"] * 1000,
    "x" * 5000,
    "(" * 500,
    "[a-",
    "\\",
    "%s",
]


def attack_with_mutations(made: Target) -> Outcome:
    """Send mutated lines over the Unix socket, TCP, HTTP and a process's stdin."""
    outcome, failures = Outcome(), made.failures()
    with made.watched(outcome):
        while made.in_time():
            lines = b"".join(
                _mutated(made) + b"\n" for _ in range(made.rng.randrange(1, 20))
            )
            wire = made.rng.choice(["unix", "control", "tcp", "http", "stdio", "mcp"])
            outcome.tried += lines.count(b"\n")
            answers = _send(made, wire, lines)
            if b'"internal_error"' in answers:
                outcome.wrong.append(f"{wire}: an internal error after {lines[:300]!r}")
            if made.told_secrets(answers):
                outcome.wrong.append(
                    f"{wire}: {made.told_secrets(answers)} after {lines[:300]!r}"
                )
    if made.failures() > failures:
        outcome.wrong.append(
            f"{made.failures() - failures} calls failed inside the daemon; see {made.daemon.paths.log}"
        )
    return outcome


def attack_with_types(made: Target) -> Outcome:
    """Pass every wrong value for every parameter of every read-only method."""
    outcome = Outcome()
    cases = [
        (method.name, name, value)
        for method in REGISTRY
        if not method.writes
        for name in [*method.params.model_fields, "no_such_parameter"]
        for value in WRONG
    ]
    made.rng.shuffle(cases)
    required = dict(SAMPLES)
    with made.watched(outcome), closing(made.connect()) as wire:
        for method, name, value in cases:
            if not made.in_time():
                break
            outcome.tried += 1
            given = {
                **required.get(method, _required(method)),
                "deadline_ms": 1000,
                name: value,
            }
            if (
                "deadline_ms" not in REGISTRY.get(method).params.model_fields
                and name != "deadline_ms"
            ):
                del given["deadline_ms"]
            answer = wire.ask(method, **given)
            if not harmless(answer):
                outcome.wrong.append(
                    f"{method} {name}={value!r:.80}: {answer['error']}"
                )
            if made.told_secrets(json.dumps(answer).encode()):
                outcome.wrong.append(f"{method} {name}={value!r:.80} told a secret")
    return outcome


def _required(method: str) -> dict[str, Any]:
    known: dict[str, Any] = {
        "query": "needle",
        "spec_id": "x",
        "textQuery": "x",
        "requirement": "x",
        "scenario": "x",
    }
    return {
        name: known.get(name, "src/file1.py")
        for name, field in REGISTRY.get(method).params.model_fields.items()
        if field.is_required()
    }


def _mutated(made: Target) -> bytes:
    method, params = made.rng.choice(SAMPLES)
    line = bytearray(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": made.rng.randrange(5),
                "method": method,
                "params": params,
            }
        ).encode()
    )
    for _ in range(made.rng.randrange(1, 4)):
        at, end = sorted(made.rng.choices(range(len(line) + 1), k=2))
        match made.rng.choice(("cut", "splice", "flip", "repeat")):
            case "cut":
                line[at : min(end, at + 10)] = b""
            case "splice":
                line[at:at] = made.rng.choice(SPLICES)
            case "flip":
                line[at : at + 1] = bytes([made.rng.randrange(256)])
            case _:
                line[at:at] = line[at:end]
    return bytes(line).replace(b"$/shutdown", b"")[:200_000]


def _send(made: Target, wire: str, lines: bytes) -> bytes:
    if wire in {"stdio", "mcp"}:
        command = (
            [FGREP, "rpc", str(made.root)]
            if wire == "stdio"
            else [FGREP, "mcp", "--project", str(made.root)]
        )
        done = subprocess.run(
            command,
            input=lines,
            env=made.daemon.environ,
            capture_output=True,
            timeout=BOUND,
            check=False,
            cwd="/",
        )
        return done.stdout
    if wire == "http":
        status = made.daemon.status()
        request = b"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        port = (status.get("http") or {}).get("port")
        return b"" if port is None else _exchange_at(port, request % len(lines) + lines)
    if wire == "tcp":
        with tcp(made) as connection:
            return exchange(connection, lines)
    path = (
        made.daemon.paths.socket
        if wire == "control"
        else str(made.root / ".flashgrep" / "mcp.sock")
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        return exchange(connection, lines)


def _exchange_at(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), BOUND) as connection:
        return exchange(connection, sent)
