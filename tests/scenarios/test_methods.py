"""The contract "methods": the daemon's methods over JSON-RPC and the Model Context Protocol, alike on every wire."""

import hashlib
import json
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire
from tests.scenarios.ways import EVERY, MCP, Way, ways

Connect = Callable[..., Wire]
ALIASES = [
    "bootstrap_skill",
    "flashgrep-init",
    "flashgrep_init",
    "fgrep-boot",
    "fgrep_boot",
]
SKILL = Path(__file__).parents[2] / "skills" / "SKILL.md"
FILES: dict[str, str | bytes] = {
    "src/engine.py": "class Engine:\n    def start(self):\n        return ignite(self)\n",
    "src/ignite.py": "def ignite(engine):\n    return engine.spark\n",
    "docs/guide.md": "# Guide\n\nThe engine must ignite.\n",
    "long.txt": "".join(f"line {number} holds a needle\n" for number in range(1, 2001)),
}


def files_of(result: Any) -> list[str]:
    return [item["file_path"] for item in result["results"]]


@pytest.mark.scenario("methods", "JSON-RPC protocol", "Accept JSON-RPC requests")
def test_accept_json_rpc_requests(connect: Connect, project: MakeProject) -> None:
    """Parameters by name or by position, an identifier that is a text or a number, batches, notifications."""
    root = project(FILES)
    wire = connect(root)
    named = {"text": "engine.spark", "project": str(root)}
    request = {"jsonrpc": "2.0", "id": "a", "method": "query", "params": named}
    wire.send(request)
    assert files_of(wire.receive()["result"]) == ["src/ignite.py"]
    wire.send(
        {
            **request,
            "id": 7,
            "method": "bootstrap_skill",
            "params": ["fgrep-boot", True],
        }
    )
    assert wire.receive()["result"]["ok"]
    wire.send({"jsonrpc": "2.0", "method": "stats", "params": {}})
    wire.send(
        [
            {**request, "id": 1},
            {"jsonrpc": "2.0", "method": "stats"},
            {**request, "id": 2},
        ]
    )
    assert {one["id"] for one in wire.receive()} == {1, 2}


@pytest.mark.scenario("methods", "JSON-RPC protocol", "Return JSON-RPC responses")
def test_return_json_rpc_responses(connect: Connect, project: MakeProject) -> None:
    root = project(FILES)
    wire = connect(root)
    for identifier in (0, "text", 1.5, None):
        wire.send(
            {
                "jsonrpc": "2.0",
                "id": identifier,
                "method": "stats",
                "params": {"project": str(root)},
            }
        )
        answer = wire.receive()
        assert answer.keys() == {"jsonrpc", "id", "result"}
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", identifier)
    wire.send({"jsonrpc": "2.0", "id": 1, "method": "nothing_of_the_kind"})
    answer = wire.receive()
    assert answer.keys() == {"jsonrpc", "id", "error"}
    assert (answer["id"], answer["error"]["code"]) == (1, -32601)
    wire.send(b'{"jsonrpc": "2.0", "method": \n')
    answer = wire.receive()
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == (
        "2.0",
        None,
        -32700,
    )


@pytest.mark.scenario("methods", "Transport layer", "TCP transport")
def test_tcp_transport(daemon: DaemonAtHand, project: MakeProject) -> None:
    """7777 is the default of the setting; the daemon of a test is told to take any free port instead."""
    without = {
        name: value
        for name, value in daemon.environ.items()
        if name != "FLASHGREP_TCP_PORT"
    }
    shown = DaemonAtHand(daemon.paths, without).run("config", "show", "--json")
    settings = json.loads(shown.stdout)
    assert (settings["tcp.enabled"]["value"], settings["tcp.port"]["value"]) == (
        True,
        7777,
    )
    root = project(FILES)
    daemon.add(root)
    port = daemon.status()["tcp"]["port"]
    with socket.create_connection(("localhost", port), BOUND) as connection:
        wire = Wire("tcp", connection, str(root))
        assert files_of(wire.call("query", text="engine.spark")) == ["src/ignite.py"]
    with pytest.raises(OSError):
        socket.create_connection(
            ("127.0.0.2", port), 1
        ).close()  # nothing listens on any other address


@pytest.mark.scenario("methods", "Transport layer", "Unix socket transport")
def test_unix_socket_transport(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project(FILES)
    daemon.add(root)
    path = root / ".flashgrep" / "mcp.sock"
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(BOUND)
        connection.connect(str(path))
        wire = Wire("unix", connection)
        assert files_of(wire.call("query", text="engine.spark")) == ["src/ignite.py"]


@pytest.mark.scenario("methods", "query method", "Query with text parameter")
def test_query_with_text_parameter(connect: Connect, project: MakeProject) -> None:
    wire = connect(project(FILES))
    result = wire.call("query", text="engine.spark")
    [hit] = result["results"]
    assert (hit["file_path"], hit["start_line"], hit["text"]) == (
        "src/ignite.py",
        2,
        "    return engine.spark",
    )
    matching = wire.call("query", text="ignite")["results"]
    assert {hit["file_path"] for hit in matching} == {
        "src/engine.py",
        "src/ignite.py",
        "docs/guide.md",
    }
    assert all("ignite" in hit["text"] for hit in matching)
    assert wire.call("query", text="quetzalcoatl", mode="literal")["results"] == []


@pytest.mark.scenario("methods", "query method", "Query with limit parameter")
def test_query_with_limit_parameter(connect: Connect, project: MakeProject) -> None:
    """Without a limit ten come: the default for `query` as for every other search."""
    wire = connect(project(FILES))
    for limit in (1, 3, 25):
        result = wire.call("query", text="needle", limit=limit)
        assert len(result["results"]) == limit
        assert result["next"] is not None
    assert len(wire.call("query", text="needle")["results"]) == 10
    assert wire.fail("query", text="needle", limit=0)["data"]["field"] == "limit"


@pytest.mark.scenario("methods", "get_slice method", "Get specific line range")
def test_get_specific_line_range(connect: Connect, project: MakeProject) -> None:
    content = b"one\r\n\ttwo \nthree\r\nf\xc3\xbcnf"
    wire = connect(project({"a.txt": content}))
    result = wire.call("get_slice", file_path="a.txt", start_line=2, end_line=3)
    assert result["content"] == "\ttwo \nthree\r\n"
    assert (result["start_line"], result["end_line"]) == (2, 3)
    whole = wire.call("get_slice", file_path="a.txt", start_line=1, end_line=4)
    assert whole["content"].encode() == content


@pytest.mark.scenario("methods", "get_slice method", "Handle missing file")
def test_handle_missing_file(connect: Connect, project: MakeProject) -> None:
    error = connect(project(FILES)).fail(
        "get_slice", file_path="src/gone.py", start_line=1, end_line=2
    )
    assert (error["code"], error["data"]["reason"]) == (-32001, "file_not_found")
    assert "src/gone.py" in error["message"]


@pytest.mark.scenario("methods", "get_symbol method", "Find symbol by name")
def test_find_symbol_by_name(connect: Connect, project: MakeProject) -> None:
    result = connect(project(FILES)).call("get_symbol", symbol_name="ignite")
    found = [
        (hit["file_path"], hit["line_number"], hit["role"]) for hit in result["results"]
    ]
    assert found == [
        ("src/ignite.py", 1, "definition"),
        ("src/engine.py", 3, "call"),
    ]  # words of prose, as in docs/guide.md, are no uses
    assert result["total"] == 2
    assert result["coverage"]["complete"]


@pytest.mark.scenario("methods", "list_files method", "List all files")
def test_list_all_files(connect: Connect, project: MakeProject) -> None:
    root = project({**FILES, ".gitignore": "*.log\n", "build.log": "ignored\n"})
    wire = connect(root)
    result = wire.call("list_files")
    assert files_of(result) == result["files"] == sorted(FILES)
    assert result["total"] == len(FILES)
    (root / "new.py").write_text("new = 1\n")
    assert wire.call("list_files")["files"] == sorted([*FILES, "new.py"])


@pytest.mark.scenario("methods", "stats method", "Get index stats")
def test_get_index_stats(
    daemon: DaemonAtHand, connect: Connect, project: MakeProject
) -> None:
    root = project(FILES)
    wire = connect(root)
    assert daemon.run("index", str(root)).returncode == 0
    result = wire.call("stats")
    assert result["total_files"] == len(FILES)
    assert result["total_chunks"] >= len(FILES)
    assert result["index_size_bytes"] > 0
    database = daemon.index(root)
    assert database.exists()
    assert abs(result["last_update"] - database.stat().st_mtime) < BOUND


@pytest.mark.scenario("methods", "Minimal responses", "No full file content by default")
def test_no_full_file_content_by_default(
    connect: Connect, project: MakeProject
) -> None:
    wire = connect(project(FILES))
    result = wire.call("query", text="line 1500 holds", limit=100)
    [hit] = result["results"]
    assert hit["text"] == "line 1500 holds a needle"
    assert len(json.dumps(result)) < 1000
    assert (
        len(json.dumps(wire.call("query", text="needle", limit=10_000)))
        < len(str(FILES["long.txt"])) * 2
    )
    whole = wire.call("get_slice", file_path="long.txt", start_line=1, end_line=2000)
    assert whole["content"] == FILES["long.txt"]


@pytest.mark.scenario(
    "methods",
    "Skill bootstrap MCP method",
    "Bootstrap method returns structured success response",
)
def test_bootstrap_method_returns_structured_success_response(connect: Connect) -> None:
    """The packaged skill is the source unless the call asks for the repository's own."""
    told = connect().call("bootstrap_skill")
    text = SKILL.read_text(encoding="utf-8")
    assert (told["ok"], told["status"], told["canonical_trigger"]) == (
        True,
        "injected",
        "flashgrep-init",
    )
    assert told["skill_markdown"] == text
    assert told["skill_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert told["skill_info"]["name"] == "flashgrep"
    assert told["payload_source"] == "embedded"
    assert told["policy_metadata"]["bootstrap_state"] == "injected"


@pytest.mark.scenario(
    "methods", "Skill bootstrap MCP method", "Bootstrap method validates trigger"
)
def test_bootstrap_method_validates_trigger(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    with ways(daemon, project(FILES)) as everywhere:
        for way in everywhere:
            error = way.error("bootstrap_skill", trigger="grep-init")
            assert (error["code"], error["data"]["reason"]) == (
                -32602,
                "invalid_trigger",
            ), way.name
            assert (error["data"]["requested_trigger"], error["data"]["allowed"]) == (
                "grep-init",
                ALIASES,
            )


def use_every_core_method(way: Way, root: Path) -> dict[str, Any]:
    """Call each method that bootstrap must not change, and return what it answers but for times."""
    target = root / "src" / "ignite.py"
    before = target.read_bytes()
    answers = {
        "query": way.result("query", text="engine.spark"),
        "get_slice": way.result(
            "get_slice", file_path="src/ignite.py", start_line=1, end_line=2
        ),
        "get_symbol": way.result("get_symbol", symbol_name="ignite"),
        "list_files": way.result("list_files"),
        "stats": way.result("stats"),
        "read_code": way.result("read_code", symbol_name="ignite"),
        "write_code": way.result(
            "write_code", file_path="src/ignite.py", old_text="spark", new_text="flame"
        ),
    }
    assert target.read_bytes() == before.replace(b"spark", b"flame")
    assert files_of(way.result("query", text="engine.flame")) == ["src/ignite.py"]
    target.write_bytes(before)
    return {method: _timeless(answer) for method, answer in answers.items()}


def _timeless(answer: Any) -> Any:
    if not isinstance(answer, dict):
        return answer
    passing = {
        "took_ms",
        "generation",
        "stage",
        "stage_since",
        "stage_detail",
        "last_update",
        "indexing",
    }
    passing |= {
        "index_size_bytes",
        "gram_bytes",
        "files_pending",
        "total_chunks",
        "total_lines",
        "total_files",
    }
    passing |= {"files_skipped", "projects"}
    return {
        key: _timeless(value) for key, value in answer.items() if key not in passing
    }


@pytest.mark.scenario(
    "methods",
    "Bootstrap compatibility with existing MCP methods",
    "Existing tools remain callable after bootstrap support is added",
)
def test_existing_tools_remain_callable_after_bootstrap_support_is_added(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    with ways(daemon, root, ["tcp", "mcp stdio"]) as both:
        for way in both:
            assert (
                daemon.run("index", str(root)).returncode == 0
            )  # which waits: answers tell how far the index is
            before = use_every_core_method(way, root)
            assert way.result("bootstrap_skill")["status"] == "injected"
            assert daemon.run("index", str(root)).returncode == 0
            assert use_every_core_method(way, root) == before


@pytest.mark.scenario(
    "methods", "Bootstrap error handling", "Skill file load failure returns typed error"
)
def test_skill_file_load_failure_returns_typed_error(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    """The packaged skill is always there; a repository's own that cannot be read gives the typed errors."""
    root = project(
        {
            "src/a.py": "",
            "binary/SKILL.md": b"\xff\xfe\x00skill",
            "large/SKILL.md": "x" * 300_000,
        }
    )
    with ways(daemon, root) as everywhere:
        for way in everywhere:
            for path, code, reason in [
                ("skills/SKILL.md", -32001, "skill_not_found"),
                ("binary/SKILL.md", -32000, "skill_unreadable"),
                ("large/SKILL.md", -32000, "skill_unreadable"),
            ]:
                error = way.error(
                    "bootstrap_skill", allow_repo_override=True, repo_override_path=path
                )
                assert (error["code"], error["data"]["reason"]) == (code, reason), (
                    way.name
                )
                assert error["data"]["path"] == path
                assert any(
                    "packaged skill" in step for step in error["data"]["remediation"]
                )


@pytest.mark.scenario(
    "methods",
    "Cross-transport method consistency",
    "Bootstrap aliases are handled consistently",
)
def test_bootstrap_aliases_are_handled_consistently(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    answers = []
    with ways(daemon, root) as everywhere:
        for way in everywhere:
            answers += [way.result(alias, force=True) for alias in ALIASES]
            answers += [
                way.result("bootstrap_skill", force=True, trigger=alias)
                for alias in ALIASES
            ]
    assert len(answers) == len(EVERY) * len(ALIASES) * 2
    assert answers[0]["canonical_trigger"] == "flashgrep-init"
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.scenario(
    "methods",
    "Cross-transport method consistency",
    "Existing core methods keep consistent behavior",
)
def test_existing_core_methods_keep_consistent_behavior(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(FILES)
    assert daemon.run("index", str(root)).returncode == 0
    with ways(daemon, root) as everywhere:
        answers = [use_every_core_method(way, root) for way in everywhere]
        errors = [
            way.error("get_slice", file_path="gone", start_line=1, end_line=1)
            for way in everywhere
        ]
    for way, answer, error in zip(EVERY, answers, errors, strict=True):
        assert answer == answers[0], way
        assert error == errors[0], way


@pytest.mark.scenario(
    "methods",
    "Centralized shared handler usage for duplicated MCP logic",
    "Bootstrap logic is centralized",
)
def test_bootstrap_logic_is_centralized(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    """What is loaded changes once, in a file, and every transport answers by it; so do validation and idempotency."""
    root = project(
        {"skills/SKILL.md": "---\nname: ours\nversion: 1\n---\n\n# Ours\n\nFirst.\n"}
    )
    with ways(daemon, root) as everywhere:
        first = [
            way.result("bootstrap_skill", allow_repo_override=True)
            for way in everywhere
        ]
        (root / "skills/SKILL.md").write_text(
            "---\nname: ours\nversion: 2\n---\n\n# Ours\n\nSecond.\n"
        )
        second = [
            way.result("fgrep_boot", allow_repo_override=True) for way in everywhere
        ]
        held = [
            way for way in everywhere if way.name != "mcp http"
        ]  # every request there is a connection of its own
        third = [way.result("flashgrep-init", allow_repo_override=True) for way in held]
    for answers, version, status in [
        (first, "1", "injected"),
        (second, "2", "injected"),
        (third, "2", "already_injected"),
    ]:
        assert {answer["skill_version"] for answer in answers} == {version}
        assert {answer["status"] for answer in answers} == {status}
        assert all(answer == answers[0] for answer in answers)


@pytest.mark.scenario(
    "methods",
    "Centralized shared handler usage for duplicated MCP logic",
    "Tool definition aliases remain synchronized",
)
def test_tool_definition_aliases_remain_synchronized(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    with ways(daemon, project(FILES), MCP) as listing:
        lists = [
            way.mcp.request("tools/list")["tools"]
            for way in listing
            if way.mcp is not None
        ]
        assert all(tools == lists[0] for tools in lists)
        aliases = {
            tool["name"]: tool["_meta"].get("flashgrep/aliases", [])
            for tool in lists[0]
            if "_meta" in tool
        }
        assert ["bootstrap_skill", *aliases["bootstrap_skill"]] == ALIASES
        for way in listing:
            for name in (
                alias
                for tool in aliases
                for alias in [tool, *aliases[tool]]
                if tool == "bootstrap_skill"
            ):
                assert way.result(name, force=True)["status"] == "injected"


@pytest.mark.scenario(
    "methods",
    "Glob MCP contract supports advanced options",
    "Advanced glob options are accepted",
)
def test_advanced_glob_options_are_accepted(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    sized = {
        "src/b.py": "bb",
        "src/a.py": "a",
        "src/deep/down/c.py": "ccc",
        "src/d.rs": "d",
        "src/.hid.py": "h",
    }
    root = project({**sized, "build/e.py": "e", "f.py": "f"})
    options: dict[str, Any] = {
        "pattern": "**/*",
        "exclude": ["build/**"],
        "extensions": ["py"],
        "max_depth": 1,
    }
    with ways(daemon, root, ["tcp", "mcp stdio"]) as both:
        for way in both:
            assert files_of(way.result("glob", **options)) == [
                "f.py",
                "src/a.py",
                "src/b.py",
            ]
            assert files_of(way.result("glob", **options, include_hidden=True)) == [
                "f.py",
                "src/.hid.py",
                "src/a.py",
                "src/b.py",
            ]
            ordered = way.result(
                "glob",
                path="src",
                extensions=[".py"],
                sort_by="size",
                sort_order="desc",
                limit=2,
            )
            assert files_of(ordered) == ["src/deep/down/c.py", "src/b.py"]
            assert (ordered["total"], ordered["returned"], ordered["completed"]) == (
                3,
                2,
                False,
            )


@pytest.mark.scenario(
    "methods",
    "Glob MCP contract supports advanced options",
    "Invalid option combinations return structured errors",
)
def test_invalid_option_combinations_return_structured_errors(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    combinations: list[tuple[dict[str, Any], str]] = [
        ({"recursive": False, "max_depth": 2}, "max_depth"),
        ({"respect_ignore": True, "follow_symlinks": True}, "follow_symlinks"),
        ({"sort_by": "colour"}, "sort_by"),
        ({"limit": -1}, "limit"),
        ({"pattern": "[a"}, "query"),
        ({"colour": True}, "colour"),
    ]
    with ways(daemon, project(FILES), ["tcp", "mcp stdio"]) as both:
        for way in both:
            for params, field in combinations:
                error = way.error("glob", **params)
                assert error["code"] == -32602
                assert (error["data"]["reason"], error["data"]["field"]) == (
                    "invalid_params",
                    field,
                )
                assert field in error["message"]


@pytest.mark.scenario(
    "methods",
    "Glob performance remains suitable for large repositories",
    "Early pruning with excludes and depth",
)
def test_early_pruning_with_excludes_and_depth(
    connect: Connect, project: MakeProject
) -> None:
    """Entries looked at are counted: what lies below an excluded or too deep folder never is."""
    root = project({"src/a.py": "a", "top.py": "t"})
    for folder in range(20):
        below = root / "node_modules" / f"package{folder}" / "lib"
        below.mkdir(parents=True)
        for number in range(20):
            (below / f"{number}.py").touch()
    wire = connect(root)
    everything = wire.call("glob", pattern="**/*.py", limit=1000)
    assert (everything["total"], everything["coverage"]["files_searched"] >= 402) == (
        402,
        True,
    )
    for options in (
        {"exclude": ["node_modules"]},
        {"exclude": ["node_modules/**"]},
        {"max_depth": 1},
    ):
        pruned = wire.call("glob", pattern="**/*.py", limit=1000, **options)
        assert files_of(pruned) == ["src/a.py", "top.py"]
        assert pruned["coverage"]["files_searched"] < 30, options
