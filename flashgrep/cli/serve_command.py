"""``fgrep serve``: the daemon's HTTP wire, for as long as this command runs."""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from flashgrep.cli.ask import ask_running, fail, failing_cleanly, find_user_paths
from flashgrep.connect import connect, send_request
from flashgrep.daemon import lifecycle

RESTART_SECONDS = 5.0
"""A daemon that follows another listens within a second; a busy machine may take longer."""
POLL_SECONDS = 0.05
MOST_ENDS, CALM_SECONDS = 4, 60.0
"""So many ends within that time are no accident."""
SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


def serve(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port instead of the configured one.")] = None,
) -> None:
    """Serve HTTP on 127.0.0.1 until interrupted: MCP at /mcp, JSON-RPC at /rpc, methods at /call, a page at /docs."""
    with failing_cleanly(), _interrupts() as interrupted:
        connection = connect(find_user_paths(), os.environ)
        told = _opened(connection, {} if port is None else {"port": port})
        typer.echo(f"http://127.0.0.1:{told['port']}")
        sys.stderr.write(f"clients show the token in {find_user_paths().token}; interrupt to end\n")
        sys.stdout.flush()
        ends: list[float] = []
        while True:
            daemon = lifecycle.holder(find_user_paths())
            with connection:
                if interrupted in select.select([connection, interrupted], [], [])[0]:
                    break
            ends = [*ends, time.monotonic()][-MOST_ENDS:]
            if len(ends) == MOST_ENDS and ends[-1] - ends[0] < CALM_SECONDS:
                fail(f"the daemon has ended {MOST_ENDS} times within {CALM_SECONDS:.0f} s; see fgrep daemon logs")
            if not _is_followed(daemon, interrupted):
                break
            connection = connect(find_user_paths(), os.environ)
            _opened(connection, {"port": told["port"]})
            sys.stderr.write("fgrep: the daemon ended; another one serves\n")
        ask_running("$/serve", stop=True)


def _is_followed(ended: int | None, interrupted: socket.socket) -> bool:
    """Wait until another daemon is there or may be started in place of process ``ended``; False when interrupted.

    One that was killed leaves its socket. One that was told to stop has taken its socket away when it is gone, and
    another follows at once if it was told to restart; else it stays stopped, and this command ends.
    """
    here = find_user_paths()
    until = time.monotonic() + lifecycle.STOP_SECONDS
    while True:
        holder = lifecycle.holder(here)
        if holder != ended and os.path.lexists(here.socket):
            return True
        if holder is None:
            until = min(until, time.monotonic() + RESTART_SECONDS)
        if select.select([interrupted], [], [], POLL_SECONDS)[0]:
            return False
        if time.monotonic() >= until:
            fail("the daemon has ended")


@contextmanager
def _interrupts() -> Iterator[socket.socket]:
    """Give a socket that is readable once a signal has come.

    Handlers serve whichever thread the system chose, where a mask of the main thread leaves a library's threads to die.
    """
    told, tells = socket.socketpair()
    with told, tells:
        tells.setblocking(False)
        signal.set_wakeup_fd(tells.fileno())
        before = {each: signal.signal(each, lambda *_: None) for each in SIGNALS}
        try:
            yield told
        finally:
            signal.set_wakeup_fd(-1)
            for each, handler in before.items():
                signal.signal(each, handler)


def _opened(connection: socket.socket, params: dict[str, object]) -> Any:
    answer: dict[str, Any] = {**send_request(connection, "$/serve", params)}
    if "error" in answer:
        fail(answer["error"]["message"])
    return answer["result"]
