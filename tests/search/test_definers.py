"""Definitions come first in an answer by relevance, however many files use the word, and its pages fit together."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashgrep.base.errors import InvalidParams
from flashgrep.index.table import Mark
from flashgrep.parts.symbols.relevance import (
    DEFINITIONS,
    MOST_JUDGED,
    MOST_PARSED,
    choose_sure,
    find_definers,
    names_in_pattern,
)
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Answer, Order, Position, Question, search
from tests.support.rankings import RANKINGS
from tests.support.workspace import opened, put

CROWD: dict[str, bytes] = {
    "CHANGELOG.md": b"- mend launch, once more\n" * 250,
    **{
        f"app/use{at:03}.py": b"import z\n\n\nz.launch(1)\nz.launch(2)\n"
        for at in range(120)
    },
    "app/launch.py": b"# nothing but the name\nz.launch\n",
    "tests/test_z.py": b"def test_launch():\n    launch()\n\n\ndef launch():\n    pass\n",
    "zoo/z.c": b"struct rocket {\n    int launch;\n};\n\nint prelaunch(void);\nint launch(void)\n{\n    return 0;\n}\n",
}
"""A word used in hundreds of places before, by path, comes the one that defines it."""


def asked(
    text: str, order: Order = "relevance", limit: int = 10, at: Position | None = None
) -> Question:
    return Question(
        pattern=Pattern(texts=(text,), mode="literal"),
        ranking=RANKINGS[order],
        limit=limit,
        position=at,
    )


def places(answer: Answer) -> list[tuple[str, int]]:
    return [(hit["file_path"], hit["start_line"]) for hit in answer.results]


async def pages(workspace: Workspace, text: str, limit: int) -> list[tuple[str, int]]:
    """Return all hits, page by page."""
    found: list[tuple[str, int]] = []
    answer = await workspace.search(asked(text, limit=limit))
    while True:
        found += places(answer)
        if answer.next is None:
            return found
        answer = await workspace.search(asked(text, limit=limit, at=answer.next))


async def by_path(workspace: Workspace, text: str) -> list[tuple[str, int]]:
    answer = await workspace.search(
        replace(asked(text, "path", 100_000), max_chars=10**9)
    )
    return places(answer)


async def test_the_definition_of_a_common_word_is_first(root: Path) -> None:
    put(root, CROWD)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        answer = await workspace.search(asked("launch"))
        assert places(answer)[:3] == [
            ("zoo/z.c", 6),
            ("tests/test_z.py", 5),
            ("zoo/z.c", 2),
        ]
        assert (answer.results[0]["text"], answer.detail) == ("int launch(void)", "")
        assert places(answer)[3] == (
            "app/launch.py",
            2,
        )  # then the other lines of their files and of that name
        qualified = await workspace.search(asked("int launch"))
        assert places(qualified) == [("zoo/z.c", 6), ("zoo/z.c", 2)]
        sensitive = await workspace.search(asked("Launch"))
        assert places(sensitive) == []


@pytest.mark.parametrize("limit", [1, 7, 150])
async def test_pages_neither_repeat_nor_lose_a_hit(limit: int, root: Path) -> None:
    put(
        root,
        {
            name: data
            for at, (name, data) in enumerate(CROWD.items())
            if at % 10 < 2 or "use" not in name
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        wanted = await by_path(workspace, "launch")
        found = await pages(workspace, "launch", limit)
        assert sorted(found) == sorted(wanted)
        assert len(found) > 290
        assert (await workspace.search(asked("launch"))).total == len(wanted)


async def test_pages_fit_together_while_a_saved_file_is_indexed(root: Path) -> None:
    put(root, CROWD)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        put(
            root,
            {
                "app/use050.py": b"def launch(now):\n    pass\n\n\nlaunch(3)\n",
                "new.py": b"launch = 4\n",
            },
        )
        assert await workspace.refresh()
        first = await workspace.search(asked("launch", limit=2))
        assert places(first) == [("app/use050.py", 1), ("zoo/z.c", 6)]
        assert first.next is not None
        assert first.next.led
        await workspace.wait_parsed()  # who defines it is now known from the index
        wanted = await by_path(workspace, "launch")
        found = places(first)
        following: Position | None = first.next
        while following is not None:
            answer = await workspace.search(asked("launch", limit=40, at=following))
            found, following = found + places(answer), answer.next
        assert sorted(found) == sorted(wanted)


async def test_an_answer_started_without_symbols_continues_without_them(
    root: Path,
) -> None:
    put(root, CROWD)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        unparsed = replace(workspace.snapshot(), parsed_to=0)
        first = search(unparsed, asked("launch", limit=5))
        assert first.next is not None
        assert not first.next.led
        assert (
            first.detail
            == "definitions do not come first yet: files are still being parsed"
        )
        rest = await workspace.search(asked("launch", limit=10_000, at=first.next))
        rest_again = search(unparsed, asked("launch", limit=10_000, at=first.next))
        assert places(rest) == places(rest_again)
        led = (await workspace.search(asked("launch", limit=5))).next
        with pytest.raises(InvalidParams, match="has been rebuilt"):
            search(unparsed, asked("launch", at=led))


@pytest.mark.parametrize(("share", "read"), [(1, DEFINITIONS), (4, MOST_JUDGED)])
def test_of_many_defining_files_a_bounded_number_is_read(share: int, read: int) -> None:
    paths = [b"%03d" % number for number in range(1000)]
    looked_at = list[bytes]()

    def is_sure(path: bytes) -> bool:
        looked_at.append(path)
        return int(path) % share == 0

    sure = choose_sure(paths, is_sure)
    assert looked_at == paths[:read]
    assert sure == paths[:read:share]


async def test_many_changed_files_are_not_parsed_for_one_question(root: Path) -> None:
    put(root, CROWD)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        pattern = Pattern(texts=("launch",), mode="literal")
        changed = {
            path: Mark(ours=True, sequence=1, size=9)
            for path in workspace.paths()[: MOST_PARSED + 1]
        }
        snapshot = replace(workspace.snapshot(), pending=changed)
        every = np.arange(len(snapshot.table))
        assert find_definers(snapshot, pattern, every, going_on=False) is None
        going_on = find_definers(snapshot, pattern, every, going_on=True)
        assert going_on is not None
        assert going_on.defining == {b"tests/test_z.py", b"zoo/z.c"}
        changed.popitem()
        few = find_definers(snapshot, pattern, every, going_on=False)
        assert few is not None
        assert few.paths == {b"app/launch.py", b"tests/test_z.py", b"zoo/z.c"}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (Pattern(texts=("launch",), mode="literal"), ["launch"]),
        (
            Pattern(texts=("def main", "Class.method("), mode="literal"),
            ["main", "method"],
        ),
        (Pattern(texts=("été_1", "=>", "9"), mode="literal"), ["été_1"]),
        (Pattern(texts=("launch",), mode="regex"), []),
        (Pattern(texts=("a\nb",), mode="literal", multiline=True), []),
    ],
)
def test_the_last_name_of_a_literal_is_looked_up(
    pattern: Pattern, names: list[str]
) -> None:
    assert names_in_pattern(pattern) == names


FENCES: dict[str, bytes] = {
    **{
        f"README.{at:02}.md": b"# Text\n\n```python\nconsole = Console()\n```\n" * 3
        for at in range(20)
    },
    **{
        f"app/a{at:02}.py": b"def run():\n    console = make()\n    style = make()\n"
        for at in range(40)
    },
    "lib/text.py": b"class Console:\n    pass\n\n\nclass Style:\n    style: int\n",
}
"""A type that many files have a variable of, by its name in small letters."""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Console", ("lib/text.py", 1)),
        ("console", ("lib/text.py", 1)),
        ("style", ("lib/text.py", 5)),
    ],
)
async def test_a_type_is_before_variables_and_the_code_of_prose(
    root: Path, text: str, first: tuple[str, int]
) -> None:
    put(root, FENCES)
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        answer = await workspace.search(asked(text))
        assert places(answer)[0] == first


async def test_a_named_function_that_is_passed_on_is_a_definition(root: Path) -> None:
    uses = {f"a{at:02}.js": b"var subdomains = req.subdomains\n" for at in range(40)}
    lines = b"define(req, 'subdomains', function subdomains() {\n  return 1\n})\n"
    put(root, {**uses, "lib/request.js": lines})
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        answer = await workspace.search(asked("subdomains"))
        assert places(answer)[0] == ("lib/request.js", 1)
