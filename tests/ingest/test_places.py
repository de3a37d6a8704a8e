"""Where names stand and as what: what is told of many places at once is what is told of each."""

from pathlib import Path

import pytest

from flashgrep.base.languages import language_of
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.imports import may_rename, read_imports
from flashgrep.parts.symbols.parse.lookup import FileSymbols

SAMPLES = Path(__file__).parent / "samples"


def parse(name: str, data: bytes) -> FileSymbols:
    found = parse_symbols(language_of(name.encode(), data).name, data)
    assert isinstance(found, ParsedFile)
    return FileSymbols(found, data)


@pytest.mark.parametrize(
    "name",
    ["sample.py", "sample.ts", "sample.go", "sample.c", "sample.rb", "sample.swift"],
)
def test_roles_of_many_places_are_those_of_each(name: str) -> None:
    symbols = parse(name, (SAMPLES / name).read_bytes())
    marks = [
        at
        for kind in ("call", "import", "base")
        for at in symbols.parsed.marked(kind).tolist()
    ]
    words = {
        symbols.word_at(at) for at in [*marks, *(row[0] for row in symbols.rows)]
    } - {""}
    assert len(words) > 10
    for word in words:
        places = list(symbols.places(word))
        used = [(at, role) for at, role in places if symbols.index_at(at) < 0]
        assert used == [
            (at, role) for at, _ in used if (role := symbols.role(at)) is not None
        ]
        assert list(symbols.calls(word)) == [at for at, role in used if role == "call"]
        assert list(symbols.defining(word)) == [
            index for at, _ in places if (index := symbols.index_at(at)) >= 0
        ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "from shapes import area as size"),
        ("a.py", "from shapes import (area  # of all\n    as size)"),
        ("a.ts", "import { area as size } from './shapes'"),
        ("a.ts", "import { area /* of all */ as size } from './shapes'"),
        ("a.ts", "export { area as size } from './shapes'"),
        ("a.ts", "function area() {}\nexport { area as size }"),
        ("a.ts", "export default area"),
        ("a.ts", "export default abstract class area {}"),
        ("a.ts", "export default async function area() {}"),
        ("a.ts", "const area = 1\nexport = area"),
        ("a.js", "function area() {}\nmodule.exports = area"),
        ("a.js", "function area() {}\nmodule.exports = { size: area }"),
        ("a.js", "function area() {}\nexports.size = area"),
        ("a.js", "const { area: size } = require('./shapes')"),
        ("a.js", "const size = require('./shapes').area"),
        ("a.js", "const { area: size } = await import('./shapes')"),
    ],
)
def test_a_file_that_gives_a_name_another_one_is_read_for_it(
    name: str, text: str
) -> None:
    symbols = parse(name, text.encode())
    imports = read_imports(symbols)
    known = [
        *(one for several in imports.names.values() for one in several),
        *imports.exports.values(),
    ]
    assert [one.local for one in known if one.name == "area"] in (["size"], ["default"])
    assert may_rename(symbols, "area")


@pytest.mark.parametrize(
    "text",
    [
        "area(1)",
        "const x: area = area(2) / 3\nexport const y = area",
        "import { area } from 'x'",
    ],
)
def test_a_file_that_only_uses_a_name_is_not(text: str) -> None:
    assert not may_rename(parse("a.ts", text.encode()), "area")
