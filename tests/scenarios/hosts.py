"""An agent's host: it starts ``fgrep mcp`` as a process and speaks the Model Context Protocol over its two pipes."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.conftest import BOUND, DaemonAtHand, Wire
from tests.support.mcp_clients import INITIALIZE, open_http, shim_wire, token_of


@dataclass(slots=True)
class Host:
    """One client; what comes beside the answers is kept in ``notices``."""

    wire: Wire
    initialized: dict[str, Any] = field(default_factory=dict)
    notices: list[dict[str, Any]] = field(default_factory=list)
    _asked: int = 0

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the whole answer."""
        self._asked += 1
        self.wire.send(
            {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        )
        while (message := self.wire.receive()).get("id") != self._asked:
            self.notices.append(message)
        assert isinstance(message, dict)
        return message

    def tools(self) -> dict[str, dict[str, Any]]:
        """Return what is listed, by name."""
        return {
            tool["name"]: tool for tool in self.request("tools/list")["result"]["tools"]
        }

    def call(self, tool: str, **arguments: Any) -> Any:
        """Return what a tool answers."""
        told = self._called(tool, arguments)
        assert not told["isError"], told
        return told["structuredContent"]

    def fail(self, tool: str, **arguments: Any) -> Any:
        """Return the error of a tool that is to fail."""
        told = self._called(tool, arguments)
        assert told["isError"], told
        return told["structuredContent"]

    def follow(self, tool: str, **arguments: Any) -> tuple[Any, list[dict[str, Any]]]:
        """Return what a tool answers, and the progress it reported."""
        self.notices.clear()
        meta = {"progressToken": "p"}
        told = self.request("tools/call", name=tool, arguments=arguments, _meta=meta)[
            "result"
        ]
        assert not told["isError"], told
        reports = [
            notice["params"]
            for notice in self.notices
            if notice["method"] == "notifications/progress"
        ]
        assert all(report["progressToken"] == "p" for report in reports)
        return told["structuredContent"], reports

    def _called(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.request("tools/call", name=tool, arguments=arguments)["result"]


@contextmanager
def host(
    daemon: DaemonAtHand, *options: str, cwd: Path | str = "/", **environ: str
) -> Iterator[Host]:
    """Start a host and shake hands."""
    wire = shim_wire(daemon, *options, cwd=cwd, **environ)
    try:
        opened = Host(wire)
        opened.initialized = opened.request("initialize", **INITIALIZE)["result"]
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield opened
    finally:
        wire.close()


def post(daemon: DaemonAtHand, path: str, body: Any) -> tuple[int, Any]:
    """Post JSON to the daemon's HTTP wire, which opens for it; return the status, and the answer if that is JSON."""
    return _exchange(daemon, "POST", path, json.dumps(body))


def get(daemon: DaemonAtHand, path: str) -> Any:
    """Return what the daemon's HTTP wire has at a path."""
    status, told = _exchange(daemon, "GET", path, None)
    assert status == HTTPStatus.OK, told
    return told


def _exchange(
    daemon: DaemonAtHand, method: str, path: str, body: str | None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(
        "127.0.0.1", open_http(daemon), timeout=BOUND
    )
    headers = {
        "Authorization": f"Bearer {token_of(daemon)}",
        "Content-Type": "application/json",
    }
    headers["Accept"] = "application/json, text/event-stream"
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        is_json = (answer.getheader("Content-Type") or "").startswith(
            "application/json"
        )
        return answer.status, json.loads(answer.read()) if is_json else None
    finally:
        connection.close()
