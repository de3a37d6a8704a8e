"""A repository's own settings: hostile, broken or loosening ones cost a warning, never the project or the daemon."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.config import Loaded, Settings, load
from flashgrep.base.project_settings import MAX_BYTES, MAX_WARNINGS, with_project
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.pace import paced

QUICK_SECONDS = 2.0
"""Of the processor: reading takes milliseconds; what is bounded took from 5 s to minutes."""


def read(tmp_path: Path, text: str | bytes, loaded: Loaded | None = None) -> Loaded:
    """Return the settings of a project whose file has this text."""
    file = tmp_path / ".flashgrep" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return with_project(loaded or load(), tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tcp", "not TOML"),
        (b"\xff", "not TOML"),
        ("x = " + "9" * 5000, "not TOML"),
        ("a." * 100_000 + "a = 1", "larger than 16 KiB"),
        ("a." * 8_000 + "a = 1", "dots in a line"),
        ("x = " + "[" * 8_000, "brackets"),
        ("x = " + "{a=" * 5_000, "brackets"),
        ("#" * (MAX_BYTES + 1), "larger than 16 KiB"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_out_at_once(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    begun = time.thread_time()
    loaded = read(tmp_path, text)
    assert time.thread_time() - begun < paced(QUICK_SECONDS)
    assert loaded.settings == Settings()
    (warning,) = loaded.warnings
    assert warning.startswith(f"{tmp_path}/.flashgrep/config.toml: not used: ")
    assert told in warning


@pytest.mark.parametrize(
    "text",
    [
        f"[{'.'.join('a' * 100)}]\n" + "b=1\n" * 4000,
        "\n".join(f"{'.'.join(['a'] * 100)}.b{number} = 1" for number in range(70)),
        "".join(f'"{number:x}" = 1\n' for number in range(1600)),
        "x = " + "[" * 200,
        "[[a]]\n" * 40,
    ],
)
def test_the_most_that_passes_the_bounds_is_quick_too(
    tmp_path: Path, text: str
) -> None:
    assert len(text) <= MAX_BYTES
    begun = time.thread_time()
    loaded = read(tmp_path, text)
    assert time.thread_time() - begun < paced(QUICK_SECONDS)
    assert loaded.settings == Settings()
    assert 1 <= len(loaded.warnings) <= MAX_WARNINGS + 1
    assert all(len(warning) < 400 for warning in loaded.warnings)


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


def a_link(file: Path) -> None:
    target = file.parents[2] / "elsewhere.toml"
    target.write_text("read_only = true")
    file.symlink_to(target)


def a_folder(file: Path) -> None:
    file.mkdir()


def a_linked_folder(file: Path) -> None:
    target = file.parents[2] / "folder"
    target.mkdir()
    (target / "config.toml").write_text("read_only = true")
    file.parent.rmdir()
    file.parent.symlink_to(target)


@pytest.mark.parametrize("put", [a_pipe, a_link, a_folder, a_linked_folder])
def test_what_is_no_file_of_the_project_is_not_opened(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    root = tmp_path / "project"
    file = root / ".flashgrep" / "config.toml"
    file.parent.mkdir(parents=True)
    put(file)
    loaded = with_project(load(), root)
    assert (loaded.settings, len(loaded.warnings)) == (Settings(), 1)


@pytest.mark.parametrize(
    "text",
    [
        "[tcp]\nport = 1",
        "[tcp]\nenabled = true",
        "max_connections = 5",
        "idle_exit_minutes = 0",
        '[log]\nlevel = "debug"',
        "[index]\nworkers = 64",
        "[query]\nmax_tokens = 1000000",
        'token = "x"',
        'state_dir = "/tmp"',
        "prot = 1",
        "tcp = 1",
        '"\\u001b]0;owned\\u0007" = 1',
    ],
)
def test_what_a_project_may_not_set_is_left_out_and_the_rest_holds(
    tmp_path: Path, text: str
) -> None:
    loaded = read(tmp_path, f"read_only = true\n{text}\n")
    assert loaded.settings == Settings(read_only=True)
    assert len(loaded.warnings) == 1
    assert loaded.warnings[0].isprintable()


@pytest.mark.parametrize(
    ("text", "key", "holds"),
    [
        (
            "[index]\nmax_file_size = 1073741824",
            "index.max_file_size",
            Settings().index.max_file_size,
        ),
        ("[read]\nmax_bytes = 67108864", "read.max_bytes", Settings().read.max_bytes),
        (
            "[write]\nmax_bytes = 67108864",
            "write.max_bytes",
            Settings().write.max_bytes,
        ),
        ("[write]\nmax_bytes = true", "write.max_bytes", Settings().write.max_bytes),
        ("[write]\nmax_bytes = 1", "write.max_bytes", Settings().write.max_bytes),
        (
            '[specs]\nfolders = ["specs", "../other"]',
            "specs.folders",
            Settings().specs.folders,
        ),
        ('[specs]\nfolders = ["/etc"]', "specs.folders", Settings().specs.folders),
        (
            "[specs]\nfolders = [" + "'a'," * 65 + "]",
            "specs.folders",
            Settings().specs.folders,
        ),
        ('[specs]\nfolders = "/etc"', "specs.folders", Settings().specs.folders),
    ],
)
def test_a_project_makes_nothing_looser(
    tmp_path: Path, text: str, key: str, holds: Any
) -> None:
    loaded = read(tmp_path, text)
    section, _, leaf = key.partition(".")
    assert getattr(getattr(loaded.settings, section), leaf) == holds
    assert key in loaded.warnings[0]


def test_a_project_makes_things_stricter_and_cannot_undo_its_users_read_only_mode(
    tmp_path: Path,
) -> None:
    stricter = read(
        tmp_path,
        "read_only = true\n[index]\nmax_file_size = 2000\n[specs]\nfolders = ['docs/*', '.']\n",
    )
    assert stricter.warnings == ()
    assert (stricter.settings.read_only, stricter.settings.index.max_file_size) == (
        True,
        2000,
    )
    assert stricter.settings.specs.folders == ["docs/*", "."]
    undone = read(
        tmp_path, "read_only = false", load(environ={"FLASHGREP_READ_ONLY": "1"})
    )
    assert undone.settings.read_only
    assert "cannot loosen" in undone.warnings[0]
    assert read(tmp_path, "read_only = false").warnings == ()


def test_a_project_with_broken_settings_is_searched_and_the_warning_is_shown_everywhere(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(
        {".flashgrep/config.toml": "a." * 100_000 + "a = 1", "a.txt": "needle\n"}
    )
    found = cold_daemon.run("query", "needle", cwd=root)
    assert (found.returncode, found.stdout) == (0, "a.txt:1:needle\n")
    warning = f"{root}/.flashgrep/config.toml: not used: larger than 16 KiB"
    assert found.stderr == f"fgrep: {warning}\n"
    assert cold_daemon.run("query", "needle", cwd=root).stderr == ""
    assert warning in cold_daemon.run("stats", cwd=root).stdout
    assert f"warning    {warning}\n" in cold_daemon.run("daemon", "status").stdout
    assert warning in cold_daemon.run("doctor").stdout
    shown = cold_daemon.run("config", "show", cwd=root)
    assert (shown.returncode, shown.stderr) == (0, f"fgrep: {warning}\n")


def test_settings_that_break_while_the_daemon_runs_leave_those_of_its_start(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    cold_daemon.environ["FLASHGREP_READ_ONLY"] = "true"
    file = Path(cold_daemon.environ["XDG_CONFIG_HOME"]) / "flashgrep" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("[write]\nmax_bytes = 2000\n")
    cold_daemon.start()
    file.write_text("[write")
    root = project({"a.txt": "needle\n"})
    found = cold_daemon.run("query", "needle", cwd=root)
    assert (found.returncode, found.stdout) == (0, "a.txt:1:needle\n")
    assert str(file) in found.stderr
    assert "the settings read at start stay in force" in found.stderr
