"""What a bare name is where nobody reads scopes: locals, labels, types, nearer definitions."""

import time
from pathlib import Path

import pytest

from flashgrep.parts.navigation.resolution.local_names import is_hidden
from flashgrep.parts.navigation.resolution.plain_text import find_module
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from tests.search.research.test_research_engine import project, researched
from tests.support.pace import paced

JAVA = {
    "Things.java": """
        class Pool {
            private int size;
            static final Reader<URI> URI = null;
            int size() { return size; }
            Pool(int size) { this.size = size; }
            void resize() { int size = 3; use(size); grow(size()); }
            URI read(Reader<URI> reader) { return new URI(""); }
            void keep() { use(URI); }
            static class Part {
                int size() { return 1; }
                int twice() { return 2 * size(); }
            }
        }
    """,
    "Base.java": "class Base { void peek() {} void look() { peek(); } }\n",
    "Nest.java": """
        class Outer {
            void write() {}
            class Inner {
                void write() { Outer.this.write(); }
                void again() { this.write(); }
            }
            void ask(Sink sink) { sink.write(); }
        }
        class Quiet implements Sink { public void write() {} }
    """,
    "Below.java": "class Below extends Base { void peek() {} void ask() { peek(); } void skip() { look(); } }\n",
}
KOTLIN = {
    "Zip.kt": """
        class Zip(val source: Int) {
            fun source(name: String) = 1
            fun copy(source: Int) = source + 1
            fun open() { val source = load(); read(source) }
            fun each() { load().use { source -> read(source) } }
            fun own() { read(source) }
            fun called() { source("a") }
            fun made() { Zip(source = 1) }
        }
    """,
}
SWIFT = {
    "Manager.swift": """
        class Manager {
            let loader: Loader
            init(loader: Loader, done: @escaping (Result<Int, (Error)>) -> Void) { keep(loader) }
            func load() { if let loader = other { loader.run() } }
            func start() { loader.run() }
            func make() { Manager(loader: other, done: { _ in }) }
        }
    """,
}
CSHARP = {
    "Log.cs": """
        class Log {
            int Width;
            void Set(int Width) { Keep(Width); }
            void Each() { foreach (var Width in all) { Keep(Width); } }
            void Map() { all.Select(Width => Keep(Width)); }
            void Own() { Keep(Width); }
        }
    """,
}
SCALA = {
    "Fiber.scala": """
        class Fiber {
            val stack = List()
            def local() = { val stack = other; push(stack) }
            def each() = all.map { stack => push(stack) }
            def own() = push(stack)
        }
    """,
}
LUA = {
    "cfg.lua": """
        local cfg = {}
        function cfg.init() return 1 end
        function cfg.start()
           local init = other
           return init()
        end
        function cfg.run() return cfg.init() end
        return cfg
    """,
}
RUBY = {
    "server.rb": """
        class Server
          def options; 1; end
          def local; options = {}; use(options); end
          def given(options) use(options); end
          def each; all.map { |options| use(options) }; end
          def own; use(options); end
        end
    """,
}


def users_of(
    root: Path, files: dict[str, str], question: str, *, by_file: bool = False
) -> set[str]:
    """Return who uses what, or in which files, with the confidence where it is not proven."""
    research = researched(project(root, files), question, 1)
    nodes = research.graph.nodes
    return {
        (edge.path.decode() if by_file else nodes[edge.source].definition.name)
        + (
            f" {edge.resolution.confidence}"
            if edge.resolution.confidence < 0.95 and edge.kind != "imports"
            else ""
        )
        for edge in research.graph.edges
    }


@pytest.mark.parametrize(
    ("files", "question", "expected"),
    [
        (JAVA, "callers of Pool.size", {"resize"}),
        (JAVA, "callers of Part.size", {"twice"}),
        (JAVA, "usages of Pool.URI", {"keep"}),
        (JAVA, "callers of Base.peek", {"look"}),
        (JAVA, "callers of Base.look", {"skip 0.9"}),
        (JAVA, "callers of Outer.write", {"write"}),
        (JAVA, "callers of Inner.write", {"again"}),
        (JAVA, "callers of Quiet.write", {"ask 0.4"}),
        (KOTLIN, "callers of Zip.source", {"called"}),
        (SWIFT, "usages of Manager.loader", {"start"}),
        (CSHARP, "usages of Log.Width", {"Own"}),
        (SCALA, "usages of Fiber.stack", {"own"}),
        (LUA, "callers of cfg.init", {"run 0.9"}),
        (RUBY, "usages of Server.options", {"own"}),
    ],
)
def test_a_name_is_what_is_nearest(
    tmp_path: Path, files: dict[str, str], question: str, expected: set[str]
) -> None:
    assert users_of(tmp_path, files, question) == expected


def test_of_a_property_the_uses_behind_its_own_locals_are_left(tmp_path: Path) -> None:
    assert {"own", "copy"} & users_of(tmp_path, KOTLIN, "usages of Zip.source") == {
        "own"
    }


def symbols_of(language: str, text: str) -> FileSymbols:
    data = text.encode()
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    return FileSymbols(parsed, data)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "java",
            "class A { int lift; void f() {{"
            + "int lift=1;\n" * 3_500
            + "}} int b = lift; } }",
        ),
        (
            "java",
            "class A { int lift; void f() {{"
            + "for (int lift : a)\n" * 2_200
            + ";} b = lift; } }",
        ),
        (
            "kotlin",
            "class A { fun f() {"
            + "for (lift in a) {\n" * 2_200
            + "}" * 2_200
            + " b(lift) } }",
        ),
    ],
)
def test_many_declarations_of_a_name_take_time_in_their_number(
    language: str, text: str
) -> None:
    symbols = symbols_of(language, text)
    started = time.thread_time()
    is_hidden(symbols, "lift", text.rindex("lift"), is_callable=False)
    assert time.thread_time() - started < paced(
        3
    )  # each by itself to the name: a minute


def test_a_module_with_a_long_name_is_found_in_linear_time() -> None:
    symbols = symbols_of("rust", "use " + "a" * 60_000 + "::{b};" + "\n" * 1_000)
    started = time.thread_time()
    assert find_module(symbols, "b") == "b"
    assert time.thread_time() - started < paced(1)
