"""The table of commands: each with its kind, its summary and its target, so that the client need not import them.

The table of what comes with flashgrep is generated (``commands.tsv``); a daemon with parts of other packages writes
theirs into the state folder.
"""

import logging
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from flashgrep.api.part import Part, make_registry
from flashgrep.base.paths import Paths
from flashgrep.base.plain_files import replace_plain_file
from flashgrep.base.registry import Registry
from flashgrep.cli.launcher import LOCAL, STDIO, TABLE, read_commands

logger = logging.getLogger(__name__)


def format_table(registry: Registry, parts: Iterable[Part]) -> str:
    """Return the commands of parts: methods first, then the others, a line each."""
    parts = tuple(parts)
    rows: list[tuple[str, str, str, str]] = []
    for part in parts:
        for handler in part.handlers:
            rows.append(
                (
                    handler.command,
                    handler.safety,
                    registry.name_commands(handler.summary),
                    "",
                )
            )
    for part in parts:
        for name, target in part.commands.items():
            # Imported by name: typer takes 0.1 s, and most daemons have no other parts.
            command = import_module("flashgrep.cli.commands").load_target(name, target)
            rows.append((name, LOCAL, command.help.partition("\n")[0], target))
        for name, protocol in part.protocols.items():
            rows.append((name, STDIO, protocol.summary, protocol.module))
    return "".join("\t".join(row) + "\n" for row in rows)


def write_table(paths: Paths, parts: Sequence[Part]) -> None:
    """Write the commands of other packages' parts into the state folder; remove the table if there are none."""
    known_commands = read_commands()
    others: list[Part] = []
    for part in parts:
        commands = (
            {handler.command for handler in part.handlers}
            | set(part.commands)
            | set(part.protocols)
        )
        if not commands <= known_commands.keys():
            others.append(part)
    file = Path(paths.state, TABLE)
    try:
        if others:
            replace_plain_file(file, format_table(make_registry(parts), others))
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("the commands of other packages are not written: %s", error)
