"""The contract "semantic_search": an MCP server and its tool `semantic_search` over all indexed repositories.

Names of the contract's own program (its class, its library's classes) stand for what does their work here.
"""

import json
import os
import re
import signal
from contextlib import closing
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import DaemonAtHand, own_daemon
from tests.scenarios.hosts import Host, get, host
from tests.scenarios.shops import (
    QUESTION,
    REPOSITORIES,
    ask_by_the_official_client,
    search,
)
from tests.support.mcp_clients import INITIALIZE, McpClient, transport

NAMED = {"MCP_SERVER_NAME": "personal-knowledge-mcp", "MCP_SERVER_VERSION": "1.0.0"}


def full_schema(daemon: DaemonAtHand) -> Any:
    """Return the tool's input with its bounds, which MCP's list leaves out to spare a model's context."""
    described = get(daemon, "/openapi.json")["paths"]["/call/semantic_search"]["post"]
    return described["requestBody"]["content"]["application/json"]["schema"]


def refuses(searcher: Host, field: str, *values: Any) -> None:
    for value in values:
        error = searcher.fail("semantic_search", **{"query": QUESTION, field: value})
        assert (error["code"], error["data"]["field"]) == (-32602, field), value


# -- MCP Server
# --------------------------------------------------------------------------------------------------------


@pytest.mark.scenario(
    "semantic_search", "MCP Server", "PersonalKnowledgeMCPServer class implemented"
)
def test_personal_knowledge_mcp_server_class_implemented(searcher: Host) -> None:
    """The class is the daemon's service of the protocol; what it is to do, it does: shake hands, list, call."""
    assert searcher.initialized["serverInfo"]
    assert "semantic_search" in searcher.tools()
    assert search(searcher)["results"]


@pytest.mark.scenario(
    "semantic_search", "MCP Server", "Uses @modelcontextprotocol/sdk package"
)
async def test_uses_the_official_sdk_package(daemon: DaemonAtHand, shops: Path) -> None:
    """Python's official package it is: HTTP is served by it, and its client speaks with the process on stdio."""
    assert shops.is_dir()
    assert any(re.match(r"mcp\b", name) for name in requires("flashgrep") or ())
    client = McpClient(transport("http", daemon, shops / "shop"), "legacy")
    client.start()
    assert client.call("semantic_search", query=QUESTION, threshold=0)[
        "structuredContent"
    ]["results"]
    tools, found, _ = await ask_by_the_official_client(daemon, "legacy")
    assert "semantic_search" in tools
    assert found.structured_content["results"]


def server_told(**environ: str) -> Any:
    """Return what a server with these variables answers to the handshake."""
    with own_daemon(**environ) as daemon, host(daemon) as searcher:
        return searcher.initialized


@pytest.mark.slow
@pytest.mark.scenario("semantic_search", "MCP Server", "Server configuration")
def test_server_configuration() -> None:
    """Name and version are settings; without them the server tells its own."""
    told = server_told(**NAMED)
    assert told["serverInfo"] == {"name": "personal-knowledge-mcp", "version": "1.0.0"}
    assert "tools" in told["capabilities"]


@pytest.mark.slow
@pytest.mark.scenario(
    "semantic_search",
    "MCP Server",
    "Server configuration: Name: personal-knowledge-mcp",
)
def test_server_configuration_name(searcher: Host) -> None:
    assert (
        server_told(MCP_SERVER_NAME="personal-knowledge-mcp")["serverInfo"]["name"]
        == "personal-knowledge-mcp"
    )
    assert searcher.initialized["serverInfo"]["name"] == "flashgrep"


@pytest.mark.slow
@pytest.mark.scenario(
    "semantic_search", "MCP Server", "Server configuration: Version: 1.0.0"
)
def test_server_configuration_version(searcher: Host) -> None:
    assert server_told(MCP_SERVER_VERSION="1.0.0")["serverInfo"]["version"] == "1.0.0"
    assert searcher.initialized["serverInfo"]["version"] != "1.0.0"


@pytest.mark.scenario(
    "semantic_search", "MCP Server", "Server configuration: Capabilities: { tools: {} }"
)
def test_server_configuration_capabilities(searcher: Host) -> None:
    assert searcher.initialized["capabilities"]["tools"] == {"listChanged": False}


@pytest.mark.scenario(
    "semantic_search", "MCP Server", "Transport: StdioServerTransport"
)
def test_transport_stdio(daemon: DaemonAtHand, shops: Path) -> None:
    """Standard output carries messages alone, one a line; nothing is said on standard error."""
    assert shops.is_dir()
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    ]
    messages.append({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    ran = daemon.run(
        "mcp",
        cwd=Path("/"),
        stdin="".join(json.dumps(message) + "\n" for message in messages),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {json.loads(line)["id"] for line in ran.stdout.splitlines()} == {1, 2}


@pytest.mark.scenario("semantic_search", "MCP Server", "Request handlers")
def test_request_handlers(searcher: Host) -> None:
    assert "tools" in searcher.request("tools/list")["result"]
    called = searcher.request(
        "tools/call", name="semantic_search", arguments={"query": QUESTION}
    )
    assert called["result"]["isError"] is False
    assert searcher.request("tools/forget")["error"]["code"] == -32601


@pytest.mark.scenario(
    "semantic_search",
    "MCP Server",
    "Request handlers: ListToolsRequestSchema - Returns tool definitions",
)
def test_request_handlers_list_tools(searcher: Host) -> None:
    [tool] = searcher.request("tools/list")["result"]["tools"]
    assert tool["name"] == "semantic_search"
    jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])


@pytest.mark.scenario(
    "semantic_search",
    "MCP Server",
    "Request handlers: CallToolRequestSchema - Routes to tool handlers",
)
def test_request_handlers_call_tool(searcher: Host, shops: Path) -> None:
    """What is not listed for this host is routed all the same."""
    assert search(searcher)["metadata"]["repositories_searched"]
    stats = searcher.call("stats", project="shop")
    assert stats["root"] == str(shops / "shop")


@pytest.mark.slow
@pytest.mark.scenario("semantic_search", "MCP Server", "Graceful startup and shutdown")
def test_graceful_startup_and_shutdown() -> None:
    """The host's end of input ends its process and not the daemon; the daemon's end closes its connections."""
    with own_daemon() as daemon:
        ran = daemon.run(
            "mcp",
            cwd=Path("/"),
            stdin=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            + "\n",
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        process = daemon.status()["pid"]
        with closing(daemon.wire("unix")) as wire:
            wire.send(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "initialize",
                    "params": INITIALIZE,
                }
            )
            assert wire.receive()["id"] == 1
            os.kill(process, signal.SIGTERM)
            assert wire.receive_line() == b""


def logged_while_searching(daemon: DaemonAtHand) -> list[dict[str, Any]]:
    """Search well, search badly, and return the structured messages that the client was sent meanwhile."""
    with host(daemon) as searcher:
        searcher.request("logging/setLevel", level="debug")
        search(searcher)
        searcher.fail("semantic_search", query="")
        searcher.call("stats", project="shop")
        return [
            notice["params"]
            for notice in searcher.notices
            if notice["method"] == "notifications/message"
        ]


@pytest.mark.scenario(
    "semantic_search", "MCP Server", "Structured logging for all operations"
)
def test_structured_logging_for_all_operations(
    daemon: DaemonAtHand, shops: Path
) -> None:
    """Each call is told to the client that asks for it, as data; the daemon's own log is JSON, an object a line."""
    assert shops.is_dir()
    messages = logged_while_searching(daemon)
    assert [(one["level"], one["data"]["tool"]) for one in messages] == [
        ("debug", "semantic_search"),
        ("warning", "semantic_search"),
        ("debug", "stats"),
    ]
    assert all(one["data"]["took_ms"] >= 0 for one in messages)
    assert messages[1]["data"]["code"] == -32602
    lines = [
        json.loads(line) for line in Path(daemon.paths.log).read_text().splitlines()
    ]
    assert lines
    assert all(line.keys() >= {"event", "level", "timestamp"} for line in lines)


# -- semantic_search Tool
# ----------------------------------------------------------------------------------------------


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Tool definition matches PRD FR-1 and SDD Section 3.2",
)
def test_tool_definition_matches(daemon: DaemonAtHand, definition: Any) -> None:
    assert definition["name"] == "semantic_search"
    assert "natural language" in definition["description"]
    described = {
        name: field["description"]
        for name, field in definition["inputSchema"]["properties"].items()
    }
    assert described.keys() == {"query", "limit", "threshold", "repository"}
    assert described["query"].startswith(
        "Natural language search query describing what you're looking for"
    )
    assert described["limit"].startswith("Maximum number of results to return")
    assert described["threshold"].startswith("Minimum similarity score")
    assert described["repository"].startswith(
        "Filter results to a specific repository name"
    )
    assert full_schema(daemon)["properties"].keys() == described.keys()


@pytest.mark.scenario(
    "semantic_search", "semantic_search Tool", "Tool definition: Name: semantic_search"
)
def test_tool_definition_name(definition: Any) -> None:
    assert definition["name"] == "semantic_search"


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Tool definition: Description: Clear, helpful description",
)
def test_tool_definition_description(definition: Any) -> None:
    text = " ".join(definition["description"].split())
    assert "Search indexed code repositories using natural language queries." in text
    assert "Returns relevant code snippets ranked by semantic similarity." in text


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Tool definition: Input schema with all parameters",
)
def test_tool_definition_input_schema(daemon: DaemonAtHand, definition: Any) -> None:
    assert definition["inputSchema"]["type"] == "object"
    assert definition["inputSchema"]["required"] == ["query"]
    types = {
        name: field["type"]
        for name, field in definition["inputSchema"]["properties"].items()
    }
    assert types == {
        "query": "string",
        "limit": "integer",
        "threshold": "number",
        "repository": "string",
    }
    assert full_schema(daemon)["required"] == ["query"]


@pytest.mark.scenario("semantic_search", "semantic_search Tool", "Parameters")
def test_parameters(searcher: Host) -> None:
    whole = search(searcher, limit=50, threshold=0.0)
    every = search(searcher, limit=1, threshold=0.1, repository="bank")
    assert len(whole["results"]) > len(every["results"]) == 1
    refuses(searcher, "colour", "red")


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Parameters: query (string, required): 1-1000 characters",
)
def test_parameters_query(daemon: DaemonAtHand, searcher: Host) -> None:
    assert searcher.fail("semantic_search")["data"]["field"] == "query"
    refuses(searcher, "query", "", "x" * 1001, 7, None)
    for query in ("x", "card " * 200):
        assert "results" in search(searcher, query=query)
    schema = full_schema(daemon)["properties"]["query"]
    assert (schema["minLength"], schema["maxLength"]) == (1, 1000)


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Parameters: limit (integer, optional): 1-50, default 10",
)
def test_parameters_limit(
    daemon: DaemonAtHand, searcher: Host, definition: Any
) -> None:
    refuses(searcher, "limit", 0, 51, 1.5, "many")
    assert len(search(searcher, limit=1)["results"]) == 1
    assert "results" in search(searcher, limit=50)
    assert definition["inputSchema"]["properties"]["limit"]["default"] == 10
    schema = full_schema(daemon)["properties"]["limit"]
    assert (schema["minimum"], schema["maximum"], schema["default"]) == (1, 50, 10)


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Parameters: threshold (float, optional): 0.0-1.0, default 0.7",
)
def test_parameters_threshold(daemon: DaemonAtHand, searcher: Host) -> None:
    refuses(searcher, "threshold", -0.1, 1.1, "high")
    everything = [one["score"] for one in search(searcher, threshold=0.0)["results"]]
    for threshold in (0.2, 0.5, 0.9):
        kept = [
            one["score"] for one in search(searcher, threshold=threshold)["results"]
        ]
        assert kept == [score for score in everything if score >= threshold]
    usual = searcher.call("semantic_search", query=QUESTION)
    assert usual["metadata"]["threshold"] == 0.7
    assert usual["results"] == search(searcher, threshold=0.7)["results"]
    schema = full_schema(daemon)["properties"]["threshold"]
    assert (schema["minimum"], schema["maximum"], schema["default"]) == (0, 1, 0.7)


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Parameters: repository (string, optional): Filter to specific repo",
)
def test_parameters_repository(searcher: Host) -> None:
    assert {one["repository"] for one in search(searcher)["results"]} == {
        "shop",
        "bank",
    }
    for name in REPOSITORIES:
        found = search(searcher, repository=name)
        assert {one["repository"] for one in found["results"]} == {name}
        assert found["metadata"]["repositories_searched"] == [name]


@pytest.mark.scenario("semantic_search", "semantic_search Tool", "Response format")
def test_response_format(searcher: Host) -> None:
    told = searcher.request(
        "tools/call", name="semantic_search", arguments={"query": QUESTION}
    )["result"]
    [content] = told["content"]
    assert content["type"] == "text"
    assert json.loads(content["text"]) == told["structuredContent"]
    assert told["structuredContent"].keys() == {"results", "metadata"}


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Response format: results: Array of search results",
)
def test_response_format_results(searcher: Host, shops: Path) -> None:
    results = search(searcher)["results"]
    assert {(one["repository"], one["file_path"]) for one in results[:2]} == {
        ("shop", "src/payment.py"),
        ("bank", "src/debit.py"),
    }
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for one in results:
        lines = (shops / one["repository"] / one["file_path"]).read_text().splitlines()
        assert (
            "\n".join(lines[one["start_line"] - 1 : one["end_line"]]).strip()
            == one["content"].strip()
        )


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Response format: metadata: Query timing and stats",
)
def test_response_format_metadata(searcher: Host) -> None:
    found = search(searcher)
    metadata = found["metadata"]
    assert metadata["total_results"] == len(found["results"])
    assert metadata["query_time_ms"] >= metadata["embedding_time_ms"] >= 0
    assert sorted(metadata["repositories_searched"]) == ["bank", "shop"]
    assert metadata["chunks_searched"] >= len(found["results"])
    assert metadata["problems"] == {}


@pytest.mark.scenario("semantic_search", "semantic_search Tool", "Error handling")
def test_error_handling(searcher: Host) -> None:
    """A failed call is a result with `isError`, so that a model can read it; its code is the error's."""
    told = searcher.request(
        "tools/call",
        name="semantic_search",
        arguments={"query": QUESTION, "repository": "none"},
    )
    assert told["result"]["isError"] is True
    assert told["result"]["structuredContent"].keys() == {"code", "message", "data"}
    assert search(searcher)["results"]  # and the next call is answered


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Error handling: Invalid parameters: Return MCP error",
)
def test_error_handling_invalid_parameters(searcher: Host) -> None:
    error = searcher.fail("semantic_search", query="", limit=99)
    assert (error["code"], error["data"]["reason"]) == (-32602, "invalid_params")
    assert {problem["field"] for problem in error["data"]["problems"]} == {
        "query",
        "limit",
    }


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Error handling: Search failure: Return MCP error with details",
)
def test_error_handling_search_failure(
    searcher: Host, daemon: DaemonAtHand, tmp_path: Path
) -> None:
    missing = searcher.fail("semantic_search", query=QUESTION, repository="library")
    assert (missing["code"], missing["data"]["reason"]) == (
        -32001,
        "repository_not_found",
    )
    assert set(missing["data"]["known"]) >= REPOSITORIES.keys()
    root = tmp_path / "unindexed"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    unindexed = searcher.fail("semantic_search", query=QUESTION, repository=str(root))
    assert (unindexed["code"], unindexed["data"]["reason"]) == (
        -32000,
        "index_not_found",
    )
    assert unindexed["data"]["path"] == str(root)
    assert "index_codebase" in unindexed["data"]["suggestion"]
    assert daemon.run("projects", "remove", str(root)).returncode == 0


@pytest.mark.scenario(
    "semantic_search",
    "semantic_search Tool",
    "Error handling: Empty results: Return valid response with empty array",
)
def test_error_handling_empty_results(searcher: Host) -> None:
    found = search(searcher, query="zyzzyva quokka xylophone", threshold=1.0)
    assert found["results"] == []
    assert found["metadata"]["total_results"] == 0
    assert sorted(found["metadata"]["repositories_searched"]) == ["bank", "shop"]
