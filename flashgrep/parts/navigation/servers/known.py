"""The known language servers, how each one is started, and which of its features are turned off.

A server has the user's rights, and some run programs that a project names (build scripts, macros, toolchains to be
downloaded). All of that which can be turned off is turned off here. No server is started unless the user's settings
name its language.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from flashgrep.base.paths import find_program

_PASSED_ON: Final = (
    "PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "RUSTUP_HOME", "VIRTUAL_ENV",
)  # fmt: skip
"""The variables that servers need to find their tools; the user's keys and tokens are not passed on."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A language server, its languages, and how it is started."""

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
    # A background index would be written into the project, and a project's `.clangd`
    # may add compiler flags.
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
        # Nothing is downloaded, neither modules nor the toolchain that go.mod requires.
        {"GOPROXY": "off", "GOTOOLCHAIN": "local", "GOSUMDB": "off", "GOVCS": "*:off"},
    ),
    KnownServer(_CLANGD, frozenset({"c", "cpp"})),
    KnownServer(
        ("rust-analyzer",),
        frozenset({"rust"}),
        # Build scripts and procedural macros are programs of the project.
        {
            "cargo": {"buildScripts": {"enable": False}},
            "procMacro": {"enable": False},
            "checkOnSave": False,
        },
        {"CARGO_NET_OFFLINE": "true"},
    ),
    KnownServer(
        ("typescript-language-server", "--stdio"),
        _SCRIPTS,
        {
            "disableAutomaticTypingAcquisition": True,
            "tsserver": {"useSyntaxServer": "never"},
        },
    ),
)
"""If a language has several servers, the first one that is installed is used."""


def find_server(
    language: str, environ: Mapping[str, str], root: bytes
) -> tuple[KnownServer, str] | None:
    """Return the installed server of a language with its program; None if there is none outside of the project.

    A program in the project is never run: PATH may include the project's `bin`, which the user need not have written.
    """
    inside = Path(os.fsdecode(root)).resolve()
    for known_server in SERVERS:
        if language in known_server.languages:
            program = find_program(known_server.name, environ)
        else:
            program = None
        # Neither its path nor the target of a symbolic link may be in the project.
        if program is not None and not any(
            Path(at).is_relative_to(inside)
            for at in (program, os.path.realpath(program))
        ):
            return known_server, program
    return None


def choose_environ(server: KnownServer, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server."""
    return {name: environ[name] for name in _PASSED_ON if name in environ} | dict(
        server.environ
    )


PROTOCOL_NAMES: Final = {
    "bash": "shellscript",
    "batch": "bat",
    "docker": "dockerfile",
    "make": "makefile",
    "objc": "objective-c",
    "objcpp": "objective-cpp",
    "tsx": "typescriptreact",
}
"""Names of languages in the Language Server Protocol, where they differ from ours."""
