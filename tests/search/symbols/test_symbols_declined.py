"""Files that could not be parsed when they were indexed are not tried again by every question."""

import os
from pathlib import Path

from flashgrep.parts.navigation.hierarchy import find_callers
from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.navigation.references import UnusedSearch
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_name_at
from flashgrep.parts.symbols.symbol_search import (
    SymbolAnswer,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project import Workspace
from tests.support.workspace import opened, put

MINIFIED = b"a=1;" * 10_000 + b"function wanted(){}"


def ask(workspace: Workspace) -> SymbolAnswer:
    """Look for the name in the project as it is known now."""
    return SymbolSearch(
        SnapshotSource(workspace.snapshot()), SymbolQuestion(name="wanted")
    ).run()


async def test_a_file_that_was_declined_is_counted_and_one_that_has_changed_since_is_parsed(
    root: Path,
) -> None:
    put(root, {"dist.js": MINIFIED, "use.js": b"wanted();\n"})
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        before = ask(workspace)
        assert (before.skipped, before.files_read) == ({"too_large": 1}, 1)
        assert [found.path for found in before.results] == [b"use.js"]
        put(root, {"dist.js": b"function wanted(){}\n"})
        await workspace.refresh()
        after = ask(workspace)
        assert (after.skipped, [found.path for found in after.results]) == (
            {},
            [b"dist.js", b"use.js"],
        )


async def test_whoever_asks_for_callers_or_what_is_unused_hears_of_files_that_were_declined(
    root: Path,
) -> None:
    put(
        root,
        {
            "dist.js": MINIFIED + b"wanted();",
            "use.js": b"function wanted() {}\nwanted();\n",
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        source = SnapshotSource(workspace.snapshot())
        research, unused = Research("who calls wanted", 1), UnusedSearch(b"")
        research.advance(source)
        unused.run(source)
        assert research.skipped == unused.skipped == {"too_large": 1}
        named = find_name_at(source, b"use.js", 1, len("function w"), "utf-8")
        assert isinstance(named, NameAtPosition)
        assert Navigator(source).find_definitions(named).skipped == {}
        assert find_callers(source, named).skipped == {"too_large": 1}


async def test_a_declined_file_that_changed_unnoticed_is_looked_at(root: Path) -> None:
    put(root, {"dist.js": MINIFIED})
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        snapshot = workspace.snapshot()
        put(root, {"dist.js": b"function wanted(){}\n"})
        found = SymbolSearch(
            SnapshotSource(snapshot), SymbolQuestion(name="wanted")
        ).run()
        assert [one.path for one in found.results] == [b"dist.js"]
        (root / "dist.js").unlink()
        gone = SymbolSearch(
            SnapshotSource(snapshot), SymbolQuestion(name="wanted")
        ).run()
        assert (gone.results, gone.skipped) == ([], {})
        os.mkfifo(root / "dist.js")
        assert SymbolSearch(
            SnapshotSource(snapshot), SymbolQuestion(name="wanted")
        ).run().skipped == {"not_a_file": 1}
