"""The official SDK's own client, in both modes, over standard input and HTTP."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.conftest import BOUND, FGREP, DaemonAtHand
from tests.support.mcp_clients import open_http, token_of

pytestmark = pytest.mark.slow

MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdk") / "sdk"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.py").write_text("def needle():\n    pass\n")
    daemon.add(folder)
    return folder


@asynccontextmanager
async def over_stdio(
    daemon: DaemonAtHand, root: Path, mode: Any
) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=FGREP,
        args=["mcp", "--structured", "--project", str(root)],
        env=daemon.environ,
    )
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(
    daemon: DaemonAtHand, root: Path, mode: Any
) -> AsyncIterator[Client]:
    url = f"http://127.0.0.1:{open_http(daemon)}/mcp?structured=1&project={root.name}"
    headers = {"Authorization": f"Bearer {token_of(daemon)}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.fixture(
    params=[(way, mode) for way in (over_stdio, over_http) for mode in MODES]
)
async def client(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> AsyncIterator[Client]:
    way, mode = request.param
    async with way(daemon, root, mode) as client:
        assert client.protocol_version == MODES[mode]
        yield client


async def test_it_lists_and_calls(client: Client) -> None:
    assert client.server_info is not None
    assert client.server_info.name == "flashgrep"
    assert "query" in {tool.name for tool in (await client.list_tools()).tools}
    found = await client.call_tool("query", {"text": "needle"})
    assert not found.is_error
    assert found.structured_content["results"][0]["file_path"] == "a.py"
    failed = await client.call_tool("query", {"text": "(", "mode": "regex"})
    assert failed.is_error
    assert failed.structured_content["data"]["reason"] == "invalid_pattern"
    with pytest.raises(MCPError) as unknown:
        await client.call_tool("nope", {})
    assert unknown.value.code == -32602


@pytest.fixture(scope="module")
def fixture_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = Path(__file__).with_name("fixture_server.py")
    command = [sys.executable, str(program), str(tmp_path_factory.mktemp("fixture"))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()
        assert process.wait(BOUND) == 0


@pytest.mark.parametrize("mode", MODES)
async def test_progress_and_a_missing_capability_come_over_http_too(
    fixture_url: str, mode: Any
) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    with anyio.fail_after(BOUND):
        async with Client(
            streamable_http_client(f"{fixture_url}?structured=1"), mode=mode
        ) as client:
            told = await client.call_tool(
                "test_tool_with_progress", {}, progress_callback=note
            )
            assert told.structured_content == {"text": "done"}
            with pytest.raises(MCPError) as missing:
                await client.call_tool("test_missing_capability", {})
            assert missing.value.code == -32021
            assert missing.value.data["requiredCapabilities"] == {"sampling": {}}
    assert seen == [(0, 100, "at 0"), (50, 100, "at 50"), (100, 100, "at 100")]


async def test_it_reads_resources_and_prompts(client: Client) -> None:
    uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert "flashgrep://sdk/skill" in uris
    read = await client.read_resource("flashgrep://sdk/file/a.py")
    assert "def needle" in read.model_dump()["contents"][0]["text"]
    assert (await client.list_resource_templates()).resource_templates
    prompt = await client.get_prompt("explore", {"question": "why"})
    assert prompt.messages[0].role == "user"
    assert len((await client.list_prompts()).prompts) == 3
