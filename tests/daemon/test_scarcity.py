"""A daemon that is short of descriptors or of room: it answers right, or says plainly what it lacks."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from flashgrep.daemon.descriptors import LEAST, Shares
from flashgrep.project.project import MOST_OPEN
from tests.conftest import FGREP, DaemonAtHand

DESCRIPTORS = 64
PROJECTS = 14


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of two megabytes at a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill_disk(folder: Path) -> Path:
    """Write until nothing more fits, and return the file that takes the room."""
    path = folder / "fill"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        while os.write(descriptor, bytes(1 << 12)):
            pass
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return path


def make_project(root: Path) -> Path:
    root.mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "a.py").write_text("def weave():\n    return 1\n")
    return root


def test_with_64_descriptors_every_project_is_answered_right_and_a_client_too_many_is_told(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    few = f'ulimit -n {DESCRIPTORS} && exec "$0" daemon start'
    subprocess.run(["sh", "-c", few, FGREP], env=cold_daemon.environ, check=True)
    with ExitStack() as stack:
        wire = stack.enter_context(closing(cold_daemon.wire("unix")))
        for number in range(PROJECTS):
            root = tmp_path / f"project{number}"
            root.mkdir()
            (root / "a.py").write_text(f"def weave_{number}():\n    return 1\n")
        for number in [*range(PROJECTS), 0]:
            root = tmp_path / f"project{number}"
            answer = wire.call(
                "query", query=f"weave_{number}", mode="literal", project=str(root)
            )
            assert answer["total"] == 1
            assert answer["coverage"]["fresh"]
        refused = None
        for _ in range(DESCRIPTORS):
            client = stack.enter_context(closing(cold_daemon.wire("unix")))
            request = {"jsonrpc": "2.0", "id": 1, "method": "stats", "params": {}}
            # One too many is told why and closed at once, perhaps before it has asked.
            with suppress(BrokenPipeError):
                client.send(request)
            refused = client.receive().get("error")
            if refused is not None:
                break
        assert refused is not None
        assert refused["message"] == "too many connections"
        assert wire.call("query", query="weave_0", project=str(root))["total"] == 1


@pytest.mark.parametrize("descriptors", [64, 256, 1024, 4096, 65_536])
def test_shares_of_descriptors_leave_some_for_everything_else(descriptors: int) -> None:
    shares = Shares.of(descriptors)
    assert 1 <= shares.projects <= MOST_OPEN
    assert shares.connections >= LEAST
    taken = shares.projects * 12 + shares.sockets + shares.connections
    assert taken < descriptors


def test_shares_of_a_process_are_of_its_own_limit() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert Shares.of_process() == Shares.of(soft)


def test_a_full_state_folder_is_named_and_questions_are_answered_without_a_daemon(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    root = make_project(tmp_path / "project")
    state = Path(cold_daemon.paths.state)
    with small_disk(state):
        fill = fill_disk(state)
        answer = cold_daemon.run("query", "weave", cwd=root)
        assert "a.py:1:def weave():" in answer.stdout
        assert answer.returncode == 0
        assert "No space left on device" in answer.stderr
        assert "Traceback" not in answer.stderr
        fill.unlink()
        answer = cold_daemon.run("query", "weave", cwd=root)
        assert (answer.returncode, answer.stderr) == (0, "")
        cold_daemon.stop()


def test_a_full_cache_leaves_right_answers_and_the_index_says_why_it_is_not_there(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    root = make_project(tmp_path / "project")
    cache = Path(cold_daemon.paths.cache)
    with small_disk(cache):
        fill = fill_disk(cache)
        indexed = cold_daemon.run("index", str(root))
        assert indexed.returncode != 0
        assert "No space left on device" in indexed.stderr
        answer = cold_daemon.run("query", "weave", cwd=root)
        assert "a.py:1:def weave():" in answer.stdout
        fill.unlink()
        (root / "b.py").write_text("def weave_more():\n    return 2\n")
        answer = cold_daemon.run("query", "weave_more", cwd=root)
        assert "b.py:1:def weave_more():" in answer.stdout
        cold_daemon.stop()
