"""Databases truncated, flipped, foreign, empty, locked, deleted: answers equal ripgrep at once, and the index heals."""

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from flashgrep.base.frames import frame
from flashgrep.index.schema import MOST_UNREADABLE
from flashgrep.indexer.job import IndexJob
from flashgrep.search.snapshot import Snapshot
from tests.faults.harness import agree, changing, fill, indexed, integrity
from tests.support.workspace import index_of, opened, put

Damage = Callable[[Path, random.Random], None]


def truncate(file: Path, rng: random.Random) -> None:
    os.truncate(file, rng.randrange(1, file.stat().st_size))


def empty(file: Path, _rng: random.Random) -> None:
    os.truncate(file, 0)


def flip(file: Path, rng: random.Random) -> None:
    with file.open("r+b") as handle:
        for _ in range(rng.randrange(1, 200)):
            at = rng.randrange(file.stat().st_size)
            handle.seek(at)
            byte = handle.read(1)[0]
            handle.seek(at)
            handle.write(bytes([byte ^ (1 << rng.randrange(8))]))


def no_database(file: Path, rng: random.Random) -> None:
    file.write_bytes(rng.randbytes(40_000))


def foreign(file: Path, _rng: random.Random) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE path (path, text_id)")
        connection.execute("INSERT INTO path VALUES ('a.txt', 1)")
        connection.commit()


def other_format(file: Path, _rng: random.Random) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE meta SET value = 99 WHERE key = 'format'")
        connection.commit()


def numbers_again(file: Path, _rng: random.Random) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE meta SET value = 1 WHERE key LIKE 'next_%'")
        connection.commit()


def shifted_segment(file: Path, _rng: random.Random) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE segment SET first = first - 1")
        connection.commit()


def deleted(file: Path, _rng: random.Random) -> None:
    for each in file.parent.glob("index.db*"):
        each.unlink()


def log_deleted(file: Path, _rng: random.Random) -> None:
    file.with_name("index.db-wal").unlink(missing_ok=True)


def folder_in_its_place(file: Path, rng: random.Random) -> None:
    deleted(file, rng)
    file.mkdir()
    (file / "in the way").touch()


ALL = [
    truncate,
    empty,
    flip,
    no_database,
    foreign,
    other_format,
    numbers_again,
    shifted_segment,
    deleted,
    log_deleted,
]


def some_tree(root: Path, rng: random.Random) -> None:
    fill(root, rng, 120)


@pytest.mark.parametrize("damage", ALL, ids=lambda damage: damage.__name__)
async def test_a_damaged_database_is_reported_at_the_start_and_rebuilt(
    damage: Damage, root: Path
) -> None:
    rng = random.Random(damage.__name__)
    some_tree(root, rng)
    async with opened(root) as workspace:
        await indexed(workspace)
        put(root, {"second.txt": b"a second segment with a needle\n"})
        await indexed(workspace)
    damage(index_of(root), rng)
    put(root, {"later.txt": b"word7 word7 needle saved while nobody looked\n"})
    async with opened(root) as workspace:
        await agree(workspace, root)
        await indexed(workspace)
        put(root, {"after.txt": b"word7 word7 needle saved after the damage\n"})
        await indexed(workspace)
        await agree(workspace, root)
        assert not workspace.tree.pending
        assert workspace.index.reader is not None
    assert integrity(index_of(root)) == "ok"


@pytest.mark.parametrize("damage", ALL, ids=lambda damage: damage.__name__)
async def test_a_database_damaged_under_a_running_daemon_costs_no_hit(
    damage: Damage, root: Path
) -> None:
    rng = random.Random(damage.__name__)
    some_tree(root, rng)
    async with opened(root) as workspace:
        await indexed(workspace)
        await workspace.store.scheduler.close()
        damage(index_of(root), rng)
        await agree(workspace, root)
        for turn in range(2):
            put(
                root,
                {f"fresh{turn}.txt": b"word7 word7 needle saved after the damage\n"},
            )
            await indexed(workspace)
            await agree(workspace, root)
        assert not workspace.tree.pending
    async with opened(root) as workspace:
        await agree(workspace, root)
        await indexed(workspace)
        await agree(workspace, root)
    assert integrity(index_of(root)) == "ok"


async def test_damage_that_no_check_knows_is_rebuilt_after_a_few_attempts(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await indexed(workspace)
    with closing(sqlite3.connect(index_of(root))) as connection:
        connection.execute(
            "UPDATE project SET id = 0"
        )  # found by its root, and taken for none
        connection.commit()
    async with opened(root) as workspace:
        await agree(workspace, root)
        await indexed(workspace)
        assert workspace.index.reader is not None
        await agree(workspace, root)


async def test_lookups_that_find_invalid_rows_have_the_index_rebuilt_once(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await indexed(workspace)

        def misread(snapshot: Snapshot) -> bool:
            if snapshot.own_index is not None:
                with snapshot.own_index.transaction():
                    int("no number")
            return snapshot.own_index is None

        indexes = []
        for _ in range(2 * MOST_UNREADABLE):
            indexes.append(workspace.index.reader)
            assert await workspace.lookups.run(misread)
            await indexed(workspace)
        assert [one is indexes[0] for one in indexes] == [
            at < MOST_UNREADABLE for at in range(len(indexes))
        ]
        assert len(set(indexes)) == 2
        await agree(workspace, root)


@pytest.mark.parametrize("seed", range(6))
async def test_bits_flipped_at_drawn_offsets_never_cost_a_hit(
    seed: int, root: Path
) -> None:
    rng = random.Random(seed)
    some_tree(root, rng)
    async with opened(root) as workspace:
        await indexed(workspace)
        if seed % 2:
            flip(index_of(root), rng)
            await agree(workspace, root)
    if not seed % 2:
        flip(index_of(root), rng)
    async with opened(root) as workspace:
        await agree(workspace, root)
        put(root, {"after.txt": b"word7 word7 needle saved after the damage\n"})
        await indexed(workspace)
        await agree(workspace, root)


LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode=EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("SELECT count(*) FROM path").fetchone()
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Have another process hold the database for itself."""
    command = [sys.executable, "-c", LOCKER, str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            process.kill()


async def test_a_database_somebody_locks_is_done_without_and_used_again_afterwards(
    root: Path,
) -> None:
    some_tree(root, random.Random(1))
    async with opened(root) as workspace:
        await indexed(workspace)
    with locked(index_of(root)):
        async with opened(root) as workspace:
            await agree(workspace, root)
    async with opened(root) as workspace:
        await agree(workspace, root)
        await indexed(workspace)
        assert workspace.index.reader is not None
        await workspace.store.scheduler.close()


async def test_an_indexer_that_finds_a_lock_goes_on_when_it_is_gone(root: Path) -> None:
    some_tree(root, random.Random(1))
    async with opened(root) as workspace:
        await indexed(workspace)
    with locked(index_of(root)):
        async with opened(root) as workspace:
            put(root, {"fresh.txt": b"word7 word7 needle\n"})
            await agree(workspace, root)
    async with opened(root) as workspace:
        await indexed(workspace)
        await agree(workspace, root)


async def test_a_folder_in_the_place_of_the_database_is_replaced(
    root: Path,
) -> None:
    rng = random.Random(1)
    some_tree(root, rng)
    index_of(root).parent.mkdir(mode=0o700, parents=True)
    folder_in_its_place(index_of(root), rng)
    async with opened(root) as workspace:
        await agree(workspace, root)
        with anyio.fail_after(20):
            await workspace.wait_indexed()
        assert index_of(root).is_file()
        await agree(workspace, root)


@pytest.mark.parametrize(
    "answer", [frame(b'{"event": "stored"}'), frame(b"not JSON"), b"no frame\n"]
)
async def test_an_indexer_that_is_not_understood_leaves_the_slow_truth(
    answer: bytes, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_tree(root, random.Random(3))
    # The package may be upgraded under a running daemon: its next indexer is of another
    # version.
    newer = [
        sys.executable,
        "-c",
        f"import os\nwhile os.read(0, 65536): os.write(1, {answer!r})",
    ]
    async with opened(root) as workspace:
        with monkeypatch.context() as patch:
            patch.setattr(IndexJob, "command", lambda _job: newer)
            await agree(workspace, root)
            with anyio.fail_after(20):
                await workspace.wait_indexed()
            assert workspace.progress.stage == "failed"
            assert "not understood" in workspace.progress.detail
        await agree(workspace, root)
        await indexed(workspace)
        assert workspace.index.reader is not None


async def test_files_that_change_while_they_are_indexed_are_found_as_they_are(
    root: Path,
) -> None:
    rng = random.Random(5)
    fill(root, rng, 60)
    async with opened(root) as workspace:
        with changing(root, 5):
            for _ in range(3):
                await workspace.refresh()
                await workspace.indexing.pause()
        await agree(workspace, root)
        await indexed(workspace)
        await agree(workspace, root)
    async with opened(root) as workspace:
        await agree(workspace, root)


async def test_a_mistake_in_a_question_is_answered_by_a_scan_and_leaves_the_index(
    root: Path,
) -> None:
    some_tree(root, random.Random(2))
    async with opened(root) as workspace:
        await indexed(workspace)
        await (
            workspace.wait_embedded()
        )  # a later stage would clear what is said of the index
        reader = workspace.index.reader

        def misread(snapshot: Snapshot) -> str:
            if snapshot.own_index is not None:
                with snapshot.own_index.transaction():
                    int("no number")
            return "scanned"

        for _ in range(2):
            assert await workspace.in_thread(misread) == "scanned"
            assert "the index cannot be read" in workspace.progress.detail
        await agree(workspace, root)
        assert workspace.index.reader is reader
        assert not list(index_of(root).parent.glob("*.damaged"))
