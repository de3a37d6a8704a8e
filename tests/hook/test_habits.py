"""Lines of shell that agents type print the same through the hook as they are."""

import shutil
import subprocess
from pathlib import Path

import pytest

from flashgrep.parts.hook.rewriting import rewrite
from scripts.benchmarks.habits import make_shell, read_habits
from tests.conftest import DaemonAtHand

HERE = Path(__file__).parents[2]
COPIED = ("flashgrep/parts/hook", "flashgrep/parts/ripgrep", "flashgrep/cli", "docs")


@pytest.mark.slow
def test_what_agents_type_prints_the_same_through_the_hook(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    for name in COPIED:
        shutil.copytree(
            HERE / name, tree / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(HERE / "pyproject.toml", tree)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "add", "."], cwd=tree, check=True)
    assert daemon.run("index", str(tree)).returncode == 0
    shell = make_shell(tree, daemon.environ)
    rewritten = 0
    for line in read_habits()[::7]:
        changed = rewrite(line, "flashgrep").text
        theirs = shell.run(["bash", "-c", line])
        ours = shell.run(["bash", "-c", changed])
        assert (ours.stdout, ours.status) == (theirs.stdout, theirs.status), line
        rewritten += changed != line
    assert rewritten > 15
    assert daemon.run("projects", "remove", str(tree)).returncode == 0
