"""Something else where the index or its store should be: answers stay right, and the index is made anew."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.harness import agree, indexed
from tests.support.workspace import index_of, opened, put

Change = Callable[[Path], None]


def folder_as_index(index: Path) -> None:
    index.unlink()
    index.mkdir()
    (index / "deep").mkdir()
    (index / "deep" / "file").write_text("x")


def pipe_as_index(index: Path) -> None:
    index.unlink()
    os.mkfifo(index)


def dangling_link_as_index(index: Path) -> None:
    index.unlink()
    index.symlink_to("nowhere")


def folder_as_log(index: Path) -> None:
    log = index.with_name("index.db-wal")
    log.unlink(missing_ok=True)
    log.mkdir()


def folder_for_what_is_set_aside(index: Path) -> None:
    aside = index.with_name("index.db.damaged")
    aside.mkdir()
    (aside / "file").write_text("x")
    index.write_bytes(b"no database")


def pipe_as_owner(index: Path) -> None:
    owner = index.with_name("owner")
    owner.unlink()
    os.mkfifo(owner)


def folder_as_owner(index: Path) -> None:
    owner = index.with_name("owner")
    owner.unlink()
    owner.mkdir()
    pipe_as_index(index)


def file_as_store(index: Path) -> None:
    shutil.rmtree(index.parent)
    index.parent.write_text("x")


def pipe_as_store(index: Path) -> None:
    shutil.rmtree(index.parent)
    os.mkfifo(index.parent)


def dangling_link_as_store(index: Path) -> None:
    shutil.rmtree(index.parent)
    index.parent.symlink_to("nowhere")


def file_as_stores(index: Path) -> None:
    shutil.rmtree(index.parent.parent)
    index.parent.parent.write_text("x")


def store_open_to_all(index: Path) -> None:
    index.parent.chmod(0o777)


def stores_open_to_the_group(index: Path) -> None:
    index.parent.parent.chmod(0o770)


def store_of_another_user(index: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("gives a folder away")
    os.chown(index.parent, 65534, 65534)


ALL: list[Change] = [
    folder_as_index,
    pipe_as_index,
    dangling_link_as_index,
    folder_as_log,
    folder_for_what_is_set_aside,
    pipe_as_owner,
    folder_as_owner,
    file_as_store,
    pipe_as_store,
    dangling_link_as_store,
    file_as_stores,
    store_open_to_all,
    stores_open_to_the_group,
    store_of_another_user,
]


@pytest.mark.parametrize("change", ALL)
@pytest.mark.parametrize("is_running", [False, True])
async def test_what_stands_in_the_place_of_an_index_is_replaced_by_one(
    change: Change, root: Path, *, is_running: bool
) -> None:
    put(root, {"a.txt": b"word7 word7 needle\n"})
    async with opened(root) as workspace:
        await indexed(workspace)
        if is_running:
            await workspace.store.scheduler.close()
            change(index_of(root))
            await agree(workspace, root)
            put(root, {"b.txt": b"word7 word7 needle\n"})
            await indexed(workspace)
            await agree(workspace, root)
    if not is_running:
        change(index_of(root))
    async with opened(root) as workspace:
        await agree(workspace, root)
        await indexed(workspace)
        await agree(workspace, root)
        assert workspace.index.reader is not None
    index = index_of(root)
    assert index.is_file()
    assert not index.is_symlink()
    for folder in (index.parent, index.parent.parent):
        assert folder.stat().st_uid == os.geteuid()
        assert folder.stat().st_mode & 0o777 == 0o700


async def test_disk_is_given_back_when_all_texts_are_gone(root: Path) -> None:
    put(root, {"kept.txt": b"needle\n"})
    texts = {f"t{number}.txt": os.urandom(3000).hex().encode() for number in range(400)}
    put(root, texts)
    async with opened(root) as workspace:
        await indexed(workspace)
        await workspace.indexing.pause()
    full = index_of(root).stat().st_size
    async with opened(root) as workspace:
        await indexed(workspace)
        for name in texts:
            (root / name).unlink()
        await indexed(workspace)
        await workspace.indexing.pause()
    left = index_of(root).stat().st_size
    assert left < full / 4, (full, left)
