"""A project with unsaved texts, in this process: counts of large trees, limits, and what is left of a connection."""

import gc
import json
from pathlib import Path
from weakref import WeakSet

import anyio
import pytest
from anyio.lowlevel import checkpoint

from flashgrep.base.config import Settings
from flashgrep.base.errors import Unavailable
from flashgrep.base.registry import Session
from flashgrep.files.buffers import Buffer, Buffers, UnsavedText
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.parts.symbols.parse.imports import FileImports
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.scoping import FileScopes
from flashgrep.parts.symbols.symbol_source import (
    PARSED_TEXTS,
    SnapshotSource,
    forget_parsed_files,
    tree_of,
)
from flashgrep.pattern import Pattern
from flashgrep.project import UnsavedView, Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.search.exact import Output, Question
from tests.rpc.harness import BOUND, LIMITS, Notes, memory
from tests.support.workspace import opened, put

FILES = 450
"""More than are read without ripgrep, and so many that it walks to count."""


def with_texts(workspace: Workspace, texts: dict[str, str]) -> UnsavedView:
    """Return the project with these texts in an editor."""
    buffers = Buffers(WeakSet())
    for name, text in texts.items():
        path = workspace.walker.root + b"/" + name.encode()
        buffers.open((None, path), path, text, 1)
    found = buffers.below(workspace.walker.root)
    return UnsavedView(
        workspace, {path: buffer.text() for path, buffer in found.items()}
    )


@pytest.mark.parametrize("indexed", [False, True])
async def test_ripgrep_is_not_believed_about_files_with_an_unsaved_text(
    root: Path, *, indexed: bool
) -> None:
    put(
        root,
        {f"{number:03}.txt": b"needle\n" for number in range(FILES)}
        | {".gitignore": b"*.log\n"},
    )
    async with opened(root, indexes=indexed) as workspace:
        if indexed:
            await workspace.wait_indexed()
        await workspace.refresh()
        texts = {
            "100.txt": "straw\n",
            "101.txt": "needle\n",
            "new/a.txt": "needle\nneedle\n",
            "x.log": "needle\n",
        }
        view = with_texts(workspace, texts)

        async def ask(output: Output, **more: object) -> list[tuple[str, int]]:
            pattern = Pattern(texts=("n.edle|need.e",), mode="regex")
            question = Question(
                pattern=pattern,
                output=output,
                limit=10_000,
                max_chars=10**9,
                **more,  # type: ignore[arg-type]
            )
            answer = await view.search(question)
            assert answer.complete
            return [
                (hit["file_path"], hit.get("count") or hit.get("start_line") or 1)
                for hit in answer.results
            ]

        unchanged = [
            (f"{number:03}.txt", 1) for number in range(FILES) if number != 100
        ]
        for use_index in (True, False):
            assert await ask("count", use_index=use_index) == [
                *unchanged,
                ("new/a.txt", 2),
            ]
            assert await ask("files", use_index=use_index) == [
                *unchanged,
                ("new/a.txt", 1),
            ]
            lines = await ask("lines", use_index=use_index)
            assert lines == [*unchanged, ("new/a.txt", 1), ("new/a.txt", 2)]
        assert view.find_new() == [b"new/a.txt"]
        assert [text.is_saved for text in view.texts.values()] == [
            False,
            indexed,
            False,
            False,
        ]


async def test_an_unsaved_text_has_the_limits_of_a_file(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root, max_file_size=1000) as workspace:
        await workspace.wait_indexed()
        texts = {
            "large.txt": "needle\n" * 200,
            "binary.txt": "needle\n\0",
            "a.txt": "needle\n",
        }
        view = with_texts(workspace, texts)
        question = Question(pattern=Pattern(texts=("needle",), mode="literal"))
        answer = await view.search(question)
        assert [hit["file_path"] for hit in answer.results] == ["a.txt"]
        assert answer.skipped == {"too_large": 1, "binary": 1}
        assert (await view.search(question, max_file_size=10_000)).total == 201
        # The index knows a text that is saved; a change on disk makes it another one.
        (at,) = [path for path in view.texts if view.texts[path].is_saved]
        assert at == b"a.txt"
        put(root, {"a.txt": b"thread\n"})
        await workspace.refresh()
        assert (await view.search(question)).total == 1
        assert not view.texts[b"a.txt"].is_saved


async def test_a_connection_that_is_dropped_while_it_speaks_leaves_nothing(
    root: Path, tmp_path: Path
) -> None:
    put(root, {"a.py": b"pass\n"})
    forget_parsed_files()
    gc.collect()
    kinds = Buffer | UnsavedText | FileSymbols | FileScopes | FileImports
    before = sum(isinstance(one, kinds) for one in gc.get_objects())
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), indexes=False
    ) as catalogue:
        await catalogue.open(str(root))
        dispatcher = Dispatcher(REGISTRY, catalogue, log=Notes(), limits=LIMITS)
        with pytest.raises(Unavailable, match="HTTP"):
            await dispatcher.call(
                Session(wire="http", projects=(str(root),)),
                "buffers",
                {"action": "list"},
            )
        async with memory(dispatcher, tmp_path) as connect:
            client = await connect()
            asked = {"project": str(root), "path": "a.py"}
            text = "def weave():\n    return weave()\n"
            await client.result(
                "buffers", {**asked, "action": "open", "text": text, "version": 1}
            )
            found = await client.result(
                "get_symbol", {"project": str(root), "symbol_name": "weave"}
            )
            assert found["total"] == 2
            place = {"project": str(root), "path": "a.py", "line": 2, "column": 13}
            assert (await client.result("definition", place))["results"]
            assert await client.result(
                "code_research", {"project": str(root), "query": "who uses weave"}
            )
            change = {
                **asked,
                "action": "change",
                "version": 2,
                "changes": [{"text": text * 1000}],
            }
            line = json.dumps(
                {"jsonrpc": "2.0", "method": "buffers", "params": change}
            ).encode()
            question = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "query",
                    "params": {"query": "weave"},
                }
            ).encode()
            await client.send_raw(
                line + b"\n" + question + b"\n" + line[: len(line) // 2]
            )
            await client.stream.aclose()
            with anyio.fail_after(BOUND):
                while dispatcher.open_connections.clients:
                    await checkpoint()
        with anyio.fail_after(
            BOUND
        ):  # the question ends at its next checkpoint, in its thread
            while sum(isinstance(one, kinds) for one in gc.get_objects()) > before:
                gc.collect()
                await checkpoint()
        assert len(PARSED_TEXTS) == 0


async def test_a_position_in_an_unsaved_text_uses_the_tree_its_symbols_came_from(
    root: Path,
) -> None:
    put(root, {"a.py": b"pass\n"})
    async with opened(root, indexes=False) as workspace:
        for asked, is_kept in ((b"a.py", True), (None, False)):
            view = with_texts(workspace, {"a.py": "def weave():\n    return 1\n"})
            symbols = await view.in_thread(
                lambda snapshot, path=asked: SnapshotSource(snapshot, path).open(  # type: ignore[misc]
                    b"a.py"
                )
            )
            assert isinstance(symbols, FileSymbols)
            assert symbols.kept is not None
            assert bool(symbols.kept) == is_kept
            tree = tree_of(symbols)
            assert tree is not None
            assert list(symbols.kept.values()) == [tree]
