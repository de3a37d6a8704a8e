"""The methods that read and write, called as a wire calls them: shapes, limits, rights and read-your-writes."""

import asyncio
import base64
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import anyio.from_thread
import anyio.lowlevel
import pytest
from pydantic import TypeAdapter

from flashgrep.api.searchers import BestDefinition, Searchers
from flashgrep.base.errors import (
    Busy,
    Conflict,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    NotFound,
    TooLarge,
)
from flashgrep.base.registry import Call, Capabilities, Registry, Session
from flashgrep.files.buffers import Buffers
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.read import SliceQuery, SliceResult, read_slice
from flashgrep.methods import reading
from flashgrep.parts.edit import file_methods, files
from flashgrep.parts.edit import methods as editing
from tests.edit.harness import root_at, state_of

ResultT = TypeVar("ResultT")
REGISTRY = Registry([*reading.HANDLERS, *editing.HANDLERS, *file_methods.HANDLERS])
WRITES = [
    "write_code",
    "batch_write_code",
    "fs_create",
    "fs_write",
    "fs_copy",
    "fs_move",
    "fs_remove",
]


@dataclass
class Workspace:
    """The least that is a project: an open root, and what was marked as changed."""

    editor: Editor
    read_only: bool = False
    is_bare: bool = False
    changed: list[bytes] = field(default_factory=list)

    def note_changes(self, paths: Sequence[bytes]) -> None:
        self.changed += paths

    async def in_turn(self, work: Callable[[], ResultT], /) -> ResultT:
        return work()

    async def refresh(self) -> bool:
        return True

    def paths(self) -> list[bytes]:
        return []

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        return read_slice(self.editor, path, query)

    @property
    def project(self) -> "Workspace":
        return self

    def current(self, _buffers: Buffers | None = None) -> "Workspace":
        return self

    async def find_definition(self, name: str) -> BestDefinition:
        lines = files.read(self.editor, b"code.py").text.text.splitlines()
        found = [
            number
            for number, line in enumerate(lines, 1)
            if re.match(rf"def {name}\b", line)
        ]
        if not found:
            raise NotFound(
                f"symbol not found: {name}", reason="symbol_not_found", symbol_name=name
            )
        return BestDefinition(b"code.py", found[0], found[0] + 1, [])


@dataclass
class Host:
    """A catalogue of one project."""

    project: Workspace
    buffers: WeakSet[Buffers] = field(default_factory=WeakSet)

    @property
    def searchers(self) -> Searchers:
        async def find_definition(
            _view: object, name: str, _under: bytes, _holds: object
        ) -> BestDefinition:
            return await self.project.find_definition(name)

        return Searchers(definition=find_definition)

    async def workspace(self, _call: Call[Any], _name: str | None) -> Workspace:
        return self.project


Method = Callable[..., Any]


class Caller:
    """Calls methods by name on one connection; every answer is checked against the method's own result shape."""

    def __init__(self, project: Workspace) -> None:
        self.project = project
        self.session = Session()

    def __call__(self, name: str, **params: Any) -> Any:
        method = REGISTRY.get(name)
        result = asyncio.run(
            method.call(Call(Host(self.project), self.session), params)
        )
        TypeAdapter(method.result).validate_python(result)
        return result


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Caller]:
    (tmp_path / "code.py").write_bytes(
        b"import os\n\n\ndef first():\n    return 1\n\n\ndef second():\n    return 2\n"
    )
    with root_at(tmp_path) as root:
        yield Caller(
            Workspace(Editor(root, Limits(staged_bytes=300_000, staged_sessions=2)))
        )


def failure(error: type[FlashgrepError], call: Callable[[], object]) -> dict[str, Any]:
    with pytest.raises(error) as caught:
        call()
    return caught.value.to_object()["data"]


def test_get_slice_has_every_field_of_its_contract(call: Caller) -> None:
    result = call("get_slice", file_path="code.py", start_line=4, end_line=5)
    assert result == {
        "file_path": "code.py",
        "start_line": 4,
        "end_line": 5,
        "content": "def first():\n    return 1\n",
        "truncated": False,
        "continuation_start_line": None,
        "continuation": {"cursor": None, "chunk_index": 0, "completed": True},
        "applied_limits": {
            "max_lines": None,
            "max_bytes": 196_608,
            "max_tokens": None,
            "server_max_bytes": 196_608,
            "consumed_lines": 2,
            "consumed_bytes": 26,
            "consumed_tokens": 7,
        },
        "encoding": "utf-8",
        "bom": False,
        "line_ending": "lf",
        "file_hash": hashlib.sha256(
            (Path(os.fsdecode(call.project.editor.root.path)) / "code.py").read_bytes()
        ).hexdigest(),
        "file_size": 67,
    }


def test_read_code_follows_its_own_cursor_to_the_end(
    call: Caller, tmp_path: Path
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 20_001))
    (tmp_path / "long.txt").write_text(text)
    result = call("read_code", file_path="long.txt")
    assert result["applied_limits"]["max_tokens"] == 8_000
    assert (result["mode"], result["total_lines_available"]) == ("slice", 20_000)
    parts = [result["content"]]
    while (cursor := result["continuation"]["cursor"]) is not None:
        result = call(
            "read_code", **cursor, chunk_index=len(parts), metadata_level="minimal"
        )
        assert result["continuation"]["chunk_index"] == len(parts)
        assert "mode" not in result
        parts.append(result["content"])
    assert "".join(parts) == text
    assert call("read_code", file_path="long.txt", tail=1)["content"] == "line 20000\n"


def test_read_code_finds_a_symbol_with_its_context(call: Caller) -> None:
    result = call("read_code", symbol_name="second", symbol_context_lines=1)
    assert (result["start_line"], result["end_line"]) == (7, 9)
    assert (result["mode"], result["symbol_name"], result["file_path"]) == (
        "symbol",
        "second",
        "code.py",
    )
    part = call("read_code", symbol_name="second", symbol_context_lines=1, max_lines=1)
    rest = call("read_code", symbol_name="second", **part["continuation"]["cursor"])
    assert part["content"] + rest["content"] == result["content"]
    assert (
        failure(NotFound, lambda: call("read_code", symbol_name="third"))["reason"]
        == "symbol_not_found"
    )


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"file_path": ""},
        {"file_path": "code.py", "max_bytes": 196_609},
        {"file_path": "code.py", "start_line": 0},
        {"file_path": "code.py", "metadata_level": "all"},
        {"file_path": "code.py", "tail": 2, "start_line": 3},
        {"file_path": "code.py", "colour": 3},
        {"file_path_bytes": "%"},
    ],
)
def test_read_code_refuses_parameters_that_say_nothing_or_two_things(
    call: Caller, params: dict[str, Any]
) -> None:
    assert (
        failure(InvalidParams, lambda: call("read_code", **params))["reason"]
        == "invalid_params"
    )


def test_a_name_that_is_not_utf8_is_taken_in_base64(
    call: Caller, tmp_path: Path
) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("odd\n")
    spelled = base64.b64encode(b"\xff.txt").decode()
    assert (
        call("get_slice", file_path_bytes=spelled, start_line=1, end_line=1)["content"]
        == "odd\n"
    )
    result = call(
        "write_code",
        file_path_bytes=spelled,
        start_line=1,
        end_line=1,
        replacement="even",
    )
    assert result["file_path_bytes"] == spelled
    assert (tmp_path / os.fsdecode(b"\xff.txt")).read_text() == "even\n"


def test_write_code_answers_with_lines_and_hashes_and_marks_the_path(
    call: Caller,
) -> None:
    before = call("get_slice", file_path="code.py", start_line=1, end_line=1)[
        "file_hash"
    ]
    belief = {"expected_file_hash": before, "expected_start_line_text": "import os"}
    result = call(
        "write_code",
        file_path="./code.py",
        start_line=1,
        end_line=2,
        replacement="import sys",
        precondition=belief,
    )
    after = call("get_slice", file_path="code.py", start_line=1, end_line=1)
    assert (after["content"], after["file_hash"]) == (
        "import sys\n",
        result["file_hash_after"],
    )
    assert (result["ok"], result["replaced_line_count"], result["new_line_count"]) == (
        True,
        2,
        1,
    )
    assert (result["file_hash_before"], result["created"]) == (before, False)
    assert call.project.changed == [b"code.py"]


def test_write_code_replaces_a_text_that_occurs_once(call: Caller) -> None:
    data = failure(
        Conflict,
        lambda: call(
            "write_code", file_path="code.py", old_text="return", new_text="yield"
        ),
    )
    assert data["conflict"]["mismatches"][0]["lines"] == [5, 9]
    result = call(
        "write_code",
        file_path="code.py",
        old_text="return",
        new_text="yield",
        replace_all=True,
    )
    assert (result["occurrences"], result["start_line"], result["end_line"]) == (
        2,
        5,
        9,
    )


def test_a_dry_run_returns_the_diff_and_marks_nothing(call: Caller) -> None:
    result = call(
        "write_code",
        file_path="code.py",
        start_line=5,
        end_line=5,
        replacement="    return 11",
        dry_run=True,
    )
    assert "-    return 1\n+    return 11\n" in result["diff"]
    assert (
        call("read_code", file_path="code.py", start_line=5, end_line=5)["content"]
        == "    return 1\n"
    )
    assert call.project.changed == []


@pytest.mark.parametrize(
    "params",
    [
        {"replacement": "x", "start_line": 1},
        {"start_line": 1, "end_line": 1},
        {"old_text": "x"},
        {"new_text": "x"},
        {"old_text": "x", "new_text": "y", "start_line": 1},
        {"old_text": "", "new_text": "y"},
        {"start_line": 1, "end_line": 1, "replacement": "x", "replace_all": True},
        {"start_line": 1, "end_line": 1, "replacement": "x", "chunk_index": 1},
        {"start_line": 1, "end_line": 1, "replacement": "x", "continuation_id": "../x"},
        {
            "old_text": "import",
            "new_text": "y",
            "continuation_id": "x",
            "is_final_chunk": True,
        },
    ],
)
def test_write_code_refuses_what_is_not_one_change(
    call: Caller, params: dict[str, Any]
) -> None:
    assert (
        failure(
            InvalidParams, lambda: call("write_code", file_path="code.py", **params)
        )["reason"]
        == "invalid_params"
    )
    assert call.project.changed == []


def test_a_replacement_alone_makes_a_file_and_never_replaces_one(
    call: Caller, tmp_path: Path
) -> None:
    assert call("write_code", path="new.py", content="a\n")["ok"]
    assert (tmp_path / "new.py").read_text() == "a\n"
    assert (
        failure(Conflict, lambda: call("write_code", path="new.py", content="b\n"))[
            "reason"
        ]
        == "precondition_failed"
    )
    edits = [
        {"old_string": "a", "new_string": "b"},
        {"path": "other.py", "content": "c\n"},
    ]
    assert [
        done["id"]
        for done in call("batch_write_code", path="new.py", edits=edits)["results"]
    ] == ["1", "2"]
    assert ((tmp_path / "new.py").read_text(), (tmp_path / "other.py").read_text()) == (
        "b\n",
        "c\n",
    )


def staged(
    call: Caller, index: int, text: str, *, final: bool = False, **more: Any
) -> Any:
    target = {"file_path": "code.py", "start_line": 1, "end_line": 3, **more}
    chunk = {
        "continuation_id": "session",
        "chunk_index": index,
        "is_final_chunk": final,
    }
    return call("write_code", replacement=text, **{**chunk, **target})


def test_a_write_in_chunks_happens_with_the_last(call: Caller, tmp_path: Path) -> None:
    before = (tmp_path / "code.py").read_bytes()
    assert staged(call, 0, "a\n" * 60_000) == {
        "ok": True,
        "file_path": "code.py",
        "received_bytes": 120_000,
        "continuation": {
            "cursor": {"continuation_id": "session", "next_chunk_index": 1},
            "chunk_index": 0,
            "completed": False,
        },
    }
    assert staged(call, 1, "b\n")["received_bytes"] == 120_002
    assert (tmp_path / "code.py").read_bytes() == before
    result = staged(call, 2, "c", final=True)
    assert result["continuation"] == {
        "cursor": None,
        "chunk_index": 2,
        "completed": True,
    }
    assert result["new_line_count"] == 60_002
    assert (
        tmp_path / "code.py"
    ).read_bytes() == b"a\n" * 60_000 + b"b\nc\n" + before.partition(b"\n\n\n")[2]
    assert not list((state_of(tmp_path) / "staged").iterdir())


def test_a_chunk_out_of_order_or_for_another_target_is_refused(call: Caller) -> None:
    staged(call, 0, "a\n")
    wrong: list[dict[str, Any]] = [
        {"index": 2},
        {"index": 1, "end_line": 2},
        {"index": 1, "file_path": "other.py"},
    ]
    for chunk in wrong:
        data = failure(Conflict, partial(staged, call, text="b\n", **chunk))
        assert data["reason"] == "invalid_continuation_state"
        assert data["expected"] != data["received"]
    assert staged(call, 1, "b\n", final=True)["ok"]
    message = failure(InvalidParams, lambda: staged(call, 2, "c\n"))
    assert message["field"] == "continuation_id"


def test_the_last_chunk_checks_the_file_again(call: Caller, tmp_path: Path) -> None:
    staged(call, 0, "a\n")
    (tmp_path / "code.py").write_text("changed\nby\nsomebody\n")
    data = failure(Conflict, lambda: staged(call, 1, "b\n", final=True))
    assert [each["field"] for each in data["conflict"]["mismatches"]] == [
        "file_hash_at_first_chunk"
    ]
    assert (tmp_path / "code.py").read_text() == "changed\nby\nsomebody\n"
    assert staged(call, 0, "again\n", final=True)["ok"]


def test_staged_writes_are_bounded(call: Caller, tmp_path: Path) -> None:
    staged(call, 0, "a" * 131_072)
    staged(call, 1, "a" * 131_072)
    data = failure(TooLarge, lambda: staged(call, 2, "a" * 131_072))
    assert (data["observed_bytes"], data["limit_bytes"]) == (393_216, 300_000)
    staged(call, 0, "a", continuation_id="second")
    failure(Busy, lambda: staged(call, 0, "a", continuation_id="third"))
    old = time.time() - 2 * 24 * 3600
    os.utime(state_of(tmp_path) / "staged/second", (old, old))
    assert staged(call, 0, "a", continuation_id="third")["ok"]


def test_an_oversized_write_says_what_to_do(call: Caller) -> None:
    data = failure(
        TooLarge,
        lambda: call(
            "write_code",
            file_path="code.py",
            start_line=1,
            end_line=1,
            replacement="x" * 131_073,
        ),
    )
    assert (data["operation"], data["observed_bytes"], data["limit_bytes"]) == (
        "write_code",
        131_073,
        131_072,
    )
    assert "chunk_index" in data["guidance"]


def test_a_batch_answers_for_each_operation_and_marks_what_changed(
    call: Caller,
) -> None:
    operations = [
        {
            "id": "a",
            "file_path": "code.py",
            "start_line": 5,
            "end_line": 5,
            "replacement": "    return 11",
        },
        {
            "id": "b",
            "file_path": "code.py",
            "old_text": "return 2",
            "new_text": "return 22",
        },
        {
            "id": "c",
            "file_path": "made.py",
            "replacement": "x = 1\n",
            "precondition": {"expected_absent": True},
        },
    ]
    result = call("batch_write_code", operations=operations)
    assert (result["ok"], result["mode"], result["applied_count"]) == (
        True,
        "atomic",
        3,
    )
    assert sorted(call.project.changed) == [b"code.py", b"made.py"]
    assert call("get_slice", file_path="code.py", start_line=5, end_line=9)[
        "content"
    ].split() == (["return", "11", "def", "second():", "return", "22"])
    failure(InvalidParams, lambda: call("batch_write_code", operations=[]))
    failure(
        InvalidParams,
        lambda: call("batch_write_code", operations=operations, mode="some"),
    )


def test_the_file_methods_carry_each_other_out(call: Caller) -> None:
    assert (
        call("fs_create", path="a/b", dir=True, parents=True)["entry"]["file_type"]
        == "directory"
    )
    assert call("fs_write", path="a/b/file", content="text\n")["bytes"] == 5
    read = call("fs_read", path="a/b/file")
    assert (read["content"], read["line_ending"], read["entry"]["size"]) == (
        "text\n",
        "lf",
        5,
    )
    assert call("fs_copy", src="a", dst="c", recursive=True)["target_path"] == "c"
    assert call("fs_move", src="c/b/file", dst="moved")["source_path"] == "c/b/file"
    assert call("fs_stat", path="moved")["entry"]["size"] == 5
    assert [entry["path"] for entry in call("fs_list")["entries"]] == [
        "a",
        "c",
        "code.py",
        "moved",
    ]
    assert call("fs_remove", path="a", recursive=True)["target_path"] == "a"
    assert call("fs_remove", path="a", force=True)["already_missing"]
    assert {b"a/b", b"a/b/file", b"c/b/file", b"moved"} <= set(call.project.changed)


def test_a_failure_of_a_file_method_names_the_operation_and_the_target(
    call: Caller,
) -> None:
    data = failure(NotFound, lambda: call("fs_read", path="none"))
    assert data == {
        "reason": "file_not_found",
        "target_path": "none",
        "target_kind": "file",
        "operation": "fs_read",
    }


MINIMAL: dict[str, dict[str, Any]] = {
    "write_code": {
        "file_path": "code.py",
        "start_line": 1,
        "end_line": 1,
        "replacement": "x",
    },
    "batch_write_code": {
        "operations": [
            {"id": "1", "file_path": "code.py", "old_text": "os", "new_text": "sys"}
        ]
    },
    "fs_create": {"path": "new"},
    "fs_write": {"path": "code.py", "content": "x"},
    "fs_copy": {"src": "code.py", "dst": "new"},
    "fs_move": {"src": "code.py", "dst": "new"},
    "fs_remove": {"path": "code.py"},
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    ("wire", "project", "reason"),
    [
        ("unix", False, "read_only"),
        ("tcp", False, "auth_required"),
        ("unix", True, "read_only"),
    ],
)
def test_who_may_not_write_writes_nothing(
    call: Caller, tmp_path: Path, name: str, wire: str, project: object, reason: str
) -> None:
    call.session.wire, call.session.read_only = (
        wire,
        reason == "read_only" and not project,
    )
    call.session.capabilities = Capabilities(
        writes="with_token" if wire == "tcp" else "always"
    )
    call.project.read_only = bool(project)
    before = (tmp_path / "code.py").read_bytes()
    assert failure(Forbidden, lambda: call(name, **MINIMAL[name]))["reason"] == reason
    assert (tmp_path / "code.py").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["code.py"]


async def test_a_write_that_is_cancelled_too_late_is_marked_all_the_same(
    call: Caller, tmp_path: Path
) -> None:
    with anyio.CancelScope() as scope:
        editor = call.project.editor
        editor.step = lambda step: (
            anyio.from_thread.run_sync(scope.cancel) if step == "check" else None
        )
        context = Call(Host(call.project), call.session)
        await REGISTRY.get("write_code").call(context, MINIMAL["write_code"])
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert (tmp_path / "code.py").read_bytes().startswith(b"x\n")
    assert call.project.changed == [b"code.py"]


def test_every_method_that_may_write_says_so() -> None:
    assert [method.name for method in REGISTRY if method.writes] == WRITES
