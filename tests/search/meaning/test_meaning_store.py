"""The tables of chunks against a plain account of them, whatever is stored, forgotten and made anew in between."""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.index.postings import encode
from flashgrep.index.reader import Reader
from flashgrep.index.schema import take_numbers
from flashgrep.index.segments import MOST_SEGMENTS, Kind, SegmentRow, segments
from flashgrep.index.segments import put as put_segment
from flashgrep.index.table import FileRow
from flashgrep.index.writer import Writer, drop_old_rows
from flashgrep.indexer.job import name_versions
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index.chunks import (
    FEW,
    ChunkedText,
    StoredChunk,
    VectorSet,
)
from flashgrep.parts.meaning.index.word_impacts import (
    LEVELS,
    USUAL_WORDS,
    Fields,
    find_words,
    impacts_of,
    parts,
    score,
    scores_of,
)
from flashgrep.parts.meaning.part import PART as MEANING
from flashgrep.parts.symbols import symbol_table as symbols
from flashgrep.parts.symbols.part import PART as SYMBOLS
from tests.support.store import ROWS

ROOT, PROJECT = b"/tree", 1
SETTINGS = '{"provider": "static"}'


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "index.db", ROWS)
    assert writer.add_project(ROOT) == PROJECT
    yield writer
    writer.close()


def add_text(
    writer: Writer, text_id: int, *paths: str, size: int = 100, parsed: bool = True
) -> None:
    """Store a text's row, its files, and that it has been parsed."""
    with writer.transaction() as connection:
        connection.execute(
            "INSERT INTO text (id, hash, size, lines) VALUES (?, ?, ?, 1)",
            [text_id, b"%d" % text_id, size],
        )
        for path in paths:
            connection.execute(
                "INSERT INTO path VALUES (1, ?, ?, '', ?, 0, 0, 0, 0)",
                [path.encode(), text_id, size],
            )
        if parsed:
            symbols.put_without_symbols(connection, text_id, "none")


def text_of(text_id: int, count: int) -> ChunkedText:
    """Return a text of so many chunks, each with a word of its own and one they share."""
    chunks = [
        StoredChunk(
            at, at + 1, at + 1, at + 1, "function", f"f{at}", "class A:", [f"f{at}"]
        )
        for at in range(count)
    ]
    return ChunkedText(
        text_id,
        chunks,
        [
            Fields(b"file%d" % text_id, b"f%d" % at, b"text%d shared" % text_id)
            for at in range(count)
        ],
    )


def put(writer: Writer, *texts: ChunkedText) -> None:
    with writer.transaction() as connection:
        table.put(connection, [table.pack([text]) for text in texts])


def numbers_with(writer: Writer, word: str) -> list[int]:
    """Return the chunks that have a word, dead ones included, the best first."""
    found = find_words(writer.connection, [word])
    scores = score([[(lists, 1.0)] for lists in found.values()], 1 << 16).bm25
    numbers = np.flatnonzero(scores)
    return [
        int(number) for number in numbers[np.argsort(-scores[numbers], kind="stable")]
    ]


def embed(writer: Writer, of: VectorSet, *text_ids: tuple[int, int]) -> VectorSet:
    """Note vectors of texts, as the indexer does after it has appended them."""
    with writer.transaction() as connection:
        table.add_vectors(connection, of, text_ids)
    return next(one for one in table.vector_sets(writer.connection) if one.id == of.id)


def new_set(writer: Writer, name: str = "model", dims: int = 4) -> VectorSet:
    with writer.transaction() as connection:
        return table.add_vector_set(connection, name, dims, f"{name}.bin")


def test_rows_of_a_part_that_was_left_out_are_made_anew_when_it_is_back(
    writer: Writer,
) -> None:
    versions = {"symbols": "1", "chunks": "1", "vectors": "1"}
    drop_old_rows(writer.connection, versions, ROWS)
    add_text(writer, 1, "a.py")
    put(writer, text_of(1, 3))
    drop_old_rows(writer.connection, versions, ROWS)
    assert table.total(writer.connection) == 3
    # Meanwhile nobody tells the rows of moved files and texts that are gone.
    without = dict(name_versions(versions, SYMBOLS.stages))
    assert without == {"symbols": "1", "chunks": "", "vectors": ""}
    drop_old_rows(writer.connection, without, {"symbols": ROWS["symbols"]})
    drop_old_rows(writer.connection, versions, ROWS)
    assert table.total(writer.connection) == 0


@dataclass
class Account:
    """What the tables should hold."""

    files: dict[int, set[str]] = field(default_factory=dict)
    """Texts and their files; no file: dead, but still known."""
    parsed: set[int] = field(default_factory=set)
    chunked: dict[int, int] = field(default_factory=dict)
    embedded: dict[int, int] = field(default_factory=dict)
    """Texts and the row their vectors begin at."""
    rows: int = 0

    def unchunked(self) -> list[int]:
        return sorted(
            text_id
            for text_id in self.parsed
            if self.files.get(text_id) and text_id not in self.chunked
        )

    def unembedded(self) -> list[int]:
        return sorted(
            text_id
            for text_id, count in self.chunked.items()
            if count and self.files.get(text_id) and text_id not in self.embedded
        )


class Turns:
    """Makes changes at random, in the tables and in the account."""

    def __init__(self, writer: Writer, seed: int) -> None:
        self.writer = writer
        self.account = Account()
        self.set = new_set(writer)
        self._rng = random.Random(seed)
        self._next = 1

    def turn(self) -> None:
        acts: list[Callable[[], None]] = [
            self._add,
            self._add,
            self._chunk,
            self._embed,
            self._forget,
            self._drop,
        ]
        self._rng.choice(acts)()

    def _add(self) -> None:
        text_id, paths = (
            self._next,
            [f"p{self._next}-{at}" for at in range(self._rng.randrange(3))],
        )
        parsed = self._rng.random() < 0.8
        self._next += self._rng.randrange(1, 4)
        add_text(self.writer, text_id, *paths, parsed=parsed)
        self.account.files[text_id] = set(paths)
        if parsed:
            self.account.parsed.add(text_id)

    def _some(self, text_ids: list[int]) -> list[int]:
        return self._rng.sample(text_ids, self._rng.randrange(len(text_ids) + 1))

    def _chunk(self) -> None:
        chosen = {
            text_id: self._rng.randrange(5)
            for text_id in self._some(self.account.unchunked())
        }
        put(
            self.writer, *(text_of(text_id, count) for text_id, count in chosen.items())
        )
        self.account.chunked |= chosen

    def _embed(self) -> None:
        chosen = self._some(self.account.unembedded())
        counts = [(text_id, self.account.chunked[text_id]) for text_id in chosen]
        self.set = embed(self.writer, self.set, *counts)
        for text_id, count in counts:
            self.account.embedded[text_id] = self.account.rows
            self.account.rows += count

    def _forget(self) -> None:
        for text_id in self._some(list(self.account.files))[:2]:
            with self.writer.transaction() as connection:
                connection.execute("DELETE FROM path WHERE text_id = ?", [text_id])
            self.account.files[text_id] = set()

    def _drop(self) -> None:
        """Do what a merge does with texts that no file has."""
        dead = [text_id for text_id, files in self.account.files.items() if not files]
        with self.writer.transaction() as connection:
            connection.executemany(
                "DELETE FROM text WHERE id = ?", [[text_id] for text_id in dead]
            )
            symbols.drop_dead(connection)
            table.drop_dead(connection)
        for text_id in dead:
            del self.account.files[text_id]
            self.account.parsed.discard(text_id)
            self.account.chunked.pop(text_id, None)
            self.account.embedded.pop(text_id, None)

    def check(self) -> None:
        connection, account = self.writer.connection, self.account
        assert [
            row[0]
            for row in table.choose_to_chunk(connection, PROJECT, 10_000, 1 << 40, 0)
        ] == account.unchunked()
        assert table.count_to_chunk(connection, PROJECT) == (
            len(account.unchunked()),
            100 * len(account.unchunked()),
        )
        assert [
            row[0]
            for row in table.choose_to_embed(
                connection, PROJECT, self.set.id, 10_000, 1 << 40, 0
            )
        ] == account.unembedded()
        left = (len(account.unembedded()), 100 * len(account.unembedded()))
        assert table.count_to_embed(connection, PROJECT, self.set.id) == left
        assert table.total(connection) == sum(account.chunked.values())
        assert (self.set.rows, table.vector_sets(connection)) == (
            account.rows,
            [self.set],
        )
        self._check_words()
        self._check_rows()

    def _check_words(self) -> None:
        """Every chunk's number leads to its text and place, whether asked one by one or found by its words."""
        connection = self.writer.connection
        chunk_map = table.chunk_map(connection)
        text_ids, places = chunk_map.locate(
            np.array(numbers_with(self.writer, "shared"), np.int64)
        )
        living = {
            (text_id, place)
            for text_id, place in zip(text_ids.tolist(), places.tolist(), strict=True)
            if text_id
        }
        assert living == {
            (text_id, place)
            for text_id, count in self.account.chunked.items()
            for place in range(count)
        }
        assert len(living) == int((text_ids > 0).sum())
        for text_id, count in self.account.chunked.items():
            assert list(table.chunks_of_texts(connection, [text_id])[text_id]) == list(
                text_of(text_id, count).chunks
            )
            own = np.array(numbers_with(self.writer, f"text{text_id}"), np.int64)
            assert chunk_map.locate(own)[0].tolist() == [text_id] * count

    def _check_rows(self) -> None:
        row_map = table.row_map(self.writer.connection, self.set.id)
        truth = {
            first + at: (text_id, at)
            for text_id, first in self.account.embedded.items()
            for at in range(self.account.chunked[text_id])
        }
        text_ids, places = row_map.locate(np.arange(self.account.rows + 3))
        assert {
            row: (text_id, place)
            for row, (text_id, place) in enumerate(
                zip(text_ids.tolist(), places.tolist(), strict=True)
            )
            if text_id
        } == truth


@pytest.mark.parametrize("seed", range(8))
def test_the_tables_hold_what_was_put_in_whatever_was_forgotten(
    writer: Writer, seed: int
) -> None:
    turns = Turns(writer, seed)
    for _ in range(25):
        turns.turn()
        turns.check()


def test_a_text_is_chunked_once_and_its_numbers_are_never_given_again(
    writer: Writer,
) -> None:
    add_text(writer, 1, "a")
    put(writer, text_of(1, 3))
    put(writer, text_of(1, 2))  # by an indexer that was told before
    assert len(table.chunks_of_texts(writer.connection, [1])[1]) == 3
    with writer.transaction() as connection:
        connection.execute("DELETE FROM text")
        table.drop_dead(connection)
    add_text(writer, 2, "b")
    put(writer, text_of(2, 1))
    numbers = np.array(sorted(numbers_with(writer, "shared")))
    assert table.chunk_map(writer.connection).locate(numbers)[0].tolist() == [
        *[0] * 5,
        2,
    ]


def test_numbers_of_nothing_lead_nowhere(writer: Writer) -> None:
    numbers = np.array([0, 1, 2, 99, -5])
    assert table.chunk_map(writer.connection).locate(numbers)[0].tolist() == [0] * 5
    add_text(writer, 7, "a")
    put(writer, text_of(7, 2))
    assert table.chunk_map(writer.connection).locate(numbers)[0].tolist() == [
        0,
        7,
        7,
        0,
        0,
    ]


def test_what_is_read_at_a_time_is_bounded_in_texts_and_bytes_but_never_nothing(
    writer: Writer,
) -> None:
    for text_id, size in enumerate([50, 60, 500, 10, 10, 10], 1):
        add_text(writer, text_id, f"f{text_id}", f"g{text_id}", size=size)

    def first(limit: int, most: int, after: int) -> list[int]:
        return [
            row[0]
            for row in table.choose_to_chunk(
                writer.connection, PROJECT, limit, most, after
            )
        ]

    assert first(10, 110, 0) == [1, 2]
    assert first(1, 1 << 30, 0) == [1]
    assert first(10, 110, 2) == [3]
    assert first(10, 25, 3) == [4, 5]
    assert first(10, 1 << 30, 6) == []
    (row,) = table.choose_to_chunk(writer.connection, PROJECT, 1, 1, 0)
    assert (row[1], row[2]) == (b"1", b"f1")
    put(writer, *(text_of(text_id, 1) for text_id in range(1, 7)))
    of = new_set(writer)
    assert [
        row[0]
        for row in table.choose_to_embed(writer.connection, PROJECT, of.id, 10, 110, 0)
    ] == [1, 2]
    assert [
        row[0]
        for row in table.choose_to_embed(writer.connection, PROJECT, of.id, 10, 25, 3)
    ] == [4, 5]
    packed = table.choose_to_embed(writer.connection, PROJECT, of.id, 1, 1, 0)[0][3]
    assert list(table.unpack(packed)) == list(text_of(1, 1).chunks)


@given(
    st.lists(
        st.tuples(
            st.text('],[1"\\a', max_size=9), st.lists(st.text('],[1"', max_size=5))
        ),
        max_size=5,
    )
)
def test_chunks_are_split_apart_whatever_their_names_are(
    names: list[tuple[str, list[str]]],
) -> None:
    chunks = [
        StoredChunk(1, 2, 3, 4, "block", name, name, defines) for name, defines in names
    ]
    (text,) = table.pack([ChunkedText(1, chunks, [])]).texts
    split = table.split_chunks(text.packed, text.chunks)
    assert (
        [split[at] for at in range(text.chunks)]
        == list(split[:])
        == list(table.unpack(text.packed))
        == chunks
    )


def names_to_cut(
    writer: Writer, project: int = PROJECT
) -> dict[int, tuple[bytes, bytes]]:
    """Return the texts to be cut, each with the path it is read by and the one it is named by."""
    return {
        row[0]: (row[2], row[4])
        for row in table.choose_to_chunk(writer.connection, project, 99, 1 << 30, 0)
    }


def move(writer: Writer, text_id: int, *paths: str, project: int = PROJECT) -> None:
    """Give a text other files, as a batch of the indexer does."""
    file = FileRow(b"", text_id, "", 1, 0, 0, 0)
    old = writer.connection.execute(
        "SELECT path FROM path WHERE project = ? AND text_id = ?", [project, text_id]
    )
    gone = [row[0] for row in old if row[0].decode() not in paths]
    rows = [(file._replace(path=path.encode()), b"%d" % text_id) for path in paths]
    writer.put(project, writer.reserve(1), [], [], rows, gone)


def named(text_id: int, count: int, name: str) -> ChunkedText:
    return text_of(text_id, count)._replace(path=name.encode())


def test_a_text_is_chunked_again_once_its_first_path_is_another(writer: Writer) -> None:
    for text_id, count in ((1, 3), (2, 0)):
        add_text(writer, text_id, f"m{text_id}")
        put(writer, named(text_id, count, f"m{text_id}"))
    of = embed(writer, new_set(writer), (1, 3))
    begun = table.round_of(writer.connection)
    move(writer, 1, "m1", "z1")
    assert (names_to_cut(writer), table.round_of(writer.connection)) == ({}, begun)
    move(writer, 1)  # it is gone and comes back, as when a branch is switched
    move(writer, 1, "m1")
    assert (
        names_to_cut(writer),
        table.row_map(writer.connection, of.id).text_id.tolist(),
    ) == ({}, [1])

    move(writer, 1, "m1", "a1")
    move(writer, 2, "a2")
    assert names_to_cut(writer) == {1: (b"a1", b"a1"), 2: (b"a2", b"a2")}
    assert table.round_of(writer.connection) > begun
    assert table.chunks_of_texts(writer.connection, [1, 2]) == {}
    assert table.row_map(writer.connection, of.id).text_id.tolist() == []
    assert (
        table.count_orphans(writer.connection),
        table.total(writer.connection, PROJECT),
    ) == (3, 0)
    put(writer, named(1, 3, "a1"), named(2, 0, "a2"))
    assert names_to_cut(writer) == {}
    assert sorted(table.chunk_map(writer.connection).text_id.tolist()) == [-1, 1, 2]

    # Most chunks are nobody's now: a merge leaves them out, though no text is gone.
    deque(writer.merge(), maxlen=0)
    assert (table.count_orphans(writer.connection), numbers_with(writer, "shared")) == (
        0,
        [4, 5, 6],
    )


def test_projects_that_share_a_text_name_it_alike(writer: Writer) -> None:
    """Else each would have it cut anew as soon as the other had."""
    other = writer.add_project(b"/other")
    add_text(writer, 1, "m1")
    put(writer, named(1, 2, "m1"))
    move(writer, 1, "z1", project=other)
    assert (names_to_cut(writer), names_to_cut(writer, other)) == ({}, {})
    move(writer, 1, "a1", project=other)
    assert (names_to_cut(writer), names_to_cut(writer, other)) == (
        {1: (b"m1", b"a1")},
        {1: (b"a1", b"a1")},
    )
    put(writer, named(1, 2, "a1"))
    assert (names_to_cut(writer), names_to_cut(writer, other)) == ({}, {})
    writer.drop_projects([b"/other"])
    assert names_to_cut(writer) == {1: (b"m1", b"m1")}


def test_a_text_without_chunks_waits_for_no_vectors(writer: Writer) -> None:
    add_text(writer, 1, "empty")
    put(writer, text_of(1, 0))
    assert table.count_to_chunk(writer.connection, PROJECT) == (0, 0)
    assert table.count_to_embed(writer.connection, PROJECT, new_set(writer).id) == (
        0,
        0,
    )


def test_vectors_count_as_made_only_with_the_settings_that_were_noted(
    writer: Writer,
) -> None:
    add_text(writer, 1, "a")
    put(writer, text_of(1, 2))
    assert table.count_to_embed_with(writer.connection, PROJECT, SETTINGS) == 1
    of = new_set(writer)
    embed(writer, of, (1, 2))
    assert table.count_to_embed_with(writer.connection, PROJECT, SETTINGS) == 1
    with writer.transaction() as connection:
        table.note_settings(connection, PROJECT, SETTINGS, of.id)
    assert table.count_to_embed_with(writer.connection, PROJECT, SETTINGS) == 0
    assert table.count_to_embed_with(writer.connection, PROJECT, "{}") == 1
    add_text(writer, 2, "b")
    put(writer, text_of(2, 1))
    assert table.count_to_embed_with(writer.connection, PROJECT, SETTINGS) == 1


def test_sets_of_two_embedders_are_apart_and_one_is_forgotten_alone(
    writer: Writer,
) -> None:
    for text_id in (1, 2):
        add_text(writer, text_id, f"f{text_id}")
    put(writer, text_of(1, 2), text_of(2, 3))
    old, new = new_set(writer, "old"), new_set(writer, "new", 8)
    embed(writer, old, (1, 2), (2, 3))
    new = embed(writer, new, (2, 3))
    assert [
        row[0]
        for row in table.choose_to_embed(
            writer.connection, PROJECT, new.id, 9, 1 << 30, 0
        )
    ] == [1]
    with writer.transaction() as connection:
        table.drop_vector_set(connection, old.id)
    assert table.vector_sets(writer.connection) == [new]
    assert table.row_map(writer.connection, new.id).text_id.tolist() == [2]
    assert table.row_map(writer.connection, old.id).text_id.tolist() == []


def test_every_change_of_chunks_or_vectors_moves_the_round_on(writer: Writer) -> None:
    add_text(writer, 1, "a")

    @contextmanager
    def moving() -> Iterator[None]:
        before = table.round_of(writer.connection)
        yield
        assert table.round_of(writer.connection) > before

    with moving():
        put(writer, text_of(1, 1))
    of = new_set(writer)
    with moving():
        embed(writer, of, (1, 1))
    with moving(), writer.transaction() as connection:
        table.drop_vector_set(connection, of.id)
    with moving(), writer.transaction() as connection:
        table.drop_dead(connection)


def test_all_is_rebuilt_once_most_of_it_is_dead(writer: Writer) -> None:
    big = 1000
    for text_id in range(1, FEW // big + 3):
        add_text(writer, text_id, f"f{text_id}")
        put(writer, text_of(text_id, big))
    of = new_set(writer)
    embed(writer, of, (1, big))
    with writer.transaction() as connection:
        connection.execute("DELETE FROM text WHERE id > 3")
        table.drop_dead(connection)
    assert table.total(writer.connection) == 0
    assert [
        row[0]
        for row in table.choose_to_chunk(writer.connection, PROJECT, 99, 1 << 30, 0)
    ] == [1, 2, 3]
    assert table.vector_sets(writer.connection) == []
    assert numbers_with(writer, "shared") == []
    put(writer, text_of(3, 2))
    assert len(numbers_with(writer, "shared")) == 2


def test_a_reader_knows_which_stages_have_reached_every_text(
    writer: Writer, tmp_path: Path
) -> None:
    reader = Reader(tmp_path / "index.db", ROOT, (*SYMBOLS.stages, *MEANING.stages))
    try:
        add_text(writer, 1, "a", parsed=False)
        assert reader.done(SETTINGS) == set()
        with writer.transaction() as connection:
            symbols.put_without_symbols(connection, 1, "none")
        assert reader.done(SETTINGS) == {"symbols"}
        put(writer, text_of(1, 2))
        assert (reader.done(SETTINGS), reader.size().chunks) == (
            {"symbols", "chunks"},
            2,
        )
        of = embed(writer, new_set(writer), (1, 2))
        with writer.transaction() as connection:
            table.note_settings(connection, PROJECT, SETTINGS, of.id)
        assert reader.done(SETTINGS) == {"symbols", "chunks", "vectors"}
    finally:
        reader.close()


def test_words_are_counted_over_chunks_and_those_in_none_are_left_out(
    writer: Writer,
) -> None:
    add_text(writer, 1, "a")
    put(writer, text_of(1, 3))
    found = find_words(writer.connection, ["shared", "f0", "nowhere"])
    assert {word: lists.chunks for word, lists in found.items()} == {
        "shared": 3,
        "f0": 1,
    }


def test_names_weigh_more_than_what_is_mentioned(writer: Writer) -> None:
    add_text(writer, 1, "a")
    chunk = StoredChunk(0, 1, 1, 1, "function", "x", "")
    fields = [
        Fields(b"p", b"other", b"parse other things"),
        Fields(b"p", b"parse", b"other other things"),
        Fields(b"parse", b"q", b"other thing"),
    ]
    put(writer, ChunkedText(1, [chunk] * 3, fields))
    assert numbers_with(writer, "parse") == [2, 3, 1]


def test_merging_postings_of_words_changes_no_score_and_leaves_out_chunks_of_dropped_texts(
    writer: Writer,
) -> None:
    for text_id in range(1, 41):
        add_text(writer, text_id, f"f{text_id}")
        put(writer, text_of(text_id, text_id % 4))
    words = ["shared", "text3", "text39", "f0", "f2"]
    before = {word: numbers_with(writer, word) for word in words}
    deque(writer.merge(), maxlen=0)
    assert len(segments(writer.connection, Kind.WORDS)) == 1
    assert {word: numbers_with(writer, word) for word in words} == before
    for _ in range(
        MOST_SEGMENTS + 1
    ):  # few texts are left, in few segments: grams are merged, and dead texts dropped
        row = SegmentRow(
            take_numbers(writer.connection, "next_segment"), Kind.GRAMS, 1, 40, 0
        )
        with writer.transaction() as connection:
            put_segment(connection, row, encode(np.empty(0, np.uint64), row.id))
    with writer.transaction() as connection:
        connection.execute("DELETE FROM path WHERE text_id <= 35")
    deque(writer.merge(), maxlen=0)
    alive = table.chunk_map(writer.connection)
    assert sorted(alive.text_id.tolist()) == [36, 37, 38, 39, 40]
    assert len(numbers_with(writer, "shared")) == int(alive.size.sum())


def test_a_chunk_counts_the_form_that_says_most_in_one_of_many_segments(
    writer: Writer,
) -> None:
    draws, fields = random.Random(5), []
    chunk = StoredChunk(0, 1, 1, 1, "function", "x", "")
    for text_id in range(1, 31):  # each in a segment of its own
        add_text(writer, text_id, f"f{text_id}")
        said = [
            " ".join(
                draws.choices(
                    ["hide", "hides", "hiding", "page", "pages", "other"], k=9
                )
            )
            for _ in range(9)
        ]
        fields += [
            Fields(b"", name.split(" ")[0].encode(), name.encode()) for name in said
        ]
        put(writer, ChunkedText(text_id, [chunk] * 9, fields[-9:]))
    families = [
        {"hiding": 3.0, "hide": 1.5, "hides": 1.5},
        {"page": 0.7, "pages": 2.0},
        {"other": 1.0},
        {"none": 9.0},
    ]
    found = find_words(
        writer.connection, [word for family in families for word in family]
    )
    assert "none" not in found
    asked = [
        [(found[word], weight) for word, weight in family.items()]
        for family in families[:3]
    ]
    scores = score([*asked, []], 1 + len(fields))
    fresh = scores_of(impacts_of(fields), families, len(fields))
    assert scores.bm25[1:] == pytest.approx(fresh.bm25, abs=1e-5)
    chunks = np.arange(len(fields))
    assert scores.words_in(chunks + 1) == fresh.words_in(chunks)
    assert score(asked, 100).bm25.tolist() == scores.bm25[:100].tolist(), (
        "chunks stored later are left out"
    )


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            *[st.lists(st.sampled_from(["alpha", "getValue", "x1", "0x10", "Beta_2"]))]
            * 3
        ),
        max_size=8,
    )
)
def test_scores_are_those_of_bm25_but_for_the_steps_of_impact(
    chunks: list[tuple[list[str], ...]],
) -> None:
    fields = [
        Fields(*(" ".join(words).encode() for words in chunk)) for chunk in chunks
    ]
    scores = scores_of(
        impacts_of(fields), [{"value": 2.0}, {"alpha": 1.0}], len(fields)
    ).bm25
    for chunk, got in zip(chunks, scores.tolist(), strict=True):
        counted = [
            Counter({word: min(count, 3) for word, count in Counter(words).items()})
            for words in chunk
        ]
        spelled = [
            [
                part
                for word in counts.elements()
                if word != "0x10"
                for part in parts(word.encode())
            ]
            for counts in counted
        ]
        length = sum(map(len, spelled))
        truth = steps = 0.0
        for word, weight in ((b"value", 2.0), (b"alpha", 1.0)):
            often = sum(
                factor * words.count(word)
                for factor, words in zip((2, 3, 1), spelled, strict=True)
            )
            truth += (
                weight
                * often
                * 2.2
                / (often + 1.2 * (0.25 + 0.75 * length / USUAL_WORDS))
            )
            steps += weight * 2.2 / LEVELS / 2 if often else 0
        assert abs(got - truth) <= steps + 1e-5
