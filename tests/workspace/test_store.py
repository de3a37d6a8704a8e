"""Where a project's index lies: never below its root, and what becomes of it when its folder is not as it should be."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from flashgrep.base.config import Settings
from flashgrep.base.errors import NotFound
from flashgrep.base.own_folders import (
    INDEX,
    check_store,
    list_former_files,
    list_stores,
    make_store,
    store_folder,
)
from flashgrep.index.schema import row_checksum
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import PROJECTS_FILE, Catalogue
from flashgrep.project.project import LibraryFolder
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.workspace import (
    BOUND,
    files_with,
    index_of,
    opened,
    put,
    user_folder,
)


def _claim_unchanged(database: Path, file: Path) -> None:
    """Have an index say of a file as it is now that it is as it was indexed: its postings hide what it says now."""
    stat = file.stat()
    with sqlite3.connect(database) as connection:
        text_id = connection.execute("SELECT text_id FROM path").fetchone()[0]
        checksum = row_checksum(
            1, b"a.txt", text_id, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
        )
        connection.execute(
            "UPDATE path SET mtime_ns = ?, ctime_ns = ?, inode = ?, checksum = ?",
            [stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, checksum],
        )
    connection.close()


async def test_an_index_that_came_with_the_repository_is_not_opened(root: Path) -> None:
    put(root, {"a.txt": b"harmless\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
    planted = root / ".flashgrep" / INDEX
    planted.parent.mkdir(mode=0o700)
    shutil.copy(index_of(root), planted)
    shutil.rmtree(user_folder(root))
    put(root, {"a.txt": b"needle  \n"})
    _claim_unchanged(planted, root / "a.txt")
    before = planted.read_bytes()
    async with opened(root) as workspace:
        assert await files_with(workspace, "needle") == {b"a.txt"}
        await workspace.wait_indexed()
        assert await files_with(workspace, "needle") == {b"a.txt"}
    assert (planted.read_bytes(), list(planted.parent.iterdir())) == (before, [planted])
    assert list_former_files(root) == [planted]


@pytest.mark.parametrize(
    "name",
    [".flashgrep/index.db", ".flashgrep/journal/0", ".flashgrep/staged/0/header"],
)
async def test_a_pipe_in_the_projects_folder_holds_nobody_up(
    name: str, root: Path
) -> None:
    put(root, {"a.txt": b"needle\n"})
    (root / name).parent.mkdir(parents=True)
    os.mkfifo(root / name)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert await files_with(workspace, "needle") == {b"a.txt"}


async def test_the_cache_folder_deleted_the_index_is_rebuilt_at_the_next_change(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        shutil.rmtree(user_folder(root) / "cache")
        assert await files_with(workspace, "needle") == {b"a.txt"}
        workspace.indexing.poke()
        put(root, {"b.txt": b"needle\n"})
        await workspace.wait_embedded()
        assert await files_with(workspace, "needle") == {b"a.txt", b"b.txt"}
        assert index_of(root).exists()
        assert not workspace.index.is_replaced()
    async with opened(root) as workspace:
        assert workspace.generation > 0
        assert await files_with(workspace, "needle") == {b"a.txt", b"b.txt"}


async def test_a_cache_folder_that_cannot_be_made_leaves_the_slow_truth_and_is_tried_again(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    cache = user_folder(root) / "cache"
    cache.parent.mkdir()
    cache.write_text("in the way")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert (workspace.progress.stage, workspace.index.is_open) == ("failed", False)
        assert str(cache) in workspace.progress.detail
        assert await files_with(workspace, "needle") == {b"a.txt"}
        cache.unlink()
        while workspace.progress.stage == "failed":
            await workspace.indexing.pause()
        await workspace.wait_indexed()
        assert workspace.index.is_open
        assert await files_with(workspace, "needle") == {b"a.txt"}


async def test_an_index_in_a_folder_others_may_write_to_is_not_opened(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
    for folder in (
        index_of(root).parent,
        index_of(root).parents[1],
        index_of(root).parents[2],
    ):
        folder.chmod(0o777)
        async with opened(root) as workspace:
            assert not workspace.index.is_open
            assert "is writable by others" in workspace.progress.detail
            assert await files_with(workspace, "needle") == {b"a.txt"}
        folder.chmod(0o700)
    async with opened(root) as workspace:
        assert workspace.index.is_open


def test_a_store_says_whose_it_is(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / os.fsdecode(b"tw\xff")]
    for root in roots:
        make_store(store_folder(tmp_path, os.fsencode(root)), os.fsencode(root))
    (tmp_path / "stores" / "lost").mkdir()
    assert {root for _, root in list_stores(tmp_path)} == {*roots, None}
    check_store(store_folder(tmp_path, os.fsencode(roots[0])))
    with pytest.raises(FileNotFoundError):
        check_store(store_folder(tmp_path, b"/nowhere"))
    (tmp_path / "alias").symlink_to(roots[0])
    roots[0].mkdir()
    assert store_folder(tmp_path, os.fsencode(tmp_path / "alias")) == store_folder(
        tmp_path, os.fsencode(roots[0])
    )
    assert list(list_stores(tmp_path / "none")) == []


async def test_opening_a_project_does_not_wait_for_another_that_is_being_opened(
    project: MakeProject, tmp_path: Path
) -> None:
    slow, quick = project({"b.txt": "x"}, "slow"), project({"a.txt": "x"}, "quick")
    index = store_folder(tmp_path / "cache", os.fsencode(slow)) / INDEX
    make_store(index.parent, os.fsencode(slow))
    ended: list[str] = []

    with closing(sqlite3.connect(index, isolation_level=None)) as holder:
        holder.execute("CREATE TABLE mine (x)")
        holder.execute(
            "BEGIN EXCLUSIVE"
        )  # opening the index waits half a second for it
        async with Catalogue(
            parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
        ) as catalogue:

            async def take(root: Path) -> None:
                await catalogue.open(str(root))
                ended.append(root.name)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take, slow)
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(take, quick)

    assert ended == ["quick", "slow"]


async def test_one_project_asked_for_at_once_is_opened_once_and_removed_it_is_gone(
    project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "x"})

    with anyio.fail_after(BOUND):
        async with Catalogue(
            parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
        ) as catalogue:
            found = []

            async def take() -> None:
                found.append(await catalogue.open(str(root)))

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(take)
            assert len({id(workspace) for workspace in found}) == 1
            await found[0].wait_indexed()
            folder = store_folder(tmp_path / "cache", os.fsencode(root))
            assert (folder / INDEX).exists()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(catalogue.remove, root.name)
                await anyio.lowlevel.checkpoint()
                with pytest.raises(NotFound):
                    await catalogue.remove(root.name)
            assert not folder.exists()


class Asker:
    """A call in flight, as long as something refers to it."""


async def test_a_library_that_is_a_project_is_watched_as_before(
    project: MakeProject, tmp_path: Path
) -> None:
    root, other = project({"a.py": "x"}, "own"), project({"a.py": "x"}, "other")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), indexes=False
    ) as catalogue:
        workspace = await catalogue.open(str(root))
        assert (
            await catalogue.visit_library(root, LibraryFolder(label="own@2.1"), Asker())
            is workspace
        )
        assert not await workspace.freshness.switch(on=True), "it still was"
        folder = LibraryFolder(label="other@2.1")
        library = await catalogue.visit_library(other, folder, Asker())
        assert await library.freshness.switch(on=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LibraryFolder(label="one@1"), LibraryFolder(label="two@1")),
        (LibraryFolder(), LibraryFolder(is_indexed=False)),
    ],
)
async def test_a_library_is_not_closed_under_the_question_of_another(
    project: MakeProject,
    tmp_path: Path,
    first: LibraryFolder,
    second: LibraryFolder,
) -> None:
    root = project({"a.py": "x"}, "shared")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
    ) as catalogue:
        asker = Asker()
        library = await catalogue.visit_library(root, first, asker)
        other = await catalogue.visit_library(root, second, asker)
        assert other is library
        assert not library.is_closed
        assert library.label == second.label
        # Once nobody asks, it is opened as the last one wants it.
        del asker
        alone = await catalogue.visit_library(root, second, Asker())
        assert library.is_closed is (first.is_indexed != second.is_indexed)
        assert alone.options.indexes is second.is_indexed


async def test_what_a_question_walks_of_a_cache_stays_while_others_are_asked(
    project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a@1/x": "x", "b@1/x": "x", "c@1/x": "x"}, "cache")

    def choose(*folders: bytes) -> LibraryFolder:
        return LibraryFolder(folders=frozenset(folders))

    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), indexes=False
    ) as catalogue:
        asker = Asker()
        library = await catalogue.visit_library(root, choose(b"a@1", b"b@1"), asker)
        # What this one uses was read before the other was known.
        await catalogue.visit_library(root, choose(b"a@1"), Asker())
        await library.refresh()
        assert library.paths() == [b"a@1/x", b"b@1/x"]
        del asker
        await catalogue.visit_library(root, choose(b"c@1"), Asker())
        await library.refresh()
        assert library.paths() == [b"c@1/x"]


async def test_a_caller_who_hangs_up_while_a_project_is_opened_leaves_nothing_open(
    project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "needle"})

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
    ) as catalogue:
        await (
            catalogue.tidy()
        )  # every start begins with a look for folders that are gone
        before = descriptors()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await catalogue.open(str(root))
        assert descriptors() <= before
        workspace = await catalogue.open(str(root))
        assert await files_with(workspace, "needle") == {b"a.txt"}


def test_doctor_tells_of_an_index_whose_folder_is_gone(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.txt": "needle"})
    assert cold_daemon.run("index", str(root)).returncode == 0
    cold_daemon.stop()
    folder = cold_daemon.index(root).parent
    shutil.rmtree(root)
    told = cold_daemon.run("doctor").stdout
    assert f"{folder} belongs to {root / '.git'}, which is gone" in told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        '{"projects": []}',
        '{"projects": {"a": 1}}',
        '{"projects": null}',
    ],
)
def test_a_list_of_projects_that_is_none_is_an_empty_one(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / PROJECTS_FILE).write_text(text)

    async def body() -> None:
        async with Catalogue(
            parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
        ) as catalogue:
            assert catalogue.list_projects() == []

    anyio.run(body)
