"""Parameters of every wrong kind, for every method: whatever comes, an error has a name."""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.registry import Handler
from flashgrep.parts.built_in import REGISTRY
from tests.conftest import DaemonAtHand, Wire, short_folder

INTERNAL = "internal_error"
SEED = 20261122
NESTED: Any = []
for _ in range(500):
    NESTED = [NESTED]
ODD: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, -(2**63), 10**30, 1.5, 1e308, "", " ", "\0", "a\0b", "é", "\ufeff", "\u2028", "/",
    "//", "..", "../..", ".", "~", "a" * 300, "x/" * 3000, "/" + "x" * 5000, "[", "[[:x:]]", "{", "}", "\\", "*" * 50,
    "**/" * 50, "(", "(?i)", "\\p{Zz}", "(a{50}){50}", "$^", "(?<x>a)", "\\1", "W10=", "/+/=", "é" * 8, "4oKs", "AA==",
    [], [""], [None], [1], ["a"] * 300, {}, {"": 1}, {"a": {"b": 1}}, NESTED, "1", "1e3", "-", "--", "😀",
]  # fmt: skip
MCP: dict[str, list[str]] = {
    "initialize": ["protocolVersion", "capabilities", "clientInfo"],
    "tools/list": ["cursor"],
    "tools/call": ["name", "arguments"],
    "resources/list": ["cursor"],
    "resources/templates/list": ["cursor"],
    "resources/read": ["uri"],
    "prompts/list": ["cursor"],
    "prompts/get": ["name", "arguments"],
    "logging/setLevel": ["level"],
    "auth": ["token"],
    "ping": ["x"],
    "$/bind": ["roots", "project", "projects", "folder"],
}
USUAL: dict[str, Any] = {
    "text": "x", "file_path": "a.py", "path": "a.py", "start_line": 1, "end_line": 1, "symbol_name": "x", "query": "x",
    "textQuery": "x", "pattern": "*", "payload": {}, "src": "a.py", "dst": "b.py", "content": "", "spec_id": "x",
    "requirement": "x", "operations": [{"id": "a", "file_path": "a.py", "old_text": "x", "new_text": "x"}],
}  # fmt: skip
FILES: dict[bytes, bytes] = {
    b"a.py": b"x = 1\n",
    b"caf\xe9.py": b"x = 2\n",
    "é.py".encode(): b"\xff\xfe\n",
    b"sub/b.py": b"",
}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    folder = short_folder()
    for name, text in FILES.items():
        path = bytes(folder) + b"/" + name
        Path(path.decode(errors="surrogateescape")).parent.mkdir(exist_ok=True)
        Path(path.decode(errors="surrogateescape")).write_bytes(text)
    daemon.add(folder)
    (folder / "loop").symlink_to("loop")
    (folder / "sub/up").symlink_to("..")
    (folder / "gone").symlink_to("/nonexistent/file")
    with closing(daemon.wire("unix", folder)) as wire:
        assert (
            wire.call("list_files")["total"]
            == wire.call("stats")["total_files"]
            == len(FILES)
        )
    yield folder
    assert Path(daemon.paths.crash_log).read_bytes() == b"", (
        "a library's complaint about a caller's mistake"
    )
    shutil.rmtree(folder)


def assert_named(wire: Wire, method: str, params: Any) -> None:
    wire.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer = wire.receive()
    reason = answer.get("error", {}).get("data", {}).get("reason")
    assert reason != INTERNAL, (method, params, answer)


def cases(handler: Handler) -> Iterator[dict[str, Any]]:
    """Yield each odd value in some field of the method beside usual ones, and each field with a few odd values."""
    chance = random.Random(f"{SEED}{handler.name}")
    names = handler.params.field_names()
    usual = {
        name: USUAL[name]
        for name in names
        if name in USUAL and handler.params.model_fields[name].is_required()
    }
    if "deadline_ms" in names:
        usual["deadline_ms"] = 500
    if "path" in names and handler.toolset == "core":
        usual["path"] = "."
    for value in ODD:
        yield {**usual, chance.choice(names): value}
    for name in names:
        for value in chance.sample(ODD, 4):
            yield {**usual, name: value}


@pytest.mark.parametrize("handler", list(REGISTRY), ids=lambda handler: handler.name)
def test_no_parameter_ends_in_an_internal_error(
    daemon: DaemonAtHand, root: Path, handler: Handler
) -> None:
    with closing(daemon.wire("unix", root)) as wire:
        for params in cases(handler):
            if "project" not in params and handler.name != "fs_remove":
                assert_named(wire, handler.name, params)


@pytest.mark.parametrize("method", MCP)
def test_no_parameter_of_the_protocol_ends_in_an_internal_error(
    daemon: DaemonAtHand, root: Path, method: str
) -> None:
    with closing(daemon.wire("unix", root)) as wire:
        for name in MCP[method]:
            for value in ODD:
                assert_named(wire, method, {name: value})
        for value in (
            [],
            [1],
            [None, "x"],
            {"_meta": 1},
            {"_meta": {"progressToken": [1]}},
        ):
            assert_named(wire, method, value)


@pytest.mark.parametrize(
    "name", ["loop", "gone", "sub/up", "loop/x", "a.py/x", "sub/up/sub/up/a.py"]
)
@pytest.mark.parametrize("respects", [True, False])
def test_a_link_that_leads_nowhere_is_no_fault_of_ours(
    daemon: DaemonAtHand, root: Path, name: str, *, respects: bool
) -> None:
    with closing(daemon.wire("unix", root)) as wire:
        for follows in (False, True):
            links = {
                "follow_symlinks": follows,
                "respect_ignore": respects,
                "include_hidden": True,
            }
            assert_named(wire, "glob", {"pattern": "**", "path": name, **links})
            assert_named(wire, "glob", {"pattern": f"{name}/**", **links})
        for method, field in [
            ("fs_read", "path"),
            ("fs_stat", "path"),
            ("fs_list", "path"),
            ("outline", "path"),
        ]:
            assert_named(wire, method, {field: name})
        assert_named(wire, "read_code", {"file_path": name})


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_symbol_has_a_name(daemon: DaemonAtHand, root: Path, blank: str) -> None:
    with closing(daemon.wire("unix", root)) as wire:
        for method in ("get_symbol", "read_code"):
            assert wire.fail(method, symbol_name=blank)["data"]["field"] in {
                "symbol_name",
                "path",
            }
