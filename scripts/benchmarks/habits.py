"""What agents type in a shell, through ``flashgrep hook`` and as it is: the same lines, and what they cost.

A line is run in a fresh clone of this repository three times: as it was typed, with everything rewritten that may be, to
compare what is printed, and as the hook gives it to the host, which leaves alone what searches little. ripgrep sorts by
path, since the order of its threads is nobody's; all else is the programs' own.
"""

import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flashgrep.parts.hook.rewriting import rewrite
from scripts.benchmarks.private import FGREP, Client, adopt, private_daemon, wait_until

HABITS = Path(__file__).with_name("habits.txt")
HERE = Path(__file__).parents[2]
PROGRAM = str(Path(FGREP).with_name("flashgrep"))
BOUND = 120.0
COLUMNS = ("as typed", "rewritten", "as chosen", "hook")
"""How the lines that can be rewritten are run, and the hook itself."""


class Run(NamedTuple):
    """What a line printed, and the seconds that it took."""

    stdout: bytes
    status: int
    seconds: float
    processor: float


@dataclass(slots=True)
class Shell:
    """Runs lines in a folder, with the hook's answers of one daemon."""

    folder: Path
    environ: dict[str, str]

    def run(self, command: Sequence[str], text: str = "") -> Run:
        """Run a program to its end."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=BOUND,
        )
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        system = after.ru_stime - before.ru_stime
        return Run(done.stdout, done.returncode, seconds, user + system)

    def rewrite(self, line: str) -> tuple[str, Run]:
        """Return a line as the hook gives it to a host, and what the hook cost."""
        payload = {"tool_name": "Bash", "tool_input": {"command": line}}
        asked = self.run([PROGRAM, "hook", "claude-code"], json.dumps(payload))
        if not asked.stdout:
            return line, asked
        output = json.loads(asked.stdout)["hookSpecificOutput"]
        return str(output["updatedInput"]["command"]), asked


def read_habits() -> list[str]:
    """Return the lines that agents type."""
    lines = HABITS.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def make_shell(folder: Path, environ: dict[str, str]) -> Shell:
    """Return a shell with our programs first on PATH, in which ripgrep sorts."""
    settings = folder.with_name("ripgreprc")
    settings.write_text("--sort=path\n")
    path = f"{Path(FGREP).parent}{os.pathsep}{environ['PATH']}"
    more = {"PATH": path, "RIPGREP_CONFIG_PATH": str(settings), "LC_ALL": "C.UTF-8"}
    return Shell(folder, {**environ, **more})


def main(every: int = 1) -> int:
    """Print what every so many lines cost with and without the hook; 1: one prints something else."""
    with tempfile.TemporaryDirectory(prefix="habits") as temporary:
        base = Path(temporary)
        tree = base / "tree"
        subprocess.run(
            ["git", "clone", "-q", str(HERE), str(tree)], check=True, timeout=BOUND
        )
        with private_daemon(base / "state") as daemon:
            adopt(daemon, tree)
            client = Client(daemon.socket)
            wait_until(client, {"listing", "indexing"})
            client.close()
            return measure(make_shell(tree, daemon.environ), read_habits()[::every])


def measure(shell: Shell, lines: Sequence[str]) -> int:
    """Run lines with and without the hook, and print the sums."""
    wrong = 0
    size = 0
    runs_of: dict[str, list[Run]] = {name: [] for name in COLUMNS}
    chosen = 0
    for line in lines:
        changed = rewrite(line, "flashgrep").text
        theirs = shell.run(["bash", "-c", line])
        size += len(theirs.stdout)
        if changed == line:
            continue
        answer, question = shell.rewrite(line)
        ours = shell.run(["bash", "-c", changed])
        if (ours.stdout, ours.status) != (theirs.stdout, theirs.status):
            wrong += 1
            print(f"differs: {line}\n    run as: {changed}")
        runs = [theirs, ours, theirs, question]
        if answer != line:
            chosen += 1
            runs[2] = shell.run(["bash", "-c", answer])
        for name, run in zip(COLUMNS, runs, strict=True):
            runs_of[name].append(run)
    able = len(runs_of[COLUMNS[0]])
    print(
        f"{len(lines)} lines, {able} can be rewritten, {wrong} differ; {size:,} bytes"
    )
    print(f"the hook rewrites {chosen}; milliseconds of a shell's children each:")
    for name, runs in runs_of.items():
        wall = sum(run.seconds for run in runs) / max(1, len(runs))
        processor = sum(run.processor for run in runs) / max(1, len(runs))
        print(f"  {name:10} {wall * 1000:6.1f}, processor {processor * 1000:6.1f}")
    return int(wrong > 0)
