"""The core declared as a part is: its methods in the order in which they are listed, and its commands."""

from flashgrep.api.part import Part, StdioProtocol
from flashgrep.methods import batch, bootstrap, indexing, listing, query, reading

CORE = Part(
    name="core",
    summary="Text, lines and files of projects, and the state of their indexes, from one daemon.",
    handlers=(
        *query.HANDLERS,
        *reading.HANDLERS,
        *listing.HANDLERS,
        *indexing.HANDLERS,
        *bootstrap.HANDLERS,
        *batch.HANDLERS,
    ),
    commands={
        "index": "flashgrep.cli.index_command:index",
        "doctor": "flashgrep.cli.doctor:doctor",
        "version": "flashgrep.cli.app:print_version",
        "rpc": "flashgrep.cli.commands:rpc",
        "projects": "flashgrep.cli.index_command:app",
        "store": "flashgrep.cli.index_command:store_app",
        "daemon": "flashgrep.cli.daemon_commands:app",
        "config": "flashgrep.cli.config_command:app",
        "call": "flashgrep.cli.call_command:call",
        "top": "flashgrep.cli.top_command:top",
    },
    protocols={
        "mcp": StdioProtocol(
            module="flashgrep.mcp.stdio",
            summary="Speak the Model Context Protocol over stdin and stdout.",
        ),
    },
)
"""What there is without any part."""
