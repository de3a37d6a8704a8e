"""Python's libraries over every wire: where names of an environment's packages are defined, read and used."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.libraries.library_trees import LOOMS, PACKAGES, USER, write_tree

Connect = Callable[..., Wire]


def ask(wire: Wire, method: str, line: int, column: int, **more: Any) -> Any:
    """Ask about a position of main.py."""
    return wire.call(method, path="main.py", line=line, column=column, **more)


def list_places(answer: Any) -> list[tuple[str, int, str]]:
    """Return the places of an answer, with their libraries."""
    return [
        (
            place["file_path"],
            place["selection_range"]["start_line"],
            place.get("library", ""),
        )
        for place in answer["results"]
    ]


def test_a_name_that_a_package_defines_leads_into_it(
    connect: Connect, project: MakeProject
) -> None:
    root = project({**LOOMS, "main.py": USER})
    wire = connect(root)
    frames = str(root / PACKAGES / "looms/frames.py")
    package = str(root / PACKAGES / "looms/__init__.py")
    label = "py_looms@2.1"
    assert list_places(ask(wire, "definition", 1, 8)) == [(package, 1, label)]
    assert list_places(ask(wire, "definition", 2, 19)) == [(frames, 1, label)]
    assert list_places(ask(wire, "definition", 4, 7)) == [(frames, 9, label)]
    assert list_places(ask(wire, "definition", 5, 8)) == [(frames, 4, label)]
    hover = ask(wire, "hover", 5, 8)
    assert hover["signature"] == "def turn(self, yarn: int) -> int:"
    assert hover["documentation"] == "Turn once."
    assert hover["results"][0]["library"] == label


def test_the_uses_of_a_librarys_name_are_those_of_the_project_and_of_its_file(
    connect: Connect, project: MakeProject
) -> None:
    root = project({**LOOMS, "main.py": USER, "other.py": "from looms import weave as w\n\nw(3)\n"})  # fmt: skip
    uses = list_places(ask(connect(root), "references", 4, 7))
    frames = str(root / PACKAGES / "looms/frames.py")
    assert uses == [
        (frames, 9, "py_looms@2.1"),
        ("main.py", 4, ""),
        *[("other.py", 1, "")] * 2,
        ("other.py", 3, ""),
    ]


def test_questions_go_on_in_a_librarys_file(
    connect: Connect, project: MakeProject
) -> None:
    root = project({**LOOMS, "main.py": USER})
    wire = connect(root)
    frames = str(root / PACKAGES / "looms/frames.py")
    for path in (frames, f"{PACKAGES}/looms/frames.py"):
        place = {"path": path, "line": 10, "column": 20}
        assert list_places(wire.call("definition", **place)) == [
            (frames, 4, "py_looms@2.1")
        ]


def test_an_environment_of_the_users_tools_is_read_outside_the_project(
    daemon: DaemonAtHand, connect: Connect, project: MakeProject
) -> None:
    outside = Path(daemon.environ["HOME"]) / ".virtualenvs/one"
    write_tree(outside, {name.removeprefix(".venv/"): text for name, text in LOOMS.items()})  # fmt: skip
    root = project({"main.py": USER})
    (root / ".venv").symlink_to(outside)
    wire = connect(root)
    (place,) = ask(wire, "definition", 4, 7)["results"]
    frames = str(outside / "lib/python3.12/site-packages/looms/frames.py")
    assert place["file_path"] == frames
    slice_read = wire.call("get_slice", path=frames, start_line=9, end_line=9)
    assert slice_read["content"] == "def weave(yarn):\n"
    assert slice_read["library"] == "py_looms@2.1"
    again = wire.call("definition", path=frames, line=10, column=13)
    assert again["results"][0]["selection_range"]["start_line"] == 1


def test_a_package_that_is_updated_or_removed_is_answered_as_it_is_now(
    connect: Connect, project: MakeProject
) -> None:
    root = project({**LOOMS, "main.py": USER})
    wire = connect(root)
    frames = root / PACKAGES / "looms/frames.py"
    assert list_places(ask(wire, "definition", 4, 7)) == [(str(frames), 9, "py_looms@2.1")]  # fmt: skip
    frames.write_text("def weave(yarn):\n    return yarn\n")
    (root / PACKAGES / "py_looms-2.1.dist-info").rename(
        root / PACKAGES / "py_looms-3.0.dist-info"
    )
    assert list_places(ask(wire, "definition", 4, 7)) == [(str(frames), 1, "py_looms@3.0")]  # fmt: skip
    frames.unlink()
    assert ask(wire, "definition", 4, 7)["results"] == []


def test_two_projects_have_the_versions_of_their_own(
    connect: Connect, project: MakeProject
) -> None:
    later = {
        name.replace("-2.1.", "-2.2."): text
        for name, text in LOOMS.items()
    }  # fmt: skip
    for files, version in ((LOOMS, "2.1"), (later, "2.2")):
        root = project({**files, "main.py": USER})
        (place,) = ask(connect(root), "definition", 4, 7)["results"]
        assert place["library"] == f"py_looms@{version}"
        assert place["file_path"].startswith(str(root))


def test_what_the_project_defines_is_never_a_librarys(
    connect: Connect, project: MakeProject
) -> None:
    root = project({**LOOMS, "main.py": USER, "looms.py": "def weave(yarn):\n    return yarn\n"})  # fmt: skip
    wire = connect(root)
    assert list_places(ask(wire, "definition", 4, 7)) == [("looms.py", 1, "")]
    found = wire.call("get_symbol", symbol_name="turn", role=["definition"])
    assert found["results"] == []


def test_of_two_imports_the_one_that_has_a_source_is_followed(
    connect: Connect, project: MakeProject
) -> None:
    package = f"{PACKAGES}/fast/__init__.py"
    plain = f"{PACKAGES}/fast/_plain.py"
    root = project(
        {
            **LOOMS,
            package: "try:\n    from ._plain import run\nexcept ImportError:\n    from ._compiled import run\n",
            plain: "def run(): ...\n",
            "main.py": "from fast import run\n",
        }
    )
    places = list_places(ask(connect(root), "definition", 1, 18))
    assert places == [(str(root / plain), 1, "fast")]


HOSTILE = ("link_out", "link_package", "pipe", "device", "stranger", "pth", "huge")


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_environment_reaches_nothing_outside(
    connect: Connect, project: MakeProject, attack: str
) -> None:
    root = project(
        {
            ".venv/pyvenv.cfg": "home = /etc\nversion = 3.12\n",
            "main.py": "import secret\n\nsecret.key()\n",
        }
    )
    outside = root.parent / "outside"
    write_tree(outside, {"secret.py": "def key():\n    return 1\n", "secret/__init__.py": "def key(): ...\n"})  # fmt: skip
    packages = root / PACKAGES
    packages.parent.mkdir(parents=True)
    if attack == "link_out":
        packages.symlink_to(outside)
    else:
        packages.mkdir()
    if attack == "link_package":
        (packages / "secret").symlink_to(outside / "secret")
        (packages / "secret.py").symlink_to(outside / "secret.py")
    elif attack == "pipe":
        os.mkfifo(packages / "secret.py")
    elif attack == "device":
        (packages / "secret.py").symlink_to("/dev/zero")
    elif attack == "pth":
        (packages / "x.pth").write_text(f"{outside}\nimport os; os.abort()\n")
    elif attack == "huge":
        with (packages / "secret.py").open("wb") as file:
            file.truncate(1 << 40)
    elif attack == "stranger":
        (packages / "secret.py").write_text("def key(): ...\n")
        if os.getuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(packages / "secret.py", 12345, 12345)
    wire = connect(root)
    places = ask(wire, "definition", 3, 8)["results"]
    assert places == []
    error = wire.fail("read_code", path=str(outside / "secret.py"))
    assert error["data"]["reason"] == "outside_root"


def test_a_module_of_dots_leads_nowhere(connect: Connect, project: MakeProject) -> None:
    root = project({**LOOMS, "main.py": "import looms\n"})
    above = root / PACKAGES / "looms/deep.py"
    above.write_text("from ......secret import key\n\nkey()\n")
    (root / "secret.py").write_text("def key(): ...\n")
    answer = connect(root).call("definition", path=str(above), line=3, column=1)
    assert answer["results"] == []
