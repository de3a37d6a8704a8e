"""A connection that is bound to no project is served by none, on every wire, until it names one."""

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire
from tests.support.mcp_clients import (
    INITIALIZE,
    HttpTransport,
    LineTransport,
    McpClient,
    open_http,
    shim_wire,
    token_of,
)

Ask = Callable[..., Any]
"""Calls a method and returns its result, or its error object (which has a code)."""
DOORS = [
    "control",
    "tcp",
    "token",
    "stdio",
    "mcp-plain",
    "mcp-home",
    "mcp-top",
    "mcp-roots",
    "rpc",
    "mcp-http",
]


@pytest.fixture(scope="module")
def foreign(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("unbound") / "foreign"
    root.mkdir()
    (root / "a.py").write_text("needle = 1\n")
    add(daemon, root)
    return root


def told(answer: Any) -> Any:
    return answer["result"] if "result" in answer else answer["error"]


def by_line(wire: Wire) -> Ask:
    return lambda method, **params: told(wire.ask(method, **params))


def by_tool(client: McpClient) -> Ask:
    return lambda method, **params: client.call(method, **params)["structuredContent"]


def post(daemon: DaemonAtHand, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection(
        "127.0.0.1", open_http(daemon), timeout=BOUND
    )
    headers = {
        "Authorization": f"Bearer {token_of(daemon)}",
        "Content-Type": "application/json",
    }
    try:
        connection.request("POST", path, json.dumps(body), headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def by_post(daemon: DaemonAtHand) -> Ask:
    def ask(method: str, **params: Any) -> Any:
        return told(
            post(
                daemon,
                "/rpc",
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            )
        )

    return ask


def with_roots(wire: Wire, roots: list[str]) -> McpClient:
    """Shake hands as a host that tells these roots when it is first asked."""
    client = McpClient(LineTransport(wire), "legacy")
    client.request("initialize", **{**INITIALIZE, "capabilities": {"roots": {}}})
    wire.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
    asked = wire.receive()
    assert asked["method"] == "roots/list"
    wire.send(
        {
            "jsonrpc": "2.0",
            "id": asked["id"],
            "result": {"roots": [{"uri": root} for root in roots]},
        }
    )
    assert wire.receive()["id"] == "list"
    return client


def through(door: str, daemon: DaemonAtHand, plain: Path, opened: list[Wire]) -> Ask:
    if door == "rpc":
        return by_post(daemon)
    if door == "mcp-http":
        client = McpClient(
            HttpTransport(open_http(daemon), token_of(daemon), {"structured": "1"}),
            "modern",
        )
        return by_tool(client)
    if door in {"control", "tcp", "token", "stdio"}:
        opened.append(
            daemon.wire(
                "unix" if door == "control" else "stdio" if door == "stdio" else "tcp"
            )
        )
        if door == "token":
            opened[-1].call("auth", token=token_of(daemon))
        return by_line(opened[-1])
    folder = {"mcp-home": Path(daemon.environ["HOME"]), "mcp-top": Path("/")}.get(
        door, plain
    )
    opened.append(shim_wire(daemon, cwd=folder))
    if door == "mcp-roots":
        return by_tool(
            with_roots(opened[-1], ["file:///", Path(daemon.environ["HOME"]).as_uri()])
        )
    client = McpClient(LineTransport(opened[-1]), "legacy")
    client.start()
    return by_tool(client)


def add(daemon: DaemonAtHand, root: Path) -> None:
    daemon.add(root)


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("door", ["mcp-plain", "mcp-roots"])
def test_a_host_in_a_plain_folder_reads_that_and_no_other_project(
    daemon: DaemonAtHand, tmp_path: Path, opened: list[Wire], door: str
) -> None:
    (tmp_path / "mine.py").write_text("needle = 2\n")
    ask = through(door, daemon, tmp_path, opened)
    hits = ask("query", text="needle")["results"]
    assert [hit["file_path"] for hit in hits] == ["mine.py"]
    assert ask("list_files")["files"] == ["mine.py"]
    written = ask("write_code", path="mine.py", old_text="2", new_text="3")
    assert written["data"]["reason"] == "read_only"


@pytest.mark.parametrize("door", sorted({*DOORS} - {"mcp-plain", "mcp-roots"}))
def test_no_other_project_answers_or_is_written(
    daemon: DaemonAtHand, foreign: Path, tmp_path: Path, opened: list[Wire], door: str
) -> None:
    (tmp_path / "mine.py").write_text("needle = 2\n")
    ask = through(door, daemon, tmp_path, opened)
    lines = {"file_path": "a.py", "start_line": 1, "end_line": 1}
    calls: dict[str, dict[str, Any]] = {
        "query": {"text": "needle"},
        "list_files": {},
        "search_code": {"query": "needle"},
        "get_slice": lines,
        "write_code": {**lines, "replacement": "x"},
        "list_specs": {},
    }
    for method, params in calls.items():
        error = ask(method, **params)
        assert error["code"] == (
            -32006 if door == "tcp" and method == "write_code" else -32001
        ), (method, error)
        if error["code"] == -32001:
            assert error["data"]["reason"] == "project_not_found"
            assert {"start", "`project`", "index_codebase"} <= set(
                error["data"]["suggestion"].replace(",", " ").split()
            )
    found = ask("stats")
    assert (found["project"], "bound to no project" in found["message"]) == (None, True)
    assert found["version"]
    assert foreign.name in found["projects"]
    assert "root" not in found
    assert (foreign / "a.py").read_text() == "needle = 1\n"
    hits = ask("query", text="needle", project=str(foreign))["results"]
    assert [hit["file_path"] for hit in hits] == ["a.py"]


@pytest.mark.usefixtures("foreign")
def test_http_routes_need_a_project_too(daemon: DaemonAtHand) -> None:
    assert (
        post(daemon, "/call/query", {"text": "needle"})["error"]["data"]["reason"]
        == "project_not_found"
    )
    assert (
        post(daemon, "/search", {"query": "needle"})["error"]["data"]["reason"]
        == "collection_required"
    )


def test_stats_on_the_terminal_tell_of_the_daemon_where_there_is_no_project(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    told = daemon.run("stats", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["project"] is None
    assert daemon.run("stats", "-p", "nobody", cwd=tmp_path).returncode == 2
    assert "no project here" in daemon.run("query", "x", cwd=tmp_path).stderr
    assert (
        "no project here; make the folder one with: fgrep index"
        in daemon.run("stats", cwd=tmp_path).stdout
    )


@pytest.mark.usefixtures("foreign")
@pytest.mark.parametrize("door", ["tcp", "mcp-plain", "stdio"])
def test_what_it_has_indexed_is_its_project_from_then_on(
    daemon: DaemonAtHand,
    project: MakeProject,
    tmp_path: Path,
    opened: list[Wire],
    door: str,
) -> None:
    (tmp_path / "mine.py").write_text("needle = 2\n")
    ask = through(door, daemon, tmp_path, opened)
    ask("index_codebase", path=str(tmp_path), deadline_ms=1)
    assert [hit["file_path"] for hit in ask("query", text="needle")["results"]] == [
        "mine.py"
    ]
    assert ask("stats")["root"] == str(tmp_path)
    second = project({"b.py": "needle = 3\n"}, name=f"second-{door}")
    ask("index_codebase", path=str(second), deadline_ms=1)
    both = ask("query", text="needle")["results"]
    assert sorted(hit["file_path"] for hit in both) == ["b.py", "mine.py"]
    error = ask("stats")
    assert (error["code"], error["data"]["reason"]) == (-32602, "project_required")
    assert set(error["data"]["allowed"]) >= {second.name}
    assert [
        hit["file_path"]
        for hit in ask("query", text="needle", project=second.name)["results"]
    ] == ["b.py"]


def test_a_bound_connection_stays_with_its_project(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = (
        project({"a.py": "needle\n"}, name="bound"),
        project({"b.py": "needle\n"}, name="other"),
    )
    add(daemon, mine)
    opened.append(daemon.wire("unix", mine))
    error = opened[-1].fail("index_codebase", path=str(other))
    assert error["data"]["reason"] == "outside_root"
    assert "leave out `project`" in error["data"]["suggestion"]
    assert opened[-1].call("stats")["projects"] == [mine.name]
    assert opened[-1].call("query", text="needle")["results"][0]["file_path"] == "a.py"


def test_several_roots_are_several_projects(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    one, two = (
        project({"a.py": "needle\n"}, name="left"),
        project({"b.py": "needle\n"}, name="right"),
    )
    opened.append(shim_wire(daemon))
    client = with_roots(opened[-1], [one.as_uri(), two.as_uri()])
    both = client.call("query", text="needle")["structuredContent"]["results"]
    assert sorted((hit["project"], hit["file_path"]) for hit in both) == [
        ("left", "a.py"),
        ("right", "b.py"),
    ]
    for path in ("b.py", "b.py:1-1", str(two / "b.py")):
        read = client.call("read_code", path=path)["structuredContent"]
        assert read["content"] == "needle\n", path
    (one / "b.py").write_text("other\n")
    error = client.call("read_code", path="b.py")["structuredContent"]
    assert (error["data"]["reason"], sorted(error["data"]["allowed"])) == (
        "project_required",
        ["left", "right"],
    )
    (one / "b.py").unlink()
    hits = client.call("query", text="needle", project="right")["structuredContent"][
        "results"
    ]
    assert [hit["file_path"] for hit in hits] == ["b.py"]


@pytest.mark.parametrize(
    "door", ["control", "tcp", "stdio", "mcp-plain", "rpc", "mcp-http"]
)
def test_every_wire_researches_and_outlines_all_its_projects(
    daemon: DaemonAtHand,
    project: MakeProject,
    tmp_path: Path,
    opened: list[Wire],
    door: str,
) -> None:
    defining = project({"spin.py": "def spin():\n    pass\n"}, name=f"defining-{door}")
    using = project({"use.py": "x = spin()\n"}, name=f"using-{door}")
    ask = through(door, daemon, tmp_path, opened)
    names: dict[str, Any] = {}
    for root in (defining, using):
        ask("index_codebase", path=str(root), deadline_ms=1)
    # Requests of these know nothing of each other.
    if door in {"rpc", "mcp-http"}:
        names = {"projects": [defining.name, using.name]}
    research = ask("code_research", query="who calls spin", **names)
    places = [(place["project"], place["file_path"]) for place in research["results"]]
    assert places == [(defining.name, "spin.py"), (using.name, "use.py")]
    assert [edge["project"] for edge in research["edges"]] == [using.name]
    outlined = ask("outline", **names)
    files = [(file["project"], file["file_path"]) for file in outlined["results"]]
    assert files == [(defining.name, "spin.py")]
    assert set(outlined["coverage"]["projects"]) == {defining.name, using.name}


def test_calls_that_come_together_wait_until_the_project_is_chosen(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine = project({"a.py": "needle\n"}, name="chosen")
    wire = shim_wire(daemon)
    opened.append(wire)
    McpClient(LineTransport(wire), "legacy").request(
        "initialize", **{**INITIALIZE, "capabilities": {"roots": {}}}
    )
    for call in (1, 2):
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": call,
                "method": "tools/call",
                "params": {"name": "stats"},
            }
        )
    first = wire.receive()
    assert first["method"] == "roots/list"
    wire.send(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1},
        }
    )
    second = wire.receive()  # the one that waited asks for itself
    assert second["method"] == "roots/list"
    wire.send(
        {
            "jsonrpc": "2.0",
            "id": second["id"],
            "result": {"roots": [{"uri": mine.as_uri()}]},
        }
    )
    answer = wire.receive()
    assert (answer["id"], answer["result"]["structuredContent"]["root"]) == (
        2,
        str(mine),
    )


def test_a_name_given_to_another_folder_leads_nobody_there(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    first, second = (
        project({"a.py": "needle\n"}, name="same"),
        project({"b.py": "needle\n"}, name="same"),
    )
    opened.append(shim_wire(daemon, "--project", str(first)))
    client = McpClient(LineTransport(opened[-1]), "legacy")
    client.start()
    name = client.call("stats")["structuredContent"]["project"]
    assert daemon.run("projects", "remove", str(first)).returncode == 0
    add(daemon, second)
    error = client.call("query", text="needle")["structuredContent"]
    assert (error["code"], error["data"]["reason"]) == (-32001, "project_not_found")
    assert client.call("query", text="needle", project=name)["isError"]
    assert not (first / ".flashgrep").exists()


def test_an_http_request_reaches_what_its_url_names(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    mine, other = (
        project({"a.py": "needle\n"}, name="url"),
        project({"b.py": "needle\n"}, name="beside"),
    )
    url = f"/call/query?project={quote(str(mine))}"
    assert post(daemon, url, {"text": "needle"})["results"][0]["file_path"] == "a.py"
    assert (
        post(daemon, url, {"text": "needle", "project": str(other)})["error"]["data"][
            "reason"
        ]
        == "outside_root"
    )
