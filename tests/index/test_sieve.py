"""Which texts have an identifier, by the words of their chunks, against reading them; and none is hidden by damage."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flashgrep.base.damage import Damaged
from flashgrep.index.writer import Writer
from flashgrep.parts.meaning.chunking import HEAD, chunk_text
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index import sieve
from flashgrep.parts.meaning.index.sieve import (
    apply_filters,
    drop_wordless,
    make_filter,
)
from flashgrep.parts.meaning.index.word_impacts import names_of
from tests.support.store import ROWS

PIECES = [
    "set_config", "gpio_set_config", "set_config2", "SET_CONFIG", "Set_Config", "é",
    "\u017f", "-", ".", "'", "$", " ", "\n",
    "\t", "\0", "(", "漢", "x" * 70, " " * 1_600, "ab" * 20, "{}", "?", "\u00a0", "9", "z9",
]  # fmt: skip
"""What may stand before and behind a name; with enough of them a line is cut inside."""
TEXTS = st.lists(
    st.builds("".join, st.lists(st.sampled_from(PIECES), max_size=60)),
    min_size=1,
    max_size=6,
)
ASKED = [
    "set_config",
    "SET_CONFIG",
    "gpio_set_config",
    "z9",
    "set_config-z9",
    "ab",
    "é",
    "éset_config",
    "x" * 70,
    "9",
]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "index.db", ROWS)
    yield writer
    writer.close()


def put(writer: Writer, *texts: bytes, path: bytes = b"a.c") -> None:
    """Store the chunks of texts, numbered from 1, as the indexer does."""
    with writer.transaction() as connection:
        table.drop_all(connection)
        for at, text in enumerate(texts, 1):
            cut = chunk_text(at, path, text, None)
            words = None if cut.is_whole else make_filter(at, text)
            table.put(connection, [table.pack([cut._replace(words=words)])])


def kept(writer: Writer, asked: str, count: int) -> set[int]:
    names = names_of(asked.encode())
    left = apply_filters(writer.connection, np.arange(1, count + 1), names)
    return {*drop_wordless(writer.connection, left, names).tolist()}


@pytest.mark.slow
@given(TEXTS, st.sampled_from(ASKED), st.sampled_from([3, 40, 1 << 18]))
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(["x" * 1_490 + " " + "set_config" * 200], "set_config", 1 << 18)
@example([" " * 990 + "set_config " * 400], "set_config", 1 << 18)
@example(
    [" " * 9 + "y" * 1_600 + " " * 1_600 + "x" * 70 + " set_config"], "set_config", 3
)
def test_no_text_with_the_word_is_dropped(
    writer: Writer, texts: list[str], asked: str, piece: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "_PIECE", piece)
        put(writer, *(text.encode() for text in texts))
    whole = re.compile(
        rf"(?<![A-Za-z0-9_]){re.escape(asked)}(?![A-Za-z0-9_])",
        re.IGNORECASE | re.ASCII,
    )
    having = {at for at, text in enumerate(texts, 1) if whole.search(text)}
    assert having <= kept(writer, asked, len(texts))


def test_only_texts_with_the_whole_word_are_kept(writer: Writer) -> None:
    others = [
        b"int gpio_set_config;\n",
        b"set_config_2();\n",
        b"",
        b"unset_config, set_configs\n" * 40,
    ]
    put(writer, *others, b"return set_config(1);\n", b"SET_CONFIG", b"{.set_config}\n")
    assert kept(writer, "set_config", 7) == {5, 6, 7}
    assert kept(writer, "set_config-unset_config", 7) == set()
    assert kept(writer, "nowhere_at_all", 7) == set()


def test_of_what_is_not_chunked_to_its_end_or_cut_in_a_word_a_filter_tells(
    writer: Writer,
) -> None:
    table_of_numbers, long_word = (
        b"0x1234, 0x5678,\n" * (HEAD + 1),
        b"a" * 20_000 + b"\n" * 100,
    )
    put(
        writer,
        table_of_numbers,
        long_word,
        b"plain text\n",
        table_of_numbers + b"set_config, Table_End\n",
    )
    assert kept(writer, "set_config", 5) == {4, 5}  # the fifth is not chunked yet
    assert kept(writer, "table_end", 5) == {4, 5}
    assert kept(writer, "plain", 5) == {3, 5}


def test_what_has_too_many_identifiers_for_a_filter_may_have_any(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sieve, "MOST_FILTERED", 99)
    few, many = (
        b"0x1234, 0x5678,\n" * HEAD + b"".join(b"a%d " % at for at in range(size))
        for size in (99, 100)
    )
    put(writer, few, many)
    assert kept(writer, "set_config", 2) == {2}


@pytest.mark.slow
def test_a_filter_lets_one_text_in_fifty_pass_at_most(writer: Writer) -> None:
    put(
        writer,
        b"0x1234, 0x5678,\n" * HEAD + b" ".join(b"name%d" % at for at in range(1_000)),
    )
    assert sum(bool(kept(writer, f"other{at}", 1)) for at in range(250)) < 6
    assert all(kept(writer, f"name{at}", 1) for at in range(0, 1_000, 7))


def test_a_filter_that_is_not_what_was_written_hides_no_text(writer: Writer) -> None:
    put(writer, b"0x1234, 0x5678,\n" * HEAD + b"set_config")
    writer.connection.execute("UPDATE chunked SET words = zeroblob(length(words))")
    with pytest.raises(Damaged):
        kept(writer, "set_config", 1)


def test_a_row_that_is_not_what_was_written_hides_no_text(writer: Writer) -> None:
    put(writer, b"set_config\n", b"other\n", b"more\n")
    writer.connection.execute("UPDATE chunked SET first = first + 1 WHERE text_id = 1")
    with pytest.raises(Damaged):
        kept(writer, "set_config", 3)
