"""Greedy clients: too many connections, calls and bytes; a polite client's waiting times show the effect."""

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from typing import Any

from scripts.attacks.target import Outcome, Target, tcp

MIB = 1 << 20
IN_FLIGHT = 32
SILENT = 1000
SECONDS_EACH = 3.0
POLITE_P99_MS = 1000.0
"""Limit for this attack; the binding limits are measured by scripts/fairness on an idle machine."""

GREEDY: dict[str, dict[str, Any]] = {
    "large answers": {
        "method": "query",
        "text": "e",
        "limit": 10_000,
        "max_tokens": 1_000_000,
        "mode": "literal",
    },
    "counts": {"method": "query", "text": ".", "mode": "regex", "output": "count"},
    "backtracking": {
        "method": "query",
        "text": "(a+)+(?=b)",
        "mode": "regex",
        "engine": "backtracking",
    },
    "fuzzy symbols": {
        "method": "get_symbol",
        "symbol_name": "functoin",
        "match": "fuzzy",
        "limit": 1000,
    },
    "meaning": {
        "method": "search_code",
        "query": "function that returns a value",
        "limit": 100,
    },
    "scans": {
        "method": "query",
        "text": "..",
        "mode": "regex",
        "use_index": False,
        "limit": 10_000,
    },
    "outlines": {"method": "outline", "max_tokens": 100_000},
}
HUGE: dict[str, Callable[[], dict[str, Any]]] = {
    "a glob of 7 MB": lambda: {
        "method": "query",
        "text": "x",
        "include": ["{a," * (7 * MIB // 3)],
    },
    "half a million languages": lambda: {
        "method": "query",
        "text": "x",
        "language": ["py"] * 500_000,
    },
    "300,000 unknown parameters": lambda: {
        "method": "query",
        "text": "x",
        **{f"p{at}": 1 for at in range(300_000)},
    },
    "90,000 operations": lambda: {
        "method": "batch_write_code",
        "operations": [{"id": "a"}] * 90_000,
        "dry_run": True,
    },
    "a payload of 300,000 keys": lambda: {
        "method": "search_code_by_payload",
        "payload": {f"p{at}": 1 for at in range(300_000)},
    },
    "a symbol of 7 MB": lambda: {
        "method": "get_symbol",
        "symbol_name": "x" * (7 * MIB),
    },
    "a pattern of 7 MB": lambda: {
        "method": "query",
        "text": "(a|b)" * (7 * MIB // 5),
        "mode": "regex",
    },
    "an address of 7 MB": lambda: {
        "method": "resources/read",
        "uri": "flashgrep://" + "x" * (7 * MIB),
    },
}


def attack_by_floods(made: Target) -> Outcome:
    """Keep 32 greedy calls of each kind in flight, send each huge message, and open silent connections."""
    outcome = Outcome()
    kinds: list[tuple[str, Callable[[Target, float], int]]] = [
        *((name, _greedy(params)) for name, params in GREEDY.items()),
        *((name, _huge(make)) for name, make in HUGE.items()),
        ("silent connections", _silent),
    ]
    made.rng.shuffle(kinds)
    share = min(SECONDS_EACH, max(0.5, (made.until - time.monotonic()) / len(kinds)))
    for name, run in kinds:
        if not made.in_time():
            break
        noticed = Outcome()
        with made.watched(noticed):
            outcome.tried += run(made, time.monotonic() + share)
        waits = sorted(noticed.polite_ms) or [float("inf")]
        p99 = waits[int(len(waits) * 0.99)]
        if p99 > POLITE_P99_MS:
            outcome.wrong.append(f"{name}: the polite client's p99 was {p99:.0f} ms")
        outcome.wrong += [f"{name}: {wrong}" for wrong in noticed.wrong]
        outcome.polite_ms += noticed.polite_ms
    return outcome


def _greedy(params: dict[str, Any]) -> Callable[[Target, float], int]:
    def run(made: Target, until: float) -> int:
        rest = {name: value for name, value in params.items() if name != "method"}
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": params["method"],
            "params": rest,
        }
        with closing(made.connect()) as wire:
            for _ in range(IN_FLIGHT):
                wire.send(request)
            done = 0
            while time.monotonic() < until:
                if not wire.receive_line():
                    return done
                wire.send(request)
                done += 1
        return done

    return run


def _huge(make: Callable[[], dict[str, Any]]) -> Callable[[Target, float], int]:
    def run(made: Target, until: float) -> int:
        params = make()
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": params.pop("method"),
            "params": params,
        }
        line, done = json.dumps(request).encode() + b"\n", 0
        while not done or time.monotonic() < until:
            with closing(made.connect()) as wire, suppress(OSError):
                wire.send(line)
                wire.receive_line()
            done += 1
        return done

    return run


def _silent(made: Target, until: float) -> int:
    opened = 0
    with ExitStack() as stack, suppress(OSError):
        port_of: socket.socket = stack.enter_context(tcp(made))
        address = port_of.getpeername()
        while time.monotonic() < until and opened < SILENT:
            stack.enter_context(socket.create_connection(address, 5))
            opened += 1
    return opened
