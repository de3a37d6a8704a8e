"""``fgrep team serve`` as a process, and a client over HTTP."""

import http.client
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.team.conftest import Rig
from tests.team.test_jobs import FGREP


@contextmanager
def serve(rig: Rig, *options: str) -> Iterator[int]:
    """Run a server of a store, and yield its port; check that it stops cleanly."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FLASHGREP_")
    }
    with tempfile.TemporaryDirectory(dir=rig.folder) as temporary:
        environ |= {
            "FLASHGREP_TEAM_DATABASE": rig.dsn,
            "HOME": str(rig.folder),
            "TMPDIR": temporary,
        }
        with run_team_server(environ, *options) as (run, port):
            yield port
        assert run.returncode == 0
        assert list(Path(temporary).iterdir()) == []


@contextmanager
def run_team_server(
    environ: dict[str, str], *options: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a server, and yield it with its port."""
    command = [FGREP, "team", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout is not None
            yield run, int(run.stdout.readline().rpartition(":")[2])
        finally:
            run.terminate()


@dataclass
class Client:
    """A client of a running server."""

    port: int
    token: str

    def send(self, path: str, body: object, **headers: str) -> tuple[int, Any]:
        """Post JSON, and return the status and the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with closing(connection):
            sent = {
                "authorization": f"Bearer {self.token}",
                "content-type": "application/json",
                **headers,
            }
            connection.request("POST", path, json.dumps(body), sent)
            answer = connection.getresponse()
            data = answer.read()
        if "event-stream" in (answer.getheader("content-type") or ""):
            data = data.partition(b"data: ")[2]
        return answer.status, json.loads(data) if data else None

    def call(self, method: str, **params: Any) -> Any:
        """Call a method, and return its result."""
        status, answer = self.send(f"/call/{method}", params)
        assert status == 200, answer
        return answer
