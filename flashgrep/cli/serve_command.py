"""``fgrep serve``: the daemon's HTTP wire, for as long as this command runs."""

import os
import select
import signal
import socket
import sys
from typing import Annotated, Any

import typer

from flashgrep.cli.ask import ask_running, fail, failing_cleanly, places
from flashgrep.reach import ask, connect

SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM})
LOOK_SECONDS = 1.0
"""Between looks whether the daemon is still there."""


def serve(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port instead of the configured one.")] = None,
) -> None:
    """Serve HTTP on 127.0.0.1 until interrupted: MCP at /mcp, JSON-RPC at /rpc, methods at /call, a page at /docs."""
    with failing_cleanly(), connect(places(), os.environ) as connection:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # after the daemon's start, which would inherit it
        told = _opened(connection, {} if port is None else {"port": port})
        typer.echo(f"http://127.0.0.1:{told['port']}")
        sys.stderr.write(f"clients show the token in {places().token}; interrupt to end\n")
        sys.stdout.flush()
        while signal.sigtimedwait(SIGNALS, LOOK_SECONDS) is None:
            if select.select([connection], [], [], 0)[0]:
                fail("the daemon has ended")
        ask_running("$/serve", stop=True)


def _opened(connection: socket.socket, params: dict[str, object]) -> Any:
    answer: dict[str, Any] = {**ask(connection, "$/serve", params)}
    if "error" in answer:
        fail(answer["error"]["message"])
    return answer["result"]
