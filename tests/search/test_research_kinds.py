"""Questions beyond callers: overrides, hierarchies, impact, unused definitions, uses too vague to tell."""

from pathlib import Path

from flashgrep.handlers.common import Budget
from flashgrep.handlers.research import find_tests, fit_graph
from flashgrep.search.references import UnusedSearch
from tests.search.test_research_engine import edges, project, researched

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
    assert edges(research) == {"Square.sides overrides Base.sides", "Small.sides overrides Base.sides"}


def test_a_hierarchy_goes_up_from_a_type_and_down_and_not_to_its_siblings(tmp_path: Path) -> None:
    more = SHOP | {"shop/more.py": "from shop.base import Base\nclass Round(Base):\n    pass\n"}
    research = researched(project(tmp_path, more), "type hierarchy of Square", 3)
    assert edges(research) == {"Square implements Base", "Small implements Square"}


def test_an_impact_reaches_the_tests_from_a_symbol_and_from_lines(tmp_path: Path) -> None:
    source = project(tmp_path, SHOP)
    for query in ("impact of measure", "impact of shop/run.py:3-3"):
        research = researched(source, query, 3)
        assert [root.name for root in research.roots] == ["measure"]
        assert find_tests(research) == ["tests/test_run.py test_start"]


def test_unused_is_what_nothing_names_and_what_cannot_be_told_is_counted(tmp_path: Path) -> None:
    search = UnusedSearch(b"shop")
    search.run(project(tmp_path, SHOP))
    assert {one.qualified for one in search.unused} == {"lonely", "Alien", "Other", "Other.sides", "Small"}
    assert search.excluded == {
        "named in a string": 1,
        "entry points": 1,
        "may override a method of a base": 3,
    }


def test_vague_uses_are_listed_with_where_they_are(tmp_path: Path) -> None:
    source = project(tmp_path, SHOP | {"a.py": "class A:\n    def get(self): ...\ndef run(x):\n    x.get()\n"})
    research = researched(source, "callers of A.get", 1)
    assert (research.unsure, [(one.path, one.line, one.text) for one in research.vague]) == (
        1,
        [(b"a.py", 4, "x.get()")],
    )


def test_no_symbol_is_shown_without_the_line_that_leads_to_it(tmp_path: Path) -> None:
    users = "".join(f"def user_{number}():\n    used()\n" for number in range(60))
    research = researched(project(tmp_path, {"a.py": f"def used(): ...\n{users}"}), "callers of used", 1)
    for tokens in (50, 200, 1_000, 100_000):
        near, shown = fit_graph(research.graph, Budget(tokens), as_text=True)
        assert shown
        keys = {edge.source for edge in shown} | {edge.target for edge in shown}
        assert keys == {node.definition.key for node in near}
    assert len(shown) == 60
