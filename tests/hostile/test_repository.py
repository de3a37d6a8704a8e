"""A repository made to harm: what hangs, floods, escapes or hides, met as any project would be."""

import json
import os
import subprocess
from pathlib import Path

from flashgrep.files.ignore import LONG, read_rules
from tests.conftest import DaemonAtHand, MakeProject


def answer(daemon: DaemonAtHand, root: Path, *arguments: str) -> dict[str, object]:
    found = daemon.run(*arguments, "--json", cwd=root)
    assert found.returncode in {0, 1}, found.stderr
    result: dict[str, object] = json.loads(found.stdout)
    return result


def paths(result: dict[str, object]) -> set[str]:
    results = result["results"]
    assert isinstance(results, list)
    return {hit["file_path"] for hit in results}


def test_pipes_in_the_place_of_gits_own_files_hang_nobody(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle", "inner/b.txt": "needle", "tree/c.txt": "needle"})
    os.mkfifo(root / ".gitignore")
    os.mkfifo(root / "inner" / ".git")
    (root / "tree" / ".git").write_text("gitdir: ../.pipes\n")
    (root / ".pipes" / "info").mkdir(parents=True)
    os.mkfifo(root / ".pipes" / "commondir")
    os.mkfifo(root / ".pipes" / "info" / "exclude")
    (root / ".git" / "info" / "exclude").unlink(missing_ok=True)
    os.mkfifo(root / ".git" / "info" / "exclude")
    excludes = [
        "git",
        "-C",
        str(root),
        "config",
        "core.excludesFile",
        str(root / ".pipes" / "commondir"),
    ]
    subprocess.run(excludes, check=True)
    assert paths(answer(daemon, root, "query", "needle")) == {
        "a.txt",
        "inner/b.txt",
        "tree/c.txt",
    }


def test_a_top_that_is_a_pipe_is_opened(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project()
    bare = root.parent / "bare"
    bare.mkdir()
    os.mkfifo(bare / ".git")
    (bare / "a.txt").write_text("needle")
    assert paths(answer(daemon, bare, "query", "needle")) == {"a.txt"}


def test_devices_links_and_pipes_are_not_files_to_search(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle root:x:0"})
    for name, target in {
        "zero": "/dev/zero",
        "passwd": "/etc/passwd",
        "loop": ".",
        "self": "self",
        "up": "/",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe.txt")
    assert paths(answer(daemon, root, "query", "root:x:0")) == {"a.txt"}


def test_a_folder_too_deep_to_be_read_is_reported_and_the_rest_is_watched(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    here = os.open(root, os.O_RDONLY)
    for _ in range(
        17
    ):  # folders of 250 bytes: beyond the 4,096 bytes that a path may have
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("lost.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    found = answer(daemon, root, "query", "needle")
    coverage = found["coverage"]
    assert isinstance(coverage, dict)
    assert (paths(found), coverage["files_skipped"]) == ({"a.txt"}, {"unreadable": 1})
    known = answer(daemon, root, "stats")
    assert (known["watching"], known["files_skipped"]) == (True, {"unreadable": 1})


def test_a_long_rules_file_is_made_ready_once(tmp_path: Path) -> None:
    rules = tmp_path / ".gitignore"
    rules.write_bytes(b"*.o\n" * LONG)
    first = read_rules(os.fsencode(rules))
    assert first is not None
    assert read_rules(os.fsencode(rules)) is first
    rules.write_bytes(b"*.a\n" * LONG)
    changed = read_rules(os.fsencode(rules))
    assert changed is not None
    assert (
        changed.verdict(b"x.a", b"x.a", False),
        changed.verdict(b"x.o", b"x.o", False),
    ) == (True, None)


def test_nothing_is_written_through_links_of_the_repository(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    outside = root.parent / "outside"
    outside.mkdir()
    (root / ".flashgrep").mkdir()
    for name in (
        ".gitignore",
        "index.db",
        "index.db-wal",
        "index.db-shm",
        "mcp.sock",
        "config.toml",
    ):
        (root / ".flashgrep" / name).symlink_to(outside / name)
    assert paths(answer(daemon, root, "query", "needle")) == {"a.txt"}
    daemon.run("index", cwd=root)
    assert list(outside.iterdir()) == []


def test_a_state_folder_that_is_a_link_is_not_entered(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    outside = root.parent / "outside"
    outside.mkdir(0o755)
    (root / ".flashgrep").symlink_to(outside)
    assert paths(answer(daemon, root, "query", "needle")) == {"a.txt"}
    assert (list(outside.iterdir()), outside.stat().st_mode & 0o777) == ([], 0o755)
    assert daemon.run("projects", "remove", str(root)).returncode == 0
    assert outside.is_dir()
    assert not daemon.index(root).parent.exists()
    assert str(root) not in daemon.status()["problems"]
