"""The contract "research": indexing, search by meaning, research, watching, as tools over standard input and output."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.methods.text import render_error
from tests.conftest import DaemonAtHand, MakeProject, own_daemon
from tests.scenarios.hosts import Host, host
from tests.support.embed_server import serving

TOOLS = ["search_code", "code_research", "index_codebase", "watch_codebase"]
FILES: dict[str, str | bytes] = {
    "Sources/Auth/Authenticator.swift": """import Foundation

/// Checks the user's password and opens a session: authentication.
public class Authenticator {
    public func authenticate(user: String, password: String) -> Bool {
        return verify(user: user, password: password)
    }

    func verify(user: String, password: String) -> Bool {
        return password == "secret"
    }
}
""",
    "Sources/Auth/Login.swift": """func login(user: String, password: String) -> Bool {
    return Authenticator().authenticate(user: user, password: password)
}
""",
    "Sources/App/Main.swift": """func start() {
    if login(user: "me", password: "secret") {
        draw()
    }
}

func draw() {
    print("painting the window")
}
""",
    "Sources/App/Protocols.swift": """protocol Authenticatable {
    func token() -> String
}

struct User: Authenticatable {
    func token() -> String { return "user" }
}

class Robot {}

extension Robot: Authenticatable {
    func token() -> String { return "robot" }
}

struct Stone {}
""",
    "Tests/AuthTests/AuthenticatorTests.swift": """import XCTest

class AuthenticatorTests: XCTestCase {
    func testAuthenticationRefusesWrongPassword() {
        XCTAssertFalse(Authenticator().authenticate(user: "me", password: "wrong"))
    }
}
""",
}
SOURCES = {path for path in FILES if not path.startswith("Tests/")}


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(FILES)


@pytest.fixture
def agent(daemon: DaemonAtHand, root: Path) -> Iterator[Host]:
    """Return a host whose project is known, and not yet indexed."""
    with host(daemon, "--project", str(root)) as opened:
        yield opened


@pytest.fixture
def indexed(agent: Host, root: Path) -> Host:
    """Return a host whose project is indexed."""
    assert agent.call("index_codebase", path=str(root))["complete"]
    return agent


# -- MCP Server Protocol
# -----------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "MCP Server Protocol", "Server starts")
def test_server_starts(daemon: DaemonAtHand) -> None:
    with host(daemon, "--toolsets", "research") as agent:
        assert agent.initialized["protocolVersion"]
        assert agent.initialized["serverInfo"]["name"]
        assert "tools" in agent.initialized["capabilities"]
        assert set(TOOLS) <= agent.tools().keys()


@pytest.mark.scenario("research", "MCP Server Protocol", "Tool discovery")
def test_tool_discovery(daemon: DaemonAtHand) -> None:
    """The four tools are of one toolset, which stands beside the core one by default; `outline` is of it too."""
    with host(daemon, "--toolsets", "research", "--structured") as agent:
        tools = agent.tools()
        assert tools.keys() >= {*TOOLS, "outline"}
        required = {
            "search_code": ["query"],
            "code_research": ["query"],
            "index_codebase": ["path"],
        }
        required["watch_codebase"] = ["path", "action"]
        for name in TOOLS:
            schema = tools[name]["inputSchema"]
            assert schema["type"] == "object"
            assert schema["required"] == required[name]
            assert all(
                field.get("description") for field in schema["properties"].values()
            )
        given = {
            name: set(tool["inputSchema"]["properties"]) for name, tool in tools.items()
        }
        assert given["index_codebase"] >= {
            "path",
            "provider",
            "include_tests",
            "rebuild",
        }
        assert given["search_code"] >= {
            "query",
            "limit",
            "semantic_weight",
            "include",
        }  # file_filter is its other name
        assert given["code_research"] >= {"query", "depth"}
        assert tools["watch_codebase"]["inputSchema"]["properties"]["action"][
            "enum"
        ] == ["start", "stop", "status"]


# -- index_codebase
# ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "index_codebase Tool", "Index new project")
def test_index_new_project(daemon: DaemonAtHand, root: Path) -> None:
    with host(daemon) as agent:  # bound to no project
        told = agent.call("index_codebase", path=str(root))
        assert (told["complete"], told["stage"], told["path"]) == (
            True,
            "ready",
            str(root),
        )
        assert told["files"] == len(SOURCES)
        assert told["chunks"] >= told["files"]
        assert told["duration_seconds"] > 0
        assert told["incremental"] == {
            "added": len(FILES),
            "changed": 0,
            "removed": 0,
            "unchanged": 0,
        }
        stats = agent.call("stats", project=told["project"])
        assert (stats["root"], stats["stage"], stats["total_files"]) == (
            str(root),
            "ready",
            len(FILES),
        )


@pytest.mark.scenario("research", "index_codebase Tool", "Incremental index")
def test_incremental_index(indexed: Host, root: Path) -> None:
    """Changes are followed by themselves as well; what is counted is what changed since the connection last asked."""
    generation = indexed.call("stats")["generation"]
    again = indexed.call("index_codebase", path=str(root))
    assert again["incremental"] == {
        "added": 0,
        "changed": 0,
        "removed": 0,
        "unchanged": len(FILES),
    }
    assert indexed.call("stats")["generation"] == generation  # nothing was written
    (root / "Sources/App/New.swift").write_text("func fresh() {}\n")
    (root / "Sources/App/Main.swift").write_text("func start() {}\n")
    (root / "Sources/Auth/Login.swift").unlink()
    told = indexed.call("index_codebase", path=str(root))
    assert told["incremental"] == {
        "added": 1,
        "changed": 1,
        "removed": 1,
        "unchanged": len(FILES) - 2,
    }
    rebuilt = indexed.call("index_codebase", path=str(root), rebuild=True)
    assert rebuilt["incremental"] == {
        "added": len(FILES),
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
    }


@pytest.mark.slow
@pytest.mark.scenario("research", "index_codebase Tool", "Index with specific provider")
def test_index_with_specific_provider(root: Path) -> None:
    """What a call names comes before what the settings say, both ways, until the daemon ends."""
    with (
        serving() as ollama,
        own_daemon(
            FLASHGREP_EMBEDDING_PROVIDER="ollama", FLASHGREP_EMBEDDING_URL=ollama.url
        ) as daemon,
        host(daemon) as agent,
    ):
        told = agent.call("index_codebase", path=str(root), provider="static")
        assert (told["provider"], told["complete"]) == ("static", True)
        asked = len(ollama.requests)
        agent.call(
            "search_code", query="where does a session begin", project=told["project"]
        )
        assert len(ollama.requests) == asked
        told = agent.call("index_codebase", path=str(root), provider="ollama")
        assert (told["provider"], told["complete"]) == ("ollama", True)
        assert any(
            "class Authenticator" in text for texts in ollama.texts for text in texts
        )
        found = agent.call(
            "search_code", query="where does a session begin", project=told["project"]
        )
        assert found["ranked_by"] == "words and meaning"
        assert "where does a session begin" in ollama.texts[-1][0]


@pytest.mark.scenario("research", "index_codebase Tool", "Include test files")
def test_include_test_files(agent: Host, root: Path) -> None:
    """Test files are searched in any case, after the sources: an index without them would answer wrongly."""
    without = agent.call("index_codebase", path=str(root))
    told = agent.call("index_codebase", path=str(root), include_tests=True)
    assert (without["files"], told["files"], told["test_files"]) == (
        len(SOURCES),
        len(FILES),
        1,
    )
    found = agent.call("search_code", query="authentication refuses a wrong password")
    paths = [one["path"] for one in found["results"]]
    assert "Tests/AuthTests/AuthenticatorTests.swift" in paths
    assert "Sources/Auth/Authenticator.swift" in paths


# -- search_code
# -------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "search_code Tool", "Simple search")
def test_simple_search(indexed: Host, root: Path) -> None:
    found = indexed.call("search_code", query="authentication")
    assert found["results"][0]["path"] == "Sources/Auth/Authenticator.swift"
    for one in found["results"]:
        lines = (root / one["path"]).read_text().splitlines()
        assert 1 <= one["startLine"] <= one["endLine"] <= len(lines)
        assert lines[one["startLine"] - 1].strip() in one["content"]


@pytest.mark.scenario("research", "search_code Tool", "Search with limit")
def test_search_with_limit(indexed: Host) -> None:
    assert len(indexed.call("search_code", query="password user token")["results"]) > 2
    for limit in (1, 2, 5):
        assert (
            len(
                indexed.call("search_code", query="password user token", limit=limit)[
                    "results"
                ]
            )
            <= limit
        )


@pytest.mark.scenario("research", "search_code Tool", "Search with file filter")
def test_search_with_file_filter(indexed: Host) -> None:
    everywhere = indexed.call("search_code", query="password of the user", limit=50)[
        "results"
    ]
    assert any(not one["path"].startswith("Sources/Auth/") for one in everywhere)
    found = indexed.call(
        "search_code",
        query="password of the user",
        limit=50,
        file_filter="Sources/Auth/**",
    )
    assert {one["path"] for one in found["results"]} == {
        "Sources/Auth/Authenticator.swift",
        "Sources/Auth/Login.swift",
    }


@pytest.mark.scenario("research", "search_code Tool", "Search result format")
def test_search_result_format(indexed: Host) -> None:
    """`startLine` and `endLine` are this method's own beside `start_line` and `end_line`, which all others have."""
    results = indexed.call("search_code", query="authentication")["results"]
    assert results
    for one in results:
        assert one["content"].strip()
        assert one["path"] in FILES
        assert (one["startLine"], one["endLine"]) == (
            one["start_line"],
            one["end_line"],
        )
        assert 0 <= one["score"] <= 1
        assert one["kind"]
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)


# -- code_research
# -----------------------------------------------------------------------------------------------------


@pytest.mark.scenario(
    "research", "code_research Tool", "Research protocol implementations"
)
def test_research_protocol_implementations(agent: Host) -> None:
    told = agent.call("code_research", query="all implementations of Authenticatable")
    found = {
        (one["type"], one["base"], one["extension"]) for one in told["conformances"]
    }
    assert found == {
        ("User", "Authenticatable", False),
        ("Robot", "Authenticatable", True),
    }
    names = {one["name"] for one in told["results"]}
    assert {"User", "Robot"} <= names
    assert "Stone" not in names


@pytest.mark.scenario("research", "code_research Tool", "Research with depth")
def test_research_with_depth(agent: Host) -> None:
    found = {
        depth: agent.call("code_research", query="what calls verify", depth=depth)
        for depth in (1, 2, 3)
    }
    hops = {
        depth: {one["name"]: one["hop"] for one in told["results"]}
        for depth, told in found.items()
    }
    assert "Authenticator.authenticate" in hops[1]
    assert "login" not in hops[1]
    assert hops[2]["login"] == 2
    assert "start" not in hops[2]
    assert hops[3]["start"] == 3
    edges = {(one["from"], one["to"]) for one in found[3]["dependencies"]}
    assert ("Sources/Auth/Login.swift", "Sources/Auth/Authenticator.swift") in edges
    assert ("Sources/App/Main.swift", "Sources/Auth/Login.swift") in edges


@pytest.mark.scenario("research", "code_research Tool", "Research call graph")
def test_research_call_graph(agent: Host) -> None:
    told = agent.call("code_research", query="what calls authenticate()", depth=2)
    hops = {one["name"]: one["hop"] for one in told["results"]}
    assert (hops["login"], hops["start"]) == (1, 2)
    assert any(
        "login" in chain and "start" in chain and "authenticate" in chain
        for chain in told["chains"]
    )


# -- watch_codebase
# ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "watch_codebase Tool", "Start watching")
def test_start_watching(agent: Host, root: Path) -> None:
    """Every project is watched from the moment it is open; starting again changes nothing."""
    agent.call("watch_codebase", path=str(root), action="stop")
    told = agent.call("watch_codebase", path=str(root), action="start")
    assert (told["state"], told["changed"], told["path"]) == (
        "watching",
        True,
        str(root),
    )
    assert told["message"].startswith("watching")
    again = agent.call("watch_codebase", path=str(root), action="start")
    assert (again["state"], again["changed"]) == ("watching", False)
    (root / "Sources/App/Main.swift").write_text("func caught() {}\n")
    found = agent.call("query", text="caught", mode="literal")
    assert [one["file_path"] for one in found["results"]] == ["Sources/App/Main.swift"]
    assert "detail" not in found["coverage"]


@pytest.mark.scenario("research", "watch_codebase Tool", "Stop watching")
def test_stop_watching(indexed: Host, root: Path) -> None:
    """Stopped, each question looks at the whole tree instead: answers stay right."""
    told = indexed.call("watch_codebase", path=str(root), action="stop")
    assert (told["state"], told["changed"], told["files_watched"]) == (
        "stopped",
        True,
        0,
    )
    assert told["message"].startswith("stopped")
    again = indexed.call("watch_codebase", path=str(root), action="stop")
    assert (again["state"], again["changed"]) == ("stopped", False)
    stats = indexed.call("stats")
    assert stats["watching"] is False
    (root / "Sources/App/New.swift").write_text("func unwatched() {}\n")
    (root / "Sources/App/Main.swift").unlink()
    found = indexed.call("query", text="unwatched", mode="literal")
    assert [one["file_path"] for one in found["results"]] == ["Sources/App/New.swift"]
    assert found["coverage"]["fresh"]
    assert "stopped" in found["coverage"]["detail"]
    assert indexed.call("query", text="draw", mode="literal")["results"] == []


@pytest.mark.scenario("research", "watch_codebase Tool", "Watch status")
def test_watch_status(daemon: DaemonAtHand, root: Path) -> None:
    with host(daemon) as agent:
        closed = agent.call("watch_codebase", path=str(root), action="status")
        assert (closed["state"], closed["files_watched"]) == ("closed", 0)
        agent.call("watch_codebase", path=str(root), action="start")
        told = agent.call("watch_codebase", path=str(root), action="status")
        assert (told["state"], told["changed"], told["files_watched"]) == (
            "watching",
            False,
            len(FILES),
        )
        assert {one["file_path"] for one in told["results"]} == FILES.keys()
        agent.call("watch_codebase", path=str(root), action="stop")
        assert (
            agent.call("watch_codebase", path=str(root), action="status")["state"]
            == "stopped"
        )


# -- Error Handling
# ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "Error Handling", "Search without index")
def test_search_without_index(daemon: DaemonAtHand, project: MakeProject) -> None:
    """The first question starts the index; while nothing is there the error says so, and which lines are likely."""
    root = project(FILES)
    with host(daemon) as agent:
        error = agent.fail("search_code", query="authentication", project=str(root))
        likely = "Sources/Auth/Authenticator.swift:3: /// Checks the user's password and opens a session: authentication."
        assert likely in error["data"]["likely_lines"]
        assert f"the words:\n{likely}\n" in render_error(error)
        assert (error["code"], error["data"]["reason"]) == (-32000, "index_not_found")
        assert error["message"].startswith("Index not found")
        assert error["data"]["path"] == str(root)
        assert "index_codebase" in error["data"]["suggestion"]
        assert agent.call("index_codebase", path=str(root))["complete"]
        assert agent.call("search_code", query="authentication", project=str(root))[
            "results"
        ]


@pytest.mark.scenario("research", "Error Handling", "Invalid path")
def test_invalid_path(agent: Host, root: Path) -> None:
    missing = root / "nowhere"
    for tool, more in [("index_codebase", {}), ("watch_codebase", {"action": "start"})]:
        error = agent.fail(tool, path=str(missing), **more)
        assert (error["code"], error["data"]["reason"]) == (-32001, "path_not_found")
        assert (error["data"]["path"], str(missing) in error["message"]) == (
            str(missing),
            True,
        )
        assert "absolute path" in error["data"]["suggestion"]
        file = agent.fail(tool, path=str(root / "Sources/App/Main.swift"), **more)
        assert (file["code"], file["data"]["reason"]) == (-32001, "directory_not_found")


@pytest.mark.scenario("research", "Error Handling", "Provider unavailable")
def test_provider_unavailable(agent: Host, root: Path) -> None:
    error = agent.fail("index_codebase", path=str(root), provider="openai")
    assert (error["code"], error["data"]["reason"]) == (-32000, "provider_unavailable")
    assert "openai" in error["message"]
    assert "static" in error["data"]["available"]
    assert "openai" not in error["data"]["available"]


# -- Progress Reporting
# ------------------------------------------------------------------------------------------------


@pytest.mark.scenario("research", "Progress Reporting", "Index progress")
def test_index_progress(daemon: DaemonAtHand, project: MakeProject) -> None:
    files = 400
    root = project(
        {
            f"source{number}.py": f"value_{number} = {number}\n" * 20
            for number in range(files)
        }
    )
    with host(daemon) as agent:
        _, reports = agent.follow("index_codebase", path=str(root))
    assert len(reports) >= 2
    done = [report["progress"] for report in reports]
    assert done == sorted(set(done))
    assert 0 <= done[0] < done[-1] <= files
    assert {report["total"] for report in reports[1:]} == {files}
    assert all(
        re.fullmatch(r"\w+: \d+ of \d+ files", report["message"]) for report in reports
    )
    assert any(
        report["message"].endswith(f": {files} of {files} files") for report in reports
    )


@pytest.mark.scenario("research", "Progress Reporting", "Search progress")
def test_search_progress(daemon: DaemonAtHand, project: MakeProject) -> None:
    """Reports nobody could tell apart by eye are left out: a quick machine sends the first alone."""
    chain: dict[str, str | bytes] = {"caller_0.py": "def step_0():\n    pass\n"}
    for hop in range(3):
        source = f"from caller_{hop} import step_{hop}\n\n\ndef step_{hop + 1}():\n    step_{hop}()\n"
        chain[f"caller_{hop + 1}.py"] = source
        for number in range(30):
            lines = [
                f"def other_{hop}_{number}_{line}():\n    return {line}\n"
                for line in range(200)
            ]
            chain[f"hop{hop}_{number}.py"] = f"# names step_{hop}\n" + "".join(lines)
    with host(daemon, "--project", str(project(chain))) as agent:
        told, reports = agent.follow(
            "code_research", query="what calls step_0", depth=3, deadline_ms=100_000
        )
    assert told["hops"] == 3
    assert {one["name"]: one["hop"] for one in told["results"]} == {
        "step_0": 0,
        "step_1": 1,
        "step_2": 2,
        "step_3": 3,
    }
    hops = [report["progress"] for report in reports]
    assert hops
    assert hops == sorted(set(hops))
    assert all(report["total"] == 3 for report in reports)
    assert all(
        report["message"].startswith(f"hop {report['progress']:g}:")
        for report in reports
    )
