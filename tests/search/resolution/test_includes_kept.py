"""What C files include is kept between questions: an answer is that of the files as they are, whoever asked before."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from flashgrep.base.checkpoint import CURRENT_TURN, Abandoned
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project import Workspace
from flashgrep.search.snapshot import Snapshot
from tests.support.workspace import opened, put

ONE, OTHER = "include/lib/size.h", "other/size.h"
FILES = {
    ONE: b"static inline int fits(int one) { return one > 0; }\n",
    OTHER: b"static inline int fits(int one) { return one == 0; }\n",
    "src/all.h": b"#include <lib/size.h>\n",
    "src/near.c": b'#include "all.h"\nint near(void) { return fits(1); }\n',
}


@dataclass
class TurnOf:
    """A look-up's turn that is over at its checkpoint of a number."""

    left: int

    @property
    def stopped(self) -> bool:
        self.left -= 1
        return self.left < 0

    def give_way(self) -> None:
        """Go on."""

    pause = resume = give_way


def find_meant(snapshot: Snapshot) -> set[str]:
    """Return the files whose ``fits`` src/near.c calls."""
    research = Research("callers of fits", 1)
    while research.advance(SnapshotSource(snapshot)):
        pass
    return {edge.target[0].decode() for edge in research.graph.edges}


async def meant(workspace: Workspace) -> set[str]:
    assert await workspace.refresh()
    return await workspace.in_thread(find_meant)


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    put(root, FILES)
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        yield workspace


async def test_an_include_that_is_edited_counts_at_once_and_when_it_is_indexed(
    root: Path, workspace: Workspace
) -> None:
    for text, path in (
        (b"<lib/size.h>", ONE),
        (b'"../other/size.h"', OTHER),
        (b"<lib/size.h>", ONE),
    ):
        put(root, {"src/all.h": b"#include " + text + b"\n"})
        assert await meant(workspace) == {path}
        await workspace.wait_indexed()
        assert await meant(workspace) == {path}
        assert await meant(workspace) == {path}


async def test_a_nearer_header_counts_while_it_is_there(
    root: Path, workspace: Workspace
) -> None:
    nearer = root / "src" / "lib" / "size.h"
    assert await meant(workspace) == {ONE}
    for _ in range(2):
        put(root, {"src/lib/size.h": FILES[OTHER]})
        assert await meant(workspace) == {"src/lib/size.h"}
        await workspace.wait_indexed()
        assert await meant(workspace) == {"src/lib/size.h"}
        nearer.unlink()
        assert await meant(workspace) == {ONE}
        await workspace.wait_indexed()
        assert await meant(workspace) == {ONE}


async def test_whoever_asks_at_once_or_gives_up_leaves_the_others_right(
    workspace: Workspace,
) -> None:
    def give_up(snapshot: Snapshot, after: int) -> None:
        token = CURRENT_TURN.set(TurnOf(after))
        try:
            with suppress(Abandoned):
                find_meant(snapshot)
        finally:
            CURRENT_TURN.reset(token)

    answers: list[set[str]] = []
    snapshot = workspace.snapshot()

    async def answer() -> None:
        answers.append(await anyio.to_thread.run_sync(find_meant, snapshot))

    async with anyio.create_task_group() as tasks:
        for after in range(8):
            tasks.start_soon(anyio.to_thread.run_sync, give_up, snapshot, after)
            tasks.start_soon(answer)
    assert answers == [{ONE}] * 8
