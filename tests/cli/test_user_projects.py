"""Projects as people have them: several, alike, nested, moved, deleted; each answers for itself."""

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from flashgrep.base.config import Settings
from flashgrep.base.own_folders import INDEX, make_store, store_folder
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.mcp_clients import shim_wire


def results(daemon: DaemonAtHand, root: Path, *arguments: str) -> list[str]:
    found = daemon.run("query", *arguments, cwd=root)
    assert found.returncode in {0, 1}, found.stderr
    return found.stdout.splitlines()


async def test_an_open_project_does_not_wait_for_one_that_is_being_opened(
    project: MakeProject, tmp_path: Path
) -> None:
    ready, slow = project({"a.txt": "x"}, "ready"), project({"b.txt": "x"}, "slow")
    index = store_folder(tmp_path / "cache", os.fsencode(slow)) / INDEX
    make_store(index.parent, os.fsencode(slow))
    ended: list[str] = []

    with sqlite3.connect(index, isolation_level=None) as holder:
        holder.execute("CREATE TABLE mine (x)")
        holder.execute(
            "BEGIN EXCLUSIVE"
        )  # opening the index waits half a second for it
        async with Catalogue(
            parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
        ) as catalogue:
            await catalogue.open(str(ready))

            async def take(root: Path) -> None:
                await catalogue.open(str(root))
                ended.append(root.name)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take, slow)
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(take, ready)

    holder.close()
    assert ended == ["ready", "slow"]


def test_projects_of_one_name_are_distinguished(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    one, two = (
        project({"one.txt": "needle"}, "twin"),
        project({"two.txt": "needle"}, "twin"),
    )
    assert results(daemon, one, "needle") == ["one.txt:1:needle"]
    assert results(daemon, two, "needle") == ["two.txt:1:needle"]
    assert results(daemon, Path("/"), "needle", "--project", "twin-2") == results(
        daemon, Path("/"), "needle", "--project", str(two)
    )


def test_a_repository_inside_a_project_is_one_of_its_own(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    outer = project({"a.txt": "needle", "inner/b.txt": "needle"})
    assert results(daemon, outer / "inner", "needle", "--order", "path") == [
        "../a.txt:1:needle",
        "b.txt:1:needle",
    ]
    subprocess.run(["git", "init", "-q", str(outer / "inner")], check=True)
    assert results(daemon, outer / "inner", "needle") == ["b.txt:1:needle"]
    assert results(daemon, outer, "needle", "--order", "path") == [
        "a.txt:1:needle",
        "inner/b.txt:1:needle",
    ]


def test_several_projects_at_once_answer_each_for_itself(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    roots = [
        project({f"{number}.txt": f"needle {number}"}, f"p{number}")
        for number in range(3)
    ]
    answers: dict[int, Any] = {}
    wires = [daemon.wire("tcp") for _ in roots]
    for number, wire in enumerate(wires):
        params = {"text": "needle", "project": str(roots[number])}
        wire.send({"jsonrpc": "2.0", "id": number, "method": "query", "params": params})
    for wire in wires:
        answer = wire.receive()
        answers[answer["id"]] = [hit["text"] for hit in answer["result"]["results"]]
        wire.close()
    assert answers == {number: [f"needle {number}"] for number in range(3)}


def test_a_moved_project_is_found_where_it_is_now(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"}, "before")
    daemon.run("index", cwd=root)
    moved = root.with_name("after")
    root.rename(moved)
    (moved / "a.txt").write_text("needle again")
    assert results(daemon, moved, "needle") == ["a.txt:1:needle again"]
    lost = daemon.run("query", "needle", "--project", str(root))
    assert (lost.returncode, lost.stdout) == (2, "")
    assert "no such folder" in lost.stderr or "no project here" in lost.stderr


def test_its_cache_folder_deleted_under_the_daemon_a_project_answers_and_is_indexed_again(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    daemon.run("index", cwd=root)
    shutil.rmtree(daemon.paths.cache)
    assert results(daemon, root, "needle") == ["a.txt:1:needle"]
    again = daemon.run("index", cwd=root)
    assert "indexed: 1 file," in again.stderr
    stats = json.loads(daemon.run("stats", "--json", cwd=root).stdout)
    assert (stats["stage"], stats["files_pending"]) == ("ready", 0)


def test_a_restarted_daemon_knows_its_projects(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"}, "kept")
    cold_daemon.run("index", cwd=root)
    first = cold_daemon.status()["pid"]
    assert cold_daemon.run("daemon", "restart").returncode == 0
    assert cold_daemon.status()["pid"] != first
    found = results(cold_daemon, Path("/"), "needle", "--project", "kept")
    assert found == [f"{str(root)[1:]}/a.txt:1:needle"]


def test_git_sees_nothing_of_us(daemon: DaemonAtHand, project: MakeProject) -> None:
    root = project({"a.txt": "needle"})
    daemon.run("files", cwd=root)
    assert (root / ".flashgrep").is_dir()
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout == "?? a.txt\n"


def test_every_wire_gives_the_same_answer(
    connect: Callable[..., Wire], daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle\nother\nneedle", "sub/ü.txt": "ä needle"})
    wire = connect(root)
    wire.call("list_files")  # before that, ripgrep answers and says so
    for text in ("needle", "nee.le", "no such"):
        over_wire = wire.call("query", text=text, mode="regex")
        by_command = json.loads(
            daemon.run("query", text, "-E", "--json", cwd=root).stdout
        )
        for answer in (over_wire, by_command):
            for volatile in ("took_ms", "stage", "generation", "detail"):
                answer["coverage"].pop(volatile, None)
        assert over_wire == by_command


def test_the_whole_file_system_is_no_project(daemon: DaemonAtHand) -> None:
    wire = daemon.wire("unix")
    error = wire.fail("stats", project="/")
    assert error["data"]["reason"] == "outside_root"
    wire.close()


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Make a folder one that cannot be written to: a mount, or for whoever may make none by its mode."""
    mount = ["mount", "--bind", "-o", "ro", str(root), str(root)]
    mounted = (
        os.geteuid() == 0
        and subprocess.run(mount, check=False, capture_output=True).returncode == 0
    )
    if mounted:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True)
    else:
        root.chmod(0o555)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", str(root)], check=True)
        else:
            root.chmod(0o755)


def test_a_project_that_cannot_be_written_to_is_searched(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def needle():\n    pass\n", "b.txt": "needle\n"})
    with read_only(root):
        is_mount = root.is_mount()
        assert results(cold_daemon, root, "needle") == [
            "a.py:1:def needle():",
            "b.txt:1:needle",
        ]
        assert cold_daemon.run("symbol", "needle", cwd=root).stdout.startswith(
            "a.py:1:5:definition"
        )
        with closing(shim_wire(cold_daemon, "--project", str(root))) as wire:
            wire.send(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "query",
                    "params": {"text": "needle"},
                }
            )
            assert wire.receive()["result"]["total"] == 2
        assert not (root / ".flashgrep").exists()
        problems = cold_daemon.status()["problems"]
        cold_daemon.stop()
    if is_mount:
        assert problems == {}
