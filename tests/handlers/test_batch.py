"""Several reads or searches in one call: order, shared budget, failures, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand
from tests.support.mcp_clients import LineTransport, McpClient

FILES = {
    "a.py": "def needle():\n    return 1\n",
    "long.py": "".join(f"needle({n})  # a call\n" for n in range(2000)),
}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch") / "project"
    for name, text in {".git/x": "", **FILES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    daemon.add(folder)
    return folder


def call(method: str, **arguments: Any) -> dict[str, Any]:
    return {"method": method, "arguments": arguments}


def test_calls_are_answered_in_order_as_they_would_be_alone(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    calls = [
        call("read_code", path="a.py"),
        call("read_code", path="none.py"),
        call("query", query="return 1"),
    ]
    read, missing, found = wire.call("batch", calls=calls)["results"]
    assert read["result"]["content"] == FILES["a.py"]
    assert missing["error"]["data"]["reason"] == "file_not_found"
    alone = wire.call("query", query="return 1")
    assert found["result"]["results"] == alone["results"]
    wire.close()


def test_habits_are_understood_as_they_are_alone(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    calls = [
        {"tool": "get_slice", "args": {"path": "a.py", "line": 1}},
        {"name": "query", "query": "return 1", "path": ["a.py"]},
    ]
    read, found = wire.call("batch", calls=calls)["results"]
    assert read["result"]["content"] == FILES["a.py"]
    assert [hit["file_path"] for hit in found["result"]["results"]] == ["a.py"]
    wire.close()


def test_what_writes_or_is_a_batch_is_refused_and_the_rest_is_answered(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    calls = [
        call("write_code", path="a.py", old_text="1", new_text="2"),
        call("index_codebase", path="."),
        call("batch", calls=[]),
        call("nothing"),
        call("query", query="return 1"),
    ]
    *refused, found = wire.call("batch", calls=calls)["results"]
    assert all(item["error"]["code"] == -32602 for item in refused)
    assert found["result"]["total"] == 1
    assert (root / "a.py").read_text() == FILES["a.py"]
    assert wire.fail("batch", calls=[call("stats")] * 21)["code"] == -32602
    wire.close()


def test_a_model_reads_the_answers_below_their_calls_within_one_budget(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix")
    wire.call("$/bind", project=str(root))
    client = McpClient(LineTransport(wire), "legacy")
    calls = [
        call("read_code", path="a.py"),
        call("query", query="needle", limit=5000),
        call("get_symbol", symbol_name="needle", role=["definition"]),
    ]
    told = client.call("batch", calls=calls, max_tokens=1000)
    assert not told["isError"]
    text = told["content"][0]["text"]
    wire.close()
    assert '== read_code {"path": "a.py"}\na.py:1-2 of 2 #' in text
    assert "a.py:1-2 function" in text.split("== get_symbol")[1]
    assert len(text) <= 1_250 * 4
    # The short read left most of its share to the search after it.
    searched = text.split("== query")[1].split("== get_symbol")[0]
    assert len(searched) > 1_000 * 4 / 3


def test_a_size_is_kept_by_whatever_name_it_was_given(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    calls = [call("query", query="needle", token_budget=500)]
    (answer,) = wire.call("batch", calls=calls)["results"]
    assert "error" not in answer
    wire.close()
