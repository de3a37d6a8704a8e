"""A host's session over ``fgrep mcp`` and ``fgrep rpc`` while daemons are killed: no tool is lost, no line is torn."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from flashgrep.daemon import lifecycle
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject, Wire
from tests.support.mcp_clients import INITIALIZE, LineTransport, McpClient, shim_wire

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def kill(daemon: DaemonAtHand) -> None:
    """Kill the daemon and wait until the system has closed what it had open."""
    pid = lifecycle.find_holder(daemon.paths)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        assert lifecycle.wait_until_free(daemon.paths, BOUND)


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(
        {"a.py": "needle = 1\n", "large.txt": "needle of a long line\n" * 20_000}
    )


@pytest.fixture
def shim(cold_daemon: DaemonAtHand, root: Path) -> Iterator[Wire]:
    """Return a host's end of ``fgrep mcp``, whose daemon runs; nothing has been said yet."""
    wire = shim_wire(cold_daemon, "--project", str(root))
    yield wire
    wire.close()


def found(wire: Wire) -> Any:
    """Return the result of a query over the protocol, asked again while the answer says so."""
    client = McpClient(LineTransport(wire), "legacy")
    client._ids = iter(range(int.from_bytes(os.urandom(4)), 2**40))
    for _ in range(20):
        result = client.call("query", text="needle = 1")
        if not result["isError"]:
            return result["structuredContent"]
        assert "try again" in result["content"][0]["text"]
    pytest.fail("it did not come back")


def test_a_session_goes_on_after_its_daemon_was_killed_at_any_point(
    cold_daemon: DaemonAtHand, shim: Wire
) -> None:
    shim.send(
        {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": INITIALIZE}
    )
    kill(cold_daemon)  # before or after the answer
    assert shim.receive()["result"]["serverInfo"]["name"] == "flashgrep"
    kill(cold_daemon)
    shim.send(INITIALIZED)
    assert found(shim)["total"] == 1
    for _ in range(2):  # twice in a row
        kill(cold_daemon)
    for number in range(5):
        params = {"name": "query", "arguments": {"text": "needle", "limit": 1000}}
        shim.send(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        )
    first = shim.receive()  # large answers are on their way, some of them in part
    kill(cold_daemon)
    answers = [first] + [shim.receive() for _ in range(4)]
    assert sorted(answer["id"] for answer in answers) == list(range(5))
    for answer in answers:
        assert (
            not answer["result"]["isError"]
            or "try again" in answer["result"]["content"][0]["text"]
        )
    assert found(shim)["total"] == 1


def test_it_is_bound_as_before(
    cold_daemon: DaemonAtHand, root: Path, project: MakeProject
) -> None:
    other = project({"b.py": "needle = 2\n"}, name="other")
    cold_daemon.add(other)
    with closing(
        shim_wire(cold_daemon, "--project", str(root), "--read-only", cwd=other)
    ) as wire:
        client = McpClient(LineTransport(wire), "legacy")
        client.start()
        kill(cold_daemon)
        assert found(wire)["results"][0]["file_path"] == "a.py"
        told = client.call(
            "write_code", file_path="a.py", start_line=1, end_line=1, replacement="y"
        )
        assert told["structuredContent"]["data"]["reason"] == "read_only"


def test_a_stopped_daemon_stays_stopped_until_it_is_needed(
    cold_daemon: DaemonAtHand, shim: Wire
) -> None:
    McpClient(LineTransport(shim), "legacy").start()
    assert cold_daemon.run("daemon", "stop").returncode == 0
    shim.send(INITIALIZED)
    assert lifecycle.find_holder(cold_daemon.paths) is None
    assert found(shim)["total"] == 1


def test_two_sessions_find_one_daemon_again(
    cold_daemon: DaemonAtHand, root: Path
) -> None:
    wires = [shim_wire(cold_daemon, "--project", str(root)) for _ in range(3)]
    for wire in wires:
        McpClient(LineTransport(wire), "legacy").start()
    kill(cold_daemon)
    threads = [threading.Thread(target=found, args=(wire,)) for wire in wires]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert cold_daemon.status()["clients"] == len(wires) + 1
    for wire in wires:
        wire.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_own_client_survives_a_kill(
    cold_daemon: DaemonAtHand, root: Path, mode: Any
) -> None:
    server = StdioServerParameters(
        command=FGREP,
        args=["mcp", "--structured", "--project", str(root)],
        env=cold_daemon.environ,
    )

    with anyio.fail_after(2 * BOUND):
        async with Client(stdio_client(server), mode=mode) as client:
            assert not (await client.call_tool("query", {"text": "needle"})).is_error
            await anyio.to_thread.run_sync(kill, cold_daemon)
            assert (await client.list_tools()).tools
            assert not (await client.call_tool("query", {"text": "needle"})).is_error


def test_json_rpc_over_stdio_goes_on_too(cold_daemon: DaemonAtHand, root: Path) -> None:
    with closing(cold_daemon.wire("stdio", root)) as wire:
        assert wire.call("query", text="needle = 1")["total"] == 1
        kill(cold_daemon)
        answer = wire.ask("query", text="needle = 1")
        if "error" in answer:  # it was sent before the end was seen
            assert "try again" in answer["error"]["message"]
            answer = wire.ask("query", text="needle = 1")
        assert answer["result"]["total"] == 1


def test_a_session_goes_on_for_reading_where_no_daemon_starts_again(
    cold_daemon: DaemonAtHand, shim: Wire
) -> None:
    client = McpClient(LineTransport(shim), "legacy")
    client.start()
    kill(cold_daemon)
    state = Path(cold_daemon.paths.state)
    state.chmod(0o777)  # others may write to it: no daemon starts there
    try:
        assert found(shim)["total"] == 1
        told = client.call(
            "write_code", file_path="a.py", start_line=1, end_line=1, replacement="y"
        )
        assert told["structuredContent"]["data"]["reason"] == "read_only"
    finally:
        state.chmod(0o700)
