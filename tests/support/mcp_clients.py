"""A client of the protocol for every wire and both eras, with messages written by hand."""

import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlencode

from tests.conftest import BOUND, FGREP, DaemonAtHand, Wire

Era = Literal["legacy", "modern"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Failed(Exception):
    """The answer was an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}


class Transport(Protocol):
    """Carries one request at a time."""

    def exchange(self, message: dict[str, Any]) -> Any:
        """Send a message and return the answer to it, None for a notification."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(slots=True)
class McpClient:
    """Speaks one era over one transport."""

    transport: Transport
    era: Era
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def start(self) -> None:
        """Do the handshake, if the era has one."""
        if self.era == "legacy":
            self.request("initialize", **INITIALIZE)
            self.transport.exchange(
                {"jsonrpc": "2.0", "method": "notifications/initialized"}
            )

    def request(self, method: str, **params: Any) -> Any:
        """Return a method's result.

        Raises:
            Failed: it is an error.

        """
        given = (
            {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
            if self.era == "modern"
            else params
        )
        answer = self.transport.exchange(
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": given}
        )
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Return the result of a tool."""
        return self.request("tools/call", name=tool, arguments=arguments)


@dataclass(slots=True)
class LineTransport:
    """A socket, or one connected to a process's stdin and stdout."""

    wire: Wire

    def exchange(self, message: dict[str, Any]) -> Any:
        """Send a line, and return the line with its answer."""
        self.wire.send(message)
        return self.wire.receive() if "id" in message else None

    def close(self) -> None:
        """Close the connection."""
        self.wire.close()


@dataclass(slots=True)
class HttpTransport:
    """One POST for each message."""

    port: int
    token: str
    query: dict[str, str]

    def exchange(self, message: dict[str, Any]) -> Any:
        """Post a message and return the answer from the body, plain or as events."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        try:
            connection.request(
                "POST",
                f"/mcp?{urlencode(self.query)}",
                json.dumps(message),
                self._headers(message),
            )
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if "id" not in message:
            assert answer.status == 202
            return None
        if (answer.getheader("content-type") or "").startswith("text/event-stream"):
            body = [line for line in body.splitlines() if line.startswith("data: {")][
                -1
            ].removeprefix("data: ")
        return json.loads(body)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        modern = f"{PREFIX}protocolVersion" in message.get("params", {}).get(
            "_meta", {}
        )
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN if modern else LEGACY,
        }
        if modern:
            headers["Mcp-Method"] = message["method"]
            name = message["params"].get(NAMED.get(message["method"], ""))
            headers |= {"Mcp-Name": name} if isinstance(name, str) else {}
        return headers


def shim_wire(
    daemon: DaemonAtHand, *options: str, cwd: Path | str = "/", **environ: str
) -> Wire:
    """Start ``fgrep mcp`` for a program, which reads structured content, with its input and output on a socket."""
    return model_wire(daemon, "--structured", *options, cwd=cwd, **environ)


def model_wire(
    daemon: DaemonAtHand, *options: str, cwd: Path | str = "/", **environ: str
) -> Wire:
    """Start ``fgrep mcp`` like a host for a model, which reads text."""
    ours, theirs = socket.socketpair()
    ours.settimeout(BOUND)
    with theirs:
        process = subprocess.Popen(
            [FGREP, "mcp", *options],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            env={**daemon.environ, **environ},
            cwd=cwd,
        )
    return Wire("stdio", ours, None, process)


def open_http(daemon: DaemonAtHand) -> int:
    """Have the daemon serve HTTP on any free port until it is stopped, and return the port."""
    port: int = daemon.serve_http()["port"]
    return port


def token_of(daemon: DaemonAtHand) -> str:
    """Return the daemon's token."""
    return Path(daemon.paths.token).read_text(encoding="ascii").strip()


def transport(
    name: str,
    daemon: DaemonAtHand,
    root: Path,
    *,
    structured: bool = True,
    toolsets: str = "default",
) -> Transport:
    """Return a transport bound to a project; ``structured``: for a program, not for a model."""
    if name == "http":
        asked = {"project": str(root), "toolsets": toolsets}
        if structured:
            asked["structured"] = "1"
        return HttpTransport(open_http(daemon), token_of(daemon), asked)
    if name == "shim":
        start = shim_wire if structured else model_wire
        options = ("--project", str(root), "--toolsets", toolsets)
        return LineTransport(start(daemon, *options))
    wire = daemon.wire("tcp" if name == "tcp" else "unix")
    if name == "tcp":
        wire.call("auth", token=token_of(daemon))
    wire.call("$/bind", project=str(root), structured=structured, toolsets=[toolsets])
    return LineTransport(wire)
