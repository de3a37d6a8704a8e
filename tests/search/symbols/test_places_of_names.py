"""Where a name at a position leads: a table of small files, each with positions and the lines that define them.

A table is named as the file that it is, and ``.txt``. In a line, ``NAME@COLUMN -> LINE`` after the comment sign says
that the name at that occurrence (from 1) leads to a line of the same file; ``-> none`` that nothing is told; ``=>``
that it should, but does not yet: where it does, the mark is wrong.
"""

import re
from pathlib import Path

import pytest

from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_name_at
from tests.search.symbol_folder import FolderSource

TABLES = sorted((Path(__file__).parent / "positions").iterdir())
ASKED = re.compile(r"([$#]?\w+)@(\d) ([-=])> (\d+|none)")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_name_leads_to_the_line_that_defines_it(tmp_path: Path, table: Path) -> None:
    (tmp_path / table.stem).write_bytes(table.read_bytes())
    source = FolderSource(tmp_path)
    wrong = []
    count = 0
    for number, line in enumerate(table.read_text().splitlines(), 1):
        code = re.split(r"\s(?://|#)\s", line)[0]
        for name, nth, mark, expected in ASKED.findall(line):
            count += 1
            starts = [
                match.start()
                for match in re.finditer(rf"(?<![\w$]){re.escape(name)}(?!\w)", code)
            ]
            path = table.stem.encode()
            column = starts[int(nth) - 1] + 1
            named = find_name_at(source, path, number, column, "utf-8")
            if isinstance(named, NameAtPosition):
                places = Navigator(source).find_definitions(named).places
                sure = [place for place in places if place.resolution.confidence > 0.5]
                told = [str(place.symbols.lines.line(place.start)) for place in sure]
            else:
                told = []
            is_right = told == ([] if expected == "none" else [expected])
            if is_right != (mark == "-"):
                wrong.append((number, name, nth, expected, told))
    assert count
    assert wrong == []
