"""``fgrep mcp``: relays bytes between a host and the daemon, bound to the host's project. Standard library only.

Stdout carries only the protocol; errors before it starts go to stderr.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from socket import socket

from flashgrep.base.paths import PATH_MAP_VARIABLE, Paths, as_latin1, state_folder
from flashgrep.base.program_name import name_program
from flashgrep.rpc.connect import NO_SUCH_METHOD, connect_or_alone, send_request
from flashgrep.rpc.relay import Relay

USAGE = """usage: fgrep mcp [OPTIONS]

Speak the Model Context Protocol over stdin and stdout; start the daemon if it is not running.

  --project P          the project, by name or path; may be given several times
  --collection C       the project to search, by the name of its collection
  --collections A,B,C  several of them
  --toolsets A,B       tools to list: default (few tools of core and research), core, research, compat (all of
                       both), collections, knowledge, specs, fs, structural, all, editors (which `all`
                       leaves out)
  --read-only          neither list nor run what writes
  --path-map A=B,C=D   folder A here is folder B where the daemon runs (a container, WSL); also FLASHGREP_PATH_MAP
  --structured         for programs: answers as JSON, with structured content and output schemas

Without a project: CLAUDE_PROJECT_DIR or WORKSPACE_FOLDER_PATHS, else the client's roots, else the repository around
the current folder, else that folder itself, only to be read.
"""
VALUES = {
    "--project": "project",
    "--collection": "collections",
    "--collections": "collections",
    "--toolsets": "toolsets",
    "--path-map": "path_map",
}
FLAGS = {"--read-only": "read_only", "--structured": "structured"}
HOST_FOLDERS = ("CLAUDE_PROJECT_DIR", "WORKSPACE_FOLDER_PATHS", "WORKSPACE_FOLDER")
"""Variables in which hosts name their open folder; the second may list several, separated by commas."""
SWITCHED_OFF = (
    "mcp: the Model Context Protocol is switched off (settings mcp.enabled and mcp.transport), "
    "or an older daemon is running (fgrep daemon restart)"
)
LINGER_SECONDS = 0.8
"""Time for pending answers after the host closes its input; hosts wait about a second."""


def main(arguments: list[str]) -> int:
    """Serve a host until it ends, even if the daemon exits."""
    if "--help" in arguments or "-h" in arguments:
        os.write(1, name_program(USAGE).encode())
        return 0
    paths = Paths(state_folder(os.environ))
    binding = parse_arguments(arguments, os.environ, os.getcwd())
    if PATH_MAP_VARIABLE in os.environ:
        binding.setdefault("path_map", [os.environ[PATH_MAP_VARIABLE]])

    def connect_bound() -> socket:
        connection = connect_or_alone(paths, os.environ)
        try:
            error = send_request(connection, "$/bind", binding).get("error")
        except BaseException:
            connection.close()
            raise
        if error is not None:
            connection.close()
            raise ValueError(
                SWITCHED_OFF
                if str(error["code"]) == NO_SUCH_METHOD
                else f"mcp: {error['message']}"
            )
        return connection

    parent = None
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        # Becomes readable when the parent process ends. If it is not available (the
        # parent is already gone, or the kernel or a sandbox does not allow it), the end
        # of input has to do.
        with suppress(OSError):
            parent = os.pidfd_open(os.getppid())
    Relay(connect_bound, watched=parent, linger=LINGER_SECONDS).run(connect_bound())
    return 0


def parse_arguments(
    arguments: list[str], environ: Mapping[str, str], folder: str
) -> dict[str, object]:
    """Return the parameters of ``$/bind`` for these arguments.

    Raises:
        ValueError: an argument is unknown, lacks its value, or is repeated.

    """
    binding: dict[str, object] = {}
    projects: list[str] = []
    rest: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        # An unknown option stays whole, as the error has to name it.
        if equals and name in VALUES:
            rest += [name, value]
        else:
            rest.append(argument)
    while rest:
        option = rest.pop(0)
        field = VALUES.get(option, "")
        if option in FLAGS:
            binding[FLAGS[option]] = True
        elif not field or not rest:
            why = (
                "a value is missing"
                if field
                else "no such option; see fgrep mcp --help"
            )
            raise ValueError(f"mcp: {option}: {why}")
        elif option == "--project":
            projects.append(name_project(rest.pop(0), folder))
        elif field in binding:
            raise ValueError(f"mcp: {option}: given twice, takes one value")
        else:
            text = rest.pop(0)
            binding[field] = (
                [text]
                if option == "--collection"
                else [name for name in text.split(",") if name]
            )
    if len(projects) == 1:
        binding["project"] = projects[0]
    elif projects:
        binding["projects"] = projects
    if not projects and "collections" not in binding:
        named = find_host_folder(environ)
        if named is not None:
            binding["folder"] = as_latin1(named)
        binding["fallback"] = as_latin1(folder)
    return binding


def name_project(text: str, folder: str) -> str:
    """Return a project's name, or its absolute path where a path is given, as ``$/bind`` takes it."""
    if "/" in text or text in {".", ".."}:
        return as_latin1(os.path.realpath(os.path.join(folder, text)))
    return as_latin1(text)


def find_host_folder(environ: Mapping[str, str]) -> str | None:
    """Return the host's open folder, if it names one."""
    for name in HOST_FOLDERS:
        value = environ.get(name, "")
        for folder in (value, *value.split(",")):
            if os.path.isabs(folder) and os.path.isdir(folder):
                return folder
    return None
