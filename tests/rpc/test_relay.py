"""Lines through the relay: every one arrives whole and in order, whoever is slow, ends first or dies."""

import json
import os
import queue
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.parts.built_in import REGISTRY
from flashgrep.rpc import relay as relay_module
from flashgrep.rpc.inflight import InFlight, Line, answered_key, id_key, parse
from flashgrep.rpc.message import encode, error_line
from flashgrep.rpc.relay import MOST_QUEUED, READS, REPEATED, Relay

BOUND = 20.0
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Far:
    """The daemon's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(BOUND)
        self.connection = connection
        self._file = connection.makefile("rb")

    def next(self) -> Any:
        """Return the next line of the relay, None at its end."""
        line = self._file.readline()
        return json.loads(line) if line else None

    def say(self, message: Any) -> None:
        """Send a line as the daemon writes them, or bytes as they are."""
        self.connection.sendall(
            message if isinstance(message, bytes) else encode(message) + b"\n"
        )

    def answer(self, request: Any, result: Any = None) -> None:
        """Answer a request."""
        self.say({"jsonrpc": "2.0", "result": result, "id": request["id"]})

    def end(self) -> None:
        """Die."""
        self._file.close()
        self.connection.close()


class Host:
    """A relay running in a thread, its host, and the daemons it finds: each connecting takes the next one."""

    def __init__(self) -> None:
        self._source_end, self.source = os.pipe()
        self.sink, self._sink_end = os.pipe()
        self.daemons: queue.Queue[Far] = queue.Queue()
        self.problems: queue.Queue[str] = queue.Queue()
        self.doomed = False  # daemons end before they read a byte
        self._held = b""
        self._relay = Relay(self._connect, self._source_end, self._sink_end)
        self.thread = threading.Thread(target=self._run)

    def start(self) -> Far:
        """Start the relay; return its first daemon."""
        self.thread.start()
        return self.daemons.get(timeout=BOUND)

    def say(self, message: Any) -> None:
        """Send a line."""
        data = (
            message
            if isinstance(message, bytes)
            else json.dumps(message).encode() + b"\n"
        )
        view = memoryview(data)
        while view:
            view = view[os.write(self.source, view) :]

    def next(self) -> Any:
        """Return the next line the host gets, None at the end."""
        while b"\n" not in self._held:
            assert select.select([self.sink], [], [], BOUND)[0], "nothing came"
            piece = os.read(self.sink, 65536)
            if not piece:
                assert not self._held, "a torn line"
                return None
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return json.loads(line)

    def take_daemon_or_answer(self) -> Far | None:
        """Return the next daemon; None, and drop the line, where the host has an answer first."""
        while self.daemons.empty():
            if select.select([self.sink], [], [], 0.01)[0]:
                self.next()
                return None
        return self.daemons.get()

    def end_input(self) -> None:
        os.close(self.source)
        self.source = -1

    def close(self) -> None:
        if self.source >= 0:
            self.end_input()
        until = time.monotonic() + BOUND
        while self.thread.is_alive():
            assert time.monotonic() < until
            with suppress(queue.Empty):
                self.daemons.get(timeout=0.02).end()
        os.close(self.sink)
        os.close(self._source_end)

    def _connect(self) -> socket.socket:
        if not self.problems.empty():
            raise OSError(self.problems.get())
        near, far = socket.socketpair()
        if self.doomed:
            far.close()
        else:
            self.daemons.put(Far(far))
        return near

    def _run(self) -> None:
        self._relay.run(self._connect())
        os.close(self._sink_end)


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()


def ask(number: Any, method: str = "write_code", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_more_than_is_held_passes_both_ways_at_once(host: Host) -> None:
    far = host.start()
    many = 3 * MOST_QUEUED // 1000
    asked = [ask(number, text="x" * 1000) for number in range(many)]

    def answer() -> None:
        for _ in range(many):
            far.answer(far.next(), "y" * 1000)

    feeding = threading.Thread(
        target=lambda: host.say(
            b"".join(json.dumps(each).encode() + b"\n" for each in asked)
        )
    )
    answering = threading.Thread(target=answer)
    feeding.start()
    answering.start()
    assert [host.next()["id"] for _ in range(many)] == list(range(many))
    feeding.join(BOUND)
    answering.join(BOUND)
    far.end()


def test_an_ended_input_is_passed_on_and_the_answer_still_comes(host: Host) -> None:
    far = host.start()
    host.say(json.dumps(ask(1)).encode())  # without a line end
    host.end_input()
    request = far.next()
    assert far.next() is None
    far.answer(request, "late")
    far.end()
    assert host.next()["result"] == "late"
    assert host.next() is None


def test_what_was_in_flight_is_answered_with_an_error_and_the_rest_goes_to_the_next_daemon(
    host: Host,
) -> None:
    far = host.start()
    for number in range(5):
        host.say(ask(number))
    assert [far.next()["id"] for _ in range(5)] == [0, 1, 2, 3, 4]
    far.answer(ask(3), "done")
    far.end()
    assert host.next()["result"] == "done"
    answers = [host.next() for _ in range(4)]
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2, 4]
    for answer in answers:
        assert "try again" in answer["error"]["message"]
        assert answer["error"]["data"]["reason"] == "daemon_ended"
    assert host.daemons.empty(), (
        "it is started again by the next request, not before: it may have been stopped"
    )
    host.say({"jsonrpc": "2.0", "method": "$/noted"})
    host.say(ask("next"))
    far = host.daemons.get(timeout=BOUND)
    request = far.next()
    assert request["id"] == "next"
    far.answer(request, 1)
    assert host.next() == {"jsonrpc": "2.0", "result": 1, "id": "next"}
    far.end()


def test_a_host_hears_that_its_unsaved_text_went_with_the_daemon(host: Host) -> None:
    far = host.start()
    host.say({"jsonrpc": "2.0", "method": "buffers", "params": {"action": "open"}})
    host.say(ask(1))
    far.next()
    assert far.next()["id"] == 1
    far.end()
    assert host.next() == {"jsonrpc": "2.0", "method": "$/buffersLost"}
    assert host.next()["error"]["data"]["reason"] == "daemon_ended"
    host.say(ask(2))  # of the next daemon nothing is known that could be lost
    far = host.daemons.get(timeout=BOUND)
    far.next()
    far.end()
    assert host.next()["id"] == 2


def test_what_a_host_follows_is_followed_at_the_next_daemon_and_reported_at_once(
    host: Host,
) -> None:
    far = host.start()
    for number, project in enumerate(["one", "two", "gone"]):
        host.say(ask(f"s{number}", "$/subscribe", project=project))
        far.answer(far.next(), {"stage": "symbols"})
        assert host.next()["id"] == f"s{number}"
    host.say(ask("u", "$/unsubscribe", project="one"))
    far.answer(far.next(), {"ended": True})
    assert host.next()["id"] == "u"
    far.end()
    host.say(ask(1))
    if far_again := host.take_daemon_or_answer():
        far = far_again
    else:  # it had been sent before the end was seen
        host.say(ask(1))
        far = host.daemons.get(timeout=BOUND)
    request = far.next()
    assert (request["method"], request["params"]) == ("$/subscribe", {"project": "two"})
    early = {"jsonrpc": "2.0", "method": "status", "params": {"stage": "early"}}
    far.say(early)
    far.answer(request, {"stage": "chunks"})
    request = far.next()
    assert request["params"] == {"project": "gone"}
    # What comes with the last answer, half a line too, is the host's.
    late = (
        encode({"jsonrpc": "2.0", "method": "status", "params": {"stage": "late"}})
        + b"\n"
    )
    error = {
        "jsonrpc": "2.0",
        "error": {"code": -32001, "message": "no such project"},
        "id": request["id"],
    }
    far.say(encode(error) + b"\n" + late[:20])
    request = far.next()
    far.say(late[20:])
    far.answer(request, "found")
    told = [host.next() for _ in range(4)]
    assert [one["method"] for one in told] == ["status"] * 4
    assert [one["params"]["stage"] for one in told] == [
        "early",
        "chunks",
        "closed",
        "late",
    ]
    assert told[2]["params"]["project"] == "gone"
    assert host.next() == {"jsonrpc": "2.0", "result": "found", "id": 1}
    far.end()


@pytest.mark.parametrize("modern", [False, True])
def test_a_tools_call_in_flight_ends_as_a_result_that_a_model_reads(
    host: Host, *, modern: bool
) -> None:
    far = host.start()
    meta = (
        {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
        if modern
        else {}
    )
    host.say(ask(1, "tools/call", name="write_code", **meta))
    far.next()
    far.end()
    result = host.next()["result"]
    assert result["isError"]
    assert "try again" in result["content"][0]["text"]
    assert result.get("resultType") == ("complete" if modern else None)


def test_a_batch_is_answered_as_one(host: Host) -> None:
    far = host.start()
    host.say([ask(1), ask("1"), {"jsonrpc": "2.0", "method": "noted"}])
    far.next()
    far.end()
    assert [answer["id"] for answer in host.next()] == [1, "1"]


def test_a_torn_answer_is_never_passed_on(host: Host) -> None:
    far = host.start()
    host.say(ask(1))
    far.next()
    far.say(b'{"jsonrpc":"2.0","result":"' + b"x" * 300_000)
    far.end()
    assert host.next()["error"]["data"]["reason"] == "daemon_ended"


def test_the_handshake_is_repeated_and_its_answers_are_kept_from_the_host(
    host: Host,
) -> None:
    far = host.start()
    host.say(INITIALIZE)
    far.answer(far.next(), "first")
    assert host.next()["result"] == "first"
    host.say(INITIALIZED)
    host.say(ask("level", "logging/setLevel", level="debug"))
    assert far.next()["method"] == "notifications/initialized"
    far.answer(far.next())
    assert host.next()["id"] == "level"
    for round_ in range(2):
        far.end()
        host.say(ask(round_, "tools/call", name="write_code"))
        answer = None
        while answer is None:
            if not host.daemons.empty():
                far = host.daemons.get()
                request = far.next()
                assert request == INITIALIZE
                far.say(
                    {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
                )
                far.answer(request, "again")
                assert far.next() == INITIALIZED
                request = far.next()
                assert request["id"] == "level"
                far.answer(request)
                request = far.next()
                assert request["id"] == round_
                far.answer(request, "found")
                answer = host.next()
            elif select.select([host.sink], [], [], 0.01)[
                0
            ]:  # it had been sent before the end was seen
                assert host.next()["result"]["isError"]
                host.say(ask(round_, "tools/call", name="write_code"))
        assert answer == {"jsonrpc": "2.0", "result": "found", "id": round_}
    far.end()


@pytest.mark.parametrize(
    "method", sorted(REPEATED & {"initialize", "tools/list", "ping"})
)
def test_what_a_host_gives_up_over_is_sent_again(host: Host, method: str) -> None:
    far = host.start()
    host.say(ask(7, method))
    for _ in range(3):
        assert far.next()["method"] == method
        far.end()
        far = host.daemons.get(timeout=BOUND)
    far.answer(far.next(), "at last")
    assert host.next() == {"jsonrpc": "2.0", "result": "at last", "id": 7}
    far.end()


@pytest.mark.parametrize(
    "read",
    [
        {"jsonrpc": "2.0", "id": 7, "method": "query", "params": {}},
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "query"},
        },
    ],
)
def test_a_read_that_the_daemons_end_cut_is_sent_again_once(
    host: Host, read: dict[str, Any]
) -> None:
    far = host.start()
    host.say(read)
    assert far.next() == read
    far.end()
    far = host.daemons.get(timeout=BOUND)
    assert far.next() == read
    far.answer(read, "found")
    assert host.next() == {"jsonrpc": "2.0", "result": "found", "id": 7}
    host.say(ask(8, "query"))
    far.next()
    far.end()
    far = host.daemons.get(timeout=BOUND)
    far.next()
    far.end()
    assert host.next()["error"]["data"]["reason"] == "daemon_ended", (
        "one that ends each daemon is not sent for ever"
    )


def test_a_batch_with_a_write_in_it_is_not_sent_again(host: Host) -> None:
    far = host.start()
    host.say([ask(1, "query"), ask(2, "write_code")])
    far.next()
    far.end()
    assert [answer["id"] for answer in host.next()] == [1, 2]


def test_a_read_of_unsaved_text_is_not_sent_to_a_daemon_that_lacks_it(
    host: Host,
) -> None:
    far = host.start()
    host.say({"jsonrpc": "2.0", "method": "buffers", "params": {"action": "open"}})
    host.say(ask(1, "query"))
    far.next()
    far.next()
    far.end()
    assert host.next() == {"jsonrpc": "2.0", "method": "$/buffersLost"}
    assert host.next()["error"]["data"]["reason"] == "daemon_ended"


def test_what_the_relay_repeats_only_reads() -> None:
    reading = {handler.name for handler in REGISTRY if handler.safety == "reads"}
    assert reading >= READS


def test_a_daemon_that_ends_each_time_is_not_asked_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "LONGEST_PAUSE", 0.01)
    far = host.start()
    host.say(INITIALIZE)
    for _ in range(relay_module.MOST_SENDINGS - 1):
        far.next()
        far.end()
        far = host.daemons.get(timeout=BOUND)
    far.next()
    far.end()
    assert "try again" in host.next()["error"]["message"]


def test_daemons_that_end_before_they_read_are_not_tried_for_ever(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "LONGEST_PAUSE", 0.01)
    far = host.start()
    host.doomed = True
    far.end()
    host.say(ask(1, "ping"))
    host.end_input()
    assert host.next()["error"]["data"]["reason"] == "daemon_ended"
    assert host.next() is None


def test_a_daemon_that_cannot_be_started_is_reported_in_each_answer_and_comes_back(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(relay_module, "LONGEST_PAUSE", 0.01)
    far = host.start()
    host.say(ask(0))
    far.next()
    for number in range(6):
        host.problems.put(f"no room on the disk {number}")
    far.end()
    assert "ended" in host.next()["error"]["message"]
    for number in range(6):
        host.say(ask(number))
        assert f"no room on the disk {number}" in host.next()["error"]["message"]
    host.say(ask("back"))
    far = host.daemons.get(timeout=BOUND)
    far.answer(far.next(), "here")
    assert host.next()["result"] == "here"
    assert "no room on the disk 5" in capfd.readouterr().err
    far.end()


def test_requests_do_not_wait_for_an_attempt_that_is_far_away(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "PATIENCE_SECONDS", -1000.0)
    far = host.start()
    host.say(ask(0))
    far.next()
    far.end()
    host.next()
    host.say(ask(1))
    assert "the daemon ended" in host.next()["error"]["message"]
    assert host.daemons.empty()


def test_a_late_reply_to_a_daemon_that_is_gone_is_dropped(host: Host) -> None:
    far = host.start()
    host.say(ask(1, "ping"))
    far.next()
    far.say({"jsonrpc": "2.0", "method": "roots/list", "params": {}, "id": "q-1"})
    assert host.next()["method"] == "roots/list"
    far.end()
    far = host.daemons.get(timeout=BOUND)
    host.say({"jsonrpc": "2.0", "id": "q-1", "result": {"roots": []}})
    host.say(ask(2))
    assert [far.next()["id"], far.next()["id"]] == [1, 2]
    far.say({"jsonrpc": "2.0", "method": "roots/list", "params": {}, "id": "q-2"})
    assert host.next()["id"] == "q-2"
    host.say({"jsonrpc": "2.0", "id": "q-2", "result": {"roots": []}})
    assert far.next()["id"] == "q-2"
    far.end()


def test_a_request_taken_back_is_answered_by_nobody(host: Host) -> None:
    far = host.start()
    host.say(ask(1, "tools/call"))
    host.say(ask(2, "tools/call"))
    host.say(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1},
        }
    )
    assert [far.next().get("id") for _ in range(3)] == [1, 2, None]
    far.end()
    assert host.next()["id"] == 2
    host.end_input()
    assert host.next() is None


def test_the_end_of_both_ends_it(host: Host) -> None:
    far = host.start()
    host.say(ask(1))
    far.next()
    host.end_input()
    assert far.next() is None
    far.end()
    assert host.next()["error"]["data"]["reason"] == "daemon_ended"
    assert host.next() is None


def test_a_line_that_does_not_end_is_refused(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "MOST_LINE", 100_000)
    far = host.start()
    host.say(b"x" * 250_000)
    error = host.next()["error"]
    assert (error["code"], error["data"]["reason"], error["data"]["limit_bytes"]) == (
        -32003,
        "payload_too_large",
        100_000,
    )
    host.say(b"x\n" + json.dumps(ask(1)).encode() + b"\n")
    assert far.next()["id"] == 1
    far.end()


ODD: list[Any] = [None, True, 0, -1.5, 10**30, "", "x", [], [[]], {}, {"a": []}]


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
@pytest.mark.parametrize(
    "place", ["id", "method", "params", "jsonrpc", "result", "error"]
)
def test_what_is_not_understood_is_passed_on_and_the_next_request_too(
    host: Host, place: str, value: Any
) -> None:
    far = host.start()
    odd = {**ask(1, "ping"), place: value}
    bare = {name: odd[name] for name in ("jsonrpc", "id", place)}
    messages: list[Any] = [odd, [odd, odd], bare]
    for message in messages:
        host.say(message)
        host.say(ask("next"))
        told = far.next()
        if told != ask("next"):
            assert told == message
            told = far.next()
        else:
            assert message is bare, "a reply that nobody waits for"
        assert told == ask("next")
        far.answer(told, 1)
        assert host.next()["id"] == "next"
    far.end()


def test_a_bug_of_ours_ends_one_line(
    host: Host, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    far = host.start()

    def fail(*_arguments: Any) -> None:
        raise RuntimeError("first\nsecond")

    with monkeypatch.context() as patch:
        patch.setattr(Relay, "_note_subscription", fail)
        host.say(ask(1, "$/subscribe", project="x"))
        error = host.next()
        assert (error["id"], error["error"]["code"], error["error"]["data"]) == (
            1,
            -32603,
            {"reason": "internal_error"},
        )
        host.say([ask(2, "$/subscribe"), ask(3)])
        assert [answer["id"] for answer in host.next()] == [2, 3]
        patch.setattr(Relay, "_note_answer", fail)
        host.say(ask(4))
        far.answer(far.next(), "passed on")
        assert host.next()["result"] == "passed on"
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 3
    assert all("internal error" in line and "RuntimeError" in line for line in told)
    far.end()


def test_a_host_that_reads_no_errors_and_closes_them_is_still_served(
    host: Host,
) -> None:
    kept, (reading, writing) = os.dup(2), os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    far = host.start()
    try:
        for problem in range(2):
            far.end()
            host.say(ask(problem, "ping"))
            far = host.daemons.get(timeout=BOUND)
            far.answer(far.next(), problem)
            assert host.next()["result"] == problem
            os.set_blocking(2, False)
            with suppress(BlockingIOError):
                while True:
                    os.write(2, b"x" * 4096)
            os.set_blocking(2, True)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(reading)
    far.end()


def test_a_handshake_in_a_batch_is_repeated_by_itself(host: Host) -> None:
    far = host.start()
    host.say([INITIALIZE, ask(1, "ping")])
    far.say(
        [
            {"jsonrpc": "2.0", "result": each["id"], "id": each["id"]}
            for each in far.next()
        ]
    )
    assert [answer["id"] for answer in host.next()] == [0, 1]
    far.end()
    host.say(ask(2, "ping"))
    far = host.daemons.get(timeout=BOUND)
    far.answer(far.next(), "again")
    request = far.next()
    assert request["id"] == 2
    far.answer(request, "here")
    assert host.next()["result"] == "here"
    far.end()


def test_an_invalid_item_of_a_batch_settles_no_other_batch(host: Host) -> None:
    far = host.start()
    host.say([ask(1), ask(2)])
    host.say([7, ask(3)])
    far.next()
    far.next()
    invalid = {
        "jsonrpc": "2.0",
        "error": {"code": -32600, "message": "Invalid Request"},
        "id": None,
    }
    far.say([invalid, {"jsonrpc": "2.0", "result": 1, "id": 3}])
    assert len(host.next()) == 2
    far.end()
    assert [answer["id"] for answer in host.next()] == [1, 2]


def test_what_is_answered_without_an_id_is_answered_when_the_daemon_ends(
    host: Host,
) -> None:
    far = host.start()
    host.say(b"{\n")
    assert far.connection.recv(100) == b"{\n"
    host.say([])
    assert far.next() == []
    far.end()
    assert [host.next()["id"] for _ in range(2)] == [None, None]
    host.say(ask(1, "ping"))
    far = host.daemons.get(timeout=BOUND)
    assert far.next()["id"] == 1
    far.end()


# -- who is answered
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_id", [1, 1.5, "a", 'x,"id":7}', ',"id":', "\u00e9\n", -(2**70), ""]
)
@pytest.mark.parametrize(
    "result", [None, {"id": 9}, [{"a": 1, "id": 9}], "x" * 100_000]
)
def test_the_id_of_an_answer_is_found_without_parsing_it(
    request_id: Any, result: Any
) -> None:
    answer = {"jsonrpc": "2.0", "result": result, "id": request_id}
    line = (
        encode(answer)
        if request_id != -(2**70)
        else json.dumps(answer, separators=(",", ":")).encode()
    )
    assert answered_key(line) == id_key({"id": request_id})
    assert answered_key(error_line(1, InvalidParams("no", id=3))) == "1"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"roots/list","params":{},"id":"q"}',
        b'[{"jsonrpc":"2.0","result":1,"id":1}]',
        b'{"id":1,"result":{"a":1}}',
    ],
)
def test_what_is_no_plain_answer_has_to_be_parsed(line: bytes) -> None:
    assert answered_key(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"id":1,"x":NaN}',
        b'{"id":1,"x":1e999}',
        b'{"id":1%s}' % (b"0" * 400),
        b'{"id":1,"x":"\\ud800"}',
        b'\xff{"id":1}',
        b"[" * 100_000,
        b'\xef\xbb\xbf{"id":1}',
    ],
)
def test_a_line_that_the_daemon_refuses_is_answered_without_an_id(line: bytes) -> None:
    assert parse(line) is None
    assert list(Line(line, parse(line)).asked) == ["null"]


def test_ids_that_look_alike_differ_and_those_used_twice_are_answered_twice() -> None:
    in_flight = InFlight()
    lines = [Line(b"", ask(number)) for number in (1, "1", 1.0, 1)]
    for line in lines:
        in_flight.add(line)
    in_flight.settle("1")
    assert in_flight.lines() == lines[1:]
    in_flight.settle("1")
    in_flight.settle("1")
    in_flight.settle('"1"')
    assert in_flight.lines() == [lines[2]]
    in_flight.settle("1.0")
    assert not in_flight


def test_the_id_null_answers_a_line_refused_as_a_whole() -> None:
    in_flight = InFlight()
    small, large = Line(b"x", ask(1)), Line(b"x" * 5000, ask(2))
    for line in (small, large, Line(b"x", [ask(3), ask(4)])):
        in_flight.add(line)
    in_flight.settle("null")
    assert in_flight.lines() == [small, large]
    in_flight.settle("null")
    assert in_flight.lines() == [small]
    in_flight.settle("null")
    assert in_flight.lines() == [small]
