"""Calls made to harm or by mistake: each error of the table once, over the wire, and answers of bounded cost."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.symbols.relevance import FILE_HITS
from flashgrep.search.exact import COUNT_ON_HITS
from tests.conftest import DaemonAtHand, MakeProject, Wire

FILES: dict[str, str | bytes] = {
    "a.txt": "one\ntwo\n",
    "big.txt": "x" * 300_000,
    "sub/b.txt": "three\n",
}
Case = tuple[str, dict[str, Any], int, str]

CALLS: list[Case] = [
    ("no_such_method", {}, -32601, "method_not_found"),
    ("query", {}, -32602, "invalid_params"),
    ("query", {"text": "x", "no_such": 1}, -32602, "invalid_params"),
    ("query", {"text": "x", "limit": 10**30}, -32602, "invalid_params"),
    ("query", {"text": "x", "cursor": "W10="}, -32602, "invalid_params"),
    ("query", {"text": "x", "include": ["{" * 100_000]}, -32602, "invalid_params"),
    ("query", {"text": "(", "mode": "regex"}, -32602, "invalid_pattern"),
    ("bootstrap_skill", {"trigger": "open sesame"}, -32602, "invalid_trigger"),
    (
        "get_slice",
        {"file_path": "a.txt", "start_line": 2, "end_line": 1},
        -32602,
        "invalid_range",
    ),
    (
        "get_slice",
        {"file_path": "none", "start_line": 1, "end_line": 1},
        -32001,
        "file_not_found",
    ),
    ("fs_list", {"path": "none"}, -32001, "directory_not_found"),
    ("outline", {"path": "none"}, -32001, "path_not_found"),
    ("read_code", {"symbol_name": "none"}, -32001, "symbol_not_found"),
    (
        "write_code",
        {"file_path": "a.txt", "old_text": "none", "new_text": ""},
        -32002,
        "precondition_failed",
    ),
    ("fs_create", {"path": "a.txt"}, -32002, "destination_exists"),
    ("fs_read", {"path": "big.txt"}, -32003, "payload_too_large"),
    ("read_code", {"file_path": "../../etc/passwd"}, -32006, "outside_root"),
    ("query", {"text": "x", "project": "/etc"}, -32006, "outside_root"),
    ("fs_remove", {"path": ".git"}, -32006, "protected_path"),
    ("auth", {"token": "guessed"}, -32006, "auth_required"),
]
LINES: list[tuple[bytes, int, str]] = [
    (b"{\n", -32700, "parse_error"),
    (b"[]\n", -32600, "invalid_request"),
    (b'{"jsonrpc":"2.0","id":[1],"method":"stats"}\n', -32600, "invalid_request"),
]
UNBOUND: list[Case] = [
    ("query", {"text": "x", "project": "nobody"}, -32001, "project_not_found"),
    (
        "query",
        {"text": "x", "project": "/" + "x" * 5_000},
        -32001,
        "directory_not_found",
    ),
    (
        "query",
        {"text": "x", "project": "/" + "x/" * 5_000},
        -32001,
        "directory_not_found",
    ),
    ("query", {"text": "x", "project": "/\0"}, -32001, "project_not_found"),
    ("fs_create", {"path": "x", "project": "/etc"}, -32006, "auth_required"),
]


@pytest.fixture(scope="module")
def table() -> dict[str, tuple[int, str]]:
    return {}


def told(error: dict[str, Any]) -> tuple[int, str]:
    assert len(str(error)) < 50_000, "an error repeats no megabyte of what it was given"
    return error["code"], error["data"]["reason"]


def test_every_mistake_has_its_code_and_its_reason(
    connect: Callable[..., Wire], daemon: DaemonAtHand, project: MakeProject
) -> None:
    wire = connect(project(FILES))
    if wire.name == "tcp":
        wire.call("auth", token=Path(daemon.paths.token).read_text().strip())
        cases = [case for case in CALLS if "project" not in case[1]]
    else:
        cases = CALLS
    found = [
        (method, params, *told(wire.fail(method, **params)))
        for method, params, _, _ in cases
    ]
    assert found == cases
    for line, code, reason in LINES:
        wire.send(line)
        assert told(wire.receive()["error"]) == (code, reason)
    assert wire.call("stats")["total_files"] == len(FILES)


@pytest.mark.parametrize(
    "case", UNBOUND, ids=lambda case: f"{case[0]}-{case[1]['project'][:8]!r}"
)
def test_a_project_that_is_none_is_an_error_of_the_caller(
    daemon: DaemonAtHand, case: Case
) -> None:
    method, params, code, reason = case
    wire = daemon.wire("tcp")
    with closing(wire):
        assert told(wire.fail(method, **params)) == (code, reason)


@pytest.mark.parametrize("order", ["relevance", "path"])
def test_a_file_of_very_many_hits_is_paged_without_loss(
    daemon: DaemonAtHand, project: MakeProject, order: str
) -> None:
    count = FILE_HITS + 500
    root = project(
        {"many.txt": "".join(f"x{at}\n" for at in range(count)), "other.txt": "x\n"}
    )
    daemon.add(root)
    wire = daemon.wire("unix", root)
    seen, cursor, totals = [], None, set()
    while True:
        more: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        page = wire.call(
            "query",
            text="x",
            order=order,
            limit=900,
            max_bytes=2_000_000,
            max_tokens=1_000_000,
            **more,
        )
        seen += [(hit["file_path"], hit["start_line"]) for hit in page["results"]]
        totals.add(page["total"])
        cursor = page["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == count + 1
    assert totals == {count + 1}
    wire.close()


def test_hits_beyond_counting_cost_neither_time_nor_memory(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"lines.txt": b"x\n" * 2_000_000})
    daemon.add(root)
    wire = daemon.wire("unix", root)
    before = daemon.status()["memory_bytes"]
    page = wire.call("query", text="x", limit=3)
    assert ([hit["start_line"] for hit in page["results"]], page["total"]) == (
        [1, 2, 3],
        None,
    )
    assert page["coverage"]["complete"]
    assert COUNT_ON_HITS < 2_000_000
    assert (
        daemon.status()["memory_bytes"] - before < 150 << 20
    )  # all of the hits as objects: 750 MB
    wire.close()
