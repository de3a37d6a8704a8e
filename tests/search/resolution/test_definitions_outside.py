"""What a name that only agrees with one of the project leads to: nothing, where what is outside is meant.

A case is a small project with ``/*!*/`` before the name that is asked about, and the line that it leads to, or None.
"""

from pathlib import Path

import pytest

from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_name_at
from tests.search.research.test_research_engine import project

ASKED = "/*!*/"
PORTABLE = "#if !defined(ETIMEDOUT)\n#define ETIMEDOUT WSAETIMEDOUT\n#endif\n"
OPTIONS = "export interface Options { status: number; searchParams: string; timeout: number; method: string }\n"
CASES = {
    "a name of C's library, defined for another system": (
        {
            "tcp.h": "#ifndef TCP_H\n#define TCP_H\n" + PORTABLE + "#endif\n",
            "use.c": '#include "tcp.h"\nint f(int e) { return e == /*!*/ETIMEDOUT; }\n',
        },
        None,
    ),
    "a function of C's library, replaced on another system": (
        {
            "print.c": "#ifdef _WIN32\n#define fprintf(...) fprintf_w32(__VA_ARGS__)\n#endif\n"
            'void f(FILE *out) { /*!*/fprintf(out, "a"); }\n',
        },
        None,
    ),
    "a name of C's library that the project always defines": (
        {
            "tcp.h": "#ifndef TCP_H\n#define TCP_H\n#define ETIMEDOUT 60\n#endif\n",
            "use.c": '#include "tcp.h"\nint f(int e) { return e == /*!*/ETIMEDOUT; }\n',
        },
        "#define ETIMEDOUT 60",
    ),
    "a project's own default": (
        {
            "use.c": "#ifndef SHELF_SIZE\n#define SHELF_SIZE 9\n#endif\nint f(void) { return /*!*/SHELF_SIZE; }\n"
        },
        "#define SHELF_SIZE 9",
    ),
    "a member of a structure of C's library": (
        {
            "crane.h": "struct crane { int tv_sec; };\n",
            "use.c": '#include "crane.h"\n#include <sys/time.h>\n'
            "int f(struct timeval *now) { return now->/*!*/tv_sec; }\n",
        },
        None,
    ),
    "a package in an import of Java": (
        {
            "a/jedis/Crane.java": "package a.jedis;\npublic class Crane { }\n",
            "a/b/Use.java": "package a.b;\nimport a./*!*/jedis.Crane;\nclass Use { Crane jedis; }\n",
        },
        None,
    ),
    "a package in an import of Kotlin": (
        {
            "Crane.kt": "package a.jedis\nclass Crane\n",
            "Use.kt": "package a.b\nimport a./*!*/jedis.Crane\nclass Use { val jedis = Crane() }\n",
        },
        None,
    ),
    "a namespace in a directive of C#": (
        {
            "Crane.cs": "namespace A.Lifting { public class Crane { } }\n",
            "Use.cs": "using A./*!*/Lifting.Deep;\nclass Use { Crane Lifting; }\n",
        },
        "namespace A.Lifting { public class Crane { } }",
    ),
    "a type in an import of Java": (
        {
            "a/Crane.java": "package a;\npublic class Crane { public static class Rope { } }\n",
            "b/Use.java": "package b;\nimport a./*!*/Crane.Rope;\nclass Use { Rope Crane; }\n",
        },
        "public class Crane { public static class Rope { } }",
    ),
    "a label behind its goto": (
        {
            "use.c": "int g(void) {\ndone: return 1;\n}\n"
            "int f(int n) {\n if (n) goto /*!*/done;\n n++;\ndone:\n return n;\n}\n"
        },
        "done:",
    ),
    "a key of what is passed to a constructor of the host": (
        {
            "options.ts": OPTIONS,
            "use.ts": 'export const answer = new Response("", {/*!*/status: 500});\n',
        },
        None,
    ),
    "a key of what is passed to an imported function": (
        {
            "options.ts": OPTIONS,
            "use.ts": 'import {send} from "far";\nsend("a", {/*!*/method: "PUT"});\n',
        },
        None,
    ),
    "a key of what is passed where a type is written": (
        {
            "options.ts": OPTIONS,
            "use.ts": 'import {send} from "far";\nimport {Options} from "./options";\n'
            'send<Options>({/*!*/method: "PUT"});\n',
        },
        OPTIONS.strip(),
    ),
    "a member of what a class of the host makes": (
        {
            "options.ts": OPTIONS,
            "use.ts": 'const url = new URL("a:b");\nexport const found = url./*!*/searchParams;\n',
        },
        None,
    ),
    "a member of an object of the host": (
        {
            "options.ts": OPTIONS,
            "use.ts": "export const signal = AbortSignal./*!*/timeout(1000);\n",
        },
        None,
    ),
    "a member of a class that another script defines": (
        {
            "crane.js": "class Crane { static lift() {} }\n",
            "use.js": "Crane./*!*/lift();\n",
        },
        "class Crane { static lift() {} }",
    ),
    "a key that is a field in another language": (
        {
            "options.rs": "pub struct Options { pub method: String }\n",
            "use.ts": 'export function f(send) { send({/*!*/method: "PUT"}) }\n',
        },
        None,
    ),
    "a member that has a function's name": (
        {
            "length.ts": "export function length(a: unknown) { return a }\n",
            "use.ts": "export function f(errors) { return errors./*!*/length }\n",
        },
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_name_that_means_something_outside_leads_nowhere(
    tmp_path: Path, name: str
) -> None:
    marked, expected = CASES[name]
    (asked,) = (path for path, text in marked.items() if ASKED in text)
    before = marked[asked].partition(ASKED)[0]
    files = {path: text.replace(ASKED, "") for path, text in marked.items()}
    source = project(tmp_path, files)
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    named = find_name_at(source, asked.encode(), line, column, "utf-8")
    assert isinstance(named, NameAtPosition)
    told = [
        place.symbols.lines.text(place.symbols.lines.line(place.start)).strip()
        for place in Navigator(source).find_definitions(named).places
    ]
    assert told == ([] if expected is None else [expected])
