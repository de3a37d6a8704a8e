"""The client for Node, Bun and Deno, run by Node against a real daemon."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import FGREP, DaemonAtHand, MakeProject
from tests.support.examples import read_examples
from tests.support.git import git

NODE = shutil.which("node")
RUNTIMES = (("node",), ("bun", "run"), ("deno", "run", "--quiet", "-A"))
CLIENT = Path(__file__).parents[2] / "clients" / "typescript" / "index.js"
PROLOGUE = f"""
import {{ open, FlashgrepError, Unreachable }} from {json.dumps(CLIENT.as_uri())};
const told = {{}};
const project = await open(undefined, {{ command: {json.dumps(FGREP.removesuffix("fgrep") + "flashgrep")} }});
"""
EPILOGUE = """
project.close();
console.log(JSON.stringify(told));
"""
MANY = 2_500

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def run_node(
    daemon: DaemonAtHand, program: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a program as a module."""
    assert NODE is not None
    options = ("--input-type=module", "--eval")
    return daemon.run(*options, program, program=NODE, cwd=folder)


def run(daemon: DaemonAtHand, root: Path, program: str) -> Any:
    """Run a program between opening and closing a project; return what it told."""
    ended = run_node(daemon, PROLOGUE + program + EPILOGUE, root)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    return json.loads(ended.stdout)


def test_answers_come_whole_page_after_page(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    text = "".join(f"needle {number} naïve 😀\n" for number in range(MANY))
    root = project({"b.txt": text, "a.py": "def needle():\n    return 1\n"})
    told = run(
        daemon,
        root,
        """
        told.lines = [];
        for await (const hit of project.query("needle"))
          told.lines.push([hit.file_path, hit.start_line, hit.text]);
        told.few = [];
        for await (const hit of project.query("needle", { limit: 3 })) told.few.push(hit.start_line);
        told.roles = [];
        for await (const use of project.symbol("needle")) told.roles.push(use.role);
        told.files = [];
        for await (const file of project.files()) told.files.push(file.file_path);
        told.text = (await project.read("a.py")).content;
        """,
    )
    assert told["lines"] == [
        ["a.py", 1, "def needle():"],
        *(["b.txt", at, line] for at, line in enumerate(text.splitlines(), 1)),
    ]
    assert told["few"] == [1, 1, 2]
    assert told["roles"] == ["definition"]
    assert sorted(told["files"]) == ["a.py", "b.txt"]
    assert told["text"] == "def needle():\n    return 1\n"


def test_every_method_with_pages_is_read_to_its_end(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def needle():\n    return 1\n\n\nneedle()\nneedle()\n"})
    for subject in ("first", "second", "third"):
        git(root, "add", ".")
        git(root, "commit", "-q", "--allow-empty", "-m", subject)
    told = run(
        daemon,
        root,
        """
        const place = { path: "a.py", line: 1, column: 5 };
        told.uses = [];
        for (const limit of [1, undefined])
          for await (const use of project.each("references", { ...place, limit }))
            told.uses.push(use.selection_range.start_line);
        told.commits = [];
        for await (const commit of project.each("history", { limit: 2 })) told.commits.push(commit.subject);
        told.callers = 0;
        for await (const _ of project.each("code_research", { query: "who calls needle" })) told.callers += 1;
        told.lines = [];
        for await (const hit of project.each("query", { query: "needle()" })) told.lines.push(hit.start_line);
        told.indexed = (await project.index()).complete;
        told.best = (await project.searchCode("needle", { limit: 1 })).results[0].file_path;
        """,
    )
    assert told["uses"] == [1, 1, 5, 6]
    assert told["commits"] == ["third", "second"]
    assert told["callers"] > 0
    assert sorted(told["lines"]) == [1, 5, 6]
    assert (told["indexed"], told["best"]) == (True, "a.py")


@pytest.mark.parametrize("runtime", RUNTIMES, ids=[words[0] for words in RUNTIMES])
def test_the_example_of_its_readme_runs_as_it_is_printed(
    daemon: DaemonAtHand,
    project: MakeProject,
    tmp_path: Path,
    runtime: tuple[str, ...],
) -> None:
    runner, *options = runtime
    found = shutil.which(runner)
    if found is None:
        pytest.skip(f"{runner} is not installed")
    root = project({"src/lock.c": "\n\nint spin_lock(void) { return 1; }\n"})
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    git(root, "tag", "v1.2")
    (example,) = read_examples("clients/typescript/README.md")
    program = tmp_path / "example.mjs"
    program.write_text(example.text.replace('"flashgrep"', json.dumps(CLIENT.as_uri())))
    ended = daemon.run(*options, str(program), program=found, cwd=root)
    assert not ended.stderr
    assert ended.stdout == "src/lock.c:3: int spin_lock(void) { return 1; }\n"


def test_calls_run_side_by_side_and_errors_say_why(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    told = run(
        daemon,
        project({"a.py": "x = 1\n"}),
        """
        const calls = Array.from({ length: 40 }, () => project.read("a.py"));
        told.texts = (await Promise.all(calls)).map((read) => read.content);
        const fail = (call) => call.then(() => "", (error) => [error.name, error.reason]);
        told.method = await fail(project.call("nonsense"));
        told.misspelt = await project.call("qeury").catch((error) => error.message);
        try { project.read("a.py", 1, 10); } catch (error) { told.options = error.message; }
        told.pattern = await fail(project.call("query", { query: "(", mode: "regex" }));
        told.revision = await fail(project.rev("nowhere").read("a.py"));
        project.close();
        told.closed = (await fail(project.call("stats")))[0];
        """,
    )
    assert told["texts"] == ["x = 1\n"] * 40
    assert told["method"][0] == told["pattern"][0] == "FlashgrepError"
    assert told["misspelt"] == "Method not found: did you mean query?"
    assert told["options"] == "options are an object, as { limit: 10 }, not 1"
    assert told["pattern"][1] == "invalid_pattern"
    assert told["revision"][1] == "revision_not_found"
    assert told["closed"] == "Unreachable"


def test_a_call_that_is_given_up_ends_at_once_and_the_next_is_answered(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    told = run(
        daemon,
        project({"a.py": "x = 1\n"}),
        """
        const control = new AbortController();
        const call = project.call("index_codebase", {}, { signal: control.signal });
        control.abort(new Error("enough"));
        told.reason = await call.then(() => "answered", (error) => error.message);
        told.before = await project
          .call("stats", {}, { signal: AbortSignal.abort(new Error("never")) })
          .then(() => "answered", (error) => error.message);
        told.text = (await project.read("a.py")).content;
        """,
    )
    assert told == {"reason": "enough", "before": "never", "text": "x = 1\n"}


def test_a_program_that_is_not_there_is_said(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    program = f"""
    import {{ open }} from {json.dumps(CLIENT.as_uri())};
    await open(".", {{ command: "no-such-program" }}).catch((error) => console.log(error.name, error.message));
    """
    ended = run_node(daemon, program, tmp_path)
    assert ended.stdout.startswith("Unreachable cannot start no-such-program")


def test_a_program_that_speaks_no_json_is_said(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    for said in ("hello", "null"):
        other.write_text(f"#!/bin/sh\necho {said}\nexec cat >/dev/null\n")
        other.chmod(0o755)
        program = f"""
        import {{ open }} from {json.dumps(CLIENT.as_uri())};
        await open(".", {{ command: {json.dumps(str(other))} }})
          .catch((error) => console.log(error.name, error.message));
        """
        ended = run_node(daemon, program, tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith("Unreachable what ")
        assert "cannot be read" in ended.stdout
