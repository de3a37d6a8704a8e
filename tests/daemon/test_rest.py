"""What a daemon holds once nobody has asked for a while."""

import gc
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from weakref import ref

import anyio
import pytest
from anyio.lowlevel import checkpoint

from flashgrep.base.config import Settings
from flashgrep.base.registry import Call, Session
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.parts.symbols.symbol_source import PARSED_TEXTS, forget_parsed_files
from flashgrep.project import catalogue as module
from flashgrep.project import project
from flashgrep.project.catalogue import Catalogue
from tests.conftest import BOUND
from tests.faults.harness import indexed


class Knot:
    """Refers to itself, so that only a search for garbage frees it."""

    def __init__(self) -> None:
        self.knot = self


async def test_a_few_questions_leave_nothing_parsed_when_a_minute_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    forget_parsed_files()
    gc.disable()
    request.addfinalizer(gc.enable)
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        method = REGISTRY.get("get_symbol")
        call = Call(catalogue, Session(projects=(str(root),)))
        # Twice: what has been let go of once is let go of again.
        for asked in (1, 2):
            assert (await method.call(call, {"symbol_name": "weave"}))["total"] == 2, (
                asked
            )
            left = ref(Knot())
            with anyio.fail_after(BOUND):
                while len(PARSED_TEXTS):
                    await checkpoint()
            assert left() is None


async def test_memory_is_given_back_a_minute_after_the_last_question_not_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = 2.5
    monkeypatch.setattr(module, "IDLE_SECONDS", idle)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    forget_parsed_files()
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        call = Call(catalogue, Session(projects=(str(root),)))
        await REGISTRY.get("get_symbol").call(call, {"symbol_name": "weave"})
        assert len(PARSED_TEXTS)
        await anyio.sleep(1.6 * idle)
        assert not len(PARSED_TEXTS)


QUESTIONS = (
    ("get_symbol", {"symbol_name": "weave"}),
    ("get_symbol", {"symbol_name": "Loom.weave"}),
    ("get_symbol", {"symbol_name": "waeve", "match": "fuzzy"}),
    ("code_research", {"query": "callers of weave"}),
    ("code_research", {"query": "what extends Loom"}),
    ("references", {"path": "parts/a.py", "line": 2, "column": 9}),
    ("query", {"text": "weave", "mode": "literal"}),
)


@pytest.mark.parametrize(("asked", "params"), QUESTIONS)
async def test_an_answer_leaves_no_folder_open_and_nothing_that_only_a_search_for_garbage_frees(
    asked: str, params: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root = tmp_path / "root"
    (root / "parts").mkdir(parents=True)
    for name in "abc":
        (root / "parts" / f"{name}.py").write_text(
            "class Loom:\n    def weave(self):\n        return self.weave()\n"
        )
    gc.disable()
    request.addfinalizer(gc.enable)
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        call = Call(catalogue, Session(projects=(str(root),)))
        method = REGISTRY.get(asked)
        await method.call(call, dict(params))
        gc.collect()
        folders = count_open_folders(root)
        for _ in range(5):
            await method.call(call, dict(params))
        assert count_open_folders(root) == folders
        gc.set_debug(gc.DEBUG_SAVEALL)
        request.addfinalizer(gc.garbage.clear)
        gc.collect()
        gc.set_debug(0)
        assert [
            thing
            for thing in gc.garbage
            if type(thing).__module__.startswith("flashgrep")
        ] == []


def count_open_folders(root: Path) -> int:
    """Return how many descriptors of this process are of a folder at or below a root."""
    paths = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them
            paths.append(str(entry.readlink()))
    return sum(path.startswith(str(root)) for path in paths)


async def test_garbage_is_collected_while_questions_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(module, "COLLECT_SECONDS", 0.02)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    gc.disable()
    request.addfinalizer(gc.enable)
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        method = REGISTRY.get("get_symbol")
        call = Call(catalogue, Session(projects=(str(root),)))
        left = ref(Knot())
        with anyio.fail_after(BOUND):
            while left() is not None:
                await method.call(call, {"symbol_name": "weave"})


async def test_connections_of_many_look_ups_at_once_are_closed_while_questions_never_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COLLECT_SECONDS", 0.02)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings()
    ) as catalogue:
        workspace = await catalogue.open(str(root))
        await indexed(workspace)
        reader = workspace.index.reader
        assert reader is not None
        descriptors = Path("/proc/self/fd")
        with ExitStack() as at_once:
            for _ in range(8):
                at_once.enter_context(reader.transaction())
            most = len(list(descriptors.iterdir()))
        method = REGISTRY.get("query")
        call = Call(catalogue, Session(projects=(str(root),)))
        with anyio.fail_after(BOUND):
            while len(list(descriptors.iterdir())) > most - 7:
                answer = await method.call(call, {"query": "weave"})
                assert answer["total"] == 2


async def test_projects_that_nobody_asks_are_closed_and_answer_when_they_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    monkeypatch.setattr(project, "MOST_UNASKED", 1)
    monkeypatch.setattr(project, "UNASKED_SECONDS", 0.0)
    roots = [tmp_path / name for name in ("first", "subscribed", "last")]
    for root in roots:
        root.mkdir()
        (root / "a.txt").write_text("before\n")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as catalogue:
        first, subscribed, last = [await catalogue.open(str(root)) for root in roots]
        subscribed.subscribers = 1
        with anyio.fail_after(BOUND):
            while not (first.is_closed and last.is_closed):
                await checkpoint()
        assert [one.name for one in catalogue.list_projects() if one.open] == [
            "subscribed"
        ]
        monkeypatch.setattr(project, "UNASKED_SECONDS", BOUND)
        (roots[0] / "a.txt").write_text("changed meanwhile\n")
        call = Call(catalogue, Session(projects=(str(roots[0]),)))
        answer = await REGISTRY.get("query").call(call, {"query": "changed meanwhile"})
        assert answer["total"] == 1
        assert answer["coverage"]["fresh"]
