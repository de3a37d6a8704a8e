"""Reading and writing over every wire of a running daemon: what is written is found by the next call."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire

Connect = Callable[..., Wire]


@pytest.fixture
def write_to(connect: Connect, daemon: DaemonAtHand) -> Connect:
    """Return a function that connects and may write: over TCP that takes the token."""

    def make(root: Path) -> Wire:
        wire: Wire = connect(root)
        if wire.name == "tcp":
            assert (
                wire.fail("fs_create", path="new")["data"]["reason"] == "auth_required"
            )
            wire.call("auth", token=Path(daemon.paths.token).read_text().strip())
        return wire

    return make


def found(wire: Wire, text: str) -> list[str]:
    return sorted(hit["file_path"] for hit in wire.call("query", text=text)["results"])


def test_what_a_write_returned_from_is_found_by_the_next_query(
    write_to: Connect, project: MakeProject
) -> None:
    root = project({"a.py": "alpha = 1\nbeta = 2\n", "folder/b.py": "gamma = 3\n"})
    wire = write_to(root)
    for turn in range(10):
        old, new = f"alpha_{turn}", f"alpha_{turn + 1}"
        if turn == 0:
            wire.call(
                "write_code",
                file_path="a.py",
                start_line=1,
                end_line=1,
                replacement="alpha_1 = 1",
            )
            continue
        wire.call("write_code", file_path="a.py", old_text=old, new_text=new)
        assert (found(wire, new), found(wire, old)) == (["a.py"], [])
    edit = {
        "id": "1",
        "file_path": "folder/b.py",
        "start_line": 1,
        "end_line": 1,
        "replacement": "delta = 4",
    }
    wire.call("batch_write_code", operations=[edit])
    assert (found(wire, "delta"), found(wire, "gamma")) == (["folder/b.py"], [])
    wire.call("fs_move", src="folder", dst="moved")
    assert found(wire, "delta") == ["moved/b.py"]
    wire.call("fs_copy", src="moved", dst="again", recursive=True)
    assert found(wire, "delta") == ["again/b.py", "moved/b.py"]
    wire.call("fs_remove", path="moved", recursive=True)
    assert found(wire, "delta") == ["again/b.py"]


def test_the_hash_of_a_read_is_the_precondition_of_a_write(
    write_to: Connect, project: MakeProject
) -> None:
    root = project({"a.py": "one\r\ntwo\r\n"})
    wire = write_to(root)
    read = wire.call("get_slice", file_path="a.py", start_line=2, end_line=2)
    assert (read["content"], read["file_hash"]) == (
        "two\r\n",
        hashlib.sha256(b"one\r\ntwo\r\n").hexdigest(),
    )
    belief = {"expected_file_hash": read["file_hash"]}
    write = {
        "file_path": "a.py",
        "start_line": 2,
        "end_line": 2,
        "replacement": "2",
        "precondition": belief,
    }
    assert wire.call("write_code", **write)["ok"]
    error = wire.fail("write_code", **write)
    assert (error["code"], error["data"]["reason"]) == (-32002, "precondition_failed")
    assert error["data"]["conflict"]["mismatches"][0]["expected"] == read["file_hash"]
    assert (root / "a.py").read_bytes() == b"one\r\n2\r\n"


def test_an_oversized_or_forbidden_call_leaves_the_connection_as_it_was(
    write_to: Connect, project: MakeProject
) -> None:
    root = project({"a.py": "one\n"})
    wire = write_to(root)
    large = wire.fail(
        "write_code",
        file_path="a.py",
        start_line=1,
        end_line=1,
        replacement="x" * 200_000,
    )
    assert (large["code"], large["data"]["limit_bytes"]) == (-32003, 131_072)
    outside = wire.fail("fs_read", path="../secret")
    assert (outside["code"], outside["data"]["reason"]) == (-32006, "outside_root")
    missing = wire.fail("get_slice", file_path="none.py", start_line=1, end_line=1)
    assert (missing["code"], missing["data"]["reason"]) == (-32001, "file_not_found")
    assert (
        wire.call("get_slice", file_path="a.py", start_line=1, end_line=1)["content"]
        == "one\n"
    )


def test_a_file_is_rebuilt_from_its_continuations(
    write_to: Connect, project: MakeProject, tmp_path: Path
) -> None:
    data = "".join(
        f"{'é' * (number % 200)} {number}\r\n" for number in range(20_000)
    ).encode()
    root = project({"long.txt": data})
    wire = write_to(root)
    copy = tmp_path / "rebuilt"
    with copy.open("wb") as file:
        answer = wire.call("read_code", file_path="long.txt", max_bytes=196_608)
        while True:
            file.write(answer["content"].encode(answer["encoding"]))
            if answer["continuation"]["completed"]:
                break
            answer = wire.call(
                "read_code", **answer["continuation"]["cursor"], max_bytes=196_608
            )
    assert copy.read_bytes() == data
