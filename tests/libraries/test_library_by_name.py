"""Questions about one library by its name: its symbols, lines and texts; never the project's, never written."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.libraries.library_trees import LOOMS, PACKAGES, USER

Connect = Callable[..., Wire]


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project({**LOOMS, "main.py": USER, ".gitignore": ".venv\n"})


@pytest.mark.parametrize("library", ["looms", "py-looms", "py_looms@2", "py_looms@2.1"])
def test_a_library_is_asked_by_its_name_or_version(
    connect: Connect, root: Path, library: str
) -> None:
    wire = connect(root)
    symbols = wire.call("get_symbol", symbol_name="turn", role=["definition"], library=library)  # fmt: skip
    (symbol,) = symbols["results"]
    assert (symbol["file_path"], symbol["line_number"]) == ("frames.py", 4)
    assert "the library py_looms@2.1" in symbols["coverage"]["detail"]
    lines = wire.call("query", query="def weave", library=library)
    assert [hit["file_path"] for hit in lines["results"]] == ["frames.py"]
    text = wire.call("read_code", symbol_name="Loom.turn", library=library)
    assert "Turn once." in text["content"]
    assert wire.call("query", query="def weave", mode="literal")["results"] == []


@pytest.mark.parametrize(
    "library", ["reeds", "py_looms@3", "..", "../looms", "/etc", "@", "a\0b"]
)
def test_a_library_that_the_project_does_not_use_is_not_there(
    connect: Connect, root: Path, library: str
) -> None:
    error = connect(root).fail("query", query="x", library=library)
    assert error["data"]["reason"] in {"library_not_found", "invalid_params"}


def test_a_library_is_no_project_and_is_never_written(
    daemon: DaemonAtHand, root: Path
) -> None:
    daemon.add(root)
    before = sorted((root / PACKAGES).rglob("*"))
    with closing(daemon.wire("unix", root)) as wire:
        wire.call("query", query="weave", library="looms")
        frames = str(root / PACKAGES / "looms/frames.py")
        answer = wire.fail("query", query="x", project="py_looms@2.1")
        assert answer["data"]["reason"] in {"project_not_found", "outside_root"}
        edit = {"path": "frames.py", "content": "x", "project": "py_looms@2.1"}
        assert wire.fail("fs_write", **edit)
    assert sorted((root / PACKAGES).rglob("*")) == before
    assert "def weave" in Path(frames).read_text()


def test_a_library_and_several_projects_or_a_revision_are_not_asked_together(
    connect: Connect, root: Path
) -> None:
    for other in ({"projects": [str(root)]}, {"rev": "HEAD"}):
        error = connect(root).fail("query", query="x", library="looms", **other)
        assert error["data"]["field"] == "library"


def test_a_library_that_is_updated_is_searched_as_it_is_now(
    connect: Connect, root: Path
) -> None:
    wire = connect(root)
    question = {"query": "newer", "library": "looms"}
    assert wire.call("query", **question)["results"] == []
    (root / PACKAGES / "looms/later.py").write_text("newer = 1\n")
    assert len(wire.call("query", **question)["results"]) == 1
    metadata = root / PACKAGES / "py_looms-2.1.dist-info"
    metadata.rename(metadata.with_name("py_looms-3.0.dist-info"))
    detail = wire.call("query", **question)["coverage"]["detail"]
    assert "the library py_looms@3.0" in detail


def test_one_library_of_two_projects_has_one_name(
    connect: Connect, project: MakeProject
) -> None:
    for _ in range(2):
        wire = connect(project({**LOOMS, "main.py": USER}))
        answer = wire.call("query", query="weave", library="looms")
        assert "the library py_looms@2.1" in answer["coverage"]["detail"]
