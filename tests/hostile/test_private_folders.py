"""flashgrep's own folders are no project, and where they lie in one they are not read, found or written through it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, Wire, daemon_in, short_folder
from tests.support.mcp_clients import open_http, token_of


@pytest.fixture(scope="module")
def at_home() -> Iterator[DaemonAtHand]:
    """Return a running daemon whose folders lie in the home folder, which is a project."""
    folder = short_folder()
    home = folder / "home"
    state = home / ".local" / "state" / "flashgrep"
    state.mkdir(0o700, parents=True)
    usual = {
        "FLASHGREP_STATE_DIR": str(state),
        "XDG_CONFIG_HOME": str(home / ".config"),
    }
    running = daemon_in(folder, **usual, XDG_CACHE_HOME=str(home / ".cache"))
    running = DaemonAtHand(type(running.paths)(str(state)), running.environ)
    for name in (".config", ".cache"):
        (home / name / "flashgrep" / "deep").mkdir(parents=True)
        (home / name / "flashgrep" / "deep" / "kept.txt").write_text("secretmark\n")
    (home / ".ignore").write_text(
        "!.*\n"
    )  # the home folder's own rules may let hidden files in
    (home / "mine.txt").write_text("secretmark\n")
    (home / "link").symlink_to(state)
    running.start()
    yield running
    running.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def wire(at_home: DaemonAtHand) -> Iterator[Wire]:
    opened = at_home.wire("tcp")
    yield opened
    opened.close()


def homes(daemon: DaemonAtHand) -> tuple[Path, list[Path]]:
    home = Path(daemon.environ["HOME"])
    return home, [
        home / name / "flashgrep" for name in (".local/state", ".config", ".cache")
    ]


def test_they_are_no_project_by_whatever_path(
    at_home: DaemonAtHand, wire: Wire
) -> None:
    home, own = homes(at_home)
    folders = [
        *own,
        own[1] / "deep",
        home / "link",
        own[0] / ".." / "flashgrep",
        Path(f"{own[0]}/"),
    ]
    for folder in folders:
        error = wire.fail("fs_read", path="token", project=str(folder))
        assert (error["code"], error["data"]["reason"]) == (-32006, "outside_root"), (
            folder
        )
        assert not (folder / ".flashgrep").exists()
    control = at_home.wire("unix")
    assert (
        control.fail("$/bind", project=str(own[0]))["data"]["reason"] == "outside_root"
    )
    control.close()
    assert str(own[0]) not in at_home.run("projects", "list").stdout


def test_they_are_not_reached_through_a_project_around_them(
    at_home: DaemonAtHand, wire: Wire
) -> None:
    home, own = homes(at_home)
    open_http(at_home)
    token = token_of(at_home)
    wire.call("auth", token=token)
    state = os.path.relpath(own[0], home)
    project = {"project": str(home)}
    for path in (
        f"{state}/token",
        f"{state}/../flashgrep/token",
        "link/token",
        f"{own[0]}/token",
    ):
        lines = {"file_path": path, "start_line": 1, "end_line": 1}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("fs_read", {"path": path}),
            ("fs_stat", {"path": path}),
            ("get_slice", lines),
            ("read_code", {"file_path": path}),
            ("write_code", {**lines, "replacement": "mine"}),
            ("fs_write", {"path": path, "content": "mine", "overwrite": True}),
            ("fs_copy", {"src": path, "dst": "copied"}),
            ("fs_move", {"src": path, "dst": "copied"}),
            ("fs_remove", {"path": path}),
            (
                "bootstrap_skill",
                {"allow_repo_override": True, "repo_override_path": path},
            ),
        ]
        for method, params in calls:
            error = wire.fail(method, **params, **project)
            assert token not in str(error)
            assert error["code"] in {-32006, -32000}, (method, path, error)
    for folder in (state, ".local/state", ".local"):
        copied = {"src": folder, "dst": "copied", "recursive": True}
        assert (
            wire.fail("fs_copy", **copied, **project)["data"]["reason"]
            == "protected_path"
        )
        assert (
            wire.fail("fs_move", src=folder, dst="copied", **project)["data"]["reason"]
            == "protected_path"
        )
        assert (
            wire.fail("fs_remove", path=folder, recursive=True, **project)["data"][
                "reason"
            ]
            == "protected_path"
        )
    assert (
        wire.fail("fs_list", path=state, **project)["data"]["reason"]
        == "protected_path"
    )
    assert (
        wire.fail("glob", pattern="**/*", path=state, **project)["data"]["reason"]
        == "protected_path"
    )
    assert token_of(at_home) == token
    assert not (home / "copied").exists()


def test_nothing_in_them_is_found(at_home: DaemonAtHand, wire: Wire) -> None:
    home, own = homes(at_home)
    project = {"project": str(home)}
    found = wire.call("query", text="secretmark", case="sensitive", **project)[
        "results"
    ]
    assert [hit["file_path"] for hit in found] == ["mine.txt"]
    assert wire.call("query", text=token_of(at_home), **project)["results"] == []
    (own[2] / "deep" / "later.txt").write_text(
        "secretmark\n"
    )  # what comes while it is watched
    (home / "also.txt").write_text("secretmark\n")
    found = wire.call("query", text="secretmark", case="sensitive", **project)[
        "results"
    ]
    assert [hit["file_path"] for hit in found] == ["also.txt", "mine.txt"]
    listed = wire.call("list_files", **project)["files"]
    everything = {"include_hidden": True, "follow_symlinks": True, **project}
    globbed = [
        one["file_path"]
        for one in wire.call("glob", pattern="**/*", **everything)["results"]
    ]
    assert "mine.txt" in listed
    assert "mine.txt" in {Path(path).name for path in globbed}
    assert not [
        path
        for path in (*listed, *globbed)
        if "flashgrep/" in path and "/.flashgrep/" not in path
    ]
    assert not [path for path in globbed if path.startswith("link/")]
