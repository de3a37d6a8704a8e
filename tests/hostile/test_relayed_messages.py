"""Whatever a host sends to ``fgrep rpc`` or ``fgrep mcp`` is answered as over the socket, and the session goes on."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.daemon import lifecycle
from scripts.attacks.odd_messages import (
    METHODS,
    RAW,
    RELAYED,
    Relayed,
    compare,
    make_messages,
)
from tests.conftest import BOUND, FGREP, DaemonAtHand, Wire

pytestmark = pytest.mark.slow

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.sampled_from(METHODS) | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)
LINE = st.one_of(
    (
        MESSAGE
        | st.lists(MESSAGE | JSON, max_size=4)
        | st.sampled_from(list(make_messages()))
    ).map(lambda message: json.dumps(message).encode()),
    st.sampled_from([line for line in RAW if len(line) < 10_000]),
    st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
)


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("relayed")
    (folder / "a.py").write_text("needle = 1\n")
    daemon.add(folder)
    return folder


def has_cancelled(line: bytes) -> bool:
    """Return whether a line may cancel a call by an id, so that its answer depends on which is over first."""
    return b"ancel" in line


@pytest.mark.parametrize("relayed", RELAYED)
@settings(max_examples=12)
@given(
    lines=st.lists(
        LINE.filter(lambda line: not has_cancelled(line)), min_size=1, max_size=40
    )
)
def test_drawn_messages_are_answered_as_over_the_socket(
    daemon: DaemonAtHand, root: Path, relayed: Relayed, lines: list[bytes]
) -> None:
    assert compare(daemon, root, relayed, lines).find_problem() == ""


@pytest.mark.parametrize("relayed", RELAYED)
def test_lines_that_are_no_message_are_answered_as_over_the_socket(
    daemon: DaemonAtHand, root: Path, relayed: Relayed
) -> None:
    assert compare(daemon, root, relayed, RAW).find_problem() == ""


@pytest.fixture(params=RELAYED)
def host(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[Wire]:
    """Return a relay's process between us and the daemon."""
    command = (
        [FGREP, "rpc", str(root)]
        if request.param == "fgrep rpc"
        else [FGREP, "mcp", "--project", str(root)]
    )
    ours, theirs = socket.socketpair()
    ours.settimeout(BOUND)
    with theirs:
        process = subprocess.Popen(
            command,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            env=daemon.environ,
            cwd="/",
        )
    wire = Wire("stdio", ours, str(root), process)
    yield wire
    wire.close()


def receive_answer(host: Wire, number: str) -> Any:
    """Return the answer to a request; those to odd messages and to their batch may come before, in any order."""
    while True:
        answer = host.receive()
        if isinstance(answer, dict) and answer["id"] == number:
            return answer
        answers = answer if isinstance(answer, list) else [answer]
        assert {part["id"] for part in answers} <= {1, None}


@pytest.mark.parametrize("value", [{}, [], None, True, 1], ids=json.dumps)
def test_a_session_outlives_odd_messages_and_the_daemon_s_death_between_them(
    daemon: DaemonAtHand, host: Wire, value: Any
) -> None:
    odd = {"jsonrpc": "2.0", "id": 1, "method": value}
    batch = [odd, {"jsonrpc": "2.0", "id": value, "method": "ping"}, value]
    host.send(odd)
    assert host.receive()["error"]["code"] == -32600
    pid = lifecycle.find_holder(daemon.paths)
    assert pid is not None
    host.send(batch)
    os.kill(pid, signal.SIGKILL)
    host.send(odd)
    host.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
    answer = receive_answer(host, "last")
    assert (
        answer.get("result") == {}
        or answer["error"]["data"]["reason"] == "daemon_ended"
    )
    host.send({"jsonrpc": "2.0", "id": "after", "method": "ping"})
    assert receive_answer(host, "after")["result"] == {}
