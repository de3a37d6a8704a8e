"""Segments are made one, and contents that no branch has are dropped: answers stay, whoever dies in the middle."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashgrep.base.errors import Conflict
from flashgrep.index.segments import MOST_SEGMENTS
from flashgrep.parts.team import stored_segments as merging
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.stored_segments import merge, merge_segments, read_segments
from tests.support.git import git
from tests.support.truth import ripgrep
from tests.team.conftest import Rig
from tests.team.test_jobs import count
from tests.team.test_store import draw_files, find_all

pytestmark = pytest.mark.slow

PATTERNS = ["alpha", "gamma_delta", "(?i)beta$", "spin.*x", "ab"]


def push_changes(rig: Rig, root: Path, times: int) -> None:
    """Sync a repository after each of so many commits of a few files."""
    for number in range(times):
        rig.write(
            root,
            {
                f"new/{number}.py": f"def alpha_{number}():\n    return gamma_delta({number})\n"
            },
        )
        rig.push(root)
        rig.sync()


def take(rig: Rig, keep: int) -> list[Any]:
    """Return the only repository's segments of a kind."""
    with closing(connect(rig.dsn)) as connection:
        return [one for one in read_segments(connection, 1) if one.kind == keep]


async def check(rig: Rig, root: Path) -> None:
    """Hold answers against ripgrep's."""
    asked = rig.ask_as("ann")
    for pattern in PATTERNS:
        assert await find_all(asked.call, pattern) == ripgrep(root, pattern), pattern
    page = await asked.call("search_code", query="alpha_3", limit=5)
    assert page["coverage"]["complete"], page["coverage"]
    if (root / "new/3.py").exists():
        assert page["results"][0]["file_path"] == "new/3.py"


async def test_many_small_segments_become_one_and_the_replaced_rows_go_later(
    rig: Rig,
) -> None:
    root = rig.make_repository("one", draw_files(2, 40))
    rig.sync()
    push_changes(rig, root, MOST_SEGMENTS + 2)
    for kind in (0, 1):
        assert len(take(rig, kind)) <= MOST_SEGMENTS
    await check(rig, root)
    blocks = count(rig, "block")
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.leftover SET due = now()")
    rig.sync()
    assert count(rig, "leftover") == 0
    assert count(rig, "block") < blocks
    await check(rig, root)


async def test_contents_that_no_branch_has_are_dropped_and_come_again(rig: Rig) -> None:
    root = rig.make_repository("one", draw_files(2, 40))
    old = git(root, "rev-parse", "HEAD").decode().strip()
    git(root, "checkout", "-q", "-b", "next")
    push_changes(rig, root, 4)
    early = rig.ask_as("early")
    assert await find_all(early.call, "alpha_3", rev="next") == {(b"new/3.py", 1)}
    texts = count(rig, "text")
    git(root, "checkout", "-q", "main")
    git(root, "branch", "-q", "-D", "next")
    git(root, "rm", "-q", "-r", "drawn")
    rig.write(root, {"src/one.py": "alpha beta\n"})
    rig.push(root)
    rig.sync()
    assert all(np.count_nonzero(one.texts == 0) == 0 for one in take(rig, 0)), (
        "half of them are dead: written anew"
    )
    assert count(rig, "text") == texts + 1, "questions begun before may read them"
    await check(rig, root)
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.leftover SET due = now()")
    rig.sync()
    assert (
        count(rig, "text")
        == count(rig, "chunk")
        == sum(len(one.texts) for one in take(rig, 0))
        < texts
    )
    await check(rig, root)
    git(root, "reset", "-q", "--hard", old)
    git(rig.folder / "bare" / "one.git", "fetch", "-q", "--prune", "--force", "origin")
    rig.sync()
    await check(rig, root)


@pytest.mark.parametrize("place", ["cut_keys", "put_signs", "start_generation"])
async def test_a_merge_that_dies_changes_nothing_and_leaves_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root = rig.make_repository("one", draw_files(2, 20))
    rig.sync()
    with monkeypatch.context() as patched:
        patched.setattr(merging, "worth_merging", lambda _rows: [])
        push_changes(rig, root, 3)
    blocks = count(rig, "block")

    def die(*_given: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, closing(connect(rig.dsn)) as connection:
        patched.setattr(merging, place, die)
        with pytest.raises(KeyboardInterrupt):
            merge_segments(connection, 1, take(rig, 1))
    assert count(rig, "block") == blocks
    assert count(rig, "leftover") == 1
    await check(rig, root)
    rig.sync()
    assert count(rig, "leftover") == 0
    await check(rig, root)


async def test_of_two_merges_at_once_one_wins(rig: Rig) -> None:
    root = rig.make_repository("one", draw_files(2, 20))
    rig.sync()
    push_changes(rig, root, 2)
    with closing(connect(rig.dsn)) as connection:
        old = take(rig, 0)
        merge_segments(connection, 1, old)
        with pytest.raises(Conflict):
            merge_segments(connection, 1, old)
        assert list(merge(connection, 1)) == []
    assert len(take(rig, 0)) == 1
    await check(rig, root)
