"""``fgrep daemon install-service``: have the system's manager of services keep the user's daemon running."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.cli.daemon_client import fail, failing_cleanly
from flashgrep.cli.stopping import stop_daemon

LABEL = "io.github.flashgrep"
UNIT = "flashgrep.service"
UNIT_TEXT = """\
[Unit]
Description=flashgrep, the code search daemon
Documentation=https://github.com/flashgrep/flashgrep

[Service]
ExecStart={command}
Restart=on-failure
RestartPreventExitStatus=2
Nice=5

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A file that a manager of services reads, and the commands that start and end what it describes."""

    file: Path
    text: bytes
    start: tuple[tuple[str, ...], ...]
    end: tuple[tuple[str, ...], ...]


def install_service(
    *,
    show: Annotated[
        bool, typer.Option("--print", help="Print the file and change nothing.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--uninstall", help="End the service and remove its file.")
    ] = False,
) -> None:
    """Keep the daemon running from login on, by systemd or launchd; without it the first command starts one."""
    service = describe_service()
    if show:
        typer.echo(f"# {service.file}")
        typer.echo(service.text.decode(), nl=False)
        return
    with failing_cleanly():
        if remove:
            remove_service()
            return
        service.file.parent.mkdir(parents=True, exist_ok=True)
        service.file.write_bytes(service.text)
        typer.echo(f"wrote {service.file}")
    # There is one daemon: beside the one that a command has started the service would fail.
    stop_daemon()
    problem = run_all(service.start)
    if problem:
        fail(f"the service was not started: {problem}")


def remove_service() -> None:
    """End the service and remove its file; without one, do nothing."""
    service = describe_service()
    if not service.file.exists():
        return
    # Its file goes even if the manager fails: else every login would start it again.
    problem = run_all(service.end)
    if problem:
        sys.stderr.write(f"fgrep: the service was not ended: {problem}\n")
    service.file.unlink(missing_ok=True)
    typer.echo(f"removed {service.file}")


def describe_service() -> Service:
    """Return the service as this system's manager takes it."""
    home = Path.home()
    # Not the script fgrep: that may become grep, and PATH differs at login.
    command = [sys.executable, "-m", "flashgrep", "daemon", "run", "--idle-minutes=0"]
    if sys.platform == "darwin":
        file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        job = {"Label": LABEL, "ProgramArguments": command, "RunAtLoad": True}
        return Service(
            file,
            plistlib.dumps(job),
            (("launchctl", "load", "-w", str(file)),),
            (("launchctl", "unload", "-w", str(file)),),
        )
    base = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    file = Path(base, "systemd", "user", UNIT)
    words = " ".join(map(quote_word, command))
    manager = ("systemctl", "--user")
    return Service(
        file,
        UNIT_TEXT.format(command=words).encode(),
        ((*manager, "daemon-reload"), (*manager, "enable", "--now", UNIT)),
        ((*manager, "disable", "--now", UNIT),),
    )


def quote_word(word: str) -> str:
    """Return a word as systemd reads it: in quotes, without its specifiers and variables."""
    quoted = word.replace("\\", "\\\\").replace('"', '\\"')
    quoted = quoted.replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'


def run_all(commands: Sequence[Sequence[str]]) -> str:
    """Run the manager's commands up to the first that fails; return what is wrong, or nothing."""
    for command in commands:
        program = shutil.which(command[0])
        if program is None:
            return f"{command[0]} is not installed"
        ended = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            said = ended.stderr.strip() or ended.stdout.strip()
            return f"{' '.join(command)}: {said or ended.returncode}"
    return ""
