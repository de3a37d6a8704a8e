"""A file with a mistake in the middle, as it is while somebody types: what follows is found all the same."""

import time
from collections import Counter
from pathlib import Path

import pytest

from flashgrep.base.languages import language_of
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.generic import find_generic_tags
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.patterns import PATTERNS
from tests.support.pace import paced

SAMPLES = Path(__file__).parent / "samples"
MISTAKES = [
    b"foo(",
    b"x = [1, 2",
    b"if (",
    b"{",
    b"def f(",
    b"function g(",
    b"class ",
    b"a.b.",
    b"(((",
    b"return x +",
]
BY_KEYWORD = {"function", "method", "class", "interface", "trait"}


def symbols_of(path: Path, data: bytes) -> FileSymbols:
    parsed = parse_symbols(language_of(path.name.encode(), data).name, data)
    assert isinstance(parsed, ParsedFile)
    return FileSymbols(parsed, data)


def names_of(symbols: FileSymbols, kinds: set[str]) -> Counter[str]:
    return Counter(
        symbols.name(row)
        for row in range(len(symbols.rows))
        if symbols.kind(row) in kinds
    )


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.decode())
@pytest.mark.parametrize(
    "name", ["py", "ts", "tsx", "js", "go", "rs", "php", "rb", "swift", "zig"]
)
def test_a_mistake_hides_little_of_what_follows(name: str, mistake: bytes) -> None:
    path = SAMPLES / f"sample.{name}"
    lines = path.read_bytes().split(b"\n")
    whole = names_of(symbols_of(path, b"\n".join(lines)), BY_KEYWORD)
    for at in (len(lines) // 4, len(lines) // 2):
        broken = b"\n".join([*lines[:at], mistake, *lines[at:]])
        lost = whole - names_of(symbols_of(path, broken), BY_KEYWORD)
        assert lost.total() <= max(2, whole.total() // 8), (at, lost)


def test_words_in_comments_and_strings_of_a_broken_file_are_no_definitions() -> None:
    text = b'x = (\n# def commented(): pass\ny = """\ndef quoted(): pass\n"""\n\ndef real():\n    return 1\n'
    found = symbols_of(Path("a.py"), text)
    assert names_of(found, BY_KEYWORD) == Counter(["real"])


def test_members_behind_a_mistake_are_recognized_by_their_shape() -> None:
    java = b"""class Shop {
  void open( {
    if (hour > 8 {
  }
  private static final Map<String, Item> ITEMS = new HashMap<>();
  // private int commented;
  protected List<Item> find(String name, int most) throws IOException {
    final int local = 1;
    if (most > 0) { return new Finder(name) { }; } else if (name == null) { throw new Lost(name) { }; }
  }
  @Override public String toString() {
    return "private int quoted;";
  }
"""
    found = symbols_of(Path("a.java"), java)
    assert {"ITEMS", "find", "toString"} <= set(names_of(found, {"method", "field"}))
    assert not {"commented", "quoted", "local", "if", "Finder", "Lost"} & set(
        names_of(found, {"method", "field"})
    )
    script = b"class Shop {\n  open( {\n    if (hour > 8 {\n  }\n  async close(hour) {\n    if (hour) { return }\n  }\n"
    assert "close" in names_of(symbols_of(Path("a.js"), script), {"method"})
    lisp = (
        b"(defun shop-open ()\n  (let ((x 1\n(defun shop-close (hour)\n  (car hour))\n"
    )
    assert "shop-close" in names_of(symbols_of(Path("a.el"), lisp), {"function"})


def test_in_c_a_word_before_a_name_is_no_definition() -> None:
    text = b"int f( {\nstruct file *open_it(struct inode *node);\n}}}} ((\nstruct file *also;\nint g(void) { return 1; }\n"
    assert "file" not in names_of(symbols_of(Path("a.c"), text), {"struct"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [b"pub\n", b"a\n", b"(\n", b"fn\n", b"a:a\n", b"fn (\n", b"fn <\n"]
)
@pytest.mark.parametrize("name", ["a.rs", "a.groovy"])
def test_lines_that_only_begin_a_definition_take_no_more_than_their_length(
    name: str, line: bytes
) -> None:
    # Quadratic, 60 KB took most of a minute, in which no other thread ran.
    begun = time.process_time()
    symbols_of(Path(name), line * (60_000 // len(line)) + b")")
    assert time.process_time() - begun < paced(10)


BEGINNINGS = [
    b"a", b"(", b"{", b" ", b"\n", b"a ", b"a,", b"a.", b"a::", b"a\n", b"a(", b"a<", b'"', b"[", b"a=",
    b"type a is (\n", b"type\n", b"typedef ", b"typedef a {", b"enum a {", b"enum {a,", b"struct a {\n",
    b"is record\na;", b"record a:", b"localparam a\n", b"parameter ", b"function ", b"function a ", b"cdef ",
    b"cdef a ", b"cdef extern from a\n", b"ctypedef a(", b"@a ", b"@a(", b"extern(a) ", b"int a(\n", b"int a() ",
    b"alias a ", b"let a ", b"let rec ", b"member a.", b"namespace eval ", b"proc {", b"var\n a", b"1: a ",
    b"service a {", b"a: constant ", b"procedure a.", b"a<b>.",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(PATTERNS))
def test_patterns_take_time_in_the_length_of_a_text(language: str) -> None:
    spent = dict[float, tuple[bytes, bytes]]()
    for beginning in BEGINNINGS:
        for head, repeated in ((b"", beginning), (beginning, b"a"), (beginning, b" ")):
            begun = time.process_time()
            find_generic_tags(language, head + repeated * (20_000 // len(repeated)))
            spent[time.process_time() - begun] = (head, repeated)
    slowest = max(spent)
    assert slowest < paced(1), spent[slowest]


def test_what_a_grammar_does_not_know_is_found_by_patterns() -> None:
    proto = b"""syntax = "proto2";
package shop.v1;
// message Commented {
message Item {
  required string name = 1;
  map<string, int32> prices = 2;
  enum Kind { FRUIT = 1;
    BREAD = 2;
  }
  extensions 100 to 199;
}
service Shop {
  rpc Price(Item) returns (Item);
}
"""
    found = symbols_of(Path("a.proto"), proto)
    assert set(found.parsed.names(proto)) == set(
        b"shop.v1 Item name prices Kind BREAD Shop Price".split()
    )
    sql = b"""CREATE OR REPLACE PROCEDURE dbo.add_item(x int) LANGUAGE sql AS $$ select 1 $$;
CREATE TRIGGER [item added] ON items AFTER INSERT AS BEGIN SELECT 1 END
-- CREATE TABLE commented (a int);
CREATE FORCE VIEW "dear items" AS SELECT * FROM items;
CREATE TABLE items (
  id NUMBER(10) NOT NULL,
  price MONEY,
  CONSTRAINT pk PRIMARY KEY (id)
) ENGINE = x y z ((;
"""
    names = set(symbols_of(Path("a.sql"), sql).parsed.names(sql))
    assert {
        b"add_item",
        b"item added",
        b"dear items",
        b"items",
        b"id",
        b"price",
    } <= names
    assert not names & {b"commented", b"CONSTRAINT", b"pk"}


def test_a_string_that_the_grammar_begins_at_the_end_of_another_hides_nothing() -> None:
    text = b"""class Till {
    func open( {
    let a = (((
    let b = "x"; indirect case c
}
actor Bank { init?(a: Int) { } }
func helper<T>(_ x: T) -> T { x }
func <~> (a: Int, b: Int) -> Int { a }
let long = \"\"\"
func quoted() {
\"\"\"
func last() { print("y") }
"""
    names = names_of(symbols_of(Path("a.swift"), text), BY_KEYWORD | {"constructor"})
    assert {"Bank", "init", "helper", "<~>", "last"} <= set(names)
    assert "quoted" not in names


def test_both_sides_of_an_unfinished_merge_are_read() -> None:
    text = b"""class Shop:
    def open(self):
<<<<<<< HEAD
        return 1

    def close(self):
||||||| base
        return 0
=======
        return 2

    def shut(self):
>>>>>>> theirs
        pass

    def sell(self):
        pass
"""
    symbols = symbols_of(Path("a.py"), text)
    found = [symbols.qualified(row) for row in range(len(symbols.rows))]
    assert found == ["Shop", "Shop.open", "Shop.close", "Shop.shut", "Shop.sell"]


def test_behind_three_quotes_that_nothing_closes_functions_are_found() -> None:
    text = b"""def first():
    '''Open it.

def second():
    '''Close it.'''

class Third:
    '''A thing.'''
    def fourth(self): pass
"""
    assert {"first", "second", "Third", "fourth"} <= set(
        names_of(symbols_of(Path("a.py"), text), BY_KEYWORD)
    )


def test_what_a_language_introduces_by_its_own_words_is_found_behind_a_mistake() -> (
    None
):
    rust = b"""fn open( {
    let hour = (((
    x = "abc
impl<T> Run for Retry<T> {
    fn run(&self) {}
}
pub mod shop {}
"""
    found = symbols_of(Path("a.rs"), rust)
    assert {"Retry", "run", "shop"} <= set(
        names_of(found, {"extension", "function", "method", "module"})
    )
    assert "hour" not in names_of(found, {"function", "method"})
    sharp = b"""class Shop {
  void Open( {
    if (x {
  }
  public string Name { get; set; }
  internal int Size => 3;
}
"""
    assert {"Name", "Size"} <= set(
        names_of(symbols_of(Path("a.cs"), sharp), {"property"})
    )
    kotlin = b"""class ShopTest {
  fun open( {
    if (((
  @Test fun `opens at nine`() { }
  @Test(a) suspend fun closes() { }
}
"""
    assert {"opens at nine", "closes"} <= set(
        names_of(symbols_of(Path("a.kt"), kotlin), {"function", "method"})
    )


def test_objective_c_behind_a_mistake_is_recognized_by_its_marks() -> None:
    text = b"""@interface Shop : NSObject
- (void)open:(int {
#if (((
@property (nonatomic, copy) NSString *name;
@end
typedef void (^Closed)(NSError *error);
@interface Shop (Night)
- (NSString *)closeAt:(int)hour with:(id)who;
@end
"""
    found = symbols_of(Path("a.m"), text)
    assert {"name", "Closed", "closeAt"} <= set(
        names_of(found, {"property", "type", "method"})
    )
    assert names_of(found, {"class", "extension"})["Shop"] == 2


def test_a_makefile_is_read_behind_a_value_with_parentheses() -> None:
    text = b"SHOP_LICENSE = LGPL-2.1+ (library), GPL-2.0+ (server)\nexport SHOP_SITE ?= here\nopen: shop\n\tOPEN=1 run\n"
    symbols = symbols_of(Path("Makefile"), text)
    assert {symbols.name(row) for row in range(len(symbols.rows))} == {
        "SHOP_LICENSE",
        "SHOP_SITE",
        "open",
    }
