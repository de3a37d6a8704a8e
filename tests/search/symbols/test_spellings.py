"""A definition is found by every usual spelling of its qualified name: of languages, tracebacks and other tools."""

from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.symbols.parse.lookup import split_name
from tests.conftest import DaemonAtHand

FILES = {
    "celery/app/task.py": "class Task:\n    def update_state(self):\n        pass\n",
    "celery/app/__init__.py": "def shared():\n    pass\n",
    "taskfile/node.go": "package taskfile\n\nfunc NewNode() {}\n",
    "task.go": "package task\n\ntype Executor struct{}\n\nfunc (e *Executor) RunTask() {}\n",
    "helix-term/src/ui/menu.rs": "pub struct Item {}\nimpl Item {\n    pub fn show_it(&self) {}\n}\n",
    "other/node.go": "package other\n\nfunc NewNode() {}\n",
    "other/task.py": "class Task:\n    def update_state(self):\n        pass\n",
}
SPELLINGS = [
    ("celery.app.task.Task", "celery/app/task.py:1"),
    ("celery.app.task.Task.update_state", "celery/app/task.py:2"),
    ("celery.app.shared", "celery/app/__init__.py:1"),
    ("taskfile.NewNode", "taskfile/node.go:3"),
    ("task.Executor.RunTask", "task.go:5"),
    ("(*Executor).RunTask", "task.go:5"),
    ("(*task.Executor).RunTask", "task.go:5"),
    ("Executor/RunTask", "task.go:5"),
    ("Executor#RunTask()", "task.go:5"),
    ("ui::menu::Item", "helix-term/src/ui/menu.rs:1"),
    ("crate::ui::menu::Item::show_it", "helix-term/src/ui/menu.rs:3"),
    ("celery/app/task.py:Task.update_state", "celery/app/task.py:2"),
    ("celery/app/task.py:update_state", "celery/app/task.py:2"),
    ("other/task.py:Task", "other/task.py:1"),
]


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spellings") / "project"
    for name, text in {".git/x": "", **FILES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    daemon.add(folder)
    return folder


def ask(daemon: DaemonAtHand, root: Path, method: str, **params: Any) -> Any:
    wire = daemon.wire("unix", root)
    try:
        return wire.call(method, **params)
    finally:
        wire.close()


@pytest.mark.parametrize(("name", "place"), SPELLINGS)
def test_a_definition_is_found_by_every_spelling(
    daemon: DaemonAtHand, root: Path, name: str, place: str
) -> None:
    found = ask(daemon, root, "get_symbol", symbol_name=name, role=["definition"])
    places = [f"{hit['file_path']}:{hit['start_line']}" for hit in found["results"]]
    assert places == [place]
    read = ask(daemon, root, "read_code", symbol_name=name, symbol_context_lines=0)
    assert f"{read['file_path']}:{read['start_line']}" == place


def test_a_name_of_another_module_is_not_there(
    daemon: DaemonAtHand, root: Path
) -> None:
    for name in ("nowhere.NewNode", "taskfile.RunTask"):
        assert ask(daemon, root, "get_symbol", symbol_name=name)["results"] == []


def test_methods_are_functions(daemon: DaemonAtHand, root: Path) -> None:
    found = ask(daemon, root, "get_symbol", symbol_name="RunTask", kind=["function"])
    assert [hit["kind"] for hit in found["results"]] == ["method"]


@pytest.mark.parametrize(
    ("written", "qualifiers", "name"),
    [
        ("turn(self, by)", [], "turn"),
        ("Wheel.turn(by.x)", ["Wheel"], "turn"),
        ("*Wheel", [], "Wheel"),
        ("&Wheel{}", [], "Wheel"),
        ("(*Stack[T]).Push", ["Stack"], "Push"),
        ("Map<String, Vec<u8>>::get", ["Map"], "get"),
        ("collect::<Vec<u8>>", [], "collect"),
        ("shop.cart:Cart.add", ["shop", "cart", "Cart"], "add"),
        ("join/3", [], "join"),
        ("Phoenix.Token.sign/4", ["Phoenix", "Token"], "sign"),
        ("valid?/1", [], "valid?"),
        ("operator/", [], "operator/"),
        ("operator()", [], "operator()"),
        ("operator<<", [], "operator<<"),
        ("a < b", [], "a < b"),
        ("foo:bar:", [], "foo:bar:"),
        ("valid?", [], "valid?"),
        ("[]", [], "[]"),
        ("(", [], "("),
    ],
)
def test_what_uses_have_beside_a_name_is_not_part_of_it(
    written: str, qualifiers: list[str], name: str
) -> None:
    assert split_name(written) == (qualifiers, name)
