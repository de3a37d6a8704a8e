"""The commands that run in their own process. Each imports what it needs when it is called, and nothing before."""

import platform
import sys
from importlib import import_module

from flashgrep import __version__

VERSION = (["--version"], ["version"])
STATUS = ["daemon", "status"]
STATUS_MODULE = "flashgrep.cli.status"
COMMANDS_MODULE = "flashgrep.cli.commands"


def main(arguments: list[str]) -> int:
    """Run a command and return its exit status."""
    if arguments in VERSION:  # these two are asked all the time, and typer takes longer than their answer
        print_version()
        return 0
    if arguments[:2] == STATUS and set(arguments[2:]) <= {"--json"}:
        return int(import_module(STATUS_MODULE).show_status(as_json=len(arguments) > len(STATUS)))
    return int(import_module(COMMANDS_MODULE).main(arguments))


def print_version() -> None:
    """Print the version of flashgrep and of the Python it runs on."""
    system = f"{platform.system()} {platform.machine()}"
    version = f"flashgrep {__version__} ({system}, {platform.python_implementation()} {platform.python_version()})"
    sys.stdout.write(f"{version}\n")
