"""A request over HTTP with exactly the headers that a test gives."""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

from tests.conftest import BOUND


class Answer(NamedTuple):
    """The response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def send_request(
    port: int,
    method: str,
    path: str,
    headers: Mapping[str, str | None],
    body: Any = None,
) -> Answer:
    """Send a request; headers that are None are left out, a body other than bytes is sent as JSON."""
    data = (
        body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    )
    with closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
    ) as connection:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        found = connection.getresponse()
        return Answer(
            found.status,
            {name.lower(): value for name, value in found.getheaders()},
            found.read(),
        )
