"""The pool of language servers by itself: asked by several at once, cancelled, killed, grown, idle and closed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from flashgrep.base.checkpoint import Abandoned, ending
from flashgrep.files.openat import RootFolder
from flashgrep.parts.navigation.servers import language_server, pool
from flashgrep.parts.navigation.servers.language_server import LanguageServer, make_uri
from flashgrep.parts.navigation.servers.pool import NotAsked, ServerPool
from tests.conftest import BOUND
from tests.servers.conftest import is_running, read_log, wait_until, wait_until_gone

USE = b"weave()\nspin()\n"
LOOM = b"def weave(): ...\ndef spin(): ...\n"
Found = list[tuple[str, int]]
Ask = Callable[..., Found]
Submit = Callable[..., Future[Found]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    (found / "use.py").write_bytes(USE)
    (found / "loom.py").write_bytes(LOOM)
    return found


@pytest.fixture
def servers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerPool]:
    """Return a pool that waits as long as a loaded machine needs."""
    monkeypatch.setattr(pool, "WAIT_SECONDS", BOUND)
    os.mkfifo(folder / "gate")
    made = ServerPool(["python"], {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})
    yield made
    made.close()


@pytest.fixture
def ask(servers: ServerPool, root: Path) -> Ask:
    """Return a function that asks where the name on a line is defined."""

    def ask(
        line: int = 0, text: bytes | None = USE, version: int = 1, root: Path = root
    ) -> Found:
        at = os.fsencode(root)

        def question(server: LanguageServer, ends: float) -> Any:
            texts = {} if text is None else {b"use.py": ("python", text)}
            server.prepare(
                texts, {b"use.py": (version, 0), b"loom.py": (version, 0)}, ends
            )
            where = {
                "textDocument": {"uri": make_uri(at, b"use.py")},
                "position": {"line": line, "character": 0},
            }
            return server.ask("textDocument/definition", where, ends)

        server = servers.find("python", at)
        assert server is not None
        told = servers.ask(RootFolder(at), server, question)
        return [
            (unquote(one["uri"]).rpartition("/")[2], one["range"]["start"]["line"])
            for one in told
        ]

    return ask


@pytest.fixture
def submit(ask: Ask) -> Iterator[Submit]:
    """Return a function that asks in a thread of its own."""
    with ThreadPoolExecutor(12) as threads:
        yield lambda *given, **named: threads.submit(ask, *given, **named)


def behave(folder: Path, mode: str) -> None:
    """Have servers that start from now on behave so."""
    (folder / "mode").write_text(mode)


def open_gate(folder: Path, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Wait until a server has got a question, do something, and let it answer."""
    with (folder / "gate").open("wb"):
        meanwhile()


def test_what_is_typed_counts_then_what_is_saved(
    ask: Ask, folder: Path, root: Path
) -> None:
    assert ask() == [("loom.py", 0)]
    assert ask(text=b"spin()\n") == [("loom.py", 1)]
    assert ask(text=b"\nspin()\nweave()\n", line=2) == [("loom.py", 0)]
    assert ask(text=b"\nspin()\nweave()\n", line=1) == [("loom.py", 1)]
    assert read_log(folder, "version") == [
        2,
        3,
    ]  # what has not changed is not told again
    (root / "use.py").write_bytes(b"weave()\n" * 4)
    assert ask(text=None, line=3, version=2) == [("loom.py", 0)]
    (root / "loom.py").write_bytes(b"\n\n\n" + LOOM)
    assert ask(version=3) == [("loom.py", 3)]
    assert ask(text=b"spin()\n") == [("loom.py", 4)]
    assert len(read_log(folder, "pid")) == 1


def test_each_of_several_at_once_gets_its_own_answer_from_one_server(
    submit: Submit, folder: Path
) -> None:
    asked = [submit(line=number % 2) for number in range(8)]
    assert [one.result(BOUND) for one in asked] == [
        [("loom.py", number % 2)] for number in range(8)
    ]
    assert len(read_log(folder, "pid")) == 1


def test_a_client_that_waits_behind_another_learns_it(
    ask: Ask, submit: Submit, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(folder, "waits")
    first = submit()

    def ask_beside() -> None:
        monkeypatch.setattr(pool, "WAIT_SECONDS", 0.0)
        with pytest.raises(NotAsked, match="pylsp is busy"):
            ask()

    open_gate(folder, ask_beside)
    assert first.result(BOUND) == [("loom.py", 0)]


def test_a_question_that_nobody_waits_for_is_taken_back_and_its_answer_is_nobodys(
    ask: Ask, submit: Submit, folder: Path
) -> None:
    behave(folder, "waits")
    cancelled = threading.Event()

    def ask_until_cancelled() -> None:
        with ending(cancelled.is_set), pytest.raises(Abandoned):
            ask()

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(ask_until_cancelled)

        def cancel() -> None:
            cancelled.set()
            first.result(BOUND)

        open_gate(folder, cancel)
    # Told at once, not with the next question: the server may have much to do for this
    # one.
    wait_until(lambda: read_log(folder, "cancelled") == [2])
    second = submit(line=1)
    open_gate(folder)
    assert second.result(BOUND) == [("loom.py", 1)]
    assert len(read_log(folder, "pid")) == 1


def test_one_that_is_killed_while_it_is_asked_is_named_and_left_alone(
    ask: Ask, submit: Submit, folder: Path
) -> None:
    behave(folder, "waits")
    asked = submit()
    open_gate(folder, lambda: os.kill(read_log(folder, "pid")[0], signal.SIGKILL))
    with pytest.raises(NotAsked, match="pylsp was stopped: it ended"):
        asked.result(BOUND)
    with pytest.raises(NotAsked, match="pylsp was stopped: it ended"):
        ask()
    assert len(read_log(folder, "pid")) == 1


def test_one_that_ended_between_two_questions_is_named_and_comes_again(
    ask: Ask, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "AGAIN_SECONDS", 0.0)
    assert ask() == [("loom.py", 0)]
    os.kill(read_log(folder, "pid")[0], signal.SIGKILL)
    with pytest.raises(NotAsked, match="it ended"):
        ask()
    assert ask() == [("loom.py", 0)]
    assert len(read_log(folder, "pid")) == 2


@pytest.mark.parametrize("when", ["while it is asked", "afterwards"])
def test_one_that_grows_with_what_it_has_started_is_ended(
    when: str,
    ask: Ask,
    servers: ServerPool,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if when == "afterwards":
        behave(folder, "grows")
        assert ask() == [("loom.py", 0)]
        monkeypatch.setattr(pool, "MOST_MEMORY", 80 << 20)
        servers.rest()
    else:
        monkeypatch.setattr(language_server, "MOST_MEMORY", 80 << 20)
        behave(folder, "grows waits")
        with pytest.raises(NotAsked, match="uses more than 80 MB of memory"):
            ask()
    for pid in (*read_log(folder, "pid"), *read_log(folder, "child")):
        wait_until_gone(pid)
    assert len(read_log(folder, "child")) == 1


def test_one_that_nobody_asks_any_more_is_ended_and_comes_again(
    ask: Ask,
    submit: Submit,
    servers: ServerPool,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ask() == [("loom.py", 0)]
    servers.rest()
    (first,) = read_log(folder, "pid")
    assert is_running(first)
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
    servers.rest()
    wait_until_gone(first)
    behave(folder, "waits")
    asked = submit(line=1)
    open_gate(folder, servers.rest)  # not while it is asked
    assert asked.result(BOUND) == [("loom.py", 1)]


def test_at_once_no_more_are_started_than_may_run(
    submit: Submit, servers: ServerPool, folder: Path, tmp_path: Path
) -> None:
    def make_project(number: int) -> Path:
        made = tmp_path / f"more{number}"
        made.mkdir()
        (made / "use.py").write_bytes(USE)
        (made / "loom.py").write_bytes(LOOM)
        return made

    asked = [
        submit(root=make_project(number)) for number in range(3 * pool.MOST_SERVERS)
    ]
    for one in asked:
        # Whoever came while all were asked is told so.
        said = one.exception(BOUND)
        assert said is None or "language servers are busy" in str(said)
    wait_until(
        lambda: sum(map(is_running, read_log(folder, "pid"))) <= pool.MOST_SERVERS
    )
    assert (
        sum(
            server is not None
            for server in (slot.server for slot in servers._slots.values())
        )
        <= pool.MOST_SERVERS
    )


def test_with_the_daemon_they_end_those_too_that_are_asked(
    ask: Ask, submit: Submit, servers: ServerPool, folder: Path
) -> None:
    behave(folder, "waits")
    asked = submit()
    open_gate(folder, servers.close)
    with pytest.raises(NotAsked, match="pylsp was stopped: it ended"):
        asked.result(BOUND)
    wait_until_gone(read_log(folder, "pid")[0])
    with pytest.raises(NotAsked):
        ask()
    assert len(read_log(folder, "pid")) == 1
