"""``scripts/start``: start the daemon, index a folder, run a first query, and show the next steps."""

import shlex
import subprocess
import sys
from pathlib import Path

from flashgrep.cli.daemon_commands import start
from flashgrep.cli.index_command import add_project, show_progress

FIRST_QUERIES = ("def main", "main(", "TODO", "the")
"""Tried in order if no query is given, until one has a hit."""
REQUEST = '{"jsonrpc":"2.0","id":1,"method":"stats"}'
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
    """Return what may come next, in lines that only a long path makes wider than 80 columns."""
    programs = Path(sys.executable).parent
    lines = [
        f'commands   export PATH="{programs}:$PATH"',
        f"           cd {shlex.quote(str(folder))}",
        "           fgrep query TEXT, fgrep files NAME, fgrep read FILE, fgrep --help",
        "agents     flashgrep install, or in the settings of an MCP host:",
        '           {"mcpServers": {"flashgrep": {',
        f'             "command": "{programs / "flashgrep"}",',
        '             "args": ["mcp"]}}}',
        "editors    JSON-RPC 2.0 on the socket .flashgrep/mcp.sock of the folder",
        f"scripts    echo '{REQUEST}' | flashgrep rpc",
        "stop       fgrep daemon stop; to remove all of it: fgrep uninstall",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
