"""``fgrep mcp``: bytes between a host and the daemon, bound to the host's project. Standard library only.

Standard output carries the protocol and nothing else; what goes wrong before it begins is said on standard error.
"""

import os
import sys
from collections.abc import Mapping
from socket import socket

from flashgrep.connect import as_latin1, connect_or_alone, send_request
from flashgrep.paths import Paths, state_folder
from flashgrep.relay import Relay

USAGE = """usage: fgrep mcp [OPTIONS]

Speak the Model Context Protocol over stdin and stdout; starts the daemon if none runs.

  --project P          the project, by name or path
  --collection C       the project to search, by the name of its collection
  --collections A,B,C  several of them
  --toolsets A,B       tools to list: core, research (both by default), collections, knowledge, specs, fs, admin, all
  --read-only          neither list nor run what writes

Without a project: CLAUDE_PROJECT_DIR or WORKSPACE_FOLDER_PATHS, else the client's roots, else the repository around
the current folder.
"""
VALUES = {
    "--project": "project",
    "--collection": "collections",
    "--collections": "collections",
    "--toolsets": "toolsets",
}
HOST_FOLDERS = ("CLAUDE_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS", "WORKSPACE_FOLDER")
"""Variables in which hosts name the folder they have open; the second may list several, separated by commas."""
LINGER_SECONDS = 0.8
"""Answers still on their way when the host ends its input get this long; a host waits for about a second."""


def main(arguments: list[str]) -> int:
    """Serve a host until it ends, whatever becomes of the daemon."""
    if "--help" in arguments or "-h" in arguments:
        os.write(1, USAGE.encode())
        return 0
    paths, asked = Paths(state_folder(os.environ)), choice(arguments, os.environ, os.getcwd())

    def connect_bound() -> socket:
        connection = connect_or_alone(paths, os.environ)
        try:
            _bind(connection, asked)
        except BaseException:
            connection.close()
            raise
        return connection

    Relay(connect_bound, watched=_parent(), linger=LINGER_SECONDS).run(connect_bound())
    return 0


def choice(arguments: list[str], environ: Mapping[str, str], folder: str) -> dict[str, object]:
    """Return what to bind the connection to.

    Raises:
        ValueError: an argument is none of ours, or lacks its value.

    """
    asked: dict[str, object] = {}
    rest = [part for argument in arguments for part in _parted(argument)]
    while rest:
        option = rest.pop(0)
        if option == "--read-only":
            asked["read_only"] = True
        elif option in VALUES and rest:
            if VALUES[option] in asked:
                raise ValueError(f"mcp: {option}: given twice, takes one value")
            asked[VALUES[option]] = _value(option, rest.pop(0), folder)
        else:
            why = "a value is missing" if option in VALUES else "no such option; see fgrep mcp --help"
            raise ValueError(f"mcp: {option}: {why}")
    if not asked.keys() & {"project", "collections"}:
        named = host_folder(environ)
        if named is not None:
            asked["folder"] = as_latin1(named)
        asked["fallback"] = as_latin1(folder)
    return asked


def host_folder(environ: Mapping[str, str]) -> str | None:
    """Return the folder the host says it has open, if there is one."""
    for name in HOST_FOLDERS:
        value = environ.get(name, "")
        for folder in (value, *value.split(",")):
            if os.path.isabs(folder) and os.path.isdir(folder):
                return folder
    return None


def _parted(argument: str) -> list[str]:
    name, equals, value = argument.partition("=")
    return [name, value] if equals and name in VALUES else [argument]


def _value(option: str, text: str, folder: str) -> object:
    if option == "--project":
        path = "/" in text or text in {".", ".."}
        return as_latin1(os.path.realpath(os.path.join(folder, text)) if path else text)
    return [text] if option == "--collection" else [one for one in text.split(",") if one]


def _bind(connection: socket, asked: dict[str, object]) -> None:
    """Bind the connection.

    Raises:
        ValueError: the daemon refuses.

    """
    error = send_request(connection, "$/bind", asked).get("error")
    if error is not None and str(error["code"]) == "-32601":
        raise ValueError(
            "mcp: the Model Context Protocol is switched off (settings mcp.enabled and mcp.transport), "
            "or an older daemon runs (fgrep daemon restart)"
        )
    if error is not None:
        raise ValueError(f"mcp: {error['message']}")


def _parent() -> int | None:
    """Return a descriptor that becomes readable when the process that started us ends, where the system has such."""
    opening = getattr(os, "pidfd_open", None)
    if opening is None or sys.platform != "linux":
        return None
    try:
        descriptor: int = opening(os.getppid())
    except OSError:  # it is gone already, or the kernel or a sandbox does not allow it: the end of input will tell
        return None
    return descriptor
