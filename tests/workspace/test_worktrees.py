"""Work trees of one repository share a store: what is stored once, and what must stay apart."""

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import anyio
import pytest

from flashgrep.base.config import Settings
from flashgrep.base.own_folders import find_owner, store_folder
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.parts.meaning.questions import find_best_lines, search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.symbols.symbol_search import (
    SymbolQuestion,
    SymbolSearch,
    find_definition,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.workspace import BOUND, files_with, put, user_folder
from tests.support.worktrees import WorkTrees, git

FILES = {
    f"src/part{at}.py": b"def part_%d():\n    return shared_%d()\n" % (at, at)
    for at in range(20)
}


@pytest.fixture
def trees(root: Path) -> tuple[Path, Path]:
    """Return a repository's main work tree, and a second one of another branch."""
    put(root, FILES)
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    other = user_folder(root) / "other"
    git(root, "worktree", "add", "-q", "-b", "topic", str(other))
    return root, other


@asynccontextmanager
async def catalogue_of(root: Path) -> AsyncIterator[Catalogue]:
    async with Catalogue(
        parts=BUILT_IN, state_dir=user_folder(root) / "state", settings=Settings()
    ) as found:
        yield found


async def opened(projects: Catalogue, root: Path) -> Workspace:
    workspace = await projects.open(str(root))
    with anyio.fail_after(BOUND):
        await workspace.wait_embedded()
    return workspace


def database(root: Path) -> Path:
    return (
        store_folder(user_folder(root) / "state" / "cache", os.fsencode(root))
        / "index.db"
    )


def roots_in(file: Path) -> set[bytes]:
    with closing(sqlite3.connect(file)) as connection:
        return {
            row[0]
            for row in connection.execute(
                "SELECT root FROM project JOIN path ON project = id"
            )
        }


async def test_a_second_work_tree_stores_its_paths_and_what_differs(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    async with catalogue_of(main) as projects:
        first = await opened(projects, main)
        before = await first.size()
        put(other, {"src/new.py": b"def only_here():\n    return shared_1()\n"})
        second = await opened(projects, other)
        assert first.store is second.store
        assert await files_with(second, "only_here") == {b"src/new.py"}
        assert await files_with(first, "only_here") == set()
        assert await files_with(second, "shared_1") == {b"src/new.py"} | {
            name.encode() for name, text in FILES.items() if b"shared_1" in text
        }
        size, after = await second.size(), await first.size()
        assert before is not None
        assert after is not None
        assert size is not None
        assert (after.files, after.texts, after.chunks) == (
            before.files,
            before.texts,
            before.chunks,
        )
        assert (size.files, size.shared_texts, size.projects) == (21, 20, 2)
        assert size.gram_bytes < 1.5 * before.gram_bytes


async def test_nothing_of_one_work_tree_is_shown_to_a_question_about_another(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    put(
        other,
        {
            "secret.py": b'def secret_handshake():\n    """Greets the conspirators."""\n    return "xyzzy"\n'
        },
    )
    async with catalogue_of(main) as projects:
        second = await opened(projects, other)
        first = await opened(projects, main)

        def look(workspace: Workspace, name: str) -> tuple[int, list[str]]:
            source = SnapshotSource(workspace.snapshot())
            found = SymbolSearch(source, SymbolQuestion(name=name, match="fuzzy")).run()
            return len(found.results), [*found.suggestions, *source.names("s", 1000)]

        for text in ("secret_handshake", "xyzzy", "conspirators"):
            assert await files_with(first, text) == set()
            assert await files_with(second, text) == {b"secret.py"}
        assert look(first, "secret_handshak") == (0, [])
        assert look(second, "secret_handshak")[1] == ["secret_handshake"]
        asked = MeaningQuestion(
            text="secret handshake that greets the conspirators", limit=50
        )
        assert b"secret.py" not in {
            found.path for found in (await search_by_meaning(first, asked)).results
        }
        assert (await search_by_meaning(second, asked)).results[0].path == b"secret.py"
        words = await find_best_lines(first, "secret conspirators", 50, None)
        assert "secret.py" not in {hit["file_path"] for hit in words.results}


async def test_texts_kept_for_a_revision_are_shown_to_questions_about_it_alone(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    put(other, {"secret.py": b'def secret_handshake():\n    return "xyzzy"\n'})
    git(other, "add", ".")
    git(other, "commit", "-qm", "secret")
    git(other, "rm", "-q", "secret.py")
    git(other, "commit", "-qm", "gone")
    async with catalogue_of(main) as projects:
        first, second = await opened(projects, main), await opened(projects, other)
        view = await second.service(REVISIONS).at("HEAD~1")
        assert (await find_definition(view, "secret_handshake"))[0] == b"secret.py"
        with anyio.fail_after(BOUND):
            while second.indexing.requested:
                await second.indexing.pause()
        for workspace in (first, second):
            assert await files_with(workspace, "xyzzy") == set()
            source = SnapshotSource(workspace.snapshot())
            found = SymbolSearch(
                source, SymbolQuestion(name="secret_handshak", match="fuzzy")
            ).run()
            assert [*found.results, *found.suggestions, *source.names("s", 1000)] == []
            assert source.defining("secret_handshake", prefix=False) == []
            asked = MeaningQuestion(text="secret handshake xyzzy", limit=50)
            assert b"secret.py" not in {
                one.path for one in (await search_by_meaning(workspace, asked)).results
            }
        assert (await find_definition(view, "secret_handshake"))[0] == b"secret.py"


async def test_damage_and_a_rebuild_concern_all_work_trees_at_once(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    put(other, {"new.txt": b"needle\n"})
    async with catalogue_of(main) as projects:
        first, second = await opened(projects, main), await opened(projects, other)
        with closing(sqlite3.connect(database(main))) as connection, connection:
            connection.execute("UPDATE posting_block SET data = zeroblob(20)")
        assert await files_with(second, "needle") == {b"new.txt"}
        assert await files_with(first, "part_7") == {b"src/part7.py"}
        for workspace in (first, second):
            await workspace.wait_indexed()
        assert first.index.is_open
        assert second.index.is_open
        await second.rebuild()
        assert await files_with(first, "part_7") == {b"src/part7.py"}
        assert await files_with(second, "needle") == {b"new.txt"}
        for workspace in (first, second):
            await workspace.wait_indexed()
        assert roots_in(database(main)) == {os.fsencode(main), os.fsencode(other)}


async def test_a_removed_work_tree_leaves_nothing_behind_and_the_others_alone(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    async with catalogue_of(main) as projects:
        first = await opened(projects, main)
        await opened(projects, other)
        git(main, "worktree", "remove", "--force", str(other))
        put(main, {"later.txt": b"needle\n"})
        assert await files_with(first, "needle") == {b"later.txt"}
        await opened(projects, main)
    async with catalogue_of(main) as projects:
        first = await opened(projects, main)
        put(main, {"last.txt": b"needle\n"})
        await opened(projects, main)
        assert await files_with(first, "needle") == {b"last.txt", b"later.txt"}
        assert roots_in(database(main)) == {os.fsencode(main)}


async def test_a_work_tree_taken_off_the_list_goes_and_comes_back_whole(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    async with catalogue_of(main) as projects:
        first = await opened(projects, main)
        await opened(projects, other)
        await projects.remove(str(other))
        assert roots_in(database(main)) == {os.fsencode(main)}
        second = await opened(projects, other)
        for workspace in (first, second):
            assert await files_with(workspace, "part_7") == {b"src/part7.py"}
        await projects.remove(str(main))
        await projects.remove(str(other))
        assert not database(main).parent.exists()


def test_a_root_joins_only_a_store_of_a_repository_that_lists_it(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    main, other = trees
    common = os.fsencode((main / ".git").resolve())
    assert find_owner(os.fsencode(main)) == find_owner(os.fsencode(other)) == common
    pointer = (other / ".git").read_bytes()

    def owner(name: str, make: dict[str, bytes]) -> bytes:
        put(tmp_path / name, make)
        return find_owner(os.fsencode(tmp_path / name))

    def itself(name: str) -> bytes:
        return os.fsencode((tmp_path / name).resolve())

    # What a hostile repository can bring along: a pointer to another's work tree, or to
    # a folder of its own making.
    assert owner("claims", {".git": pointer}) == itself("claims")
    assert owner("main", {".git": b"gitdir: " + common}) == itself("main")
    made = {
        "meta/gitdir": bytes(tmp_path / "made" / ".git"),
        "meta/commondir": common,
        ".git": b"gitdir: meta",
    }
    assert owner("made", made) == itself("made")
    assert owner(
        "common", {".git/HEAD": b"ref: x", ".git/commondir": common}
    ) == itself("common")
    for name, text in {
        "long": b"gitdir: " + b"x" * 9000,
        "nul": b"gitdir: a\0b",
        "none": b"",
        "lines": pointer * 2,
    }.items():
        assert owner(name, {".git": text}) == itself(name)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / ".git").symlink_to(main / ".git")
    assert find_owner(os.fsencode(tmp_path / "link")) == itself("link")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / ".git")
    assert find_owner(os.fsencode(tmp_path / "pipe")) == itself("pipe")
    # A work tree that was moved away is another's until git is told.
    shutil.copytree(other, tmp_path / "copy")
    assert find_owner(os.fsencode(tmp_path / "copy")) == itself("copy")


async def test_a_work_tree_removed_while_it_is_open_is_closed_and_taken_off_the_list(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    async with catalogue_of(main) as projects:
        first = await opened(projects, main)
        await opened(projects, other)
        git(main, "worktree", "remove", "--force", str(other))
        assert await projects.tidy() == [other]
        assert [project.root for project in projects.list_projects()] == [main]
        assert roots_in(database(main)) == {os.fsencode(main)}
        assert await files_with(first, "part_7") == {b"src/part7.py"}
        git(main, "worktree", "add", "-q", "--force", str(other), "topic")
        assert await files_with(await opened(projects, other), "part_7") == {
            b"src/part7.py"
        }
        assert await projects.tidy() == []


async def test_what_is_stored_of_a_repository_that_is_gone_is_removed_when_asked_for(
    project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "needle\n"})
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
    ) as projects:
        await opened(projects, root)
        folder = store_folder(tmp_path / "cache", os.fsencode(root))
        shutil.rmtree(root)
        assert await projects.tidy() == []
        assert folder.exists()
        assert root in await projects.tidy(stores=True)
        assert not folder.exists()
        assert projects.list_projects() == []


async def test_indexes_of_earlier_versions_are_removed_and_said_to_be_rebuilt(
    project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.txt": "needle\n"})
    former, writes = (
        tmp_path / "cache" / "projects" / "0123",
        tmp_path / "projects" / "4567",
    )
    for folder in (former, writes):
        folder.mkdir(parents=True)
    # Whatever the umask: what others may write is not used.
    (tmp_path / "cache").chmod(0o700)
    (former / "index.db").write_bytes(b"of an earlier version")
    (former / "root").write_bytes(os.fsencode(root))
    (former / "vectors-0123456789abcdef.bin").write_bytes(b"1")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings()
    ) as projects:
        assert not former.parent.exists()
        assert writes.exists()
        workspace = await projects.open(str(root))
        assert (
            workspace.progress.detail
            == "reindexed: the index of an earlier version is not used"
        )
        await opened(projects, root)
        assert workspace.progress.detail == ""


def test_stores_are_listed_and_cleaned_by_command(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    kept, gone = (
        project({"a.txt": "needle\n"}, "kept"),
        project({"b.txt": "needle\n"}, "gone"),
    )
    for root in (kept, gone):
        assert cold_daemon.run("index", str(root)).returncode == 0
    shutil.rmtree(gone)
    told = cold_daemon.run("store", "list").stdout
    assert f"{kept}, 1 files" in told
    assert f"{gone}, 1 files, gone" in told
    assert f"removed {gone}" in cold_daemon.run("store", "clean").stdout
    told = cold_daemon.run("store", "list").stdout
    assert (str(kept) in told, str(gone) in told) == (True, False)


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_happens_to_several_work_trees_each_answers_for_itself(
    seed: int, root: Path
) -> None:
    async with catalogue_of(root) as projects:
        trees = WorkTrees(projects, root, user_folder(root), random.Random(seed))
        trees.start()
        for _ in range(15):
            trees.step()
            await trees.agree()
        for tree in trees.trees:
            workspace = await opened(projects, tree)
            with anyio.fail_after(BOUND):
                while (
                    workspace.progress.stage == "failed"
                ):  # the indexer was killed twice in a row
                    await workspace.indexing.pause()
        await trees.agree()
        await projects.tidy()
        assert roots_in(database(root)) == {os.fsencode(tree) for tree in trees.trees}


async def test_work_trees_opened_at_once_are_indexed_by_one_indexer_each_text_once(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    put(other, {"new.txt": b"needle\n"})
    async with catalogue_of(main) as projects:
        async with anyio.create_task_group() as tasks:
            for root in (main, other, main, other):
                tasks.start_soon(opened, projects, root)
        first, second = await projects.open(str(main)), await projects.open(str(other))
        assert (first.store.scheduler.pid, first.store) == (
            second.store.scheduler.pid,
            second.store,
        )
        for workspace, wanted in ((first, set[bytes]()), (second, {b"new.txt"})):
            assert await files_with(workspace, "needle") == wanted
            assert await files_with(workspace, "part_7") == {b"src/part7.py"}
    with closing(sqlite3.connect(database(main))) as connection:
        texts = connection.execute(
            "SELECT count(*), count(DISTINCT hash) FROM text"
        ).fetchone()
        assert texts == (len(FILES) + 1, len(FILES) + 1)
        assert connection.execute("SELECT count(*) FROM chunked").fetchone() == (
            len(FILES) + 1,
        )


async def test_an_indexer_that_is_killed_or_a_root_that_goes_leaves_the_other_work_tree_right(
    trees: tuple[Path, Path],
) -> None:
    main, other = trees
    async with catalogue_of(main) as projects:
        first, second = await opened(projects, main), await opened(projects, other)
        for turn in range(2):
            put(main, {f"turn{turn}.txt": b"needle\n"})
            put(other, {f"other{turn}.txt": b"thread\n"})
            pid = first.store.scheduler.pid
            if pid is not None:
                with suppress(ProcessLookupError):  # it may have ended by itself
                    os.kill(pid, signal.SIGKILL)
            assert await files_with(first, "needle") == {
                b"turn%d.txt" % at for at in range(turn + 1)
            }
            assert await files_with(second, "thread") == {
                b"other%d.txt" % at for at in range(turn + 1)
            }
        shutil.move(other, other.with_name("moved"))
        put(main, {"last.txt": b"ribbon\n"})
        await opened(projects, main)
        assert first.progress.stage != "failed"
        assert await files_with(first, "ribbon") == {b"last.txt"}
        shutil.move(other.with_name("moved"), other)
        assert await files_with(await opened(projects, other), "thread") == {
            b"other%d.txt" % at for at in range(2)
        }


async def test_work_trees_taken_off_the_list_at_once_leave_nothing(
    trees: tuple[Path, Path],
) -> None:
    async with catalogue_of(trees[0]) as projects:
        for root in trees:
            await opened(projects, root)
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                for root in reversed(trees):
                    tasks.start_soon(projects.remove, str(root))
        assert projects.list_projects() == []
        await opened(projects, trees[0])
        assert await files_with(await projects.open(str(trees[0])), "part_7") == {
            b"src/part7.py"
        }
