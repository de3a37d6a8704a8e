"""Another user of the machine connects to the loopback port as fast as it can, with a line on each connection."""

import multiprocessing
import os
import socket
import time
from multiprocessing.synchronize import Event
from typing import Any

from scripts.attacks.target import Outcome, Target
from scripts.benchmarks.private import resident

STRANGER = 65534
LINE = b'{"jsonrpc":"2.0","id":1,"method":"stats"}\n'
MOST_CONNECTIONS = 31_000
MOST_SECONDS = 20.0
HELD = 256
"""Connections that the stranger keeps open; the oldest is closed for each further one."""
POLITE_P99_MS = 200.0
MOST_GROWTH = 100 << 20


def attack_as_stranger(made: Target) -> Outcome:
    """Connect as another user while the owner asks over the Unix socket; needs root, which may become another user."""
    outcome = Outcome()
    if os.geteuid() != 0:
        return outcome
    made.daemon.status()
    port = made.daemon.status()["tcp"]["port"]
    before = resident(made.pid())
    spawn = multiprocessing.get_context("spawn")
    ended, opened = spawn.Event(), spawn.Value("q", 0)
    seconds = min(MOST_SECONDS, max(1.0, made.until - time.monotonic()))
    process = spawn.Process(target=be_stranger, args=(port, seconds, ended, opened))
    with made.watched(outcome):
        process.start()
        peak = before
        while not ended.wait(0.1) and process.is_alive():
            peak = max(peak, resident(made.pid()))
        process.join()
    outcome.tried = opened.value
    waits = sorted(outcome.polite_ms)
    p99 = waits[int(len(waits) * 0.99)]
    print(
        f"  {opened.value} connections, owner's p99 {p99:.0f} ms, memory {before >> 20} to {peak >> 20} MiB",
        flush=True,
    )
    if p99 > POLITE_P99_MS:
        outcome.wrong.append(f"the owner's p99 was {p99:.0f} ms")
    if peak - before > MOST_GROWTH:
        outcome.wrong.append(f"memory grew from {before >> 20} to {peak >> 20} MiB")
    return outcome


def be_stranger(port: int, seconds: float, ended: Event, opened: Any) -> None:
    """Become another user, and connect until the time is over."""
    os.setgroups([])
    os.setuid(STRANGER)
    held: list[socket.socket] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and opened.value < MOST_CONNECTIONS:
        connection = socket.socket()
        connection.settimeout(1)
        try:
            connection.connect(("127.0.0.1", port))
            connection.send(LINE)
        except OSError:
            connection.close()
            continue
        held.append(connection)
        opened.value += 1
        if len(held) > HELD:
            held.pop(0).close()
    for connection in held:
        connection.close()
    ended.set()
