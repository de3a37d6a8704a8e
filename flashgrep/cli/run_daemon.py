"""The daemon process: ``python -m flashgrep.cli.run_daemon [--ready-fd N]``; typer is imported when needed."""

import faulthandler
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from flashgrep import config
from flashgrep.daemon.lifecycle import hold_lock
from flashgrep.daemon.log import Log
from flashgrep.daemon.server import Daemon
from flashgrep.errors import BadSetting, FlashgrepError
from flashgrep.paths import GRAMMARS_FOLDER, GRAMMARS_VARIABLE, Paths, cache_folder, config_file, state_folder
from flashgrep.project_settings import with_project
from flashgrep.rpc.context import RequestContext

MOST_FILES = 65_536
"""Descriptors asked for: 1,024 connections, and the sockets and databases of many projects; any kernel grants it."""
SWITCH_SECONDS = 0.001
"""How long the event loop waits for a look-up that computes; 5 ms by default, several times in each answer."""
MOST_CRASHES = 1024 * 1024
READY_FLAG = "--ready-fd"


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop; say on the given descriptor when ready, or what went wrong."""
    given = sys.argv[1:] if arguments is None else arguments
    tell = partial(_tell, int(given[given.index(READY_FLAG) + 1])) if READY_FLAG in given else _tell_nobody
    try:
        run(os.environ, {}, tell)
    except (FlashgrepError, OSError) as error:
        tell(str(error))
        sys.stderr.write(f"fgrep: {error}\n")
        return 2
    return 0


def run(environ: Mapping[str, str], flags: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """Hold the lock and serve.

    Raises:
        FlashgrepError: a setting is wrong, or another daemon runs.
        OSError: the state folder cannot be used.

    """
    paths = Paths(state_folder(environ), cache_folder(environ))
    hold_lock(paths)

    daemon = assemble(paths, environ, flags)
    _raise_descriptor_limit()
    _bound_crash_log(Path(paths.crash_log))
    sys.setswitchinterval(SWITCH_SECONDS)
    faulthandler.enable()  # what a library written in C did last, in the file that takes our stderr
    anyio.run(daemon.run, lambda: tell("ready"))


def assemble(paths: Paths, environ: Mapping[str, str], flags: Mapping[str, Any]) -> Daemon:
    """Return a daemon with the settings of the user and of each project; ``flags``: settings that win over these.

    Raises:
        FlashgrepError: a setting is wrong.

    """
    os.environ.setdefault(GRAMMARS_VARIABLE, str(Path(paths.state, GRAMMARS_FOLDER)))  # for all its processes
    user_file = Path(config_file(environ))
    started = config.load(user_file=user_file, environ=environ, flags=flags)

    def settings_for(root: Path) -> config.Loaded:
        try:
            users = config.load(user_file=user_file, environ=environ, flags=flags)
        except BadSetting as error:  # it was right when we started: projects go on being opened
            users = replace(started, warnings=(f"{error.message}; the settings of the start hold",))
        return with_project(users, root)

    settings = started.settings
    log = Log(Path(paths.log), level=settings.log.level, max_bytes=settings.log.max_bytes)
    return Daemon(paths, settings, log, run_cli, settings_for, environ)


async def run_cli(context: RequestContext, params: Any) -> dict[str, Any]:
    """Answer ``$/cli`` by the command line, which is imported for the first of them."""
    answer: Callable[[RequestContext, Any], Awaitable[dict[str, Any]]]
    answer = (await anyio.to_thread.run_sync(import_module, "flashgrep.cli.remote")).run_command
    return await answer(context, params)


def _tell(descriptor: int, what: str) -> None:
    os.write(descriptor, what.replace("\n", " ").encode(errors="replace") + b"\n")
    os.close(descriptor)


def _tell_nobody(_what: str) -> None:
    """Nobody asked."""


def _bound_crash_log(path: Path) -> None:
    """Empty the file that takes our stderr once it is large: it is written by what ends a process, a page at a time."""
    with suppress(OSError):
        if path.stat().st_size > MOST_CRASHES:
            os.truncate(path, 0)


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
