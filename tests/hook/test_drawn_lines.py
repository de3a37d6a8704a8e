"""Drawn lines of shell, with what may stand before a program and after it, print the same through the hook as they are."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.parts.hook.rewriting import rewrite
from scripts.benchmarks.habits import Shell, make_shell
from tests.conftest import DaemonAtHand
from tests.support.rg_tree import make_tree

BEFORE = r"""
env #env X=1 #env LC_ALL=C #LC_ALL=C #LANG=C.UTF-8 X=2 #GREP_COLORS='mt=01;32' #env GREP_COLOR=1 TERM=dumb #command #exec #
nice #nice -n 5 #nice -3 #timeout 60 #timeout -k 5 60s #timeout --signal=KILL 60 #time -p #nohup #stdbuf -oL #\#/usr/bin/#
ionice -c3 #timeout 60 nice env A=b #RIPGREP_CONFIG_PATH=${RIPGREP_CONFIG_PATH}.i #PATH=/usr/bin:/bin #HOME=/nowhere ###
"""
"""What stands before a program, up to each number sign."""
CALLS = r"""
grep -rn foo .#grep -rl foo#grep -rni FOO sub#grep -rnw foo --include=*.c .#grep -rnE 'foo|bar' sub sub-y#grep -rn é .#
grep -rn zzz_none .#grep -rc foo .#grep -n foo a.txt#grep -rn "foo two" .#grep -rnP 'fo+\b' .#grep -Rn foo sub#
git grep -n foo#git grep -l foo -- '*.c'#git grep -in zzz_none#find . -type f -name '*.c'#find sub -type f -iname '*.H'#
find . -name '*.py'#find . -type f -not -path './.git/*' -name 'a*'#rg -n foo#rg -l foo sub#rg -i FOO -g '*.c'#rg zzz_none#
rg -n 'fo+ ' --sort path#rg --files sub#rg -c foo .#cat a.txt b.py#wc -l a.txt#
"""
AFTER = """
 | head -3# | sort | tail -2# 2>/dev/null# 2>&1 | wc -l# && echo yes# || echo no#; echo $?# | grep -v sub#####
 >/dev/null; echo $?#
"""


def list_cells(table: str) -> list[str]:
    """Return what is between the number signs of a table."""
    return table.strip("\n").replace("#\n", "#").split("#")


def draw(rng: random.Random) -> str:
    """Return a random line."""
    line = "".join(rng.choice(list_cells(table)) for table in (BEFORE, CALLS, AFTER))
    match rng.randrange(6):
        case 0:
            return f"(cd sub && {line})"
        case 1:
            words = line.replace("foo", "$word")
            return f"for word in foo bar; do {words}; done"
        case 2:
            return f'x=$({line}); echo "$x"'
        case _:
            return line


def compare_drawn(shell: Shell, rng: random.Random, lines: int) -> int:
    """Compare random lines with what they are rewritten to; return how many are."""
    rewritten = 0
    for _ in range(lines):
        line = draw(rng)
        changed = rewrite(line, "flashgrep").text
        if changed == line:
            continue
        rewritten += 1
        theirs = shell.run(["bash", "-c", line])
        ours = shell.run(["bash", "-c", changed])
        assert (ours.stdout, ours.status) == (theirs.stdout, theirs.status), line
    return rewritten


@pytest.fixture(scope="module")
def shell(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    root: Path = tmp_path_factory.mktemp("lines") / "tree"
    make_lines_tree(root)
    assert daemon.run("index", str(root)).returncode == 0
    yield make_shell(root, daemon.environ)
    assert daemon.run("projects", "remove", str(root)).returncode == 0


def make_lines_tree(root: Path) -> None:
    """Make a repository in which the drawn calls find something."""
    root.mkdir()
    make_tree(root)
    root.with_name("ripgreprc.i").write_text("--sort=path\n--ignore-case\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)


@pytest.mark.slow
def test_drawn_lines_print_the_same_through_the_hook(shell: Shell) -> None:
    assert compare_drawn(shell, random.Random(36), 60) > 20
