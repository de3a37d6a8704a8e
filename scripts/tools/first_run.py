"""``scripts/start``: start the daemon, index a folder, run a first query, and show the next steps."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from flashgrep.cli.daemon_client import ask_daemon
from flashgrep.cli.daemon_commands import start
from flashgrep.cli.index_command import add_project, show_progress

FIRST_QUERIES = ("def main", "main(", "TODO", "the")
"""Tried in order if no query is given, until one has a hit."""
FOUND = 0


def main(arguments: list[str]) -> int:
    """Run the steps; the arguments are the folder and the query, which may be empty."""
    folder, query = Path(arguments[0]).resolve(), arguments[1]
    try:
        _say("The daemon")
        start()
        _say(f"The index of {folder}")
        opened = add_project(folder)
        show_progress(opened["root"])
    except SystemExit as ended:
        return int(ended.code or 0)
    status = _first_query(folder, query)
    _say("Next steps")
    sys.stdout.write(_next_steps(folder))
    return status


def _first_query(folder: Path, query: str) -> int:
    status = FOUND + 1
    for text in [query] if query else FIRST_QUERIES:
        _say(f"fgrep query '{text}'")
        status = subprocess.run(
            [_fgrep(), "query", text, "--limit", "5"], cwd=folder, check=False
        ).returncode
        if status == FOUND:
            break
    return status


def _say(title: str) -> None:
    sys.stdout.write(f"\n== {title}\n")
    sys.stdout.flush()


def _fgrep() -> str:
    return str(Path(sys.executable).with_name("fgrep"))


def _next_steps(folder: Path) -> str:
    tcp = ask_daemon("$/status")["tcp"]
    port = tcp and tcp["port"]
    home = os.path.relpath(Path(sys.executable).parent)
    request = shlex.quote(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "stats",
                "params": {"project": str(folder)},
            }
        )
    )
    lines = [
        f'commands   export PATH="{Path(sys.executable).parent}:$PATH"   (or call {home}/fgrep)',
        f"           cd {shlex.quote(str(folder))}",
        "           fgrep query TEXT · fgrep files NAME · fgrep slice FILE 10 40 · fgrep --help",
        f'MCP host   {{"mcpServers": {{"flashgrep": {{"command": "{_fgrep()}", "args": ["mcp"]}}}}}}',
        f"editor     JSON-RPC 2.0 lines on the Unix socket {folder}/.flashgrep/mcp.sock",
        *([f"netcat     echo {request} | nc -N 127.0.0.1 {port}"] if port else []),
        "stop       fgrep daemon stop          remove all of it    fgrep uninstall",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
