"""Candidates of the index: old versions of texts, filters and rows of nothing must not hide the rest."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashgrep.index.table import FileRow, FileTable
from flashgrep.index.writer import Writer
from flashgrep.parts.meaning.embed import static
from flashgrep.parts.meaning.index import chunks as table
from flashgrep.parts.meaning.index.chunks import ChunkedText, StoredChunk
from flashgrep.parts.meaning.index.vectors import Floats, append, new_name, quantise
from flashgrep.parts.meaning.index.word_impacts import Family, Fields, find_words
from flashgrep.parts.meaning.search.chunk_index import (
    CandidateSearch,
    ChunkState,
    MeaningIndex,
    Texts,
    idf,
    weigh_words,
)
from flashgrep.parts.meaning.search.fusion import RULES, Candidate
from tests.search.meaning.test_meaning_store import ROOT, add_text
from tests.support.store import ROWS

MODEL = static.load(static.DATA)
FEW = replace(RULES, candidates=10)


class Shelf:
    """An index with texts of one chunk each, and files that have some of them."""

    def __init__(self, folder: Path, dims: int = MODEL.dims) -> None:
        self._folder = folder
        self.writer = Writer(folder / "index.db", ROWS)
        self.writer.add_project(ROOT)
        self.files: dict[str, int] = {}
        self._file = folder / new_name()
        with self.writer.transaction() as connection:
            self.set = table.add_vector_set(
                connection, MODEL.name, dims, self._file.name
            )

    def add(
        self, text_id: int, vector: Floats, words: str = "needle", *, file: bool = True
    ) -> None:
        """Add a text with its vector; without a file it is an old version of something."""
        name = f"f{text_id}"
        add_text(self.writer, text_id, *([name] if file else []))
        chunk = StoredChunk(0, 9, 1, 1, "function", f"name{text_id}", "")
        append(self._file, self.set.rows, quantise(vector[None, :]))
        with self.writer.transaction() as connection:
            text = ChunkedText(
                text_id, [chunk], [Fields(b"", b"", words.encode())], path=name.encode()
            )
            table.put(connection, [table.pack([text])])
            table.add_vectors(connection, self.set, [(text_id, 1)])
        self.set = self.set._replace(rows=self.set.rows + 1)
        if file:
            self.files[f"f{text_id}"] = text_id

    def table(self) -> FileTable:
        """Return the table of the files."""
        rows = [
            FileRow(path.encode(), text_id, "", 1, 0, 0, 0)
            for path, text_id in sorted(self.files.items())
        ]
        return FileTable.of(rows)

    def texts(self, known: ChunkState) -> Texts:
        """Return what is known of the texts of files."""
        return Texts.of(known, self.table())

    def known(self) -> tuple[MeaningIndex, ChunkState]:
        """Return what is known, by the embedded model."""
        index = MeaningIndex(self._folder, ROOT, "{}", {})
        return index, index.at(self.writer.connection)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.writer.close()


def unit(seed: int) -> Floats:
    """Return a random direction."""
    row = np.random.default_rng(seed).standard_normal(MODEL.dims).astype(np.float32)
    unit_row: Floats = row / np.linalg.norm(row)
    return unit_row


def candidates(
    shelf: Shelf, allowed: list[int] | None, words: list[str], question: Floats | None
) -> list[Candidate]:
    """Ask the shelf, for texts that count."""
    _, known = shelf.known()
    forms = dict.fromkeys(words, ())
    texts = shelf.texts(known)
    found = weigh_words(
        forms, find_words(shelf.writer.connection, words), known, texts, FEW
    )
    counting = None if allowed is None else np.array(allowed, np.int64)
    return CandidateSearch(known, FEW, counting, texts.places).candidates(
        found, question
    )


def texts_of(shelf: Shelf) -> Texts:
    index, known = shelf.known()
    return index.texts(known, shelf.table())


def test_old_versions_of_one_file_do_not_crowd_out_the_rest(shelf: Shelf) -> None:
    question = unit(0)
    for text_id in range(1, 101):
        shelf.add(text_id, question, "needle needle needle", file=False)
    shelf.add(200, unit(1), "a needle in a long text of other words")
    shelf.add(201, unit(2), "another needle in a long text of other words")
    texts = texts_of(shelf)
    assert (texts.there.tolist(), texts.some_dead) == ([200, 201], True)
    found = candidates(shelf, texts.there.tolist(), ["needle"], question)
    assert sorted(one.key for one in found) == [(200, 0), (201, 0)]
    assert all(one.lexical > 0 for one in found)
    assert {one.key[0]: one.similarity for one in found} == pytest.approx(
        {200: float(unit(1) @ question), 201: float(unit(2) @ question)}, abs=0.03
    )


def test_a_filter_finds_what_it_lets_in_however_far_behind_it_is(shelf: Shelf) -> None:
    for text_id in range(1, 201):
        shelf.add(text_id, unit(0), "needle needle needle")
    shelf.add(300, -unit(0), "a needle in a long text of other words and more of them")
    (one,) = candidates(shelf, [300], ["needle"], unit(0))
    assert (one.key, one.lexical > 0) == ((300, 0), True)
    assert one.similarity == pytest.approx(-1, abs=0.02)
    assert candidates(shelf, [], ["needle"], unit(0)) == []


def test_rows_at_the_end_that_belong_to_nothing_do_not_spoil_a_filtered_question(
    shelf: Shelf,
) -> None:
    """The last file was deleted, and its text dropped."""
    for text_id in (1, 2, 3):
        shelf.add(text_id, unit(text_id))
    with shelf.writer.transaction() as connection:
        connection.execute("DELETE FROM path WHERE text_id = 3")
        connection.execute("DELETE FROM text WHERE id = 3")
        table.drop_dead(connection)
    found = candidates(shelf, [1], [], unit(1))
    assert [one.key for one in found] == [(1, 0)]
    unfiltered = candidates(shelf, None, ["needle"], unit(3))
    assert sorted(one.key for one in unfiltered) == [(1, 0), (2, 0)]


def test_of_equal_chunks_those_of_the_first_files_are_candidates_whenever_they_were_stored(
    tmp_path: Path,
) -> None:
    found = []
    for seed in range(3):
        (tmp_path / str(seed)).mkdir()
        shelf = Shelf(tmp_path / str(seed))
        files = [f"f{at:02}" for at in range(2 * FEW.candidates)]
        random.Random(seed).shuffle(files)
        for text_id, name in enumerate(files, 1):
            shelf.add(text_id, unit(0), "needle", file=False)
            shelf.files[name] = text_id
        by_text = {text_id: name for name, text_id in shelf.files.items()}
        for question in (None, unit(0)):
            answer = candidates(shelf, None, ["needle"], question)
            found.append(
                [(by_text[one.key[0]], one.lexical, one.similarity) for one in answer]
            )
        shelf.writer.close()
    words, both = found[:2]
    assert (
        [name for name, *_ in words]
        == [f"f{at:02}" for at in range(FEW.candidates)]
        == [name for name, *_ in both]
    )
    assert found == [words, both] * 3


def test_chunks_of_a_text_chunked_again_make_no_word_less_rare_and_displace_none(
    shelf: Shelf,
) -> None:
    for text_id in range(1, 41):
        shelf.add(text_id, unit(0), "needle")
    shelf.add(50, unit(1), "needle in the hay")
    with shelf.writer.transaction() as connection:
        connection.execute(
            "UPDATE path SET path = CAST('moved' || text_id AS BLOB) WHERE text_id < 41"
        )
        table.forget_old_names(connection, range(1, 51))
    shelf.files = {"f50": 50}
    _, known = shelf.known()
    lists = find_words(shelf.writer.connection, ["needle"])
    family = weigh_words(
        {"needle": ()}, lists, known, shelf.texts(known), RULES
    ).families["needle"]
    assert family == {"needle": idf(1, 1)}
    assert [one.key for one in candidates(shelf, [50], ["needle"], unit(0))] == [
        (50, 0)
    ]


def test_rows_of_nobody_take_no_place_among_the_nearest(shelf: Shelf) -> None:
    """Their texts were dropped, so nothing is left that tells of them but that they are in no map."""
    for text_id in range(1, 41):
        shelf.add(text_id, unit(0), "hay")
    shelf.add(50, unit(1), "needle in the hay")
    with shelf.writer.transaction() as connection:
        connection.execute("DELETE FROM path WHERE text_id < 41")
        connection.execute("DELETE FROM text WHERE id < 41")
        table.drop_dead(connection)
    shelf.files = {"f50": 50}
    assert [one.key for one in candidates(shelf, None, [], unit(0))] == [(50, 0)]


def test_both_sides_are_known_of_every_candidate(shelf: Shelf) -> None:
    question = unit(0)
    for text_id in range(1, 31):
        shelf.add(text_id, unit(text_id), "needle" if text_id % 2 else "hay")
    found = candidates(shelf, None, ["needle"], question)
    assert len({one.key for one in found}) == len(found) >= FEW.candidates
    for one in found:
        assert one.similarity == pytest.approx(
            float(unit(one.key[0]) @ question), abs=0.03
        )
    words = candidates(shelf, None, ["needle"], None)
    assert len(words) == FEW.candidates
    assert {one.similarity for one in words} == {0.0}
    assert candidates(shelf, None, [], None) == []


def test_the_words_of_each_candidate_are_known_however_it_was_found(
    shelf: Shelf,
) -> None:
    question = unit(3)
    for text_id in range(10, 30):
        shelf.add(text_id, -question, "rare usual usual")
    shelf.add(1, question, "usual in a long text of so many other words")
    shelf.add(2, question, "hay")
    found = candidates(shelf, None, ["rare", "nowhere", "usual"], question)
    words = {one.key[0]: one.words for one in found}
    assert words[1] == 0b100, "found by its vector"
    assert words[2] == 0
    assert words[10] == 0b101


def test_what_is_not_cut_or_has_no_vectors_is_reported(shelf: Shelf) -> None:
    shelf.add(1, unit(1))
    add_text(shelf.writer, 2, "f2")
    add_text(shelf.writer, 3, "f3")
    add_text(shelf.writer, 4, "f4")
    shelf.files |= {"f2": 2, "f3": 3, "f4": 4}
    with shelf.writer.transaction() as connection:
        chunk = StoredChunk(0, 9, 1, 1, "function", "name", "")
        table.put(
            connection,
            [
                table.pack(
                    [
                        ChunkedText(3, [chunk], [Fields(b"", b"", b"hay")]),
                        ChunkedText(4, [], []),
                    ]
                )
            ],
        )
    texts = texts_of(shelf)
    assert (texts.there.tolist(), texts.some_dead) == ([1, 2, 3, 4], False)
    assert (texts.unchunked.tolist(), texts.unembedded.tolist()) == ([2], [3])


def test_what_is_known_is_as_new_as_the_index_and_as_the_files(shelf: Shelf) -> None:
    shelf.add(1, unit(1))
    index, known = shelf.known()
    connection = shelf.writer.connection
    assert index.at(connection) is known
    files = shelf.table()
    assert index.texts(known, files) is index.texts(known, files)
    shelf.add(2, unit(2))
    newer = index.at(connection)
    assert newer is not known
    assert newer.rows.text_id.tolist() == [1, 2]
    assert index.texts(newer, shelf.table()).there.tolist() == [1, 2]
    assert index.texts(newer, files).some_dead


def test_vectors_of_another_width_than_the_model_are_not_compared_with_it(
    tmp_path: Path,
) -> None:
    """The model was exchanged for one of the same name."""
    shelf = Shelf(tmp_path, MODEL.dims // 2)
    try:
        shelf.add(1, unit(1)[: MODEL.dims // 2])
        _, known = shelf.known()
        assert (known.vectors, known.embedder) == (None, None)
    finally:
        shelf.writer.close()


def test_after_a_failure_words_answer_until_the_index_changes(shelf: Shelf) -> None:
    shelf.add(1, unit(1))
    index, known = shelf.known()
    connection = shelf.writer.connection
    index.fail(known, "no answer")
    failed = index.at(connection)
    assert (failed.vectors, failed.embedder, failed.problem, failed.damaged) == (
        None,
        None,
        "no answer",
        False,
    )
    index.fail(known, "of a state that is gone")
    assert index.at(connection) is failed
    shelf.add(2, unit(2))
    assert index.at(connection).problem == ""
    assert index.at(connection).vectors is not None


def test_rare_words_are_asked_for_first_and_common_ones_as_far_as_there_is_room(
    shelf: Shelf,
) -> None:
    for text_id in range(1, 31):
        words = [
            "common",
            *(["usual"] if text_id <= 10 else []),
            *(["rare"] if text_id == 1 else []),
        ]
        shelf.add(text_id, unit(text_id), " ".join(words))
    _, known = shelf.known()
    asked = {
        "common": [],
        "usual": [],
        "rare": ["common", "usual"],
        "nowhere": ["rarer"],
    }
    lists = find_words(
        shelf.writer.connection, ["common", "usual", "rare", "nowhere", "rarer"]
    )

    def used(room: int) -> list[str]:
        return list(
            weigh_words(
                asked,
                lists,
                known,
                shelf.texts(known),
                replace(RULES, common_words=room),
            ).used
        )

    assert used(100) == ["rare", "usual", "common"]
    assert used(40) == ["rare", "usual"]
    assert used(5) == ["rare"]
    assert used(0) == ["rare"]
    families = weigh_words(asked, lists, known, shelf.texts(known), RULES).families
    weights = {word: family[word] for word, family in families.items()}
    assert (
        weights["nowhere"] > weights["rare"] > weights["usual"] > weights["common"] >= 0
    )


def test_forms_count_half_of_a_word_as_rare_as_they_are_together_and_common_ones_nothing(
    shelf: Shelf,
) -> None:
    for text_id in range(1, 31):
        words = [
            "hide",
            *(["hides"] if text_id <= 3 else []),
            *(["hiding"] if text_id == 1 else []),
        ]
        shelf.add(text_id, unit(text_id), " ".join(words))
    _, known = shelf.known()
    forms = {"hiding": ("hide", "hides", "hided")}
    lists = find_words(shelf.writer.connection, ["hide", "hided", "hides", "hiding"])

    def weighed(room: int) -> tuple[Family, set[str]]:
        rules = replace(RULES, common_forms=room)
        families, used = weigh_words(forms, lists, known, shelf.texts(known), rules)
        return families["hiding"], set(used)

    family, used = weighed(33)
    assert used == {"hiding", "hides", "hide"}
    assert family == {"hiding": idf(30, 1)} | dict.fromkeys(
        forms["hiding"], RULES.form * idf(30, 34)
    )
    assert weighed(32) == (family, {"hiding", "hides"})
    assert weighed(2) == (family, {"hiding"})
