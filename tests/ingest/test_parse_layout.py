"""Mistakes in a text that is laid out as people and formatters do: what stands beside them is read as it is meant."""

import time

import pytest

from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.grammar import grammar_of, parse_tree
from flashgrep.parts.symbols.parse.layout import LayoutRepairer
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.repair import parse_and_repair
from flashgrep.parts.symbols.parse.scoping import read_scopes
from tests.support.pace import paced

MISTAKES = ["if (x {", "foo(", "x = [1, 2", 'x = "abc', "class "]
TEXTS = {
    "python": """import shop

class Till:
    \"\"\"Counts
    what is paid.
    \"\"\"
    def open(self, hour):
        if hour > 8:
            return 1
        return 2

    def close(self):
        return [
            1,
        ]

def last():
    return Till()
""",
    "typescript": """import { shop } from './shop'

export class Till<
  Item
> {
  size = 1
  open(hour: number): number {
    if (hour > 8) {
      return `
one`
    }
    return 2
  }

  close() {
    return [
      1,
    ]
  }
}

export function last() {
  return new Till()
}
""",
    "java": """package shop;

class Till {
  private int size = 1;

  @Override
  int open(int hour) {
    if (hour > 8) {
      return 1;
    } else {
      return 2;
    }
  }

  void close() {
    shut();
  }
}

class Last {
}
""",
    "csharp": """namespace Shop
{
    class Till
    {
        int size = 1;

        int Open(int hour)
        {
            if (hour > 8)
            {
                return 1;
            }
            return 2;
        }

        void Close()
        {
            Shut();
        }
    }

    class Last
    {
    }
}
""",
    "rust": """use shop::Item;

pub struct Till {
    size: usize,
}

impl Till {
    /// Opens.
    fn open(&self, hour: u8) -> u8 {
        if hour > 8 {
            return 1;
        }
        2
    }

    fn close(&self) {
        shut();
    }
}

fn last() -> Till {
    Till { size: 1 }
}
""",
    "swift": """import Shop

class Till {
    let size = 1

    func open(hour: Int) -> Int {
        if hour > 8 {
            return 1
        }
        return 2
    }

    func close() {
        shut()
    }
}

func last() -> Till {
    return Till()
}
""",
    "ruby": """require 'shop'

class Till
  def open(hour)
    if hour > 8
      return 1
    end
    2
  end

  def close
    shut
  end
end

def last
  Till.new
end
""",
    "php": """<?php
namespace Shop;

class Till
{
    private $size = 1;

    public function open($hour)
    {
        if ($hour > 8) {
            return 1;
        }
        return 2;
    }

    public function close()
    {
        shut();
    }
}

function last()
{
    return new Till();
}
""",
    "cpp": """#include "shop.h"

namespace shop {

class Till {
 public:
  int open(int hour) {
    if (hour > 8) {
      return 1;
    }
    return 2;
  }

  void close() {
    shut();
  }
};

int last(void) {
  return 1;
}

}  // namespace shop
""",
}


def spans_of(language: str, text: str) -> dict[str, tuple[str, str]]:
    """Return what a text defines: by the whole name, its kind and the last line of its own."""
    data = text.encode()
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    symbols = FileSymbols(parsed, data)
    return {
        symbols.qualified(row): (
            symbols.kind(row),
            data[: symbols.rows[row][3]].rpartition(b"\n")[2].decode(),
        )
        for row in range(len(symbols.rows))
    }


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("language", TEXTS)
def test_a_started_line_hides_nothing_and_shortens_nothing(
    language: str, mistake: str
) -> None:
    whole = spans_of(language, TEXTS[language])
    assert len(whole) >= 4
    lines = TEXTS[language].splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if not line.startswith("<?"))
    body = next(at for at, line in enumerate(lines) if "hour > 8" in line)
    for at in (first, body):
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        for level in (
            {indent, ""} if language in {"typescript", "java", "rust"} else {indent}
        ):
            broken = "".join([*lines[:at], f"{level}{mistake}\n", *lines[at:]])
            found = spans_of(language, broken)
            assert {name: found.get(name) for name in whole} == whole, (at, level)


@pytest.mark.parametrize("language", sorted({*TEXTS} - {"python", "ruby", "cpp"}))
def test_a_brace_that_is_missing_hides_nothing(language: str) -> None:
    whole = spans_of(language, TEXTS[language])
    places = [at for at, sign in enumerate(TEXTS[language]) if sign in "{}"]
    for at in places:
        broken = TEXTS[language][:at] + TEXTS[language][at + 1 :]
        assert not whole.keys() - spans_of(language, broken).keys(), broken


def test_two_mistakes_are_two() -> None:
    lines = TEXTS["typescript"].splitlines(keepends=True)
    broken = "".join(["if (x {\n", *lines[:6], "    foo(\n", *lines[6:], "x = [1, 2\n"])
    assert (
        spans_of("typescript", TEXTS["typescript"]).items()
        <= spans_of("typescript", broken).items()
    )


def test_what_a_blanked_line_defines_is_found_by_its_words() -> None:
    broken = (
        TEXTS["java"]
        .replace("void close() {", "void close( {")
        .replace("}\n\nclass Last", "} }}\n\nclass Last {")
    )
    assert {"close", "Till", "Last"} <= {
        name.rpartition(".")[2] for name in spans_of("java", broken)
    }


def test_a_text_whose_grammar_knows_more_than_its_layout_says_stays_as_it_is() -> None:
    text = b"const one = [\n1,\n2,\n]; let two = <any>3 4\nfunction three() {\nreturn 4\n}\n"
    grammar = grammar_of("typescript")
    parsed = parse_and_repair("typescript", grammar, text, 5)
    assert not parsed.blanked
    assert str(parsed.tree.root_node) == str(parse_tree(grammar, text, 5).root_node)


def test_names_are_resolved_behind_a_mistake() -> None:
    text = ("x = [1, 2\n" + TEXTS["typescript"]).encode()
    scopes = read_scopes(b"a.ts", "typescript", text)
    assert scopes is not None
    assert {"Till", "last"} <= scopes.names.keys()
    assert scopes.names["Till"][0].offset == text.index(b"Till")


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["if (x {\n", " {\n", "}\n", "foo(\n", "@a\n", "class A {\n", '"""\n', "\t\n"],
)
@pytest.mark.parametrize("language", ["java", "python", "cpp"])
def test_looking_for_mistakes_costs_no_more_than_a_few_parses(
    language: str, line: str
) -> None:
    for text in (line * 1_000, "".join(" " * (at % 50) + line for at in range(600))):
        data, grammar = text.encode(), grammar_of(language)
        begun = time.thread_time()
        repairer = LayoutRepairer(language, grammar, data, begun + 5)
        repairer.repair(parse_tree(grammar, data, 5).root_node)
        assert len(repairer.text) == len(data)
        assert time.thread_time() - begun < paced(5)
