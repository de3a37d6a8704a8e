"""Questions of somebody who types: results in parts, each key ending the question before it, news of the project."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.daemon import lifecycle
from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire

CANCELLED = -32800
LINES = "".join(f"weave({number})\n" for number in range(150))


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Iterator[Wire]:
    root = project(
        {"a.py": f"def weave(n): ...\n{LINES}", "b.py": f"from a import weave\n{LINES}"}
    )
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as opened:
        opened.root = str(root)
        yield opened


def receive_until(wire: Wire, request_id: Any) -> tuple[Any, list[Any]]:
    """Return an answer, and the messages before it."""
    before = []
    while (message := wire.receive()).get("id") != request_id:
        before.append(message)
    return message, before


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("query", {"query": "weave", "mode": "literal", "max_tokens": 100_000}),
        ("references", {"path": "a.py", "line": 1, "column": 5}),
        ("get_symbol", {"symbol_name": "weave", "max_tokens": 100_000}),
    ],
)
def test_parts_come_in_order_before_the_answer(
    wire: Wire, method: str, params: dict[str, Any]
) -> None:
    for limit in (5, 200, 1_000):
        whole = wire.call(method, **params, limit=limit)
        asked = {
            "jsonrpc": "2.0",
            "id": "parts",
            "method": method,
            "params": {**params, "limit": limit},
        }
        wire.send({**asked, "partial_result_token": 7})
        answer, parts = receive_until(wire, "parts")
        assert [(part["method"], part["params"]["token"]) for part in parts] == [
            ("$/progress", 7)
        ] * len(parts)
        sizes = [len(part["params"]["value"]["results"]) for part in parts]
        assert sizes == ([] if limit == 5 else [20, 80])
        sent = [one for part in parts for one in part["params"]["value"]["results"]]
        assert [*sent, *answer["result"]["results"]] == whole["results"]
        assert answer["result"].get("total") == whole.get("total")


def test_each_key_ends_the_question_before_it_and_the_last_is_answered(
    wire: Wire, daemon: DaemonAtHand
) -> None:
    keys = [f"weave({number}" for number in range(20)]
    for number, key in enumerate(keys):
        params = {
            "query": key,
            "mode": "literal",
            "use_index": False,
            "_meta": {"replace": "live"},
        }
        wire.send({"jsonrpc": "2.0", "id": number, "method": "query", "params": params})
    answers = {(message := wire.receive())["id"]: message for _ in keys}
    assert {
        answer["error"]["code"] for answer in answers.values() if "error" in answer
    } <= {CANCELLED}
    assert answers[19]["result"]["total"] == 2
    with closing(
        daemon.wire("unix", Path(str(wire.root)))
    ) as other:  # no work is left that another would wait for
        assert other.call("query", query="weave(7)", mode="literal")["total"] == 2


def test_a_subscriber_is_notified_of_changes_until_it_leaves(wire: Wire) -> None:
    assert wire.fail("$/subscribe", project=5)["data"]["field"] == "project"
    assert wire.fail("$/subscribe", project="nowhere")["data"]["reason"] in {
        "project_not_found",
        "outside_root",
    }
    state = wire.call("$/subscribe")
    assert state["root"] == wire.root
    Path(f"{wire.root}/c.py").write_text("x = 1\n")
    deadline = time.monotonic() + BOUND
    while state["files"] != 3 or state["stage"] != "ready" or not state["changes"]:
        assert time.monotonic() < deadline
        message = wire.receive()
        assert message["method"] == "status"
        assert message["params"] != state, "only what has changed is told"
        state = message["params"]
    assert state["generation"]
    wire.send({"jsonrpc": "2.0", "id": "end", "method": "$/unsubscribe"})
    assert receive_until(wire, "end")[0]["result"] == {"ended": True}
    assert wire.call("$/unsubscribe") == {"ended": False}


def test_a_subscription_goes_on_at_the_next_daemon(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "x = 1\n"})
    cold_daemon.start()
    cold_daemon.add(root)
    with closing(cold_daemon.wire("stdio", root)) as relay:
        assert relay.call("$/subscribe")["root"] == str(root)
        os.kill(cold_daemon.status()["pid"], signal.SIGKILL)
        assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)
        deadline = time.monotonic() + BOUND
        relay.send({"jsonrpc": "2.0", "id": "q", "method": "stats"})
        while (
            "result" not in (answer := receive_until(relay, "q"))[0]
        ):  # it was sent before the end was seen
            assert time.monotonic() < deadline
            relay.send({"jsonrpc": "2.0", "id": "q", "method": "stats"})
        Path(f"{root}/b.py").write_text("y = 1\n")
        state = next(
            one["params"]
            for one in reversed(answer[1])
            if one.get("method") == "status"
        )
        assert state["root"] == str(root)
        while state["files"] != 2:
            assert time.monotonic() < deadline
            message = relay.receive()
            assert message["method"] == "status"
            state = message["params"]
