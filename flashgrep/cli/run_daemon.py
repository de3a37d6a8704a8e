"""The daemon process: with ``--ready-fd N`` it reports on N that it is serving, or why it cannot.

With ``--alone-fd N`` it serves the client connected to N and does not listen. The command line is a layer above the
daemon: it is passed in and imported on first use.
"""

import faulthandler
import gc
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from flashgrep.api.part import Part
from flashgrep.base import config
from flashgrep.base.errors import BadSetting, FlashgrepError
from flashgrep.base.machine import bound_heap
from flashgrep.base.paths import (
    GRAMMARS_FOLDER,
    GRAMMARS_VARIABLE,
    Paths,
    cache_folder,
    config_file,
    make_private,
    state_folder,
)
from flashgrep.base.plain_files import read_plain_file
from flashgrep.base.project_settings import with_project
from flashgrep.cli.command_table import write_table
from flashgrep.daemon.lifecycle import hold_lock
from flashgrep.daemon.log import Log, RecordHandler, trim_crash_log
from flashgrep.daemon.server import Daemon
from flashgrep.parts.installed import find_parts
from flashgrep.project.catalogue import PROJECTS_FILE
from flashgrep.rpc.connect import WRONG_SETTINGS
from flashgrep.rpc.context import RequestContext

MOST_FILES = 65_536
"""Descriptors asked for: 1,024 connections, and the sockets and databases of many projects; any kernel grants it."""
SWITCH_SECONDS = 0.001
"""How long the event loop waits for a lookup that computes; 5 ms by default, several times in each answer."""
COLLECT_AFTER = (700, 10, 5_000)
"""Python's own thresholds but the last one: all objects are searched for garbage after 38 million new ones only. That
stopped every thread, again and again, for 40 to 160 ms while a question made many. ``Catalogue`` does it at rest, and
every minute of work."""
READY_FLAG, ALONE_FLAG = "--ready-fd", "--alone-fd"


def main() -> int:
    """Serve until told to stop, or with ALONE_FLAG until that client hangs up; return the exit status."""
    option, descriptor = sys.argv[1:]
    # No core dumps: memory holds unsaved text from editors.
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
    )
    bound_heap()
    gc.freeze()  # imports stay
    gc.enable()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        if option == ALONE_FLAG:
            run_alone(socket.socket(fileno=int(descriptor)))
        else:
            run(os.environ, {}, partial(_report, int(descriptor)))
    except (FlashgrepError, OSError) as error:
        if option == READY_FLAG:
            _report(
                int(descriptor),
                f"{WRONG_SETTINGS if isinstance(error, BadSetting) else ''}{error}",
            )
        sys.stderr.write(f"fgrep: {error}\n")
        return 2
    return 0


def run(
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    report: Callable[[str], None],
    parts: Callable[[], Sequence[Part]] = find_parts,
) -> None:
    """Hold the lock and serve; ``report`` is called with "ready" once every wire listens; ``parts``: what is served.

    Raises:
        FlashgrepError: a setting is wrong, or another daemon runs.
        OSError: the state folder cannot be used.

    """
    paths = Paths(state_folder(environ), cache_folder(environ))
    hold_lock(paths)
    daemon = assemble(paths, environ, flags, parts())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The soft limit of 1,024 that systems set is for select(); this process uses epoll.
    if hard == resource.RLIM_INFINITY:
        most_files = MOST_FILES
    else:
        most_files = min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, hard))
    # Our stderr goes to a file that only crashes write to.
    trim_crash_log(paths.crash_log)
    sys.setswitchinterval(SWITCH_SECONDS)
    faulthandler.enable()  # crashes in C libraries are reported there too
    anyio.run(daemon.run, lambda: report("ready"))


def assemble(
    paths: Paths,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    parts: Sequence[Part],
) -> Daemon:
    """Return a daemon with the settings of the user and of each project; ``flags``: settings that win over these.

    Raises:
        FlashgrepError: a setting is wrong.

    """
    os.environ.setdefault(
        GRAMMARS_VARIABLE, str(Path(paths.state, GRAMMARS_FOLDER))
    )  # for all its processes
    user_file = Path(config_file(environ))
    started = config.load(user_file=user_file, environ=environ, flags=flags)

    def settings_for(root: Path) -> config.Loaded:
        try:
            users = config.load(user_file=user_file, environ=environ, flags=flags)
        except (
            BadSetting
        ) as error:  # the file was valid when we started, so keep opening projects
            users = replace(
                started,
                warnings=(
                    f"{error.message}; the settings read at start stay in force",
                ),
            )
        return with_project(users, root)

    settings = started.settings
    log = Log(
        Path(paths.log), level=settings.log.level, max_bytes=settings.log.max_bytes
    )
    logging.getLogger().addHandler(RecordHandler(log))
    write_table(paths, parts)
    return Daemon(paths, settings, log, run_cli, parts, settings_for, environ)


async def run_cli(context: RequestContext, params: Any) -> dict[str, Any]:
    """Answer ``$/cli`` by the command line, which is imported for the first of them."""
    answer: Callable[[RequestContext, Any], Awaitable[dict[str, Any]]]
    answer = (
        await anyio.to_thread.run_sync(import_module, "flashgrep.cli.remote")
    ).run_command
    return await answer(context, params)


def run_alone(connection: socket.socket) -> None:
    """Serve one client until it hangs up, by scanning; the only state is a temporary folder, removed afterwards.

    Raises:
        FlashgrepError: a setting is wrong.
        OSError: there is no folder for temporary files.

    """
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # meant for the client, whose end is ours
    with tempfile.TemporaryDirectory(prefix="flashgrep-") as folder:
        with suppress(
            OSError
        ):  # the known projects, if their list can be read and trusted
            make_private(state_folder(os.environ))
            projects = read_plain_file(Path(state_folder(os.environ), PROJECTS_FILE))
            Path(folder, PROJECTS_FILE).write_bytes(projects)
        # Read-only: without a state folder there is no journal, and a write that is cut
        # short could not be recovered.
        daemon = assemble(Paths(folder), os.environ, {"read_only": True}, find_parts())
        anyio.run(daemon.serve_alone, connection)


def _report(descriptor: int, message: str) -> None:
    os.write(descriptor, message.replace("\n", " ").encode(errors="replace") + b"\n")
    os.close(descriptor)
