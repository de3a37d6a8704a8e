"""The daemon as a service of the user's: the unit is what systemd takes, and uninstalling leaves nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand

MANAGER = """\
#!/bin/sh
echo "$@" >>"$0.calls"
exit {status}
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the test knows systemd alone"
)


def make_manager(daemon: DaemonAtHand, folder: Path, status: int = 0) -> Path:
    """Put a manager of services that notes its calls first on PATH; return what it notes."""
    program = folder / "systemctl"
    program.write_text(MANAGER.format(status=status))
    program.chmod(0o755)
    daemon.environ["PATH"] = f"{folder}:{daemon.environ['PATH']}"
    return folder / "systemctl.calls"


def test_a_service_is_installed_started_and_removed(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    calls = make_manager(cold_daemon, tmp_path)
    unit = Path(
        cold_daemon.environ["XDG_CONFIG_HOME"], "systemd/user/flashgrep.service"
    )
    shown = cold_daemon.run("daemon", "install-service", "--print")
    assert shown.returncode == 0
    assert not unit.exists()
    installed = cold_daemon.run("daemon", "install-service")
    assert installed.stdout == f"wrote {unit}\n"
    assert shown.stdout == f"# {unit}\n{unit.read_text()}"
    assert "daemon-reload" in calls.read_text()
    assert calls.read_text().endswith("enable --now flashgrep.service\n")
    removed = cold_daemon.run("daemon", "install-service", "--uninstall")
    assert removed.stdout == f"removed {unit}\n"
    assert calls.read_text().endswith("disable --now flashgrep.service\n")
    assert not unit.exists()
    again = cold_daemon.run("daemon", "install-service", "--uninstall")
    assert (again.returncode, again.stdout) == (0, "")


def test_the_service_takes_the_place_of_a_daemon_that_runs(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    make_manager(cold_daemon, tmp_path)
    cold_daemon.start()
    assert cold_daemon.run("daemon", "install-service").returncode == 0
    assert cold_daemon.run("daemon", "status").stdout == "not running\n"


def test_systemd_accepts_the_unit_and_its_command_starts_the_daemon(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    shown = cold_daemon.run("daemon", "install-service", "--print").stdout
    text = shown.partition("\n")[2]
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        unit = tmp_path / "flashgrep.service"
        unit.write_text(text)
        verdict = subprocess.run(
            [analyze, "--user", "verify", str(unit)],
            capture_output=True,
            text=True,
            env={**cold_daemon.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
            check=False,
        )
        assert "flashgrep.service:" not in verdict.stderr
    (command,) = [
        line.partition("=")[2]
        for line in text.splitlines()
        if line.startswith("ExecStart=")
    ]
    words = [word.strip('"') for word in command.split('" "')]
    assert words[0] == sys.executable
    assert words[1:] == ["-m", "flashgrep", "daemon", "run", "--idle-minutes=0"]


def test_a_manager_that_fails_is_reported(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    make_manager(cold_daemon, tmp_path, status=1)
    failed = cold_daemon.run("daemon", "install-service")
    assert failed.returncode == 2
    assert "not started: systemctl --user daemon-reload: 1" in failed.stderr
    removed = cold_daemon.run("daemon", "install-service", "--uninstall")
    assert (removed.returncode, "was not ended" in removed.stderr) == (0, True)
    assert not cold_daemon.run("daemon", "install-service", "--uninstall").stdout


def test_a_service_serves_the_folders_of_its_installation_alone(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    calls = make_manager(cold_daemon, tmp_path)
    cold_daemon.environ["FLASHGREP_STATE_DIR"] += '/a "b" 5% $HOME'
    wrote = cold_daemon.run("daemon", "install-service").stdout
    unit = Path(wrote.removeprefix("wrote ").removesuffix("\n"))
    state = cold_daemon.environ["FLASHGREP_STATE_DIR"]
    escaped = state.replace('"', '\\"').replace("%", "%%")
    assert f'Environment="FLASHGREP_STATE_DIR={escaped}"\n' in unit.read_text()
    other = {**cold_daemon.environ, "FLASHGREP_STATE_DIR": str(tmp_path / "other")}
    mine = dict(cold_daemon.environ)
    cold_daemon.environ.update(other)
    listed = cold_daemon.run("uninstall", "--dry-run").stdout
    assert "end the service" not in listed
    left = cold_daemon.run("daemon", "install-service", "--uninstall")
    assert (left.returncode, left.stdout) == (0, "")
    assert "another state folder" in left.stderr
    assert unit.exists()
    cold_daemon.environ.update(mine)
    removed = cold_daemon.run("daemon", "install-service", "--uninstall")
    assert removed.stdout == f"removed {unit}\n"
    assert calls.read_text().endswith("disable --now flashgrep.service\n")


def test_uninstall_ends_the_service(cold_daemon: DaemonAtHand, tmp_path: Path) -> None:
    calls = make_manager(cold_daemon, tmp_path)
    cold_daemon.run("daemon", "install-service")
    gone = cold_daemon.run("uninstall", "--yes", cwd=tmp_path)
    assert gone.returncode == 0, gone.stderr
    assert "end the service" in gone.stdout
    assert calls.read_text().endswith("disable --now flashgrep.service\n")
