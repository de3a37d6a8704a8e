"""Language servers: only where the user allows them, believed only where files agree, let go when they misbehave."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.navigation.servers import pool
from flashgrep.parts.navigation.servers.known import find_server
from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire, daemon_in
from tests.servers.conftest import (
    describe,
    install,
    is_running,
    read_log,
    wait_until_gone,
)

FILES: dict[str, str | bytes] = {
    "loom.py": "class Loom:\n    def weave(self): ...\n",
    "use.py": "# ä𝄞\ndef run(one):\n    'ä𝄞'; one.weave()\n",
    "late.py": "def walk(two):\n    return two.weave()\n",
}
MakeDaemon = Callable[..., DaemonAtHand]


@pytest.fixture
def start(
    tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[MakeDaemon]:
    """Return a function that starts a daemon with these settings, the tests' server first on its PATH."""
    made: list[DaemonAtHand] = []

    def make(mode: str = "good", **settings: str) -> DaemonAtHand:
        (folder / "mode").write_text(mode)
        found = daemon_in(
            tmp_path_factory.mktemp("d"),
            **{"FLASHGREP_SERVERS_LANGUAGES": "python", **settings},
        )
        if not found.environ[
            "FLASHGREP_SERVERS_LANGUAGES"
        ]:  # an environment would overrule a project's file
            del found.environ["FLASHGREP_SERVERS_LANGUAGES"]
        found.environ["PATH"] = f"{folder}{os.pathsep}{found.environ['PATH']}"
        found.start()
        made.append(found)
        return found

    yield make
    for one in made:
        one.stop()


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("bin")
    install(found)
    return found


@pytest.fixture(scope="module")
def shared_daemon(
    tmp_path_factory: pytest.TempPathFactory, shared_folder: Path
) -> Iterator[DaemonAtHand]:
    """Return a daemon for tests with a project, and so with a server, of their own."""
    found = daemon_in(
        tmp_path_factory.mktemp("d"), FLASHGREP_SERVERS_LANGUAGES="python"
    )
    found.environ["PATH"] = f"{shared_folder}{os.pathsep}{found.environ['PATH']}"
    found.start()
    yield found
    found.stop()


@pytest.fixture
def behave(shared_folder: Path) -> Callable[[str], None]:
    """Return a function that has servers of the shared daemon behave so from now on, and forgets what others noted."""

    def behave(mode: str) -> None:
        (shared_folder / "mode").write_text(mode)
        (shared_folder / "log").unlink(missing_ok=True)

    return behave


def open_wire(daemon: DaemonAtHand, root: Path) -> Wire:
    daemon.add(root)
    return daemon.wire("unix", root)


def ask(
    wire: Wire,
    method: str = "definition",
    path: str = "use.py",
    line: int = 3,
    column: int = 16,
) -> Any:
    """Return an answer; on a loaded machine a server may need more than one question's time to be there."""
    for _ in range(20):
        answer = wire.call(method, path=path, line=line, column=column)
        if "did not respond" not in answer["coverage"].get("detail", ""):
            break
    return answer


def told(found: Any) -> list[tuple[str, int, str | None]]:
    return [
        (one["file_path"], one["selection_range"]["start_line"], one.get("source"))
        for one in found["results"]
    ]


def test_no_server_is_started_unless_the_user_allows_it(
    start: MakeDaemon, folder: Path, project: MakeProject
) -> None:
    settings = '[servers]\nlanguages = ["python"]\n'
    root = project({**FILES, ".flashgrep/config.toml": settings})
    daemon = start(FLASHGREP_SERVERS_LANGUAGES="")
    with closing(open_wire(daemon, root)) as wire:
        assert all(one[2] is None for one in told(ask(wire)))
        assert read_log(folder, "pid") == []
    assert (
        "servers.languages"
        in daemon.run("status", cwd=root).stdout
        + daemon.run("query", "weave", cwd=root).stderr
    )


def test_a_server_says_what_is_meant(
    start: MakeDaemon, folder: Path, project: MakeProject
) -> None:
    root = project(FILES)
    daemon = start()
    with closing(open_wire(daemon, root)) as wire:
        assert told(ask(wire)) == [("loom.py", 2, "server")]
        everywhere = [
            ("late.py", 2, "server"),
            ("loom.py", 2, "server"),
            ("use.py", 3, "server"),
        ]
        assert told(ask(wire, "references")) == everywhere
        assert told(
            wire.call(
                "references",
                path="use.py",
                line=3,
                column=16,
                include_declaration=False,
            )
        ) == [
            everywhere[0],
            everywhere[2],
        ]
        assert (
            "from a language server"
            in daemon.run("definition", "use.py", "3", "16", cwd=root).stderr
        )
        assert len(read_log(folder, "pid")) == 1
        # Neither what is saved nor what is typed is answered as it was before.
        (root / "loom.py").write_text("\n\nclass Loom:\n    def weave(self): ...\n")
        assert told(ask(wire)) == [("loom.py", 4, "server")]
        assert "2:loom.py" in (folder / "log").read_text()
        (root / "more.py").write_text("Loom().weave()\n")
        assert ("more.py", 1, "server") in told(ask(wire, "references"))
        wire.call(
            "buffers",
            action="open",
            path="loom.py",
            text="class Loom:\n    def weave(self): ...\n",
            version=1,
        )
        assert told(ask(wire)) == [("loom.py", 2, "server")]
        with closing(daemon.wire("unix", root)) as other:
            assert told(ask(other)) == [("loom.py", 4, "server")]
    daemon.stop()
    wait_until_gone(read_log(folder, "pid")[0])


def test_what_lies_in_no_file_of_the_project_is_not_reported(
    shared_daemon: DaemonAtHand, behave: Callable[[str], None], project: MakeProject
) -> None:
    behave("lies")
    root = project(FILES)
    (root.parent / "other").mkdir()
    (root.parent / "other" / "secret.py").write_text("def weave(): ...\n")
    (root / "link.py").symlink_to(root.parent / "other" / "secret.py")
    with closing(open_wire(shared_daemon, root)) as wire:
        for method in ("definition", "references"):
            found = told(ask(wire, method))
            assert found
            assert {(one[0], one[2]) for one in found} <= {
                (path, None) for path in FILES
            }


@pytest.mark.parametrize("mode", ["crashes", "floods", "prints", "huge"])
def test_a_server_that_misbehaves_is_let_go_and_named(
    mode: str,
    shared_daemon: DaemonAtHand,
    shared_folder: Path,
    behave: Callable[[str], None],
    project: MakeProject,
) -> None:
    behave(mode)
    root = project(FILES)
    with closing(open_wire(shared_daemon, root)) as wire:
        for _ in range(2):
            found = ask(wire, "references")
            assert all(one[2] is None for one in told(found))
            assert ("use.py", 3, None) in told(found)
            assert "pylsp was stopped" in found["coverage"]["detail"]
        pids = read_log(shared_folder, "pid")
        assert len(pids) == 1  # not started again for each question
        wait_until_gone(pids[0])


def test_a_server_that_hangs_holds_nobody_up_and_ends_with_a_killed_daemon(
    start: MakeDaemon, folder: Path, project: MakeProject
) -> None:
    root = project(FILES)
    daemon = start("grows stays")
    with closing(open_wire(daemon, root)) as wire:
        began = time.monotonic()
        found = wire.call("definition", path="use.py", line=3, column=16)
        assert time.monotonic() - began < pool.WAIT_SECONDS + BOUND
        assert "did not respond within 3 s" in found["coverage"]["detail"]
        assert found["results"]
        (server,) = read_log(folder, "pid")
    if sys.platform != "linux":
        pytest.skip("elsewhere a server is asked to end, not made to")
    os.kill(int(describe(server, "ppid")), signal.SIGKILL)
    for pid in (server, *read_log(folder, "child")):
        wait_until_gone(pid)


def test_a_program_of_the_projects_own_is_not_run(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "bin"
    for one in (root / "bin", elsewhere):
        one.mkdir(parents=True)
    install(root / "bin")
    (elsewhere / "pylsp").symlink_to(root / "bin" / "pylsp")
    for path in (root / "bin", elsewhere, Path("bin")):
        assert find_server("python", {"PATH": str(path)}, os.fsencode(root)) is None
    assert (
        find_server("python", {"PATH": str(root / "bin")}, os.fsencode(elsewhere))
        is not None
    )


def test_servers_are_few(start: MakeDaemon, folder: Path, project: MakeProject) -> None:
    daemon = start()
    for _ in range(pool.MOST_SERVERS + 1):
        with closing(open_wire(daemon, project(FILES))) as wire:
            assert told(ask(wire)) == [("loom.py", 2, "server")]
    first, *others = read_log(folder, "pid")
    wait_until_gone(first)
    assert len(others) == pool.MOST_SERVERS
    assert all(map(is_running, others))


REAL = {
    "jedi-language-server": ("python", "use.py", {
        "loom.py": "class Loom:\n    def weave(self): ...\n",
        "mill.py": "class Mill:\n    def weave(self): ...\n",
        "use.py": "from loom import Loom\none = Loom()\none.weave()\n",
    }, (3, 5), ("loom.py", 2)),
    "gopls": ("go", "main.go", {
        "go.mod": "module example.org/loom\n\ngo 1.20\n",
        "loom.go": "package main\n\ntype Loom struct{}\n\nfunc (Loom) Weave() {}\n",
        "main.go": "package main\n\nfunc main() {\n\tLoom{}.Weave()\n}\n",
    }, (4, 9), ("loom.go", 5)),
    "clangd": ("cpp", "main.cpp", {
        "loom.hpp": "#pragma once\nstruct Loom { void weave() {} };\nstruct Mill { void weave() {} };\n",
        "main.cpp": '#include "loom.hpp"\nint main() { Loom one; one.weave(); }\n',
    }, (2, 29), ("loom.hpp", 2)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("program", REAL)
def test_real_servers_answer(
    program: str, start: MakeDaemon, folder: Path, project: MakeProject
) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    (folder / "pylsp").unlink()
    (folder / program).symlink_to(found)
    language, path, files, (line, column), meant = REAL[program]
    root = project(dict(files))
    with closing(open_wire(start(FLASHGREP_SERVERS_LANGUAGES=language), root)) as wire:
        answer = ask(wire, "references", path, line, column)
        assert (*meant, "server") in told(answer)
        assert (path, line, "server") in told(answer)
