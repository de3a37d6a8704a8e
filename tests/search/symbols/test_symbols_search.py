"""Symbols by name over a folder: roles, order, qualified names, prefix and fuzzy matches, outlines."""

import gc
import sys
import textwrap
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from flashgrep.base.checkpoint import CURRENT_TURN
from flashgrep.parts.navigation.qualified_targets import find_targets
from flashgrep.parts.symbols.outlines import outline
from flashgrep.parts.symbols.repository_map import ASIDE, repository_map
from flashgrep.parts.symbols.symbol_search import (
    SymbolAnswer,
    SymbolQuestion,
    SymbolSearch,
    find_best_definition,
    find_near_names,
)
from tests.search.symbol_folder import FolderSource

FILES = {
    "src/store.py": '''
        """Store and read."""
        from base import Root


        class Store(Root):
            """Keeps things."""

            def read(self, key):
                """Read one."""
                # read is not a use here, nor is "read" there
                return self.read_all("read")[key]

            def read_all(self, key): ...


        class File:
            def read(self): ...
    ''',
    "src/main.py": """
        from store import Store

        callbacks = [Store.read]


        def start():
            shop = Store()
            return shop.read("x")
    """,
    "src/lib.rs": """
        mod wire { pub fn send() {} }
        fn main() { wire::send(); }
    """,
    "tests/test_store.py": """
        from store import Store


        def test_read():
            Store().read("y")
    """,
    "data.bin": "\0\0read",
}


@pytest.fixture
def source(tmp_path: Path) -> FolderSource:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip())
    return FolderSource(tmp_path)


def asked(source: FolderSource, name: str, **more: Any) -> SymbolAnswer:
    question = SymbolQuestion(name=name, resolve=find_targets, **more)
    return SymbolSearch(source, question).run()


def places(answer: SymbolAnswer) -> list[str]:
    return [
        f"{found.occurrence.role} {found.path.decode()}:{found.occurrence.line}"
        for found in answer.results
    ]


def test_find_symbol_by_name(source: FolderSource) -> None:
    """All occurrences: definitions first, sources before tests, comments and strings left out."""
    assert places(asked(source, "read")) == [
        "definition src/store.py:8",
        "definition src/store.py:17",
        "call src/main.py:8",
        "call tests/test_store.py:5",
        "reference src/main.py:3",
    ]
    assert places(asked(source, "Store")) == [
        "definition src/store.py:5",
        "call src/main.py:7",
        "call tests/test_store.py:5",
        "reference src/main.py:3",
        "import src/main.py:1",
        "import tests/test_store.py:1",
    ]


def test_a_definition_says_what_it_is(source: FolderSource) -> None:
    found = asked(source, "Store").results[0]
    one = found.occurrence
    assert (one.kind, one.start_line, one.end_line, one.line, one.column) == (
        "class",
        5,
        13,
        5,
        7,
    )
    assert (found.signature, found.doc, found.language) == (
        "class Store(Root):",
        "Keeps things.",
        "python",
    )
    method = asked(source, "Store.read").results[0]
    assert (method.occurrence.container, method.doc) == ("Store", "Read one.")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "Store.read",
            [
                "definition src/store.py:8",
                "call src/main.py:8",
                "call tests/test_store.py:5",
                "reference src/main.py:3",
            ],
        ),
        ("File.read", ["definition src/store.py:17"]),
        ("wire::send", ["definition src/lib.rs:1", "call src/lib.rs:2"]),
        ("Nothing.read", []),
    ],
)
def test_a_qualified_name_means_its_own_scope(
    source: FolderSource, name: str, expected: list[str]
) -> None:
    assert places(asked(source, name)) == expected


def test_uses_are_of_the_named_definition_or_the_answer_says_of_several(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text(
        "class A:\n    def go(self): ...\nclass B:\n    def go(self): ...\n"
    )
    (tmp_path / "b.py").write_text(
        "from a import A, B\nA().go()\nB().go()\ndef run(some):\n    some.go()\n"
    )
    source = FolderSource(tmp_path)
    named = asked(source, "A.go")
    assert places(named) == ["definition a.py:2", "call b.py:2"]
    assert (named.namesakes, named.unsure) == (0, 1)
    assert (asked(source, "go").namesakes, asked(source, "run").namesakes) == (2, 0)


INHERITED = {
    "a.py": "class Far:\n    def go(self): ...\nclass Base(Far):\n    def go(self): ...\nclass Own(Base): ...\n",
    "b.py": "from a import Own, Far\ndef run(one: Own):\n    one.go()\ndef walk(one: Far):\n    one.go()\n",
    "A.java": "class Upper { void turn() {} }\nclass Lower extends Upper {}\n",
    "C.java": "class Other { void turn() {} }\n",
}


def test_a_type_has_what_it_inherits_from_the_nearest_of_its_bases(
    tmp_path: Path,
) -> None:
    for name, text in INHERITED.items():
        (tmp_path / name).write_text(text)
    source = FolderSource(tmp_path)
    assert places(asked(source, "Own.go")) == ["definition a.py:4", "call b.py:3"]
    assert places(asked(source, "Lower.turn")) == ["definition A.java:1"]
    assert find_best_definition(source, "Own.go", resolve=find_targets)[:2] == (
        b"a.py",
        4,
    )
    assert asked(source, "Own.run").results == []


def test_where_a_qualified_name_is_not_defined_its_last_part_is_suggested_with_what_it_is_in(
    tmp_path: Path,
) -> None:
    for name, text in INHERITED.items():
        (tmp_path / name).write_text(text)
    source = FolderSource(tmp_path)
    assert asked(source, "Orther.turn").suggestions == ["Upper.turn", "Other.turn"]
    assert find_near_names(source, "Orther.turn") == ["Upper.turn", "Other.turn"]
    assert find_near_names(source, "turn") == []


def test_without_the_part_that_resolves_names_the_text_of_a_qualified_name_is_compared(
    tmp_path: Path,
) -> None:
    for name, text in INHERITED.items():
        (tmp_path / name).write_text(text)
    question = SymbolQuestion(name="Lower.turn")
    answer = SymbolSearch(FolderSource(tmp_path), question).run()
    assert answer.complete
    assert answer.results == []
    question = SymbolQuestion(name="Upper.turn", roles=frozenset({"definition"}))
    answer = SymbolSearch(FolderSource(tmp_path), question).run()
    assert places(answer) == ["definition A.java:1"]


def test_the_best_definition_comes_with_the_places_of_the_others(
    source: FolderSource,
) -> None:
    assert find_best_definition(source, "read") == (
        b"src/store.py",
        8,
        11,
        ["src/store.py:17"],
    )
    assert find_best_definition(source, "Store").others == []


OVERLOADED = {
    "save.ts": """class Store {
    save(one: Item): void
    save(all: Item[], options: { at: number }): void;
    save(what: Item | Item[], options?: { at: number }): void {
        this.put(what)
    }
    load(): Item
}
""",
    "save.py": """class Store:
    @overload
    def save(self, one: Item) -> None: ...
    @typing.overload
    def save(self, every: list[Item]) -> None:
        ...
    def save(self, what):
        self.put(what)
    @property
    def size(self):
        return 1
    @size.setter
    def size(self, size):
        self.put(size)
        self.keep(size)
""",
}


@pytest.mark.parametrize(
    ("file", "name", "lines"),
    [
        ("save.ts", "Store.save", (4, 6)),
        ("save.ts", "Store.load", (7, 7)),
        ("save.py", "Store.save", (7, 8)),
        ("save.py", "Store.size", (10, 11)),
    ],
)
def test_of_overloads_the_one_with_the_code_is_the_best(
    tmp_path: Path, file: str, name: str, lines: tuple[int, int]
) -> None:
    (tmp_path / file).write_text(OVERLOADED[file])
    best = find_best_definition(FolderSource(tmp_path), name)
    assert best[1:3] == lines
    assert f"{file}:{lines[0]}" not in best.others
    found = asked(FolderSource(tmp_path), name).results
    assert found[0].occurrence.start_line == lines[0]


CLAUSES = {
    "desk.ex": """defmodule Desk do
  def handle(:open, n) do
    n
  end

  def handle(:shut, _n), do: :ok
  # the rest
  def handle(other, _), do: other

  @doc "More."
  def handle(a, b, c), do: {a, b, c}
end
""",
    "desk.erl": """-module(desk).
handle(open, N) ->
    N;
handle(shut, _) ->
    ok.
stop() -> ok.
""",
    "desk.rb": """class Desk
  def handle(one)
  end

  def handle(two)
  end
end
""",
}


@pytest.mark.parametrize(
    ("file", "lines", "others"),
    [
        ("desk.ex", (2, 8), ["desk.ex:11"]),
        ("desk.erl", (2, 5), []),
        ("desk.rb", (2, 3), ["desk.rb:5"]),
    ],
)
def test_the_clauses_of_a_function_are_one_definition(
    tmp_path: Path, file: str, lines: tuple[int, int], others: list[str]
) -> None:
    (tmp_path / file).write_text(CLAUSES[file])
    best = find_best_definition(FolderSource(tmp_path), "handle")
    assert best[1:] == (*lines, others)


def test_a_name_that_is_in_texts_alone_is_reported_with_its_count(
    tmp_path: Path,
) -> None:
    (tmp_path / "notes.unheard").write_text("gizmo, gizmo\ngizmos\n")
    (tmp_path / "a.py").write_text("# gizmo\nx = 'a gizmo'\n")
    source = FolderSource(tmp_path)
    assert (asked(source, "gizmo").results, asked(source, "gizmo").as_text) == ([], 4)
    assert asked(source, "x").as_text == asked(source, "nowhere").as_text == 0


def test_kinds_and_roles_narrow_the_answer(source: FolderSource) -> None:
    assert len(asked(source, "read", kinds=frozenset({"method"})).results) == 2
    assert places(asked(source, "Root", roles=frozenset({"implementation"}))) == [
        "implementation src/store.py:5"
    ]


def test_case_is_ignored_when_asked(source: FolderSource) -> None:
    assert asked(source, "STORE").total == 0
    assert asked(source, "STORE", fold=True).results[0].occurrence.name == "Store"


def test_a_prefix_finds_definitions_shortest_first(source: FolderSource) -> None:
    names = [
        found.occurrence.name for found in asked(source, "read", match="prefix").results
    ]
    assert names == ["read", "read", "read_all"]


def test_a_misspelt_name_is_found_fuzzily(source: FolderSource) -> None:
    found = asked(source, "raed_all", match="fuzzy")
    assert found.results[0].occurrence.name == "read_all"


def test_pages_neither_repeat_nor_lose(source: FolderSource) -> None:
    whole = places(asked(source, "read"))
    paged = [
        place
        for after in range(0, 6, 2)
        for place in places(asked(source, "read", limit=2, after=after))
    ]
    assert paged == whole


def test_a_passed_deadline_is_reported(source: FolderSource) -> None:
    answer = asked(source, "read", deadline=0.0)
    assert not answer.complete
    assert answer.results == []


def test_an_outline_is_a_tree_within_its_budget(source: FolderSource) -> None:
    made = outline(source, [b"src/store.py"], max_chars=10_000)
    assert [(entry.depth, entry.line, entry.signature) for entry in made.entries] == [
        (0, 5, "class Store(Root):"),
        (1, 8, "def read(self, key):"),
        (1, 13, "def read_all(self, key): ..."),
        (0, 16, "class File:"),
        (1, 17, "def read(self): ..."),
    ]
    small = outline(source, [b"src/store.py"], max_chars=70)
    assert (len(small.entries), small.left_out) == (2, 3)


def test_an_outline_leaves_out_helpers_inside_short_functions_and_cuts_long_lines(
    tmp_path: Path,
) -> None:
    arguments = ", ".join(f"argument_{number}" for number in range(30))
    code = f"def outer({arguments}):\n    def helper():\n        return 1\n    return helper\n\n\n"
    (tmp_path / "a.py").write_text(
        code
        + "def factory():\n"
        + "    pass\n" * 200
        + "    def made():\n        pass\n"
    )
    source = FolderSource(tmp_path)
    made = outline(source, [b"a.py"], max_chars=10_000)
    assert [entry.signature[:12] for entry in made.entries] == [
        "def outer(ar",
        "def factory(",
        "def made():",
    ]
    assert len(made.entries[0].signature) <= 101
    assert (
        len(outline(source, [b"a.py"], max_chars=10_000, everything=True).entries) > 3
    )


def test_an_outline_leaves_out_what_a_module_takes_from_another(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        "const eos = require('node:stream').finished\nconst LIMIT = 3\n"
    )
    source = FolderSource(tmp_path)
    kept = {
        everything: outline(source, [b"a.js"], max_chars=900, everything=everything)
        for everything in (True, False)
    }
    assert [entry.signature for entry in kept[False].entries] == ["const LIMIT = 3"]
    assert len(kept[True].entries) == 2


def test_an_outline_of_a_folder_that_is_too_long_shows_something_of_every_file(
    tmp_path: Path,
) -> None:
    method = "    def method_{}(self):\n        pass\n"
    for name in ("a.py", "b.py", "c.py"):
        methods = "".join(method.format(number) for number in range(30))
        (tmp_path / name).write_text(
            f"def first():\n    pass\n\n\nclass Big:\n{methods}"
        )
    source = FolderSource(tmp_path)
    everything = outline(source, source.paths(), max_chars=100_000)
    assert (len(everything.entries), everything.left_out) == (96, 0)
    small = outline(source, source.paths(), max_chars=1_000)
    assert sum(entry.size for entry in small.entries) <= 1_000
    assert len(small.entries) + small.left_out == 96
    for path in source.paths():
        mine = [entry.signature for entry in small.entries if entry.path == path]
        assert mine[:3] == ["def first():", "class Big:", "def method_0(self):"]
    tiny = outline(source, source.paths(), max_chars=40)
    assert [entry.signature for entry in tiny.entries] == ["class Big:"], (
        "types come first"
    )


def test_an_outline_has_tests_behind_sources_and_with_what_room_remains(
    tmp_path: Path,
) -> None:
    functions = "".join(f"def wind_{at}():\n    pass\n\n\n" for at in range(20))
    for name in ("test_a.py", "z.py"):
        (tmp_path / name).write_text(functions)
    source = FolderSource(tmp_path)
    everything = outline(source, source.paths(), max_chars=100_000)
    paths = [entry.path for entry in everything.entries]
    assert list(dict.fromkeys(paths)) == [b"z.py", b"test_a.py"]
    z_size = sum(entry.size for entry in everything.entries[:20]) + len("z.py") + 1
    small = outline(source, source.paths(), max_chars=z_size)
    assert small.entries == everything.entries[:20]
    assert small.left_out == 20
    more = outline(source, source.paths(), max_chars=z_size + 100)
    assert more.entries[:20] == everything.entries[:20]
    assert 0 < len(more.entries[20:]) < 20


def test_a_map_shows_what_other_files_use_most(source: FolderSource) -> None:
    made = repository_map(source, max_chars=60)
    assert [(entry.path, entry.signature) for entry in made.entries] == [
        (b"src/store.py", "class Store(Root):")
    ]
    assert made.left_out > 0


def test_a_map_is_freed_without_the_garbage_collector(source: FolderSource) -> None:
    # The daemon runs it once a minute: a circle that held the words of each map kept
    # 6 MB of every 45 s with 16 clients.
    repository_map(source, max_chars=60)
    gc.collect()
    gc.disable()
    try:
        repository_map(source, max_chars=60)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.slow
def test_what_a_map_reads_takes_little_memory(tmp_path: Path) -> None:
    # A map in progress holds all definitions of a project, and eight clients may ask for
    # one at once.
    count = 4_000
    for file in range(2):
        text = "".join(
            f"def weave_{file}_{number}(one):\n    return one\n\n"
            for number in range(count // 2)
        )
        (tmp_path / f"looms_{file}.py").write_text(text)
    source = FolderSource(tmp_path)
    repository_map(source, max_chars=60)  # which keeps the files' symbols
    tracemalloc.start()
    try:
        repository_map(source, max_chars=60)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / count < 400


def test_a_map_ranks_by_who_uses_what_and_by_what_is_asked_about(
    tmp_path: Path,
) -> None:
    (tmp_path / "app").mkdir()
    files = {
        "core.py": "def heart():\n    pass\n\n\ndef aside():\n    pass\n",
        "left.py": "from core import heart\n\n\ndef left():\n    heart()\n",
        "right.py": "from core import heart\n\n\ndef right():\n    heart()\n",
        "app/main.py": "from left import left\nfrom right import right\n\n\ndef main():\n    left()\n    right()\n",
        "app/odd.py": "from core import aside\n\n\ndef odd():\n    aside()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def first(**options: Any) -> str:
        made = repository_map(FolderSource(tmp_path), max_chars=40, **options)
        return made.entries[0].signature

    assert first() == "def heart():"
    assert first(mentions=["aside"]) == "def aside():"
    assert first(under=b"app") in {"def main():", "def odd():"}
    assert first(under=b"app", mentions=["odd.py"]) == "def odd():"
    everything = repository_map(FolderSource(tmp_path), max_chars=10_000)
    assert len(everything.entries) == 6
    assert everything.left_out == 0


class CountingTurn:
    """Counts the calls of functions between two checkpoints."""

    stopped = False

    def __init__(self) -> None:
        self.calls = 0
        self.stretches: list[int] = []

    def count(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event in {"call", "c_call"}

    def give_way(self) -> None:
        self.stretches.append(self.calls)
        self.calls = 0

    pause = resume = give_way


def test_what_a_map_does_between_two_checkpoints_does_not_grow_with_the_project(
    tmp_path: Path,
) -> None:
    text = "".join(f"def name_{{0}}_{at}(): name_{{1}}_{at}()\n" for at in range(20))
    most: list[int] = []
    for files in 10, 60:
        for at in range(files):
            path = tmp_path / f"a{at}.py"
            path.write_text(text.format(at, (at + 1) % files))
        turn = CountingTurn()
        token = CURRENT_TURN.set(turn)
        sys.setprofile(turn.count)
        try:
            made = repository_map(FolderSource(tmp_path), max_chars=1_000_000)
            turn.give_way()
        finally:
            sys.setprofile(None)
            CURRENT_TURN.reset(token)
        assert len(made.entries) == 20 * files
        # The first one lists the folder.
        most.append(max(turn.stretches[1:]))
    assert most[1] < 2 * most[0]


def test_a_project_without_code_has_an_empty_map(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Words\n")
    made = repository_map(FolderSource(tmp_path), max_chars=1_000)
    assert (made.entries, made.left_out) == ([], 0)


def test_a_map_leaves_out_what_a_project_is_not_made_of(tmp_path: Path) -> None:
    used = "from core import heart\nimport conf, stub, checker\n"
    files = {
        "blocks.py": "# Blocks are generated by the parser, scripts generated from them.\nclass Block: ...\n",
        "core.py": "def heart(): ...\n",
        "index.ts": "/* This will be generated by the build system if it is left out. */\nexport function first() {}\n",
        "lexer.c": "/* A lexical scanner generated by flex */\nint scan(void) { return 1; }\n",
        "made.ts": "/*\n * Auto-generated by a tool.\n */\nexport function made() {}\n",
        "types.py": '"""Types.\n\nGenerated from the registry; do not edit.\n"""\nclass Kind: ...\n',
        "use.py": f"{used}def use():\n    heart()\n    conf.setup()\n    stub.Made()\n",
        "doc/conf.py": "def setup(): ...\n",
        "checker.go": "// Code generated by mockery. DO NOT EDIT.\n\npackage a\n\ntype Checker struct{}\n",
        "stub.py": "# This file was automatically generated by a tool\nclass Made: ...\n",
        "vendor/lib.py": "class Vendored: ...\n",
        "index.d.ts": "export interface Declared { a: number }\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    source = FolderSource(tmp_path)
    whole = repository_map(source, max_chars=10_000)
    assert {entry.path for entry in whole.entries} == {
        b"blocks.py",
        b"core.py",
        b"index.ts",
        b"use.py",
    }
    assert whole.skipped == {ASIDE: len(files) - 4}
    assert whole.unmapped[b"doc"] == sum(name.startswith("doc/") for name in files)
    own = repository_map(source, max_chars=10_000, under=b"doc")
    assert not own.skipped
    assert [entry.path for entry in own.entries] == [b"doc/conf.py"]


def test_a_map_tells_a_method_below_its_type_and_only_where_its_type_is_named(
    tmp_path: Path,
) -> None:
    files = {
        "box.py": "class Box:\n    def get(self):\n        pass\n\n    def _hide(self):\n        pass\n",
        "bag.py": "class Bag:\n    def get(self):\n        def inner():\n            pass\n",
        "get.go": "package a\n\nfunc get() {}\n",
    }
    files |= {
        f"use_{number}.py": "from box import Box\n\nBox().get()\n"
        for number in range(5)
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = repository_map(FolderSource(tmp_path), max_chars=80)
    assert [(entry.signature, entry.depth) for entry in made.entries] == [
        ("class Box:", 0),
        ("def get(self):", 1),
    ]
    (tmp_path / "sack.rs").write_text(
        "pub struct Sack {}\n\nimpl Sack {\n    pub fn open(&self) {}\n}\n"
    )
    (tmp_path / "ci.yml").write_text("jobs:\n  test:\n    steps: 1\n")
    told = [
        entry.signature
        for entry in repository_map(FolderSource(tmp_path), max_chars=10_000).entries
    ]
    assert "def inner():" not in told, "what is inside a function is its own"
    assert "func get()" in told
    assert told[-2:] == ["impl Sack", "pub fn open(&self)"]
    assert "jobs:" not in told, "data is no code"


def test_names_of_one_statement_stand_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        "const {\n  one,\n  two: other\n} = require('./names')\n"
        "const { left, right = {} } = sides(\n  1)\nlet { depth } = sides\n"
    )
    source = FolderSource(tmp_path)
    usual = outline(source, [b"a.js"], max_chars=900)
    assert [(entry.signature, entry.depth) for entry in usual.entries] == [
        ("const { left } = sides(", 0),
        ("const { right } = sides(", 0),
    ]
    everything = outline(source, [b"a.js"], max_chars=900, everything=True)
    assert {entry.depth for entry in everything.entries} == {0}
    assert everything.entries[0].signature == "const { one } = require('./names')"
