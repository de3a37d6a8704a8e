"""What is imported answers for the texts that it was made of, and for no others."""

import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.base.own_folders import writes_folder
from flashgrep.parts.navigation.scip.importing import forget_index, import_index
from flashgrep.parts.navigation.scip.scip_store import (
    FILE,
    ScipTable,
    change,
    list_sources,
)
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.scip.scip_file import DEFINES, document, spans, write_index

LOOM = "class Loom:\n    def weave(self): ...\n"
MILL = "class Mill:\n    def weave(self): ...\n"
USE = "def run(one):\n    one.weave()\n\n\ndef walk(two):\n    two.weave()\n"
FILES: dict[str, str | bytes] = {
    "loom.py": LOOM,
    "mill.py": MILL,
    "use.py": USE,
    "late.py": "from mill import Mill\nMill().weave()\n",
}
SYMBOLS = {
    name: f"x . . . `{name.lower()}.py`/{name}#weave()." for name in ("Loom", "Mill")
}


def documents() -> dict[str, bytes]:
    uses = [
        *spans(USE, "weave", SYMBOLS["Mill"], [0, -1]),
        *spans(USE, "weave", SYMBOLS["Loom"], [-1, 0]),
    ]
    return {
        "loom.py": document(
            "loom.py", spans(LOOM, "weave", SYMBOLS["Loom"], [DEFINES])
        ),
        "mill.py": document(
            "mill.py", spans(MILL, "weave", SYMBOLS["Mill"], [DEFINES])
        ),
        "use.py": document("use.py", uses),
    }


@pytest.fixture
def root(project: MakeProject) -> Path:
    return project(FILES)


@pytest.fixture
def wire(daemon: DaemonAtHand, root: Path) -> Iterator[Wire]:
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as opened:
        yield opened


def ask(
    wire: Wire, method: str = "definition", path: str = "use.py", line: int = 2
) -> Any:
    column = 9 if path == "use.py" else 10
    return wire.call(method, path=path, line=line, column=column)


def told(found: Any) -> list[tuple[str, int, str | None]]:
    return [
        (one["file_path"], one["selection_range"]["start_line"], one.get("source"))
        for one in found["results"]
    ]


def test_an_imported_index_says_which_is_meant(
    daemon: DaemonAtHand, root: Path, wire: Wire, tmp_path: Path
) -> None:
    assert len(told(ask(wire))) == 2
    index = write_index(tmp_path / "index.scip", documents().values())
    done = daemon.run("scip", "import", str(index), cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{index}  loom 1.2, imported " in done.stdout
    assert done.stdout.endswith(", 3 files\n")
    assert told(ask(wire)) == [("mill.py", 2, "scip")]
    assert told(ask(wire, line=6)) == [("loom.py", 2, "scip")]
    # What was not imported is told as before.
    assert told(ask(wire, "references"))[:2] == [
        ("late.py", 2, None),
        ("mill.py", 2, "scip"),
    ]
    assert told(ask(wire, "references"))[2:] == [("use.py", 2, "scip")]
    assert (
        "1 of 1 from an imported SCIP index"
        in daemon.run("definition", "use.py", "2", "9", cwd=root).stderr
    )
    # A file with another text speaks for itself, at once.
    (root / "mill.py").write_text("\n" + MILL)
    assert all(one[2] is None for one in told(ask(wire)))
    assert told(ask(wire, line=6)) == [("loom.py", 2, "scip")]
    (root / "mill.py").write_text(MILL)
    assert told(ask(wire)) == [("mill.py", 2, "scip")]
    assert daemon.run("scip", "list", cwd=root).stdout == done.stdout
    assert (
        daemon.run("scip", "remove", str(index), cwd=root).stdout
        == f"removed {index}\n"
    )
    assert daemon.run("scip", "remove", str(index), cwd=root).returncode == 2
    assert len(told(ask(wire))) == 2


def test_an_index_goes_with_its_project(
    daemon: DaemonAtHand, root: Path, wire: Wire, tmp_path: Path
) -> None:
    index = write_index(tmp_path / "index.scip", documents().values())
    assert (
        daemon.run("scip", "import", str(index), "--project", str(root)).returncode == 0
    )
    folder = writes_folder(Path(daemon.paths.state), os.fsencode(root))
    assert folder.stat().st_mode & 0o077 == 0
    assert ask(wire)["results"]
    assert daemon.run("projects", "remove", str(root)).returncode == 0
    assert not folder.exists()


def test_an_unsaved_text_is_another_one(
    daemon: DaemonAtHand, root: Path, wire: Wire, tmp_path: Path
) -> None:
    daemon.run(
        "scip",
        "import",
        str(write_index(tmp_path / "index.scip", documents().values())),
        cwd=root,
    )
    wire.call("buffers", action="open", path="use.py", text="\n" + USE, version=1)
    assert all(one[2] is None for one in told(ask(wire, line=3)))


def test_a_file_that_changed_after_the_index_is_left_out(
    root: Path, tmp_path: Path
) -> None:
    index = write_index(
        tmp_path / "index.scip", [*documents().values(), document("gone.py", [])]
    )
    made = index.stat().st_mtime
    os.utime(root / "use.py", (made + 1, made + 1))
    folder = tmp_path / "state" / "projects" / "x"
    found = import_index(index, os.fsencode(root), folder, None)
    assert (found.documents, found.stale, found.missing, found.tool) == (
        2,
        1,
        1,
        "loom 1.2",
    )


def test_paths_are_below_the_folder_that_was_indexed(
    root: Path, tmp_path: Path
) -> None:
    for within, below in ((root, None), (tmp_path, "."), (root.parent, None)):
        index = write_index(tmp_path / "index.scip", [document("loom.py", [])], within)
        assert (
            import_index(
                index, os.fsencode(root), tmp_path / "state/projects/x", below
            ).documents
            == 1
        )
    (root / "part").mkdir()
    (root / "part" / "deep.py").write_text("")
    index = write_index(
        tmp_path / "index.scip", [document("deep.py", [])], root / "part"
    )
    assert (
        import_index(
            index, os.fsencode(root), tmp_path / "state/projects/x", None
        ).documents
        == 1
    )
    assert (
        import_index(
            index, os.fsencode(root), tmp_path / "state/projects/x", "part"
        ).documents
        == 1
    )


def test_nothing_outside_of_the_project_is_read(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text(LOOM)
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    index = write_index(
        tmp_path / "index.scip",
        [documents()["loom.py"].replace(b"\x07loom.py", b"\x07link.py", 1)],
    )
    assert (
        import_index(
            index, os.fsencode(root), tmp_path / "state/projects/x", None
        ).missing
        == 1
    )
    outside = [
        "../secret.py",
        str(tmp_path / "secret.py"),
        "",
        "a\0.py",
        "./loom.py",
        "x/../loom.py",
        "x" * 5_000,
    ]
    write_index(
        index, [documents()["mill.py"], *(document(path, []) for path in outside)]
    )
    found = import_index(index, os.fsencode(root), tmp_path / "state/projects/x", None)
    assert (found.documents, found.missing) == (1, len(outside))


def test_an_import_that_fails_or_is_killed_leaves_what_was(
    root: Path, tmp_path: Path
) -> None:
    folder, index = tmp_path / "state/projects/x", tmp_path / "index.scip"
    import_index(
        write_index(index, documents().values()), os.fsencode(root), folder, None
    )
    before = list_sources(folder)
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(InvalidParams, match="truncated"):
        import_index(index, os.fsencode(root), folder, None)
    assert list_sources(folder) == before
    code = (
        "import os, pathlib, signal\nfrom flashgrep.parts.navigation.scip.scip_store import change\n"
        f"with change(pathlib.Path({str(folder)!r}), {str(index)!r}) as writer:\n"
        "    writer.forget()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([os.sys.executable, "-c", code], check=False).returncode == -9  # type: ignore[attr-defined]
    assert list_sources(folder) == before
    assert forget_index(str(index), folder)
    assert (list_sources(folder), [*folder.iterdir()]) == ([], [folder / "scip.lock"])


def test_two_imports_at_once_are_both_there(root: Path, tmp_path: Path) -> None:
    folder, several = tmp_path / "state/projects/x", documents()
    files = [
        write_index(tmp_path / f"{name}.scip", [one]) for name, one in several.items()
    ]
    threads = [
        threading.Thread(
            target=import_index, args=(file, os.fsencode(root), folder, None)
        )
        for file in files
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert [one.file for one in list_sources(folder)] == sorted(map(str, files))


def test_a_damaged_table_tells_nothing(
    daemon: DaemonAtHand, root: Path, wire: Wire, tmp_path: Path
) -> None:
    index = write_index(tmp_path / "index.scip", documents().values())
    daemon.run("scip", "import", str(index), cwd=root)
    folder = writes_folder(Path(daemon.paths.state), os.fsencode(root))
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
        connection.execute("UPDATE document SET occurrences = zeroblob(40)")
    assert [one[2] for one in told(ask(wire))] == [None, None]
    whole = (folder / FILE).read_bytes()
    for data in (
        b"",
        b"no table",
        whole[: len(whole) // 2],
        whole[:100] + bytes(len(whole) - 100),
    ):
        (folder / "other").write_bytes(data)
        (folder / "other").replace(folder / FILE)
        assert [one[2] for one in told(ask(wire))] == [None, None]
    assert daemon.run("scip", "import", str(index), cwd=root).returncode == 0
    assert told(ask(wire)) == [("mill.py", 2, "scip")]


def test_what_a_later_index_says_of_a_file_counts(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state/projects/x"
    first = write_index(tmp_path / "first.scip", documents().values())
    second = write_index(tmp_path / "second.scip", [documents()["loom.py"]])
    for file in (first, second, first, second):
        import_index(file, os.fsencode(root), folder, None)
    assert [one.documents for one in list_sources(folder)] == [2, 1]
    with change(folder, str(first)) as writer:
        writer.forget()
    table = ScipTable.open(folder / FILE)
    assert table is not None
    assert table.occurrences(b"loom.py", LOOM.encode()) is not None
    assert table.occurrences(b"mill.py", MILL.encode()) is None
