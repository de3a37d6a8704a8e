"""What the text settles without a syntax tree: as the tree would, and not where something else may be meant."""

from pathlib import Path

import pytest

from tests.search.research.test_research_engine import project, researched

KINDS = "class Base:\n    def run(self): ...\nclass Other:\n    def run(self): ...\n"
"""``run`` is on lines 2 and 4."""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class A(Base):\n    def use(self):\n        super().run()\n", 2),
        (
            "class A(Base):\n    def use(self):\n        self.run()\n    def run(self): ...\n",
            8,
        ),
        (
            "class A(Base):\n    def run(self): ...\n    def use(self):\n        super().run()\n",
            2,
        ),
        (
            "class A(Base):\n    def use(self):\n        def inner():\n            super().run()\n",
            2,
        ),
        ("class A(Base):\n    @classmethod\n    def use(cls):\n        cls.run()\n", 2),
        (
            "class A(Base):\n    class B(Other):\n        def use(self):\n            self.run()\n",
            4,
        ),
        (
            "class A(Base):\n    def use(self):\n        class B(Other):\n            ...\n        self.run()\n",
            2,
        ),
        (
            "class A(Base):\n    def outer(self):\n        def use(self: Other):\n            self.run()\n",
            4,
        ),
        (
            "class A(Base):\n    def use(self):\n        return lambda self: self.run()\n",
            0,
        ),
        ("class A(Base):\n    def use(self: Other):\n        self.run()\n", 4),
        (
            "class A(Base):\n    def set(self):\n        self.run = print\n    def use(self):\n        self.run()\n",
            0,
        ),
        (
            "class A(Base):\n    run = print\n    def use(self):\n        self.run()\n",
            6,
        ),
        (
            "class A(Base):\n    def use(self):\n        print('run = 1')  # run = 2\n        self.run()\n",
            2,
        ),
        ("class A(object, Base):\n    def use(self):\n        self.run()\n", 2),
        ("it = Base()\ndef use():\n    it.x = 1\n    it.run()\n", 2),
        ("it = Base()\ndef use(it):\n    it.run()\n", 0),
        ("it = Base()\ndef use():\n    it = Other()\n    it.run()\n", 4),
        ("it = Base()\ndef use():\n    import it.run\n    it.run()\n", 0),
        (
            "it = Other()\nclass Box:\n    it: Base\ndef make() -> Box: ...\ndef use():\n    make().it.run()\n",
            2,
        ),
        (
            "it = Other()\nclass Box:\n    it: Base\nbox = Box()\ndef use():\n    box.it.run()\n",
            2,
        ),
        (
            "it = Other()\nclass Box:\n    it: Base\nbox = Box()\ndef use():\n    box . it.run()\n",
            2,
        ),
        ("it = Other()\ndef use():\n    print('it' '.'); 'it'.run()\n", 0),
    ],
)
def test_the_receiver_of_a_method_is_the_same_as_by_the_tree(
    tmp_path: Path, text: str, line: int
) -> None:
    found = researched(
        project(tmp_path, {"a.py": KINDS + text}), "what does use call", 1
    ).graph
    called = {
        found.nodes[edge.target].definition.symbols.lines.line(edge.target[1])
        for edge in found.edges
        if found.nodes[edge.target].definition.name == "run"
        and edge.resolution.confidence >= 0.95
    }
    assert called == ({line} if line else set())


@pytest.mark.parametrize(
    ("files", "callers"),
    [
        (
            {
                "a.py": "class A:\n    def run(f): ...\n    @run()\n    def stop(self): ...\n"
            },
            {"a.py"},
        ),
        (
            {
                "a.ts": "export class A { run() {} }\n",
                "b.ts": "import { A } from './a'\nfunction b(a: A) { a .\n run() }\n",
            },
            {"b.ts"},
        ),
        (
            {
                "a.ts": "export class A { run() {} }\n",
                "b.ts": "import { A } from './a'\nfunction b(a?: A) { a?.run() }\n",
            },
            {"b.ts"},
        ),
        (
            {
                "a.ts": "export class A { run() {} }\n",
                "b.ts": "function run() {}\nfunction b() { run() }\n",
            },
            set(),
        ),
        (
            {
                "a.ts": "export class A { run() {} }\n",
                "b.py": "def b(a):\n    a.run()\n",
            },
            set(),
        ),
        (
            {
                "a.js": "export class A { run() {} }\n",
                "b.vue": "<script>\nimport { A } from './a'\nfunction b() { new A().run() }\n</script>\n",
            },
            {"b.vue"},
        ),
        (
            {
                "go.mod": "module m\n",
                "a.go": "package m\ntype A struct{}\nfunc (a A) run() {}\n",
            }
            | {"b.go": "package m\nfunc b(a A) {\n\ta.\n\t\trun()\n}\n"},
            {"b.go"},
        ),
    ],
)
def test_files_that_cannot_call_a_method_are_all_that_is_passed_over(
    tmp_path: Path, files: dict[str, str], callers: set[str]
) -> None:
    graph = researched(project(tmp_path, files), "callers of A.run", 1).graph
    assert {edge.path.decode() for edge in graph.edges} == callers


@pytest.mark.parametrize(
    "barrel",
    [
        "export * from './run'",
        "export*from './run'",
        "export type * from './run'",
        "export /* all ( */ * from './run'",
        "export // all\n* from './run'",
        "export { run } from './run'",
        "export { go as run } from './run'",
    ],
)
def test_a_barrel_passes_on_what_it_says(tmp_path: Path, barrel: str) -> None:
    files = {
        "run.ts": "export function run() {}\nexport { run as go }\n",
        "none.ts": "export * as all from './run'\nexport const other = 1\n",
        "barrel.ts": barrel + "\n",
        "index.ts": "export * from './none'\nexport * from './barrel'\n",
        "use.ts": "import { run } from '.'\nfunction use() { run() }\n",
    }
    graph = researched(project(tmp_path, files), "callers of run", 1).graph
    assert [(edge.path, edge.resolution.confidence) for edge in graph.edges] == [
        (b"use.ts", 0.95)
    ]


def test_a_parameter_is_none_of_the_names_around_where_it_stands(
    tmp_path: Path,
) -> None:
    text = "package m\n\nvar root = 1\n\nfunc f(root *node) string {\n\treturn root.path\n}\n\nvar it = root\n"
    graph = researched(
        project(tmp_path, {"go.mod": "module m\n", "a.go": text}),
        "where is root used",
        1,
    ).graph
    assert [edge.line for edge in graph.edges] == [9]
