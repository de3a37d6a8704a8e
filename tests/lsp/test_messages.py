"""Whatever an editor sends: each request is answered once, and the server lives. Without a daemon, which none needs."""

import json
import os
import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.parts.lsp.server import Server
from flashgrep.parts.lsp.wire import MessageReader
from tests.conftest import BOUND

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"processId": None, "capabilities": {}},
}
METHODS = [
    "initialize", "shutdown", "textDocument/definition", "textDocument/didOpen", "textDocument/didChange",
    "textDocument/didClose", "textDocument/rename", "workspace/symbol", "workspace/executeCommand", "$/cancelRequest",
    "workspace/didChangeWorkspaceFolders", "no/such", "notebookDocument/didOpen", "window/workDoneProgress/cancel",
]  # fmt: skip
ODD = (
    st.none()
    | st.integers(-1, 2**40)
    | st.text(max_size=5)
    | st.just("untitled:x")
    | st.just("file://host/x")
)
PLACE = st.fixed_dictionaries({"line": ODD, "character": ODD})
DOCUMENT = st.fixed_dictionaries(
    {}, optional={"uri": ODD, "version": ODD, "text": ODD, "languageId": ODD}
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "textDocument": DOCUMENT | ODD,
    "position": PLACE | ODD,
    "contentChanges": st.lists(DOCUMENT, max_size=2) | ODD,
    "capabilities": st.just({}),
    **dict.fromkeys(
        ("query", "id", "command", "arguments", "event", "newName", "processId"), ODD
    ),
}
PARAMS = ODD | st.lists(ODD, max_size=2) | st.fixed_dictionaries({}, optional=FIELDS)
IDS = st.integers() | st.text(max_size=5)


class Editor:
    """A server in a thread, and the other ends of its wires."""

    def __init__(self) -> None:
        source, self.sink = os.pipe()
        self.source, sink = os.pipe()
        self.status: Queue[int] = Queue()
        self._answers: Queue[Any] = Queue()
        self.server = Server()

        def serve() -> None:
            self.status.put(anyio.run(self.server.run, source, sink))
            os.close(source)
            os.close(sink)

        def read() -> None:
            reader = MessageReader()
            while piece := os.read(self.source, 65_536):
                for message in reader.feed(piece):
                    self._answers.put(message)

        self.threads = [
            threading.Thread(target=run, daemon=True) for run in (serve, read)
        ]
        for thread in self.threads:
            thread.start()

    def send(self, message: Any) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        os.write(self.sink, b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self) -> Any:
        return self._answers.get(timeout=BOUND)

    def ask(self, message: dict[str, Any]) -> Any:
        self.send(message)
        return self.receive()

    def close(self) -> int:
        os.close(self.sink)
        status = self.status.get(timeout=BOUND)
        for thread in self.threads:
            thread.join(BOUND)
        os.close(self.source)
        return status


@pytest.fixture
def editor() -> Iterator[Editor]:
    made = Editor()
    yield made
    made.close()


def request(number: Any, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.sampled_from(METHODS), PARAMS, st.none() | IDS), max_size=12),
    st.booleans(),
)
def test_every_request_is_answered_once(
    sent: list[tuple[str, Any, Any]],
    is_ready: bool,  # noqa: FBT001
) -> None:
    editor = Editor()
    if is_ready:
        assert "result" in editor.ask(INITIALIZE)
    numbers = {}
    for at, (method, params, number) in enumerate(sent):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = numbers[at] = f"{at}{number}"
        editor.send(message)
    editor.send(request("last", "shutdown" if is_ready else "x"))
    answered = []
    while (answer := editor.receive()).get("id") != "last":
        if "method" not in answer:
            answered.append(answer["id"])
            assert ("result" in answer) != ("error" in answer)
    while len(answered) < len(numbers):
        answered.append(editor.receive()["id"])
    assert sorted(answered) == sorted(numbers.values())
    assert editor.close() == 1


def test_what_cannot_be_read_is_reported_without_an_id(editor: Editor) -> None:
    assert editor.ask(INITIALIZE)["result"]["serverInfo"]["name"] == "flashgrep"
    for body in (b"{", b"[]", b"\xff"):
        editor.send(body)
        answer = editor.receive()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)


LONE = "\ud800"
SURROGATES: list[dict[str, Any]] = [
    {"id": 1, "method": LONE},
    {"id": 1, "method": f"textDocument/{LONE}", "params": {LONE: LONE}},
    {"id": LONE, "method": "shutdown"},
    {"id": 1, "method": "shutdown", LONE: 1},
    {"id": 1, "method": "workspace/symbol", "params": {"query": "x", LONE: 1}},
    {"id": 1, "method": "workspace/symbol", "params": {"query": LONE}},
    {"id": 1, "method": "workspace/executeCommand", "params": {"command": LONE}},
    {
        "id": 1,
        "method": "workspace/executeCommand",
        "params": {"command": "flashgrep.search", "arguments": [{LONE: 1}]},
    },
    {
        "id": 1,
        "method": "textDocument/hover",
        "params": {
            "textDocument": {"uri": f"file:///{LONE}"},
            "position": {"line": 0, "character": 0},
        },
    },
]
VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**40,
    "",
    LONE,
    [],
    [[]],
    {},
    {LONE: LONE},
    {"uri": LONE},
]


def is_private(answer: Any) -> bool:
    """Return whether an answer shows nothing of how the server works: no path of a module, no traceback."""
    text = json.dumps(answer)
    return not any(
        part in text
        for part in (
            "Traceback",
            "traceback",
            ".py",
            "site-packages",
            "surrogates not allowed",
        )
    )


@pytest.mark.parametrize("message", SURROGATES, ids=json.dumps)
def test_a_lone_surrogate_is_refused_without_a_traceback(
    editor: Editor, message: dict[str, Any]
) -> None:
    assert "result" in editor.ask(INITIALIZE)
    answer = editor.ask({"jsonrpc": "2.0", **message})
    assert is_private(answer)
    if "error" in answer:
        assert answer["error"]["code"] in {-32600, -32601, -32602, -32803}
    assert editor.ask(request("next", "no/such"))["id"] == "next"


@pytest.mark.parametrize("method", METHODS[2:])
def test_every_type_in_every_place_is_answered_without_a_traceback(
    editor: Editor, method: str
) -> None:
    assert "result" in editor.ask(INITIALIZE)
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": value}
        for value in VALUES
    ]
    for place in ("id", "method", "jsonrpc", "result", "error"):
        messages += [
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}, place: value}
            for value in VALUES
        ]
    for name in (
        "textDocument",
        "position",
        "query",
        "command",
        "id",
        "token",
        "event",
        "contentChanges",
    ):
        messages += [
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": {name: value}}
            for value in VALUES
        ]
    for message in messages:
        editor.send(message)
    editor.send(request("last", "no/such"))
    answers = [editor.receive()]
    while answers[-1].get("id") != "last":
        answers.append(editor.receive())
    assert [answer for answer in answers if not is_private(answer)] == []
    assert [
        answer for answer in answers if answer.get("error", {}).get("code") == -32603
    ] == []


def test_requests_come_in_their_order(editor: Editor) -> None:
    assert (
        editor.ask(request(1, "workspace/symbol", {"query": "x"}))["error"]["code"]
        == -32002
    )
    assert "result" in editor.ask(INITIALIZE)
    assert editor.ask({**INITIALIZE, "id": 2})["error"]["code"] == -32600
    assert editor.ask(request([], "shutdown"))["error"]["code"] == -32600
    assert (
        editor.ask(request(3, "textDocument/definition", {"position": 1}))["error"][
            "code"
        ]
        == -32602
    )
    assert (
        editor.ask(request(7, "textDocument/didSave", {"textDocument": {"uri": "x"}}))[
            "error"
        ]["code"]
        == -32600
    )
    assert editor.ask(request(4, "no/such"))["error"]["code"] == -32601
    assert editor.ask(request(5, "shutdown"))["result"] is None
    assert (
        editor.ask(request(6, "workspace/symbol", {"query": "x"}))["error"]["code"]
        == -32600
    )


def test_the_exit_status_tells_whether_the_editor_said_so() -> None:
    for messages, status in (([], 1), ([request(1, "shutdown")], 0)):
        editor = Editor()
        editor.ask(INITIALIZE)
        for message in messages:
            editor.ask(message)
        editor.send({"jsonrpc": "2.0", "method": "exit"})
        assert editor.status.get(timeout=BOUND) == status
        editor.status.put(status)
        editor.close()


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-16", "utf-8"], "utf-8"),
        (["utf-32", "utf-16"], "utf-32"),
        (None, "utf-16"),
        (["utf-7"], "utf-16"),
    ],
)
def test_columns_are_bytes_where_the_editor_can_count_them(
    offered: Any, chosen: str
) -> None:
    editor = Editor()
    capabilities = {"general": {"positionEncodings": offered}} if offered else {}
    message = {
        **INITIALIZE,
        "params": {"processId": None, "capabilities": capabilities},
    }
    assert editor.ask(message)["result"]["capabilities"]["positionEncoding"] == chosen
    editor.close()


def test_features_can_be_left_to_other_servers(editor: Editor) -> None:
    options = {"disabled": ["rename", "hover", "callHierarchy", "executeCommand", 7]}
    params = {"processId": None, "capabilities": {}, "initializationOptions": options}
    offered = editor.ask({**INITIALIZE, "params": params})["result"]["capabilities"]
    assert (
        not {"renameProvider", "hoverProvider", "callHierarchyProvider"}
        & offered.keys()
    )
    assert offered["definitionProvider"]
    assert not offered.get("executeCommandProvider", {}).get("commands")
