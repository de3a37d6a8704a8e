"""No space, no descriptors, no permission, no folder: right answers or a clear error, and all goes on afterwards."""

import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.faults.harness import agree, fill, indexed, integrity, truth
from tests.support.workspace import index_of, opened, put


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system of so many bytes; needs root and the right to mount."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder],
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_a_full_disk_leaves_right_answers_and_room_lets_the_index_go_on(
    root: Path,
) -> None:
    fill(root, random.Random(1), 400)
    with small_disk(index_of(root).parents[2], "300k"):
        async with opened(root) as workspace:
            await agree(workspace, root)
            await workspace.wait_indexed()
            assert workspace.progress.stage == "failed"
            assert workspace.progress.detail.startswith("full: ")
            await agree(workspace, root)
            put(root, {"fresh.txt": b"word7 word7 needle\n"})
            await agree(workspace, root)
            await anyio.run_process(
                ["mount", "-o", "remount,size=60m", str(index_of(root).parents[2])]
            )
            await indexed(workspace)
            await agree(workspace, root)
        assert integrity(index_of(root)) == "ok"


@contextmanager
def limited(what: int, least: int) -> Iterator[None]:
    """Lower a limit of this process and of those it starts."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (least, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


async def test_an_index_that_may_not_grow_leaves_right_answers_and_goes_on_when_it_may(
    root: Path,
) -> None:
    fill(root, random.Random(2), 300)
    async with opened(root) as workspace:
        with limited(resource.RLIMIT_FSIZE, 100_000):
            await workspace.wait_indexed()
            assert workspace.progress.stage == "failed"
            await agree(workspace, root)
        await indexed(workspace)
        await agree(workspace, root)
    assert integrity(index_of(root)) == "ok"


def hits(wire: Wire, mode: str, text: str) -> set[tuple[bytes, int]]:
    answer = wire.call(
        "query",
        text=text,
        mode=mode,
        case="sensitive",
        limit=10_000,
        max_tokens=1_000_000,
    )
    assert answer["coverage"]["complete"]
    return {
        (os.fsencode(hit["file_path"]), hit["start_line"]) for hit in answer["results"]
    }


def right(wire: Wire, root: Path) -> None:
    for (mode, text), wanted in truth(root).items():
        assert hits(wire, mode, text) == wanted, (mode, text)


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.fixture
def root(project: MakeProject, daemon: DaemonAtHand) -> Path:
    """Return a project the module's daemon knows."""
    made = project()
    fill(made, random.Random(3), 200)
    daemon.add(made)
    return made


@pytest.mark.parametrize("spare", [0, 1, 2, 4, 8])
def test_without_file_descriptors_a_question_is_answered_right_or_refused(
    daemon: DaemonAtHand, root: Path, spare: int
) -> None:
    wire = daemon.wire("unix", root)
    right(wire, root)
    pid = daemon.status()["pid"]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + spare, before[1]))
    try:
        (root / "fresh.txt").write_text("word7 word7 needle\n")
        for (mode, text), wanted in truth(root).items():
            answer = wire.ask(
                "query",
                text=text,
                mode=mode,
                case="sensitive",
                limit=10_000,
                max_tokens=1_000_000,
            )
            if "result" in answer and answer["result"]["coverage"]["complete"]:
                found = {
                    (os.fsencode(hit["file_path"]), hit["start_line"])
                    for hit in answer["result"]["results"]
                }
                assert found == wanted
            elif "error" in answer:
                assert answer["error"]["code"] in {-32005, -32000}, answer
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    right(wire, root)
    wire.close()


def test_a_root_that_moves_away_is_reported_and_found_again_when_it_is_back(
    daemon: DaemonAtHand, root: Path, project: MakeProject
) -> None:
    other = project({"a.txt": "needle\n"}, name="other")
    beside = (
        daemon.wire("unix", other)
        if daemon.run("projects", "add", str(other)).returncode == 0
        else None
    )
    assert beside is not None
    wire = daemon.wire("unix", root)
    right(wire, root)
    away = root.with_name("away")
    root.rename(away)
    (away / "elsewhere.txt").write_text("needle\n")
    assert wire.fail("query", text="needle")["data"]["reason"] == "directory_not_found"
    assert hits(beside, "literal", "needle") == {(b"a.txt", 1)}
    away.rename(root)
    right(wire, root)
    (root / "later.txt").write_text("word7 word7 needle\n")
    right(wire, root)
    wire.close()
    beside.close()


def test_a_root_that_is_deleted_and_made_again_is_a_new_folder(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    right(wire, root)
    shutil.rmtree(root)
    assert wire.fail("query", text="needle")["data"]["reason"] == "directory_not_found"
    assert wire.fail("stats")["data"]["reason"] == "directory_not_found"
    subprocess.run(["git", "init", "-q", root], check=True)
    fill(root, random.Random(4), 50)
    right(wire, root)
    wire.close()
    again = daemon.wire("unix", root)
    (root / "later.txt").write_text("word7 word7 needle\n")
    right(again, root)
    again.close()
    assert daemon.run("index", str(root)).returncode == 0
    assert daemon.index(root).exists()


def test_a_root_that_is_replaced_at_once_is_searched_as_the_new_one(
    daemon: DaemonAtHand, root: Path
) -> None:
    wire = daemon.wire("unix", root)
    right(wire, root)
    fresh = root.with_name("fresh")
    subprocess.run(["git", "init", "-q", fresh], check=True)
    fill(fresh, random.Random(5), 50)
    root.rename(root.with_name("old"))
    fresh.rename(root)
    right(wire, root)
    wire.close()


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may read everything"
)
def test_files_and_folders_that_may_not_be_read_are_reported_and_found_once_they_may() -> (
    None
):
    bounded = [
        "setpriv",
        "--inh-caps=-all",
        "--bounding-set=-dac_override,-dac_read_search",
    ]
    command = [
        *(bounded if os.geteuid() == 0 else []),
        sys.executable,
        str(Path(__file__).with_name("unreadable.py")),
    ]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )
    assert done.returncode == 0


def mounts_for_itself() -> bool:
    """Return whether a process may have mounts of its own here."""
    try:
        return (
            subprocess.run(
                ["unshare", "-Urm", "true"], capture_output=True, check=False
            ).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.slow
def test_what_is_mounted_in_a_project_is_found_and_gone_with_it() -> None:
    if not mounts_for_itself():
        pytest.skip("no mount namespaces here")
    command = [
        "unshare",
        "-Urm",
        sys.executable,
        str(Path(__file__).with_name("mounted.py")),
    ]
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": "."},
        check=False,
    )
    assert done.returncode == 0
