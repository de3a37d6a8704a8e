"""``fgrep daemon install-service``: have the system's manager of services keep the user's daemon running."""

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.base.installation import REPOSITORY
from flashgrep.base.program_name import tell
from flashgrep.cli.daemon_client import fail, failing_cleanly
from flashgrep.cli.stopping import stop_daemon

LABEL = "io.github.flashgrep"
UNIT = "flashgrep.service"
FOLDERS = ("FLASHGREP_STATE_DIR", "FLASHGREP_CACHE_DIR")
UNIT_TEXT = """\
[Unit]
Description=flashgrep, the code search daemon
Documentation={repository}

[Service]
{environment}ExecStart={command}
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
    """End the service and remove its file; without one, or if it serves another state folder, do nothing."""
    service = describe_service()
    if not service.file.exists():
        return
    if not serves_this_state(service.file.read_bytes()):
        note = f"fgrep: left alone, of another state folder: {service.file}\n"
        tell(note)
        return
    # Its file goes even if the manager fails: else every login would start it again.
    problem = run_all(service.end)
    if problem:
        note = f"fgrep: the service was not ended: {problem}\n"
        tell(note)
    service.file.unlink(missing_ok=True)
    typer.echo(f"removed {service.file}")


def serves_this_state(text: bytes) -> bool:
    """Return whether a service's file names the folders that this process uses."""
    if sys.platform == "darwin":
        variables = plistlib.loads(text).get("EnvironmentVariables", {})
        return bool(variables == find_folders())
    named = [line for line in text.splitlines() if line.startswith(b"Environment=")]
    return named == write_environment(find_folders()).encode().splitlines()


def find_folders() -> dict[str, str]:
    """Return the variables that name other folders than the usual ones: at login they are not set."""
    return {
        name: str(Path(os.environ[name]).absolute())
        for name in FOLDERS
        if os.environ.get(name)
    }


def write_environment(variables: Mapping[str, str]) -> str:
    """Return the lines that set variables in a unit."""
    lines = [
        f"Environment={quote_value(f'{name}={value}')}\n"
        for name, value in variables.items()
    ]
    return "".join(lines)


def describe_service() -> Service:
    """Return the service as this system's manager takes it."""
    home = Path.home()
    # Not the script fgrep: that may become grep, and PATH differs at login.
    command = [sys.executable, "-m", "flashgrep", "daemon", "run", "--idle-minutes=0"]
    if sys.platform == "darwin":
        file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        job = {
            "Label": LABEL,
            "ProgramArguments": command,
            "EnvironmentVariables": find_folders(),
            "RunAtLoad": True,
        }
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
        UNIT_TEXT.format(
            repository=REPOSITORY,
            command=words,
            environment=write_environment(find_folders()),
        ).encode(),
        ((*manager, "daemon-reload"), (*manager, "enable", "--now", UNIT)),
        ((*manager, "disable", "--now", UNIT),),
    )


def quote_word(word: str) -> str:
    """Return a word as systemd reads it: in quotes, without its specifiers and variables."""
    return quote_value(word.replace("$", "$$"))


def quote_value(value: str) -> str:
    """Return the value of a variable as systemd reads it, where a dollar sign means itself."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
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
