"""The examples of docs/terminal.md and docs/scripts.md, run as they are printed in a project that has what they name."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.git import commit, git

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
FILES = {
    "mm/page.c": "/* TODO */\nint spin_lock(void)\n{\n\treturn 0;\n}\n",
    "kernel/sched/core.c": "int schedule;\n",
    "src/lock.rs": "fn try_lock(a: u8) {}\n",
    "src/main.py": '''"""Reads, and removes stale sockets."""


class Parser:
    lines = 0

    def feed(self):
        self.lines += 1


# Called below.
def foo(first, second):
    return first + second


def main():
    Parser().feed()
    foo(1, 2)
''',
}
NEEDS = {
    "pick": "a terminal; tested with one in tests/pick",
}
"""Commands of the page that are not run here, and why."""


@pytest.fixture
def linux(project: MakeProject) -> Path:
    """Return a clone with a tag, a branch and a change, in ``src/linux`` of a home folder."""
    root = project(FILES, name="linux")
    git(root, "checkout", "-q", "-b", "main")
    commit(root)
    git(root, "tag", "v1.2")
    git(root, "checkout", "-q", "-b", "work")
    (root / "kernel/sched/core.c").write_text("int schedule(void) { return 1; }\n")
    commit(root)
    (root.parent / "src").mkdir()
    (root.parent / "src" / "linux").symlink_to(root)
    return root


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell")
def test_every_command_of_the_page_for_terminals_finds_what_it_names(
    cold_daemon: DaemonAtHand, linux: Path
) -> None:
    lines = BLOCK.findall((DOCS / "terminal.md").read_text("utf-8"))[0].splitlines()
    assert len(lines) > 15
    programs = os.pathsep.join((str(Path(FGREP).parent), cold_daemon.environ["PATH"]))
    environ = {**cold_daemon.environ, "PATH": programs, "HOME": str(linux.parent)}
    for line in lines:
        if line.split()[1] in NEEDS:
            continue
        ran = subprocess.run(
            ["bash", "-c", line],
            cwd=linux,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * BOUND,
            check=False,
        )
        assert ran.returncode == 0, (line, ran.stderr)
        assert ran.stdout, line


def test_the_request_of_the_page_for_scripts_is_answered(
    daemon: DaemonAtHand, linux: Path
) -> None:
    (block,) = BLOCK.findall((DOCS / "scripts.md").read_text("utf-8"))
    request = block.partition("'")[2].partition("'")[0]
    request = request.replace("/home/me/src/linux", str(linux))
    answer = json.loads(daemon.run("rpc", cwd=linux, stdin=f"{request}\n").stdout)
    assert [hit["file_path"] for hit in answer["result"]["results"]] == ["mm/page.c"]
