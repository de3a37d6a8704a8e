"""A client that sees other paths, in a container or on Windows, gives and gets its own."""

import base64
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.model import EncodedList
from flashgrep.base.path_map import PARAM_FIELDS, PathMap, parse_path_map
from flashgrep.base.paths import PATH_MAP_VARIABLE
from flashgrep.base.registry import MOST_PATH
from flashgrep.parts.built_in import REGISTRY
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.mcp_clients import (
    HttpTransport,
    McpClient,
    open_http,
    shim_wire,
    token_of,
)

FILES: dict[str, str | bytes] = {
    "src/a.py": "def spin():\n    pass\n",
    "b.txt": "spin /workspaces/app\n",
}
THEIRS = "/workspaces/app"


def test_paths_in_a_list_that_is_json_already_are_translated() -> None:
    path_map = PathMap([(THEIRS, "/home/u/app")])
    hits = EncodedList(b'[{"path": "/home/u/app/b.txt", "text": "/home/u/app"}]', 1)
    assert path_map.translate_result({"results": hits}) == {
        "results": [{"path": f"{THEIRS}/b.txt", "text": "/home/u/app"}]
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("/workspaces/app", "/home/u/app"),
        ("/workspaces/app/src/a.py", "/home/u/app/src/a.py"),
        ("/workspaces/app/lib/x", "/opt/lib/x"),
        ("/workspaces/apple/x", "/workspaces/apple/x"),
        (r"C:\work\web\a.ts", "/mnt/c/work/web/a.ts"),
        ("src/a.py", "src/a.py"),
    ],
)
def test_a_path_goes_there_and_back(theirs: str, ours: str) -> None:
    paths = PathMap(
        [
            ("/workspaces/app/", "/home/u/app"),
            ("/workspaces/app/lib", "/opt/lib/"),
            (r"C:\work", "/mnt/c/work"),
        ]
    )
    assert paths.to_ours(theirs) == ours
    assert paths.to_theirs(ours) == theirs
    assert paths.to_ours("c:/Work/web") == "/mnt/c/work/web"
    assert paths.translate_text("no such folder: /home/u/app/x, /home/u/apple") == (
        "no such folder: /workspaces/app/x, /home/u/apple"
    )


def test_what_is_no_pair_of_absolute_paths_is_refused() -> None:
    assert parse_path_map([""]) is None
    for text in ("/a", "a=/b", "/a=b", "=/b", "/a=", "/a=/b\0"):
        with pytest.raises(ValueError, match="pair"):
            parse_path_map([text])
    with pytest.raises(ValueError, match="at most"):
        parse_path_map([",".join(f"/a{at}=/b" for at in range(51))])


def test_every_parameter_that_is_a_path_is_translated() -> None:
    """Their type tells them: only the query of ``list_files`` holds parts of paths."""

    def find(node: Any, name: str) -> set[str]:
        if isinstance(node, list):
            return set().union(*(find(item, name) for item in node))
        if not isinstance(node, dict):
            return set()
        found = {name} if node.get("maxLength") == MOST_PATH else set()
        for key, item in node.items():
            inside = item.items() if key in {"properties", "$defs"} else [(name, item)]
            found = found.union(*(find(each, inner) for inner, each in inside))
        return found

    named = set().union(*(find(declared.params_schema(), "") for declared in REGISTRY))
    assert {"project", "projects", "path", "src"} <= named
    assert named - {"query"} <= PARAM_FIELDS


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(FILES, "app")


def test_a_bound_connection_speaks_its_own_paths(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix")
    wire.call("$/bind", project=THEIRS, path_map=[f"{THEIRS}={root}"])
    read = wire.call("read_code", file_path=f"{THEIRS}/b.txt")
    assert (read["file_path"], read["content"]) == ("b.txt", "spin /workspaces/app\n")
    assert (
        wire.call("read_code", filename=f"{THEIRS}/b.txt")["content"] == read["content"]
    )
    encoded = base64.b64encode(f"{THEIRS}/src/a.py".encode()).decode()
    assert (
        wire.call("read_code", file_path_bytes=encoded)["content"] == FILES["src/a.py"]
    )
    found = wire.call("query", text="spin", projects=[THEIRS])
    assert list(found["coverage"]["projects"].values()) == [THEIRS]
    assert {hit["file_path"] for hit in found["results"]} == {"src/a.py", "b.txt"}
    assert wire.call("glob", path=f"{THEIRS}/src")["options"]["root"] == f"{THEIRS}/src"
    stats = wire.call("stats")
    assert stats["root"] == THEIRS
    error = wire.fail("read_code", file_path=f"{THEIRS}/gone.py")
    assert str(root) not in str(error)
    # Nothing more can be reached than without a map.
    assert (
        wire.fail("query", text="spin", project="/workspaces")["data"]["reason"]
        == "outside_root"
    )
    assert (
        wire.fail("read_code", file_path=f"{THEIRS}/../../etc/passwd")["data"]["reason"]
        == "outside_root"
    )
    wire.close()
    other = daemon.wire("unix")
    assert other.fail("$/bind", path_map=["nothing"])["data"]["field"] == "path_map"
    other.close()


def test_hosts_roots_addresses_and_commands_are_translated(
    daemon: DaemonAtHand, root: Path
) -> None:
    pair = f"{THEIRS}={root}"
    shim = shim_wire(daemon, "--path-map", pair, "--project", THEIRS)
    shim.send({"jsonrpc": "2.0", "id": 1, "method": "stats", "params": {}})
    assert shim.receive()["result"]["root"] == THEIRS
    shim.close()
    shim = shim_wire(daemon, **{PATH_MAP_VARIABLE: pair, "CLAUDE_PROJECT_DIR": "/"})
    shim.send(
        {"jsonrpc": "2.0", "id": 1, "method": "stats", "params": {"project": THEIRS}}
    )
    assert shim.receive()["result"]["root"] == THEIRS
    shim.close()
    address = {"project": THEIRS, "path_map": pair, "structured": "1"}
    http = McpClient(
        HttpTransport(open_http(daemon), token_of(daemon), address), "modern"
    )
    assert http.call("stats")["structuredContent"]["root"] == THEIRS
    told = DaemonAtHand(daemon.paths, {**daemon.environ, PATH_MAP_VARIABLE: pair})
    found = told.run("query", "def spin", "-p", THEIRS, cwd=root / "src")
    assert found.stdout == "a.py:1:def spin():\n", found.stderr
    assert (
        told.run("read", f"{THEIRS}/b.txt", "-p", THEIRS, cwd=Path("/")).stdout
        == "spin /workspaces/app\n"
    )
    several = told.run("files", "b.txt", "-p", THEIRS, "-p", str(root), cwd=Path("/"))
    assert several.stdout == f"{THEIRS}/b.txt\n", several.stderr
