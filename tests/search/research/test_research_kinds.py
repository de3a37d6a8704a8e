"""Questions beyond callers: overrides, hierarchies, impact, unused definitions, uses too vague to tell."""

from pathlib import Path
from typing import cast

import pytest

from flashgrep.api.coverage import Coverage
from flashgrep.base.errors import InvalidParams
from flashgrep.methods.common import Budget
from flashgrep.methods.text import Style
from flashgrep.parts.navigation.references import UnusedSearch
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.navigation.research_methods import (
    CodeResearchParams,
    CodeResearchResult,
    find_tests,
    fit_graph,
    format_research,
    render_research,
)
from flashgrep.parts.navigation.resolution.symbol_graph import UNDEFINED
from tests.search.research.test_research_engine import edges, project, researched
from tests.search.symbol_folder import FolderSource

SHOP = {
    "shop/base.py": """
        class Base:
            def area(self): return self.sides()
            def sides(self): return 0
            def hidden(self): return 0
    """,
    "shop/shapes.py": """
        from shop.base import Base
        from other import Foreign
        class Square(Base):
            def sides(self): return 4
        class Small(Square):
            def sides(self): return 1
        class Alien(Foreign):
            def maybe(self): return 1
        class Other:
            def sides(self): return 2
    """,
    "shop/run.py": """
        import shop.shapes as shapes
        def measure(): return shapes.Square().area()
        def start(): return measure()
        def lonely(): return lonely()
        def named(): return 1
        def guess(thing): return thing.hidden()
        def main(): return {"named": getattr(shapes, "named")}, guess(1)
    """,
    "tests/test_run.py": """
        from shop.run import start
        def test_start(): assert start()
    """,
}


def test_overrides_are_of_types_that_build_upon_the_methods_own(tmp_path: Path) -> None:
    research = researched(project(tmp_path, SHOP), "what overrides Base.sides")
    assert edges(research) == {
        "Square.sides overrides Base.sides",
        "Small.sides overrides Base.sides",
    }


def test_a_hierarchy_goes_up_from_a_type_and_down_and_not_to_its_siblings(
    tmp_path: Path,
) -> None:
    more = SHOP | {
        "shop/more.py": "from shop.base import Base\nclass Round(Base):\n    pass\n"
    }
    research = researched(project(tmp_path, more), "type hierarchy of Square", 3)
    assert edges(research) == {"Square implements Base", "Small implements Square"}


def test_an_impact_reaches_the_tests_from_a_symbol_and_from_lines(
    tmp_path: Path,
) -> None:
    source = project(tmp_path, SHOP)
    for query in ("impact of measure", "impact of shop/run.py:3-3"):
        research = researched(source, query, 3)
        assert [root.name for root in research.roots] == ["measure"]
        assert find_tests(research) == ["tests/test_run.py test_start"]


def test_an_impact_of_lines_looks_at_all_of_them(tmp_path: Path) -> None:
    source = project(tmp_path, {"a.py": "\n" * 2_500 + "def last(): ...\n"})
    assert [
        root.name for root in researched(source, "impact of a.py:1-9999999999").roots
    ] == ["last"]


def test_unused_is_what_nothing_names_and_what_is_uncertain_is_counted(
    tmp_path: Path,
) -> None:
    search = UnusedSearch(b"shop")
    search.run(project(tmp_path, SHOP))
    assert {one.qualified for one in search.unused} == {
        "lonely",
        "Alien",
        "Other",
        "Other.sides",
        "Small",
    }
    assert search.excluded == {
        "named in a string": 1,
        "entry points": 1,
        "may override a method of a base": 3,
    }


def test_vague_uses_are_listed_with_where_they_are(tmp_path: Path) -> None:
    source = project(
        tmp_path,
        SHOP | {"a.py": "class A:\n    def get(self): ...\ndef run(x):\n    x.get()\n"},
    )
    research = researched(source, "callers of A.get", 1)
    assert (
        research.unsure,
        [(one.path, one.line, one.text) for one in research.vague],
    ) == (
        {"name only": 1},
        [(b"a.py", 4, "x.get()")],
    )


def test_no_symbol_is_shown_without_the_line_that_leads_to_it(tmp_path: Path) -> None:
    users = "".join(f"def user_{number}():\n    used()\n" for number in range(60))
    research = researched(
        project(tmp_path, {"a.py": f"def used(): ...\n{users}"}), "callers of used", 1
    )
    for tokens in (50, 200, 1_000, 100_000):
        page = fit_graph(research.graph, Budget(tokens), as_text=True)
        assert page.edges
        assert {key for edge in page.edges for key in edge.ends} == {
            node.definition.key for node in page.nodes
        }
    assert (len(page.edges), page.left) == (60, 0)


@pytest.mark.parametrize(
    ("query", "files"),
    [
        (
            "where is maxmemory used",
            {
                "server.h": "struct redisServer { int maxmemory; };\nextern struct redisServer server;\n",
                "evict.c": '#include "server.h"\nint is_full(void) { return server.maxmemory; }\n',
            },
        ),
        (
            "callers of Server.listen_on",
            {
                "server.rb": "class Server\n  def listen_on(port) = port\nend\n",
                "run.rb": 'require "server"\ndef run(server) = server.listen_on(80)\n',
            },
        ),
    ],
)
def test_an_object_called_as_an_included_file_is_still_asked(
    tmp_path: Path, query: str, files: dict[str, str]
) -> None:
    research = researched(project(tmp_path, files), query, 1)
    assert [(edge.line, edge.resolution.how) for edge in research.graph.edges] == [
        (2, "name only")
    ]


def test_what_there_was_no_time_to_look_for_is_not_reported_as_undefined(
    tmp_path: Path,
) -> None:
    research = Research("callers of used", 1, deadline=0)
    research.advance(project(tmp_path, {"a.py": "def used(): ...\n"}))
    found = format_research(
        research, cast("Coverage", {}), CodeResearchParams(query=research.query)
    )
    assert found["summary"] == "callers of used: nothing found; not found so far: used"


def test_pages_have_each_edge_once_and_are_refused_once_the_code_has_changed(
    tmp_path: Path,
) -> None:
    users = "".join(f"def user_{number}():\n    used()\n" for number in range(60))
    source = project(
        tmp_path, {"a.py": f"def used(): ...\n{users}", "b.py": "def used(): ...\n"}
    )

    def ask(cursor: str | None) -> CodeResearchResult:
        params = CodeResearchParams(
            query="callers of used", depth=1, max_tokens=600, cursor=cursor
        )
        return format_research(
            researched(source, params.query, 1), cast("Coverage", {}), params
        )

    pages = [ask(None)]
    while pages[-1]["next"] is not None:
        pages.append(ask(pages[-1]["next"]))
    assert len(pages) > 3
    assert sorted(edge["line"] for page in pages for edge in page["edges"]) == [
        3 + 2 * number for number in range(60)
    ]
    names: dict[int, str] = {}
    for page in (
        pages
    ):  # an id is one symbol's on all pages, and each edge's ends are on its own
        shown = {
            node["id"]: f"{node['file_path']} {node['name']}"
            for node in page["results"]
        }
        assert {edge["source"] for edge in page["edges"]} <= shown.keys()
        assert all(
            names.setdefault(number, name) == name for number, name in shown.items()
        )
    assert max(names.values()) == "b.py used"
    (tmp_path / "a.py").write_text(f"def used(): ...\n\n{users}")
    source = FolderSource(tmp_path)
    with pytest.raises(InvalidParams, match="has changed"):
        ask(pages[1]["next"])
    assert len(ask(None)["edges"]) == len(pages[0]["edges"])


def test_overriding_methods_are_counted_though_a_bare_name_asks_about_them_too(
    tmp_path: Path,
) -> None:
    research = researched(project(tmp_path, SHOP), "what overrides sides")
    assert {
        research.graph.nodes[key].definition.qualified for key in research.answers
    } == {
        "Square.sides",
        "Small.sides",
    }


OVERLOADS = {
    "Shop.java": """
        class Shop {
            int sell(int one) { return sell(one, 1); }
            int sell(int one, int two) { return count(one); }
            int count(int one) { return one; }
            void open() { sell(1); }
        }
    """,
    "shop.py": """
        from typing import overload
        @overload
        def price(one: int) -> int: ...
        @overload
        def price(one: str) -> str: ...
        def price(one): return round(one)
        def pay(): return price(1)
        if pay:
            def round(one): return one
        else:
            def round(one): return -one
    """,
}


def test_overloads_are_one_symbol_and_branches_are_not(tmp_path: Path) -> None:
    source = project(tmp_path, OVERLOADS)
    sell = researched(source, "callers of Shop.sell", 1)
    assert [root.key[1] for root in sell.roots] == [
        (tmp_path / "Shop.java").read_text().index("sell")
    ]
    assert edges(sell) == {"Shop.sell calls Shop.sell", "Shop.open calls Shop.sell"}
    assert "Shop.sell calls Shop.count" in edges(
        researched(source, "what does Shop.sell call", 1)
    )
    price = researched(source, "callers of price", 1)
    assert [root.symbols.lines.line(root.key[1]) for root in price.roots] == [7]
    assert edges(price) == {"pay calls price"}
    assert len(researched(source, "callers of round", 1).roots) == 2


def test_uses_of_a_name_that_is_not_defined_here_have_their_lines(
    tmp_path: Path,
) -> None:
    source = project(
        tmp_path, {"a.py": "import requests as web\ndef get():\n    return web.get()\n"}
    )
    found = researched(source, "who imports requests").graph.edges
    assert [(edge.target, edge.line, edge.text) for edge in found] == [
        (UNDEFINED, 1, "import requests as web")
    ]


SHOWN = {
    "results": [
        {
            "id": 0,
            "name": "used",
            "kind": "function",
            "file_path": "a.py",
            "start_line": 1,
            "end_line": 1,
            "hop": 0,
        },
        {
            "id": 1,
            "name": "main",
            "kind": "function",
            "file_path": "b.py",
            "start_line": 3,
            "end_line": 6,
            "hop": 1,
        },
    ],
    "edges": [
        {
            "source": 1,
            "target": 0,
            "kind": "calls",
            "file_path": "b.py",
            "line": 4,
            "text": "used()",
            "confidence": 1,
        },
        {
            "source": 1,
            "kind": "uses",
            "file_path": "b.py",
            "line": 5,
            "text": "x.used",
            "confidence": 0.3,
        },
    ],
    "left_out": 2,
    "unsure": 0,
    "next": None,
}


def test_a_person_sees_the_lines_below_each_caller_and_a_pipe_each_with_its_place() -> (
    None
):
    result = cast("CodeResearchResult", SHOWN)
    assert list(render_research(result, Style(is_person=True))) == [
        "a.py:1:function: used",
        "b.py:3:function: main",
        "  4: calls used: used()",
        "  5: perhaps (0.3) uses it: x.used",
    ]
    assert list(render_research(result, Style(is_person=True, headings=False)))[
        1:3
    ] == [
        "b.py:4:main calls used: used()",
        "b.py:5:main perhaps (0.3) uses it: x.used",
    ]
