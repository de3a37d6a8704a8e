"""``fgrep serve``: the daemon's HTTP wire, for as long as this command runs."""

import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from flashgrep.cli.ask import ask_running, fail, failing_cleanly, places
from flashgrep.reach import ask, connect

SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})


def serve(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port instead of the configured one.")] = None,
) -> None:
    """Serve HTTP on 127.0.0.1 until interrupted: MCP at /mcp, JSON-RPC at /rpc, methods at /call, a page at /docs."""
    with failing_cleanly(), connect(places(), os.environ) as connection, _interrupts() as interrupted:
        told = _opened(connection, {} if port is None else {"port": port})
        typer.echo(f"http://127.0.0.1:{told['port']}")
        sys.stderr.write(f"clients show the token in {places().token}; interrupt to end\n")
        sys.stdout.flush()
        if interrupted not in select.select([connection, interrupted], [], [])[0]:
            fail("the daemon has ended")
        ask_running("$/serve", stop=True)


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
    answer: dict[str, Any] = {**ask(connection, "$/serve", params)}
    if "error" in answer:
        fail(answer["error"]["message"])
    return answer["result"]
