"""The contract "collections": search over the collections a client was started with, beside HTTP, by three tools."""

import http.client
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flashgrep import __version__
from tests.conftest import BOUND, FGREP, DaemonAtHand, Wire, own_daemon, short_folder
from tests.scenarios.hosts import Host, host, post
from tests.support.embed_server import serving
from tests.support.mcp_clients import INITIALIZE, open_http, token_of

TOOLS = ["search_code_by_payload", "search_code_fulltext", "search_code_semantic"]
REPOSITORIES: dict[str, dict[str, str]] = {
    "my-repo": {
        "src/search/ranking.ts": "/** Orders search hits, best first. */\n"
        "export function rankHits(hits: Hit[]): Hit[] {\n  return hits.sort((a, b) => b.score - a.score);\n}\n",
        "src/search/query.ts": "export function parseQuery(text: string): string[] {\n"
        '  // splits what the user typed\n  return text.split(" ");\n}\n',
        "src/mail/send.ts": "/** Sends an electronic letter to a customer. */\n"
        "export function sendLetter(customer: string): void {\n  transport.deliver(customer);\n}\n",
        "tools/rank.py": "def rank_hits(hits):\n    return sorted(hits, key=score)\n",
    },
    "repo1": {
        "one.py": "def shared_marker_one():\n    '''Opens the vault.'''\n    return unlock('vault')\n"
    },
    "repo2": {
        "two.py": "def shared_marker_two():\n    '''Closes the vault.'''\n    return lock('vault')\n"
    },
    "repo3": {
        "three.py": "def shared_marker_three():\n    '''Paints the vault.'''\n    return paint('vault')\n"
    },
    "repo4": {
        "four.py": "def shared_marker_four():\n    '''Sells the vault.'''\n    return sell('vault')\n"
    },
}


def make_repository(base: Path, name: str) -> Path:
    root = base / name
    for path, text in REPOSITORIES[name].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".git").mkdir()
    return root


@contextmanager
def repositories(daemon: DaemonAtHand, *names: str) -> Iterator[Path]:
    """Have the daemon know and index some of the repositories; a collection is a project, by its folder's name."""
    base = short_folder()
    try:
        for name in names:
            indexed = daemon.run("index", str(make_repository(base, name)))
            assert indexed.returncode == 0, indexed.stderr
        yield base
    finally:
        shutil.rmtree(base)


@pytest.fixture(scope="module")
def known(daemon: DaemonAtHand) -> Iterator[DaemonAtHand]:
    """Return a daemon that has every repository indexed."""
    with repositories(daemon, *REPOSITORIES):
        yield daemon


@pytest.fixture
def agent(known: DaemonAtHand) -> Iterator[Host]:
    """Return a host that was started for one collection."""
    with host(known, "--collection", "my-repo", "--toolsets", "collections") as opened:
        yield opened


def paths(result: Any) -> list[str]:
    return [one["payload"]["filePath"] for one in result["results"]]


def found_in(agent: Host, **more: Any) -> set[str]:
    """Return the collections in which the mark that every numbered repository has is found."""
    found = agent.call("search_code_fulltext", textQuery="shared_marker", **more)
    return {one["payload"]["repository"] for one in found["results"]}


# -- MCP Server Initialization
# -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.scenario(
    "collections", "MCP Server Initialization", "MCP Server Starts Successfully"
)
def test_mcp_server_starts_successfully() -> None:
    """The server speaks on `fgrep mcp`'s standard input and output; the daemon behind it serves HTTP meanwhile."""
    settings = {
        "MCP_ENABLED": "true",
        "FLASHGREP_HTTP_ENABLED": "true",
        "FLASHGREP_HTTP_PORT": "0",
    }
    with (
        own_daemon(**settings) as daemon,
        repositories(daemon, "repo1"),
        host(daemon) as agent,
    ):
        assert agent.initialized["serverInfo"]["name"] == "flashgrep"
        assert agent.tools()
        status, told = post(
            daemon, "/call/query?project=repo1", {"text": "shared_marker_one"}
        )
        assert (status, told["results"][0]["file_path"]) == (200, "one.py")
        assert agent.tools()


@pytest.mark.slow
@pytest.mark.scenario("collections", "MCP Server Initialization", "MCP Server Disabled")
def test_mcp_server_disabled() -> None:
    settings = {
        "MCP_ENABLED": "false",
        "FLASHGREP_HTTP_ENABLED": "true",
        "FLASHGREP_HTTP_PORT": "0",
    }
    with own_daemon(**settings) as daemon, repositories(daemon, "repo1"):
        ran = daemon.run(
            "mcp",
            cwd=Path("/"),
            stdin=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
            + "\n",
        )
        assert '"serverInfo"' not in ran.stdout
        assert ran.returncode != 0 or json.loads(ran.stdout)["error"]["code"] == -32601
        status, _ = post(
            daemon,
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        )
        assert status == 404
        status, told = post(
            daemon, "/call/query?project=repo1", {"text": "shared_marker_one"}
        )
        assert (status, told["results"][0]["file_path"]) == (200, "one.py")


# -- Tool Discovery
# ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario("collections", "Tool Discovery", "List Available Tools")
def test_list_available_tools(agent: Host) -> None:
    """The three tools are the toolset `collections`, which a host asks for; all others can be called all the same."""
    tools = agent.tools()
    assert sorted(tools) == TOOLS
    fields = {
        "search_code_semantic": (["query"], {"query", "prompt", "top_k"}),
        "search_code_fulltext": (["textQuery"], {"textQuery", "payload", "top_k"}),
        "search_code_by_payload": (["payload"], {"payload", "top_k"}),
    }
    for name, (required, given) in fields.items():
        schema = tools[name]["inputSchema"]
        assert (schema["type"], schema["required"], set(schema["properties"])) == (
            "object",
            required,
            given,
        )
        assert schema["properties"]["top_k"]["default"] == 10
        assert all(field.get("description") for field in schema["properties"].values())
        assert tools[name]["description"]


# -- Semantic Search Tool
# ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.scenario("collections", "Semantic Search Tool", "Execute Semantic Search")
def test_execute_semantic_search(known: DaemonAtHand, agent: Host) -> None:
    """A prompt adds its words to the question; a reranker, where one is set, has the last word on the order."""
    found = agent.call("search_code_semantic", query="order the hits of a search")
    assert found["collections"] == ["my-repo"]
    assert found["results"][0]["payload"]["filePath"] == "src/search/ranking.ts"
    for one in found["results"]:
        assert 0 <= one["score"] <= 1
        assert one["payload"]["content"].strip()
        assert one["payload"]["repository"] == "my-repo"
    assert (
        len(
            agent.call(
                "search_code_semantic", query="order the hits of a search", top_k=1
            )["results"]
        )
        == 1
    )
    prompted = agent.call(
        "search_code_semantic",
        query="how does it work",
        prompt="send a letter to the customer",
    )
    assert paths(prompted)[0] == "src/mail/send.ts"
    del known
    with serving() as reranker:
        settings = {
            "FLASHGREP_RERANKING_PROVIDER": "http",
            "FLASHGREP_RERANKING_URL": reranker.url,
        }
        with (
            own_daemon(**settings) as daemon,
            repositories(daemon, "my-repo"),
            host(daemon, "--collection", "my-repo") as reranked,
        ):
            question = "what the user typed in a search of hits"
            first = reranked.call("search_code_semantic", query=question)
            assert (
                paths(first)[0] == "src/search/query.ts"
            )  # the server likes words as they stand
            [asked] = [
                request.body
                for request in reranker.requests
                if request.path.endswith("/rerank")
            ]
            assert asked["query"] == question
            assert len(asked["documents"]) >= len(first["results"])


@pytest.mark.scenario(
    "collections", "Semantic Search Tool", "Semantic Search with Invalid Parameters"
)
def test_semantic_search_with_invalid_parameters(agent: Host) -> None:
    for arguments in (
        {},
        {"prompt": "only a prompt"},
        {"query": ""},
        {"query": "x", "top_k": 0},
    ):
        error = agent.fail("search_code_semantic", **arguments)
        assert (error["code"], error["data"]["reason"]) == (-32602, "invalid_params")
        assert error["data"]["field"] in error["message"]


@pytest.mark.scenario(
    "collections",
    "Semantic Search Tool",
    "Semantic Search without Collection Initialization",
)
def test_semantic_search_without_collection_initialization(known: DaemonAtHand) -> None:
    with host(known) as agent:
        error = agent.fail("search_code_semantic", query="order the hits")
        assert (error["code"], error["data"]["reason"]) == (
            -32603,
            "collection_required",
        )
        assert (
            "collection must be specified during client initialization"
            in error["message"]
        )


# -- Full-Text Search Tool
# ---------------------------------------------------------------------------------------------


@pytest.mark.scenario(
    "collections", "Full-Text Search Tool", "Execute Full-Text Search"
)
def test_execute_full_text_search(agent: Host) -> None:
    found = agent.call("search_code_fulltext", textQuery="hits.sort(")
    [first, *_] = found["results"]
    assert (first["payload"]["filePath"], first["payload"]["language"]) == (
        "src/search/ranking.ts",
        "typescript",
    )
    assert "hits.sort(" in first["payload"]["content"]
    assert (first["payload"]["startLine"], first["payload"]["repository"]) == (
        1,
        "my-repo",
    )
    partial = agent.call("search_code_fulltext", textQuery="parseQ")
    assert paths(partial)[0] == "src/search/query.ts"
    assert (
        len(agent.call("search_code_fulltext", textQuery="return", top_k=2)["results"])
        == 2
    )


@pytest.mark.scenario(
    "collections", "Full-Text Search Tool", "Full-Text Search with Payload Filters"
)
def test_full_text_search_with_payload_filters(agent: Host) -> None:
    everywhere = agent.call("search_code_fulltext", textQuery="return")
    assert {one["payload"]["language"] for one in everywhere["results"]} == {
        "typescript",
        "python",
    }
    for payload, language in [
        ({"language": "typescript"}, "typescript"),
        ({"language": "python"}, "python"),
    ]:
        found = agent.call("search_code_fulltext", textQuery="return", payload=payload)
        assert found["collections"] == ["my-repo"]
        assert {one["payload"]["language"] for one in found["results"]} == {language}
        assert any("return" in one["payload"]["content"] for one in found["results"])


# -- Payload Search Tool
# -----------------------------------------------------------------------------------------------


@pytest.mark.scenario("collections", "Payload Search Tool", "Execute Payload Search")
def test_execute_payload_search(agent: Host) -> None:
    assert set(
        paths(agent.call("search_code_by_payload", payload={"language": "python"}))
    ) == {"tools/rank.py"}
    named = agent.call(
        "search_code_by_payload", payload={"kind": "function", "name": "send*"}
    )
    assert [one["payload"]["name"] for one in named["results"]] == ["sendLetter"]
    assert (
        len(
            agent.call(
                "search_code_by_payload", payload={"language": "typescript"}, top_k=2
            )["results"]
        )
        == 2
    )
    assert (
        agent.call("search_code_by_payload", payload={"language": "rust"})["results"]
        == []
    )


@pytest.mark.scenario(
    "collections", "Payload Search Tool", "Search by File Path Pattern"
)
def test_search_by_file_path_pattern(agent: Host) -> None:
    found = agent.call(
        "search_code_by_payload", payload={"filePath": "/src/search/*"}, top_k=100
    )
    assert set(paths(found)) == {"src/search/ranking.ts", "src/search/query.ts"}
    assert {one["payload"]["repository"] for one in found["results"]} == {"my-repo"}
    texts = "".join(one["payload"]["content"] for one in found["results"])
    assert "rankHits" in texts
    assert "parseQuery" in texts


# -- Error Handling
# ----------------------------------------------------------------------------------------------------


@pytest.mark.scenario(
    "collections", "Error Handling", "Service Error During Tool Execution"
)
def test_service_error_during_tool_execution(daemon: DaemonAtHand) -> None:
    """On plain wires the error is the response's own; as a tool's it is its result, so that a model can read it."""
    base = short_folder()
    root = make_repository(base, "repo1").rename(base / "vanishing")
    try:
        daemon.run("index", str(root))
        with (
            host(daemon, "--collection", "vanishing") as bound,
            host(daemon) as unbound,
        ):
            shutil.rmtree(root)
            cases = [
                (bound, {"query": "x", "top_k": "many"}, -32602, "top_k"),
                (bound, {"query": "x"}, -32001, "vanishing"),
                (unbound, {"query": "x"}, -32603, "collection"),
            ]
            for agent, arguments, code, part in cases:
                error = agent.fail("search_code_semantic", **arguments)
                assert error["code"] == code
                assert part in error["message"]
                plain = agent.request("search_code_semantic", **arguments)
                assert (plain["jsonrpc"], plain["error"]) == ("2.0", error)
    finally:
        shutil.rmtree(base)


# -- Graceful Shutdown
# -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.scenario("collections", "Graceful Shutdown", "Application Shutdown")
def test_application_shutdown() -> None:
    """The request in flight is one whose body is still on its way when the signal comes."""
    with own_daemon() as daemon, repositories(daemon, "repo1"):
        port = open_http(daemon)
        process = daemon.status()["pid"]
        wire = daemon.wire("unix")
        wire.send(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        )
        assert wire.receive()["id"] == 1
        with closing(
            http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        ) as connection:
            body = json.dumps({"text": "shared_marker_one"}).encode()
            connection.putrequest("POST", "/call/query?project=repo1")
            connection.putheader("Authorization", f"Bearer {token_of(daemon)}")
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body[:5])
            assert (
                post(daemon, "/call/stats?project=repo1", {})[0] == 200
            )  # the first is taken in by now
            os.kill(process, signal.SIGTERM)
            assert wire.receive_line() == b""
            connection.send(body[5:])
            answer = connection.getresponse()
            assert (
                answer.status,
                json.loads(answer.read())["results"][0]["file_path"],
            ) == (200, "one.py")
        wire.close()
        assert daemon.run("daemon", "stop").returncode in {
            0,
            1,
        }  # waits for the last of it
        assert (
            not Path(f"/proc/{process}/cmdline").exists()
            or not Path(f"/proc/{process}/cmdline").read_bytes()
        )
        assert not Path(daemon.paths.socket).exists()


# -- Configuration
# -----------------------------------------------------------------------------------------------------


def settings_of(**environ: str) -> dict[str, Any]:
    """Return the settings in force with these variables, and what a server started by them tells of itself."""
    with own_daemon(**environ) as daemon:
        shown = json.loads(daemon.run("config", "show", "--json").stdout)
        found = {
            name: shown[f"mcp.{name}"]["value"]
            for name in ("enabled", "transport", "server_name")
        }
        found |= {
            "version": shown["mcp.server_version"]["value"],
            "origin": shown["mcp.server_name"]["origin"],
        }
        if found["enabled"] and found["transport"] != "http":
            with host(daemon) as agent:
                server = agent.initialized["serverInfo"]
                found["told"] = {name: server[name] for name in ("name", "version")}
            message = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": INITIALIZE,
            }
            found["over_http"] = post(daemon, "/mcp", message)[0]
        return found


@pytest.mark.slow
@pytest.mark.scenario("collections", "Configuration", "Configure MCP Server")
def test_configure_mcp_server() -> None:
    """The variables are the contract's; the defaults are our own: on, everywhere, own name and version."""
    told = {"name": "flashgrep", "version": __version__}
    usual = {
        "enabled": True,
        "transport": "both",
        "server_name": "flashgrep",
        "version": "",
        "origin": "default",
    }
    assert settings_of() == {**usual, "told": told, "over_http": 200}
    named = {
        "MCP_SERVER_NAME": "code-indexer",
        "MCP_SERVER_VERSION": "9.8.7",
        "MCP_TRANSPORT": "stdio",
    }
    assert settings_of(MCP_ENABLED="true", **named) == {
        "enabled": True,
        "transport": "stdio",
        "server_name": "code-indexer",
        "version": "9.8.7",
        "origin": "environment",
        "told": {"name": "code-indexer", "version": "9.8.7"},
        "over_http": 404,
    }
    assert settings_of(MCP_ENABLED="false")["enabled"] is False


@pytest.mark.scenario(
    "collections", "Configuration", "Client Initializes with Single Collection"
)
def test_client_initializes_with_single_collection(known: DaemonAtHand) -> None:
    with host(known, "--collection", "repo2") as agent:
        assert found_in(agent) == {"repo2"}
        assert set(
            paths(agent.call("search_code_semantic", query="who touches the vault"))
        ) == {"two.py"}
        assert set(
            paths(agent.call("search_code_by_payload", payload={"language": "python"}))
        ) == {"two.py"}
        assert found_in(agent, payload={"repository": "repo1"}) == set()


@pytest.mark.scenario(
    "collections", "Configuration", "Client Initializes with Multiple Collections"
)
def test_client_initializes_with_multiple_collections(known: DaemonAtHand) -> None:
    with host(known, "--collections", "repo1,repo2,repo3") as agent:
        assert found_in(agent) == {"repo1", "repo2", "repo3"}
        mine = {"one.py", "two.py", "three.py"}
        assert (
            set(
                paths(agent.call("search_code_semantic", query="who touches the vault"))
            )
            == mine
        )
        assert (
            set(
                paths(
                    agent.call("search_code_by_payload", payload={"language": "python"})
                )
            )
            == mine
        )
        assert found_in(agent, payload={"repository": ["repo3"]}) == {"repo3"}


@pytest.mark.scenario(
    "collections", "Configuration", "Client Connects without Collection Arguments"
)
def test_client_connects_without_collection_arguments(known: DaemonAtHand) -> None:
    calls: dict[str, dict[str, Any]] = {
        "search_code_semantic": {"query": "vault"},
        "search_code_fulltext": {"textQuery": "vault"},
        "search_code_by_payload": {"payload": {"language": "python"}},
    }
    with host(known) as agent:
        for tool, arguments in calls.items():
            error = agent.fail(tool, **arguments)
            assert error["code"] == -32603
            assert (
                "collection must be specified during client initialization"
                in error["message"]
            )
            assert "--collection" in error["data"]["suggestion"]


@pytest.mark.scenario(
    "collections", "Configuration", "Multiple Clients with Different Collections"
)
def test_multiple_clients_with_different_collections(known: DaemonAtHand) -> None:
    with (
        host(known, "--collection", "repo1") as first,
        host(known, "--collections", "repo2,repo3") as second,
        host(known) as third,
    ):
        for _ in range(3):
            assert found_in(first) == {"repo1"}
            assert found_in(second) == {"repo2", "repo3"}
            assert (
                third.fail("search_code_fulltext", textQuery="shared_marker")["code"]
                == -32603
            )
        asked = {
            "jsonrpc": "2.0",
            "method": "search_code_fulltext",
            "params": {"textQuery": "shared_marker"},
        }
        for agent in (first, second):
            agent.wire.send({**asked, "id": "both at once"})
        told = [
            agent.wire.receive()["result"]["collections"] for agent in (first, second)
        ]
        assert told == [["repo1"], ["repo2", "repo3"]]


# -- Testing
# -----------------------------------------------------------------------------------------------------------


@pytest.mark.scenario("collections", "Testing", "Unit Test Tool Handlers")
def test_unit_test_tool_handlers(known: DaemonAtHand) -> None:
    """Each tool by itself, by its bare name on a socket: what it refuses, whom it asks, what its answer looks like."""
    wire: Wire = known.wire("unix")
    wire.call("$/bind", collections=["repo1", "repo2"])
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("search_code_semantic", {}, "query"),
        ("search_code_semantic", {"query": "x", "top_k": 101}, "top_k"),
        ("search_code_semantic", {"query": "x", "colour": "red"}, "colour"),
        ("search_code_fulltext", {"textQuery": ""}, "textQuery"),
        (
            "search_code_fulltext",
            {"textQuery": "x", "payload": {"colour": "red"}},
            "payload.colour",
        ),
        ("search_code_by_payload", {}, "payload"),
        ("search_code_by_payload", {"payload": {"startLine": 0}}, "payload.startLine"),
    ]
    for tool, params, field in refused:
        error = wire.fail(tool, **params)
        assert (error["code"], error["data"]["field"]) == (-32602, field)
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("search_code_semantic", {"query": "vault"}, "words and meaning"),
        ("search_code_fulltext", {"textQuery": "vault"}, "text"),
        ("search_code_by_payload", {"payload": {"language": "python"}}, "path"),
    ]
    for tool, params, ranked_by in calls:
        told = wire.call(tool, **params)
        assert (told["ranked_by"], told["collections"]) == (
            ranked_by,
            ["repo1", "repo2"],
        )
        for one in told["results"]:
            assert one.keys() == {"score", "payload"}
            assert one["payload"].keys() >= {
                "content",
                "filePath",
                "language",
                "repository",
                "startLine",
                "endLine",
            }
            source = REPOSITORIES[one["payload"]["repository"]][
                one["payload"]["filePath"]
            ]
            assert one["payload"]["content"].strip() in source
    wire.close()


@pytest.mark.scenario("collections", "Testing", "Integration Test MCP Protocol")
def test_integration_test_mcp_protocol(known: DaemonAtHand) -> None:
    """One process as a host starts it, whose input is written before it runs and whose output is read to its end."""
    call = {"jsonrpc": "2.0", "method": "tools/call"}
    fulltext = {
        "name": "search_code_fulltext",
        "arguments": {"textQuery": "shared_marker_one"},
    }
    messages = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {**call, "id": 2, "params": fulltext},
        {**call, "id": 3, "params": {"name": "search_code_fulltext", "arguments": {}}},
        {**call, "id": 4, "params": {"name": "search_code_magically", "arguments": {}}},
    ]
    ran = subprocess.run(
        [
            FGREP,
            "mcp",
            "--structured",
            "--collection",
            "repo1",
            "--toolsets",
            "collections",
        ],
        input="".join(json.dumps(message) + "\n" for message in messages),
        env=known.environ,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    answers = {
        message["id"]: message for message in map(json.loads, ran.stdout.splitlines())
    }
    assert sorted(answers) == [0, 1, 2, 3, 4]
    assert sorted(tool["name"] for tool in answers[1]["result"]["tools"]) == TOOLS
    found = answers[2]["result"]
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert paths(found["structuredContent"]) == ["one.py"]
    failed = answers[3]["result"]
    assert (failed["isError"], failed["structuredContent"]["code"]) == (True, -32602)
    assert answers[4]["error"]["code"] == -32602
