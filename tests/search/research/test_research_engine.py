"""Research over small projects written for the purpose; seed scenarios bear their names."""

import textwrap
from collections import Counter
from pathlib import Path

import pytest

from flashgrep.parts.navigation.research.research_walk import Research
from tests.search.symbol_folder import FolderSource

SWIFT = {
    "Auth.swift": """
        protocol Authenticatable { func authenticate() -> Bool }
        class Manual: Authenticatable { func authenticate() -> Bool { true } }
    """,
    "User.swift": """
        struct User { let id: Int }
        extension User: Authenticatable { func authenticate() -> Bool { false } }
        class Admin: Manual {}
    """,
    "Login.swift": """
        func login(user: User) -> Bool { return user.authenticate() }
        func start() { login(user: User(id: 1)) }
        func main() { start() }
    """,
}
PYTHON = {
    "app/store.py": """
        class Store:
            def read(self, key):
                return self.load(key)

            def load(self, key):
                return helper(key)


        def helper(key):
            return key
    """,
    "app/cli.py": """
        from app.store import Store
        from app import store as st


        def show(key):
            shop = Store()
            return shop.read(key)


        def direct(key):
            return st.helper(key)


        def main():
            show("a")
            direct("b")
    """,
    "app/other.py": """
        class File:
            def read(self):
                return helper()


        def helper():
            return File().read()
    """,
    "tests/test_store.py": """
        from app.store import Store


        def test_read():
            assert Store().read("a")
    """,
}


def project(root: Path, files: dict[str, str]) -> FolderSource:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    return FolderSource(root)


class CountingSource(FolderSource):
    """Counts how often the files with a name are asked for."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked = Counter[str]()

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:
        self.asked[name] += 1
        return super().candidates(name, fold=fold, whole=whole)


def researched(source: FolderSource, query: str, depth: int | None = 2) -> Research:
    research = Research(query, depth)
    while research.advance(source):
        pass
    return research


def edges(research: Research) -> set[str]:
    names = {
        key: node.definition.qualified for key, node in research.graph.nodes.items()
    }
    return {
        f"{names[edge.source]} {edge.kind} {names[edge.target]}"
        for edge in research.graph.edges
    }


def chains(research: Research) -> set[str]:
    nodes = research.graph.nodes
    found = research.graph.chains(
        [root.key for root in research.roots], inward=research.is_inward
    )
    arrow = " <- " if research.is_inward else " -> "
    return {arrow.join(nodes[key].definition.name for key in chain) for chain in found}


def test_research_protocol_implementations(tmp_path: Path) -> None:
    research = researched(
        project(tmp_path, SWIFT), "all implementations of Authenticatable"
    )
    found = {(one.type, one.base, one.extension) for one in research.conformances}
    assert found == {
        ("Manual", "Authenticatable", False),
        ("User", "Authenticatable", True),
        ("Admin", "Manual", False),
    }
    assert edges(research) == {
        "Manual implements Authenticatable",
        "User implements Authenticatable",
        "Admin implements Manual",
    }


def test_implementations_of_a_librarys_protocol_are_found_by_its_name(
    tmp_path: Path,
) -> None:
    source = project(
        tmp_path, {"a.swift": "extension Guest: Codable {}\nstruct Point: Codable {}\n"}
    )
    found = researched(source, "what conforms to Codable").conformances
    assert {(one.type, one.extension) for one in found} == {
        ("Guest", True),
        ("Point", False),
    }


def test_subclasses_are_found_where_a_document_has_a_heading_of_the_name(
    tmp_path: Path,
) -> None:
    files = {
        "docs/reply.md": "# Reply\n\nAnswers.\n",
        "web/reply.py": "class Reply:\n    pass\n\n\nclass Page(Reply):\n    pass\n",
        "web/error.py": "from web.reply import Reply\n\n\nclass Error(Exception, Reply):\n    pass\n",
        "other/answer.py": "class Reply:\n    pass\n",
    }
    research = researched(project(tmp_path, files), "subclasses of Reply")
    assert {root.path for root in research.roots} == {
        b"other/answer.py",
        b"web/reply.py",
    }
    assert edges(research) == {"Page implements Reply", "Error implements Reply"}
    targets = {
        research.graph.nodes[edge.target].definition.path
        for edge in research.graph.edges
    }
    assert targets == {b"web/reply.py"}


def test_research_call_graph(tmp_path: Path) -> None:
    research = researched(
        project(tmp_path, SWIFT), "what calls authenticate()", depth=3
    )
    assert "authenticate <- login <- start <- main" in chains(research)


def test_research_with_depth(tmp_path: Path) -> None:
    source = project(tmp_path, SWIFT)
    reached = [
        max(
            node.hop
            for node in researched(source, "callers of login", d).graph.nodes.values()
        )
        for d in (1, 2)
    ]
    assert reached == [1, 2]
    files = researched(source, "what calls authenticate", 3).graph.dependencies()
    assert (b"Login.swift", b"User.swift") in files


def test_calls_are_resolved_by_receiver_import_and_class(tmp_path: Path) -> None:
    source = project(tmp_path, PYTHON)
    read = researched(source, "who calls Store.read", 1)
    assert edges(read) == {"show calls Store.read", "test_read calls Store.read"}
    hows = {edge.path: edge.resolution.how for edge in read.graph.edges}
    assert hows[b"app/cli.py"] == "receiver type"
    load = researched(source, "callers of load", 1)
    assert [
        (edge.resolution.how, edge.line, edge.text) for edge in load.graph.edges
    ] == [("same class", 4, "return self.load(key)")]


def test_a_name_defined_twice_is_distinguished(tmp_path: Path) -> None:
    source = project(tmp_path, PYTHON)
    research = researched(source, "callers of helper", 1)
    nodes = research.graph.nodes
    found = {
        (nodes[edge.source].definition.qualified, edge.target[0])
        for edge in research.graph.edges
    }
    assert found == {
        ("Store.load", b"app/store.py"),
        ("direct", b"app/store.py"),
        ("File.read", b"app/other.py"),
    }


@pytest.mark.parametrize(
    "name",
    [
        "app/store.py:helper",
        "store.py:helper",
        "/x/app/store.py:helper",
        "app.store.helper",
    ],
)
def test_a_name_may_begin_with_its_file_or_module(tmp_path: Path, name: str) -> None:
    research = researched(project(tmp_path, PYTHON), f"callers of {name}", 1)
    assert [(root.path, root.qualified) for root in research.roots] == [
        (b"app/store.py", "helper")
    ]
    assert any("direct" in edge for edge in edges(research))


def test_what_a_function_calls_is_followed_outward(tmp_path: Path) -> None:
    research = researched(project(tmp_path, PYTHON), "what does main call", 3)
    assert {
        "main calls show",
        "main calls direct",
        "show calls Store.read",
        "direct calls helper",
    } <= edges(research)
    assert "main -> show -> read -> load" in chains(research)


def test_a_path_between_two_functions_is_found_beyond_the_depth(tmp_path: Path) -> None:
    research = researched(project(tmp_path, PYTHON), "path from main to load", 1)
    assert chains(research) == {"load <- read <- show <- main"}


def test_importers_are_files(tmp_path: Path) -> None:
    """A module is a file; each line that leads to it is told, and none of another module of the name."""
    more = PYTHON | {
        "app/__init__.py": "",
        "lib/store.py": "shelf = 1\n",
        "lib/shop.py": "import store\nimport app.store\n",
        "web/a.ts": "import { x } from './store';\nexport * from './store';\n",
        "web/store.ts": "export const x = 1;\n",
        "c/inc/store.h": "int shelf(void);\n",
        "c/main.c": '#include "store.h"\n',
        "jvm/Shop.java": "import app.store.Shelf;\n",
    }
    source = project(tmp_path, more)
    found = {
        written: [
            (
                edge.path.decode(),
                edge.line,
                edge.target[0].decode(),
                edge.resolution.confidence,
            )
            for edge in researched(source, f"who imports {written}", 1).graph.edges
        ]
        for written in ("app.store", "web/store.ts", "inc/store.h", "app.store.Shelf")
    }
    proven = 0.95
    assert found == {
        "app.store": [
            ("app/cli.py", 2, "app/store.py", proven),
            ("app/cli.py", 3, "app/store.py", proven),
            ("lib/shop.py", 2, "app/store.py", proven),
            ("tests/test_store.py", 2, "app/store.py", proven),
        ],
        "web/store.ts": [
            ("web/a.ts", 1, "web/store.ts", proven),
            ("web/a.ts", 2, "web/store.ts", proven),
        ],
        "inc/store.h": [("c/main.c", 1, "c/inc/store.h", proven)],
        "app.store.Shelf": [("jvm/Shop.java", 1, "", 0.5)],
    }


def test_a_question_that_is_not_understood_searches_nothing(tmp_path: Path) -> None:
    research = researched(
        project(tmp_path, PYTHON), "how are things loaded from the store", 1
    )
    assert (research.question.kind, research.files_read, research.graph.nodes) == (
        "unknown",
        0,
        {},
    )


def test_an_unknown_name_gives_an_empty_graph(tmp_path: Path) -> None:
    research = researched(project(tmp_path, PYTHON), "callers of nothing_like_it")
    assert not research.graph.nodes
    assert research.complete


@pytest.mark.parametrize(
    "query",
    [
        "callers of helper",
        "what does main call",
        "type hierarchy of Base",
        "who imports store",
    ],
)
def test_each_node_and_each_line_comes_once(tmp_path: Path, query: str) -> None:
    research = researched(project(tmp_path, PYTHON), query, 3)
    lines = [
        (edge.source, edge.target, edge.path, edge.line)
        for edge in research.graph.edges
    ]
    assert len(lines) == len(set(lines))
    assert {
        key for edge in research.graph.edges for key in (edge.source, edge.target)
    } <= set(research.graph.nodes)


RESOLVED = {
    "shapes.py": """
        class Base:
            def area(self): return self.sides()
            def sides(self): return 0

        class Square(Base):
            def sides(self): return 4
            def twice(self): return self.area() + super().sides()

        def recurse(n):
            return recurse(n - 1)

        def outer(task):
            def step(): return task()
            return step()

        def other(step):
            return step()
    """,
    "use.py": """
        from shapes import recurse as again, Square

        def far(shape: Square, thing, step):
            again(3)
            shape.area()
            thing.sides()
            step()
    """,
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "callers of Base.area",
            {
                "Square.twice calls Base.area inherited",
                "far calls Base.area receiver type",
            },
        ),
        (
            "callers of recurse",
            {"recurse calls recurse same file", "far calls recurse import"},
        ),
        ("callers of step", {"outer calls outer.step same file"}),
        (
            "callers of Base.sides",
            {
                "Base.area calls Base.sides same class",
                "Square.twice calls Base.sides inherited",
                "far calls Base.sides type in sight",
            },
        ),
        (
            "callers of Square.sides",
            {
                "Base.area calls Square.sides overridden",
                "far calls Square.sides type in sight",
            },
        ),
    ],
)
def test_calls_are_distinguished_by_inheritance_scope_and_alias(
    tmp_path: Path, query: str, expected: set[str]
) -> None:
    research = researched(project(tmp_path, RESOLVED), query, 1)
    names = {
        key: node.definition.qualified for key, node in research.graph.nodes.items()
    }
    found = {
        f"{names[e.source]} {e.kind} {names[e.target]} {e.resolution.how}"
        for e in research.graph.edges
    }
    assert found == expected


def test_callers_of_what_a_type_inherits_are_those_of_its_base(tmp_path: Path) -> None:
    research = researched(project(tmp_path, RESOLVED), "callers of Square.area", 1)
    assert [root.qualified for root in research.roots] == ["Base.area"]
    assert edges(research) == {"Square.twice calls Base.area", "far calls Base.area"}
    assert research.missing_names == []


@pytest.mark.parametrize(
    ("query", "undefined"),
    [
        ("callers of Square.aera", ["Square.aera"]),
        ("path from far to Square.nothing", ["Square.nothing"]),
        ("path from nowhere to Square.nothing", ["nowhere", "Square.nothing"]),
        ("path from far to Base.area", []),
        ("impact of shapes.py:1-2", []),
        ("how are shapes made", []),
    ],
)
def test_names_that_nothing_defines_are_reported(
    tmp_path: Path, query: str, undefined: list[str]
) -> None:
    research = researched(project(tmp_path, RESOLVED), query)
    assert research.missing_names == undefined
    # No hop is made towards what is not there.
    assert not undefined or not research.graph.edges


PATHS = {
    "Shape.java": """
        abstract class Shape { abstract void draw(); }
        class Circle extends Shape {
            Circle() { Log.note(); }
            void draw() { Pen.arc(); }
            void other() { Pen.line(); }
        }
        class Pen { static void arc() { Log.note(); } static void line() {} }
        class Log { static void note() {} }
    """,
    "Main.java": """
        class Main {
            void run() { Shape one = Maker.make(); one.draw(); again(); }
            void again() { again(); }
        }
        class Maker { static Shape make() { return new Circle(); } }
    """,
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # Over what a base's method runs, though nothing says which.
        (
            "path from run to arc",
            {"Main.run calls Circle.draw", "Circle.draw calls Pen.arc"},
        ),
        # A type that is made runs its constructor, and nothing else of it.
        (
            "path from make to note",
            {"Maker.make calls Circle", "Circle calls Log.note"},
        ),
        ("path from make to line", set()),
        ("path from again to arc", set()),
    ],
)
def test_a_path_is_the_shortest_and_nothing_beside_it(
    tmp_path: Path, query: str, expected: set[str]
) -> None:
    research = researched(project(tmp_path, PATHS), query)
    assert edges(research) == expected
    assert research.is_reached == bool(expected) == bool(research.graph.edges)
    asked = {one.key for one in (*research.goals, *research.roots)}
    assert asked | {key for edge in research.graph.edges for key in edge.ends} == set(
        research.graph.nodes
    )


def test_a_long_path_is_met_from_both_ends(tmp_path: Path) -> None:
    links = "\n".join(
        f"def link_{number}():\n    link_{number + 1}()" for number in range(10)
    )
    source = project(tmp_path, {"a.py": f"{links}\ndef link_10(): ...\n"})
    assert len(researched(source, "path from link_0 to link_10").graph.edges) == 10
    assert not researched(source, "path from link_10 to link_0").is_reached


NAMESAKES = {
    "web.rb": """
        module Web
          class Base
            def call(env) = env
          end
          class App < Base
            def run(env) = call(env)
          end
        end
    """,
    "guard.rb": """
        module Guard
          class Base
            def check = true
          end
          class Token < Base
            def accepts?(env)
              options[:allow]&.call(env)
              call(env)
            end
          end
          class Site < Web::Base
            def visit(env) = call(env)
          end
        end
    """,
}


def test_of_two_bases_of_one_name_the_one_in_scope_or_written_is_meant(
    tmp_path: Path,
) -> None:
    research = researched(project(tmp_path, NAMESAKES), "who calls Web::Base.call", 1)
    names = {
        key: node.definition.qualified for key, node in research.graph.nodes.items()
    }
    sure = {
        names[edge.source]
        for edge in research.graph.edges
        if edge.resolution.confidence > 0.5
    }
    assert sure == {"Web.App.run", "Guard.Site.visit"}


def test_all_direct_users_are_told_and_what_is_cut_behind_them_is_said(
    tmp_path: Path,
) -> None:
    """A walk ended at 300 symbols, and its answer looked complete."""
    count = 700
    users = "".join(
        f"def user_{number}():\n    used()\n\n\n" for number in range(count)
    )
    above = "".join(
        f"def above_{number}():\n    user_{number}()\n\n\n" for number in range(count)
    )
    text = f"def used(): ...\n\n\n{users}{above}"
    source = project(tmp_path, {"used.py": text})
    direct = researched(source, "who calls used", 1)
    assert len(direct.graph.edges) == count
    assert (direct.left_out, direct.complete) == (0, True)
    further = researched(source, "who calls used", 2)
    assert further.left_out > 0
    assert not further.complete


def test_a_key_of_data_is_no_root_of_who_calls(tmp_path: Path) -> None:
    files = {
        "a.py": "def run(): ...\n\n\ndef main():\n    run()\n",
        "ci.yaml": "run: all\nsteps:\n  run: main\n",
        "package.json": '{"run": 1}\n',
    }
    research = researched(project(tmp_path, files), "who calls run", 1)
    assert [root.path for root in research.roots] == [b"a.py"]
    assert edges(research) == {"main calls run"}


@pytest.mark.parametrize(
    ("files", "query"),
    [
        (
            {
                "a.py": """
                    class Base:
                        def __init__(self, size): ...


                    class Own(Base):
                        def __init__(self):
                            super().__init__(1)


                    class Bare(Base):
                        pass
                """,
                "b.py": """
                    from a import Bare, Base, Own


                    def plain():
                        Base(1)


                    def below():
                        Bare(1)


                    def other():
                        Own()
                """,
            },
            "callers of Base.__init__",
        ),
        (
            {
                "a.ts": """
                    export class Base { constructor(size: number) {} }
                    export class Own extends Base { constructor() { super(1) } }
                    export class Bare extends Base {}
                """,
                "b.ts": """
                    import { Bare, Base, Own } from "./a"
                    function plain() { new Base(1) }
                    function below() { new Bare(1) }
                    function other() { new Own() }
                """,
            },
            "callers of Base.constructor",
        ),
        (
            {
                "a.php": """<?php
                    class Base { function __construct($size) {} }
                    class Bare extends Base {}
                    function plain() { new Base(1); }
                    function below() { new Bare(1); }
                """,
            },
            "callers of Base.__construct",
        ),
    ],
    ids=["python", "typescript", "php"],
)
def test_a_constructor_is_called_by_the_name_of_its_type(
    tmp_path: Path, files: dict[str, str], query: str
) -> None:
    research = researched(project(tmp_path, files), query, 1)
    names = {key: node.definition.name for key, node in research.graph.nodes.items()}
    found = {names[edge.source] for edge in research.graph.edges}
    assert {"plain", "below"} <= found
    assert "other" not in found


def test_a_type_that_may_be_made_of_an_unknown_module_is_counted_once(
    tmp_path: Path,
) -> None:
    loom = "class Loom:\n    def __init__(self): ...\n"
    files = {"a.py": loom, "b.py": loom, "c.py": "def use(m):\n    m.Loom()\n"}
    research = researched(project(tmp_path, files), "who calls Loom.__init__", 1)
    assert not research.graph.edges
    assert research.unsure.total() == 1
    assert [(use.path, use.line) for use in research.vague] == [(b"c.py", 2)]


def test_uses_of_many_subtypes_of_one_name_are_read_once(tmp_path: Path) -> None:
    made = "".join(
        f"def test_{number}():\n    class Own(Loom):\n        pass\n    Own()\n"
        for number in range(60)
    )
    files = {
        "loom.py": "class Loom:\n    def __init__(self): ...\n",
        "test_loom.py": f"from loom import Loom\n{made}",
    }
    source = CountingSource(project(tmp_path, files).root)
    research = researched(source, "who calls Loom.__init__", 1)
    assert {edge.line for edge in research.graph.edges} == set(range(5, 242, 4))
    # Its definitions, its bases and its uses, and not once for each of the types.
    assert source.asked["Own"] <= 5
