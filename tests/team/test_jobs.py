"""Workers: what is new is stored once, whoever dies in the middle; what is half stored is nobody's answer."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams, NotFound, Unavailable
from flashgrep.parts.team import clones, migrations
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.migrations import SHARDED
from flashgrep.parts.team.queue import Job
from flashgrep.parts.team.team_catalogue import StoreCache
from tests.support.git import git
from tests.support.postgres import Server
from tests.support.processes import has_ended
from tests.support.truth import ripgrep
from tests.team.conftest import Rig
from tests.team.test_store import draw_files, find_all

pytestmark = pytest.mark.slow

FGREP = str(Path(sys.executable).with_name("fgrep"))


def count(rig: Rig, table: str) -> int:
    """Return how many rows a table has."""
    with closing(connect(rig.dsn)) as connection:
        row = connection.execute(
            f"SELECT count(*) FROM flashgrep.{table}".encode()
        ).fetchone()
    assert row is not None
    return int(row[0])


async def test_tags_that_are_wanted_are_asked_by_name_as_git_means_it(rig: Rig) -> None:
    root = rig.make_repository("one", {"a.py": "def first(): pass\n"})
    git(root, "tag", "v1.0")
    git(
        root,
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b.c",
        "tag",
        "-a",
        "v1.1",
        "-m",
        "annotated",
    )
    git(root, "tag", "v2.0-unwanted")
    git(root, "tag", "v1-tree", "HEAD^{tree}")
    git(root, "checkout", "-q", "-b", "v1.0")
    rig.write(root, {"a.py": "def second(): pass\n"})
    tagged, own = (
        git(root, "rev-parse", f"{name}^{{commit}}").decode().strip()
        for name in ("v1.0", "heads/v1.0")
    )
    assert tagged != own
    git(root, "checkout", "-q", "main")
    bare = rig.folder / "bare" / "tagged.git"
    git(rig.folder, "clone", "-q", "--mirror", str(root), str(bare))
    rig.team.add(str(bare), "tagged", (), ("v1*",))
    rig.sync()
    asked = rig.ask_as("ann")
    for rev in ("v1.0", "v1.1", "tags/v1.0", "refs/tags/v1.1", "main", "HEAD", tagged):
        assert await find_all(asked.call, "def", project="tagged", rev=rev) == {
            (b"a.py", 1)
        }, rev
        assert not await find_all(asked.call, "second", project="tagged", rev=rev), rev
    for rev in ("heads/v1.0", "refs/heads/v1.0", own):
        assert await find_all(asked.call, "second", project="tagged", rev=rev) == {
            (b"a.py", 1)
        }, rev
    assert await find_all(
        asked.call, "def", project="tagged", rev="v1.0..heads/v1.0"
    ) == {(b"a.py", 1)}
    for name, rev in (
        ("tagged", "v2.0-unwanted"),
        ("tagged", "v1-tree"),
        ("one", "tags/v1.0"),
    ):
        with pytest.raises(NotFound):
            await asked.call("query", query="def", project=name, rev=rev)
    git(root, "tag", "-d", "v1.1")
    git(bare, "fetch", "-q", "--prune", "origin")
    rig.sync()
    with pytest.raises(NotFound):
        await asked.call("query", query="def", project="tagged", rev="v1.1")


async def test_branches_and_commits_are_asked_by_name_and_follow_pushes(
    rig: Rig,
) -> None:
    root = rig.make_repository("one", {"a.py": "def first(): pass\n"})
    old = git(root, "rev-parse", "HEAD").decode().strip()
    git(root, "checkout", "-q", "-b", "next")
    rig.write(root, {"b.py": "def second(): pass\n"})
    rig.push(root)
    rig.sync()
    asked = rig.ask_as("ann")
    assert await find_all(asked.call, "def", rev="main") == {(b"a.py", 1)}
    assert await find_all(asked.call, "def", rev="next") == {(b"a.py", 1), (b"b.py", 1)}
    assert await find_all(asked.call, "def", rev="main..next") == {(b"b.py", 1)}
    assert await find_all(asked.call, "def", rev=old[:10]) == {(b"a.py", 1)}
    with pytest.raises(NotFound) as raised:
        await asked.call("query", query="def", rev="nxt")
    assert raised.value.data["near"][0] == "next"
    rig.write(root, {"b.py": "def third(): pass\n"})
    rig.push(root)
    texts = count(rig, "text")
    rig.sync()
    assert count(rig, "text") == texts + 1
    assert await find_all(asked.call, "second|third", rev="next") == {(b"b.py", 1)}
    found = await asked.call("get_symbol", symbol_name="third", rev="next")
    assert [hit["file_path"] for hit in found["results"]] == ["b.py"]
    read = await asked.call("read_code", path="b.py", rev="next")
    assert read["content"] == "def third(): pass\n"


async def test_a_question_that_a_sync_overtakes_is_answered_from_the_new_state(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rig.make_repository("one", {"a.txt": "old\n"})
    rig.sync()
    asked = rig.ask_as("ann")
    rig.write(root, {"a.txt": "new\n"})
    rig.push(root)
    synced: list[int] = []
    read_listing = StoreCache.listing

    def sync_first(*given: Any) -> Any:
        if not synced:
            synced.append(rig.sync())
        return read_listing(*given)

    monkeypatch.setattr(StoreCache, "listing", sync_first)
    assert await find_all(asked.call, "old|new") == {(b"a.txt", 1)}
    assert synced == [1]


async def test_a_worker_killed_anywhere_loses_nothing_and_another_goes_on(
    rig: Rig, dsn: str
) -> None:
    root = rig.make_repository("one", draw_files(1, 400))
    for said in ("fetching", "contents", "symbols"):
        kill_when(
            said,
            {**os.environ, "FLASHGREP_TEAM_DATABASE": dsn, "HOME": str(rig.folder)},
        )
    assert rig.sync() == 1
    asked = rig.ask_as("ann")
    assert await find_all(asked.call, "gamma_delta") == ripgrep(root, "gamma_delta")
    assert count(rig, "job") == 0
    assert count(rig, "text") == count(rig, "symbol")
    assert count(rig, "text") == len(_contents(root))


def kill_when(said: str, environ: dict[str, str]) -> None:
    """Start a worker, and kill it when it says something."""
    worker = subprocess.Popen(
        [FGREP, "team", "sync"], env=environ, stderr=subprocess.PIPE, text=True
    )
    assert worker.stderr is not None
    with worker.stderr:
        for line in worker.stderr:
            if said in line:
                break
        else:
            raise AssertionError(said)
        worker.send_signal(signal.SIGKILL)
        worker.wait()


def _contents(root: Path) -> set[bytes]:
    """Return git's names of the contents that are texts, with whether a name's class makes them another text."""
    listed = git(root, "ls-tree", "-r", "HEAD").splitlines()
    return {
        line.split()[2] + line.rpartition(b".")[2]
        for line in listed
        if b"nul.bin" not in line
    }


async def test_what_is_half_loaded_is_nobodys_answer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rig.make_repository("one", {"a.txt": "old\n"})
    rig.sync()
    asked = rig.ask_as("ann")
    rig.write(root, {"a.txt": "new\n"})
    rig.push(root)

    def publish(*_given: object) -> int:
        raise Unavailable("the machine is gone", reason="gone")

    with monkeypatch.context() as patched:
        patched.setattr("flashgrep.parts.team.jobs.publish", publish)
        rig.sync()
    assert count(rig, "text") == 2
    assert await find_all(asked.call, "old|new") == {(b"a.txt", 1)}
    assert (await asked.call("query", query="new", mode="literal"))["results"] == []
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.job SET due = now()")
    assert rig.sync() == 1
    assert (await asked.call("query", query="new", mode="literal"))["total"] == 1
    assert count(rig, "text") == 2


def test_two_workers_never_do_the_same_repository_at_once(rig: Rig, dsn: str) -> None:
    for number in range(6):
        rig.make_repository(f"r{number}", draw_files(number, 30))
    environ = {**os.environ, "FLASHGREP_TEAM_DATABASE": dsn, "HOME": str(rig.folder)}
    with closing(connect(dsn)) as connection:
        connection.execute("SELECT 1")
    workers = [
        subprocess.Popen(
            [FGREP, "team", "sync", "r0"],
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for worker in workers:
        worker.communicate(timeout=100)
        assert worker.returncode == 0
    with closing(connect(dsn)) as connection:
        rows = connection.execute(
            "SELECT name, problem, generation > 0 FROM flashgrep.repository"
        ).fetchall()
        doubles = connection.execute(
            "SELECT repository, id FROM flashgrep.text GROUP BY 1, 2 HAVING count(*) > 1"
        )
        assert all(problem == "" and is_there for _, problem, is_there in rows), rows
        assert doubles.fetchall() == []
    assert count(rig, "job") == 0


def test_a_repository_is_deleted_with_all_its_rows(rig: Rig) -> None:
    rig.make_repository("one", draw_files(1, 5))
    rig.make_repository("two", draw_files(2, 5))
    rig.sync()
    tables = [
        "repository",
        "branch",
        "revision",
        "listing",
        "content",
        "segment",
        "turn",
        *SHARDED,
    ]
    before = {table: count(rig, table) for table in tables}
    assert all(before.values()), before
    rig.team.remove("one")
    rig.team.remove("two")
    assert {table: count(rig, table) for table in tables} == dict.fromkeys(tables, 0)
    with pytest.raises(NotFound):
        rig.team.remove("one")


@pytest.mark.parametrize(
    "source", ["--upload-pack=touch /tmp/x", "/nowhere", "ext::sh -c x", "", "."]
)
def test_what_is_no_repository_is_refused(rig: Rig, source: str) -> None:
    with pytest.raises(InvalidParams):
        rig.team.add(source, "x")


def test_a_name_that_is_taken_or_a_folder_of_another_is_refused(rig: Rig) -> None:
    rig.make_repository("one", {"a": "a\n"})
    bare = str(rig.folder / "bare" / "one.git")
    for name in ("one", "one/two", "a b", "../x", "x/"):
        with pytest.raises(InvalidParams):
            rig.team.add(bare, name)


def test_a_repository_that_cannot_be_fetched_says_so_and_waits(rig: Rig) -> None:
    rig.team.add("file:///nowhere/x.git", "away")
    rig.sync()
    with closing(connect(rig.dsn)) as connection:
        row = connection.execute(
            "SELECT problem, attempts, due > now() FROM flashgrep.job JOIN flashgrep.repository r ON repository = r.id"
        ).fetchone()
    assert row is not None
    assert "git cannot fetch away" in row[0]
    assert row[1:] == (1, True)


async def test_an_address_is_fetched_by_git(rig: Rig) -> None:
    root = rig.make_repository("one", {"a.txt": "first\n"})
    rig.team.add(f"file://{root}", "two")
    rig.sync()
    asked = rig.ask_as("ann", ["two"])
    assert await find_all(asked.call, "first") == {(b"a.txt", 1)}
    rig.write(root, {"a.txt": "second\n"})
    rig.sync()
    assert await find_all(asked.call, "first|second") == {(b"a.txt", 1)}


async def test_a_clone_or_a_fetch_that_was_killed_is_done_again(
    rig: Rig, tmp_path: Path
) -> None:
    root = rig.make_repository("one", {"a.txt": "first\n"})
    programs = tmp_path / "bin"
    programs.mkdir()
    # As one that is killed when it has made the folder, and not fetched anything yet.
    script = f'#!/bin/sh\nfor last; do :; done\n{shutil.which("git")} init -q --bare "$last"\nkill -9 $$\n'
    (programs / "git").write_text(script)
    (programs / "git").chmod(0o755)
    killed = replace(
        rig.team, environ={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    )
    killed.add(f"file://{root}", "two")
    killed.work(lambda _what: None)
    with closing(connect(rig.dsn)) as connection:
        assert connection.execute(
            "SELECT min(attempts) FROM flashgrep.job"
        ).fetchone() == (1,)
        connection.execute("UPDATE flashgrep.job SET due = now()")
    rig.sync()
    asked = rig.ask_as("ann", ["two"])
    assert await find_all(asked.call, "first") == {(b"a.txt", 1)}
    git(root, "branch", "gone")
    rig.sync()
    git(root, "branch", "-D", "gone")
    (clone,) = rig.team.cache.iterdir()
    (clone / "packed-refs.lock").touch()
    rig.write(root, {"a.txt": "second\n"})
    rig.sync()
    assert await find_all(asked.call, "first|second") == {(b"a.txt", 1)}
    assert list(rig.team.cache.iterdir()) == [clone]


def test_a_fetch_that_does_not_end_and_talks_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "git"
    # A child of git's own, as git-remote-https is, that holds its streams.
    pid = tmp_path / "pid"
    program.write_text(
        f"#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\nyes remote: >&2\n"
    )
    program.chmod(0o755)
    job = Job(1, "slow", "https://host.invalid/x.git", [], [], 1, [], 0)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    # On a loaded machine it may be ended before it has begun.
    for seconds in (0.3, 5, 60):
        monkeypatch.setattr(clones, "FETCH_SECONDS", seconds)
        with pytest.raises(Unavailable, match="took more than") as ended:
            clones.fetch(job, tmp_path / "cache", environ)
        assert ended.value.reason == "fetch_failed"
        if pid.exists():
            break
    assert has_ended(int(pid.read_text()))
    assert not any((tmp_path / "cache").iterdir())


def test_a_store_of_another_version_is_refused_with_what_to_do(rig: Rig) -> None:
    with closing(connect(rig.dsn)) as connection:
        connection.execute("INSERT INTO flashgrep.migration VALUES (9999, 'later')")
    with pytest.raises(Unavailable, match="newer flashgrep") as raised:
        rig.open_catalogue()
    assert raised.value.reason == "wrong_migration"
    with closing(connect(rig.dsn)) as connection:
        connection.execute("DELETE FROM flashgrep.migration WHERE number > 1")
        with pytest.raises(Unavailable, match="run: fgrep team init"):
            migrations.check(connection)


def test_tables_are_made_once_by_many_at_a_time(server: Server) -> None:
    dsn = server.make_database("many")
    environ = {**os.environ, "FLASHGREP_TEAM_DATABASE": dsn}
    runs = [
        subprocess.Popen([FGREP, "team", "init"], env=environ, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = sorted(run.communicate(timeout=60)[0].decode() for run in runs)
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [text.startswith("nothing to do") for text in said] == [False, True, True]


async def test_the_database_away_is_named_and_its_return_is_enough(
    make_rig: Callable[..., Rig], server: Server, dsn: str
) -> None:
    rig = make_rig(dsn)
    rig.make_repository("one", {"a.txt": "here\n"})
    rig.sync()
    asked = rig.ask_as("ann")
    assert await find_all(asked.call, "here") == {(b"a.txt", 1)}
    server.stop()
    try:
        with pytest.raises(Unavailable, match="database") as raised:
            await asked.call("query", query="here")
        assert raised.value.reason == "database_away"
    finally:
        server.start()
    assert await find_all(asked.call, "here") == {(b"a.txt", 1)}


def test_a_worker_that_goes_on_waits_for_its_database(rig: Rig, server: Server) -> None:
    root = rig.make_repository("one", {"a.txt": "here\n"})
    environ = {
        **os.environ,
        "FLASHGREP_TEAM_DATABASE": rig.dsn,
        "HOME": str(rig.folder),
    }
    command = [FGREP, "team", "sync", "--every", "1"]
    with subprocess.Popen(
        command, env=environ, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        try:
            assert any("chunks" in line for line in worker.stderr)
            server.stop()
            assert any("database does not answer" in line for line in worker.stderr)
            rig.write(root, {"a.txt": "there\n"})
            rig.push(root)
        finally:
            server.start()
            is_at_it = any("chunks" in line for line in worker.stderr)
            worker.kill()
    assert is_at_it
    assert count(rig, "text") == 2
