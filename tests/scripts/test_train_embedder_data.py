"""The recipe's lists and arithmetic, and the file it made."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.embed.static import DATA, FORMAT, load
from scripts.train_embedder import packages
from scripts.train_embedder.archives import copyright_licence
from scripts.train_embedder.blend import blend
from scripts.train_embedder.clean import foreign_rows
from scripts.train_embedder.corpus import FIELDS, Corpus, Numbering
from scripts.train_embedder.export import MOST_BYTES, Model, calibrated
from scripts.train_embedder.measure import bm25, ndcg
from scripts.train_embedder.overlap import overlapping
from scripts.train_embedder.ragged import Ragged
from scripts.train_embedder.vocabulary import bags_of

ALLOWED = packages.read(packages.ALLOW)


def test_every_package_trained_on_has_a_version_and_a_permissive_licence() -> None:
    assert len(ALLOWED) > 500
    assert [
        each
        for each in ALLOWED
        if not each.version or not packages.permissive(each.licence)
    ] == []
    assert {each.kind for each in ALLOWED} == set(packages.KINDS)
    assert {each.use for each in ALLOWED} == {"train", "held"}


def test_nothing_that_is_evaluated_on_is_trained_on() -> None:
    assert packages.EVALUATED.exists()
    assert packages.clashes(ALLOWED, packages.kept_out()) == []


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND MIT", True),
        ("MPL-2.0 OR MIT", True),
        ("Apache Software License", True),
        ("GPL-3.0-only", False),
        ("LGPL-2.1", False),
        ("MIT AND MPL-2.0", False),
        ("Other/Proprietary License", False),
        ("", False),
    ],
)
def test_licences_are_judged_by_their_name(licence: str, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    assert packages.permissive(licence) is allowed


def test_the_main_stanza_of_a_copyright_file_decides() -> None:
    text = "Format: x\n\nFiles: *\nCopyright: a\nLicense: Expat\n\nFiles: debian/*\nLicense: GPL-2+\n"
    assert copyright_licence(text) == "Expat"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("golang-github-gorilla-mux-dev", "gorilla-mux"),
        ("librust-rayon-dev", "rayon"),
        ("libcommons-lang3-java", "commons-lang"),
        ("ruby-faraday", "faraday"),
        ("Scikit_Learn", "scikit-learn"),
    ],
)
def test_names_are_compared_across_registries(name: str, plain: str) -> None:
    assert packages.plain_name(name) == plain


@given(st.lists(st.lists(st.integers(0, 99))), st.data())
def test_ragged_rows_are_the_lists_they_were_made_of(
    rows: list[list[int]], data: st.DataObject
) -> None:
    ragged = Ragged.of(rows)
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
    taken = ragged.take(np.array(wanted, np.int64))
    assert [len(rows[number]) for number in wanted] == taken.lengths.tolist()
    assert [
        value for number in wanted for value in rows[number]
    ] == taken.values.tolist()


def _corpus(numbering: Numbering, rows: list[tuple[str, str]]) -> Corpus:
    fields = {name: Ragged.of([] for _ in rows) for name in FIELDS}
    fields["question"] = Ragged.of(
        [numbering[word] for word in question.split()] for question, _ in rows
    )
    fields["code"] = Ragged.of(
        [numbering[word] for word in code.split()] for _, code in rows
    )
    return Corpus(list(numbering), fields, ["python"] * len(rows))


def test_copies_of_questions_and_of_code_are_found_and_others_kept() -> None:
    numbering = Numbering()
    letters = " ".join("abcdefghijklmnopqrstuvwxyz")
    numbers = " ".join(str(number) for number in range(40))
    seen = _corpus(numbering, [("count the rows of it", letters)])
    rows = [
        ("count the rows of it", numbers),
        ("other words to ask with", letters + " 1"),
        ("rows of it", numbers),
    ]
    training = _corpus(numbering, rows)
    words = list(numbering)
    assert foreign_rows(
        training._replace(words=words), seen._replace(words=words)
    ).tolist() == [True, True, False]


def test_a_class_overlaps_its_method_and_not_its_neighbour() -> None:
    numbering = Numbering()
    method, other = (
        " ".join(f"{side}{number}" for number in range(30)) for side in "mo"
    )
    corpus = _corpus(
        numbering,
        [("q", method), ("q", f"class head of it {method} {other}"), ("q", other)],
    )
    pairs = overlapping(corpus.fields["code"], len(numbering)).tolist()
    assert {frozenset(pair) for pair in pairs} == {frozenset({0, 1}), frozenset({1, 2})}


def test_bags_count_words_and_cut_those_unknown() -> None:
    corpus = _corpus(Numbering(), [("x", "get get getter")])
    bag = bags_of(corpus, ["get", "ter"])["code"]
    assert bag.words.values.tolist() == [0, 1]
    assert bag.damped.tolist() == pytest.approx([1 + math.log(3), 1.0])


def test_quantising_changes_a_similarity_by_less_than_a_hundredth(
    tmp_path: Path,
) -> None:
    draw = np.random.default_rng(1)
    words = [f"w{chr(97 + number)}" for number in range(20)]
    table = draw.standard_normal((20, 16)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    model = Model(
        words,
        table,
        np.full(20, 0.5, np.float32),
        draw.random(20).astype(np.float32) + 0.1,
    )
    model.save(tmp_path / "model.npz")
    embedder = calibrated(
        Model.read(tmp_path / "model.npz"), words, words[::-1], tmp_path / "static.npz"
    )
    assert (
        np.abs(
            embedder.embed_queries(words) @ embedder.embed_code(words).T
            - table @ table.T
        ).max()
        < 0.01
    )
    assert 0 < embedder.confidence(0.5) <= 1


def test_the_mean_of_a_table_and_its_turned_copy_is_the_table() -> None:
    draw = np.random.default_rng(2)
    table = draw.standard_normal((30, 8)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    turn = np.linalg.qr(draw.standard_normal((8, 8)))[0].astype(np.float32)
    words, weights = [f"w{number}" for number in range(30)], np.ones(30, np.float32)
    mean = blend(
        [
            Model(words, table, weights, weights),
            Model(words[:20], table[:20] @ turn, weights[:20], weights[:20]),
        ]
    )
    assert mean.table == pytest.approx(table, abs=1e-5)
    assert mean.code_weights == pytest.approx(weights, abs=1e-5)


def test_figures_are_those_worked_out_by_hand() -> None:
    scores = np.array([[3, 2, 1], [1, 2, 3], [0, 0, 0]], np.float32)
    assert ndcg(scores, [0, 1, 2]) == pytest.approx(
        (1 + 1 / math.log2(3) + 1 / math.log2(4)) / 3
    )
    found = bm25(["read a line", "write a line", "close"], ["read line"])[0].tolist()
    assert found[0] > found[1] > found[2] == 0


def test_the_shipped_file_has_the_layout_and_size_agreed() -> None:
    assert DATA.stat().st_size <= MOST_BYTES
    with np.load(DATA, allow_pickle=False) as data:
        words = data["tokens"].tobytes().decode().split("\n")
        assert data["table"].shape == (len(words), 256)
        assert (data["table"].dtype, data["scale"].dtype, data["qscale"].dtype) == (
            np.int8,
            np.float16,
            np.float16,
        )
        assert int(data["format"]) == FORMAT
        assert bool((np.diff(data["quantiles"], axis=0) >= 0).all())
    assert len(words) == len(set(words))
    assert set("abcdefghijklmnopqrstuvwxyz0123456789") <= set(words)


def test_the_shipped_model_finds_code_that_shares_no_word_with_the_question() -> None:
    embedder = load(DATA)
    code = [
        "def rm(path): os.unlink(path)",
        "def mul(a, b): return a * b",
        "sock.connect((addr, port))",
    ]
    for number, question in enumerate(
        ["delete a file", "product of numbers", "open a network link to a host"]
    ):
        likeness = (embedder.embed_queries([question]) @ embedder.embed_code(code).T)[0]
        assert int(likeness.argmax()) == number
