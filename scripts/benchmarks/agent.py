"""The cost of an agent's everyday questions: flashgrep over MCP, an expert with rg and sed, and an agent's habits.

Tokens of calls and answers are counted by tiktoken (cl100k) if it is installed, else as characters / 4. The packages
are those of ``scripts/eval_search``, fetched by their registries' own clients.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.benchmarks import habits
from scripts.benchmarks.search.packages import packages, unpacked

TASKS: Final = tuple(
    Path(__file__).with_name(name)
    for name in ("agent_tasks.toml", "agent_tasks_later.toml")
)
"""The second file was written after the answers had got their format; each file must keep to the bars by itself."""
FGREP: Final = Path(sys.executable).with_name("fgrep")
READY_SECONDS: Final = 300
SED: Final = re.compile(r"sed -n '(\d+),(\d+)p' \S+")
NUMBERED: Final = re.compile(r"^(?:[^:\n]+:)?(\d+):", re.MULTILINE)
"""Line numbers in rg's output."""
LEAD: Final = 15
"""Lines before a hit at which a read may start, to show the beginning of its function."""
MOST_OF_EXPERT, MOST_OF_HABIT, MOST_OF_A_TASK = 0.8, 0.35, 1.3


class Cost(NamedTuple):
    """Calls, and tokens of calls and answers."""

    calls: int
    tokens: int
    answers: list[str]


class Totals(NamedTuple):
    """The costs of one file's tasks with flashgrep, for the expert and for habits, and missing facts."""

    tokens: tuple[int, int, int]
    again: int
    """Tokens of the further calls where flashgrep's first answer lacked a fact, beyond ``tokens``."""
    worst: float
    """The highest ratio of flashgrep's tokens to the expert's, over all tasks."""
    late: int
    """Facts that flashgrep showed only then."""
    missing: int
    """Facts that flashgrep or the expert did not show."""

    @property
    def is_within_bars(self) -> bool:
        """Return whether the costs are within the bars."""
        ours, expert, habit = self.tokens
        return (
            ours <= MOST_OF_EXPERT * expert
            and ours <= MOST_OF_HABIT * habit
            and self.worst <= MOST_OF_A_TASK
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all tasks; return 1 if a first answer lacks a fact, or with ``--check`` if a bar is missed."""
    usual = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "flashgrep-eval"
    )
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cache",
        type=Path,
        default=usual,
        help="folder of packages (usual: %(default)s)",
    )
    parser.add_argument(
        "--only", default="", help="only tasks whose need or repository contains this"
    )
    parser.add_argument("--show", action="store_true", help="print flashgrep's answers")
    parser.add_argument("--check", action="store_true", help="fail if a bar is missed")
    parser.add_argument(
        "--habits",
        type=int,
        metavar="N",
        help="instead: each N-th of the lines that agents type in a shell, with and without the hook",
    )
    options = parser.parse_args(argv)
    if options.habits:
        return habits.main(options.habits)
    options.cache.mkdir(parents=True, exist_ok=True)
    totals = []
    for file in TASKS:
        tasks = tomllib.loads(file.read_text(encoding="utf-8"))["task"]
        if tasks := [
            task
            for task in tasks
            if options.only in task["need"] or options.only == task["repository"]
        ]:
            print(
                f"\n{file.name}\n\n| task | flashgrep | expert | habit | of expert |\n|---|---|---|---|---|"
            )
            totals.append(measure_tasks(tasks, options.cache, show=options.show))
            (ours, expert, habit), again, worst, late, missing = totals[-1]
            shares = f"{ours / expert:.3f} (of habit {ours / habit:.2f})"
            print(f"| **all {len(tasks)}** | {ours} | {expert} | {habit} | {shares} |")
            print(
                f"worst task {worst:.2f} of the expert; {late} facts by a further call, with these calls "
                f"{(ours + again) / expert:.3f}; {missing} facts missing"
            )
    reached = all(each.is_within_bars for each in totals)
    # The further calls were written after it was seen what was missing: they tell what an
    # agent pays for it, and excuse nothing.
    lacking = any(each.late or each.missing for each in totals)
    return int(lacking or (options.check and not reached))


def measure_tasks(
    tasks: Sequence[dict[str, Any]], cache: Path, *, show: bool
) -> Totals:
    """Return what tasks cost in the three ways, and print each one's row."""
    wanted = {task["repository"] for task in tasks}
    folders = {
        one.repository: unpacked(one, cache)
        for one in packages()
        if one.repository in wanted
    }
    count = make_counter()
    spent, missing, worst = [0, 0, 0], 0, 0.0
    again = 0
    late = 0
    with a_daemon() as environ:
        for repository, package in folders.items():
            # Tasks write: each way has a copy of its own.
            folder, other = (
                Path(environ["HOME"]) / way / repository
                for way in ("asked", "searched")
            )
            # A daemon that has the package as a project has a socket in it.
            no_state = shutil.ignore_patterns(".flashgrep")
            shutil.copytree(package, folder, ignore=no_state)
            shutil.copytree(package, other, ignore=no_state)
            with a_client(folder, environ) as call:
                for task in (
                    task for task in tasks if task["repository"] == repository
                ):
                    ours = measure(task["ask"], call, count)
                    expert, habit = (
                        measure(task[who], shell_in(other), count)
                        for who in ("expert", "habit")
                    )
                    if unseen := find_unseen_lines(task["expert"], expert.answers):
                        raise SystemExit(
                            f"{task['need']}: the expert reads lines that no answer has shown: {unseen}"
                        )
                    lacking = find_lacking(task, ours.answers)
                    if lacking:
                        further = measure(task.get("again", ()), call, count)
                        again += further.tokens
                        late += len(lacking)
                        lacking = find_lacking(task, [*ours.answers, *further.answers])
                        late -= len(lacking)
                    for who, facts in (
                        ("flashgrep", lacking),
                        ("expert", find_lacking(task, expert.answers)),
                    ):
                        missing += len(facts)
                        if facts:
                            print(
                                f"{task['need']}: {who} lacks {facts}",
                                file=sys.stderr,
                            )
                    spent = [
                        total + cost.tokens
                        for total, cost in zip(
                            spent, (ours, expert, habit), strict=True
                        )
                    ]
                    worst = max(worst, ours.tokens / expert.tokens)
                    costs = " | ".join(
                        f"{cost.tokens} ({cost.calls})"
                        for cost in (ours, expert, habit)
                    )
                    print(
                        f"| {task['need']} | {costs} | {ours.tokens / expert.tokens:.2f} |"
                    )
                    if show:
                        print(*ours.answers, sep="\n")
    return Totals((spent[0], spent[1], spent[2]), again, worst, late, missing)


def find_lacking(task: dict[str, Any], answers: Sequence[str]) -> list[str]:
    """Return the facts of a task that no answer shows."""
    text = "\n".join(answers)
    return [fact for fact in task["facts"] if fact not in text]


def measure(
    steps: Sequence[Any],
    run: Callable[[Any], tuple[str, str]],
    count: Callable[[str], int],
) -> Cost:
    """Return the cost of steps; ``run`` returns the texts of a call and of its answer."""
    said = [run(step) for step in steps]
    return Cost(
        len(said),
        sum(count(each) for pair in said for each in pair),
        [answer for _, answer in said],
    )


def find_unseen_lines(commands: Sequence[str], answers: Sequence[str]) -> list[str]:
    """Return the reads that start neither near a line shown before, nor at the end of an earlier read."""
    unseen, known = [], set[int]()
    for command, answer in zip(commands, answers, strict=True):
        if read := SED.fullmatch(command):
            first, last = int(read[1]), int(read[2])
            if not any(first + ahead in known for ahead in range(LEAD + 1)):
                unseen.append(command)
            known.add(last + 1)
        known.update(int(line) for line in NUMBERED.findall(answer))
    return unseen


def make_counter() -> Callable[[str], int]:
    """Return a function that counts a text's tokens."""
    try:
        import tiktoken  # type: ignore[import-not-found]  # noqa: PLC0415 - nothing that the project needs
    except ImportError:
        return lambda text: -(-len(text) // 4)
    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def shell_in(folder: Path) -> Callable[[str], tuple[str, str]]:
    """Return a function that runs a command line in a folder, with this environment's rg."""
    path = f"{FGREP.parent}{os.pathsep}{os.environ['PATH']}"

    def run(command: str) -> tuple[str, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        return command, done.stdout.decode("utf-8", "replace")

    return run


@contextmanager
def a_daemon() -> Iterator[dict[str, str]]:
    """Yield the environment of a separate daemon; stop it and remove its state at the end."""
    state = Path(tempfile.mkdtemp(prefix="fg"))
    homes = {
        "HOME": str(state),
        "XDG_CONFIG_HOME": str(state),
        "XDG_CACHE_HOME": str(state),
    }
    environ = {
        **os.environ,
        **homes,
        "FLASHGREP_STATE_DIR": str(state / "state"),
        "FLASHGREP_TCP_PORT": "0",
    }
    try:
        yield environ
    finally:
        subprocess.run(
            [FGREP, "daemon", "stop"], env=environ, capture_output=True, check=False
        )
        shutil.rmtree(state, ignore_errors=True)


@contextmanager
def a_client(
    folder: Path, environ: dict[str, str]
) -> Iterator[Callable[[dict[str, Any]], tuple[str, str]]]:
    """Yield a function that calls a tool like a host: returns the call and its answer as a model sees them."""
    command = [
        str(FGREP),
        "mcp",
        "--project",
        str(folder),
        "--toolsets",
        "default",
    ]
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        numbers = iter(range(1, 1_000_000))

        def ask(method: str, params: dict[str, Any]) -> Any:
            number = next(numbers)
            message = {
                "jsonrpc": "2.0",
                "id": number,
                "method": method,
                "params": params,
            }
            print(json.dumps(message), file=process.stdin, flush=True)
            for line in process.stdout or ():
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer["result"]
            raise RuntimeError("the server has ended")

        def call(step: dict[str, Any]) -> tuple[str, str]:
            arguments = {name: value for name, value in step.items() if name != "tool"}
            result = ask("tools/call", {"name": step["tool"], "arguments": arguments})
            text = "".join(part["text"] for part in result["content"])
            return f"{step['tool']} {json.dumps(arguments)}", text

        ask(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        until = time.monotonic() + READY_SECONDS
        call({"tool": "index_codebase", "path": str(folder)})
        while "ready" not in call({"tool": "stats"})[1] and time.monotonic() < until:
            time.sleep(0.5)
        yield call
        process.terminate()


if __name__ == "__main__":
    sys.exit(main())
