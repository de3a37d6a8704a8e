"""``fgrep daemon`` (start, stop, restart, status, logs, run), and ``fgrep serve``, which has it serve HTTP."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from socket import socket, socketpair
from typing import Annotated, Any

import typer

from flashgrep.base.errors import FlashgrepError
from flashgrep.base.program_name import tell
from flashgrep.cli.daemon_client import (
    ask_daemon,
    call,
    fail,
    failing_cleanly,
    find_user_paths,
    print_status,
    show_status,
)
from flashgrep.cli.log_command import logs
from flashgrep.cli.service_command import install_service
from flashgrep.cli.stopping import stop_daemon
from flashgrep.daemon import lifecycle
from flashgrep.rpc.connect import connect, is_starting, start_daemon

RESTART_SECONDS = 5.0
"""A restart starts the next daemon within milliseconds; a busy machine may take longer."""
POLL_SECONDS = 0.05
MOST_ENDS, CALM_SECONDS = 4, 60.0
"""This many exits within that time are not a coincidence."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Start, stop and watch the background daemon.",
)


@app.command()
def start() -> None:
    """Start the daemon unless it is running. Every other command starts it when needed."""
    with failing_cleanly():
        start_daemon(find_user_paths(), os.environ)
        print_status(ask_daemon("$/status"))


@app.command()
def stop() -> None:
    """Stop the daemon after the calls in flight have finished."""
    if not stop_daemon():
        typer.echo("not running")


@app.command()
def restart() -> None:
    """Stop the daemon and start a new one."""
    stop_daemon()
    start()


@app.command()
def status(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the raw status as JSON.")
    ] = False,
) -> None:
    """Show where the daemon listens and what it serves. Exit status 1: not running."""
    raise typer.Exit(show_status(as_json=as_json))


app.command()(logs)
app.command()(install_service)


@app.command()
def run(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="TCP port instead of the configured one."),
    ] = None,
    idle_minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Idle minutes before it exits; 0: never."),
    ] = None,
) -> None:
    """Run the daemon in the foreground; it logs to its file. For a service manager, or to debug."""
    flags = {"tcp.port": port, "idle_exit_minutes": idle_minutes}
    given = {key: item for key, item in flags.items() if item is not None}
    try:
        # Everything the daemon stands on costs 0.5 s to import: only this command needs
        # it.
        import_module("flashgrep.cli.run_daemon").run(
            os.environ, given, lambda said: typer.echo(said, err=True)
        )
    except (FlashgrepError, OSError) as error:
        fail(str(error))


def serve(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port instead of the configured one."),
    ] = None,
) -> None:
    """Serve HTTP on 127.0.0.1 until interrupted: MCP at /mcp, JSON-RPC at /rpc, methods at /call, the page at /."""
    paths = find_user_paths()

    def announce(opened: Mapping[str, Any]) -> None:
        typer.echo(f"http://127.0.0.1:{opened['port']}")
        sys.stderr.write(
            f"clients send the token in {paths.token}; press Ctrl+C to stop\n"
        )

    params: dict[str, object] = {}
    if port is not None:
        params["port"] = port
    hold_http(params, announce, lambda _opened: None)


def hold_http(
    asked: dict[str, object],
    announce: Callable[[Mapping[str, Any]], None],
    renew: Callable[[Mapping[str, Any]], None],
) -> None:
    """Make the daemon serve HTTP until interrupted, through ``$/serve``.

    ``announce`` is called with its answer, ``renew`` with that of each daemon that replaces another.
    """
    paths = find_user_paths()
    with failing_cleanly(), _catch_interrupts() as interrupted:
        connection = connect(paths, os.environ)
        opened = call(connection, "$/serve", asked)
        announce(opened)
        sys.stdout.flush()
        ends: list[float] = []
        while True:
            # Noted while it serves: afterwards the lock's holder may be its successor
            # already.
            daemon = lifecycle.find_holder(paths)
            with connection:
                if interrupted in select.select([connection, interrupted], [], [])[0]:
                    # Its end would do, but this returns when the port is closed.
                    call(connection, "$/serve", {"stop": True})
                    break
            # A daemon that dies of this request must not be restarted for ever.
            ends = [*ends, time.monotonic()][-MOST_ENDS:]
            if len(ends) == MOST_ENDS and ends[-1] - ends[0] < CALM_SECONDS:
                fail(
                    f"the daemon exited {MOST_ENDS} times within {CALM_SECONDS:.0f} s; see fgrep daemon logs"
                )
            if not _wait_for_successor(daemon, interrupted):
                break
            connection = connect(paths, os.environ)
            # The same port: clients have it in their settings.
            again = call(connection, "$/serve", {**asked, "port": opened["port"]})
            note = "fgrep: the daemon exited; a new one is serving\n"
            tell(note)
            renew(again)


def _wait_for_successor(ended: int | None, interrupted: socket) -> bool:
    """Wait until another daemon is there or may be started in place of process ``ended``; False when interrupted.

    One that was killed leaves its socket. One that was told to stop has taken its socket away when it is gone, and
    another follows at once if it was told to restart; else it stays stopped, and this command ends.
    """
    paths = find_user_paths()
    until = time.monotonic() + lifecycle.STOP_SECONDS
    while True:
        holder = lifecycle.find_holder(paths)
        if holder != ended and os.path.lexists(paths.socket):
            return True
        if is_starting(paths):  # for no longer than its starter waits
            until = time.monotonic() + RESTART_SECONDS
        elif holder is None:
            until = min(until, time.monotonic() + RESTART_SECONDS)
        if select.select([interrupted], [], [], POLL_SECONDS)[0]:
            return False
        if time.monotonic() >= until:
            fail("the daemon has ended")


@contextmanager
def _catch_interrupts() -> Iterator[socket]:
    """Yield a socket that becomes readable at a signal.

    A mask set by the main thread would not protect threads of libraries; a handler works in whichever thread the system
    chooses.
    """
    signalled, waker = socketpair()
    with signalled, waker:
        # set_wakeup_fd writes within a signal handler, which must not block; one byte
        # in the pipe is enough.
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        # A signal that is ignored stays so: nohup ignores the end of the terminal.
        caught = [
            number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN
        ]
        before = {number: signal.signal(number, lambda *_: None) for number in caught}
        try:
            yield signalled
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
