"""Where one definition is used, by its position: of a field and a method of one name, each has its own uses.

A table is a small project, ``=== path`` before each file. Where a definition is marked ``asked``, each line with its name
is a use of it, but where it says ``no use``, or ``no use of LINE`` for one of several.
"""

import re
from pathlib import Path

import pytest

from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.navigation.references import ReferenceQuestion, ReferenceSearch
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_name_at
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import parse_file
from tests.search.research.test_research_engine import project
from tests.search.symbol_folder import FolderSource

TABLES = sorted((Path(__file__).parent / "places").glob("*.txt"))
SURE = 0.5


def named_at(source: FolderSource, path: str, number: int) -> NameAtPosition:
    """Return the name that is defined in a line."""
    data = source.read(path.encode())
    assert data is not None
    symbols = parse_file(path.encode(), data)
    assert isinstance(symbols, FileSymbols)
    starts = [
        symbols.row(index)[0]
        for index in range(len(symbols.rows))
        if symbols.lines.line(symbols.row(index)[0]) == number
    ]
    assert starts, (path, number)
    offset = starts[0]
    column = offset - symbols.lines.start(number) + 1
    found = find_name_at(source, path.encode(), number, column, "utf-8")
    assert isinstance(found, NameAtPosition), (path, number)
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_definition_has_its_own_uses(tmp_path: Path, table: Path) -> None:
    _, *parts = re.split(r"(?m)^=== (.+)\n", table.read_text())
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    source = project(tmp_path, files)
    lines = {
        (path, number): line
        for path, text in files.items()
        for number, line in enumerate(text.splitlines(), 1)
    }
    asked = [place for place, line in lines.items() if re.search(r"\basked\b", line)]
    assert asked
    for path, number in asked:
        named = named_at(source, path, number)
        question = ReferenceQuestion(limit=1000, include_declaration=False)
        places = ReferenceSearch(source, question).run(named).places
        told = {
            (place.path.decode(), place.symbols.lines.line(place.start))
            for place in places
            if place.resolution.confidence >= SURE
        }
        word = re.compile(rf"(?<!\w)\$?#?{re.escape(named.text.strip('$#'))}(?!\w)")
        no_use = re.compile(rf"no use(?! of)|no use of (?:\d+ )*{number}\b")
        told.discard((path, number))
        expected = {
            place
            for place, line in lines.items()
            if word.search(re.split(r"\s(?://|#)\s", line)[0])
            and place != (path, number)
            and not no_use.search(line)
        }
        lost = [lines[place] for place in sorted(expected - told)]
        wrong = [lines[place] for place in sorted(told - expected)]
        assert (named.text, number, lost, wrong) == (named.text, number, [], [])


def test_a_name_of_c_without_a_receiver_is_no_field(tmp_path: Path) -> None:
    files = {
        "memory.h": "struct memory { void (*release)(void *); };\n",
        "use.c": '#include "memory.h"\nvoid f(void *p) { release(p); }\n',
    }
    source = project(tmp_path, files)
    column = files["use.c"].splitlines()[1].index("release") + 1
    named = find_name_at(source, b"use.c", 2, column, "utf-8")
    assert isinstance(named, NameAtPosition)
    assert Navigator(source).find_definitions(named).places == []
