"""MCP by one test body over every wire and in both eras: listing, calling, resources, prompts, and what goes wrong."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flashgrep.mcp.binding import LEGACY
from flashgrep.mcp.service import INSTRUCTIONS
from flashgrep.parts.built_in import REGISTRY
from flashgrep.rpc.message import encode
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.mcp_clients import (
    ENVELOPE,
    INITIALIZE,
    MODERN,
    PREFIX,
    Era,
    Failed,
    McpClient,
    transport,
)

ICON = Path(__file__).parents[2] / "flashgrep/parts/http/static/icon.svg"
FILES = {
    "src/config.py": "def parse_config(path):\n    return path\n",
    "src/main.py": "from config import parse_config\n\nparse_config('a')\n",
    "docs/read me.md": "# parse_config\n",
}
WIRES = ["shim", "unix", "tcp", "http"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("query", {"text": "parse_config", "context": 1}),
    ("query", {"text": "no such text"}),
    ("get_slice", {"file_path": "src/main.py", "start_line": 1, "end_line": 2}),
    ("read_code", {"file_path": "src/config.py"}),
    ("list_files", {"filter": "main"}),
    ("glob", {"pattern": "**/*.py"}),
    ("bootstrap_skill", {"compact": True, "force": True}),
]
FAILURES: list[tuple[str, dict[str, Any], int, str]] = [
    ("query", {}, -32602, "invalid_params"),
    ("query", {"text": "(", "mode": "regex"}, -32602, "invalid_pattern"),
    ("query", {"text": "a", "wrong": 1}, -32602, "invalid_params"),
    (
        "get_slice",
        {"file_path": "none.py", "start_line": 1, "end_line": 1},
        -32001,
        "file_not_found",
    ),
    (
        "get_slice",
        {"file_path": "../x", "start_line": 1, "end_line": 1},
        -32006,
        "outside_root",
    ),
    ("bootstrap_skill", {"trigger": "nonsense"}, -32602, "invalid_trigger"),
]


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "project"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".git").mkdir()
    daemon.add(folder)
    return folder


@pytest.fixture(scope="module", params=["legacy", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    found: Era = request.param
    return found


@pytest.fixture(scope="module", params=WIRES)
def client(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path, era: Era
) -> Iterator[McpClient]:
    speaking = McpClient(transport(request.param, daemon, root, toolsets="compat"), era)
    speaking.start()
    yield speaking
    speaking.transport.close()


@pytest.fixture(scope="module")
def bare(daemon: DaemonAtHand, root: Path) -> Iterator[Any]:
    wire = daemon.wire("unix", root)
    yield wire
    wire.close()


def without_timing(result: Any) -> Any:
    """Return a result without what differs from call to call."""
    kept = json.loads(json.dumps(result))
    if "coverage" in kept:
        for name in ("took_ms", "stage", "generation", "fresh", "detail"):
            kept["coverage"].pop(name, None)
    return kept


def test_every_wire_lists_the_same_tools(client: McpClient) -> None:
    tools = client.request("tools/list")["tools"]
    assert [tool["name"] for tool in tools] == [
        handler.name for handler in REGISTRY if handler.toolset in {"core", "research"}
    ]
    unix = {tool["name"]: tool for tool in tools}
    # What the protocol takes for granted is not said: that a tool writes, and may
    # destroy.
    assert unix["write_code"]["annotations"] == {"openWorldHint": False}
    assert unix["index_codebase"]["annotations"] == {
        "destructiveHint": False,
        "openWorldHint": False,
    }
    assert unix["query"]["annotations"]["readOnlyHint"]
    assert unix["bootstrap_skill"]["_meta"]["flashgrep/aliases"][0] == "flashgrep-init"
    for tool in tools:
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    CALLS,
    ids=[f"{name}-{index}" for index, (name, _) in enumerate(CALLS)],
)
def test_a_call_is_the_bare_call_framed(
    client: McpClient, bare: Any, tool: str, arguments: dict[str, Any]
) -> None:
    result = client.call(tool, **arguments)
    structured = result["structuredContent"]
    assert result["content"] == [{"type": "text", "text": encode(structured).decode()}]
    assert result["isError"] is False
    assert without_timing(structured) == without_timing(bare.call(tool, **arguments))
    schema = next(
        one["outputSchema"]
        for one in client.request("tools/list")["tools"]
        if one["name"] == tool
    )
    jsonschema.validate(structured, schema)


@pytest.mark.parametrize(("tool", "arguments", "code", "reason"), FAILURES)
def test_a_failed_call_is_a_result_that_tells_why(
    client: McpClient,
    bare: Any,
    tool: str,
    arguments: dict[str, Any],
    code: int,
    reason: str,
) -> None:
    result = client.call(tool, **arguments)
    told = result["structuredContent"]
    assert result["isError"] is True
    assert (told["code"], told["data"]["reason"]) == (code, reason)
    assert (
        json.loads(result["content"][0]["text"]) == told == bare.fail(tool, **arguments)
    )
    schema = next(
        one["outputSchema"]
        for one in client.request("tools/list")["tools"]
        if one["name"] == tool
    )
    jsonschema.validate(told, schema)


def test_an_unknown_tool_is_an_error_of_the_protocol(client: McpClient) -> None:
    wrong: list[tuple[Any, Any]] = [("nope", {}), (None, {}), ("query", [])]
    for name, arguments in wrong:
        with pytest.raises(Failed) as failed:
            client.request("tools/call", name=name, arguments=arguments)
        assert failed.value.code == -32602


def test_every_alias_of_bootstrap_gives_the_same(client: McpClient) -> None:
    names = [
        "bootstrap_skill",
        "flashgrep-init",
        "flashgrep_init",
        "fgrep-boot",
        "fgrep_boot",
    ]
    answers = [client.call(name, force=True)["structuredContent"] for name in names]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["canonical_trigger"] == "flashgrep-init"


def test_resources_are_the_skill_the_figures_and_the_files(
    client: McpClient, root: Path
) -> None:
    listed = client.request("resources/list")["resources"]
    assert [one["uri"] for one in listed] == [
        "flashgrep://project/skill",
        "flashgrep://project/stats",
    ]
    skill, stats = (
        client.request("resources/read", uri=one["uri"])["contents"][0]
        for one in listed
    )
    assert skill["text"].startswith("---\nname: flashgrep")
    assert json.loads(stats["text"])["root"] == str(root)
    template = client.request("resources/templates/list")["resourceTemplates"][0][
        "uriTemplate"
    ]
    assert template == "flashgrep://{project}/file/{+path}"
    for path, text in FILES.items():
        uri = f"flashgrep://project/file/{path.replace(' ', '%20')}"
        assert client.request("resources/read", uri=uri)["contents"][0]["text"] == text


@pytest.mark.parametrize(
    "uri",
    [
        "flashgrep://project/file/none",
        "flashgrep://other/stats",
        "flashgrep://project/x",
        "file:///etc/passwd",
        "",
    ],
)
def test_a_resource_that_is_not_there_is_an_error(client: McpClient, uri: Any) -> None:
    with pytest.raises(Failed) as failed:
        client.request("resources/read", uri=uri)
    assert failed.value.code == -32602


def test_a_resource_outside_the_project_is_refused(client: McpClient) -> None:
    with pytest.raises(Failed) as failed:
        client.request(
            "resources/read", uri="flashgrep://project/file/../../../etc/passwd"
        )
    assert failed.value.data["reason"] == "outside_root"


def test_prompts_take_what_they_ask_for(client: McpClient) -> None:
    listed = client.request("prompts/list")["prompts"]
    assert [one["name"] for one in listed] == ["bootstrap", "explore", "trace"]
    message = client.request(
        "prompts/get", name="trace", arguments={"symbol": "parse_config"}
    )["messages"][0]
    assert "parse_config" in message["content"]["text"]
    for name, symbol in (("trace", " "), ("none", "x")):
        with pytest.raises(Failed) as failed:
            client.request("prompts/get", name=name, arguments={"symbol": symbol})
        assert failed.value.code == -32602


def test_a_cursor_that_is_none_is_refused(client: McpClient) -> None:
    with pytest.raises(Failed) as failed:
        client.request("tools/list", cursor="bm9uc2Vuc2U=")
    assert failed.value.code == -32602


def test_stateless_results_say_what_they_are(client: McpClient) -> None:
    results = [
        client.request("tools/list"),
        client.call("stats"),
        client.request("prompts/list"),
    ]
    for result in results:
        modern = client.era == "modern"
        assert (result.get("resultType") == "complete") is modern
        assert (f"{PREFIX}serverInfo" in result.get("_meta", {})) is modern
    if client.era == "modern":
        assert results[0]["cacheScope"] == "private"
        assert results[0]["ttlMs"] > 0
        assert "ttlMs" not in results[1]


# What only one era has; over HTTP it is the official SDK that judges.


@pytest.fixture(params=["shim", "unix", "tcp"])
def line(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[McpClient]:
    speaking = McpClient(
        transport(request.param, daemon, root, toolsets="compat"), "legacy"
    )
    yield speaking
    speaking.transport.close()


def check_introduction(server: dict[str, Any]) -> None:
    """Check what a host shows of a server: what it is, where it is from, and an icon that it need not fetch."""
    assert server["name"] == server["title"] == "flashgrep"
    assert "search" in server["description"]
    assert server["websiteUrl"].startswith("https://")
    [icon] = server["icons"]
    media_type, _, data = icon["src"].partition(";base64,")
    assert media_type == f"data:{icon['mimeType']}"
    assert base64.b64decode(data) == ICON.read_bytes()


@pytest.mark.parametrize("requested", [*LEGACY, "2026-07-28", "1999-01-01"])
def test_the_handshake_ends_with_the_revision_asked_for_or_our_newest(
    line: McpClient, requested: str
) -> None:
    told = line.request("initialize", **{**INITIALIZE, "protocolVersion": requested})
    assert told["protocolVersion"] == (requested if requested in LEGACY else LEGACY[-1])
    check_introduction(told["serverInfo"])
    assert told["instructions"] == INSTRUCTIONS
    assert set(told["capabilities"]) == {"tools", "resources", "prompts", "logging"}
    assert line.request("ping") == {}


def test_the_instructions_are_short() -> None:
    assert len(INSTRUCTIONS) < 1500


def test_discovery_needs_no_handshake(line: McpClient) -> None:
    line.era = "modern"
    told = line.request("server/discover")
    assert told["supportedVersions"] == [MODERN]
    assert told["resultType"] == "complete"
    assert told["instructions"] == INSTRUCTIONS
    check_introduction(told["_meta"][f"{PREFIX}serverInfo"])
    listed = line.request("tools/list")
    assert listed["_meta"][f"{PREFIX}serverInfo"].keys() == {"name", "version"}


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({f"{PREFIX}protocolVersion": MODERN}, -32602),
        ({**ENVELOPE, f"{PREFIX}protocolVersion": 1}, -32602),
        ({**ENVELOPE, f"{PREFIX}protocolVersion": "2025-11-25"}, -32022),
        ({**ENVELOPE, f"{PREFIX}protocolVersion": "2027-01-01"}, -32022),
    ],
)
def test_an_envelope_must_be_whole_and_of_a_revision_we_speak(
    line: McpClient, meta: Any, code: int
) -> None:
    with pytest.raises(Failed) as failed:
        line.request("tools/list", _meta=meta)
    assert failed.value.code == code
    if code == -32022:
        assert failed.value.data["supported"] == [MODERN]
        assert failed.value.data["requested"] == meta[f"{PREFIX}protocolVersion"]


def test_each_era_lacks_what_the_other_alone_has(line: McpClient) -> None:
    with pytest.raises(Failed) as failed:
        line.request("server/discover")
    assert failed.value.code == -32602
    line.era = "modern"
    for method in ("initialize", "ping", "logging/setLevel"):
        with pytest.raises(Failed) as failed:
            line.request(method)
        assert failed.value.code == -32601


def test_bare_calls_go_on_beside_the_protocol(line: McpClient) -> None:
    line.start()
    assert line.request("list_files", filter="main")["files"] == ["src/main.py"]
    assert line.call("list_files", filter="main")["structuredContent"]["files"] == [
        "src/main.py"
    ]


def test_a_rare_parameter_is_taken_though_it_is_listed_for_programs_alone(
    daemon: DaemonAtHand, root: Path
) -> None:
    for structured in (False, True):
        line = McpClient(
            transport("unix", daemon, root, structured=structured), "legacy"
        )
        query = next(
            tool
            for tool in line.request("tools/list")["tools"]
            if tool["name"] == "query"
        )
        assert ("explain" in query["inputSchema"]["properties"]) is structured
        assert "additionalProperties" not in query["inputSchema"]
        assert (
            "explained"
            in line.call("query", query="parse_config", explain=True)["content"][0][
                "text"
            ]
        )
        line.transport.close()


def test_a_client_sees_its_own_project_only(
    daemon: DaemonAtHand, root: Path, project: MakeProject
) -> None:
    other = project({"secret.py": "parse_config"}, name="other")
    daemon.add(other)
    speaking = McpClient(transport("unix", daemon, root, toolsets="compat"), "legacy")
    refused = speaking.call("query", text="parse_config", project="other")
    assert refused["structuredContent"]["data"]["reason"] == "outside_root"
    assert len(speaking.request("resources/list")["resources"]) == 2
    speaking.transport.close()
