"""The symbol tables against a dictionary, with any names."""

import random
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import fuzz, process

from flashgrep.base.checkpoint import Abandoned, ending
from flashgrep.index import schema
from flashgrep.parts.symbols import symbol_table as symbols
from flashgrep.parts.symbols.symbol_search import COMPARED, FUZZY_CUTOFF, near_names
from flashgrep.parts.symbols.symbol_table import StoredSymbols

NAMES = st.text(
    st.characters(exclude_categories=["Cs"], max_codepoint=0xDFFF),
    min_size=1,
    max_size=12,
)


def connected() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in schema._TABLES.strip().rstrip(";").split(";\n"):
        connection.execute(statement)
    schema.create_tables(connection, schema.SYMBOL_TABLES)
    return connection


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = connected()
    yield made
    made.close()


def folded(name: str) -> str:
    return "".join(
        character.lower() if character.isascii() else character for character in name
    )


@given(st.lists(st.sets(NAMES, max_size=5), max_size=5), NAMES)
@settings(max_examples=60, deadline=None)
def test_names_are_found_whole_and_by_their_beginning(
    texts: list[set[str]], other: str
) -> None:
    connection = connected()
    rows = [
        StoredSymbols(text_id, b"x", [name.encode() for name in names])
        for text_id, names in enumerate(texts, 1)
    ]
    symbols.put(connection, rows)
    for name in {other, *(name for names in texts for name in names)}:
        truth = [
            text_id
            for text_id, names in enumerate(texts, 1)
            if folded(name) in {folded(one) for one in names}
        ]
        assert symbols.defining(connection, name) == truth
        begins = [
            text_id
            for text_id, names in enumerate(texts, 1)
            if any(folded(one).startswith(folded(name)) for one in names)
        ]
        assert symbols.defining(connection, name, prefix=True) == begins
        for among in (
            range(1, len(texts) + 1),
            range(1, len(texts)),
        ):  # the last text is another project's
            own = [texts[text_id - 1] for text_id in among]
            begin = {
                folded(one)
                for names in own
                for one in names
                if folded(one).startswith(folded(name))
            }
            found = symbols.defined_names(connection, among, name, 1000)
            assert (set(found), len(found)) == (begin, len(begin))
    connection.close()


def test_names_are_read_and_compared_in_parts_with_checkpoints_between_them(
    connection: sqlite3.Connection,
) -> None:
    chance = random.Random(3)
    names = [
        "n" + "".join(chance.choices("abc", k=chance.randint(1, 9)))
        for _ in range(2 * COMPARED)
    ]
    whole = process.extract(
        "nabcabc", names, scorer=fuzz.ratio, limit=50, score_cutoff=FUZZY_CUTOFF
    )
    assert near_names("nabcabc", names, 50) == [
        (name, score) for name, score, _ in whole
    ]
    symbols.put(connection, [StoredSymbols(1, b"x", [name.encode() for name in names])])
    with ending(lambda: True), pytest.raises(Abandoned):  # by a checkpoint
        near_names("nabcabc", names, 50)
    with ending(lambda: True), pytest.raises(Abandoned):
        symbols.defined_names(connection, {1}, "n", 1000)


def read(connection: sqlite3.Connection, text_id: int) -> bytes | None:
    return symbols.read_row(symbols.packed_of(connection, [text_id]).get(text_id))


def test_a_text_is_unparsed_until_it_has_a_row(connection: sqlite3.Connection) -> None:
    for text_id in (1, 2, 3):
        connection.execute(
            "INSERT INTO text (id, hash, size, lines) VALUES (?, ?, 1, 1)",
            [text_id, bytes([text_id])],
        )
    for name, text_id in ((b"a", 1), (b"b", 2), (b"c", 2)):
        connection.execute(
            "INSERT INTO path VALUES (1, ?, ?, '', 0, 0, 0, 0, 0)", [name, text_id]
        )
    assert symbols.choose_to_parse(connection, 1, 10) == [
        (1, b"\1", b"a"),
        (2, b"\2", b"b"),
    ]
    symbols.put(connection, [StoredSymbols(1, b"packed", [b"f"])])
    symbols.put_without_symbols(connection, 2, "too_large")
    assert symbols.count_to_parse(connection, 1) == (0, 0)
    assert read(connection, 1) == b"packed"
    with pytest.raises(symbols.Declined, match="too_large"):
        read(connection, 2)
    assert read(connection, 3) is None


def test_rows_of_vanished_texts_are_dropped(connection: sqlite3.Connection) -> None:
    connection.execute(
        "INSERT INTO text (id, hash, size, lines) VALUES (1, x'01', 1, 1)"
    )
    symbols.put(
        connection, [StoredSymbols(1, b"x", [b"a"]), StoredSymbols(2, b"y", [b"b"])]
    )
    symbols.drop_dead(connection)
    assert read(connection, 2) is None
    assert read(connection, 1) == b"x"
