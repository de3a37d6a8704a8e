"""Pages of code_research: made of one walk as long as nothing has changed, and of a new one where something has."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import from_thread

from flashgrep.base.config import Settings
from flashgrep.base.errors import InvalidParams
from flashgrep.base.registry import Session
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.symbol_source import (
    SnapshotSource,
    TextCache,
    forget_parsed_files,
)
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.dispatch import Dispatcher
from tests.rpc.harness import LIMITS, Notes
from tests.support.workspace import put

USERS = "".join(f"def user_{number}():\n    used()\n" for number in range(60))
FILES = {"a.py": f"def used(): ...\n{USERS}".encode(), "b.py": b"def other(): ...\n"}
Ask = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the hops that are made, as they are made."""
    made, advance = list[int](), Research.advance

    def count(self: Research, source: SnapshotSource) -> bool:
        more = advance(self, source)
        made.append(self.hop)
        return more

    monkeypatch.setattr(Research, "advance", count)
    return made


@asynccontextmanager
async def asking(root: Path, state: Path) -> AsyncIterator[Ask]:
    forget_parsed_files()
    put(root, FILES)
    async with Catalogue(
        parts=BUILT_IN, state_dir=state, settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        dispatcher = Dispatcher(REGISTRY, catalogue, log=Notes(), limits=LIMITS)
        session = Session(wire="unix")

        async def ask(
            method: str = "code_research", **params: object
        ) -> dict[str, Any]:
            asked = (
                {"query": "callers of used", "depth": 1, "max_tokens": 600}
                if method == "code_research"
                else {}
            )
            found: dict[str, Any] = await dispatcher.call(
                session, method, {"project": str(root), **asked, **params}
            )
            return found

        yield ask


def lines(page: dict[str, Any]) -> list[int]:
    return [edge["line"] for edge in page["edges"]]


async def test_pages_are_of_one_walk(
    root: Path, tmp_path: Path, hops: list[int]
) -> None:
    async with asking(root, tmp_path) as ask:
        pages = [await ask()]
        while pages[-1]["next"] is not None:
            pages.append(await ask(cursor=pages[-1]["next"]))
        assert hops == [1]
        assert sorted(line for page in pages for line in lines(page)) == [
            3 + 2 * number for number in range(60)
        ]
        again: dict[int, dict[str, Any]] = {}

        async def go_on(number: int) -> None:
            again[number] = await ask(cursor=pages[number - 1]["next"])

        async with anyio.create_task_group() as tasks:
            for number in (1, 2, 1):
                tasks.start_soon(go_on, number)
        assert hops == [1]
        assert [lines(again[number]) for number in (1, 2)] == [
            lines(page) for page in pages[1:3]
        ]
        forget_parsed_files()  # after a flood
        assert lines(await ask(cursor=pages[0]["next"])) == lines(pages[1])
        assert hops == [1, 1]


async def test_a_page_is_of_a_new_walk_once_a_file_has_changed(
    root: Path, tmp_path: Path, hops: list[int]
) -> None:
    async with asking(root, tmp_path) as ask:
        first = await ask()
        second = await ask(cursor=first["next"])
        put(root, {"z.py": b"def late(): ...\n"})
        assert lines(await ask(cursor=first["next"])) == lines(second)
        assert hops == [1, 1]
        put(root, {"z.py": b"from a import used\n\ndef late():\n    used()\n"})
        pages = [await ask(cursor=second["next"])]
        while pages[-1]["next"] is not None:
            pages.append(await ask(cursor=pages[-1]["next"]))
        assert "z.py" in {edge["file_path"] for page in pages for edge in page["edges"]}
        assert hops == [1, 1, 1]
        # No event tells of it, as on a file system of another machine: its time does.
        put(root, {"a.py": f"def used(): ...\n\n{USERS}".encode()})
        with pytest.raises(InvalidParams, match="has changed"):
            await ask(cursor=first["next"], fresh=False)


async def test_an_unsaved_text_counts_between_pages(
    root: Path, tmp_path: Path, hops: list[int]
) -> None:
    async with asking(root, tmp_path) as ask:
        text = f"# typed\n{FILES['a.py'].decode()}"
        await ask("buffers", action="open", path="a.py", text=text, version=1)
        first = await ask()
        assert lines(await ask(cursor=first["next"]))
        assert hops == [1]
        change = {
            "start_line": 1,
            "start_column": 1,
            "end_line": 1,
            "end_column": 8,
            "text": "# moved",
        }
        await ask("buffers", action="change", path="a.py", version=2, changes=[change])
        assert lines(
            await ask(cursor=first["next"])
        )  # the same lines, of a text as long as before
        assert hops == [1, 1]
        await ask("buffers", action="close", path="a.py")
        with pytest.raises(InvalidParams, match="has changed"):
            await ask(cursor=first["next"])


async def test_a_walk_that_is_cancelled_is_not_kept(
    root: Path, tmp_path: Path, hops: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(root, tmp_path) as ask:
        first = await ask()
        second = await ask(cursor=first["next"])
        forget_parsed_files()
        advance = Research.advance
        with monkeypatch.context() as patch, anyio.CancelScope() as scope:

            def cancel(self: Research, source: SnapshotSource) -> bool:
                more = advance(self, source)
                from_thread.run_sync(scope.cancel)
                return more

            patch.setattr(Research, "advance", cancel)
            await ask(cursor=first["next"])
        assert scope.cancelled_caught
        assert lines(await ask(cursor=first["next"])) == lines(second)
        assert hops == [1, 1, 1]


def test_what_is_kept_has_a_bound() -> None:
    kept = TextCache[str](most=10, largest=6)
    kept.put("a", 6, "first")
    kept.put("b", 7, "too large")
    assert (kept.find("a"), kept.find("b")) == ("first", None)
    kept.put("a", 5, "second")
    kept.put("c", 5, "third")
    assert (kept.find("a"), kept.find("c")) == ("second", "third")
    kept.put("d", 1, "fourth")
    assert (kept.find("a"), kept.find("c"), kept.find("d")) == (None, "third", "fourth")
    kept.put("c", 7, "too large by now")
    assert kept.find("c") is None
