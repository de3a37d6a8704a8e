"""What goes on beside an MCP call: progress, cancellation, logging, pages; within the process, without sleeps."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from typing_extensions import TypedDict

from flashgrep.base.config import Settings
from flashgrep.base.errors import MissingCapability, NotFound
from flashgrep.base.registry import Call, Params, Registry, handler
from flashgrep.mcp.adapter import Adapter
from flashgrep.mcp.binding import Binder, client_of
from flashgrep.mcp.service import Service
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.dispatch import Dispatcher
from tests.rpc.harness import BOUND, Client, Gate, Gates, Notes, Steps, memory
from tests.support.mcp_clients import ENVELOPE, PREFIX


class Done(TypedDict):
    """What a call did."""

    done: str


class Nothing(Params):
    """No parameters."""


GATES = Gates()


@handler("hold", listing="by_default")
async def hold(_call: Call[Any], params: Gate) -> Done:
    """Answer once the gate is open."""
    GATES.running += 1
    GATES.change()
    try:
        await GATES.gates[params.name].wait()
    finally:
        GATES.ended.append(params.name)
        GATES.change()
    return {"done": params.name}


@handler("steps", listing="by_default")
async def steps(call: Call[Any], params: Steps) -> Done:
    """Report progress, from a thread or not."""

    def report() -> None:
        for step in range(params.steps):
            call.progress(step, params.steps, f"step {step}")

    await (anyio.to_thread.run_sync(report) if params.thread else _done(report))
    return {"done": "steps"}


async def _done(report: Callable[[], None]) -> None:
    report()


@handler("lost", listing="by_default")
async def lost(_call: Call[Any], params: Nothing) -> Done:  # noqa: ARG001 - the registry reads the hint of params
    """Find nothing."""
    raise NotFound("no such file: x", reason="file_not_found")


@handler("broken", listing="by_default")
async def broken(_call: Call[Any], params: Nothing) -> Done:  # noqa: ARG001 - as above
    """Fail as only a fault of ours does."""
    raise RuntimeError("a secret")


@handler("sampling", listing="by_default")
async def sampling(call: Call[Any], params: Nothing) -> Done:  # noqa: ARG001 - as above
    """Need what the client may not have."""
    if "sampling" not in client_of(call.session).capabilities:
        raise MissingCapability(
            "sampling is needed", requiredCapabilities={"sampling": {}}
        )
    return {"done": "sampled"}


REGISTRY = Registry([hold, steps, lost, broken, sampling])


@asynccontextmanager
async def connected(
    tmp_path: Path, page: int = 50, log: Notes | None = None
) -> AsyncIterator[Client]:
    """Serve a client of its own; ``log`` is given what is logged."""
    with anyio.fail_after(BOUND):
        async with Catalogue(
            parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
        ) as catalogue:
            service = Service(
                catalogue, {"name": "n", "version": "1"}, structured=True, page=page
            )
            extensions = Adapter(service, Binder(catalogue)).extensions()
            service.dispatcher = Dispatcher(
                REGISTRY, catalogue, log=log or Notes(), extensions=extensions
            )
            async with memory(service.dispatcher, tmp_path) as connect:
                client = await connect()
                async with client.stream:
                    yield client


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "id", "method": method, "params": params}


@pytest.mark.parametrize("token", [0, 7, "", "text"])
@pytest.mark.parametrize("thread", [False, True])
async def test_progress_comes_before_the_answer_under_its_token(
    tmp_path: Path, *, token: Any, thread: bool
) -> None:
    async with connected(tmp_path) as client:
        call = {
            "name": "steps",
            "arguments": {"steps": 3, "thread": thread},
            "_meta": {"progressToken": token},
        }
        await client.send(request("tools/call", **call))
        first = await client.receive()
        assert first["method"] == "notifications/progress"
        assert first["params"] == {
            "progressToken": token,
            "progress": 0,
            "total": 3,
            "message": "step 0",
        }
        while (answer := await client.receive()).get("method"):
            assert answer["params"]["progressToken"] == token
        assert answer["result"]["structuredContent"] == {"done": "steps"}


async def test_without_a_token_nothing_is_reported(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        await client.send(request("tools/call", name="steps", arguments={"steps": 3}))
        assert (await client.receive())["id"] == "id"


@pytest.mark.parametrize("meta", [{}, {"_meta": ENVELOPE}])
async def test_a_cancelled_call_ends_unanswered_and_the_next_goes_on(
    tmp_path: Path, meta: Any
) -> None:
    async with connected(tmp_path) as client:
        GATES.__init__()  # type: ignore[misc]  # events belong to one loop, and every run has its own
        await client.send(
            request("tools/call", name="hold", arguments={"name": "never"}, **meta)
        )
        while not GATES.running:
            await GATES.changed.wait()
        await client.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": "id"},
            }
        )
        while "never" not in GATES.ended:
            await GATES.changed.wait()
        await client.send({**request("prompts/list"), "id": "next"})
        assert (await client.receive())["id"] == "next"


async def test_the_client_hears_of_calls_at_its_level(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        for level, tool, heard in [
            ("debug", "steps", "debug"),
            ("debug", "lost", "warning"),
            ("warning", "steps", None),
            ("warning", "lost", "warning"),
            ("error", "lost", None),
        ]:
            assert await client.result("logging/setLevel", {"level": level}) == {}
            arguments = {"steps": 1} if tool == "steps" else {}
            await client.send(request("tools/call", name=tool, arguments=arguments))
            said = await client.receive()
            if heard is None:
                assert "result" in said
                continue
            assert said["method"] == "notifications/message"
            assert (said["params"]["level"], said["params"]["data"]["tool"]) == (
                heard,
                tool,
            )
            assert "result" in await client.receive()
        assert (await client.call("logging/setLevel", {"level": "loud"}))["error"][
            "code"
        ] == -32602


async def test_a_stateless_request_opts_in_by_itself(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        meta = {**ENVELOPE, f"{PREFIX}logLevel": "debug"}
        await client.send(request("tools/call", name="lost", _meta=meta))
        assert (await client.receive())["method"] == "notifications/message"
        assert (await client.receive())["result"]["isError"]
        await client.send(request("tools/call", name="lost", _meta=ENVELOPE))
        assert (await client.receive())["result"]["isError"]


async def test_a_fault_of_ours_is_a_failed_call_whose_text_stays_in_the_log(
    tmp_path: Path,
) -> None:
    log = Notes()
    async with connected(tmp_path, log=log) as client:
        answer = await client.result("tools/call", {"name": "broken"})
    told = answer["structuredContent"]
    assert (answer["isError"], told["code"], told["message"]) == (
        True,
        -32603,
        "internal error",
    )
    assert "secret" not in str(answer)
    [(_, noted)] = [note for note in log.notes if note[0] == "call failed"]
    assert noted["id"] == told["data"]["id"]
    assert "a secret" in noted["trace"]


async def test_a_capability_not_declared_is_an_error_of_the_protocol(
    tmp_path: Path,
) -> None:
    async with connected(tmp_path) as client:
        error = (
            await client.call("tools/call", {"name": "sampling", "_meta": ENVELOPE})
        )["error"]
        assert error["code"] == -32021
        assert error["data"]["requiredCapabilities"] == {"sampling": {}}
        meta = {**ENVELOPE, f"{PREFIX}clientCapabilities": {"sampling": {}}}
        assert (await client.result("tools/call", {"name": "sampling", "_meta": meta}))[
            "isError"
        ] is False


@pytest.mark.parametrize("page", [1, 2, 4, 5])
async def test_pages_together_are_the_list_in_its_order(
    tmp_path: Path, page: int
) -> None:
    async with connected(tmp_path, page) as client:
        found: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            answer = await client.result("tools/list", cursor)
            assert 0 < len(answer["tools"]) <= page
            found += [tool["name"] for tool in answer["tools"]]
            if "nextCursor" not in answer:
                break
            cursor = {"cursor": answer["nextCursor"]}
        assert found == ["hold", "steps", "lost", "broken", "sampling"]


async def test_notifications_are_not_answered(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        for method in (
            "initialized",
            "roots/list_changed",
            "progress",
            "cancelled",
            "unheard/of",
        ):
            await client.send(
                {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": {}}
            )
        assert await client.result("ping") == {}
