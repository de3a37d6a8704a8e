"""The core runs without any part, and without each of them; what a part answers is refused by name, not broken."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flashgrep.api.part import Part, without
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.rpc.connect import tune_numpy
from tests.conftest import DaemonAtHand, MakeProject, Wire, WireName

ROOT = Path(__file__).parents[2]
CORE, *PARTS = BUILT_IN
FILES = {
    "src/loom.py": "def weave(thread):\n    return thread\n",
    "notes.md": "weave at night\n",
}
NO_SUCH_METHOD = -32601
INVALID_PARAMS = -32602
UNAVAILABLE = -32000


@contextmanager
def daemon_with(daemon: DaemonAtHand, parts: list[Part]) -> Iterator[None]:
    """Run a daemon with the core and these parts, in the environment of another that is not running."""
    command = [
        sys.executable,
        "-m",
        "tests.support.daemon_with_parts",
        *(part.name for part in parts),
    ]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=tune_numpy(daemon.environ),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.terminate()
            assert process.wait(30) == 0


def check_core(wire: Wire) -> None:
    """Ask every kind of question that needs no part."""
    found = wire.call("query", query="weave", order="path")
    assert [(hit["file_path"], hit["start_line"]) for hit in found["results"]] == [
        ("notes.md", 1),
        ("src/loom.py", 1),
    ]
    assert found["coverage"]["complete"]
    assert wire.call("query", query=r"def \w+\(", mode="regex")["total"] == 1
    assert (
        wire.call("query", query="weave")["total"] == 2
    )  # smart: by path where nothing ranks
    assert (
        wire.call("get_slice", file_path="src/loom.py", start_line=2, end_line=2)[
            "content"
        ]
        == "    return thread\n"
    )
    assert wire.call("read_code", file_path="notes.md")["content"] == "weave at night\n"
    assert sorted(wire.call("list_files")["files"]) == sorted(FILES)
    assert [
        file["file_path"] for file in wire.call("glob", query="**/*.py")["results"]
    ] == ["src/loom.py"]
    assert wire.call("stats")["total_files"] == len(FILES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unix", "tcp", "stdio"])
def test_the_core_answers_without_any_part(
    cold_daemon: DaemonAtHand, project: MakeProject, name: WireName
) -> None:
    root = project(FILES)
    with daemon_with(cold_daemon, []):
        cold_daemon.add(root)
        with closing(cold_daemon.wire(name, None if name == "tcp" else root)) as wire:
            wire.root = str(root)
            check_core(wire)
            for method in ("get_symbol", "search_code", "write_code", "list_revisions"):
                assert wire.fail(method)["code"] == NO_SUCH_METHOD
            assert (
                wire.call("query", query="night weave")["total"] == 0
            )  # nobody looks for the single words
            refused = (
                ("query", {"query": "weave", "rev": "HEAD"}),
                ("read_code", {"symbol_name": "weave"}),
            )
            for method, params in refused:
                error = wire.fail(method, **params)
                assert (error["code"], error["data"]["reason"]) == (
                    UNAVAILABLE,
                    "part_left_out",
                ), error
                assert "left out" in error["message"]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_core_answers_without_each_part(
    cold_daemon: DaemonAtHand, project: MakeProject, part: Part
) -> None:
    root = project(FILES)
    left = without(BUILT_IN, part.name)
    assert part not in left
    with daemon_with(cold_daemon, list(left)):
        cold_daemon.add(root)
        with closing(cold_daemon.wire("unix", root)) as wire:
            check_core(wire)
            for other in left:
                for handler in other.handlers[:1]:
                    assert (
                        wire.fail(handler.name, no_such_parameter=1)["code"]
                        == INVALID_PARAMS
                    )


def test_a_part_goes_with_those_it_requires() -> None:
    assert {part.name for part in BUILT_IN} - {
        part.name for part in without(BUILT_IN, "meaning")
    } >= {
        "meaning",
        "collections",
        "specs",
        "team",
    }
    assert without(BUILT_IN, "lsp") == tuple(
        part for part in BUILT_IN if part.name != "lsp"
    )
