"""Names resolved to definitions: through imports, re-exports, aliases and the types of what they are used on."""

import time
from pathlib import Path

import pytest

from flashgrep.parts.navigation.research.research_walk import MOST_ALIASES
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from tests.search.research.test_research_engine import project, researched
from tests.support.pace import paced

TYPESCRIPT = {
    "tsconfig.json": """
        {
            // where the sources are
            "compilerOptions": {"baseUrl": ".", "paths": {"@app/*": ["src/*"],}},
        }
    """,
    "src/shapes/area.ts": """
        export function area(side: number) { return side * side }
        function hidden() { return 1 }
        export { hidden as shown }
        export default function total() { return area(2) }
        export class Square {
            side = 1
            grow(): this { return this }
            static unit(): Square { return new Square() }
        }
        export const ONE = 1
    """,
    "src/shapes/index.ts": """
        export * from './area.js'
        export { area as surface } from './area'
        export { default as sum } from './area'
        export * as raw from './area'
    """,
    "src/other.ts": "export function area() { return 'another' }\nexport class Square { grow() {} }\n",
    "src/use.ts": """
        import { area, surface, shown, raw, Square } from './shapes'
        import anything, { ONE as first } from '@app/shapes/area'
        import * as shapes from './shapes/index.js'
        function bare() { return area(1) }
        function renamed() { return surface(1) }
        function locally() { return shown() }
        function nested() { return raw.area(1) }
        function spaced() { return shapes.area(1) }
        function byDefault() { return anything() }
        function fluent(one: Square) { return one.grow().grow() }
        function made() { const it = Square.unit(); return it.grow() }
        function shadowed(area: () => number) { return area() }
        const twice = first + first
    """,
    "src/unsure.ts": "export function unsure(thing: any) { return thing.grow() }\n",
    "packages/lib/package.json": """{"name": "@my/lib", "exports": {".": {"import": "./dist/index.mjs"}}}""",
    "packages/lib/src/index.ts": "export { build } from './build'\n",
    "packages/lib/src/build.ts": "export const build = () => 1\n",
    "packages/app/main.ts": "import { build } from '@my/lib'\nexport function run() { return build() }\n",
    "old/tool.js": "function fix() { return 1 }\nmodule.exports = { fix, mend: fix }\n",
    "old/use.js": "const { mend } = require('./tool')\nfunction repair() { return mend() }\n",
}
PYTHON = {
    "pkg/__init__.py": "from .core import Client, helper as aid\nfrom . import tools\n__all__ = ['Client']\n",
    "pkg/core.py": """
        from __future__ import annotations
        from .base import Base


        def helper():
            return 1


        class Client(Base):
            def __init__(self) -> None:
                self.pool = Pool()

            def send(self):
                return self.pool.take().give()

            def __enter__(self) -> Client:
                return self


        class Pool:
            def take(self) -> Item: ...


        class Item:
            def give(self): ...
    """,
    "pkg/base.py": "class Base:\n    def close(self): ...\n",
    "pkg/tools.py": "from .core import *\n\n\ndef fix():\n    return helper()\n",
    "pkg/double.py": "class Client:\n    def close(self): ...\n    def send(self): ...\n\n\ndef helper(): ...\n",
    "use.py": """
        import pkg.tools
        from pkg import Client, aid, tools as kit


        def ask():
            with Client() as client:
                client.send()
            return aid(), kit.fix(), pkg.tools.fix()


        def end(client: Client):
            client.close()


        def elsewhere():
            import json as helper
            helper.loads("")
            return helper()
    """,
}
GO = {
    "go.mod": "module example.com/shop\n",
    "store/store.go": """
        package store
        type Base struct{}
        func (b *Base) Close() error { return nil }
        type Store struct { Base; items map[string]*Item }
        type Item struct{}
        func (i *Item) Price() int { return 1 }
        func New() (*Store, error) { return &Store{}, nil }
        func (s *Store) Find(name string) *Item { return s.items[name] }
        type Finder interface { Find(name string) *Item }
    """,
    "other/other.go": "package other\nfunc New() int { return 1 }\ntype Base struct{}\nfunc (b Base) Close() {}\n",
    "main.go": """
        package main
        import shop "example.com/shop/store"
        func use(n string, finder shop.Finder) int {
            s, err := shop.New()
            defer s.Close()
            for _, item := range []*shop.Item{} { item.Price() }
            return finder.Find(n).Price()
        }
    """,
}


def callers_of(root: Path, files: dict[str, str], name: str, target: str) -> set[str]:
    """Return who calls the definition in a file, with the way and confidence of what is not proven."""
    research = researched(project(root, files), f"callers of {name}", 1)
    nodes = research.graph.nodes
    return {
        nodes[edge.source].definition.qualified
        + ("" if edge.resolution.confidence >= 0.95 else " perhaps")
        for edge in research.graph.edges
        if edge.target[0].decode() == target
    }


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        (
            "area",
            "src/shapes/area.ts",
            {"total", "bare", "renamed", "nested", "spaced"},
        ),
        ("area", "src/other.ts", set()),
        ("hidden", "src/shapes/area.ts", {"locally"}),
        ("total", "src/shapes/area.ts", {"byDefault"}),
        ("Square.grow", "src/shapes/area.ts", {"fluent", "made", "unsure perhaps"}),
        ("build", "packages/lib/src/build.ts", {"run"}),
        ("fix", "old/tool.js", {"repair"}),
    ],
)
def test_typescript_is_followed_through_what_modules_export(
    tmp_path: Path, name: str, target: str, expected: set[str]
) -> None:
    assert callers_of(tmp_path, TYPESCRIPT, name, target) - {
        "unsure perhaps"
    } == expected - {"unsure perhaps"}


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("helper", "pkg/core.py", {"ask", "fix"}),
        ("helper", "pkg/double.py", set()),
        ("fix", "pkg/tools.py", {"ask"}),
        ("Client.send", "pkg/core.py", {"ask"}),
        ("Client.send", "pkg/double.py", set()),
        ("Base.close", "pkg/base.py", {"end"}),
        ("Client.close", "pkg/double.py", set()),
        ("Item.give", "pkg/core.py", {"Client.send"}),
        ("Client", "pkg/core.py", {"ask"}),
        ("Client", "pkg/double.py", set()),
    ],
)
def test_python_is_followed_through_packages_aliases_and_fields(
    tmp_path: Path, name: str, target: str, expected: set[str]
) -> None:
    assert callers_of(tmp_path, PYTHON, name, target) == expected


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("New", "store/store.go", {"use"}),
        ("New", "other/other.go", set()),
        ("Base.Close", "store/store.go", {"use"}),
        ("Base.Close", "other/other.go", set()),
        ("Item.Price", "store/store.go", {"use"}),
        ("Finder.Find", "store/store.go", {"use"}),
    ],
)
def test_go_is_followed_through_packages_results_and_embedding(
    tmp_path: Path, name: str, target: str, expected: set[str]
) -> None:
    assert callers_of(tmp_path, GO, name, target) == expected


OBJECTS = {
    "app.ts": """
        interface App { mount(at: string): void; use(plugin: unknown): this }
        type Create = (options: object) => App
        export const createApp = ((options: object) => ensure()) as Create
        type Result = { ok: true; error: Failure } | { ok: false }
        class Failure { flatten() {} }
        declare function parse(text: string): Result
        export function start() { createApp({}).use(1).mount('#app') }
        export function check() { return parse('').error.flatten() }
        function helpers() { return { push(line: string) {}, indent: () => 1 } }
        export function write() {
            const context = helpers()
            context.push('')
            const { push } = context
            push('local')
        }
        export function same<T extends Failure>(one: T) { return one.flatten() }
    """,
    "over.py": """
        from typing import overload


        class Context:
            @overload
            def look(self, name: str) -> str: ...

            @overload
            def look(self, name: int) -> int: ...

            def look(self, name): ...

            @property
            def parent(self) -> "Context": ...


        def ask(context: Context):
            return context.parent.look("a")
    """,
    "hide.go": """
        package hide
        type Group struct{}
        func (g *Group) Use() {}
        type Engine struct { Group; Flags Flags }
        func (e *Engine) Use() { e.Group.Use() }
        type Flags struct{}
        func run(g *Group) { g.Use() }
    """,
}


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("App.mount", "app.ts", {"start"}),
        ("App.use", "app.ts", {"start"}),
        ("Failure.flatten", "app.ts", {"check", "same"}),
        ("Context.look", "over.py", {"ask"}),
        ("Engine.Use", "hide.go", set()),
        ("Group.Use", "hide.go", {"Engine.Use", "run"}),
    ],
)
def test_values_have_the_types_that_the_text_tells(
    tmp_path: Path, name: str, target: str, expected: set[str]
) -> None:
    assert callers_of(tmp_path, OBJECTS, name, target) == expected


def test_a_local_variable_is_a_name_of_its_own(tmp_path: Path) -> None:
    research = researched(project(tmp_path, OBJECTS), "callers of push", 1)
    assert [edge.text for edge in research.graph.edges] == ["context.push('')"]


def test_what_is_found_does_not_depend_on_what_was_asked_before(tmp_path: Path) -> None:
    """Each of the two leads to the other: what was cut short on the way around is not remembered."""
    files = {
        "a.py": "from b import B\n\n\nclass A(B):\n    def one(self) -> 'B': ...\n",
        "b.py": "import a\n\n\nclass B:\n    def two(self) -> 'a.A': ...\n    def three(self): ...\n",
        "c.py": "from a import A\n\n\ndef use(x: A):\n    x.one().two().one().three()\n    x.two().three()\n",
    }
    for name in ("B.three", "B.two", "A.one"):
        assert callers_of(
            tmp_path, files, name, "a.py" if name == "A.one" else "b.py"
        ) == {"use"}


def test_constants_are_used_under_the_names_they_are_imported_by(
    tmp_path: Path,
) -> None:
    research = researched(project(tmp_path, TYPESCRIPT), "usages of ONE", 1)
    assert [edge.line for edge in research.graph.edges if edge.kind == "uses"] == [
        14,
        14,
    ][:1]


def test_calls_on_something_unknown_are_counted_and_never_reported_as_sure(
    tmp_path: Path,
) -> None:
    research = researched(project(tmp_path, TYPESCRIPT), "callers of grow", 1)
    told = [edge for edge in research.graph.edges if edge.path == b"src/unsure.ts"]
    assert all(edge.resolution.confidence <= 0.5 for edge in told)
    assert told or research.unsure


def test_an_unknown_receiver_is_decided_by_whether_the_file_names_the_type(
    tmp_path: Path,
) -> None:
    files = {
        "kinds.py": """
            class Lamp:
                def shine(self): ...
                def dim(self): ...
            class Sun:
                def dim(self): ...
            class Cloud:
                def dim(self): ...
        """,
        "seen.py": "from kinds import Lamp\ndef seen(one):\n    one.shine()\n    one.dim()\n",
        "two.py": "from kinds import Lamp, Sun\ndef two(one):\n    one.dim()\n",
        "far.py": "def far(one):\n    one.shine()\n    one.dim()\n",
    }
    source = project(tmp_path, files)
    found = {
        name: {
            (edge.path.decode(), edge.line): (
                edge.resolution.confidence,
                edge.resolution.how,
            )
            for edge in researched(source, f"callers of Lamp.{name}", 1).graph.edges
        }
        for name in ("shine", "dim")
    }
    assert found == {
        "shine": {
            ("seen.py", 3): (0.5, "type in sight"),
            ("far.py", 2): (0.5, "name only"),
        },
        "dim": {},
    }


def test_a_name_exported_under_an_alias_of_its_alias_is_found(tmp_path: Path) -> None:
    files = {
        "number.ts": "export function create() {}\n",
        "string.ts": "export function create() {}\n",
        "index.ts": """
            import { create as numberCreate } from './number'
            import { create as stringCreate } from './string'
            export { numberCreate as number, stringCreate as string }
        """,
        "use.ts": "import { number } from './index'\nfunction use() { number() }\n",
        "all.ts": "import * as all from './index'\nfunction allOf() { all.number() }\n",
        "other.ts": "import { string } from './index'\nfunction other() { string() }\n",
    }
    assert callers_of(tmp_path, files, "create", "number.ts") == {"use", "allOf"}


def test_a_default_export_that_is_exported_under_another_name_is_found(
    tmp_path: Path,
) -> None:
    files = {
        "number.ts": "export default function create() {}\n",
        "index.ts": "import make from './number'\nexport { make as number }\n",
        "use.ts": "import { number } from './index'\nfunction use() { number() }\n",
    }
    assert callers_of(tmp_path, files, "create", "number.ts") == {"use"}


def test_more_aliases_than_are_followed_make_an_answer_incomplete(
    tmp_path: Path,
) -> None:
    files = {"origin.ts": "export function create() {}\n"}
    for number in range(MOST_ALIASES + 1):
        files[f"user{number}.ts"] = f"""
            import {{ create as create{number} }} from './origin'
            create{number}()
        """
    research = researched(project(tmp_path, files), "callers of create", 1)
    assert len(research.graph.edges) < MOST_ALIASES + 1
    assert not research.complete


@pytest.mark.parametrize(
    ("files", "target"),
    [
        (
            {
                "base.ts": """
                    export class Schema {
                        test(): this { return this }
                        strict() { return this.test() }
                        required() {}
                    }
                """,
                "text.ts": """
                    import { Schema } from './base'
                    export class Text extends Schema {
                        required() {}
                        email() { return this.test() }
                    }
                    export function create() { return new Text() }
                """,
                "use.ts": """
                    import { create } from './text'
                    import { Schema } from './base'
                    function declared() { create().test().required() }
                    function inferred() { create().strict().required() }
                    function between() { create().email().strict().required() }
                    function base() { new Schema().strict().required() }
                """,
            },
            "text.ts",
        ),
        (
            {
                "base.py": """
                    class Schema:
                        def test(self):
                            return self
                        def strict(self):
                            return self.test()
                        @classmethod
                        def made(cls):
                            return cls()
                        def required(self): ...
                """,
                "text.py": """
                    from base import Schema
                    class Text(Schema):
                        def required(self): ...
                        def email(self):
                            return self.test()
                    def create():
                        return Text()
                """,
                "use.py": """
                    from text import Text, create
                    from base import Schema
                    def declared(): create().test().required()
                    def inferred(): create().strict().required()
                    def between(): create().email().strict().required()
                    def made(): Text.made().required()
                    def base(): Schema().strict().required()
                """,
            },
            "text.py",
        ),
    ],
)
def test_what_a_method_of_a_base_returns_of_itself_is_what_it_is_called_on(
    tmp_path: Path, files: dict[str, str], target: str
) -> None:
    expected = {"declared", "inferred", "between"}
    if target == "text.py":
        expected.add("made")
    callers = callers_of(tmp_path, files, "required", target)
    assert callers - {"base perhaps"} == expected


def test_an_attribute_that_a_class_makes_up_is_what_its_method_returns(
    tmp_path: Path,
) -> None:
    files = {
        "query.py": """
            class Query:
                def __getattr__(self, item):
                    query = type(self)()
                    return query
                def exists(self): ...
            class Special(Query): ...
            class Plain:
                def exists(self): ...
        """,
        "use.py": """
            from query import Query, Special, Plain
            def use(): Query().value.exists()
            def deep(): Special().value.inner.exists()
            def plain(): Plain().value.exists()
        """,
    }
    expected = {"use", "deep"}
    assert callers_of(tmp_path, files, "Query.exists", "query.py") == expected


def test_the_class_of_an_object_has_its_members(tmp_path: Path) -> None:
    files = {
        "parser.py": """
            class Parser:
                def process(self, text): ...
                def again(self): type(self).process(self, "")
                def more(self): self.__class__.process(self, "")
                def copy(self): type(self)().process("")
            class Other:
                def process(self, text): ...
        """,
        "use.py": """
            from parser import Parser
            def use(parser: Parser): type(parser).process(parser, "")
            def unknown(thing): type(thing).process(thing, "")
        """,
    }
    expected = {"Parser.again", "Parser.more", "Parser.copy", "use"}
    assert callers_of(tmp_path, files, "Parser.process", "parser.py") == expected


def test_a_comparison_gives_what_the_class_of_its_left_side_returns(
    tmp_path: Path,
) -> None:
    files = {
        "query.py": """
            class Query:
                def __eq__(self, other):
                    return Test()
                def __lt__(self, other) -> 'Test': ...
            class Test:
                def verify(self): ...
        """,
        "use.py": """
            from query import Query
            def equal(): (Query() == 1).verify()
            def less(): (Query() < 1).verify()
            def number(): (1 == 1).verify()
        """,
    }
    callers = callers_of(tmp_path, files, "Test.verify", "query.py")
    assert callers == {"equal", "less"}
    files["use.py"] = "def unknown(query): (query == 1).verify()\n"
    callers = callers_of(tmp_path / "second", files, "Test.verify", "query.py")
    assert callers == {"unknown perhaps"}


def test_one_of_many_overrides_is_only_possible_unless_the_file_names_its_type_alone(
    tmp_path: Path,
) -> None:
    files = {
        "base.py": "class Command:\n    def perform(self): ...\n",
        "kinds.py": """
            from base import Command
            class Clean(Command):
                def perform(self): ...
            class Forget(Command):
                def perform(self): ...
            class Ignore(Command):
                def perform(self): ...
        """,
        "far.py": "def far(one):\n    one.perform()\n",
        "seen.py": "from kinds import Clean\ndef seen(one):\n    one.perform()\n",
        "two.py": "from kinds import Clean, Forget\ndef two(one):\n    one.perform()\n",
        "test_far.py": "from far import far\ndef test_far():\n    far(1)\n",
    }
    source = project(tmp_path, files)
    told = {}
    for owner in ("Command", "Clean", "Forget"):
        research = researched(source, f"callers of {owner}.perform", 3)
        told[owner] = {
            (edge.path.decode(), edge.resolution.how) for edge in research.graph.edges
        }
        assert len(told[owner]) + research.unsure.total() == 3
    assert told == {
        "Command": set(),
        "Clean": {("seen.py", "type in sight")},
        "Forget": set(),
    }


def test_modules_that_import_each_other_are_followed_to_an_end(tmp_path: Path) -> None:
    files = {
        "a.ts": "export * from './b'\nexport { x } from './b'\n",
        "b.ts": "export * from './a'\nexport { x } from './a'\n",
        "c.ts": "import { x } from './a'\nfunction use() { return x() }\n",
        "d.ts": "export function x() {}\n",
    }
    assert callers_of(tmp_path, files, "x", "d.ts") == set()


HOSTILE = {
    "strings that never end": '{"name": "' + '\\"' * 100_000,
    "comments that never end": "/*" * 100_000,
    "commas": '{"name": ' + "," * 100_000 + " " * 100_000,
    "a chain of extensions": '{"extends": ['
    + ",".join(f'"./{at}/tsconfig.json"' for at in range(300))
    + "]}",
    "extends itself many times": '{"extends": ['
    + '"./tsconfig.json",' * 200
    + '"./package.json"]}',
    "exports in exports": '{"name": "lib", "exports": '
    + '{"a":' * 1_000
    + '"./x.ts"'
    + "}" * 1_001,
    "imports in imports": '{"name": "lib", "imports": {"#a": '
    + "[" * 1_000
    + '"./x.ts"'
    + "]" * 1_000
    + "}}",
    "a path out of the project": '{"name": "lib", "exports": "../../../../../etc/passwd"}',
    "no object": "[1, 2]",
    "paths that are none": '{"compilerOptions": {"paths": {"lib": [null, 1, {}], "*": "x", "a": 3}, "baseUrl": 7}}',
}


@pytest.mark.parametrize("told", HOSTILE.values(), ids=HOSTILE)
def test_settings_of_hostile_packages_cost_time_in_proportion(
    tmp_path: Path, told: str
) -> None:
    files = {
        "tsconfig.json": told,
        "package.json": told,
        "lib/package.json": told,
        "lib/x.ts": "export function area() { return 1 }\n",
        "use.ts": "import { area } from 'lib'\nimport { area as b } from '#a'\nfunction f() { return area() + b() }\n",
    }
    if told == HOSTILE["a chain of extensions"]:
        files |= {
            f"{at}/tsconfig.json": f'{{"extends": "../{at + 1}/tsconfig.json"}}'
            for at in range(1_100)
        }
    started = time.process_time()
    researched(project(tmp_path, files), "callers of area", 1)
    assert time.process_time() - started < paced(
        5
    )  # the square of the length would take minutes


SOURCES = {
    "blanks in an import.ts": "import { area," + " " * 60_000 + "} from './x'\narea()\n",
    "comments without an end.ts": "import { area } from './x' " + "/*" * 60_000 + "\narea()\n",
    "a long word exported.ts": "import { area } from './x'\nexport { " + "a" * 60_000 + " }\narea()\n",
    "blanks in an export.ts": "import { area } from './x'\nconst b = 1\nexport { b " + " " * 60_000 + " c }\narea()\n",
    "deep.ts": "import { area } from './x'\nconst f = () => " + "(" * 20_000 + "area()" + ")" * 20_000 + "\n",
    "deep members.py": "from x import area\n\ndef f(a):\n    return a" + ".b" * 20_000 + ".area()\n",
    "deep calls.py": "from x import area\n\ndef f(a):\n    return " + "f(" * 20_000 + "a" + ")" * 20_000 + ".area()\n",
    "a circle.py": "from x import area\ndef f():\n    return g().area()\ndef g():\n    return f() or h()\nh = g\n",
    "a long word.go": "package m\nimport " + "a" * 60_000 + ' "x"\nfunc f() { area() }\n',
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_hostile_sources_cost_time_in_proportion(tmp_path: Path, name: str) -> None:
    files = {
        "x.ts": "export function area() { return 1 }\n",
        "x.py": "def area(): ...\n",
        name: SOURCES[name],
    }
    started = time.process_time()
    researched(project(tmp_path, files), "callers of area", 2)
    assert time.process_time() - started < paced(
        10
    )  # the square of the length would take minutes


PY = "class Client:\n    def send(self): ...\nclass Other:\n    def send(self): ...\n"
TS = "class Client { send() {} }\nclass Other { send() {} }\n"
GO_ITEM = (
    "package a\ntype Item struct{}\nfunc (i *Item) Price() int { return 1 }\n"
    "type Other struct{}\nfunc (o *Other) Price() int { return 1 }\n"
)
JS = (
    "function Loom () {}\nLoom.prototype.weave = function () {}\n"
    "function Other () {}\nOther.prototype.weave = () => 1\n"
)


@pytest.mark.parametrize(
    ("path", "text", "name", "line"),
    [
        (
            "a.py",
            f"{PY}def use():\n    x = (  # why\n        Client()\n    )\n    x.send()\n",
            "send",
            2,
        ),
        (
            "a.py",
            f"{PY}def use(y):\n    x = (Client() if y  # why\n        else None)\n    x.send()\n",
            "send",
            2,
        ),
        (
            "a.py",
            f"{PY}def use():\n    x = {{'a': Client()}}\n    x['a'].send()\n",
            "send",
            2,
        ),
        ("a.py", f"{PY}def use(x: 'Client | None'):\n    x.send()\n", "send", 2),
        ("a.py", f"{PY}def use():\n    (x := Client()).send()\n", "send", 2),
        (
            "a.ts",
            f"{TS}function use(x?: /* why */ Client) {{ (/* why */ x)!.send() }}\n",
            "send",
            1,
        ),
        (
            "a.ts",
            f"{TS}function use(x: Array</* why */ Client>) {{ x[0].send() }}\n",
            "send",
            1,
        ),
        (
            "a.ts",
            f"{TS}function cast(x: Other): Client {{}}\nfunction use(y: Other) {{ cast(y).send() }}\n",
            "send",
            1,
        ),
        (
            "a.ts",
            f"{TS}const cast = () => g() as Client\nfunction use() {{ cast().send() }}\n",
            "send",
            1,
        ),
        (
            "a.ts",
            f"{TS}const twice = (y) => y ? new Client() : null\nfunction use() {{ twice().send() }}\n",
            "send",
            1,
        ),
        (
            "a.ts",
            f"{TS}const one = () => 1\nfunction use() {{ one().send() }}\n",
            "send",
            0,
        ),
        (
            "a.ts",
            f"{TS}function use(x: Client, y: Other) {{ const z = x === y; z.send() }}\n",
            "send",
            0,
        ),
        (
            "a.ts",
            f"{TS}function use(x: Client) {{ const z = typeof x; z.send() }}\n",
            "send",
            0,
        ),
        (
            "a.go",
            f"{GO_ITEM}func use(x chan *Item) int {{\n\ty := <-x\n\treturn y.Price()\n}}\n",
            "Price",
            3,
        ),
        (
            "a.go",
            f"{GO_ITEM}func use(x chan *Item) int {{ return (<-x).Price() }}\n",
            "Price",
            3,
        ),
        (
            "a.js",
            f"{JS}function use () {{ const x = new Loom(); x.weave() }}\n",
            "weave",
            2,
        ),
    ],
)
def test_what_is_called_is_decided_by_its_receiver(
    tmp_path: Path, path: str, text: str, name: str, line: int
) -> None:
    source = project(tmp_path, {path: text, "go.mod": "module m\n"})
    found = researched(source, "what does use call", 1).graph
    called = {
        found.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.edges
        if found.nodes[edge.target].definition.name == name
        and edge.resolution.confidence >= 0.95
    }
    assert called == ({line} if line else set())


@pytest.mark.parametrize(
    ("alias", "written", "line"),
    [
        ("type Maybe<T> = T | null", "Maybe<Client>", 1),
        ("type Second<A, B> = B", "Second<Other, Client>", 1),
        ("type Second<A, B> = B", "Second<Client, Other>", 2),
        ("type Item<T> = T extends (infer E)[] ? E : never", "Item<Client[]>", 1),
        (
            "type Item<T> = T extends Map<string, infer E> ? E : never",
            "Item<Map<string, Client>>",
            1,
        ),
        (
            "type Given<T> = T extends (...all: any) => infer R ? R : never",
            "Given<() => Client>",
            1,
        ),
        (
            "type Both<U> = (U extends any ? (one: U) => void : never) extends (one: infer I) => void ? I : never",
            "Both<Client>",
            1,
        ),
        (
            "type Deep<T> = T extends Date ? Client : { [K in keyof T]: Deep<T[K]> }",
            "Deep<any>",
            1,
        ),
        (
            "type Cut<T> = T extends `${infer A}/${infer B}` ? { [K in A]: Cut<B> } : Client",
            "Cut<string>",
            1,
        ),
        ("type Wrong<T> = T extends Other ? never : Wrong<T>", "Wrong<Client>", 0),
        ("type Keys<T> = keyof T", "Keys<Client>", 0),
    ],
)
def test_generic_aliases_stand_for_what_they_are_given(
    tmp_path: Path, alias: str, written: str, line: int
) -> None:
    files = {"a.ts": f"{TS}{alias}\nfunction use(x: {written}) {{ x.send() }}\n"}
    found = researched(project(tmp_path, files), "what does use call", 1).graph
    assert {
        found.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.edges
        if edge.resolution.confidence >= 0.95
    } == ({line} if line else set())


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        ("{ [K in string]: Client }", 1),
        ("{ [name: string]: Client }", 1),
        ("{ other: Other } & { [name: string]: Client }", 1),
        ("{ one: Other; [name: string]: any }", 2),
    ],
)
def test_any_member_of_a_type_with_an_index_is_what_that_says(
    tmp_path: Path, shape: str, line: int
) -> None:
    files = {"a.ts": f"{TS}function use(x: {shape}) {{ x.one.send() }}\n"}
    found = researched(project(tmp_path, files), "what does use call", 1).graph
    assert {
        found.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.edges
    } == {line}


def test_a_call_means_the_overload_with_a_body(tmp_path: Path) -> None:
    shape = """
        export class Shape {
            grow(): Shape
            grow(by: number): Shape
            grow(by?: number) { return this }
        }
        export function use(one: Shape) { return one.grow(2) }
    """
    found = researched(
        project(tmp_path, {"shape.ts": shape}), "callers of Shape.grow", depth=1
    )
    lines = [
        found.graph.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.graph.edges
    ]
    assert lines == [5]


def test_a_type_of_a_callback_is_seen_in_the_functions_inside_it(
    tmp_path: Path,
) -> None:
    text = """\
        interface State { a: number }
        it("first", () => {
            type State = { b: number }
            const change = (draft: State) => draft
        })
        it("second", () => {
            const change = (draft: State) => draft
        })
    """
    source = project(tmp_path, {"a.test.ts": text})
    edges = researched(source, "usages of State", 1).graph.edges
    symbols = source.open(b"a.test.ts")
    assert isinstance(symbols, FileSymbols)
    lines = symbols.lines
    assert {(edge.line, lines.line(edge.target[1])) for edge in edges} == {
        (4, 3),
        (7, 1),
    }


def test_a_call_of_c_without_a_receiver_is_no_field(tmp_path: Path) -> None:
    text = (
        "struct scanner { int size; };\ntypedef struct { struct scanner turn; } shelf;\n"
        "static int turn(struct scanner *s) { return 1; }\n"
        "static int lift(struct scanner *s) { return turn(s); }\n"
    )
    research = researched(project(tmp_path, {"a.c": text}), "callers of turn", 1)
    function = text.index("turn(struct scanner *s) {")
    assert [(edge.line, edge.target[1]) for edge in research.graph.edges] == [
        (4, function)
    ]
