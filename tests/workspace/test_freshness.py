"""Whatever was saved before a question counts in its answer: files, folders, rules, bursts; watched or not."""

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from flashgrep.base.model import FileStat
from flashgrep.files import watch
from flashgrep.files.watch import Change
from flashgrep.index.table import FileRow, FileTable
from flashgrep.project.freshness import Freshness, SwitchableWatcher
from tests.support.truth import ripgrep
from tests.support.workspace import BOUND, ask, files_with, index_of, opened, put

# The warning is watchdog's, of folders made one in another; as an error it would end
# watchdog's thread.
by_watchdog = pytest.param(
    False,
    id="watchdog",
    marks=pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning"),
)
watches = pytest.mark.parametrize(
    "native", [pytest.param(True, id="inotify"), by_watchdog]
)


@watches
async def test_a_saved_file_is_found_by_the_next_question(
    native: bool,  # noqa: FBT001 - a test's parameter
    root: Path,
) -> None:
    put(root, {"a.txt": b"old words\n"})
    async with opened(root, native_watch=native) as workspace:
        await workspace.wait_indexed()
        for turn in range(20):
            put(
                root,
                {
                    "a.txt": b"turn %d of the needle\n" % turn,
                    f"new{turn}.txt": b"needle\n",
                },
            )
            assert await files_with(workspace, f"turn {turn} of") == {b"a.txt"}
            assert len(await files_with(workspace, "needle")) == turn + 2
        assert await files_with(workspace, "old words") == set()


@watches
async def test_folders_that_come_move_and_go_take_their_files_along(
    native: bool,  # noqa: FBT001 - as above
    root: Path,
) -> None:
    put(root, {"keep/a.txt": b"needle\n"})
    async with opened(root, native_watch=native) as workspace:
        await workspace.wait_indexed()
        put(root, {"fresh/deep/er/b.txt": b"needle\n"})
        assert await files_with(workspace, "needle") == {
            b"keep/a.txt",
            b"fresh/deep/er/b.txt",
        }
        (root / "fresh").rename(root / "moved")
        assert await files_with(workspace, "needle") == {
            b"keep/a.txt",
            b"moved/deep/er/b.txt",
        }
        put(root, {"moved/deep/er/b.txt": b"changed after the move\n"})
        assert await files_with(workspace, "changed after") == {b"moved/deep/er/b.txt"}
        shutil.rmtree(root / "moved")
        assert await files_with(workspace, "needle") == {b"keep/a.txt"}
        (root / "keep" / "a.txt").rename(root / "z.txt")
        assert await files_with(workspace, "needle") == {b"z.txt"}


async def test_a_folder_moved_out_and_back_is_followed(root: Path) -> None:
    put(root, {"lib/a.txt": b"needle\n"})
    outside = root.parent / f"{root.name}-outside"
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        (root / "lib").rename(outside)
        assert await files_with(workspace, "needle") == set()
        (outside / "a.txt").write_bytes(b"needle changed outside\n")
        outside.rename(root / "lib")
        assert await files_with(workspace, "changed outside") == {b"lib/a.txt"}
        (root / "lib" / "a.txt").write_bytes(b"watched again\n")
        assert await files_with(workspace, "watched again") == {b"lib/a.txt"}


async def test_a_file_written_by_its_other_name_is_seen_under_both(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    (root / "sub").mkdir()
    (root / "sub" / "twin.txt").hardlink_to(root / "a.txt")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert await files_with(workspace, "needle") == {b"a.txt", b"sub/twin.txt"}
        with (root / "sub" / "twin.txt").open("r+b") as file:
            file.write(b"thread")
        assert await files_with(workspace, "thread") == {b"a.txt", b"sub/twin.txt"}
        assert await files_with(workspace, "needle") == set()


async def test_a_file_written_by_a_name_where_nothing_is_watched_is_seen(
    root: Path,
) -> None:
    outside = root.parent / f"{root.name}-user" / "outside.txt"
    outside.parent.mkdir()
    put(
        root,
        {"a.txt": b"needle\n", "sub/b.txt": b"needle\n", ".gitignore": b"ignored/\n"},
    )
    (root / "ignored").mkdir()
    outside.hardlink_to(root / "a.txt")
    (root / "ignored" / "b.txt").hardlink_to(root / "sub" / "b.txt")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        write_in_place(outside, b"thread\n")
        write_in_place(root / "ignored" / "b.txt", b"thread\n")
        assert await files_with(workspace, "thread") == {b"a.txt", b"sub/b.txt"}
        # One that comes later, under a name that another one of its names takes over.
        put(root, {"ignored/new.txt": b"late\n"})
        for name in ("c.txt", "d.txt"):
            (root / name).hardlink_to(root / "ignored" / "new.txt")
        assert await files_with(workspace, "late") == {b"c.txt", b"d.txt"}
        (root / "d.txt").unlink()
        (root / "sub").rename(root / "moved")
        await workspace.wait_indexed()
        write_in_place(root / "ignored" / "new.txt", b"later\n")
        write_in_place(root / "ignored" / "b.txt", b"later\n")
        assert await files_with(workspace, "later") == {b"c.txt", b"moved/b.txt"}
        assert workspace.freshness.link_problem == ""


def write_in_place(file: Path, data: bytes) -> None:
    """Write a file as editors do that keep its inode; its size may stay."""
    with file.open("r+b") as opened_file:
        opened_file.write(data)


async def test_more_linked_files_than_can_be_watched_are_reported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_LINKED", 1)
    put(root, {"a.txt": b"needle\n", "b.txt": b"needle\n"})
    async with opened(root) as workspace:
        assert await files_with(workspace, "needle") == {b"a.txt", b"b.txt"}
        assert workspace.freshness.link_problem == ""
        for name in ("a.txt", "b.txt"):
            (root / f"twin-{name}").hardlink_to(root / name)
        assert len(await files_with(workspace, "needle")) == 4
        problem = "too many files have several hard links: writes through other names are seen for 1"
        assert workspace.freshness.link_problem == problem
        assert workspace.freshness.sees_events


async def test_one_of_a_files_two_names_is_gone_once_it_is_moved(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    (root / "twin.txt").hardlink_to(root / "a.txt")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        (root / "twin.txt").rename(root / "moved.txt")
        assert await workspace.refresh()
        assert workspace.paths() == [b"a.txt", b"moved.txt"]


async def test_ignore_rules_count_from_the_moment_they_are_saved(root: Path) -> None:
    put(root, {"a.log": b"needle\n", "src/b.log": b"needle\n", "c.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        (root / ".gitignore").write_text("*.log\n")
        assert await files_with(workspace, "needle") == {b"c.txt"}
        (root / "src" / ".gitignore").write_text("!b.log\n")
        assert await files_with(workspace, "needle") == {b"c.txt", b"src/b.log"}
        (root / ".git" / "info").mkdir(exist_ok=True)
        (root / ".git" / "info" / "exclude").write_text("c.*\n")
        assert await files_with(workspace, "needle") == {b"src/b.log"}
        (root / ".gitignore").unlink()
        (root / ".git" / "info" / "exclude").unlink()
        assert await files_with(workspace, "needle") == {
            b"a.log",
            b"c.txt",
            b"src/b.log",
        }


async def test_another_file_of_the_users_excludes_counts_once_git_is_configured_to_use_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    put(tmp_path, {"logs": b"*.log\n", "texts": b"*.txt\n"})
    put(root, {"a.log": b"needle\n", "sub/b.log": b"needle\n", "c.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert await files_with(workspace, "needle") == {
            b"a.log",
            b"c.txt",
            b"sub/b.log",
        }
        config.write_text(f"[core]\nexcludesFile = {tmp_path}/logs\n")
        assert await files_with(workspace, "needle") == {b"c.txt"}
        config.write_text(f"[core]\nexcludesFile = {tmp_path}/texts\n")
        assert await files_with(workspace, "needle") == {b"a.log", b"sub/b.log"}
        with (root / ".git" / "config").open("a") as own:
            own.write(f"[core]\nexcludesFile = {tmp_path}/logs\n")
        assert await files_with(workspace, "needle") == {b"c.txt"}


async def test_a_branch_switch_is_right_at_once_and_switching_back_indexes_nothing(
    root: Path,
) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        subprocess.run(
            ["git", *identity, *words], cwd=root, check=True, capture_output=True
        )

    put(root, {f"d{at % 9}/f{at}.txt": b"main needle %d\n" % at for at in range(400)})
    git("add", ".")
    git("commit", "-qm", "main")
    git("checkout", "-qb", "other")
    put(root, {f"d{at % 9}/f{at}.txt": b"other thread %d\n" % at for at in range(400)})
    git("commit", "-qam", "other")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        git("checkout", "-q", "-")
        assert len(await files_with(workspace, "main needle")) == 400
        assert await files_with(workspace, "other thread") == set()
        await workspace.wait_indexed()
        texts = (await workspace.size()).texts  # type: ignore[union-attr]  # it is indexed
        git("checkout", "-q", "other")
        await workspace.wait_indexed()
        assert await files_with(workspace, "main needle") == set()
        assert len(await files_with(workspace, "other thread")) == 400
        assert (await workspace.size()).texts == texts  # type: ignore[union-attr]  # as above


def queue_limit() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


def by_ripgrep(root: Path) -> set[bytes]:
    return {path for path, _ in ripgrep(root, "needle")}


def text_files(root: Path) -> list[Path]:
    return list(root.glob("*.txt"))


async def test_a_burst_that_overflows_the_queue_is_swept_up(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        for at in range(
            min(queue_limit(), 40_000) // 3 + 500
        ):  # created, written, closed: three events each
            (root / f"f{at}.txt").write_bytes(
                b"needle\n" if at % 1000 == 0 else b"hay\n"
            )
        (root / "a.txt").unlink()
        assert await files_with(workspace, "needle") == by_ripgrep(root)
        assert workspace.tree.count() == len(text_files(root))


async def test_without_a_watch_every_question_looks_at_the_whole_tree_and_says_so(
    root: Path,
) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        workspace._watcher.failed = "cannot watch: no more watches"
        for turn in range(5):
            put(root, {"a.txt": b"turn %d\n" % turn, f"b{turn}.txt": b"needle\n"})
            assert await files_with(workspace, f"turn {turn}") == {b"a.txt"}
            assert len(await files_with(workspace, "needle")) == turn + 1
        assert workspace.freshness.swept_because == "cannot watch: no more watches"


async def test_an_overflow_reported_by_the_watcher_means_a_sweep(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        workspace.tree.take([Change("overflow")])
        assert workspace.tree.listed_since is None
        assert await workspace.refresh()
        assert workspace.tree.listed_since is not None


async def test_files_dated_beyond_64_bits_are_followed_as_others(root: Path) -> None:
    put(root, {"late.txt": b"needle\n", "early.txt": b"needle\n"})
    os.utime(
        root / "late.txt", (2e10, 2e10)
    )  # in the year 2603: 2262 is the last one that fits
    os.utime(root / "early.txt", (-2e10, -2e10))
    async with opened(root) as workspace:
        assert await files_with(workspace, "needle") == {b"early.txt", b"late.txt"}
        await workspace.wait_indexed()
        assert await workspace.freshness.switch(
            on=False
        )  # each question compares the whole tree with the index
        assert await files_with(workspace, "needle") == {b"early.txt", b"late.txt"}
        assert workspace.progress.stage != "failed"
        put(root, {"late.txt": b"thread\n"})
        os.utime(root / "late.txt", (2e10 + 1, 2e10 + 1))
        assert await files_with(workspace, "thread") == {b"late.txt"}
        assert await files_with(workspace, "needle") == {b"early.txt"}


def test_numbers_beyond_64_bits_are_shown_as_the_nearest(tmp_path: Path) -> None:
    found = os.lstat(tmp_path)
    numbers = {"st_mtime_ns": 2**80, "st_ctime_ns": -(2**80)}
    odd = os.stat_result((found.st_mode, 2**64 - 1, *found[2:]), numbers)
    assert FileStat.from_status(odd) == FileStat(
        found.st_size, 2**63 - 1, -(2**63), 2**63 - 1
    )
    files = [(b"a", 1, 2**80, -(2**80), 2**64 - 1), (b"b", 1, 2, 3, 4)]
    table = FileTable().with_changes(
        [FileRow(b"a", 1, "", 1, 2**63 - 1, -(2**63), 2**63 - 1)], []
    )
    assert table.compare(files) == ({b"b": 1}, [])


async def test_a_project_whose_changes_cannot_be_read_does_not_end_the_daemon(
    root: Path,
) -> None:
    async with opened(root) as workspace, anyio.create_task_group() as tasks:
        calls = 0
        again = anyio.Event()

        async def refresh() -> bool:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise ValueError("a fault of ours")
            again.set()
            return True

        watcher = SwitchableWatcher(lambda: watch.watch(workspace.root))
        watcher.add(b"")
        tasks.start_soon(Freshness(workspace.tree, watcher).follow, refresh)
        with anyio.fail_after(BOUND):
            while not again.is_set():
                put(root, {"a.txt": b"%d\n" % calls})
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
        watcher.close()


async def test_odd_files_are_left_alone_and_reported(root: Path) -> None:
    put(root, {"a.txt": b"needle\n", "bin.dat": b"\0needle\n"})
    os.mkfifo(root / "pipe")
    (root / "link.txt").symlink_to("a.txt")
    (root / "loop").symlink_to(".")
    (root / os.fsdecode(b"bad\xff.txt")).write_bytes(b"needle\n")
    async with opened(root) as workspace:
        wanted = {(b"a.txt", 1), (b"bad\xff.txt", 1)}
        assert await ask(workspace, "literal", "needle") == wanted
        await workspace.wait_indexed()
        assert await ask(workspace, "literal", "needle") == wanted
        assert workspace.tree.count_skips() == {"binary": 1}


def git_status(root: Path) -> bytes:
    return subprocess.run(
        ["git", "status", "--porcelain", "-uall"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout


async def test_git_status_shows_nothing_of_ours(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert git_status(root) == b"?? a.txt\n"
        assert not (root / ".flashgrep").exists()
        assert index_of(root).parent.stat().st_mode & 0o777 == 0o700


async def test_a_folder_that_cannot_be_written_is_indexed_too(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    (root / ".flashgrep").write_text("in the way")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert await files_with(workspace, "needle") == {b"a.txt"}
        assert (workspace.index.is_open, (root / ".flashgrep").read_text()) == (
            True,
            "in the way",
        )


async def test_a_project_without_a_file_is_ready_too(root: Path) -> None:
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        assert workspace.progress.stage == "ready"
        put(root, {"a.txt": b"first file\n"})
        assert await ask(workspace, "literal", "first") == {(b"a.txt", 1)}
