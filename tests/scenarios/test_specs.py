"""The contract "specs": specifications over the Model Context Protocol, with and without an index."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.own_folders import make_store
from tests.conftest import DaemonAtHand, MakeProject, daemon_in, short_folder
from tests.scenarios.ways import Way, ways
from tests.support.mcp_clients import INITIALIZE, LineTransport, McpClient, shim_wire

INTERFACE = """\
# Interface

## Purpose
Agents ask about specifications over the Model Context Protocol.

## Requirements

### Requirement: List Specs Tool
The server SHALL list all specifications.

#### Scenario: List all specs
- **WHEN** the tool is called
- **THEN** the answer is an array
- **AND** each item has a title

#### Scenario: No specs found
- **WHEN** no files exist
- **THEN** the array is empty

### Requirement: Graceful Degradation
The server SHALL work before anything was indexed.

#### Scenario: Server without index
- **WHEN** there is no index
- **THEN** searching says so
"""
BILLING = """\
# Billing

## Purpose
Customers pay for what they used.

## Requirements

### Requirement: Monthly invoices
The system SHALL write an invoice each month.

#### Scenario: End of month
- **WHEN** a month ends
- **THEN** an invoice is written
"""
SPECS: dict[str, str | bytes] = {
    "specs/interface/spec.md": INTERFACE,
    "specs/billing/spec.md": BILLING,
}
MCP_WAYS = ["mcp unix", "mcp stdio"]
TOOLS = {"list_specs", "get_spec_requirements", "get_scenario", "search_specs"}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    """Return a project with two specifications and an index."""
    with tempfile.TemporaryDirectory(prefix="fg", dir="/tmp") as base:
        folder = Path(base) / "specified"
        for path, text in SPECS.items():
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_bytes(str(text).encode())
        assert daemon.run("index", str(folder)).returncode == 0
        yield folder


@pytest.fixture(scope="module", params=MCP_WAYS)
def way(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[Way]:
    """Connect to it by the protocol."""
    with ways(daemon, root, [request.param]) as (connected,):
        yield connected


@pytest.fixture
def unindexed(daemon: DaemonAtHand, project: MakeProject) -> Iterator[tuple[Way, Path]]:
    """Connect to a project that can get no index: something else has taken its name."""
    root = project(SPECS)
    make_store(daemon.index(root).parent, os.fsencode(root))
    (daemon.index(root) / "taken").mkdir(parents=True)
    with ways(daemon, root, ["mcp stdio"]) as (connected,):
        yield connected, root


@pytest.fixture
def host(daemon: DaemonAtHand, root: Path) -> Iterator[McpClient]:
    """Return a client on a process's standard input and output that has not said anything yet."""
    wire = shim_wire(daemon, "--project", str(root), "--toolsets", "specs")
    yield McpClient(LineTransport(wire), "legacy")
    wire.close()


def told(way: Way, tool: str, **arguments: Any) -> Any:
    """Return a tool's whole answer, as the protocol carries it."""
    assert way.mcp is not None
    return way.mcp.call(tool, **arguments)


@pytest.mark.scenario("specs", "MCP Interface Layer", "MCP delegates to Core")
def test_mcp_delegates_to_core(daemon: DaemonAtHand, root: Path) -> None:
    """What the protocol answers is what the plain wire answers, formatted as JSON: nothing is decided on the way."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_specs", {}),
        ("get_spec_requirements", {"spec_id": "interface"}),
        ("get_scenario", {"spec_id": "interface", "requirement": "List Specs Tool"}),
        ("validate_specs", {}),
    ]
    with ways(daemon, root, ["unix", *MCP_WAYS]) as (plain, *others):
        for tool, arguments in calls:
            core = plain.result(tool, **arguments)
            for other in others:
                answer = told(other, tool, **arguments)
                assert answer["structuredContent"] == core
                assert json.loads(answer["content"][0]["text"]) == core
        searched = [
            one.result("search_specs", query="monthly invoice")["results"]
            for one in (plain, *others)
        ]
        assert searched[0] == searched[1] == searched[2] != []


@pytest.mark.scenario("specs", "MCP Interface Layer", "MCP handles errors from Core")
def test_mcp_handles_errors_from_core(daemon: DaemonAtHand, root: Path) -> None:
    with ways(daemon, root, ["unix", *MCP_WAYS]) as (plain, *others):
        core = plain.error("get_spec_requirements", spec_id="bill")
        assert "billing" in core["message"]
        for other in others:
            answer = told(other, "get_spec_requirements", spec_id="bill")
            assert answer["isError"] is True
            assert answer["structuredContent"] == core
            assert core["message"] in answer["content"][0]["text"]


@pytest.mark.scenario("specs", "MCP Server Protocol", "Server responds to initialize")
def test_server_responds_to_initialize(host: McpClient) -> None:
    answer = host.request("initialize", **INITIALIZE)
    assert "tools" in answer["capabilities"]
    host.transport.exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert {tool["name"] for tool in host.request("tools/list")["tools"]} >= TOOLS


@pytest.mark.scenario("specs", "MCP Server Protocol", "Server info")
def test_server_info(daemon: DaemonAtHand, root: Path) -> None:
    """The name is flashgrep, one server for all five documents; a setting makes it any other, as this document's."""
    folder = short_folder()
    renamed = daemon_in(folder, FLASHGREP_MCP_SERVER_NAME="spox")
    renamed.start()
    try:
        for at_hand, name in ((daemon, "flashgrep"), (renamed, "spox")):
            wire = shim_wire(at_hand, "--project", str(root))
            answer = McpClient(LineTransport(wire), "legacy").request(
                "initialize", **INITIALIZE
            )
            assert answer["serverInfo"]["name"] == name
            assert len(answer["instructions"]) > 100
            wire.close()
    finally:
        renamed.stop()
        shutil.rmtree(folder)


@pytest.mark.scenario("specs", "List Specs Tool", "List all specs")
def test_list_all_specs(way: Way) -> None:
    result = way.result("list_specs")
    assert result["results"] == [
        {
            "id": "billing",
            "title": "Billing",
            "purpose": "Customers pay for what they used.",
        },
        {
            "id": "interface",
            "title": "Interface",
            "purpose": "Agents ask about specifications over the Model Context Protocol.",
        },
    ]
    assert "invoice" not in json.dumps(result)


@pytest.mark.scenario("specs", "List Specs Tool", "No specs found")
def test_no_specs_found(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project({"specs/notes.md": "# No specification\n", "main.py": "x = 1\n"})
    with ways(daemon, root, ["mcp stdio"]) as (connected,):
        assert connected.result("list_specs")["results"] == []


@pytest.mark.scenario(
    "specs", "Get Spec Requirements Tool", "Get requirements for existing spec"
)
def test_get_requirements_for_existing_spec(way: Way) -> None:
    result = way.result("get_spec_requirements", spec_id="interface")
    assert [(one["name"], one["scenario_count"]) for one in result["requirements"]] == [
        ("List Specs Tool", 2),
        ("Graceful Degradation", 1),
    ]
    assert "the tool is called" not in json.dumps(result)
    assert "array is empty" not in json.dumps(result)


@pytest.mark.scenario("specs", "Get Spec Requirements Tool", "Spec not found")
def test_spec_not_found(way: Way) -> None:
    error = way.error("get_spec_requirements", spec_id="interfaces")
    assert (error["code"], error["data"]["reason"]) == (-32001, "spec_not_found")
    assert error["message"] == "spec not found: interfaces; did you mean interface?"


@pytest.mark.scenario("specs", "Get Scenario Tool", "Get specific scenario")
def test_get_specific_scenario(way: Way) -> None:
    asked = {
        "spec_id": "interface",
        "requirement": "List Specs Tool",
        "scenario": "No specs found",
    }
    found = way.result("get_scenario", **asked)
    assert found["description"] == "The server SHALL list all specifications."
    assert (found["name"], found["when"], found["then"]) == (
        "No specs found",
        "no files exist",
        ["the array is empty"],
    )


@pytest.mark.scenario("specs", "Get Scenario Tool", "Get first scenario by default")
def test_get_first_scenario_by_default(way: Way) -> None:
    found = way.result(
        "get_scenario", spec_id="interface", requirement="List Specs Tool"
    )
    assert found["name"] == "List all specs"
    assert found["then"] == ["the answer is an array", "each item has a title"]


@pytest.mark.scenario("specs", "Get Scenario Tool", "Scenario not found")
def test_scenario_not_found(way: Way) -> None:
    error = way.error(
        "get_scenario",
        spec_id="interface",
        requirement="List Specs Tool",
        scenario="No spec was found",
    )
    assert (error["code"], error["data"]["reason"]) == (-32001, "scenario_not_found")
    assert error["data"]["nearest"][0] == "No specs found"
    assert "scenario not found: No spec was found" in error["message"]


@pytest.mark.scenario("specs", "Search Specs Tool", "Search with query")
def test_search_with_query(way: Way) -> None:
    results = way.result(
        "search_specs",
        query="what does the server do before it has indexed",
        threshold=0,
    )["results"]
    assert (results[0]["spec_id"], results[0]["requirement"]) == (
        "interface",
        "Graceful Degradation",
    )
    assert all(
        one["requirement"] and one["snippet"] and 0 <= one["score"] <= 1
        for one in results
    )
    scores = [one["score"] for one in results]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


@pytest.mark.scenario("specs", "Search Specs Tool", "Search with no index")
def test_search_with_no_index(unindexed: tuple[Way, Path]) -> None:
    """An index is built as soon as a project is opened; only where it cannot be, or is not begun, is there none."""
    way, root = unindexed
    error = way.error("search_specs", query="monthly invoice")
    assert (error["code"], error["data"]["reason"]) == (-32000, "index_not_found")
    assert error["data"]["path"] == str(root)
    assert "index_codebase" in error["message"]
    assert "index_codebase" in error["data"]["suggestion"]


@pytest.mark.scenario("specs", "Search Specs Tool", "Search with empty results")
def test_search_with_empty_results(way: Way) -> None:
    assert way.result("search_specs", query="chocolate cake recipe")["results"] == []
    assert way.result("search_specs", query="monthly invoice")["results"] != []
    assert (
        way.result("search_specs", query="monthly invoice", threshold=1)["results"]
        == []
    )


@pytest.mark.scenario("specs", "Graceful Degradation", "Server without index")
def test_server_without_index(unindexed: tuple[Way, Path]) -> None:
    way, _ = unindexed
    assert [one["id"] for one in way.result("list_specs")["results"]] == [
        "billing",
        "interface",
    ]
    assert (
        len(way.result("get_spec_requirements", spec_id="interface")["requirements"])
        == 2
    )
    found = way.result(
        "get_scenario", spec_id="billing", requirement="Monthly invoices"
    )
    assert found["then"] == ["an invoice is written"]
    assert (
        way.error("search_specs", query="invoice")["data"]["reason"]
        == "index_not_found"
    )
