"""What an MCP connection is bound to and shown, and the life of the process between a host and the daemon."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base import config
from flashgrep.mcp.stdio import parse_arguments
from tests.conftest import (
    BOUND,
    FGREP,
    DaemonAtHand,
    MakeProject,
    Wire,
    own_daemon,
)
from tests.support.mcp_clients import INITIALIZE, LineTransport, McpClient, shim_wire

CORE = {
    "query",
    "get_slice",
    "read_code",
    "list_files",
    "stats",
    "write_code",
    "batch_write_code",
    "bootstrap_skill",
}
TEN = {
    "query",
    "search_code",
    "get_symbol",
    "code_research",
    "read_code",
    "outline",
    "list_files",
    "changes",
    "write_code",
    "batch_write_code",
}
"""What a client without wishes is shown."""
WRITES = {"write_code", "batch_write_code"}


def host(
    daemon: DaemonAtHand,
    opened: list[Wire],
    *options: str,
    cwd: Path | str = "/",
    start: bool = True,
    **environ: str,
) -> McpClient:
    """Start the shim as a host does."""
    opened.append(shim_wire(daemon, *options, cwd=cwd, **environ))
    client = McpClient(LineTransport(opened[-1]), "legacy")
    if start:
        client.start()
    return client


def root_of(client: McpClient) -> str:
    return str(client.call("stats")["structuredContent"]["root"])


def names(client: McpClient) -> set[str]:
    return {tool["name"] for tool in client.request("tools/list")["tools"]}


def add(daemon: DaemonAtHand, root: Path) -> None:
    daemon.add(root)


# -- which project
# ---------------------------------------------------------------------------------------------------


def test_the_project_is_the_one_named(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = project({"a": "x"}, name="mine"), project({"b": "x"}, name="theirs")
    assert root_of(
        host(
            daemon,
            opened,
            "--project",
            str(mine),
            cwd=other,
            CLAUDE_PROJECT_DIR=str(other),
        )
    ) == str(mine)
    assert root_of(host(daemon, opened, "--project=mine", cwd=other)) == str(mine)
    assert root_of(host(daemon, opened, "--project", ".", cwd=mine)) == str(mine)


def test_several_projects_may_be_named(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    left = project({"a": "needle in it"}, name="left")
    right = project({"b": "needle in it"}, name="right")
    client = host(daemon, opened, "--project", str(left), f"--project={right}", cwd="/")
    result = client.call("query", query="needle in it")["structuredContent"]
    assert {hit["file_path"] for hit in result["results"]} == {"a", "b"}


def test_else_the_one_the_host_has_open(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = (
        project({"a": "x"}, name="open"),
        project({"b": "x"}, name="elsewhere"),
    )
    (mine / "below").mkdir()
    assert root_of(
        host(daemon, opened, cwd=other, CLAUDE_PROJECT_DIR=str(mine / "below"))
    ) == str(mine)
    assert root_of(
        host(daemon, opened, cwd=other, WORKSPACE_FOLDER_PATHS=f"{mine},{other}")
    ) == str(mine)
    assert root_of(
        host(daemon, opened, cwd=other, CLAUDE_PROJECT_DIR="${unknown}")
    ) == str(other)


def test_else_the_root_the_client_tells(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = (
        project({"a": "x"}, name="with space"),
        project({"b": "x"}, name="cwd"),
    )
    client = host(daemon, opened, cwd=other, start=False)
    wire = opened[-1]
    client.request(
        "initialize", **{**INITIALIZE, "capabilities": {"roots": {"listChanged": True}}}
    )
    for told in (mine, other):
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": "call",
                "method": "tools/call",
                "params": {"name": "stats"},
            }
        )
        asked = wire.receive()
        assert asked["method"] == "roots/list"
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": asked["id"],
                "result": {"roots": [{"uri": told.as_uri()}]},
            }
        )
        assert wire.receive()["result"]["structuredContent"]["root"] == str(told)
        wire.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})


@pytest.mark.parametrize(
    "roots",
    [
        {"roots": []},
        {"roots": [{"uri": "https://x/"}, 1]},
        [],
        {"roots": [{"uri": "file:///"}]},
    ],
)
def test_roots_that_name_nothing_leave_the_folder_started_in(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire], roots: Any
) -> None:
    mine = project({"a": "x"})
    client = host(daemon, opened, cwd=mine, start=False)
    wire = opened[-1]
    client.request("initialize", **{**INITIALIZE, "capabilities": {"roots": {}}})
    wire.send(
        {
            "jsonrpc": "2.0",
            "id": "call",
            "method": "tools/call",
            "params": {"name": "stats"},
        }
    )
    wire.send({"jsonrpc": "2.0", "id": wire.receive()["id"], "result": roots})
    assert wire.receive()["result"]["structuredContent"]["root"] == str(mine)


def test_else_the_repository_around_the_folder(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine = project({"deep/down/a": "x"})
    assert root_of(host(daemon, opened, cwd=mine / "deep" / "down")) == str(mine)


def test_one_connection_is_bound_once(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine, other = project({"a": "x"}, name="once"), project({"b": "x"}, name="twice")
    add(daemon, mine)
    wire = daemon.wire("unix", mine)
    opened.append(wire)
    assert wire.fail("$/bind", project=str(other))["data"]["reason"] == "already_bound"
    assert wire.call("$/bind", read_only=True)["projects"] == [
        mine.name
    ]  # as its socket bound it
    assert wire.fail("$/bind", nonsense=1)["code"] == -32602
    assert wire.fail("$/bind", toolsets="core")["code"] == -32602


def test_clients_see_their_collections_and_not_each_other(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    one, two, three = (
        project({f"{name}.py": "needle"}, name=name) for name in ("one", "two", "three")
    )
    for root in (one, two, three):
        add(daemon, root)
    single = host(daemon, opened, "--collection", "one")
    several = host(daemon, opened, "--collections", "two,three")
    found = single.call("query", text="needle")["structuredContent"]["results"]
    assert [hit["file_path"] for hit in found] == ["one.py"]
    assert single.call("query", text="needle", project="two")["isError"]
    for name in ("two", "three"):
        hits = several.call("query", text="needle", project=name)["structuredContent"][
            "results"
        ]
        assert [hit["file_path"] for hit in hits] == [f"{name}.py"]
    assert several.call("query", text="needle", project="one")["isError"]
    assert len(several.request("resources/list")["resources"]) == 4
    assert single.call("bootstrap_skill")["structuredContent"]["status"] == "injected"
    assert several.call("bootstrap_skill")["structuredContent"]["status"] == "injected"


# -- which tools
# -----------------------------------------------------------------------------------------------------


def test_a_client_that_named_no_toolset_is_shown_ten_tools(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    client = host(daemon, opened, "--project", str(project({"a": "x"})))
    listed = client.request("tools/list")["tools"]
    assert {tool["name"] for tool in listed} == TEN
    # How many tokens a model pays for them is asked in test_text.py.
    assert all(len(f"mcp__flashgrep__{tool['name']}") <= 60 for tool in listed)
    assert all(tool["title"] for tool in listed)
    said = " ".join(tool["description"] for tool in listed).lower()
    for word in ("search", "grep", "find", "references", "callers", "definition"):
        assert word in said, f"a search among tools for {word} finds none"


def test_indexing_is_shown_only_to_a_client_without_a_project(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    nowhere = host(daemon, opened, cwd="/")
    assert names(nowhere) == TEN | {"index_codebase"}
    root = project({"a": "x"})
    assert not nowhere.call("index_codebase", path=str(root))["isError"]
    assert names(nowhere) == TEN


def test_a_plain_folder_is_read_and_searched_and_becomes_no_project(
    daemon: DaemonAtHand, opened: list[Wire], tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.py").write_text("def needle():\n    pass\n")
    daemon_projects = host(daemon, opened, cwd="/").call("stats")["structuredContent"][
        "projects"
    ]
    client = host(daemon, opened, cwd=folder)
    assert client.call("query", query="needle")["structuredContent"]["total"] == 1
    read = client.call("read_code", path="a.py")["structuredContent"]
    assert read["content"] == "def needle():\n    pass\n"
    found = client.call("get_symbol", symbol_name="needle")["structuredContent"]
    assert [hit["role"] for hit in found["results"]] == ["definition"]
    (folder / "b.py").write_text("needle()\n")
    assert client.call("query", query="needle")["structuredContent"]["total"] == 2
    written = client.call("write_code", path="a.py", old_text="pass", new_text="...")
    assert written["structuredContent"]["data"]["reason"] == "read_only"
    assert client.call("stats")["structuredContent"]["projects"] == daemon_projects
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "b.py"]
    assert "index_codebase" in names(client)
    assert client.call("index_codebase", path=".")["structuredContent"]["complete"]
    assert str(folder) in Path(daemon.paths.state, "projects.json").read_text()
    assert "index_codebase" not in names(client)
    written = client.call("write_code", path="a.py", old_text="pass", new_text="...")
    assert not written["isError"]


def test_a_host_in_a_folder_of_everything_is_about_nothing(
    daemon: DaemonAtHand, opened: list[Wire]
) -> None:
    home = Path(daemon.environ.get("HOME", Path.home()))
    for folder in (Path("/"), Path(tempfile.gettempdir()), home, home.parent):
        client = host(daemon, opened, cwd=folder)
        error = client.call("query", query="needle")["structuredContent"]
        assert error["data"]["reason"] == "project_not_found", folder


def test_what_is_not_listed_is_listed_by_compat_or_its_toolset_and_callable_always(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    root = str(project({"a": "x"}))
    everything = names(host(daemon, opened, "--project", root, "--toolsets", "compat"))
    assert everything > TEN | {"get_slice", "glob", "stats", "watch_codebase"}
    core = names(host(daemon, opened, "--project", root, "--toolsets", "core"))
    research = names(host(daemon, opened, "--project", root, "--toolsets", "research"))
    assert core | research == everything
    assert core & research == set()
    client = host(daemon, opened, "--project", root, "--toolsets", "default,fs")
    assert {name for name in names(client) if not name.startswith("fs_")} == TEN
    for tool, arguments in (
        ("get_slice", {"path": "a", "start_line": 1, "end_line": 1}),
        ("glob", {"query": "*"}),
        ("stats", {}),
    ):
        assert not client.call(tool, **arguments)["isError"]


def test_toolsets_choose_and_the_rest_stays_callable(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    root = str(project({"a": "x"}))
    shown = names(host(daemon, opened, "--project", root, "--toolsets", "fs"))
    assert shown
    assert all(name.startswith("fs_") for name in shown)
    client = host(daemon, opened, "--project", root, "--toolsets=research")
    assert "query" not in names(client)
    assert client.call("query", text="x")["structuredContent"]["total"] == 1
    assert (
        names(host(daemon, opened, "--project", root, "--toolsets", "all"))
        >= CORE | shown
    )


def test_read_only_neither_lists_nor_runs_what_writes(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    root = project({"a": "x\n"})
    client = host(
        daemon, opened, "--project", str(root), "--read-only", "--toolsets", "all"
    )
    tools = client.request("tools/list")["tools"]
    changing = {
        tool["name"] for tool in tools if not tool["annotations"].get("readOnlyHint")
    }
    assert changing == {
        "index_codebase",
        "watch_codebase",
    }  # our own state, and none of the project's files
    assert not WRITES & {tool["name"] for tool in tools}
    told = client.call(
        "write_code", file_path="a", start_line=1, end_line=1, replacement="y"
    )
    assert told["structuredContent"]["data"]["reason"] == "read_only"
    assert (root / "a").read_text() == "x\n"


def test_what_writes_is_called_where_its_toolset_was_asked_for(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    root = project({"a": "x\n", "b": "x\n"})
    written = {"file_path": "a", "start_line": 1, "end_line": 1, "replacement": "y"}
    client = host(daemon, opened, "--project", str(root))
    for tool in ("fs_create", "fs_write", "fs_copy", "fs_move", "fs_remove"):
        error = client.call(tool, path="b", content="z", src="b", dst="c")[
            "structuredContent"
        ]
        assert (error["code"], error["data"]["reason"]) == (-32006, "toolset_required")
        assert error["data"]["suggestion"].endswith("--toolsets default,fs")
    assert client.call("fs_read", path="b")["structuredContent"]["content"] == "x\n"
    assert not client.call("write_code", **written)["isError"]
    assert not host(daemon, opened, "--project", str(root), "--toolsets", "fs").call(
        "fs_remove", path="b"
    )["isError"]
    narrow = host(
        daemon, opened, "--project", str(root), "--toolsets", "research"
    ).call("write_code", **written)
    assert narrow["structuredContent"]["data"]["reason"] == "toolset_required"
    assert sorted(
        path.name for path in root.iterdir() if not path.name.startswith(".")
    ) == ["a"]


def test_project_is_shown_where_there_is_one_to_name(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    def naming(client: McpClient) -> set[str]:
        listed = client.request("tools/list")["tools"]
        return {
            tool["name"]
            for tool in listed
            if "project" in tool["inputSchema"]["properties"]
        }

    mine, other = project({"a": "x"}, name="shown"), project({"b": "x"}, name="named")
    assert naming(host(daemon, opened, "--project", str(mine))) == set()
    assert naming(host(daemon, opened, cwd=mine)) == set()
    assert naming(host(daemon, opened, cwd="/")) >= {
        "query",
        "read_code",
        "write_code",
    }
    add(daemon, mine)
    add(daemon, other)
    several = host(daemon, opened, "--collections", "shown,named")
    assert naming(several) >= {"query", "read_code", "write_code"}
    error = host(daemon, opened, cwd=mine).call("stats", project="named")[
        "structuredContent"
    ]
    assert error["data"]["reason"] == "outside_root"
    assert "leave out `project`" in error["data"]["suggestion"]


# -- the process
# -----------------------------------------------------------------------------------------------------


def test_it_ends_within_a_second_of_its_input(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    process = subprocess.Popen(
        [FGREP, "mcp", "--project", str(project({"a": "x"}))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=daemon.environ,
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        ).encode()
    )
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    started = time.monotonic()
    said, complaints = process.communicate(timeout=BOUND)
    assert time.monotonic() - started < 10  # one second, and what a busy machine adds
    assert (process.returncode, said, complaints) == (0, b"", b"")


PARENT = """
import subprocess, sys, os
reader, writer = os.pipe()
child = subprocess.Popen(sys.argv[1:], stdin=reader)
print(child.pid, flush=True)
sys.stdin.read()
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="the system has no descriptors of processes"
)
def test_it_ends_with_its_parent_though_its_input_stays_open(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    keep_open, writer = os.pipe()
    program = PARENT.replace("reader, writer = os.pipe()", f"reader = {keep_open}")
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            program,
            FGREP,
            "mcp",
            "--project",
            str(project({"a": "x"})),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[keep_open],
        env=daemon.environ,
    )
    assert parent.stdin
    assert parent.stdout
    child = os.pidfd_open(int(parent.stdout.readline()))
    os.write(
        writer,
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n",
    )
    assert json.loads(parent.stdout.readline()) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {},
    }
    parent.stdin.close()
    assert parent.wait(BOUND) == -signal.SIGKILL
    assert (
        parent.stdout.read() == b""
    )  # its end: the shim held the other copy and is gone
    parent.stdout.close()
    for descriptor in (child, keep_open, writer):
        os.close(descriptor)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--nonsense"], "no such option"),
        (["--project"], "a value is missing"),
        (["--toolsets", "core", "--toolsets=fs"], "given twice"),
        (["--project", "/no/such/folder", "--project=b"], "no such folder"),
        (["--project", "/no/such/folder"], "no such folder"),
        (["--collection", "unknown"], "no such project"),
        (["--toolsets", "core,nope"], "unknown: nope"),
    ],
)
def test_a_wrong_option_is_reported_on_standard_error(
    daemon: DaemonAtHand, options: list[str], complaint: str
) -> None:
    ended = daemon.run("mcp", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert complaint in ended.stderr


def test_help_needs_no_daemon(cold_daemon: DaemonAtHand) -> None:
    assert "--toolsets" in cold_daemon.run("mcp", "--help").stdout
    assert cold_daemon.run("daemon", "status").returncode == 1


def test_the_first_host_starts_the_daemon(
    cold_daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    assert root_of(host(cold_daemon, opened, cwd=(root := project({"a": "x"})))) == str(
        root
    )


@contextmanager
def daemon_with(**settings: str) -> Iterator[DaemonAtHand]:
    with own_daemon(**settings) as running:
        running.start()
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", [{"MCP_ENABLED": "false"}, {"FLASHGREP_MCP_TRANSPORT": "http"}]
)
def test_switched_off_there_is_no_trace_of_it(setting: dict[str, str]) -> None:
    with daemon_with(**setting) as off:
        wire = off.wire("unix")
        for method in ("initialize", "tools/list", "server/discover", "ping", "$/bind"):
            assert wire.fail(method)["code"] == -32601
        wire.close()
        assert "switched off" in off.run("mcp").stderr


@pytest.mark.slow
def test_a_host_may_give_the_server_another_name(project: MakeProject) -> None:
    with daemon_with(
        MCP_SERVER_NAME="code-indexer", MCP_SERVER_VERSION="9.9"
    ) as renamed:
        wires: list[Wire] = []
        client = host(
            renamed, wires, "--project", str(project({"a": "x"})), start=False
        )
        assert client.request("initialize", **INITIALIZE)["serverInfo"] == {
            "name": "code-indexer",
            "version": "9.9",
        }
        wires[0].close()


def test_variables_that_mean_another_server_are_not_ours() -> None:
    loaded = config.load(
        environ={"MCP_TRANSPORT": "sse", "MCP_ENABLED": "perhaps", "MCP_OTHER": "x"}
    )
    assert (loaded.settings.mcp.transport, loaded.settings.mcp.enabled) == (
        "both",
        True,
    )
    loaded = config.load(
        environ={"MCP_SERVER_NAME": "plain", "FLASHGREP_MCP_SERVER_NAME": "own"}
    )
    assert (loaded.settings.mcp.server_name, loaded.origins["mcp.server_name"]) == (
        "own",
        "environment",
    )


def test_resources_are_there_before_the_first_call(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> None:
    mine = project({"a": "x"}, name="fresh")
    for client in (
        host(daemon, opened, cwd=mine),
        host(daemon, opened, CLAUDE_PROJECT_DIR=str(mine)),
    ):
        uris = [one["uri"] for one in client.request("resources/list")["resources"]]
        assert uris == ["flashgrep://fresh/skill", "flashgrep://fresh/stats"]


def test_arguments_win_over_what_the_host_tells() -> None:
    assert parse_arguments(
        ["--collections", "a,b"], {"CLAUDE_PROJECT_DIR": "/"}, "/x"
    ) == {"collections": ["a", "b"]}
    assert parse_arguments([], {"CLAUDE_PROJECT_DIR": "/"}, "/x") == {
        "folder": "/",
        "fallback": "/x",
    }
    assert parse_arguments(["--project=p", "--read-only"], {}, "/x") == {
        "project": "p",
        "read_only": True,
    }
