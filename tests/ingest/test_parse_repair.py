"""Members of a type of TypeScript that end with their line: the grammar is told so, and places stay what they are."""

import pytest

from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.grammar import grammar_of, parse_tree
from flashgrep.parts.symbols.parse.repair import parse_and_repair
from flashgrep.parts.symbols.parse.scoping import read_scopes

MEMBERS = [
    "name: Name",
    "(one: One): Two<One>",
    "list: One[]",
    "word: 'x'",
    "run(): void",
    "of: { a: One }",
]
GAPS = [
    "\n  ",
    "\n\n\n  ",
    " // ends here: x\n  ",
    "\n  /* more\n  words */\n  ",
    "\r\n\t",
]


def is_whole(text: str, grammar: str = "typescript") -> bool:
    return not parse_and_repair(
        grammar, grammar_of(grammar), text.encode(), 5
    ).tree.root_node.has_error


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("member", MEMBERS)
def test_a_call_signature_may_follow_any_member(member: str, gap: str) -> None:
    for head in ("interface Ways", "type Ways ="):
        last = "<B extends One = {},>(b: B): B"
        text = f"{head} {{\n  // first: of all\n  <A>(a: A): A\n  {member}{gap}{last}\n}}\nlet x = 1\n"
        assert is_whole(text)
        assert is_whole(text, "tsx")


def test_places_in_a_repaired_tree_are_those_of_the_text() -> None:
    text = (
        b"interface Ways {\n  name: Name\n  <B>(b: B): B\n}\nclass Far { run() {} }\n"
    )
    scopes = read_scopes(b"a.ts", "typescript", text)
    assert scopes is not None
    name = scopes.node_at(text.index(b"Far"))
    assert name is not None
    assert scopes.text(name) == "Far"
    assert [one.offset for one in scopes.names["Far"]] == [text.index(b"Far")]


@pytest.mark.parametrize(
    "text",
    [
        "const is = one\n  <two, three>(4)\n",  # a comparison
        "const a = (\n  <One\n    name={(1}\n  />\n)\nconst b = <Two>\n  <Three>(</Three></Two>\n",
    ],
)
def test_a_text_that_semicolons_do_not_mend_stays_as_it_is(text: str) -> None:
    grammar = grammar_of("tsx")
    assert str(
        parse_and_repair("tsx", grammar, text.encode(), 5).tree.root_node
    ) == str(parse_tree(grammar, text.encode(), 5).root_node)


def test_a_ruby_string_that_nobody_ended_hides_no_definitions() -> None:
    rest = 'class Shop\n  def price(name) = "#{name} 1"\n  # 5" wide\n  def size\n    1\n  end\nend\n'
    found, whole = (
        parse_symbols("ruby", text.encode()) for text in ('x = "abc\n' + rest, rest)
    )
    assert isinstance(found, ParsedFile)
    assert isinstance(whole, ParsedFile)
    moved = whole.move(len('x = "abc\n'), declares=False)
    assert found.definitions.tolist() == moved.definitions.tolist()


def test_a_ruby_string_with_code_over_lines_stays_a_string() -> None:
    text = b'class Shop\n  eval "\n    def none\n    end\n  "\n  def size\n  end\nend\n'
    found = parse_symbols("ruby", text)
    assert isinstance(found, ParsedFile)
    assert found.names(text) == [b"Shop", b"size"]


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
def test_scopes_of_a_broken_file_are_read_where_its_query_compares_texts(
    language: str,
) -> None:
    text = b"A.prototype.run = function () {}\nfunction broken() {\n  call(\n}\nfunction after() { return 1 }\n"
    scopes = read_scopes(b"a", language, text)
    assert scopes is not None
    assert "after" in scopes.names
