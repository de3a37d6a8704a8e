"""Names told by packages, namespaces and modules: what an import says, and what a file sees without one."""

from pathlib import Path

import pytest

from flashgrep.parts.symbols.parse.imports import read_packages
from tests.search.resolution.test_local_names import users_of

JAVA = {
    "a/Element.java": "package a;\npublic class Element { public static int count() { return 1; } }\n",
    "a/Beside.java": "package a;\nclass Beside { Element one() { return new Element(); } }\n",
    "b/Named.java": "package b;\nimport a.Element;\nclass Named { Element one() { return new Element(); } }\n",
    "b/All.java": "package b;\nimport a.*;\nclass All { Element one() { return new Element(); } }\n",
    "b/Static.java": "package b;\nimport static a.Element.count;\nclass Static { int one() { return count(); } }\n",
    "c/Other.java": "package c;\nimport org.w3c.Element;\nclass Other { Element one() { return new Element(); } }\n",
    "c/Without.java": "package c;\nclass Without { Element one() { return new Element(); } }\n",
    "d/Token.java": "package d;\nclass Token { static class Start {} Start own() { return new Start(); } }\n",
    "d/Below.java": "package d;\nclass Below extends Token { Start below() { return new Start(); } }\n",
    "e/Full.java": "/* ours */ package e;\nclass Full { Object full() { return new a.Element(); } }\n",
    "d/Near.java": "package d;\nclass Near { Start near() { return new Start(); } }\n",
}
KOTLIN = {
    "Hash.kt": "package okio\nclass Sink {\n companion object {\n fun mac() = 1\n }\n}\nfun plain() = 1\n",
    "Use.kt": "package app\nimport okio.plain as it\nimport okio.Sink.Companion.mac\nfun use() { it(); mac() }\n",
    "Else.kt": "package other\nimport lib.plain\nfun wrong() { plain() }\n",
}
CSHARP = {
    "Core/Log.cs": "namespace Serilog.Core\n{\n    public class Logger { public Logger() {} }\n}\n",
    "Core/Inner.cs": "namespace Serilog.Core.Inner;\nclass Inner { Logger Below() => new Logger(); }\n",
    "App.cs": "using Serilog.Core;\nnamespace App;\nclass Program { Logger Main() => new Logger(); }\n",
    "Core/Full.cs": "namespace Serilog.Far;\nclass Full { object Whole() => new Core.Logger(); }\n",
    "Named.cs": "using Log = Serilog.Core.Logger;\nnamespace App;\nclass Short { Log Brief() => new Log(); }\n",
}
PHP = {
    "src/Logger.php": "<?php\nnamespace Mono;\nclass Logger {}\nfunction track() {}\n",
    "src/Use.php": """<?php
        namespace App;
        use Mono\\{Logger, Other};
        use function Mono\\track;
        function run() { new Logger(); track(); }
    """,
    "src/Far.php": "<?php\nnamespace Far;\nfunction far() { new Logger(); }\n",
    "src/Open.php": "<?php namespace Open;\nfunction full() { new \\Mono\\Logger(); \\Mono\\track(); }\n",
    "src/Part.php": "<?php\nnamespace Part;\nuse Mono as M;\nfunction part() { new M\\Logger(); return all(); }\n",
    "src/Rest.php": "<?php\nnamespace Mono;\nfunction rest() { \\all(); }\n",
    "src/all.php": "<?php\nfunction all() { return new Logger(); }\n",
    "src/Own.php": "<?php\nnamespace Own;\nfunction all() {}\nfunction own() { all(); }\n",
}
ELIXIR = {
    "lib/codec.ex": """
        defmodule Shop.Codec do
          @table [1]
          @spec decode(term) :: term
          def decode([]), do: @table
          def decode([one | rest]), do: [pick(one) | decode(rest)]
          defp pick(one), do: one
          def table, do: 1
        end

        defmodule Shop.Codec.Error do
          def decode(one), do: one
          def inner(one), do: decode(one)
        end
    """,
    "lib/use.ex": """
        defmodule Shop.Use do
          alias Shop.{Codec, Other}
          alias Shop.Codec, as: C
          def short(one), do: Codec.decode(one)
          def given(one), do: C.decode(one)
          def full(one), do: Shop.Codec.decode(one)
          def wrong(one), do: Codec.Error.decode(one)
          def far(one), do: Json.decode(one)
        end
    """,
    "lib/import.ex": "defmodule Shop.Import do\n  import Shop.Codec\n  def brought(one), do: decode(one)\nend\n",
    "lib/without.ex": "defmodule Shop.Without do\n  def without(one), do: decode(one)\nend\n",
}


@pytest.mark.parametrize(
    ("files", "question", "expected"),
    [
        (JAVA, "callers of Element", {"one", "full"}),
        (JAVA, "callers of Element.count", {"one"}),
        (JAVA, "callers of Token.Start", {"own", "below 0.9"}),
        (KOTLIN, "callers of plain", {"use"}),
        (KOTLIN, "callers of Sink.mac", {"use"}),
        (CSHARP, "usages of Logger", {"Below", "Main", "Brief", "Whole"}),
        (PHP, "callers of Logger", {"run", "full", "part"}),
        (PHP, "callers of track", {"run", "full"}),
        (PHP, "callers of all", {"part", "rest", "own"}),
        (
            ELIXIR,
            "callers of Shop.Codec.decode",
            {"decode", "short", "given", "full", "brought"},
        ),
        (ELIXIR, "callers of Shop.Codec.Error.decode", {"inner", "wrong"}),
        (ELIXIR, "usages of Shop.Codec.table", set()),
    ],
)
def test_a_bare_name_is_what_its_package_or_an_import_says(
    tmp_path: Path, files: dict[str, str], question: str, expected: set[str]
) -> None:
    told = users_of(tmp_path, files, question)
    assert {one for one in told if "." not in one.removesuffix("0.9")} == expected


def test_a_constructor_is_no_other_thing_than_its_type(tmp_path: Path) -> None:
    files = {
        "Level.cs": "namespace Core;\nclass Level { public Level() {} }\n",
        "Usings.cs": "global using Core;\n",
        "App.cs": "namespace App;\nclass Program { object Main() => new Level(); }\n",
    }
    assert users_of(tmp_path, files, "usages of Level") == {"Main 0.5"}


def test_of_one_name_in_two_packages_only_the_imported_one_is_used(
    tmp_path: Path,
) -> None:
    research = users_of(tmp_path, JAVA, "usages of Element", by_file=True)
    assert research == {
        "a/Beside.java",
        "b/Named.java",
        "b/All.java",
        "b/Static.java",
        "e/Full.java",
    }


@pytest.mark.parametrize(
    ("language", "statement", "expected"),
    [
        ("java", "import static a.b.C.foo;", [("foo", "a.b.C", "foo")]),
        ("java", "import a.b.*;", [("", "a.b", "*")]),
        ("kotlin", "import a.b.C as D", [("D", "a.b", "C")]),
        (
            "scala",
            "import a.{C, D => E, _}, x.y",
            [("C", "a", "C"), ("E", "a", "D"), ("", "a", "*"), ("y", "x", "y")],
        ),
        ("csharp", "global using static A.B;", [("", "A.B", "*")]),
        ("csharp", "using X = A.B.C;", [("X", "A.B", "C")]),
        ("php", "use A\\B\\{C, D as E};", [("C", "A.B", "C"), ("E", "A.B", "D")]),
        ("php", "use function A\\b;", [("b", "A", "b")]),
        ("elixir", "alias A.B.{C, D}", [("C", "A.B", "C"), ("D", "A.B", "D")]),
        ("elixir", "alias A.B, as: X", [("X", "A", "B")]),
        ("elixir", "import A.B, only: [a: 1]", [("", "A.B", "*")]),
        ("elixir", "require A.B", []),
    ],
)
def test_imports_of_packages_are_read(
    language: str, statement: str, expected: list[tuple[str, str, str]]
) -> None:
    assert [
        (one.local, one.module, one.name)
        for one in read_packages(language, statement, 0)
    ] == expected
