"""The wheel: built from this checkout, installed where nothing else is, it has its commands and its skill."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
    ]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("flashgrep-*.whl")
    return built


def test_the_wheel_holds_the_package_and_its_skill_and_nothing_else(
    wheel: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    release = wheel.name.split("-py3")[0]
    assert tops == {"flashgrep", f"{release}.data", f"{release}.dist-info"}
    shared = {name for name in names if name.startswith(f"{release}.data/")}
    # A manual page, and completions for three shells.
    assert {name.split("/")[1] for name in shared} == {"data"}
    assert {name.split("/")[3] for name in shared} <= {
        "bash-completion",
        "fish",
        "man",
        "zsh",
    }
    assert {
        "flashgrep/skills/SKILL.md",
        "flashgrep/skills/reference.md",
        "flashgrep/cli/client.py",
    } <= set(names)
    assert "flashgrep/editors/nvim/plugin/flashgrep.lua" in names
    assert not [
        name for name in names if "test" in name.lower() or name.endswith(".pyc")
    ]


def test_links_of_its_description_lead_somewhere_on_an_index(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        description = archive.read(place).decode()
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert len(links) > 10
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert "mcp-name: io.github.flashgrep/flashgrep" in description


def test_installed_in_a_bare_environment_fgrep_shows_its_help(
    wheel: Path, tmp_path: Path
) -> None:
    # The first line of a script cannot name an interpreter whose path has a blank.
    bare = tmp_path / "a bare environment"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True
    )
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(bare / "bin" / "python"),
        "install",
        "--quiet",
        "--no-deps",
    ]
    subprocess.run(
        [*install, "--no-index", str(wheel)], check=True, capture_output=True
    )
    _lend_dependencies(bare)
    for name in ("fgrep", "flashgrep"):
        shown = subprocess.run(
            [bare / "bin" / name, "--help"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr
        assert "query" in shown.stdout
    where = "import flashgrep; print(flashgrep.__file__)"
    found = subprocess.run(
        [bare / "bin" / "python", "-c", where],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(bare))


def _lend_dependencies(bare: Path) -> None:
    """Let the bare environment import our dependencies, but not this checkout: after its own, by a plain path line."""
    (site_packages,) = (bare / "lib").glob("python3*/site-packages")
    ours = sysconfig.get_path("purelib")
    (site_packages / "zz_lent.pth").write_text(
        f"import sys; sys.path.append({os.fspath(ours)!r})\n"
    )
