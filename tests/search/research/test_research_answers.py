"""What an answer about callers shows: production first, a line once, what is only possible and tests counted."""

from pathlib import Path
from typing import cast

from flashgrep.api.coverage import Coverage
from flashgrep.methods.text import render_text
from flashgrep.parts.navigation.research.research_walk import MOST_FRONTIER, Research
from flashgrep.parts.navigation.research_methods import (
    CodeResearchParams,
    CodeResearchResult,
    format_research,
    render_research,
)
from tests.search.research.test_research_engine import project, researched

SHOP = {
    "a/base.py": """
        class Store:
            def put(self, key): ...


        class Disk(Store):
            def put(self, key): ...
    """,
    "a/use.py": """
        from a.base import Disk, Store


        def keep(store: Store):
            store.put(1)


        def keep_here(disk: Disk):
            disk.put(2)


        def guess(thing):
            thing.put(3)
    """,
    "tests/test_a.py": """
        from a.base import Disk


        def test_put():
            Disk().put(4)


        def test_twice():
            Disk().put(5)
    """,
}
RUST = {
    "src/lib.rs": """
        pub fn lift() {}

        pub fn raise() {
            lift();
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn lifts() {
                lift();
            }
        }
    """
}


def ask_as_text(
    root: Path, files: dict[str, str], query: str, **params: object
) -> tuple[CodeResearchResult, list[str]]:
    asked = CodeResearchParams.model_validate({"query": query, **params})
    research = researched(project(root, files), query, asked.depth)
    result = format_research(
        research,
        cast("Coverage", {"complete": True, "files_searched": 1}),
        asked,
        as_text=True,
    )
    return result, render_text(result, render_research).splitlines()


def test_a_line_is_told_once_below_what_it_calls(tmp_path: Path) -> None:
    assert ask_as_text(tmp_path, SHOP, "who calls put")[1] == [
        "a/base.py:3 method Store.put",
        "a/use.py:6 keep: store.put(1)",
        "a/base.py:7 method Disk.put",
        "a/use.py:10 keep_here: disk.put(2)",
        "[tests: 2 in 1 file; tests=true]",
        "[possible: 1 of unknown receiver; unsure=true]",
    ]


def test_tests_and_possible_calls_are_listed_on_request(tmp_path: Path) -> None:
    _, lines = ask_as_text(
        tmp_path, SHOP, "who calls Disk.put", tests=True, unsure=True
    )
    assert lines[:3] == [
        "a/base.py:7 method Disk.put",
        "a/use.py",
        "10 keep_here: disk.put(2)",
    ]
    assert "6 perhaps keep: store.put(1)" in lines
    assert "6 test_put: Disk().put(4)" in lines
    assert not [line for line in lines if line.startswith("[tests")]


def test_a_call_of_a_base_is_only_counted(tmp_path: Path) -> None:
    result, lines = ask_as_text(tmp_path, SHOP, "who calls Disk.put")
    assert result["possible"] == {"of unknown receiver": 1, "of a base's method": 1}
    assert "a/use.py:10 keep_here: disk.put(2)" in lines
    assert not [line for line in lines if "store.put" in line]


def test_where_only_tests_call_they_are_the_answer(tmp_path: Path) -> None:
    files = {name: text for name, text in SHOP.items() if name != "a/use.py"}
    result, _ = ask_as_text(tmp_path, files, "who calls Disk.put")
    assert [edge["line"] for edge in result["edges"]] == [6, 10]
    assert "in_tests" not in result


def test_a_module_of_tests_of_rust_is_of_tests(tmp_path: Path) -> None:
    result, lines = ask_as_text(tmp_path, RUST, "who calls lift")
    assert result["in_tests"] == {"uses": 1, "files": 1}
    assert "src/lib.rs:5 raise: lift();" in lines
    impact = researched(project(tmp_path, RUST), "impact of lift", 1)
    told = [node.definition for node in impact.graph.nodes.values() if node.hop]
    assert {one.qualified for one in told if one.is_test} == {"tests.lifts"}


def test_the_first_line_says_what_all_are_implementations_of(tmp_path: Path) -> None:
    files = {
        "go.mod": "module loom\n",
        "a.go": """
            package loom

            type Weaver interface { Weave() }

            type Jenny struct {
                threads int
            }

            func (j *Jenny) Weave() {}
        """,
    }
    _, lines = ask_as_text(tmp_path, files, "what implements Weaver")
    assert lines[1:] == [
        "a.go:4 interface Weaver",
        "a.go:6 Jenny (6-8): type Jenny struct {",
    ]


def test_a_type_that_embeds_what_it_implements_is_told_once(tmp_path: Path) -> None:
    files = {
        "go.mod": "module loom\n",
        "a.go": """
            package loom

            type Weaver interface { Weave() }

            type Jenny struct {
                Weaver
                threads int
            }

            func (j *Jenny) Weave() {}
        """,
    }
    _, lines = ask_as_text(tmp_path, files, "what implements Weaver")
    assert lines[1:] == ["a.go:4 interface Weaver", "a.go:7 Jenny (6-9): Weaver"]


def test_importers_of_a_file_are_told_by_their_lines(tmp_path: Path) -> None:
    files = {"a/loom.ts": "export const weave = 1;\n"}
    for name in ("b", "c"):
        files[f"{name}.ts"] = "import { weave } from './a/loom';\n"
    _, lines = ask_as_text(tmp_path, files, "who uses a/loom.ts")
    assert lines[1:] == [
        "a/loom.ts:1 file loom.ts",
        "b.ts:1 import { weave } from './a/loom';",
        "c.ts:1 import { weave } from './a/loom';",
    ]


def test_an_answer_says_what_cut_it(tmp_path: Path) -> None:
    files = {"base.py": "class Base: ...\n"}
    for at in range(MOST_FRONTIER + 10):
        files[f"c{at}.py"] = f"from base import Base\n\n\nclass C{at}(Base): ...\n"
    source = project(tmp_path, files)
    research = researched(source, "subclasses of Base", None)
    assert not research.complete
    assert research.reason == "10 symbols were not followed, the limit of one question"
    late = Research("subclasses of Base", deadline=0.0)
    while late.advance(source):
        pass
    assert (late.complete, late.reason) == (False, "the deadline was reached")
    small = researched(source, "subclasses of C1", None)
    assert (small.complete, small.reason) == (True, "")


def test_callers_are_those_of_one_hop_unless_more_is_asked(tmp_path: Path) -> None:
    files = {"a.py": "def a(): ...\ndef b():\n    a()\ndef c():\n    b()\n"}
    assert ask_as_text(tmp_path, files, "callers of a")[0]["hops"] == 1
    assert ask_as_text(tmp_path, files, "callers of a", depth=2)[0]["hops"] == 2
