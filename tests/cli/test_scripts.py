"""The scripts on a machine that lacks something: a readable error, and nothing half done."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "cat", "sed", "cksum", "printf", "env")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout in a folder with a space, without its environment."""
    copy = tmp_path / "check out"
    shutil.copytree(ROOT / "scripts", copy / "scripts")
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def run(checkout: Path, pythons: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run scripts/test with nothing on PATH but the tools it needs and the given interpreters."""
    bin_folder = checkout.parent / "bin"
    bin_folder.mkdir()
    for tool in TOOLS:
        (bin_folder / tool).symlink_to(shutil.which(tool) or tool)
    for name, program in pythons.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{program}\n")
        (bin_folder / name).chmod(0o755)
    environ = {"PATH": str(bin_folder), "HOME": str(checkout.parent)}
    command = [str(checkout / "scripts" / "test")]
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_python_that_is_too_old_is_named(checkout: Path) -> None:
    said = run(
        checkout,
        {"python3": 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac'},
    )
    assert said.returncode == 2
    assert "CPython 3.11 or later is needed; found: Python 3.9.2" in said.stderr


def test_no_python_at_all_is_reported(checkout: Path) -> None:
    said = run(checkout, {})
    assert said.returncode == 2
    assert "CPython 3.11 or later is needed; found:" in said.stderr


def test_a_python_without_venv_is_reported_with_its_remedy(checkout: Path) -> None:
    said = run(
        checkout,
        {"python3": 'case "$1" in --version) echo Python 3.11.2;; -m) exit 1;; esac'},
    )
    assert said.returncode == 2
    assert "apt install python3-venv" in said.stderr
    assert not (checkout / ".venv" / ".stamp").exists()


def test_only_what_is_installed_has_an_environment_rebuilt(checkout: Path) -> None:
    def stamp() -> str:
        script = f'. "{checkout}/scripts/environment"; wanted_stamp'
        command = ["sh", "-c", script, str(checkout / "scripts" / "test")]
        said = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        )
        return said.stdout

    settings, constraints = (
        checkout / "pyproject.toml",
        checkout / "scripts" / "constraints.txt",
    )
    written = settings.read_text()
    # Only the stamp is asked for here; no environment is made.
    sourced = (
        (checkout / "scripts" / "environment")
        .read_text()
        .replace("\nmake_environment\n", "\n")
    )
    (checkout / "scripts" / "environment").write_text(sourced)
    first = stamp()
    settings.write_text(written.replace("[tool.ruff]\n", "[tool.ruff]\nfix = true\n"))
    assert stamp() == first
    settings.write_text(
        written.replace("dependencies = [", 'dependencies = ["attrs",', 1)
    )
    assert stamp() != first
    settings.write_text(written)
    constraints.write_text(f"{constraints.read_text()}attrs==1\n")
    assert stamp() != first


def test_what_ci_runs_is_the_tests_and_nothing_else() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines == ["#!/bin/sh", 'exec "$(dirname -- "$0")/../scripts/test"']


@pytest.mark.parametrize(
    "name",
    ["scripts/start", "scripts/test", "scripts/check", "scripts/generate", ".ci/run"],
)
def test_scripts_are_executable_and_plain_sh(name: str) -> None:
    path = ROOT / name
    assert os.access(path, os.X_OK)
    subprocess.run(["sh", "-n", str(path)], check=True)
