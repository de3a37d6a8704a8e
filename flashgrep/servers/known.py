"""Which language servers are known, how each is started, and what it is told not to do.

A server reads a project with the user's rights, and some run what the project says (build scripts, macros, toolchains
to be downloaded). What can be turned off is, here; none is started unless the user's settings name its language.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from flashgrep.paths import find_program

_PASSED_ON: Final = (
    "PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "VIRTUAL_ENV",
)  # fmt: skip
"""What servers find their tools by; keys and tokens of the user's are not handed on."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A language server, the languages that it is asked about, and what it is started with."""

    command: tuple[str, ...]
    languages: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Sent as `initializationOptions`."""
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The program's name."""
        return self.command[0]


_PYTHON: Final = frozenset({"python"})
_SCRIPTS: Final = frozenset({"javascript", "typescript", "tsx"})
_CLANGD: Final = (
    # An index in the background is written into the project; a project's `.clangd` may add flags to the compiler.
    "clangd", "--background-index=false", "--enable-config=false", "--clang-tidy=false", "--pch-storage=memory", "-j=2",
)  # fmt: skip
SERVERS: Final = (
    KnownServer(("basedpyright-langserver", "--stdio"), _PYTHON),
    KnownServer(("pyright-langserver", "--stdio"), _PYTHON),
    KnownServer(("pylsp",), _PYTHON),
    KnownServer(
        ("jedi-language-server",),
        _PYTHON,
        {"diagnostics": {"enable": False}, "workspace": {"symbols": {"maxSymbols": 1}}},
    ),
    KnownServer(
        ("gopls",),
        frozenset({"go"}),
        {"vulncheck": "Off"},
        # Nothing is downloaded: neither modules nor the toolchain that go.mod asks for.
        {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOSUMDB": "off", "GOVCS": "*:off"},
    ),
    KnownServer(_CLANGD, frozenset({"c", "cpp"})),
    KnownServer(
        ("rust-analyzer",),
        frozenset({"rust"}),
        # Build scripts and macros are the project's own programs.
        {"cargo": {"buildScripts": {"enable": False}}, "procMacro": {"enable": False}, "checkOnSave": False},
        {"CARGO_NET_OFFLINE": "true"},
    ),
    KnownServer(
        ("typescript-language-server", "--stdio"),
        _SCRIPTS,
        {"disableAutomaticTypingAcquisition": True, "tsserver": {"useSyntaxServer": "never"}},
    ),
)
"""Of two for a language the first that is installed is asked."""


def find_server(language: str, environ: Mapping[str, str], root: bytes) -> tuple[KnownServer, str] | None:
    """Return the installed server of a language with its program; None: there is none outside of the project.

    A program in the project is not run: PATH may have the project's own `bin`, and whoever wrote that is not the user.
    """
    inside = Path(os.fsdecode(root)).resolve()
    for one in SERVERS:
        program = find_program(one.name, environ) if language in one.languages else None
        # Neither by its name nor where a link leads.
        if program is not None and not any(
            Path(at).is_relative_to(inside) for at in (program, os.path.realpath(program))
        ):
            return one, program
    return None


def choose_environ(server: KnownServer, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a server is started with."""
    return {name: environ[name] for name in _PASSED_ON if name in environ} | dict(server.environ)
