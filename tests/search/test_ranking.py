"""Which of two hits comes first."""

import pytest

from flashgrep.parts.symbols.relevance import rank_key

Line = tuple[str, str]
"""A file and a line in it."""


def before(asked: str, first: Line, second: Line) -> bool:
    """Return whether the first line is ranked before the second."""
    keys = [
        rank_key((asked,), path.encode(), (text, text.index(asked), 1))
        for path, text in (first, second)
    ]
    return keys[0] < keys[1]


@pytest.mark.parametrize(
    ("asked", "definition"),
    [
        ("load", "def load(path):"),
        ("def load", "def load(path):"),
        ("async def load", "    async def load(path):"),
        ("fn load", "pub(crate) fn load(&self) {"),
        ("class Load", "export default class Load {"),
        ("Load", "class Load:"),
        ("load", "int load(const char *path)"),
        ("int load", "static int load(void)"),
    ],
)
def test_a_definition_comes_before_a_use_asked_for_with_its_keyword_or_without(
    asked: str, definition: str
) -> None:
    assert before(asked, ("zebra.py", definition), ("a.py", f"    x = 1  # {asked}"))


def test_definitions_in_sources_come_before_those_in_tests_and_words_about_them() -> (
    None
):
    source, test = (
        ("src/app.py", "def main(arguments):"),
        ("tests/server.py", "async def main(folder):"),
    )
    prose = ("README.md", "== fgrep query 'def main'")
    assert before("def main", source, test)
    assert before("def main", source, prose)


@pytest.mark.parametrize("asked", ["def", "type", "class"])
def test_a_keyword_by_itself_defines_nothing(asked: str) -> None:
    text = f"{asked} x"
    assert not before(asked, ("b.py", text), ("a.py", text))
    assert before(asked, ("a.py", text), ("b.py", text))
