"""index_codebase beside its scenarios: what is counted, which folder is meant, and when it answers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from flashgrep.index.table import FileRow, FileTable
from flashgrep.methods.indexing import difference
from tests.conftest import DaemonAtHand, MakeProject, Wire

FILES: dict[str, str | bytes] = {
    "a.py": "a = 1\n",
    "src/b.py": "b = 2\n",
    "tests/test_a.py": "c = 3\n",
}
Texts = some.dictionaries(
    some.binary(min_size=1, max_size=2), some.integers(1, 4), max_size=8
)


def table(texts: dict[bytes, int]) -> FileTable:
    return FileTable.of(
        [
            FileRow(path, text_id, "", 1, 2, 3, 4)
            for path, text_id in sorted(texts.items())
        ]
    )


@given(Texts, Texts)
def test_files_are_counted_by_what_became_of_them(
    before: dict[bytes, int], after: dict[bytes, int]
) -> None:
    both = before.keys() & after.keys()
    assert difference(table(before), table(after)) == {
        "added": len(after.keys() - before.keys()),
        "changed": sum(before[path] != after[path] for path in both),
        "removed": len(before.keys() - after.keys()),
        "unchanged": sum(before[path] == after[path] for path in both),
    }


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Wire:
    root = project(FILES)
    daemon.add(root)
    return daemon.wire("unix", root)


def test_a_path_may_be_relative_to_the_connections_own_project_or_lie_in_it(
    wire: Wire,
) -> None:
    root = wire.root
    for path in (".", "src", f"{root}/src", f"{root}/../project"):
        assert wire.call("index_codebase", path=path)["path"] == root
    wire.close()


def test_a_connection_of_no_project_has_to_name_a_whole_path(
    daemon: DaemonAtHand,
) -> None:
    wire = daemon.wire("unix")
    error = wire.fail("index_codebase", path="src")
    assert (error["code"], error["data"]["field"]) == (-32602, "path")
    for path in ("/no/such/place", "/" + "x" * 5000, "/a\0b"):
        assert (
            wire.fail("index_codebase", path=path)["data"]["reason"] == "path_not_found"
        )
    assert wire.fail("index_codebase", path="/")["data"]["reason"] == "outside_root"
    wire.close()


def test_a_connection_bound_to_a_project_indexes_no_other(
    wire: Wire, project: MakeProject
) -> None:
    other = project({"x.py": ""}, name="other")
    assert (
        wire.fail("index_codebase", path=str(other))["data"]["reason"] == "outside_root"
    )
    wire.close()


def test_two_links_in_a_circle_are_no_folder(wire: Wire) -> None:
    assert wire.root
    (Path(wire.root) / "here").symlink_to("there")
    (Path(wire.root) / "there").symlink_to("here")
    assert (
        wire.fail("index_codebase", path="here")["data"]["reason"] == "path_not_found"
    )
    wire.close()


def test_when_time_runs_out_it_says_how_far_it_is_and_goes_on(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(
        {f"{number}.py": f"value_{number} = 1\n" * 200 for number in range(300)}
    )
    wire = daemon.wire("unix")
    told = wire.call("index_codebase", path=str(root), deadline_ms=1)
    assert not told["complete"]
    assert told["stage"] != "ready"
    done = wire.call("index_codebase", path=str(root))
    assert done["complete"]
    assert (done["files"], done["stage"]) == (300, "ready")
    wire.close()


def test_what_is_indexed_holds_for_every_connection_and_counts_for_each(
    wire: Wire, daemon: DaemonAtHand
) -> None:
    root = Path(str(wire.root))
    wire.call("index_codebase", path=str(root))
    (root / "a.py").write_text("changed = 1\n")
    assert wire.call("index_codebase", path=str(root))["incremental"]["changed"] == 1
    other = daemon.wire("unix", root)
    assert other.call("index_codebase", path=str(root))["incremental"][
        "unchanged"
    ] == len(FILES)
    (root / "a.py").unlink()
    for one in (wire, other):
        assert one.call("index_codebase", path=str(root))["incremental"]["removed"] == 1
        one.close()


def test_rebuilding_replaces_the_index(wire: Wire) -> None:
    first = wire.call("index_codebase", path=".")
    again = wire.call("index_codebase", path=".", rebuild=True)
    assert again["rebuilt"]
    assert again["complete"]
    assert (again["files"], again["lines"]) == (first["files"], first["lines"])
    assert again["incremental"]["added"] == len(FILES)
    wire.close()


def test_a_call_cannot_have_code_sent_to_another_machine(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    cold_daemon.environ["OPENAI_API_KEY"] = "a key that is there"
    root = project(FILES)
    cold_daemon.add(root)
    wire = cold_daemon.wire("unix", root)
    error = wire.fail("index_codebase", path=str(root), provider="openai")
    assert error["data"]["reason"] == "provider_unavailable"
    assert "another machine" in error["message"]
    assert "openai" not in error["data"]["available"]
    wire.close()
