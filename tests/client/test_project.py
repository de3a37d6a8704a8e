"""``flashgrep.open``: typed answers of a real daemon, read to their end, over calls that are dropped and daemons that die."""

import ast
import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import flashgrep
import flashgrep.aio
from flashgrep.base.errors import FlashgrepError, ProviderUnavailable, read_error
from tests.conftest import BOUND, DaemonAtHand, MakeProject
from tests.support.git import commit

LOCKS = '''"""Locks."""


class Lock:
    def take(self) -> None:
        self.count = take_lock(self)


def take_lock(lock: Lock) -> int:
    """Take it."""
    return 1


def use() -> None:
    take_lock(Lock())
'''
CALLS = "from locks import take_lock\n\n\ndef twice():\n    take_lock(1)\n    take_lock(2)\n"


def enter(monkeypatch: pytest.MonkeyPatch, daemon: DaemonAtHand) -> None:
    """Let the client of this process find the test's daemon."""
    for name, value in daemon.environ.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def tree(
    monkeypatch: pytest.MonkeyPatch, daemon: DaemonAtHand, project: MakeProject
) -> Path:
    """Return a small project of the module's daemon."""
    enter(monkeypatch, daemon)
    return project({"src/locks.py": LOCKS, "src/calls.py": CALLS, "a.txt": "text\n"})


@contextmanager
def in_recv() -> Iterator[threading.Event]:
    """Set the event once a thread started inside waits for bytes of a socket."""
    waiting = threading.Event()

    def note(_frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") == "recv":
            waiting.set()

    threading.setprofile(note)
    try:
        yield waiting
    finally:
        threading.setprofile(None)


def test_importing_it_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import flashgrep; print(*(set(sys.modules) - before))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["flashgrep"]


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    declared = set()
    for node in ast.walk(ast.parse(Path(flashgrep.__file__).read_bytes())):
        if isinstance(node, ast.ImportFrom):
            declared |= {alias.asname or alias.name for alias in node.names}
    assert declared | {"__version__"} == set(flashgrep.__all__)
    for name in flashgrep.__all__:
        assert getattr(flashgrep, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Projekt'"):
        _ = flashgrep.Projekt  # type: ignore[attr-defined]


def test_hits_are_values_that_print_as_places(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        hits = project.query(r"def \w+_lock", regex=True, glob="src/**")
        (hit,) = hits
        assert isinstance(hit, flashgrep.Hit)
        assert (hit.path, hit.line, hit.column) == (Path("src/locks.py"), 9, 1)
        assert str(hit) == "src/locks.py:9: def take_lock(lock: Lock) -> int:"
        assert hits.total == 1
        assert hits.complete
        assert project.root == tree.resolve()


def test_all_of_an_answer_comes_whatever_its_size(tree: Path) -> None:
    lines = 25_000
    (tree / "big.txt").write_text("".join(f"needle {at}\n" for at in range(lines)))
    with flashgrep.open(tree) as project:
        hits = project.query("needle", mode="literal", order="path")
        assert [hit.line for hit in hits] == list(range(1, lines + 1))
        assert hits.total == lines
        assert len(list(project.query("needle", limit=1_500))) == 1_500
        (count,) = project.count("needle")
        assert (count.path, count.count) == (Path("big.txt"), lines)


def test_the_other_forms_of_a_question_that_were_not_asked_are_named(
    tree: Path,
) -> None:
    with flashgrep.open(tree) as project:
        hits = project.query(r"def \w+_lock")
        assert hits.fallback == "regex"
        assert hits
        assert not project.query("not in there", mode="literal")


def test_a_loop_sees_what_was_saved_before_it(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        hits = project.query("text")
        assert hits.total == 1
        assert len(list(hits)) == 1
        (tree / "b.txt").write_text("text\ntext\n")
        assert len(list(hits)) == 3
        assert hits.total == 3


def test_files_are_paths_and_those_with_sizes_are_values(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        assert list(project.files()) == [
            Path("a.txt"),
            Path("src/calls.py"),
            Path("src/locks.py"),
        ]
        assert project.files("lock").first() == Path("src/locks.py")
        (file,) = project.glob("*.txt")
        assert (file.path, file.size) == (Path("a.txt"), 5)


def test_a_name_leads_to_its_definition_and_its_callers(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        symbol = project.symbol("take_lock").first()
        assert symbol is not None
        assert (symbol.role, symbol.kind, symbol.line) == ("definition", "function", 9)
        callers = {caller.name: len(caller.uses) for caller in project.callers(symbol)}
        assert callers == {"take": 1, "use": 1, "twice": 2}
        assert callers.keys() == {it.name for it in project.callers("take_lock")}
        (call,) = project.query("take_lock(1)", mode="literal")
        (definition,) = project.definition((call.path, call.line, call.column))
        assert definition.path == symbol.path
        roles = {use.role for use in project.references("src/locks.py:9:5")}
        assert {"definition", "import", "call"} <= roles
        assert [entry.name for entry in project.outline("src/calls.py")] == ["twice"]
        assert project.read(symbol).text == "".join(LOCKS.splitlines(True)[8:11])


def test_a_name_that_several_have_is_refused_with_its_definitions(tree: Path) -> None:
    (tree / "src/other.py").write_text("def take_lock(): ...\n")
    with flashgrep.open(tree) as project:
        with pytest.raises(flashgrep.Ambiguous, match="2 definitions") as caught:
            project.callers("take_lock").first()
        paths = {definition.path.name for definition in caught.value.definitions}
        assert paths == {"locks.py", "other.py"}
        with pytest.raises(flashgrep.NotFound, match="not found: take_lok"):
            project.callers("take_lok").first()


def test_a_file_of_any_size_is_read_whole_and_a_name_may_be_any_bytes(
    tree: Path,
) -> None:
    text = "".join(f"line {at} {'x' * 50}\n" for at in range(20_000))
    odd = os.fsencode(tree) + b"/caf\xe9.txt"
    Path(os.fsdecode(odd)).write_text(text)
    with flashgrep.open(tree) as project:
        (hit,) = project.query("line 19999", mode="literal")
        assert os.fsencode(hit.path) == b"caf\xe9.txt"
        whole = project.read(hit.path)
        assert whole.text == text
        assert (whole.start_line, whole.end_line) == (1, 20_000)
        assert project.read(hit).lines == [text.splitlines()[-1]]
        assert project.read("src/calls.py:4-5").lines == CALLS.splitlines()[3:5]
        assert project.read("src/calls.py", 2).start_line == 2
        assert project.read(symbol_name="twice", symbol_context_lines=0).start_line == 4


def test_code_is_found_by_meaning_once_it_is_indexed(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        assert project.index()["stage"] == "ready"
        chunks = list(project.search_code("take a lock", limit=3))
        assert 0 < len(chunks) <= 3
        assert chunks[0].path == Path("src/locks.py")
        assert project.stats().get("total_files") == 3


def test_a_revision_is_asked_with_the_same_methods(tree: Path) -> None:
    commit(tree, "first")
    (tree / "a.txt").write_text("other\n")
    with flashgrep.open(tree) as project:
        before = project.rev("HEAD")
        assert before.read("a.txt").text == "text\n"
        assert before.query("text").total == 1
        assert project.query("text").total == 0
        (change,) = project.changes()
        assert (change.path, change.status) == (Path("a.txt"), "modified")
        with pytest.raises(flashgrep.InvalidParams, match="no revisions"):
            before.stats()


def test_edits_are_written_together_or_not_at_all(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        text = project.read("a.txt")
        with project.edit() as edit:
            edit.replace(text, old="text", new="other")
            edit.replace("src/calls.py", "take_lock", "use_lock", everywhere=True)
            edit.create("src/b.txt", "b\n")
            assert "+other" in edit.preview()
            assert (tree / "a.txt").read_text() == "text\n"
        assert edit.result is not None
        assert (tree / "a.txt").read_text() == "other\n"
        assert (tree / "src/b.txt").read_text() == "b\n"
        assert "use_lock(1)" in (tree / "src/calls.py").read_text()
        # The file has changed since it was read, so neither edit is applied.
        edit = project.edit()
        edit.replace("src/calls.py", "twice", "thrice")
        edit.replace(text, old="other", new="third")
        with pytest.raises(flashgrep.Conflict), edit:
            pass
        assert "thrice" not in (tree / "src/calls.py").read_text()
        edit = project.edit()
        edit.create("never.txt", "")
        with pytest.raises(KeyError), edit:
            raise KeyError
        assert not (tree / "never.txt").exists()


def test_an_answer_shows_what_it_asks_and_asks_nothing_for_it(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        hits = project.query("needle", glob="*.txt")
        callers = project.callers("needle")
    # The project is closed: a question would fail.
    assert repr(hits).startswith("<Results of query(query='needle', glob='*.txt', ")
    assert repr(callers).startswith("<Results of callers(at='needle'")


def test_failures_are_exceptions_of_the_error_tree(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        with pytest.raises(flashgrep.BadPattern) as caught:
            project.query("(", regex=True).first()
        assert (caught.value.reason, caught.value.data["at"]) == ("invalid_pattern", 0)
        with pytest.raises(flashgrep.InvalidParams, match="did you mean include"):
            project.query("x", inclde="y").first()  # type: ignore[call-arg]
        with pytest.raises(flashgrep.NotFound, match=r"near: a\.txt"):
            project.read("b.txt")
        with pytest.raises(flashgrep.FlashgrepError, match="Method not found") as gone:
            project.call("qurey")
        # Shown below the message in a traceback.
        assert gone.value.__notes__ == ["did you mean query?"]
    with pytest.raises(flashgrep.Unreachable, match="closed"):
        project.query("x").first()


def test_every_class_of_the_tree_comes_back_as_itself() -> None:
    classes = [FlashgrepError]
    for kind in classes:
        classes += kind.__subclasses__()
        if kind.__module__ != "flashgrep.base.errors":
            continue
        error = kind("said", where=1)
        copy = read_error(error.to_object())
        assert (type(copy), copy.to_object()) == (kind, error.to_object())
    assert ProviderUnavailable in classes
    other = read_error({"code": -32001, "message": "m", "data": {"reason": "new"}})
    assert (type(other), other.reason) == (flashgrep.NotFound, "new")


def test_the_strict_are_told_of_what_an_answer_does_not_cover(tree: Path) -> None:
    (tree / "big.txt").write_text("needle\n" * 300_000)
    slow = {"deadline_ms": 1, "use_index": False}
    with flashgrep.open(tree) as project:
        hits = project.query("need.*e", regex=True, **slow)  # type: ignore[arg-type]
        assert not hits.complete
    with (
        flashgrep.open(tree, strict=True) as project,
        pytest.raises(flashgrep.Incomplete) as caught,
    ):
        project.query("need.*e", regex=True, **slow).first()  # type: ignore[arg-type]
    assert caught.value.data["coverage"]["complete"] is False


def test_a_folder_in_no_project_must_be_named(
    monkeypatch: pytest.MonkeyPatch, daemon: DaemonAtHand, tmp_path: Path
) -> None:
    enter(monkeypatch, daemon)
    (tmp_path / "a.txt").write_text("text\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(flashgrep.FlashgrepError, match="name a folder"):
        flashgrep.open()
    with pytest.raises(flashgrep.FlashgrepError, match="name its folder"):
        flashgrep.open(tmp_path / "a.txt")
    with flashgrep.open(tmp_path) as project:
        assert project.query("text").total == 1
    with flashgrep.open() as project:
        assert project.root == tmp_path


def test_threads_share_a_project(tree: Path) -> None:
    for at in range(40):
        (tree / f"{at}.txt").write_text(f"needle{at}\n" * (at + 1))
    with flashgrep.open(tree) as project, ThreadPoolExecutor(40) as threads:

        def ask(at: int) -> int:
            return len(list(project.query(f"needle{at}", word=True)))

        assert list(threads.map(ask, range(40))) == list(range(1, 41))


def test_of_processes_that_open_a_project_at_once_one_starts_the_daemon(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "text\n"})
    program = "import flashgrep, sys; p = flashgrep.open(sys.argv[1]); print(p.query('text').total)"
    command = [sys.executable, "-c", program, str(root)]
    runs = [
        subprocess.Popen(command, env=cold_daemon.environ, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [run.communicate(timeout=BOUND)[0] for run in runs] == [b"1\n"] * 3
    assert [run.returncode for run in runs] == [0] * 3


def test_a_process_forked_off_has_connections_of_its_own(tree: Path) -> None:
    with flashgrep.open(tree) as project:
        assert project.query("text").total == 1
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.write(writer, str(project.query("take_lock").total).encode())
            os._exit(0)
        os.close(writer)
        assert project.query("text").total == 1
        assert os.read(reader, 10) == b"6"
        os.close(reader)
        os.waitpid(child, 0)


class Stopped:
    """A daemon that is stopped in the middle of what it does, and then goes on or is killed."""

    def __init__(self, daemon: DaemonAtHand) -> None:
        self.pid: int = daemon.status()["pid"]
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def cold_tree(
    monkeypatch: pytest.MonkeyPatch, cold_daemon: DaemonAtHand, project: MakeProject
) -> Path:
    """Return a small project of a daemon that a test may kill."""
    enter(monkeypatch, cold_daemon)
    return project({"a.txt": "text\n"})


def test_a_question_is_asked_again_if_the_daemon_is_killed_in_the_middle(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    with flashgrep.open(cold_tree) as project, ThreadPoolExecutor(1) as thread:
        assert project.query("text").total == 1
        stopped = Stopped(cold_daemon)
        with in_recv() as waiting:
            total = thread.submit(lambda: project.query("text").total)
            assert waiting.wait(BOUND)
        stopped.kill()
        assert total.result(BOUND) == 1
        assert cold_daemon.status()["pid"] != stopped.pid


def test_pages_go_on_with_the_next_daemon(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    (cold_tree / "big.txt").write_text("".join(f"needle {at}\n" for at in range(3_000)))
    with flashgrep.open(cold_tree) as project:
        lines = []
        for hit in project.query("needle", order="path"):
            if hit.line == 500:
                cold_daemon.stop()
            lines.append(hit.line)
        assert lines == list(range(1, 3_001))


def test_an_edit_is_not_repeated_if_the_daemon_is_killed_in_the_middle(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    with flashgrep.open(cold_tree) as project, ThreadPoolExecutor(1) as thread:
        assert project.query("text").total == 1
        stopped = Stopped(cold_daemon)
        edit = project.edit()
        edit.replace("a.txt", "text", "text text")

        def apply() -> None:
            with edit:
                pass

        with in_recv() as waiting:
            writing = thread.submit(apply)
            assert waiting.wait(BOUND)
        stopped.kill()
        with pytest.raises(flashgrep.Unreachable, match="may or may not"):
            writing.result(BOUND)
        assert (cold_tree / "a.txt").read_text() == "text\n"
        # A daemon that is gone before an edit is sent takes nothing away from it.
        assert project.query("text").total == 1
        cold_daemon.stop()
        apply()
        assert (cold_tree / "a.txt").read_text() == "text text\n"


def test_a_late_answer_is_not_taken_for_that_of_the_next_question(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    with flashgrep.open(cold_tree) as project:
        assert project.query("text").total == 1
        stopped = Stopped(cold_daemon)
        project._connections.timeout = 0.05
        with pytest.raises(flashgrep.DeadlineExceeded, match="no answer to list_files"):
            project.files().first()
        stopped.go_on()
        project._connections.timeout = BOUND
        assert project.query("text").total == 1


async def test_tasks_share_an_asynchronous_project(tree: Path) -> None:
    for at in range(40):
        (tree / f"{at}.txt").write_text(f"needle{at}\n" * (at + 1))
    async with flashgrep.aio.open(tree) as project:

        async def ask(at: int) -> int:
            return len(await project.query(f"needle{at}", word=True).all())

        totals = await asyncio.gather(*map(ask, range(40)))
        assert totals == list(range(1, 41))
        async for hit in project.query("take_lock(1)", mode="literal"):
            assert str(hit) == "src/calls.py:5:     take_lock(1)"
        hits = await project.query("needle3").begin()
        assert (hits.total, hits.complete, hits.skipped) == (
            4 + sum(range(31, 41)),
            True,
            {},
        )
        first = await project.symbol("take_lock").first()
        assert first is not None
        assert first.line == 9
        assert len(await project.callers("take_lock").all()) == 3
        assert (await project.read("a.txt")).text == "text\n"
        async with project.edit() as edit:
            edit.replace("a.txt", "text", "other")
            assert "+other" in await edit.preview()
        assert (await project.read("a.txt")).text == "other\n"
        with pytest.raises(flashgrep.BadPattern):
            await project.query("(", regex=True).all()


def test_both_kinds_of_project_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, Callable[..., Any]]:
        return {
            name: value
            for name, value in vars(kind).items()
            if not name.startswith("_") and callable(value)
        }

    blocking, asynchronous = methods(flashgrep.Project), methods(flashgrep.aio.Project)
    assert blocking.keys() == asynchronous.keys()
    for name, method in blocking.items():
        taken = method.__code__.co_varnames[: method.__code__.co_argcount]
        other = asynchronous[name]
        assert taken == other.__code__.co_varnames[: other.__code__.co_argcount], name
        assert method.__doc__ is not None


async def test_a_cancelled_call_leaves_the_project_usable(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    project = await flashgrep.aio.open(cold_tree)
    assert (await project.query("text").begin()).total == 1
    stopped = Stopped(cold_daemon)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await project.query("text").all()
    stopped.go_on()
    assert len(await project.query("text").all()) == 1
    project.close()


async def test_an_asynchronous_question_is_asked_again_if_the_daemon_is_killed(
    cold_daemon: DaemonAtHand, cold_tree: Path
) -> None:
    async with flashgrep.aio.open(cold_tree) as project:
        assert (await project.query("text").begin()).total == 1
        stopped = Stopped(cold_daemon)
        answer = asyncio.ensure_future(project.query("text").all())
        await asyncio.sleep(0)
        stopped.kill()
        assert len(await asyncio.wait_for(answer, BOUND)) == 1
