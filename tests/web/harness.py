"""A daemon's page, asked as a browser does and as attackers do."""

from collections.abc import Mapping
from typing import Any

from tests.conftest import DaemonAtHand
from tests.support.http_request import Answer, send_request


class Page:
    """The HTTP wire of a daemon, as browsers see it."""

    def __init__(self, daemon: DaemonAtHand, target: str = "/") -> None:
        self.daemon = daemon
        opened = daemon.serve_http(invite=target)
        self.port: int = opened["port"]
        self.link: str = opened["link"]
        self.cookie = self.key = ""

    def invite(self) -> str:
        """Return another link."""
        link: str = self.daemon.serve_http(invite="/")["link"]
        return link

    def send(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> Answer:
        """Send a request as our page would, with headers changed as said; None leaves one out."""
        usual: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": f"flashgrep_{self.port}={self.cookie}" if self.cookie else None,
            "X-Flashgrep-Key": self.key or None,
            "Content-Type": "application/json" if body is not None else None,
        }
        sent = usual | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return send_request(self.port, method, path, sent, body)

    def sign_in(self) -> Answer:
        """Open the link, and keep what it gives."""
        answer = self.send("GET", self.link)
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        self.key = answer.body.decode().partition('data-key="')[2].partition('"')[0]
        return answer

    def ask(
        self,
        method: str,
        headers: Mapping[str, str | None] | None = None,
        **params: Any,
    ) -> Answer:
        """Send one JSON-RPC request."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.send("POST", "/rpc", body, **(headers or {}))
