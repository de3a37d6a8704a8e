"""What a listener gives a connection is never widened: not by a token, not by a second word, not by binding."""

import http.client
import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire
from tests.support.mcp_clients import (
    LineTransport,
    McpClient,
    open_http,
    shim_wire,
    token_of,
)

ASKED = {"argv": ["files"], "cwd": "/", "tty": False, "color": False, "width": 80}


def write(wire: Wire, **params: Any) -> Any:
    return wire.ask("fs_write", path="new.txt", content="x", **params)


def test_the_token_does_not_undo_read_only(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    root = project({"a.txt": "x"}, name="no-writing")
    opened.append(daemon.wire("tcp"))
    wire = opened[-1]
    assert wire.call("$/bind", project=str(root), read_only=True)["projects"] == [
        root.name
    ]
    for _ in range(2):
        assert wire.call("auth", token=token_of(daemon)) == {
            "authenticated": True,
            "may_write": False,
        }
        assert write(wire)["error"]["data"]["reason"] == "read_only"
        wire.call("$/bind", read_only=False)
    assert not (root / "new.txt").exists()


@pytest.mark.parametrize(
    ("query", "writes"),
    [
        ("read_only=0&read_only=1", False),
        ("read_only=1&read_only=0", False),
        ("read_only=true", False),
        ("read_only=anything", False),
        ("read_only=0&read_only=false", True),
    ],
)
def test_a_url_that_says_read_only_once_means_it(
    daemon: DaemonAtHand, project: MakeProject, query: str, *, writes: bool
) -> None:
    root = project({"a.txt": "x"})
    connection = http.client.HTTPConnection(
        "127.0.0.1", open_http(daemon), timeout=BOUND
    )
    headers = {
        "Authorization": f"Bearer {token_of(daemon)}",
        "Content-Type": "application/json",
    }
    body = json.dumps({"path": "new.txt", "content": "x"})
    connection.request(
        "POST", f"/call/fs_write?project={quote(str(root))}&{query}", body, headers
    )
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert (root / "new.txt").exists() == writes
    assert writes or answer["error"]["data"]["reason"] == "read_only"


def test_a_url_names_one_project(daemon: DaemonAtHand) -> None:
    connection = http.client.HTTPConnection(
        "127.0.0.1", open_http(daemon), timeout=BOUND
    )
    headers = {
        "Authorization": f"Bearer {token_of(daemon)}",
        "Content-Type": "application/json",
    }
    connection.request("POST", "/call/stats?project=one&project=two", "{}", headers)
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["error"]["data"] == {"reason": "invalid_params", "field": "project"}


@pytest.mark.parametrize("named", [True, False])
def test_a_connection_given_to_a_host_has_no_control(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire], *, named: bool
) -> None:
    root = project({"a.txt": "x"})
    opened.append(daemon.wire("unix"))
    wire = opened[-1]
    assert "result" in wire.ask("$/cli", **ASKED)
    wire.call("$/bind", **({"project": str(root)} if named else {"fallback": "/"}))
    for method in (
        "$/cli",
        "$/open",
        "$/remove",
        "$/shutdown",
        "$/serve",
        "$/indexing",
    ):
        assert wire.fail(method, **ASKED)["data"]["reason"] == "control_only"
    assert wire.fail("$/status")["data"]["reason"] == "auth_required"


def test_a_hosts_connection_does_not_shut_the_daemon_down(
    daemon: DaemonAtHand, opened: list[Wire]
) -> None:
    opened.append(shim_wire(daemon))
    McpClient(LineTransport(opened[-1]), "legacy").start()
    assert opened[-1].fail("$/shutdown")["data"]["reason"] == "control_only"


def test_a_projects_socket_stays_with_its_project(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = (
        project({"a.txt": "x"}, name="within"),
        project({"b.txt": "x"}, name="without"),
    )
    for root in (mine, other):
        daemon.add(root)
    opened.append(daemon.wire("unix", mine))
    wire = opened[-1]
    wire.call(
        "auth", token=token_of(daemon)
    )  # whoever has the token may as well use TCP
    wire.call("$/bind", fallback=str(other))
    wire.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    for params in (
        {"project": str(other)},
        {"project": other.name},
        {"project": f"{mine}/../../nothing"},
    ):
        assert wire.fail("list_files", **params)["data"]["reason"] == "outside_root"
    assert (
        wire.fail("$/bind", collections=[other.name])["data"]["reason"]
        == "already_bound"
    )
    assert wire.call("list_files")["files"] == ["a.txt"]
    assert wire.call("stats")["projects"] == [mine.name]
    assert wire.fail("$/status")["data"]["reason"] == "auth_required"
