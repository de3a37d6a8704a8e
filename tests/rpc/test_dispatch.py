"""Dispatching without a wire: who may call what, what a method sees of its call, and every fact of every refusal."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import pytest

from flashgrep.base.errors import (
    Cancelled,
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    MethodNotFound,
)
from flashgrep.base.registry import Call, Capabilities, Registry, Session, handler
from flashgrep.rpc.context import RequestContext
from flashgrep.rpc.dispatch import Dispatcher, Pending
from flashgrep.rpc.message import Params, Request
from flashgrep.rpc.wire import Limits
from tests.rpc.harness import BOUND, HANDLERS, Gates, Notes, Value, make_dispatcher

pytestmark = pytest.mark.anyio


class Caller:
    """A client in memory: keeps what it is sent, and whom it is."""

    def __init__(self, session: Session | None = None) -> None:
        self.session = session or Session()
        self.told: list[tuple[str, Any]] = []

    def notify(self, method: str, params: Any) -> bool:
        self.told.append((method, params))
        return True

    async def request(self, method: str, params: Any) -> Any:
        return [method, params]

    def follow(self, _key: str, _work: Callable[[], Awaitable[None]]) -> bool:
        return False

    def unfollow(self, _key: str) -> bool:
        return False


@handler("seen")
async def seen(call: Call[Gates], params: Value) -> Any:
    """Tell what a method sees of its call."""
    del params
    assert call.deadline is not None
    call.progress(1.0, 2.0, "half")
    return {
        "left": call.deadline - time.monotonic(),
        "wire": call.session.wire,
        "host": type(call.host).__name__,
    }


def pending(
    method: str, params: Params, *, notify: bool = False, reporting: str | None = None
) -> Pending:
    return Pending(
        Request(method, params, 7, wants_answer=not notify, progress_token=reporting)
    )


def dispatcher(limits: Limits | None = None, log: Notes | None = None) -> Dispatcher:
    return Dispatcher(
        Registry([*HANDLERS, seen]), Gates(), log=log or Notes(), limits=limits
    )


async def ask(on: Dispatcher, caller: Caller, asked: Pending) -> Any:
    answer = await on.answer(caller, asked)
    return None if answer is None else json.loads(answer)


async def test_without_limits_of_its_own_a_dispatcher_has_the_usual_ones() -> None:
    assert dispatcher().limits == Limits()
    assert dispatcher(Limits(call_seconds=3)).limits == Limits(call_seconds=3)


async def test_a_method_sees_who_asks_whom_and_until_when() -> None:
    on = dispatcher(Limits(call_seconds=50))
    answer = await ask(on, Caller(Session(wire="unix")), pending("seen", {}))
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    told = answer["result"]
    assert 40 < told.pop("left") <= 50
    assert told == {"wire": "unix", "host": "Gates"}


async def test_a_call_from_within_has_no_request_and_reports_to_whoever_asked() -> None:
    reports: list[tuple[float, float | None, str]] = []
    on = dispatcher(Limits(call_seconds=50))
    told = await on.call(
        Session(wire="http"),
        "seen",
        {},
        progress=lambda *report: reports.append(report),
    )
    assert told["wire"] == "http"
    assert 40 < told["left"] <= 50
    assert reports == [(1.0, 2.0, "half")]


async def test_a_notification_is_carried_out_and_has_no_answer() -> None:
    got: list[str] = []

    @handler("note")
    async def note(call: Call[Gates], params: Value) -> Any:
        """Keep what is given."""
        del call
        got.append(params.value)

    on = Dispatcher(Registry([note]), Gates(), log=Notes())
    assert (
        await on.answer(Caller(), pending("note", {"value": "x"}, notify=True)) is None
    )
    assert (
        await on.answer(Caller(), pending("note", {"value": "y"}))
        == b'{"jsonrpc":"2.0","result":null,"id":7}'
    )
    assert got == ["x", "y"]


async def test_progress_goes_to_the_one_who_gave_a_token() -> None:
    on, caller = dispatcher(), Caller()
    await ask(on, caller, pending("seen", {}, reporting="t"))
    assert caller.told == [
        (
            "notifications/progress",
            {"progressToken": "t", "progress": 1.0, "total": 2.0, "message": "half"},
        )
    ]
    await ask(on, caller, pending("seen", {}))
    assert len(caller.told) == 1


async def test_before_the_token_was_shown_only_showing_it_is_answered() -> None:
    on = make_dispatcher()
    stranger = Caller(Session(authenticated=False, wire="tcp"))
    refused = await ask(on, stranger, pending("echo", {"value": 1}))
    assert refused["id"] == 7
    assert refused["error"]["data"] == {
        "reason": "auth_required",
        "suggestion": "call auth",
    }
    assert "show the token first" in refused["error"]["message"]
    assert refused["error"]["code"] == Forbidden.code
    assert await on.answer(stranger, pending("echo", {"value": 1}, notify=True)) is None
    assert (await ask(on, stranger, pending("auth", {"token": "wrong"})))["error"][
        "code"
    ] == Forbidden.code
    assert "result" in await ask(
        on, stranger, pending("auth", {"token": "a-token-for-tests"})
    )
    assert (await ask(on, stranger, pending("echo", {"value": 1})))["result"] == 1


@pytest.mark.parametrize(
    ("session", "data"),
    [
        (
            Session(capabilities=Capabilities(writes="with_token"), wire="tcp"),
            {"reason": "auth_required", "suggestion": "call auth"},
        ),
        (
            Session(
                capabilities=Capabilities(writes="never"), wire="tcp", has_token=True
            ),
            {"reason": "read_only"},
        ),
        (Session(read_only=True, wire="unix"), {"reason": "read_only"}),
    ],
)
async def test_a_client_that_may_not_write_learns_why(
    session: Session, data: Mapping[str, str]
) -> None:
    on = dispatcher()
    refused = await ask(on, Caller(session), pending("scribble", {"value": 1}))
    assert refused["error"]["message"].startswith("scribble writes, and ")
    assert ("needs the token" in refused["error"]["message"]) == ("suggestion" in data)
    assert refused["error"]["data"] == data
    assert (await ask(on, Caller(session), pending("echo", {"value": 1})))[
        "result"
    ] == 1


async def test_who_may_write_does() -> None:
    assert (
        await ask(
            dispatcher(), Caller(Session(wire="tcp")), pending("scribble", {"value": 1})
        )
    )["result"] == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([3], 3),
        ([1, 2, 4], 7),
        ({"a": 5}, 5),
        ({"a": 5, "progress_token": 1}, 5),
        ({"a": 5, "_meta": {"progressToken": 1}, "b": 1}, 6),
        ({"_meta": {}, "c": 2}, 2),
    ],
)
async def test_parameters_come_by_position_or_by_name_without_what_is_the_wires(
    given: Params, expected: int
) -> None:
    assert await dispatcher().call(Session(), "sum", given) == expected


async def test_the_error_for_too_many_positional_parameters_lists_them() -> None:
    with pytest.raises(InvalidParams) as caught:
        await dispatcher().call(Session(), "sum", [1, 2, 3, 4])
    assert caught.value.message == "sum: 4 parameters by position, at most 3 allowed"
    assert caught.value.data == {"allowed": ["a", "b", "c"]}


async def test_a_call_cancelled_before_it_starts_does_not_start() -> None:
    on = dispatcher()
    waiting = pending("hold", {"name": "gate"})
    waiting.cancel(silent=False)
    answer = await ask(on, Caller(), waiting)
    assert answer["error"] == {
        "code": Cancelled.code,
        "message": "the call was cancelled",
        "data": {"reason": "cancelled", "method": "hold"},
    }
    silent = pending("hold", {"name": "gate"})
    silent.cancel(silent=True)
    assert await on.answer(Caller(), silent) is None
    assert on._host.ended == []


async def test_a_call_cancelled_while_it_runs_ends_at_its_next_wait() -> None:
    on = dispatcher()
    running = pending("hold", {"name": "gate"})
    answers: list[Any] = []

    async def run() -> None:
        answers.append(await ask(on, Caller(), running))

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not on._host.running:
                await on._host.changed.wait()
            running.cancel(silent=False)
    assert answers[0]["error"]["code"] == Cancelled.code
    assert on._host.ended == ["gate"]


@pytest.mark.parametrize("method", ["hold", "held"])
async def test_a_call_that_runs_out_of_time_says_how_much_it_had(method: str) -> None:
    async def held(context: RequestContext, params: Params) -> Any:
        assert isinstance(params, dict)
        return await context.call_method("hold", params)

    on = Dispatcher(
        Registry(HANDLERS),
        Gates(),
        log=Notes(),
        limits=Limits(call_seconds=0.01),
        extensions={"held": held},
    )
    answer = await ask(on, Caller(), pending(method, {"name": "gate"}))
    assert answer["error"] == {
        "code": DeadlineExceeded.code,
        "message": "the call ran out of time",
        "data": {"reason": "deadline_exceeded", "limit_seconds": 0.01},
    }


@pytest.mark.parametrize("method", ["fail", "fails"])
async def test_a_fault_is_logged_under_the_id_that_the_caller_gets(method: str) -> None:
    async def fails(_context: RequestContext, _params: Params) -> Any:
        raise RuntimeError("secret plan")

    log = Notes()
    on = Dispatcher(Registry(HANDLERS), Gates(), log=log, extensions={"fails": fails})
    error = (await ask(on, Caller(), pending(method, {"value": "plan"})))["error"]
    assert (error["code"], error["message"]) == (FlashgrepError.code, "internal error")
    assert error["data"]["reason"] == "internal_error"
    ((event, values),) = log.notes
    assert event == "call failed"
    assert (values["method"], values["id"]) == (method, error["data"]["id"])
    assert "RuntimeError: secret plan" in values["trace"]
    assert "secret" not in json.dumps(error)
    again = (await ask(on, Caller(), pending(method, {"value": "plan"})))["error"]
    assert again["data"]["id"] != error["data"]["id"]
    assert len(error["data"]["id"]) == 8


async def test_a_result_without_a_json_form_is_logged_under_the_id_that_the_caller_gets() -> (
    None
):
    log = Notes()
    answer = await ask(
        dispatcher(log=log), Caller(), pending("answer", {"name": "set"})
    )
    ((event, values),) = log.notes
    assert event == "result has no JSON form"
    assert (answer["id"], values["method"], values["id"]) == (
        7,
        "answer",
        answer["error"]["data"]["id"],
    )


async def test_every_call_is_logged_with_its_time_and_outcome() -> None:
    log = Notes()
    on = dispatcher(log=log)
    await ask(on, Caller(Session(wire="unix")), pending("echo", {"value": "x"}))
    await ask(on, Caller(Session(wire="unix")), pending("echo", {"other": "x"}))
    assert [(one["method"], one["wire"], one["code"]) for one in log.calls] == [
        ("echo", "unix", 0),
        ("echo", "unix", InvalidParams.code),
    ]
    assert all(0 <= one["took_ms"] < BOUND * 1000 for one in log.calls)


async def test_an_extension_gets_the_parameters_and_the_request() -> None:
    async def shown(context: RequestContext, params: Params) -> Any:
        context.notify("note", [1])
        inner = await context.call_method("echo", {"value": "inner"})
        return [params, context.request.method, context.session.wire, inner]

    caller = Caller(Session(wire="unix"))
    on = Dispatcher(
        Registry(HANDLERS), Gates(), log=Notes(), extensions={"shown": shown}
    )
    answer = await ask(on, caller, pending("shown", {"x": 1}))
    assert answer["result"] == [{"x": 1}, "shown", "unix", "inner"]
    assert caller.told == [("note", [1])]
    with pytest.raises(MethodNotFound):  # what is a wire's is not called from within
        await on.call(Session(), "shown", {})


async def test_a_call_may_wait_and_a_model_comes_as_json() -> None:
    on = dispatcher(Limits(call_seconds=50))
    answers: dict[str, Any] = {}

    async def run(name: str, params: Params) -> None:
        answers[name] = await on.call(Session(), name, params)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, "hold", {"name": "gate"})
            while not on._host.running:
                await on._host.changed.wait()
            await run("release", {"name": "gate"})
        await run("answer", {"name": "model"})
    assert answers == {
        "hold": "gate",
        "release": True,
        "answer": {"name": "x", "path": "a/b"},
    }


async def test_names_taken_twice_are_reported_in_order() -> None:
    async def never(_context: RequestContext, _params: Params) -> Any:
        raise AssertionError

    taken = {"hold": never, "echo": never, "free": never}
    with pytest.raises(ValueError, match=r"^method name taken twice: echo, hold$"):
        Dispatcher(Registry(HANDLERS), Gates(), log=Notes(), extensions=taken)
