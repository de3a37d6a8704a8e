"""Worker processes answer lookups as the daemon does, whatever changes meanwhile, and whatever becomes of them."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.base.scheduler import FLOW, Scheduler
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace, lookup_workers, worker_processes
from flashgrep.project.lookup_workers import CROWD, LookupWorker, LookupWorkers
from flashgrep.search.exact import Answer, Order, Output, Question
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.rankings import RANKINGS
from tests.support.workspace import BOUND, ask, files_with, options_for, put, repository

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
CLIENTS = 64
TURNS = 3
ORDERS: tuple[Order, ...] = ("path", "relevance")
OUTPUTS: tuple[Output, ...] = ("lines", "files", "count")
FILES = {
    f"src/{number}.c": b"int value_%d;\nint common;\n" % number for number in range(50)
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_workers, "START_SECONDS", 0.0)
    monkeypatch.setattr(lookup_workers, "TEND_SECONDS", 0.05)
    monkeypatch.setattr(lookup_workers, "RETRY_SECONDS", 0.05)


@dataclass
class Pool:
    """Projects of one daemon, with their workers."""

    workers: LookupWorkers
    scheduler: Scheduler
    tasks: anyio.abc.TaskGroup
    threads: int = 0
    """Look-ups done in threads."""
    opened: list[Workspace] = field(default_factory=list)

    async def open(self, root: Path) -> Workspace:
        workspace = Workspace(
            root.name,
            os.fsencode(root),
            options_for(root),
            scheduler=self.scheduler,
            workers=self.workers,
        )
        self.opened.append(workspace)
        await workspace.open(self.tasks)
        await workspace.wait_parsed()
        return workspace

    async def started(self, workspace: Workspace) -> LookupWorker:
        """Have a worker started that has the project loaded, and wait until it is free."""
        place = workspace.lookups
        while (worker := self.workers.free(place)) is None:
            self.workers.want(place, 1)
            await anyio.sleep(0.01)
        return worker


@asynccontextmanager
async def pool(monkeypatch: pytest.MonkeyPatch, most: int = 2) -> AsyncIterator[Pool]:
    workers = LookupWorkers(most)
    async with anyio.create_task_group() as tasks:
        workers.open(tasks)
        made = Pool(workers, Scheduler(workers), tasks)
        run = made.scheduler._execute

        def count(task: Any, work: Any) -> Any:
            made.threads += 1
            return run(task, work)

        monkeypatch.setattr(made.scheduler, "_execute", count)
        with anyio.fail_after(BOUND):
            yield made
        for workspace in made.opened:  # or their indexers stay
            await workspace.close()
        workers.close()
        tasks.cancel_scope.cancel()


def question(
    text: str, *, output: Output = "lines", seconds: float = BOUND
) -> Question:
    pattern = Pattern(texts=(text,), mode="literal", case="sensitive")
    return Question(pattern=pattern, output=output, deadline=time.monotonic() + seconds)


async def test_a_worker_answers_as_a_thread_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(
            root,
            {
                **FILES,
                "binary": b"common\0",
                ".gitignore": b"ignored\n",
                "ignored": b"common\n",
            },
        )
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            pattern = Pattern(texts=(r"value_\d$|common",))
            asked = [
                Question(
                    pattern=pattern,
                    ranking=RANKINGS[order],
                    limit=limit,
                    output=output,
                    before=1,
                )
                for order in ORDERS
                for output in OUTPUTS
                for limit in (3, 1000)
            ]
            here = [await workspace.search(each) for each in asked]
            await made.started(workspace)
            before = made.threads
            assert [await workspace.search(each) for each in asked] == here
            assert not (await workspace.search(asked[0], max_file_size=5)).results
            assert made.threads == before


async def test_nobody_waits_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            for number in range(20):
                assert len(await files_with(workspace, f"value_{number};")) == 1
            assert not made.workers._workers


async def test_a_crowd_waits_for_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_workers, "START_SECONDS", 1000.0)
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch, most=2) as made:
            workspace = await made.open(root)
            made.workers.want(workspace.lookups, CROWD - 1)
            assert not made.workers._starting
            made.workers.want(workspace.lookups, CROWD)
            while (worker := made.workers.free(workspace.lookups)) is None:
                await anyio.lowlevel.checkpoint()
            assert len(await files_with(workspace, "common")) == len(FILES)
            assert worker in made.workers._workers


async def test_a_worker_that_has_loaded_no_file_finds_those_that_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, {"first.c": b"int first;\n"})
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            (root / "first.c").unlink()
            await workspace.refresh()
            await workspace.wait_indexed()
            assert not len(workspace.tree.table)
            await made.started(workspace)
            before = made.threads
            assert not await files_with(workspace, "int")
            put(root, {"second.c": b"int second;\n"})
            assert await files_with(workspace, "int") == {b"second.c"}
            assert made.threads == before


async def test_many_clients_get_the_newest_while_files_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each client saves and asks; more files change than a worker is told of, so that it reads the index again."""
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)

            async def client(number: int) -> None:
                FLOW.set(number)
                for turn in range(TURNS):
                    put(
                        root,
                        {
                            f"src/{number}.c": b"int newest_%d_%d;\nint common;\n"
                            % (number, turn)
                        },
                    )
                    assert await files_with(workspace, f"newest_{number}_{turn};") == {
                        b"src/%d.c" % number
                    }
                assert not await files_with(workspace, f"newest_{number}_0;")

            await made.started(workspace)
            before = made.threads
            async with anyio.create_task_group() as clients:
                for number in range(CLIENTS):
                    clients.start_soon(client, number)
            assert (
                made.threads - before < (TURNS + 1) * CLIENTS
            )  # workers had their part
            await workspace.wait_indexed()
            found = await files_with(workspace, "common")
            assert found == {
                path
                for path, _ in await ask(
                    workspace, "literal", "common", use_index=False
                )
            }
            assert len(found) == CLIENTS


@pytest.mark.parametrize("fault", ["killed", "hangs", "rebuilt", "closed"])
async def test_what_a_worker_does_not_answer_is_answered_here(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(lookup_workers, "END_SECONDS", 0.1)
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            os.kill(worker.process.pid, signal.SIGSTOP)
            answers = list[Answer]()

            async def search(seconds: float) -> None:
                answers.append(
                    await workspace.search(question("value_7;", seconds=seconds))
                )

            before = made.threads
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(search, 0.1 if fault == "hangs" else BOUND)
                while not worker.busy:
                    await anyio.lowlevel.checkpoint()
                assert made.threads == before
                if fault == "killed":
                    worker.process.kill()
                elif fault == "rebuilt":
                    await workspace.rebuild()
                    await workspace.wait_indexed()
                    os.kill(worker.process.pid, signal.SIGCONT)
                elif fault == "closed":
                    made.opened.remove(workspace)
                    await workspace.close()
            if fault == "hangs":  # its deadline is over
                assert not answers[0].complete
            else:
                assert [hit["start_line"] for hit in answers[0].results] == [1]
            assert made.threads == before + (fault != "rebuilt")
            if fault != "closed":
                assert await made.started(workspace) is not worker or fault == "rebuilt"
                await answered_by_a_worker(made, workspace)


async def answered_by_a_worker(made: Pool, workspace: Workspace) -> None:
    """Ask until a worker answers: each of them reads a new index first, and has the lookup done here."""
    for _ in range(4):
        await made.started(workspace)
        before = made.threads
        assert len(await files_with(workspace, "common")) == len(FILES)
        if made.threads == before:
            return
    raise AssertionError("no worker answers")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set from outside")
async def test_a_worker_without_memory_leaves_the_look_up_to_the_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, {**FILES, "large.txt": b"x" * (6 << 20) + b"\nneedle\n"})
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            before = made.threads
            limit_memory(worker.process.pid, more=2 << 20)
            assert await files_with(workspace, "needle") == {b"large.txt"}
            assert made.threads == before + 1
            assert await files_with(workspace, "value_1;") == {b"src/1.c"}


def limit_memory(pid: int, more: int) -> None:
    """Let a process have so many bytes more than it has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))


async def test_a_cancelled_look_up_ends_in_its_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, {**FILES, "large.txt": b"needle in a line\n" * 200_000})
        async with pool(monkeypatch, most=2) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workspace.search, question("needle", output="count"))
                while not worker.busy:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            while worker.busy:
                await anyio.lowlevel.checkpoint()
            before = made.threads
            assert len(await files_with(workspace, "value_7;")) == 1
            assert made.threads == before
            assert worker in made.workers._workers


async def test_others_are_answered_here_while_every_worker_is_busy_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            os.kill(worker.process.pid, signal.SIGSTOP)
            async with anyio.create_task_group() as tasks:
                FLOW.set("greedy")
                tasks.start_soon(workspace.search, question("value_1;"))
                while not worker.busy:
                    await anyio.lowlevel.checkpoint()
                FLOW.set("polite")
                assert len(await files_with(workspace, "value_2;")) == 1
                assert worker.busy
                tasks.cancel_scope.cancel()


async def test_two_projects_have_their_own_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as one, repository() as other:
        put(one, {"a.c": b"common one\n"})
        put(other, {"b.c": b"common other\n", "c.c": b"common\n"})
        async with pool(monkeypatch) as made:
            workspaces = [await made.open(root) for root in (one, other)]
            for workspace in workspaces:
                await made.started(workspace)
            before = made.threads
            for _ in range(10):
                found = [
                    await files_with(workspace, "common") for workspace in workspaces
                ]
                assert found == [{b"a.c"}, {b"b.c", b"c.c"}]
            assert made.threads == before


@pytest.fixture(params=["forked", "spawned"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Say how workers are started."""
    if request.param == "spawned":

        def refuse(_pid: int) -> int:
            raise PermissionError

        monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    elif not worker_processes.can_fork():
        pytest.skip("here each worker is started by itself")
    return str(request.param)


async def test_idle_workers_end(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr(lookup_workers, "IDLE_SECONDS", 0.1)
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            assert isinstance(worker.process, subprocess.Popen) == (start == "spawned")
            pids = children_of(os.getpid(), "lookup_worker")
            assert worker.process.pid in pids
            while any(map(is_there, pids)):  # not as zombies either
                await anyio.lowlevel.checkpoint()
            while made.workers._workers:  # until its socket's end is noticed
                await anyio.lowlevel.checkpoint()
            assert len(await files_with(workspace, "value_7;")) == 1


@pytest.mark.parametrize("start", ["forked"], indirect=True)
@pytest.mark.usefixtures("start")
async def test_workers_answer_without_the_parent_that_forked_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            worker = await made.started(workspace)
            workers = {each.process.pid for each in made.workers._workers}
            (parent,) = children_of(os.getpid(), "lookup_worker") - workers
            os.kill(parent, signal.SIGKILL)
            before = made.threads
            assert len(await files_with(workspace, "common")) == len(FILES)
            assert made.threads == before
            worker.process.kill()
            worker.process.kill()  # which is nothing, as it ends or has
            while worker in made.workers._workers:
                await anyio.lowlevel.checkpoint()
            await made.started(workspace)
            assert len(await files_with(workspace, "common")) == len(FILES)


async def test_a_start_that_comes_to_nothing_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, FILES)
        async with pool(monkeypatch) as made:
            workspace = await made.open(root)
            own = (
                "import os, signal; os.write(0, b'%d 0' % os.getpid()); signal.pause()"
            )
            # It ends, names what is no process, that behind one, or hangs until the
            # daemon ends.
            for program in (
                "pass",
                "import os; os.write(0, b'0')",
                own,
                "import signal; signal.pause()",
            ):
                monkeypatch.setattr(
                    worker_processes, "PROGRAM", f"lookup_worker = 0; {program}"
                )
                while not made.workers._starting:
                    made.workers.want(workspace.lookups, CROWD)
                    await anyio.lowlevel.checkpoint()
                made.workers.want(workspace.lookups, CROWD)  # nothing, while one starts
                while not made.workers._parent and made.workers._starting:
                    await anyio.lowlevel.checkpoint()
                if program.startswith("import signal"):
                    made.workers.close()
                while made.workers._starting:
                    await anyio.lowlevel.checkpoint()
                assert not made.workers._workers
                assert not children_of(os.getpid(), "lookup_worker")
                # None left that tells a process from a later one.
                assert not [
                    one
                    for one in Path("/proc/self/fd").glob("*")
                    if "pidfd" in os.path.realpath(one)
                ]
            assert len(await files_with(workspace, "common")) == len(FILES)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_workers_end_with_the_daemon(
    cold_daemon: DaemonAtHand, project: MakeProject, end: str
) -> None:
    root = project(
        {name: text.decode() for name, text in FILES.items()}
        | {"large.txt": "needle in a line\n" * 10_000}
    )
    cold_daemon.start()
    assert cold_daemon.run("index", str(root)).returncode == 0
    daemon = cold_daemon.status()["pid"]
    params = {"text": r"[a-z]+ in \w \w+$", "mode": "regex", "output": "count"}
    question = {"jsonrpc": "2.0", "id": 1, "method": "query", "params": params}
    with ExitStack() as stack:
        wires = [
            stack.enter_context(closing(cold_daemon.wire("unix", root)))
            for _ in range(16)
        ]
        # 64 lookups at once of some milliseconds each, so that the last have waited for
        # 0.1 s on a fast machine too
        calls = [wire for wire in wires for _ in range(4)]
        until = time.monotonic() + BOUND
        while not (pids := children_of(daemon, "lookup_worker")):
            assert time.monotonic() < until
            for wire in calls:
                wire.send(question)
            for wire in calls:
                assert wire.receive()["result"]["total"] == 10_000
        for wire in wires:
            wire.send(question)
        if end == "kill":
            os.kill(daemon, signal.SIGKILL)
        else:
            cold_daemon.stop()
        while any(map(is_running, pids)):
            assert time.monotonic() < until
            time.sleep(0.01)


def children_of(pid: int, word: str) -> set[int]:
    """Return what a process has started, and what that has, where its command has a word."""
    listed = subprocess.run(
        ["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    found = {pid}
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    for _ in range(2):
        found |= {
            int(row[0]) for row in rows if int(row[1]) in found and word in row[2]
        }
    return found - {pid}


def is_there(pid: int) -> bool:
    """Return whether a process is there, or what is left of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_running(pid: int) -> bool:
    """Return whether a process is there, and no zombie."""
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return bool(found) and not found.startswith("Z")
