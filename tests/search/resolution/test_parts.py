"""Parts of files that are parsed in the place of the whole: a name stands for the same in them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flashgrep.parts.navigation.resolution import inference
from flashgrep.parts.navigation.resolution.plain_text import (
    find_part,
    find_part_of_members,
)
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.scoping import MODULE, FileScopes, read_scopes
from tests.search.research.test_research_engine import project, researched
from tests.search.symbol_folder import FolderSource

PYTHON = b"""import os
class Outer(dict):
    '''Says {.'''
    kept: int = 1

    @property
    def first(self, given: int = 1):
        held = [each for each in given]
        def inner(deep):
            from a import held
            return held(deep)
        return inner(held)

    class Inner:
        def second(self, given): return given(os)
        async def third(self):
            with open(self) as file: file.read()

    def last(self): kept = 2; return kept(self)
if os:
    def hidden(one): return one()
@decorated(os)
def outside(one, *rest, two=3):
    global kept
    return [one(rest) for rest in two()]
"""
TYPESCRIPT = b"""import { given } from "./a"
export abstract class Box<T extends { of: string }> extends given(Mixed) implements Other {
    // says {
    private readonly one = { two: (three) => three() }
    constructor(private it: Box, plain = 1) { super(); this.late = plain() }
    first<K>(asked: K, { part, other: renamed }: T): K {
        const held = asked(part), [list] = renamed()
        function held2(deep) { return list(deep) }
        return class Local { run(x) { return x(held) } }
    }
    get second() { return this.it.first(() => { let one = 2; return one() }) }
    static async *third(asked) { for (const each of asked()) { yield each() } }
    arrow = async (given) => given()
}
export default class { run(one) { return one() } }
export const made = (asked) => ({ key: asked(), other() { return asked() } })
export class Line { a(b) { return b() } c(d) { return d() } }
class Plain { run(one) { return one() } }
namespace Around { const kept = 1; export class Inside { run(one) { return one(kept()) } } }
describe("it", () => { const kept = 1
class Inside { run(one) { return one(kept()) } }
})
"""
GO = b"""package a
import "b"
type Box struct { one int }
func (box *Box) First(asked func() int) int {
    held := asked()
    return func(deep int) int { return call(held, deep) }(box.one)
}
func Second(one int) { for two := range one { b.Run(two, one) } }
"""
FIELDS = b"""import { given } from "./a"
export class Wheel<T extends { of: string } = { of: "x" }> extends given {
    @Column({ type: "x" })
    name: string = ""
    list = [given, 1]
    @Column() one!: Wheel; two = 2
    #hidden: Wheel = new Wheel()
    late // of its own
    constructor(private it: Wheel, plain = 1) { super(); this.late = plain() }
    set(name) { this.name = name; this.late ??= name; const { it } = name; return { list: it } }
    turn() { return this.#hidden.turn(this.name, this.one, this.two, this.it) }
}
export class Plain {
    size?: number
    set() { this.size = 1 }
    run() { return this.size.run() }
}
"""
OWN = Path(inference.__file__).read_bytes()
TEXTS = [("python", PYTHON), ("typescript", TYPESCRIPT), ("go", GO), ("python", OWN)]
SAMPLES = Path(__file__).parents[2] / "ingest" / "samples"
SCOPED_SAMPLES = [
    *TEXTS,
    ("typescript", FIELDS),
    *((name, (SAMPLES / f"sample.{end}").read_bytes()) for name, end in (
        ("python", "py"), ("typescript", "ts"), ("tsx", "tsx"), ("javascript", "js"), ("go", "go"), ("vue", "vue"),
    )),
]  # fmt: skip


def symbols_of(language: str, data: bytes) -> FileSymbols:
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    return FileSymbols(parsed, data)


def seen_at(
    file: FileScopes | None, offset: int
) -> list[dict[str, list[tuple[int, str]]]]:
    """Return what the names in the scopes around a place are bound by, innermost first, but for the file's own."""
    assert file is not None
    names = [file.names_of(scope) for scope in file.around(offset) if scope != MODULE]
    return [
        {
            name: [(one.offset, one.kind) for one in found]
            for name, found in each.items()
        }
        for each in names
    ]


@pytest.mark.parametrize(("language", "data"), TEXTS)
def test_in_a_part_names_are_bound_as_in_the_whole(language: str, data: bytes) -> None:
    symbols, whole = symbols_of(language, data), read_scopes(b"a", language, data)
    offsets = [
        *symbols.parsed.marked("call").tolist(),
        *(row[0] for row in symbols.rows),
    ]
    parts = {
        offset: find_part(symbols, symbols.enclosing(offset)) for offset in offsets
    }
    assert len(set(parts.values())) > 3
    assert (
        min(sum(end - start for start, end in part) for part in parts.values() if part)
        < len(data) / 3
    )
    read = {
        part: read_scopes(b"a", language, data, part) for part in set(parts.values())
    }
    assert whole is not None
    for offset, part in parts.items():
        file = read[part]
        assert seen_at(file, offset) == seen_at(whole, offset)
        assert file is not None
        nodes = file.node_at(offset), whole.node_at(offset)
        assert len({str(node) for node in nodes}) == 1


@pytest.mark.parametrize(("language", "data"), SCOPED_SAMPLES)
def test_all_that_a_function_binds_is_stored_with_the_symbols(
    language: str, data: bytes
) -> None:
    symbols, whole = symbols_of(language, data), read_scopes(b"a", language, data)
    assert whole is not None
    assert symbols.parsed.bound is not None
    for scope in whole.scopes:
        for name, bindings in scope.names.items() if not scope.is_class else ():
            for one in bindings:
                assert (
                    symbols.parsed.may_bind(one.offset)
                    or symbols.index_at(one.offset) >= 0
                ), (
                    name,
                    one,
                )
    words = {
        offset
        for match in re.finditer(rb"\w+", data)
        if symbols.index_at(offset := match.start()) < 0
    }
    assert sum(map(symbols.parsed.may_bind, words)) < len(words) / 3


@pytest.mark.parametrize(
    ("language", "data"), [one for one in SCOPED_SAMPLES if one[0] != "vue"]
)
def test_what_a_class_binds_is_found_by_the_members_that_set_it(
    language: str, data: bytes
) -> None:
    symbols, whole = symbols_of(language, data), read_scopes(b"a", language, data)
    assert whole is not None
    read = 0
    for own in (
        index for index in range(len(symbols.rows)) if symbols.kind(index) == "class"
    ):
        scope = whole.scope_of(symbols.row(own)[0])
        for name, bindings in scope.names.items() if scope is not None else ():
            if part := find_part_of_members(symbols, own, name):
                file = read_scopes(b"a", language, data, part)
                inner = file.scope_of(symbols.row(own)[0]) if file is not None else None
                assert inner is not None
                assert [
                    (one.offset, one.kind, str(one.type), str(one.value))
                    for one in inner.names[name]
                ] == [
                    (one.offset, one.kind, str(one.type), str(one.value))
                    for one in bindings
                ]
                read += 1
    assert read > 2 or data != FIELDS


def test_symbols_without_what_is_bound_lead_to_the_same(tmp_path: Path) -> None:
    text = "class Base { run() {} }\nfunction use(Base) { const it = new Base(); it.run() }\nnew Base().run()\n"
    (tmp_path / "a.ts").write_text(text)
    told = replace(symbols_of("typescript", text.encode()).parsed, bound=None)

    class Untold(FolderSource):
        def open(self, path: bytes, _holds: object = None, /) -> FileSymbols:
            return FileSymbols(told, (self.root / path.decode()).read_bytes())

    for source in (FolderSource(tmp_path), Untold(tmp_path)):
        edges = researched(source, "callers of Base.run", 1).graph.edges
        assert [edge.line for edge in edges if edge.resolution.confidence > 0.9] == [3]


SETS = """class Base { run() {} }
let kept
function reset() { kept = 2 }
function own(kept) { kept = 3 }
function more() { kept = new Base()
kept.run() }
"""


def test_what_a_function_sets_is_declared_elsewhere(tmp_path: Path) -> None:
    source = project(tmp_path, {"a.ts": SETS})
    assert [
        edge.line for edge in researched(source, "where is kept used", 1).graph.edges
    ] == [3, 5, 6]
    assert [
        edge.line for edge in researched(source, "callers of Base.run", 1).graph.edges
    ] == [6]


def test_what_is_known_of_a_text_does_not_outlive_it(tmp_path: Path) -> None:
    kinds = "export class Base { run() {} }\nexport class Other { run() {} }\n"
    files = {
        "kinds.ts": kinds,
        "a.ts": "import { Base, Other } from './kinds'\nclass A {\nit: Base\nuse() { this.it.run() }\n}\n",
    }
    source = project(tmp_path, files)
    for typed, line in (("Base", 1), ("Other", 2), ("Base", 1)):
        (tmp_path / "a.ts").write_text(
            files["a.ts"].replace("it: Base", f"it: {typed}")
        )
        edges = researched(source, "what does use call", 1).graph.edges
        assert [edge.target[1] for edge in edges] == [
            kinds.index("run" if line == 1 else "run() {} }\n", 50 * (line - 1))
        ]


def test_what_something_else_may_be_around_is_read_as_a_whole() -> None:
    symbols = symbols_of("typescript", TYPESCRIPT)
    for text in (b"one(kept())", b"run(one) { return one() } }\nnamespace"):
        assert find_part(symbols, symbols.enclosing(TYPESCRIPT.rindex(text))) == ()


KINDS = "export class Base { run() {} }\nexport class Other { run() {} }\n"
IMPORTS = "import { Base, Other } from './kinds'\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class A { it() { return new Base() }\n use() { this.it().run() } }", 1),
        ("class A { constructor(private it: Base) {}\n use() { this.it.run() } }", 1),
        ("class A { it = new Base()\n use() { this.it.run() } }", 1),
        ("class A extends Base { run = 1\n use() { this.run() } }", 0),
        ("class A extends Base { set() { this.run = 1 }\n use() { this.run() } }", 0),
        ("class A extends Base { stop() { this.run() }\n use() { this.run() } }", 1),
        ("class A extends Base { use() { this.run(); 'run'.length } }", 1),
        (
            "class A { get it(): Base { return 1 }\n set it(x) {}\n use() { this.it.run() } }",
            1,
        ),
        (
            "class A { it(x: 1): Base\n it(x): Base { return 1 }\n use() { this.it().run() } }",
            1,
        ),
        (
            "interface A { it(): Base\n it(x: 1): Base }\nfunction use(a: A) { a.it().run() }",
            1,
        ),
        ("class A extends Base { 'run'() {}\n use() { this.run() } }", 0),
        ("class A extends Other { use(run: Base) { run.run() } }", 1),
        ("class A { it: Base\n use() { this.it?.run(); this.it!.run() } }", 1),
        (
            "class A { it?: { on: Base }\n use() { return { to: this.it?.on.run() } } }",
            1,
        ),
        (
            "class A { it: Base\n use() { return { it: 1, to() { this.it.run() } } } }",
            0,
        ),
    ],
)
def test_a_member_of_typescript_is_that_of_the_tree(
    tmp_path: Path, text: str, line: int
) -> None:
    files = {"kinds.ts": KINDS, "a.ts": IMPORTS + text + "\n"}
    found = researched(project(tmp_path, files), "what does use call", 1).graph
    called = {
        found.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.edges
        if edge.target[0] == b"kinds.ts" and edge.resolution.confidence >= 0.95
    }
    assert called == ({line} if line else set())
