"""The contract "semantic_search": its requirements on tests, and when it is fulfilled."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scripts.tools import coverage
from scripts.tools.scenarios import Scenario, read_tests, wanted
from tests.conftest import DaemonAtHand, own_daemon
from tests.scenarios.hosts import Host, host
from tests.scenarios.shops import (
    QUESTION,
    REPOSITORIES,
    ask_by_the_official_client,
    repositories,
    search,
)
from tests.support.mcp_clients import INITIALIZE, McpClient, shim_wire, transport

TESTING = "Testing Requirements"
PACKAGE = Path(__file__).parents[2] / "flashgrep"


# -- Testing Requirements
# ----------------------------------------------------------------------------------------------


def boxes_shown(prefix: str) -> set[str]:
    """Return the boxes below a heading that have a test here."""
    shown = {
        scenario
        for test in read_tests()
        if "semantic_search" in test.module
        for scenario in test.scenarios
    }
    return {
        one.name
        for one in shown
        if one.requirement == TESTING and one.name.startswith(prefix + ": ")
    }


def boxes_wanted(prefix: str) -> set[str]:
    return {
        one.name
        for one in wanted()
        if one[:2] == ("semantic_search", TESTING)
        and one.name.startswith(prefix + ": ")
    }


@pytest.mark.scenario(
    "semantic_search", "Testing Requirements", "Unit tests (95% coverage)"
)
def test_unit_tests() -> None:
    """Each of the five has its test; the share is of the whole package, and `scripts/coverage` fails below it."""
    assert boxes_shown("Unit tests") == boxes_wanted("Unit tests")
    assert len(boxes_wanted("Unit tests")) == 5
    assert coverage.LEAST_PERCENT >= 95


@pytest.mark.scenario(
    "semantic_search", "Testing Requirements", "Unit tests: Tool definition correctness"
)
def test_unit_tests_tool_definition_correctness(
    searcher: Host, definition: Any
) -> None:
    """The listed schema takes what the tool takes, and refuses what it refuses but for bounds."""
    schema = jsonschema.Draft202012Validator(definition["inputSchema"])
    for arguments in (
        {"query": "x"},
        {"query": "x", "limit": 5, "threshold": 0.5, "repository": "shop"},
    ):
        assert schema.is_valid(arguments)
        assert "results" in searcher.call("semantic_search", **arguments)
    for wrong in (
        {},
        {"query": 1},
        {"query": "x", "limit": "many"},
        {"query": "x", "threshold": "high"},
    ):
        assert not schema.is_valid(wrong)
        assert searcher.fail("semantic_search", **wrong)["code"] == -32602


@pytest.mark.scenario(
    "semantic_search", "Testing Requirements", "Unit tests: Parameter validation"
)
def test_unit_tests_parameter_validation(searcher: Host) -> None:
    for field, value, part in [
        ("query", "", "at least 1 character"),
        ("query", "x" * 1001, "at most 1000 characters"),
        ("limit", 0, "greater than or equal to 1"),
        ("limit", 51, "less than or equal to 50"),
        ("threshold", 2, "less than or equal to 1"),
        ("repository", "", "at least 1 character"),
    ]:
        error = searcher.fail("semantic_search", **{"query": QUESTION, field: value})
        assert (error["code"], error["data"]["field"]) == (-32602, field)
        assert part in error["message"]


@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "Unit tests: Successful search response format",
)
def test_unit_tests_successful_search_response_format(
    searcher: Host, definition: Any
) -> None:
    found = search(searcher)
    jsonschema.Draft202012Validator(definition["outputSchema"]).validate(found)
    fields = {
        "content",
        "repository",
        "file_path",
        "start_line",
        "end_line",
        "score",
        "kind",
        "language",
    }
    assert all(one.keys() >= fields for one in found["results"])


@pytest.mark.scenario(
    "semantic_search", "Testing Requirements", "Unit tests: Error response format"
)
def test_unit_tests_error_response_format(
    daemon: DaemonAtHand, searcher: Host, definition: Any
) -> None:
    """The tool's error and the bare method's are the same object; only what carries it differs."""
    error = searcher.fail("semantic_search", query="")
    jsonschema.Draft202012Validator(definition["outputSchema"]).validate(error)
    wire = daemon.wire("unix")
    assert wire.fail("semantic_search", query="") == error
    wire.close()


@pytest.mark.scenario(
    "semantic_search", "Testing Requirements", "Unit tests: Unknown tool handling"
)
def test_unit_tests_unknown_tool_handling(searcher: Host) -> None:
    """An unknown tool is the protocol's own error, -32602 as its specification has it; the method itself is known."""
    error = searcher.request("tools/call", name="semantic_magic", arguments={})["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["tool"]) == (
        -32602,
        "unknown_tool",
        "semantic_magic",
    )
    assert "semantic_magic" in error["message"]


@pytest.mark.scenario("semantic_search", "Testing Requirements", "Integration tests")
def test_integration_tests(searcher: Host) -> None:
    """Handshake, list and call on one connection, in this order, as the three below have each by itself."""
    assert boxes_shown("Integration tests") == boxes_wanted("Integration tests")
    assert searcher.initialized["protocolVersion"]
    assert "semantic_search" in searcher.tools()
    assert search(searcher)["results"]


@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "Integration tests: MCP protocol handshake",
)
def test_integration_tests_mcp_protocol_handshake(daemon: DaemonAtHand) -> None:
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        wire = shim_wire(daemon)
        params = {**INITIALIZE, "protocolVersion": version}
        wire.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        told = wire.receive()["result"]
        assert told["protocolVersion"] == version
        assert told.keys() >= {"capabilities", "serverInfo", "instructions"}
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        wire.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert wire.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        wire.close()


@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "Integration tests: List tools returns semantic_search",
)
def test_integration_tests_list_tools_returns_semantic_search(
    daemon: DaemonAtHand, searcher: Host
) -> None:
    """Its toolset, `knowledge`, is shown to a host that asks for it or for all of them."""
    assert set(searcher.tools()) == {"semantic_search"}
    with host(daemon, "--toolsets", "all") as everything, host(daemon) as usual:
        assert "semantic_search" in everything.tools()
        assert "semantic_search" not in usual.tools()


@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "Integration tests: Tool call returns valid response",
)
def test_integration_tests_tool_call_returns_valid_response(
    daemon: DaemonAtHand, searcher: Host
) -> None:
    """A host that is not shown the tool can call it as well."""
    with host(daemon) as usual:
        for one in (searcher, usual):
            told = one.request(
                "tools/call",
                name="semantic_search",
                arguments={"query": QUESTION, "threshold": 0},
            )
            assert told["jsonrpc"] == "2.0"
            assert told["result"]["isError"] is False
            assert told["result"]["structuredContent"]["results"]


@pytest.mark.scenario("semantic_search", "Testing Requirements", "E2E tests")
def test_e2e_tests(daemon: DaemonAtHand, shops: Path) -> None:
    """What changes on the disk is in the answer of a process that was started before."""
    assert boxes_shown("E2E tests") == boxes_wanted("E2E tests")
    with host(daemon) as searcher:
        file = shops / "shop" / "src" / "umbrella.py"
        file.write_text(
            'def fold_umbrella():\n    """Fold the umbrella after the rain."""\n'
        )
        found = search(
            searcher, query="fold the umbrella after the rain", repository="shop"
        )
        assert found["results"][0]["file_path"] == "src/umbrella.py"
        file.unlink()
        found = search(
            searcher, query="fold the umbrella after the rain", repository="shop"
        )
        assert all(one["file_path"] != "src/umbrella.py" for one in found["results"])


@pytest.mark.slow
@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "E2E tests: Spawn server, send requests via stdio",
)
def test_e2e_tests_spawn_server_send_requests_via_stdio() -> None:
    """Nothing runs before: the process starts the daemon, which has the repositories from the first question on."""
    with own_daemon() as daemon:
        with repositories(daemon):
            daemon.stop()
            messages = [
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "initialize",
                    "params": INITIALIZE,
                }
            ]
            call = {
                "name": "semantic_search",
                "arguments": {"query": QUESTION, "repository": "bank", "threshold": 0},
            }
            messages.append(
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
            )
            ran = daemon.run(
                "mcp",
                "--structured",
                cwd=Path("/"),
                stdin="".join(json.dumps(message) + "\n" for message in messages),
            )
        answers = {
            answer["id"]: answer for answer in map(json.loads, ran.stdout.splitlines())
        }
        assert (
            answers[2]["result"]["structuredContent"]["results"][0]["file_path"]
            == "src/debit.py"
        )


@pytest.mark.scenario(
    "semantic_search",
    "Testing Requirements",
    "E2E tests: Verify MCP protocol compliance",
)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_e2e_tests_verify_mcp_protocol_compliance(
    daemon: DaemonAtHand, shops: Path, mode: str
) -> None:
    """The official client checks each answer against the protocol's schema, in both of its revisions."""
    assert shops.is_dir()
    tools, found, unknown = await ask_by_the_official_client(daemon, mode)
    assert "semantic_search" in tools
    assert found.is_error is False
    assert found.structured_content["results"][0]["repository"] in REPOSITORIES
    assert unknown == -32602


# -- Definition of Done
# ------------------------------------------------------------------------------------------------


def boxes_without_test(*requirements: str) -> list[Scenario]:
    shown = {scenario for test in read_tests() for scenario in test.scenarios}
    return [
        one
        for one in wanted()
        if one.contract == "semantic_search"
        and one.requirement in requirements
        and one not in shown
    ]


@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "MCP server implementation complete"
)
def test_mcp_server_implementation_complete(searcher: Host) -> None:
    assert boxes_without_test("MCP Server") == []
    assert searcher.initialized["capabilities"].keys() >= {
        "tools",
        "resources",
        "prompts",
        "logging",
    }


@pytest.mark.scenario(
    "semantic_search",
    "Definition of Done",
    "semantic_search tool registered and working",
)
def test_semantic_search_tool_registered_and_working(searcher: Host) -> None:
    assert boxes_without_test("semantic_search Tool") == []
    best = search(searcher, query="open an account for a new customer")["results"][0]
    assert (best["repository"], best["file_path"]) == ("bank", "src/account.py")


@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "Unit tests passing (95% coverage)"
)
def test_unit_tests_passing() -> None:
    """The check that everything has to pass runs the whole suite; the measured one runs it in every process."""
    scripts = PACKAGE.parent / "scripts"
    assert "exec scripts/test" in (scripts / "check").read_text()
    assert '-m scripts.tools.coverage "$@"' in (scripts / "coverage").read_text()
    assert coverage.LEAST_PERCENT >= 95
    assert boxes_without_test(TESTING) == []


@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "Integration tests passing"
)
def test_integration_tests_passing(daemon: DaemonAtHand, shops: Path) -> None:
    """Two hosts at once, of two revisions, get the same answer."""
    assert shops.is_dir()
    ways = [
        McpClient(transport("shim", daemon, shops / "bank"), era)
        for era in ("legacy", "modern")
    ]
    answers = []
    for client in ways:
        client.start()
        answers.append(
            client.call("semantic_search", query=QUESTION, threshold=0)[
                "structuredContent"
            ]["results"]
        )
        client.transport.close()
    assert answers[0] == answers[1] != []


@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "MCP protocol compliance verified"
)
def test_mcp_protocol_compliance_verified(searcher: Host) -> None:
    """What the protocol demands of any server, by hand; `scripts/conformance` runs its official suite."""
    assert searcher.request("ping")["result"] == {}
    assert searcher.request("no/such/method")["error"]["code"] == -32601
    assert searcher.request("tools/call", arguments={})["error"]["code"] == -32602
    assert searcher.request("tools/list", cursor="nonsense")["error"]["code"] == -32602
    searcher.wire.send(b"{not json\n")
    assert searcher.wire.receive()["error"]["code"] == -32700
    searcher.wire.send({"jsonrpc": "2.0", "method": "notifications/unheard/of"})
    assert searcher.request("ping")["result"] == {}


@pytest.mark.slow
@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "Structured logging for operations"
)
def test_structured_logging_for_operations(shops: Path) -> None:
    """The daemon's log tells its operations as objects with fields, and never what was asked."""
    assert shops.is_dir()
    with own_daemon() as daemon:
        with repositories(daemon), host(daemon) as searcher:
            process = daemon.status()["pid"]
            search(searcher)
            assert searcher.request("logging/setLevel", level="info")["result"] == {}
        daemon.stop()
        lines = [
            json.loads(line) for line in Path(daemon.paths.log).read_text().splitlines()
        ]
        told = {line["event"]: line for line in lines}
        assert told["started"]["pid"] == process
        assert told["started"].keys() >= {"version", "tcp", "level", "timestamp"}
        assert told["stopping"]["clients"] >= 0
        assert QUESTION not in json.dumps(lines)


@pytest.mark.scenario(
    "semantic_search", "Definition of Done", "JSDoc comments on public methods"
)
def test_documentation_on_public_methods() -> None:
    """Python's documentation comments are docstrings; every public module, class and function has one."""
    files = [
        *(PACKAGE / "mcp").rglob("*.py"),
        *(PACKAGE / "methods").glob("*.py"),
        *PACKAGE.glob("parts/*/*methods.py"),
    ]
    assert len(files) > 20
    without = [
        f"{file.name}: {name}"
        for file in files
        for name in undocumented(ast.parse(file.read_bytes()), "module")
    ]
    assert without == []


def undocumented(node: Any, name: str) -> Iterator[str]:
    """Yield the names of a module and of its public classes, functions and methods that have no docstring."""
    if not ast.get_docstring(node):
        yield name
    if isinstance(node, ast.Module | ast.ClassDef):
        for inner in node.body:
            if (
                isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and inner.name[0] != "_"
            ):
                yield from undocumented(inner, inner.name)
