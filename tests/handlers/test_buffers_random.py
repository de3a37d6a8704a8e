"""Unsaved text is as if it were saved: random edits by two clients against copies of the project where it was.

Each client's copy has on disk what that client sees; a client without buffers asks it the same questions.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import DaemonAtHand, Wire, short_folder
from tests.support.git import git

NAMES: Final = ["loom", "weave", "spindle", "Shuttle", "bobbin"]
GAP: Final = re.compile(r"\n?^… \d+-\d+$\n?", re.MULTILINE)
"""A line of a passage that stands for lines left out, with the line feeds next to it."""
PATHS: Final = [
    "a.py",
    "src/b.py",
    "src/new/c.go",
    "ignored/d.py",
    "x.log",
    "e.md",
    ".hidden.py",
]
FIRST: Final = {
    ".gitignore": "ignored/\n*.log\n",
    "kept.py": "def kept():\n    return 'an index has something'\n",
    "a.py": "def loom():\n    return weave()\n",
    "src/b.py": "import a\n\n\nclass Shuttle:\n    def weave(self):\n        return a.loom()\n",
    "e.md": "# bobbin\n\nA loom.\n",
}
pieces = st.one_of(
    st.sampled_from(NAMES).map(lambda name: f"def {name}():\n    return loom()\n\n\n"),
    st.sampled_from(NAMES).map(
        lambda name: f"class {name}:\n    '''é😀 a {name}'''\n\n"
    ),
    st.sampled_from(
        [
            "# weave a loom\n",
            "",
            "x",
            "\n",
            "\r\n",
            "spindle",
            " ",
            "func weave() {\n\tloom()\n}\n",
            "\0",
        ]
    ),
)
texts = st.lists(pieces, max_size=5).map("".join)


@dataclass
class Client:
    """A client with files open, and the copy in which they are saved."""

    wire: Wire
    copy: Path
    asking: Wire
    open: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Texts with their versions."""
    undone: list[str] = field(default_factory=list)


@dataclass
class World:
    """The project, who edits it, and one who does not."""

    root: Path
    clients: list[Client]
    other: Wire
    disk: dict[str, str] = field(default_factory=dict)

    def reset(self) -> None:
        for client in self.clients:
            client.undone.clear()
            for path in [*client.open]:
                self.close(client, path)
        for path in {*PATHS, *FIRST}:
            self.write(path, FIRST.get(path))

    def write(self, path: str, text: str | None) -> None:
        """Write a file of the project, or remove it; a client that has it open goes on seeing its own text."""
        if text is None:
            self.disk.pop(path, None)
        else:
            self.disk[path] = text
        put(self.root, path, text)
        for client in self.clients:
            if path not in client.open:
                put(client.copy, path, text)

    def show(self, client: Client, path: str, text: str, version: int) -> None:
        client.open[path] = (text, version)
        put(client.copy, path, text)

    def close(self, client: Client, path: str) -> None:
        client.wire.call("buffers", action="close", path=path)
        del client.open[path]
        put(client.copy, path, self.disk.get(path))


def put(root: Path, path: str, text: str | None) -> None:
    """Write a file, or see that there is none."""
    file = root / path
    if text is None:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


@pytest.fixture(scope="module")
def world(daemon: DaemonAtHand) -> Iterator[World]:
    """Return a project with two copies, indexed."""
    base = short_folder()
    roots = [base / name for name in ("project", "first", "second")]
    for root in roots:
        for path, text in FIRST.items():
            put(root, path, text)
        git(root, "init", "-q")
        daemon.add(root)
        wire = daemon.wire("unix", root)
        wire.call("index_codebase", path=str(root))
        wire.close()
    clients = [
        Client(daemon.wire("unix", roots[0]), copy, daemon.wire("unix", copy))
        for copy in roots[1:]
    ]
    world = World(roots[0], clients, daemon.wire("unix", roots[0]))
    yield world
    for wire in (
        world.other,
        *(wire for client in clients for wire in (client.wire, client.asking)),
    ):
        wire.close()
    shutil.rmtree(base, ignore_errors=True)


def place(text: str, at: int) -> tuple[int, int]:
    """Return the line, and the column in UTF-16, of a place."""
    before = text[:at]
    return before.count("\n") + 1, len(
        before.rpartition("\n")[2].encode("utf-16-le")
    ) // 2 + 1


def act(world: World, client: Client, data: st.DataObject) -> None:
    """Do one thing that an editor does, or that happens on disk."""
    path = data.draw(st.sampled_from(PATHS), label="path")
    action = data.draw(
        st.sampled_from(
            ["edit", "edit", "open", "undo", "save", "close", "disk", "delete"]
        ),
        label="action",
    )
    if action in {"disk", "delete"}:
        world.write(path, data.draw(texts) if action == "disk" else None)
    elif action == "open" or path not in client.open:
        text = (
            world.disk.get(path, "") if data.draw(st.booleans()) else data.draw(texts)
        )
        client.wire.call("buffers", action="open", path=path, text=text, version=1)
        world.show(client, path, text, 1)
    elif action == "close":
        world.close(client, path)
    elif action == "save":
        world.write(path, client.open[path][0])
    else:
        text, version = client.open[path]
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        new, undone = data.draw(pieces), client.undone
        changed = text[:start] + new + text[end:]
        edit: dict[str, Any] = {"text": new}
        if action == "undo" and undone:
            changed = edit["text"] = undone.pop()
        else:
            undone.append(text)
            places = (*place(text, start), *place(text, end))
            edit |= dict(
                zip(
                    ("start_line", "start_column", "end_line", "end_column"),
                    places,
                    strict=True,
                )
            )
        asked = {
            "path": path,
            "version": version + 1,
            "changes": [edit],
            "position_encoding": "utf-16",
        }
        client.wire.call("buffers", action="change", **asked)
        world.show(client, path, changed, version + 1)


def answers(wire: Wire, copy: Path, name: str, path: str) -> dict[str, Any]:
    """Return answers to questions of every kind, without what tells when and how they were made.

    ``copy``: where what is asked about is saved.
    """
    found: dict[str, Any] = {}
    for order in ("path", "relevance"):
        found[order] = wire.call(
            "query", query=name, mode="literal", order=order, limit=100
        )
    found["words"] = {
        hit["file_path"]
        for hit in wire.call("query", query=f"{name} return", limit=1000)["results"]
    }
    found["count"] = wire.call(
        "query", query=rf"{name}|\bdef\b", mode="regex", output="count"
    )
    found["paths"] = wire.call("list_files")
    found["named"] = wire.call("list_files", filter=path)
    found["sizes"] = [
        (one["file_path"], one["size"])
        for one in wire.call("glob", sort_by="size")["results"]
    ]
    found["symbol"] = wire.call("get_symbol", symbol_name=name, limit=100)
    found["prefix"] = wire.call("get_symbol", symbol_name=name[:3], match="prefix")
    for place in ("src", path):
        outlined = wire.ask("outline", path=place, everything=True)
        found[f"outline {place}"] = outlined.get("result") or outlined["error"]["code"]
    read = wire.ask("read_code", path=path)
    found["read"] = (
        read["result"]["content"] if "result" in read else read["error"]["code"]
    )
    research = wire.call("code_research", query=f"who uses {name}")
    found["research"] = sorted(
        (edge["file_path"], edge["line"], edge["kind"]) for edge in research["edges"]
    )
    meant = wire.call("search_code", query=name, limit=100, max_tokens=100_000)[
        "results"
    ]
    # Which chunks of a function stand for it depends on the order, and that on which
    # words are stored how often.
    found["meaning"] = sorted(
        {one["file_path"] for one in meant if name in one["content"]}
    )
    for one in meant:
        shown, text = (
            one["content"].rstrip(),
            (copy / one["file_path"]).read_bytes().decode(),
        )
        assert all(part in text for part in GAP.split(shown)), one
    for kind, answer in found.items():
        if isinstance(answer, dict):
            coverage = answer.pop("coverage", {})
            assert coverage.get("complete", True), coverage
            answer.pop("suggestions", None)
            if kind in {
                "path",
                "relevance",
                "count",
            }:  # of symbols, binary files are skipped until they are stored
                answer["covered"] = (
                    coverage["files_searched"],
                    coverage["files_skipped"],
                )
    return found


@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_is_unsaved_is_as_if_it_were_saved(
    data: st.DataObject, world: World
) -> None:
    world.reset()
    for _ in range(data.draw(st.integers(1, 4))):
        client = data.draw(st.sampled_from(world.clients))
        for _ in range(data.draw(st.integers(1, 3))):
            act(world, client, data)
        name, path = (
            data.draw(st.sampled_from(NAMES)),
            data.draw(st.sampled_from(PATHS)),
        )
        saved = answers(client.asking, client.copy, name, path)
        assert answers(client.wire, client.copy, name, path) == saved
    for path in PATHS:
        read = world.other.ask("read_code", path=path)
        assert ("result" in read) == (path in world.disk)
