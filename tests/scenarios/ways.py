"""The ways to a running daemon: bare JSON-RPC on three wires and the Model Context Protocol on four, as one call."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.conftest import DaemonAtHand, Wire
from tests.support.mcp_clients import McpClient, token_of, transport

PLAIN: Final = ("unix", "tcp", "stdio")
MCP: Final = ("mcp unix", "mcp tcp", "mcp stdio", "mcp http")
EVERY: Final = (*PLAIN, *MCP)


@dataclass(slots=True)
class Way:
    """One connection to a project, whatever carries it."""

    name: str
    wire: Wire | None = None
    mcp: McpClient | None = None

    def result(self, method: str, **params: Any) -> Any:
        """Return the result of a call that succeeds."""
        if self.wire is not None:
            return self.wire.call(method, **params)
        told = self._told(method, params)
        assert told["isError"] is False, told
        return told["structuredContent"]

    def error(self, method: str, **params: Any) -> Any:
        """Return the error object of a call that fails."""
        if self.wire is not None:
            return self.wire.fail(method, **params)
        told = self._told(method, params)
        assert told["isError"] is True, told
        return told["structuredContent"]

    def _told(self, method: str, params: dict[str, Any]) -> Any:
        assert self.mcp is not None
        return self.mcp.call(method, **params)

    def close(self) -> None:
        """Hang up."""
        if self.wire is not None:
            self.wire.close()
        if self.mcp is not None:
            self.mcp.transport.close()


@contextmanager
def ways(
    daemon: DaemonAtHand, root: Path, names: Sequence[str] = EVERY
) -> Iterator[list[Way]]:
    """Connect to a project in each of these ways, with the right to write."""
    daemon.add(root)
    with ExitStack() as opened:
        yield [
            opened.enter_context(closing(_way(daemon, root, name))) for name in names
        ]


def _way(daemon: DaemonAtHand, root: Path, name: str) -> Way:
    return _mcp(daemon, root, name) if name in MCP else _plain(daemon, root, name)


def _plain(daemon: DaemonAtHand, root: Path, name: Any) -> Way:
    wire = daemon.wire(name, root)
    if name == "tcp":
        wire.call("auth", token=token_of(daemon))
    return Way(name, wire=wire)


def _mcp(daemon: DaemonAtHand, root: Path, name: str) -> Way:
    carrier = name.removeprefix("mcp ").replace("stdio", "shim")
    client = McpClient(transport(carrier, daemon, root, toolsets="compat"), "legacy")
    client.start()
    return Way(name, mcp=client)
