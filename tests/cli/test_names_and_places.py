"""A place as a hit prints it, and a name, in the commands that take a file or a position."""

from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, MakeProject

FILES: dict[str, str | bytes] = {
    "lib.py": "def helper(x):\n    return x\n\n\ndef main():\n    helper(2)\n",
    "a/twice.py": "def twice():\n    pass\n",
    "b/twice.py": "def twice():\n    pass\n",
    "README.md": "# helper\n\nhelper is here\n",
}


@pytest.fixture
def root(daemon: DaemonAtHand, project: MakeProject) -> Path:
    root = project(FILES)
    assert daemon.run("index", str(root)).returncode == 0
    return root


def test_a_name_with_one_definition_stands_for_its_place(
    daemon: DaemonAtHand, root: Path
) -> None:
    for command in ("callers", "definition", "hover", "references"):
        by_name = daemon.run(command, "helper", cwd=root)
        by_place = daemon.run(command, "lib.py:1:5", cwd=root)
        assert by_name.returncode == 0, by_name.stderr
        assert by_name.stdout == by_place.stdout
    callers = daemon.run("callers", "helper", cwd=root)
    assert callers.stdout.startswith("lib.py:5:5:")


def test_of_several_definitions_one_is_to_be_chosen(
    daemon: DaemonAtHand, root: Path
) -> None:
    found = daemon.run("callers", "twice", cwd=root)
    assert (found.returncode, found.stdout) == (2, "")
    assert "2 definitions of twice" in found.stderr
    assert "a/twice.py:1:5: def twice()" in found.stderr
    assert "b/twice.py:1:5: def twice()" in found.stderr


def test_a_name_without_a_definition_is_not_found(
    daemon: DaemonAtHand, root: Path
) -> None:
    found = daemon.run("definition", "nowhere", cwd=root)
    assert (found.returncode, found.stdout) == (1, "")
    assert "no definition of nowhere" in found.stderr


@pytest.mark.parametrize(
    "place", ["lib.py:1", "lib.py:1-2", "lib.py:1:5", "lib.py:1:5:def helper(x):"]
)
def test_a_hit_is_accepted_where_a_file_is_wanted(
    daemon: DaemonAtHand, root: Path, place: str
) -> None:
    for command in ("outline", "folds", "fs-stat", "history"):
        found = daemon.run(command, place, cwd=root)
        expected = daemon.run(command, "lib.py", cwd=root)
        assert (found.stdout, found.returncode) == (
            expected.stdout,
            expected.returncode,
        ), command
    shown = daemon.run("slice", place, cwd=root)
    assert shown.stdout.splitlines()[0] == "def helper(x):"
