"""The parts that come with flashgrep, each after those it requires, and the registry of all their methods."""

from flashgrep.api.part import Part, StdioProtocol, make_registry
from flashgrep.methods.core_methods import CORE_HANDLERS
from flashgrep.parts.collections import part as collections
from flashgrep.parts.edit import part as edit
from flashgrep.parts.git import part as git
from flashgrep.parts.hosts import part as hosts
from flashgrep.parts.http import part as http
from flashgrep.parts.lsp import part as lsp
from flashgrep.parts.meaning import part as meaning
from flashgrep.parts.navigation import part as navigation
from flashgrep.parts.pick import part as pick
from flashgrep.parts.ripgrep import part as ripgrep
from flashgrep.parts.specs import part as specs
from flashgrep.parts.structural import part as structural
from flashgrep.parts.symbols import part as symbols
from flashgrep.parts.team import part as team

CORE = Part(
    name="core",
    summary="Text, lines and files of projects, and the state of their indexes, from one daemon.",
    handlers=CORE_HANDLERS,
    commands={
        "index": "flashgrep.cli.index_command:index",
        "doctor": "flashgrep.cli.doctor:doctor",
        "version": "flashgrep.cli.app:print_version",
        "rpc": "flashgrep.cli.commands:rpc",
        "projects": "flashgrep.cli.index_command:app",
        "store": "flashgrep.cli.index_command:store_app",
        "daemon": "flashgrep.cli.daemon_commands:app",
        "config": "flashgrep.cli.config_command:app",
    },
    protocols={
        "mcp": StdioProtocol(
            module="flashgrep.mcp.stdio",
            summary="Speak the Model Context Protocol over stdin and stdout.",
        ),
    },
)
"""What there is without any part."""

BUILT_IN: tuple[Part, ...] = (
    edit.PART,
    symbols.PART,
    navigation.PART,
    meaning.PART,
    structural.PART,
    git.PART,
    collections.PART,
    specs.PART,
    ripgrep.PART,
    http.PART,
    hosts.PART,
    pick.PART,
    team.PART,
    lsp.PART,
)

REGISTRY = make_registry((CORE, *BUILT_IN))
