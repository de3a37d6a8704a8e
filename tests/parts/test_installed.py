"""Parts of other packages: found by their entry point, served on every wire, left out where they are broken."""

import re
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.api.service import HostService, ServiceKey, Services
from flashgrep.base.paths import Paths
from flashgrep.parts.gain.counters import COUNTERS
from tests.conftest import DaemonAtHand, MakeProject

EXAMPLE = Path(__file__).parents[1] / "support" / "example_part.py"
FLASHGREP = str(Path(sys.executable).with_name("flashgrep"))


def install(daemon: DaemonAtHand, folder: Path, entries: str) -> None:
    """Install a package with the example's module and these entry points where the daemon and its clients see it."""
    folder.mkdir(exist_ok=True)
    shutil.copy(EXAMPLE, folder / "example_part.py")
    facts = folder / "example-1.0.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: example\nVersion: 1.0\n"
    )
    (facts / "entry_points.txt").write_text(f"[flashgrep.parts]\n{entries}")
    daemon.environ["PYTHONPATH"] = str(folder)


@pytest.mark.slow
def test_a_part_of_another_package_adds_a_method_and_commands(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "a\n"})
    install(cold_daemon, tmp_path / "site", "greetings = example_part:PART\n")
    cold_daemon.start()
    cold_daemon.add(root)
    with closing(cold_daemon.wire("unix", root)) as wire:
        assert wire.call("greet", name="Ada") == {
            "text": f"{root.name} greets Ada",
            "count": 1,
        }
        assert wire.call("greet")["count"] == 2
        assert wire.call("query", query="a")["total"] == 1
    said = cold_daemon.run("greet", "--name", "Bob", cwd=root, program=FLASHGREP)
    assert (said.returncode, "greets Bob" in said.stdout) == (0, True), said.stderr
    assert cold_daemon.run("wave", cwd=root, program=FLASHGREP).stdout == "o/\n"
    assert (
        "Greet somebody"
        in cold_daemon.run("greet", "--help", cwd=root, program=FLASHGREP).stdout
    )
    overview = cold_daemon.run("help", "all", cwd=root, program=FLASHGREP).stdout
    assert "Greet somebody" in overview
    assert "Wave." in overview


def test_a_command_that_the_daemon_has_not_told_of_yet_is_explained(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    unknown = cold_daemon.run("help", "greet", program=FLASHGREP).stderr
    assert "other packages" not in unknown
    install(cold_daemon, tmp_path / "site", "greetings = example_part:PART\n")
    early = cold_daemon.run("greet", program=FLASHGREP)
    assert early.returncode == 2
    assert "parts of other packages need flashgrep daemon restart once" in early.stderr
    assert "greetings" in early.stderr


def test_doctor_runs_the_checks_of_parts_of_other_packages(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    install(cold_daemon, tmp_path / "site", "greetings = example_part:PART\n")
    told = cold_daemon.run("doctor", program=FLASHGREP).stdout
    assert re.search(r"^ok +part +greetings: Greets\.$", told, re.MULTILINE)
    assert re.search(r"^ok +greetings +polite$", told, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        "missing = no_such_module:PART",
        "odd = example_part:wave",
        "broken = example_part:NO",
        "taken = example_part:TAKEN",
    ],
)
def test_a_broken_part_is_left_out_logged_and_told_by_doctor(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path, entry: str
) -> None:
    root = project({"a.txt": "a\n"})
    install(cold_daemon, tmp_path / "site", f"{entry}\n")
    cold_daemon.start()
    cold_daemon.add(root)
    with closing(cold_daemon.wire("unix", root)) as wire:
        assert wire.call("query", query="a")["total"] == 1
        assert wire.fail("greet")["code"] == -32601
    assert not Path(cold_daemon.paths.state, "commands.tsv").exists()
    crashes = Path(Paths(cold_daemon.paths.state).crash_log).read_text()
    name, _, target = entry.partition(" = ")
    assert f"the part {name} is left out" in crashes
    doctor = cold_daemon.run("doctor", program=FLASHGREP)
    assert f"{name} is left out: {target}: " in doctor.stdout
    assert doctor.returncode == 1


def test_a_service_of_a_taken_name_is_refused() -> None:
    other = ServiceKey[HostService](COUNTERS.name)
    factories: list[dict[ServiceKey[Any], Callable[[Any], HostService]]] = [
        {COUNTERS: lambda _: HostService()},
        {other: lambda _: HostService()},
    ]
    with pytest.raises(ValueError, match="the service gain is taken"):
        Services[HostService].make(factories, None)
