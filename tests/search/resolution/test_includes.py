"""Names of C resolved by what a file includes, and by what stands before them."""

from pathlib import Path

from tests.search.research.test_research_engine import project, researched
from tests.search.symbol_folder import FolderSource

PROGRAMS = {
    "include/lib/size.h": """
        typedef unsigned long Size;
        static inline int fits(Size one) { return one > 0; }
    """,
    "include/lib/all.h": "#include <lib/size.h>\n",
    "other/size.h": """
        typedef unsigned short Size;
        static inline int fits(Size one) { return one == 0; }
    """,
    "src/near.c": """
        #include "lib/all.h"
        int near(void) { return fits(1); }
    """,
    "other/far.c": """
        #include "size.h"
        int far(void) { return fits(2); }
    """,
    "src/loop.h": '#include "loop.h"\n',
    "src/lost.c": """
        #include "loop.h"
        #include <nowhere.h>
        int lost(void) { return fits(3); }
    """,
    "src/tag.c": """
        struct log { int length; };
        int write(struct log *log) { struct log *other = log; return other->length; }
    """,
    "src/renamed.h": """
        #ifdef PREFIX
        #define close_all lib_close_all
        #endif
        int close_all(void);
    """,
    "src/renamed.c": "int close_all(void) { return 1; }\n",
    "src/asks.c": """
        #include "renamed.h"
        int ask(void) { return close_all(); }
    """,
}


def told(source: FolderSource, query: str) -> set[tuple[str, int, str, float]]:
    """Return the edges of an answer: file and line of the use, the file that is meant, how sure that is."""
    found = researched(source, query, depth=1)
    return {
        (
            edge.path.decode(),
            edge.line,
            edge.target[0].decode(),
            edge.resolution.confidence,
        )
        for edge in found.graph.edges
    }


def test_a_static_function_is_that_of_the_header_that_is_included(
    tmp_path: Path,
) -> None:
    edges = told(project(tmp_path, PROGRAMS), "callers of fits")
    sure = {(path, target) for path, _, target, confidence in edges if confidence > 0.9}
    assert sure == {
        ("src/near.c", "include/lib/size.h"),
        ("other/far.c", "other/size.h"),
    }
    assert not {target for path, _, target, _ in edges if path == "src/lost.c"}


def test_a_type_is_that_of_the_header_that_is_included(tmp_path: Path) -> None:
    edges = told(
        project(
            tmp_path, {**PROGRAMS, "src/own.c": '#include "lib/all.h"\nSize own;\n'}
        ),
        "usages of Size",
    )
    assert {target for path, _, target, _ in edges if path == "src/own.c"} == {
        "include/lib/size.h"
    }


def test_a_structure_is_used_behind_its_word_alone(tmp_path: Path) -> None:
    edges = told(project(tmp_path, PROGRAMS), "usages of log")
    assert [(path, line) for path, line, _, _ in sorted(edges)] == [("src/tag.c", 3)]


def test_a_macro_that_may_rename_a_function_does_not_hide_it(tmp_path: Path) -> None:
    edges = told(project(tmp_path, PROGRAMS), "callers of close_all")
    by_target = {target: confidence for _, _, target, confidence in edges}
    assert by_target == {"src/renamed.c": 0.95, "src/renamed.h": 0.3}


def test_a_function_of_another_language_is_none_to_be_linked(tmp_path: Path) -> None:
    files = {
        **PROGRAMS,
        "port/renamed.cs": "class Port { static int close_all() { return 1; } }\n",
    }
    files["port/renamed.lua"] = "function close_all() return 1 end\n"
    edges = told(project(tmp_path, files), "callers of close_all")
    assert ("src/asks.c", 3, "src/renamed.c", 0.95) in edges


def test_in_c_a_field_is_no_type_and_a_parameter_may_be_called_as_its_type(
    tmp_path: Path,
) -> None:
    files = {
        "a.h": "typedef struct { int id; } user;\ntypedef struct ctx ctx;\nint give(user *user);\n",
        "a.c": """\
            #include "a.h"
            struct ctx { user *user; };
            static ctx *now;
            int give(user *user) { return user->id; }
            int take(struct ctx *c) { return c->user->id + give(c->user); }
        """,
    }
    source = project(tmp_path, files)
    found = {
        name: {
            (edge.path.decode(), edge.line)
            for edge in researched(source, f"where is {name} used", 1).graph.edges
            if edge.target[0] == b"a.h"
        }
        for name in ("user", "ctx")
    }
    assert found["user"] == {("a.c", 2), ("a.c", 4), ("a.h", 3)}
    assert ("a.c", 3) in found["ctx"]


def test_an_opaque_structure_is_the_one_body_that_the_project_has(
    tmp_path: Path,
) -> None:
    files = {
        "box.h": "typedef struct box box;\ntypedef unsigned long(box_fn)(struct box *);\n",
        "inner.h": '#include "box.h"\nstruct box { int size; };\n',
        "box.c": '#include "inner.h"\nint weigh(box *one, box_fn *f) { return f(one); }\n',
        "app.c": '#include "box.h"\nint look(struct box *one, box_fn *f) { return f(one); }\n',
    }
    source = project(tmp_path, files)
    uses = {
        (path, line, target)
        for path, line, target, _ in told(source, "usages of box")
        if path.endswith(".c") and line > 1
    }
    assert uses == {("box.c", 2, "box.h"), ("app.c", 2, "inner.h")}
    called = {path for path, *_ in told(source, "usages of box_fn")}
    assert called == {"box.c", "app.c"}
