"""Texts of revisions that were asked about: stored once, used by the next question, bounded, and never wrong."""

import os
import random
import resource
import signal
import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.parts.symbols.symbol_search import find_definition
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Answer, Question
from tests.git.test_revisions import WORDS, write_at_random
from tests.support.git import ask_revision as ask
from tests.support.git import commit, git, grep
from tests.support.workspace import BOUND, cancelled_at, index_of, opened, put

OLD = {f"old{at}.py": b"def old_%d():\n    return thread\n" % at for at in range(30)}


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


def two_commits(root: Path) -> None:
    """Commit files, and then others in their place."""
    put(root, OLD)
    commit(root)
    for name in OLD:
        (root / name).unlink()
    put(root, {"new.py": b"def new():\n    return needle\n"})
    commit(root)


async def wait_kept(workspace: Workspace) -> None:
    with anyio.fail_after(BOUND):
        while workspace.indexing.requested:
            await workspace.indexing.pause()


async def look(workspace: Workspace, rev: str, text: str) -> Answer:
    view = await workspace.service(REVISIONS).at(rev)
    return await view.search(
        Question(pattern=Pattern(texts=(text,), mode="literal"), limit=1000)
    )


def kept_rows(root: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(index_of(root))) as connection:
        return connection.execute("SELECT text_id, skip FROM kept").fetchall()


async def test_the_second_question_about_a_revision_reads_what_may_match(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    await workspace.wait_embedded()
    first = await look(workspace, "HEAD~1", "old_7")
    assert (first.total, first.files_read) == (1, 30)
    await wait_kept(workspace)
    second = await look(workspace, "HEAD~1", "old_7")
    assert (second.total, second.files_read) == (1, 1)
    assert second.results == first.results
    assert await ask(workspace, "HEAD~1", "thread") == grep(root, "thread", "HEAD~1")
    size = await workspace.size()
    assert size is not None
    assert (size.revision_texts, size.revision_bytes) == (
        30,
        sum(map(len, OLD.values())),
    )
    assert (size.files, size.texts) == (1, 1)


async def test_they_are_there_after_a_restart_and_no_file_of_the_project(
    root: Path,
) -> None:
    two_commits(root)
    for expected in (30, 1):
        async with opened(root, environ=dict(os.environ)) as workspace:
            await workspace.wait_embedded()
            assert (await look(workspace, "HEAD~1", "old_7")).files_read == expected
            await wait_kept(workspace)
            await workspace.refresh()
            assert workspace.paths() == [b"new.py"]
            answer = await workspace.search(
                Question(pattern=Pattern(texts=("thread",), mode="literal"))
            )
            assert answer.results == []


ENCODED = {
    "latin.txt": b"gr\xf6\xdfe needle\n",
    "marked.txt": b"\xef\xbb\xbfneedle\n",
    "plain.txt": b"needle\n",
    "wide.txt": "needle\n".encode("utf-16"),
    "binary.bin": b"needle\0\n",
    "late.bin": b"needle\n" + b"thread\n" * 20_000 + b"\0",
    "empty.txt": b"",
    "same.py": b"needle\n",
    "same": b"needle\n",
    "n\xfcl.txt".encode().decode("latin-1"): b"thread\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
async def test_whatever_its_bytes_a_content_is_read_once(
    tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "tree"
    git(tmp_path, "init", "-q", f"--object-format={kind}", str(root))
    put(root, ENCODED)
    commit(root)
    put(root, {"plain.txt": b"thread\n"})
    for name in ENCODED.keys() - {"plain.txt", "same"}:
        (root / name).unlink()
    commit(root)
    async with opened(root, environ=dict(os.environ)) as workspace:
        await workspace.wait_embedded()
        first = await look(workspace, "HEAD~1", "needle")
        await wait_kept(workspace)
        second = await look(workspace, "HEAD~1", "needle")
        assert (second.results, second.skipped) == (first.results, first.skipped)
        assert first.files_read == len(ENCODED) - (
            kind == "sha1"
        )  # one has the text of a file; names are not known else
        nothing = await look(workspace, "HEAD~1", "nothing has this")
        assert (nothing.files_read, nothing.skipped) == (0, first.skipped)


async def test_symbols_are_stored_once_they_are_asked_for(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    await workspace.wait_embedded()
    view = await workspace.service(REVISIONS).at("HEAD~1")

    async def defining(name: str) -> list[bytes] | None:
        return await view.in_thread(
            lambda snapshot: SnapshotSource(snapshot).defining(name, prefix=False)
        )

    await look(workspace, "HEAD~1", "old_7")
    await wait_kept(workspace)
    found = await defining("old_7")
    assert found is not None
    assert len(found) == 30  # any of them may
    await wait_kept(workspace)
    assert await defining("old_7") == [b"old7.py"]
    assert await defining("new") == []
    assert await find_definition(view, "old_7") == (b"old7.py", 1, 2, [])


async def test_a_bare_repository_is_searched_by_an_index_of_what_was_asked(
    root: Path, tmp_path: Path
) -> None:
    two_commits(root)
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare")
    for first in (30, 1):
        async with opened(tmp_path / "bare", environ=dict(os.environ)) as workspace:
            await workspace.refresh()
            assert (await look(workspace, "HEAD~1", "old_7")).files_read == first
            await wait_kept(workspace)
            assert (await look(workspace, "HEAD~1", "old_7")).files_read == 1


async def test_what_nobody_asks_for_in_time_goes(root: Path) -> None:
    two_commits(root)
    async with opened(root, environ=dict(os.environ)) as workspace:
        await workspace.wait_embedded()
        await look(workspace, "HEAD~1", "old_7")
        await wait_kept(workspace)
    assert len(kept_rows(root)) == 30
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        connection.execute("UPDATE kept SET until = 1")
    async with opened(root, environ=dict(os.environ)) as workspace:
        put(root, {"other.py": b"x = 1\n"})
        await workspace.wait_embedded()
        assert kept_rows(root) == []
        with closing(sqlite3.connect(index_of(root))) as connection:
            assert connection.execute("SELECT count(*) FROM text").fetchone() == (2,)
        assert (await look(workspace, "HEAD~1", "old_7")).total == 1


async def test_they_take_no_more_room_than_is_allowed(root: Path) -> None:
    put(root, {"a.txt": b"first " * 100})
    for name in "bcd":
        commit(root)
        put(root, {"a.txt": f"{name} thread ".encode() * 100})
    commit(root)
    async with opened(root, environ=dict(os.environ), kept_bytes=2000) as workspace:
        await workspace.wait_embedded()
        for rev in ("HEAD~1", "HEAD~2", "HEAD~3", "HEAD~1"):
            assert await ask(workspace, rev, "first") == grep(root, "first", rev)
            await wait_kept(workspace)
            size = await workspace.size()
            assert size is not None
            assert size.revision_bytes <= 2000
    async with opened(root, environ=dict(os.environ), kept_bytes=0) as workspace:
        await workspace.wait_embedded()
        await look(workspace, "HEAD~2", "first")
        assert not workspace.indexing.requested


async def test_killed_while_keeping_it_goes_on_and_is_right(
    root: Path, workspace: Workspace
) -> None:
    rng = random.Random(3)
    names = []
    for _ in range(12):
        write_at_random(root, rng)
        names.append(commit(root))
    await workspace.wait_embedded()
    for at, rev in enumerate(names):
        if at % 2:
            assert await ask(workspace, rev, "needle") == grep(
                root, "needle", rev, "-F"
            )
        else:
            await look(workspace, rev, "thread")
        pid = workspace.store.scheduler.pid
        if pid is not None:
            with suppress(ProcessLookupError):  # killed before, and not missed yet
                os.kill(pid, signal.SIGKILL)
    await wait_kept(workspace)
    for rev in names:
        for word in WORDS:
            assert await ask(workspace, rev, word) == grep(root, word, rev, "-F"), (
                rev,
                word,
            )


async def test_many_ask_at_once_and_some_give_up(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    await workspace.wait_embedded()
    number = 1
    while await cancelled_at(number, look(workspace, "HEAD~1", "old_7")):
        number += 1
    async with anyio.create_task_group() as tasks:
        for at in range(8):
            tasks.start_soon(look, workspace, "HEAD~1", f"old_{at}")
            put(root, {f"while{at}.txt": b"thread\n"})
            tasks.start_soon(workspace.refresh)
    await wait_kept(workspace)
    answer = await look(workspace, "HEAD~1", "old_7")
    assert (answer.total, answer.files_read) == (1, 1)
    assert len(kept_rows(root)) == 30


async def test_a_false_object_keeps_nothing_by_its_name(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    false = b"thread but not what the name says\n"
    blob = git(root, "rev-parse", "HEAD~1:old7.py").decode().strip()
    file = root / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(zlib.compress(b"blob %d\0" % len(false) + false))
    await workspace.wait_embedded()
    await look(workspace, "HEAD~1", "thread")
    await wait_kept(workspace)
    assert len(kept_rows(root)) == 29
    put(root, {"true.py": OLD["old7.py"]})
    await workspace.refresh()
    found = await workspace.search(
        Question(pattern=Pattern(texts=("old_7",), mode="literal"))
    )
    assert [hit["file_path"] for hit in found.results] == ["true.py"]


async def test_a_row_that_was_damaged_hides_no_file(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    await workspace.wait_embedded()
    await look(workspace, "HEAD~1", "old_7")
    await wait_kept(workspace)
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        connection.execute("UPDATE kept SET text_id = (SELECT max(text_id) FROM kept)")
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    assert (await look(workspace, "HEAD~1", "old_7")).total == 1
    await workspace.wait_indexed()
    assert (await look(workspace, "HEAD~1", "old_7")).total == 1


async def test_without_room_on_the_disk_answers_are_read_from_git(
    root: Path, workspace: Workspace
) -> None:
    two_commits(root)
    await workspace.wait_embedded()
    await workspace.store.scheduler.close()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (index_of(root).stat().st_size, before[1])
    )  # the indexer inherits it
    try:
        for _ in range(3):
            answer = await look(workspace, "HEAD~1", "old_7")
            assert (answer.total, answer.complete) == (1, True)
            await wait_kept(workspace)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert await ask(workspace, "HEAD~1", "thread") == grep(root, "thread", "HEAD~1")
