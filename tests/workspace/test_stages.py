"""After an upgrade: what other code made of a text answers nothing, and is made anew; grams and words stay."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from flashgrep.api.part import without
from flashgrep.base.errors import NotFound
from flashgrep.indexer.job import stage_versions
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.symbols.symbol_search import find_definition
from flashgrep.project import Workspace
from tests.support.workspace import files_with, index_of, opened, put

BEFORE = {"symbols": "1", "chunks": "1", "vectors": "1"}


def spoil(root: Path) -> None:
    """Store of every text what an older grammar found in it: nothing."""
    with closing(sqlite3.connect(index_of(root), isolation_level=None)) as connection:
        connection.execute("UPDATE symbol SET packed = x''")
        connection.execute(
            "INSERT INTO symbol_name (symbol_name) VALUES ('delete-all')"
        )


def counts(root: Path) -> dict[str, int]:
    """Return how many rows each stage has, which segments there are, and how often files were stored."""
    queries = {
        "segments": "SELECT total(id) FROM segment WHERE kind = 0",  # a segment made anew has a new number
        "blocks": "SELECT count(*) FROM posting_block",
        "symbols": "SELECT count(*) FROM symbol",
        "chunks": "SELECT count(*) FROM chunked",
        "vectors": "SELECT count(*) FROM embedded",
        "generation": "SELECT value FROM meta WHERE key = 'generation'",
    }
    with closing(sqlite3.connect(index_of(root))) as connection:
        return {
            name: connection.execute(query).fetchone()[0]
            for name, query in queries.items()
        }


async def defines(workspace: Workspace, name: str) -> bool:
    await workspace.refresh()
    try:
        await find_definition(workspace, name)
    except NotFound:
        return False
    return True


async def test_symbols_of_older_code_answer_nothing_and_are_rebuilt(root: Path) -> None:
    put(root, {"a.py": b"def openly_defined():\n    return 1\n"})
    async with opened(root, stages=BEFORE) as workspace:
        await workspace.wait_embedded()
    whole = counts(root)
    spoil(root)
    async with opened(root, stages=BEFORE) as workspace:
        assert not await defines(
            workspace, "openly_defined"
        )  # rows of the same version are believed
    async with opened(root, stages={**BEFORE, "symbols": "2"}) as workspace:
        assert await defines(workspace, "openly_defined")
        assert await files_with(workspace, "openly_defined") == {b"a.py"}
        await workspace.wait_embedded()
        assert await defines(workspace, "openly_defined")
    assert counts(root) == whole


async def test_exact_search_is_ready_before_segments_are_merged(root: Path) -> None:
    put(root, {"a.py": b"def openly_defined():\n    return 1\n"})
    async with opened(root) as workspace:
        progress = workspace.progress
        seen: list[set[bytes]] = []
        with anyio.fail_after(30):
            while progress.stage != "ready":
                changed = progress.changed.next
                if (
                    progress.stage == "symbols" and progress.left["symbols"] < 0
                ):  # none are counted yet
                    seen.append(await files_with(workspace, "openly_defined"))
                await changed.wait()
    assert seen[0] == {b"a.py"}


async def test_whoever_watches_a_stage_does_not_count_rows_at_each_change(
    root: Path,
) -> None:
    put(root, {f"{at}.py": b"def number_%d():\n    pass\n" % at for at in range(9)})
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        progress = workspace.progress
        progress.enter("chunks")
        reused = False
        # The count is used again for a time that depends on how long it took.
        for at in range(100):
            before = await workspace.recent_size()
            progress.left["chunks"] = at + 1
            reused = await workspace.recent_size() is before
            if reused:
                break
        assert reused
        exact = await workspace.size()
        assert exact is not before
        progress.enter("ready")
        assert await workspace.recent_size() is not exact
        assert await workspace.recent_size() == await workspace.size() == exact


@pytest.mark.parametrize(
    ("stage", "kept"),
    [("chunks", {"symbols"}), ("vectors", {"symbols", "chunks"}), ("", None)],
)
async def test_a_stage_of_another_version_is_redone_with_what_is_built_on_it(
    stage: str, kept: set[str] | None, root: Path
) -> None:
    put(root, {"a.py": b"def openly_defined():\n    return 1\n"})
    async with opened(root, stages=BEFORE) as workspace:
        await workspace.wait_embedded()
    whole = counts(root)
    now = {**BEFORE, stage: "2"} if stage else BEFORE
    async with opened(root, stages=now) as workspace:
        done = {"symbols", "chunks", "vectors"} if kept is None else kept
        assert workspace.indexing.done == done
        await workspace.wait_embedded()
    assert counts(root) == whole


async def test_an_index_without_versions_is_of_older_code(root: Path) -> None:
    put(root, {"a.py": b"def openly_defined():\n    return 1\n"})
    async with opened(root) as workspace:
        await workspace.wait_embedded()
    with closing(sqlite3.connect(index_of(root), isolation_level=None)) as connection:
        connection.execute("DELETE FROM meta WHERE key LIKE 'stage %'")
    spoil(root)
    async with opened(root) as workspace:
        assert await defines(workspace, "openly_defined")


async def test_a_file_whose_name_means_another_language_now_is_stored_again(
    root: Path,
) -> None:
    text = b"def openly_defined():\n    return 1\n"
    put(root, {"a.py": text, "b.txt": text})
    async with opened(root, stages=BEFORE) as workspace:
        await workspace.wait_embedded()
    with (
        closing(sqlite3.connect(index_of(root))) as connection,
        connection,
    ):  # as if .py had been no language's ending
        connection.execute(
            "UPDATE text SET name_class = 'x', hash = x'00' WHERE name_class = 'python'"
        )
        connection.execute("UPDATE symbol SET packed = x''")
    async with opened(root, stages={**BEFORE, "symbols": "2"}) as workspace:
        await workspace.refresh()
        assert list(workspace.tree.pending) == [b"a.py"]
        await workspace.wait_embedded()
        assert await defines(workspace, "openly_defined")
        assert await files_with(workspace, "openly_defined") == {b"a.py", b"b.txt"}


def test_versions_tell_the_stages_apart() -> None:
    assert set(stage_versions()) == set(BEFORE)
    assert len(set(stage_versions().values())) == len(BEFORE)


async def test_without_the_part_of_meaning_a_project_is_ready_with_symbols_and_no_chunks(
    root: Path,
) -> None:
    put(root, {"a.py": b"def openly_defined():\n    return 1\n"})
    for _ in range(2):  # indexed, then loaded
        async with opened(root, parts=without(BUILT_IN, "meaning")) as workspace:
            assert await workspace.refresh()
            with anyio.fail_after(30):
                await workspace.wait_embedded()
            assert workspace.indexing.done == {"symbols"}
        found = counts(root)
        assert (found["symbols"], found["chunks"], found["vectors"]) == (1, 0, 0)
