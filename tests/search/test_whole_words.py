"""Whole words in a project whose words are stored: as ripgrep has them, whatever changes, and few files are read."""

from pathlib import Path
from typing import Literal
from weakref import WeakSet

import pytest

from flashgrep.base.model import path_from_json
from flashgrep.files.buffers import Buffers
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.symbol_search import (
    SymbolAnswer,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.pattern import Pattern
from flashgrep.project import UnsavedView, Workspace
from flashgrep.search.exact import Answer, Question
from flashgrep.search.snapshot import Snapshot
from tests.support.truth import Found, ripgrep
from tests.support.workspace import opened, put

MANY = 30
FILES = {
    **{f"part_{at}.c": b"int gpio_%d_set_config(void);\n" % at for at in range(MANY)},
    "whole.c": b"int set_config(void);\n",
    "loud.c": b"#define SET_CONFIG 1\n",
    "folds.c": "/* \u017fet_config */\n".encode(),
    "joined.c": "/* éset_config */\n".encode(),
    "beside.c": "/* «set_config» */\n".encode(),
    "bad.c": b"/* \xffset_config\xfe */\n",
}
QUESTIONS: list[tuple[Literal["literal", "regex"], str, bool]] = [
    ("literal", "set_config", True),
    ("regex", "set_config", True),
    ("regex", r"\bset_config\b", False),
    ("literal", "int set_config", True),
    ("literal", "#define SET_CONFIG", True),
    ("literal", "\u017fet_config", True),
]
CASES: list[Literal["sensitive", "insensitive"]] = ["sensitive", "insensitive"]
PATTERNS = [
    Pattern(texts=(text,), mode=mode, case=case, word=word)
    for case in CASES
    for mode, text, word in QUESTIONS
]


async def search(
    workspace: Workspace | UnsavedView, pattern: Pattern
) -> tuple[Answer, Found]:
    assert await workspace.refresh()
    answer = await workspace.search(
        Question(pattern=pattern, limit=10_000, max_chars=10**9)
    )
    assert answer.complete
    hits = {
        (
            path_from_json(hit["file_path"], hit.get("file_path_bytes")),
            hit["start_line"],
        )
        for hit in answer.results
    }
    return answer, hits


def flags(pattern: Pattern) -> list[str]:
    case = ["-i"] if pattern.case == "insensitive" else ["-s"]
    return [*case, *["-w"] * pattern.word, *["-F"] * (pattern.mode == "literal")]


def researched(snapshot: Snapshot) -> Research:
    research = Research("usages of set_config", 1)
    research.advance(SnapshotSource(snapshot))
    return research


async def symbol(
    workspace: Workspace, name: str, *, fold: bool = False
) -> SymbolAnswer:
    await workspace.refresh()
    question = SymbolQuestion(name=name, fold=fold)
    return await workspace.in_thread(
        lambda snapshot: SymbolSearch(SnapshotSource(snapshot), question).run()
    )


@pytest.mark.parametrize("stage", ["words stored", "changed since"])
async def test_whole_words_are_those_of_ripgrep(
    root: Path, stage: Literal["words stored", "changed since"]
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        if stage == "changed since":
            put(root, {"part_3.c": b"set_config();\n", "new.c": b"  set_config\n"})
            (root / "whole.c").unlink()
        for pattern in PATTERNS:
            assert (await search(workspace, pattern))[1] == ripgrep(
                root, pattern.texts[0], *flags(pattern)
            ), pattern


async def test_files_that_have_a_word_inside_of_others_alone_are_not_read(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        before, walk_before = (
            await symbol(workspace, "set_config"),
            await workspace.in_thread(researched),
        )
        await workspace.wait_embedded()
        after, walk = (
            await symbol(workspace, "set_config"),
            await workspace.in_thread(researched),
        )
        assert (after.results, after.total) == (before.results, 1)
        answer, found = await search(workspace, PATTERNS[0])
        assert found == {(b"beside.c", 1), (b"whole.c", 1)}
        assert max(after.files_read, answer.files_read, walk.files_read) < MANY
        assert min(before.files_read, walk_before.files_read) >= MANY
        assert (list(walk.graph.nodes), walk.unsure) == (
            list(walk_before.graph.nodes),
            walk_before.unsure,
        )
        assert (await symbol(workspace, "SET_CONFIG", fold=True)).total == 1 + 1


async def test_a_word_in_an_unsaved_text_counts_and_one_that_is_gone_there_does_not(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        await workspace.refresh()
        buffers, texts = (
            Buffers(WeakSet()),
            {"part_1.c": "int set_config;\n", "whole.c": "int other;\n"},
        )
        for name, text in texts.items():
            path = bytes(root / name)
            buffers.open((None, path), path, text, 1)
        view = UnsavedView(
            workspace,
            {path: one.text() for path, one in buffers.below(bytes(root)).items()},
        )
        found = (await search(view, PATTERNS[0]))[1]
        assert (b"part_1.c", 1) in found
        assert (b"whole.c", 1) not in found
