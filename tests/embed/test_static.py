"""The embedded default against a slow truth: its words, its vectors, its file, its confidence."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.interface import Scale
from flashgrep.parts.meaning.embed.static import (
    DATA,
    MAX_CHARS,
    REMEMBERED,
    StaticEmbedder,
    Vocabulary,
    load,
)
from tests.embed.models import DIMS, WORDS, write_model

LETTERS = "aAbgGtTrReEdDconfigHTTPv2_ 4.-é\n"
CODE = st.lists(
    st.sampled_from(
        [
            "getHTTPResponse_v2",
            "read",
            "reader",
            "parsing",
            "ConfigFile",
            "data_base42",
            "XUnknown",
            "qq",
            "42",
            "é",
            "()",
        ]
    ),
    max_size=30,
).map(" ".join)
TEXTS = st.one_of(CODE, st.text(alphabet=LETTERS, max_size=60))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> StaticEmbedder:
    return load(write_model(tmp_path_factory.mktemp("model") / "static.npz"))


def slow_words(text: str) -> list[str]:
    """Cut ``text`` letter by letter, without any pattern or memory."""
    found: list[str] = []
    for run in re.split(r"[^A-Za-z0-9_]+", text):
        at = 0
        while at < len(run):
            end = word_end(run, at)
            found.append(run[at:end].lower())
            at = end
    return [word for word in found if word != "_"]


def word_end(run: str, at: int) -> int:
    """Return where the word ends that begins at ``at``: a number, capitals, or letters with at most one capital."""
    same = (
        {True: str.isdigit, False: str.islower}[run[at].isdigit()]
        if not run[at].isupper()
        else str.isupper
    )
    end = at + 1
    while end < len(run) and same(run[at]) and same(run[end]):
        end += 1
    if not run[at].isupper() or end == len(run) or not run[end].islower():
        return end
    if end > at + 1:  # the last of several capitals begins the next word
        return end - 1
    while end < len(run) and run[end].islower():
        end += 1
    return end


def slow_pieces(word: str) -> list[str]:
    if word in WORDS:
        return [word]
    if len(word) < 2:
        return []
    lengths = [n for n in range(min(16, len(word)), 1, -1) if word[:n] in WORDS]
    return (
        [word[: lengths[0]], *slow_rest(word[lengths[0] :])]
        if lengths
        else slow_rest(word[1:])
    )


def slow_rest(rest: str) -> list[str]:
    """As ``slow_pieces``, but a single letter left over is no word."""
    if len(rest) < 2:
        return []
    lengths = [n for n in range(min(16, len(rest)), 1, -1) if rest[:n] in WORDS]
    return (
        [rest[: lengths[0]], *slow_rest(rest[lengths[0] :])]
        if lengths
        else slow_rest(rest[1:])
    )


def slow_vector(path: Path, text: str, weights: str) -> list[float]:
    with np.load(path) as data:
        table, scale = data["table"].tolist(), data[weights].tolist()
    total = [0.0] * DIMS
    for word, count in Counter(
        piece for whole in slow_words(text) for piece in slow_pieces(whole)
    ).items():
        number = WORDS.index(word)
        for column in range(DIMS):
            total[column] += (
                table[number][column] * scale[number] * (1 + math.log(count))
            )
    length = math.sqrt(sum(value * value for value in total))
    return [value / length for value in total] if length else total


def numbers(vocabulary: Vocabulary, text: str) -> list[int]:
    """Return the numbers of the words of a text, ascending, with repeats."""
    bags = vocabulary.bags([text])
    return list(
        Counter(
            dict(zip(bags.words.tolist(), bags.counts.tolist(), strict=True))
        ).elements()
    )


def test_an_identifier_is_cut_into_lower_case_words() -> None:
    known = Vocabulary(["get", "http", "response", "v", "2"])
    assert numbers(known, "getHTTPResponse_v2") == [0, 1, 2, 3, 4]


def test_an_unknown_word_is_cut_into_the_longest_known_pieces() -> None:
    known = Vocabulary(["con", "config", "ure", "u", "re", "x"])
    assert numbers(known, "configure") == [1, 2]
    assert numbers(known, "CONFIGX") == [1]  # a single letter is no piece


def test_words_longer_than_the_longest_piece_are_still_known_whole() -> None:
    known = Vocabulary(["a" * 20, "a" * 16, "aaaa"])
    assert numbers(known, "a" * 20) == [0]
    assert numbers(known, "a" * 20 + "_" + "a" * 21) == [0, 1, 2]


@pytest.mark.slow
def test_the_memory_of_words_is_bounded_and_changes_nothing() -> None:
    known = Vocabulary(WORDS)
    for start in range(0, REMEMBERED + 10, 1000):
        letters = (
            chr(97 + number % 26) + chr(97 + number // 26 % 26) + "x" * (number // 676)
            for number in range(1000)
        )
        known.bags([" ".join(f"{word}{'q' * (start // 1000)}" for word in letters)])
    assert len(known) <= REMEMBERED
    known.bags(["read" * 100])
    assert b"read" * 100 not in known
    assert numbers(known, "getFile") == sorted(
        [WORDS.index("get"), WORDS.index("file")]
    )


@given(st.lists(TEXTS, max_size=8))
def test_bags_count_the_words_of_each_text_as_a_slow_reading_does(
    texts: list[str],
) -> None:
    bags = Vocabulary(WORDS).bags(texts)
    for number, text in enumerate(texts):
        part = slice(bags.bounds[number], bags.bounds[number + 1])
        expected = Counter(
            WORDS.index(piece)
            for word in slow_words(text)
            for piece in slow_pieces(word)
        )
        assert (
            dict(
                zip(bags.words[part].tolist(), bags.counts[part].tolist(), strict=True)
            )
            == expected
        )


@given(st.lists(TEXTS, max_size=12))
def test_a_batch_gives_the_vectors_of_its_texts_one_by_one(
    model: StaticEmbedder, texts: list[str]
) -> None:
    together = model.embed_code(texts)
    assert together.shape == (len(texts), DIMS)
    assert together.dtype == np.float32
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, model.embed_code([text])[0])


def test_batches_beyond_a_slice_are_whole(model: StaticEmbedder) -> None:
    texts = [f"read file {'user ' * (number % 7)}" for number in range(600)]
    together = model.embed_queries(texts)
    assert all(
        np.array_equal(together[n], model.embed_queries([texts[n]])[0])
        for n in (0, 255, 256, 511, 512, 599)
    )


@pytest.mark.slow
@given(TEXTS)
def test_vectors_are_those_of_the_formula(
    model: StaticEmbedder, tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = next(tmp_path_factory.getbasetemp().glob("model*/static.npz"))
    assert model.embed_code([text])[0] == pytest.approx(
        slow_vector(path, text, "scale"), abs=1e-5
    )
    assert model.embed_queries([text])[0] == pytest.approx(
        slow_vector(path, text, "qscale"), abs=1e-5
    )


def test_rows_have_unit_length_or_are_zero_when_nothing_is_known(
    model: StaticEmbedder,
) -> None:
    rows = model.embed_code(["read the file", "", "ééé 日本語", "q", "getHTTPResponse"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 0, 0, 1], abs=1e-6)


def test_what_lies_beyond_the_longest_text_is_not_looked_at(
    model: StaticEmbedder,
) -> None:
    long = "read " * (MAX_CHARS // 5 + 1)
    assert np.array_equal(
        model.embed_code([long[:MAX_CHARS] + " file user"]),
        model.embed_code([long[:MAX_CHARS]]),
    )


def test_a_model_is_read_once_a_process(tmp_path: Path) -> None:
    path = write_model(tmp_path / "static.npz")
    assert load(path) is load(path)


def test_tables_that_make_other_vectors_of_code_have_other_names(
    tmp_path: Path,
) -> None:
    weights = np.full(len(WORDS), 0.5, np.float16)
    names = [
        load(write_model(tmp_path / f"{number}.npz", **changed)).name
        for number, changed in enumerate([{}, {"scale": weights}, {"qscale": weights}])
    ]
    assert names[0] == names[2] != names[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"format": np.int64(2)},
        {"table": np.zeros((3, DIMS), np.int8)},
        {"table": np.zeros((len(WORDS), DIMS), np.float32)},
        {"qscale": None},
        {"scale": np.full(len(WORDS), np.nan, np.float16)},
        {"tokens": np.array([255, 254], np.uint8)},
        {"tokens": np.array([{"a": 1}], dtype=object)},
    ],
)
def test_a_file_that_is_no_such_model_is_refused_by_name(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = write_model(tmp_path / "static.npz", **changed)
    with pytest.raises(ProviderUnavailable, match=str(path)) as caught:
        load(path)
    assert caught.value.to_object()["code"] == -32000


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not really", b"\x93NUMPY"])
def test_damaged_bytes_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "static.npz").write_bytes(data)
    with pytest.raises(ProviderUnavailable, match=r"static\.npz"):
        load(tmp_path / "static.npz")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="missing"):
        load(tmp_path / "static.npz")


def test_confidence_has_its_documented_anchors(model: StaticEmbedder) -> None:
    assert [
        model.confidence(cosine) for cosine in (-0.4, 0.2, 0.4, 0.55, 1.0)
    ] == pytest.approx([0, 0.5, 0.7, 0.8, 1], abs=1e-6)
    assert model.confidence(-1) == 0
    assert model.confidence(1.0000001) == 1


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=50),
    st.lists(st.floats(-1.5, 1.5), min_size=2, max_size=20),
)
def test_confidence_never_falls_and_stays_within_bounds(
    pairs: list[float], cosines: list[float]
) -> None:
    scale = Scale.of(
        [(at / (len(pairs) - 1), cosine) for at, cosine in enumerate(pairs)]
    )
    found = [scale.confidence(cosine) for cosine in sorted(cosines)]
    assert found == sorted(found)
    assert all(0 <= level <= 1 for level in found)
    assert scale.confidence(1) == 1


def test_the_shipped_model_is_small_and_knows_what_belongs_together() -> None:
    assert DATA.stat().st_size <= 12_000_000
    model = load(DATA)
    questions = [
        "parse the http response",
        "write a file to disk",
        "compute the checksum",
    ]
    texts = [
        "def parse_response(raw: bytes) -> HttpResponse: ...",
        "with open(path, 'w') as file: file.write(text)",
        "static uint32_t crc32_checksum(const void *data) { }",
    ]
    found = model.embed_queries(questions) @ model.embed_code(texts).T
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
    assert all(model.confidence(cosine) > 0.5 for cosine in found.diagonal())
    assert list(model.scale.cosines) == sorted(model.scale.cosines)
