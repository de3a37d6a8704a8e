"""From a place in a file to definitions, uses, implementations; each language's way, and local names."""

import re
from pathlib import Path

import pytest

from flashgrep.parts.navigation.navigation import Navigator, describe
from flashgrep.parts.navigation.references import ReferenceQuestion, ReferenceSearch
from flashgrep.parts.symbols.name_at_position import (
    NameAtPosition,
    NoResult,
    find_name_at,
)
from flashgrep.parts.symbols.symbol_source import SymbolSource
from tests.search.research.test_research_engine import project
from tests.search.resolution.test_name_resolution import GO, PYTHON, TYPESCRIPT

C = {
    "include/list.h": """
        struct list { struct list *next; };
        /* Add one. */
        int list_add(struct list *head, int count);
        #define LIST_MAX 8
    """,
    "lib/list.c": """
        #include "../include/list.h"
        int list_add(struct list *head, int count)
        {
            int total = count;
            {
                int total = LIST_MAX;
                use(total);
            }
            return total + head->next;
        }
    """,
    "net/other.c": """
        struct other { int next; struct { int deep; } in; struct list *all; };
        int deeper(struct other *o) { return o->next + o->in.deep + o->all->next + ((struct other *)0)->next; }
        static int count(void) { return 0; }
        static int local(int count) { return count; }
        int elsewhere(void) { return list_add(0, count()); }
    """,
}
RUST = {
    "a.rs": "fn first(a: u8) -> u8 { let b = a; match b { c => c + helper(b), _ => b } }\nfn helper(a: u8) {}\n"
}
JAVA = {
    "A.java": "class A { int run(int a) { int b = a; for (int c : x) { b += c; } return b; } }\n",
    "B.java": "class B { A own; int run() {} int go(A a) { return a.run(1) + this.own.run(2) + new A().run(3); } }\n",
}
RUBY = {"a.rb": "def run(a)\n  b = a\n  b + a\nend\n"}


def named_at(source: SymbolSource, place: str) -> NameAtPosition:
    """Return the name at a place told as ``path:line name``, or ``path:line name#2`` for the second on its line."""
    path, line, name, number = re.fullmatch(
        r"(\S+):(\d+) ([^#]+)(?:#(\d+))?", place
    ).groups()  # type: ignore[union-attr]
    text = source.read(path.encode()).decode().splitlines()[int(line) - 1]  # type: ignore[union-attr]
    at = list(re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text))[
        int(number or 1) - 1
    ]
    named = find_name_at(source, path.encode(), int(line), at.start() + 1, "utf-32")
    assert isinstance(named, NameAtPosition), named
    assert named.text == name
    return named


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SymbolSource]:
    made = {
        "py": {**PYTHON, "pool.c": "int pool;\nint use(void) { return pool; }\n"},
        "ts": TYPESCRIPT,
        "go": GO,
        "c": C,
        "rs": RUST,
        "java": JAVA,
        "rb": RUBY,
    }
    return {
        name: project(tmp_path_factory.mktemp(name), files)
        for name, files in made.items()
    }


@pytest.mark.parametrize(
    ("kind", "place", "expected"),
    [
        ("py", "use.py:8 send", "pkg/core.py:14"),
        ("py", "use.py:8 client", "use.py:7"),
        ("py", "pkg/core.py:15 pool", "pkg/core.py:12"),
        ("py", "pkg/core.py:15 give", "pkg/core.py:26"),
        ("py", "use.py:9 fix", "pkg/tools.py:4"),
        ("py", "use.py:9 kit", "pkg/tools.py:1"),
        ("py", "use.py:12 client", "use.py:12"),
        ("py", "pkg/__init__.py:1 helper", "pkg/core.py:6"),
        ("py", "use.py:18 helper", ""),
        ("py", "pkg/core.py:3 base", "pkg/base.py:1"),
        ("py", "use.py:2 tools", "pkg/tools.py:1"),
        ("py", "use.py:17 json", ""),
        ("ts", "src/use.ts:2 ./shapes", "src/shapes/index.ts:1"),
        ("ts", "src/shapes/index.ts:3 surface", "src/shapes/area.ts:2"),
        ("ts", "src/shapes/area.ts:4 shown", "src/shapes/area.ts:3"),
        ("go", "main.go:3 example.com/shop/store", "store/store.go:1"),
        ("go", "main.go:5 shop", "store/store.go:1"),
        ("ts", "src/use.ts:6 surface", "src/shapes/area.ts:2"),
        ("ts", "src/use.ts:10 anything", "src/shapes/area.ts:5"),
        ("ts", "src/use.ts:13 area", "src/use.ts:13"),
        ("ts", "src/shapes/index.ts:3 area", "src/shapes/area.ts:2"),
        ("ts", "packages/app/main.ts:2 build", "packages/lib/src/build.ts:1"),
        ("go", "main.go:6 Close", "store/store.go:4"),
        ("go", "main.go:8 Price", "store/store.go:7"),
        ("go", "main.go:6 s", "main.go:5"),
        ("c", "lib/list.c:8 total", "lib/list.c:7"),
        ("c", "lib/list.c:10 total", "lib/list.c:5"),
        ("c", "lib/list.c:5 count", "lib/list.c:3"),
        ("c", "lib/list.c:7 LIST_MAX", "include/list.h:5"),
        ("c", "net/other.c:5 count#2", "net/other.c:5"),
        ("c", "net/other.c:6 count", "net/other.c:4"),
        ("c", "net/other.c:6 list_add", "lib/list.c:3"),
        ("c", "net/other.c:3 next", "net/other.c:2"),
        ("c", "net/other.c:3 deep", "net/other.c:2"),
        ("c", "net/other.c:3 next#2", "include/list.h:2"),
        ("c", "net/other.c:3 next#3", "net/other.c:2"),
        ("c", "lib/list.c:10 next", "include/list.h:2"),
        ("c", "include/list.h:4 list_add", "lib/list.c:3"),
        ("c", "lib/list.c:3 list", "include/list.h:2"),
        ("rs", "a.rs:1 b#2", "a.rs:1"),
        ("rs", "a.rs:1 c#2", "a.rs:1"),
        ("rs", "a.rs:1 helper", "a.rs:2"),
        ("java", "A.java:1 b#2", "A.java:1"),
        ("java", "A.java:1 c#2", "A.java:1"),
        ("java", "B.java:1 run#2", "A.java:1"),
        ("java", "B.java:1 run#3", "A.java:1"),
        ("java", "B.java:1 run#4", "A.java:1"),
        ("rb", "a.rb:3 b", "a.rb:2"),
        ("rb", "a.rb:3 a", "a.rb:1"),
    ],
)
def test_a_name_leads_to_what_it_means(
    sources: dict[str, SymbolSource], kind: str, place: str, expected: str
) -> None:
    found = Navigator(sources[kind]).find_definitions(named_at(sources[kind], place))
    places = [
        f"{one.path.decode()}:{one.symbols.lines.line(one.start)}"
        for one in found.places
    ]
    assert places == ([expected] if expected else [])
    assert (found.no_result is None) == bool(expected)


@pytest.mark.parametrize(
    ("kind", "place", "expected"),
    [
        (
            "py",
            "pkg/core.py:6 helper",
            "__init__.py:1 core.py:6 tools.py:5 use.py:3 use.py:9",
        ),
        ("py", "use.py:7 client", "use.py:7 use.py:8"),
        ("py", "pkg/core.py:12 pool", "core.py:12 core.py:15"),
        ("ts", "src/shapes/area.ts:3 hidden", "area.ts:3 area.ts:4 use.ts:2 use.ts:7"),
        ("ts", "src/shapes/area.ts:5 total", "area.ts:5 index.ts:4 use.ts:3 use.ts:10"),
        ("ts", "src/other.ts:1 area", "other.ts:1"),
        ("go", "store/store.go:7 Price", "main.go:7 main.go:8 store.go:7"),
        ("c", "lib/list.c:8 total", "list.c:7 list.c:8"),
        ("c", "lib/list.c:5 total", "list.c:5 list.c:10"),
        ("c", "lib/list.c:3 list_add", "list.h:4 list.c:3 other.c:6"),
        ("c", "net/other.c:4 count", "other.c:4 other.c:6"),
        ("rs", "a.rs:1 b", "a.rs:1"),
    ],
)
def test_uses_are_those_of_what_stands_there(
    sources: dict[str, SymbolSource], kind: str, place: str, expected: str
) -> None:
    source = sources[kind]
    found = ReferenceSearch(source, ReferenceQuestion(limit=100)).run(
        named_at(source, place)
    )
    places = [
        f"{one.path.decode().rpartition('/')[2]}:{one.symbols.lines.line(one.start)}"
        for one in found.places
    ]
    assert list(dict.fromkeys(places)) == expected.split()


def test_uses_go_on_behind_a_page(sources: dict[str, SymbolSource]) -> None:
    source, after, pages = sources["ts"], (b"", -1), []
    named = named_at(source, "src/shapes/area.ts:2 area")
    whole = ReferenceSearch(source, ReferenceQuestion(limit=100)).run(named).places
    while True:
        found = ReferenceSearch(source, ReferenceQuestion(limit=3, after=after)).run(
            named
        )
        pages += found.places
        if not found.has_more:
            break
        after = found.places[-1].path, found.places[-1].start
    assert [(one.path, one.start) for one in pages] == [
        (one.path, one.start) for one in whole
    ]
    bare = (
        ReferenceSearch(source, ReferenceQuestion(limit=100, include_declaration=False))
        .run(named)
        .places
    )
    assert {one.role for one in bare} == {"import", "call"}
    # A parameter of its name is none of its uses.
    shadowed = next(
        line
        for line, text in enumerate(whole[-1].symbols.data.split(b"\n"), 1)
        if b"shadowed" in text
    )
    assert (b"src/use.ts", shadowed) not in {
        (one.path, one.symbols.lines.line(one.start)) for one in whole
    }


@pytest.mark.parametrize(
    ("files", "place", "expected"),
    [
        (
            {
                "a.py": "class A:\n    def go(self): ...\nclass B(A):\n    def go(self): ...\nclass C(B): ...\n"
            },
            "A",
            "B C",
        ),
        (
            {
                "a.py": "class A:\n    def go(self): ...\nclass B(A):\n    def go(self): ...\nclass C(B): ...\n"
            },
            "go",
            "go",
        ),
        (
            {
                "A.java": "interface A {}\nclass B implements A {}\nclass C extends B {}\n"
            },
            "A",
            "B C",
        ),
    ],
)
def test_implementations_are_near_and_far(
    tmp_path: Path, files: dict[str, str], place: str, expected: str
) -> None:
    source = project(tmp_path, files)
    (path,) = files
    line = 2 if place == "go" else 1
    found = Navigator(source).find_implementations(
        named_at(source, f"{path}:{line} {place}")
    )
    assert [one.symbols.name(one.index) for one in found.places] == expected.split()
    assert all(one.start != 0 for one in found.places)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("x = 1\n", 3, "no_name"),
        ("x = 'word'\n", 7, "text"),
        ("x = 1  # word\n", 10, "text"),
        ("   \n", 2, "blank"),
        ("x\n", 9, "past_line_end"),
        ("while True: pass\n", 2, "no_name"),
    ],
)
def test_where_no_name_stands_the_reason_is_reported(
    tmp_path: Path, text: str, column: int, reason: str
) -> None:
    (tmp_path / "a.py").write_text(text)
    named = find_name_at(project(tmp_path, {}), b"a.py", 1, column, "utf-32")
    assert isinstance(named, NoResult)
    assert named.reason == reason


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.py", 'def walk():\n    """Go.\n\n    Far.\n    """\n', "Go.\n\nFar."),
        (
            "a.c",
            "/* No. */\n\n/**\n * walk - goes\n *  @a: one\n */\nstatic int\nwalk(int a) { return a; }\n",
            "walk - goes\n @a: one",
        ),
        (
            "a.rs",
            "/// Goes.\n///\n/// Far.\n#[inline]\npub fn walk() {}\n",
            "Goes.\n\nFar.",
        ),
        (
            "a.ts",
            "const x = 1 // no\n/** Goes. */\nexport function walk() {}\n",
            "Goes.",
        ),
        (
            "a.go",
            "package a\n\n// walk goes\n// far.\nfunc walk() {}\n",
            "walk goes\nfar.",
        ),
        ("a.sh", "#!/bin/sh\n\n# Goes.\nwalk() { true; }\n", "Goes."),
        ("a.java", "class A {\n  int x; // no\n  void walk() {}\n}\n", ""),
    ],
)
def test_documentation_is_returned_whole(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    source = project(tmp_path, {})
    line = next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(r"\bwalk\(", line)
    )
    found = Navigator(source).find_definitions(named_at(source, f"{name}:{line} walk"))
    assert describe(found.places[0]).documentation == said
