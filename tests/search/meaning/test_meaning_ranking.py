"""The order of chunks from two kinds of evidence, rule by rule; nothing but numbers and paths."""

import random
from dataclasses import replace
from typing import Final
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.index.word_impacts import words_of
from flashgrep.parts.meaning.search.chunk_index import idf
from flashgrep.parts.meaning.search.fusion import (
    FOLLOWING,
    LEADING,
    RULES,
    AnalyzedQuery,
    Candidate,
    FunctionOrder,
    Kind,
    Rules,
    analyze_query,
    apply_rules,
    classify_query,
    mix_scores,
    query_words,
    rank_files,
    semantic_share,
)
from flashgrep.parts.meaning.search.word_search import WordCover

PLAIN: Final = analyze_query("read the configuration", {"configuration": 1.0})
SIDES = st.lists(st.tuples(st.floats(0, 50), st.floats(-1, 1)), max_size=20)


def candidate(
    path: str,
    score: float = 1.0,
    *,
    place: int = 0,
    name: str = "",
    defines: tuple[str, ...] = (),
) -> Candidate:
    """Return a candidate with its mixed score."""
    return Candidate(
        (crc32(path.encode()) + 1, place),
        0.0,
        0.0,
        path.encode(),
        name,
        defines,
        score=score,
    )


def alone(**rules: float) -> Rules:
    """Return rules of which only these do anything."""
    covers = {"name_cover": 0.0, "file_cover": 0.0, "path_cover": 0.0}
    terms = {"names_type": 0.0, "named_whole": 0.0, "named_both": 0.0, "said": 0.0}
    idle = {"defined": 0.0, "coherence": 0.0, "whole": 0.0, "repeated": 1.0}
    idle |= covers | terms
    factors = dict.fromkeys(
        [
            "test",
            "generated",
            "vendored",
            "stub",
            "header",
            "re_export",
            "prose",
            "data",
        ],
        1.0,
    )
    return Rules(
        candidates=RULES.candidates,
        common_words=RULES.common_words,
        common_forms=RULES.common_forms,
        **(idle | factors | rules),
    )


def score_of(path: str, question: AnalyzedQuery, **rules: float) -> float:
    """Return what a chunk's score of 1 becomes."""
    (one,) = apply_rules([candidate(path)], question, alone(**rules))
    return one.score


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("where are passwords hashed", "words"),
        ("authentication", "words"),
        ("login flow", "words"),
        ("parse_config", "symbol"),
        ("getUserById", "symbol"),
        ("HTTPServer", "symbol"),
        ("Engine", "symbol"),
        ("engine.start", "symbol"),
        ("std::vector", "symbol"),
        ("start()", "symbol"),
        ("obj->field", "symbol"),
        ("Array#map", "symbol"),
        ("  parse_config  ", "symbol"),
        ("src/engine.py", "path"),
        ("engine.py", "path"),
        ("src/", "path"),
        ("Makefile target", "words"),
        ("what does parse_config do?", "words"),
        ("GET /users returns 404", "words"),
        ("", "words"),
        ("éclair", "words"),
        ("42", "words"),
    ],
)
def test_a_question_is_a_symbol_a_path_or_words(text: str, kind: Kind) -> None:
    assert classify_query(text) == kind


def test_each_kind_of_question_has_its_share_of_similarity() -> None:
    rules = replace(RULES, semantic_weight=0.1, symbol_weight=0.2, path_weight=0.3)
    assert [semantic_share(kind, rules) for kind in ("words", "symbol", "path")] == [
        0.1,
        0.2,
        0.3,
    ]
    assert RULES.symbol_weight < RULES.semantic_weight


def test_words_of_a_question_are_those_that_tell_something_once_each() -> None:
    assert query_words("where is the getUserName of a user") == [
        "getusername",
        "user",
        "name",
    ]
    assert query_words("how do you do this") == ["how", "do", "you", "this"]
    assert query_words("parse_config parse_config") == [
        "parse_config",
        "parse",
        "config",
    ]
    assert query_words("? ! x") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Engine.start", "start"),
        ("std::sort", "sort"),
        ("a->b_c", "b_c"),
        ("X#y()", "y"),
        ("Engine", "Engine"),
        ("start engine", ""),
    ],
)
def test_the_name_asked_for_is_the_last_part(text: str, name: str) -> None:
    assert analyze_query(text, {}).name == name


@given(SIDES, st.floats(0, 1))
def test_the_mix_is_each_side_by_its_maximum(
    sides: list[tuple[float, float]], weight: float
) -> None:
    candidates = [Candidate((at + 1, 0), *side) for at, side in enumerate(sides)]
    used = mix_scores(candidates, weight)
    most_lexical = max((lexical for lexical, _ in sides), default=0)
    most_similar = max((similar for _, similar in sides), default=0)
    assert used == (
        0 if most_similar <= 0 else 1 if most_lexical <= 0 < weight else weight
    )
    for one, (lexical, similar) in zip(candidates, sides, strict=True):
        dense = max(0, similar) / most_similar if most_similar > 0 else 0
        sparse = lexical / most_lexical if most_lexical > 0 else 0
        assert one.score == pytest.approx(used * dense + (1 - used) * sparse)
        assert 0 <= one.score <= 1 + 1e-9


def test_where_one_side_says_nothing_the_other_decides() -> None:
    silent = [Candidate((1, 0), 0.0, 0.2), Candidate((2, 0), 0.0, 0.4)]
    assert mix_scores(silent, 0.3) == 1
    assert [one.score for one in silent] == [0.5, 1]
    unlike = [Candidate((1, 0), 3.0, 0.0), Candidate((2, 0), 6.0, -0.4)]
    assert mix_scores(unlike, 0.3) == 0
    assert [one.score for one in unlike] == [0.5, 1]


def test_similarity_never_decides_when_words_alone_were_asked_for() -> None:
    candidates = [Candidate((1, 0), 0.0, 0.9)]
    assert mix_scores(candidates, 0) == 0
    assert candidates[0].score == 0


def test_a_chunk_that_defines_the_name_goes_before_one_that_mentions_it_more() -> None:
    found = [
        candidate("a.py", 1.0, name="caller"),
        candidate("b.py", 0.6, name="parse_it", defines=("parse_it",)),
    ]
    ranked = apply_rules(
        found, analyze_query("parse_it", {"parse_it": 2.0}), alone(defined=1.0)
    )
    assert [(one.path, one.score) for one in ranked] == [(b"b.py", 1.2), (b"a.py", 1.0)]
    found = [candidate("a.py", 1.0), candidate("b.py", 0.6, defines=("parse_it",))]
    ranked = apply_rules(
        found, analyze_query("how to parse_it", {"parse_it": 2.0}), alone(defined=1.0)
    )
    assert ranked[0].path == b"a.py"


def test_names_and_paths_are_rewarded_by_how_telling_the_words_are_that_they_have() -> (
    None
):
    question = analyze_query(
        "user session store", {"user": 1.0, "session": 3.0, "store": 4.0}
    )
    named = apply_rules(
        [candidate("x.py", name="SessionStore")], question, alone(name_cover=0.8)
    )
    assert named[0].score == pytest.approx(1 + 0.8 * 7 / 8)
    defines = apply_rules(
        [candidate("x.py", defines=("user_of", "session"))],
        question,
        alone(name_cover=0.8),
    )
    assert defines[0].score == pytest.approx(1 + 0.8 * 1 / 8)
    placed = apply_rules(
        [candidate("web/session/user.py")], question, alone(path_cover=0.4)
    )
    assert placed[0].score == pytest.approx(1 + 0.4 * 4 / 8)
    filed = apply_rules(
        [candidate("web/session/user.py")], question, alone(file_cover=0.4)
    )
    assert filed[0].score == pytest.approx(1 + 0.4 * 1 / 8)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("tests/test_a.py", "test"),
        ("pkg/a_test.go", "test"),
        ("examples/a.py", "test"),
        ("_examples/a.go", "test"),
        ("benches/a.rs", "test"),
        ("vendor/lib/a.py", "vendored"),
        ("deps/lua/a.c", "vendored"),
        ("node_modules/x/a.js", "vendored"),
        ("dist/app.js", "generated"),
        ("api_pb2.py", "generated"),
        ("typed/a.pyi", "stub"),
        ("lib/a.d.ts", "stub"),
        ("lib/a.d.mts", "stub"),
        ("pkg/__init__.py", "re_export"),
        ("src/index.ts", "re_export"),
        ("src/mod.rs", "re_export"),
        ("src/a.h", "header"),
        ("docs/a.rst", "prose"),
        ("README.md", "prose"),
        ("etc/VERSION", "data"),
        ("schema/a.json", "data"),
    ],
)
def test_files_that_are_seldom_meant_count_less(path: str, rule: str) -> None:
    assert score_of(path, PLAIN, **{rule: 0.25}) == 0.25
    others = dict.fromkeys(
        {"test", "generated", "vendored", "stub", "re_export"} - {rule}, 0.25
    )
    assert score_of(path, PLAIN, **others) == 1
    assert score_of(path, analyze_query(path, {}), **{rule: 0.25}) == 1, (
        "not when the path itself is asked for"
    )


def test_plain_sources_keep_their_score() -> None:
    for path in (
        "src/a.py",
        "latest/app.py",
        "src/indexes.ts",
        "src/model.rs",
        "pkg/init.py",
    ):
        assert (
            score_of(
                path,
                PLAIN,
                test=0.1,
                generated=0.1,
                vendored=0.1,
                stub=0.1,
                re_export=0.1,
            )
            == 1
        )


@pytest.mark.parametrize(
    "text",
    ["tests of the parser", "fixture for a database", "example usage", "Mock server"],
)
def test_tests_are_not_put_behind_when_they_are_asked_about(text: str) -> None:
    assert score_of("tests/test_a.py", analyze_query(text, {}), test=0.1) == 1
    assert score_of("vendor/a.py", analyze_query(text, {}), vendored=0.1) == 0.1
    assert (
        score_of(
            "tests/test_a.py", analyze_query("attest the contestants", {}), test=0.1
        )
        == 0.1
    )


@pytest.mark.parametrize(
    ("path", "name", "text", "factor"),
    [
        ("src/dir.rs", "tests.truncates", "truncate a path", 0.5),
        ("src/dir.rs", "truncate", "truncate a path", 1.0),
        ("src/dir.rs", "tests.truncates", "tests of truncation", 1.0),
        ("src/tests/dir.rs", "tests.truncates", "truncate a path", 1.0),
        ("src/dir.py", "tests.truncates", "truncate a path", 1.0),
    ],
)
def test_tests_beside_what_they_test_count_less(
    path: str, name: str, text: str, factor: float
) -> None:
    question = analyze_query(text, {})
    (file,) = rank_files([candidate(path, name=name)], question, alone(test=0.5))
    of_file = 0.5 if "tests/" in path else 1.0
    assert file.score == factor * of_file


def test_penalties_of_one_file_multiply() -> None:
    assert score_of("tests/pkg/__init__.pyi", PLAIN, test=0.5, stub=0.5) == 0.25


def test_a_file_with_several_good_chunks_is_rewarded_in_its_best() -> None:
    found = [
        candidate("one.py", 0.9),
        *(
            candidate("many.py", score, place=at)
            for at, score in enumerate((0.8, 0.7, 0.5, 0.4, 0.3))
        ),
    ]
    ranked = apply_rules(found, PLAIN, alone(coherence=0.4))
    assert [(one.path, one.key[1], round(one.score, 4)) for one in ranked[:2]] == [
        (b"many.py", 0, round(0.8 + 0.4 * (0.7 + 0.5 / 2 + 0.4 / 4), 4)),
        (b"one.py", 0, 0.9),
    ]
    assert [one.score for one in ranked[2:]] == [0.7, 0.5, 0.4, 0.3]


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("guide to testing", "docs/a.md", "prose"),
        ("where is the licence", "COPYING", "data"),
        ("docker setup", "compose.yml", "data"),
    ],
)
def test_prose_and_data_are_not_put_behind_when_they_are_asked_about(
    text: str, path: str, rule: str
) -> None:
    assert score_of(path, analyze_query(text, {}), **{rule: 0.1}) == 1
    assert score_of(path, PLAIN, **{rule: 0.1}) == 0.1


def test_a_file_that_is_about_the_question_as_a_whole_is_rewarded() -> None:
    found = [
        candidate("about.py", 0.8),
        candidate("other.py", 0.9),
        candidate("tests/about.py", 0.2),
    ]
    for one, whole in zip(found, (0.6, 0.3, 0.6), strict=True):
        one.whole = whole
    ranked = apply_rules(
        [replace(one) for one in found], PLAIN, alone(whole=0.5, test=0.5)
    )
    assert [(one.path, round(one.score, 4)) for one in ranked] == [
        (b"about.py", 0.8 + 0.5),
        (b"other.py", 0.9 + 0.25),
        (b"tests/about.py", 0.1 + 0.25),
    ]
    named = apply_rules(found, analyze_query("parse_it", {}), alone(whole=0.5))
    assert [one.score for one in named] == [0.9, 0.8, 0.2], (
        "not where a name is asked for"
    )


def test_further_chunks_of_a_file_make_room_for_other_files() -> None:
    found = [
        *(candidate("a.py", 1 - at / 100, place=at) for at in range(3)),
        candidate("b.py", 0.6),
        candidate("c.py", 0.3),
    ]
    ranked = apply_rules(found, PLAIN, alone(repeated=0.5))
    assert [(one.path.decode(), round(one.score, 3)) for one in ranked] == [
        ("a.py", 1.0),
        ("b.py", 0.6),
        ("a.py", 0.495),
        ("c.py", 0.3),
        ("a.py", 0.245),
    ]
    assert [round(one.strength, 3) for one in ranked] == [1.0, 0.6, 0.99, 0.3, 0.98], (
        "how good each is by itself"
    )


def drawn(order: FunctionOrder, places: int) -> list[str]:
    """Return the files of the first functions, each of which takes a place."""
    paths = list[str]()
    while order and len(paths) < places:
        paths.append(order.next().path.decode())
        order.advance(is_shown=True)
    return paths


def test_functions_are_mixed_by_their_file_and_themselves_in_the_order_of_their_file() -> (
    None
):
    found = [
        *(candidate("a.py", 1 - at / 100, place=at) for at in range(4)),
        candidate("b.py", 0.9),
        candidate("b.py", 0.5, place=1),
    ]
    files = rank_files(found, PLAIN, alone(coherence=0.25))
    assert [file.path for file in files] == [b"a.py", b"b.py"]
    assert [chunk.key[1] for chunk in files[0].chunks] == [0, 1, 2, 3]
    rules = alone(coherence=0.25, file_share=0.5, further=0.9)
    assert drawn(FunctionOrder(files, rules, 10), 6) == [
        *("a.py", "a.py", "b.py"),
        *("a.py", "a.py", "b.py"),
    ]
    repeated = FunctionOrder(files, rules, 10)
    for _ in range(3):
        repeated.advance(is_shown=False)
    assert repeated.next().path == b"a.py", "what took no place counts for nothing"


def test_what_leads_comes_first_in_files_functions_and_chunks() -> None:
    found = [candidate("a.py", 1 - at / 100, place=at) for at in range(6)]
    found += [candidate("b.py", 0.9), candidate("b.py", 0.1, place=1)]
    found += [candidate("c.md", 0.01)]
    for one in found:
        one.leads = one.key[1] == 5 or one.path == b"c.md" or one.score == 0.1
    files = rank_files(found, PLAIN, RULES)
    assert [file.path for file in files] == [b"a.py", b"b.py", b"c.md"]
    assert [file.chunks[0].leads for file in files] == [True] * 3
    assert min(file.score for file in files) >= LEADING
    rest = [chunk for file in files for chunk in file.chunks if not chunk.leads]
    assert len(rest) == 6
    assert max(chunk.strength for chunk in rest) == pytest.approx(FOLLOWING)
    order = FunctionOrder(files, RULES, 10)
    assert drawn(order, 4) == ["a.py", "b.py", "c.md", "a.py"]
    ranked = apply_rules(found, PLAIN, RULES)
    assert [one.leads for one in ranked] == [True] * 3 + [False] * 6


def test_one_file_never_fills_an_answer_that_others_can_share() -> None:
    found = [candidate("a.py", 1.0, place=at) for at in range(20)]
    found += [candidate(f"{at}.py", 0.01) for at in range(3)]
    files = rank_files(found, PLAIN, alone())
    shown = drawn(FunctionOrder(files, alone(further=1.0), 5), 10)
    assert shown == [*["a.py"] * 5, "0.py", "1.py", "2.py", "a.py", "a.py"]


def test_a_file_that_the_question_names_whole_goes_before_a_longer_name() -> None:
    for text in ("how the circuit breaker opens", "CircuitBreaker trips when"):
        question = analyze_query(text, {"circuit": 1.0, "breaker": 1.0})
        found = [
            candidate("circuit_breaker_metrics.py", 1.0),
            candidate("circuit-breakers.py", 0.95),
        ]
        ranked = apply_rules(found, question, alone(named_whole=0.15))
        assert [one.path for one in ranked] == [
            b"circuit-breakers.py",
            b"circuit_breaker_metrics.py",
        ]
        assert ranked[0].score == pytest.approx(0.95 + 0.15)
    symbol = analyze_query("grid.CircuitBreaker", {"circuitbreaker": 1.0})
    found = [candidate("CircuitBreaker+Reset.cs"), candidate("CircuitBreaker.cs", 0.9)]
    ranked = apply_rules(found, symbol, alone(named_whole=0.15))
    assert ranked[0].path == b"CircuitBreaker.cs"
    several = [candidate(f"{at}/breaker.py") for at in range(4)]
    ranked = apply_rules(
        several, analyze_query("the breaker", {}), alone(named_whole=0.2)
    )
    assert [one.score for one in ranked] == [pytest.approx(1 + 0.2 / 2)] * 4
    short = apply_rules(
        [candidate("io.py")], analyze_query("io errors", {}), alone(named_whole=0.2)
    )
    assert short[0].score == 1


def test_of_two_names_that_a_question_mentions_the_shorter_is_meant() -> None:
    question = analyze_query("how sessions are stored", {})
    found = [
        candidate("user_session_store_settings.py"),
        candidate("session_store.py"),
    ]
    ranked = apply_rules(found, question, alone(named_both=0.2))
    assert ranked[0].path == b"session_store.py"
    assert ranked[0].score == pytest.approx(1 + 0.2 * 1.0 * 1.0)
    assert ranked[1].score == pytest.approx(1 + 0.2 * 1.0 * 2 / 4)


def test_a_file_that_defines_a_named_type_is_lifted_by_its_share_of_the_names() -> None:
    question = analyze_query("how does RetryPolicy wrap an HttpClient", {})
    assert question.identifiers == ("RetryPolicy", "HttpClient")
    found = [candidate("a.py", 1.0), candidate("tests/b.py", 1.0)]
    shares = {b"a.py": 0.5, b"tests/b.py": 1.0}
    ranked = apply_rules(found, question, alone(names_type=0.5, test=0.4), shares)
    assert [one.score for one in ranked] == [
        pytest.approx(1 + 0.5 * 0.5),
        pytest.approx(0.4 + 0.4 * 0.5),
    ]


def test_a_file_is_lifted_by_the_share_of_the_words_that_its_chunks_have_together() -> (
    None
):
    question = analyze_query("rare or usual", {"rare": 3.0, "usual": 1.0})
    found = [candidate("a.py"), candidate("b.py"), candidate("b.py", 0.9, place=1)]
    for one, words in zip(found, (0b01, 0b01, 0b11), strict=True):
        one.words = words
    ranked = apply_rules(found, question, alone(said=0.2))
    assert [one.path for one in ranked] == [b"b.py", b"a.py", b"b.py"]
    assert [one.score for one in ranked] == pytest.approx([1.2, 1.15, 1.1])
    name = analyze_query("RareUsual", {"rare": 3.0, "usual": 1.0})
    (spelled,) = apply_rules([replace(found[0], score=1.0)], name, alone(said=0.2))
    assert spelled.score == 1, "names are found by their spelling"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Where is the Encoder of io_util", ("Encoder", "io_util")),
        ("how parseURL and XMLReader work", ("parseURL", "XMLReader")),
        ("Engine.start", ("start",)),
        ("Engine", ("Engine",)),
        ("src/Engine.py", ()),
        ("how do engines start", ()),
    ],
)
def test_words_that_look_like_names_in_code_are_identifiers(
    text: str, names: tuple[str, ...]
) -> None:
    assert analyze_query(text, {}).identifiers == names


@given(st.randoms(use_true_random=False))
def test_the_order_is_that_of_the_scores_whatever_order_they_came_in(
    rng: random.Random,
) -> None:
    paths = ["a.py", "b.py", "tests/c.py", "vendor/d.py", "e/__init__.py"]
    found = [
        candidate(rng.choice(paths), rng.choice([0.0, 0.5, 0.5, 1.0]), place=at)
        for at in range(12)
    ]
    shuffled = [replace(one) for one in rng.sample(found, len(found))]
    first, second = (
        apply_rules(found, PLAIN, RULES),
        apply_rules(shuffled, PLAIN, RULES),
    )
    assert [one.score for one in first] == sorted(
        (one.score for one in first), reverse=True
    )
    assert [(one.key, one.score) for one in first] == [
        (one.key, one.score) for one in second
    ]


def test_no_candidates_are_no_answer() -> None:
    assert apply_rules([], PLAIN, RULES) == []
    assert mix_scores([], 0.6) == 0


def test_the_share_of_words_that_a_text_has_goes_by_their_weight() -> None:
    assert (
        WordCover([{"rare": 3.0}, {"common": 1.0}]).share(b"a rare one, uncommon")
        == 0.75
    )
    assert WordCover([]).share(b"rare") == 0
    assert WordCover([{"rare": 3.0}]).share(b"") == 0
    forms = [{"hiding": 3.0, "hide": 1.5, "hides": 1.5}, {"common": 1.0}]
    assert (
        WordCover(forms).share(b"hide(common)")
        == WordCover(forms).share(b"hide, hides(common)")
        == 2.5 / 4
    )
    assert WordCover(forms).share(b"hiding, hide") == 0.75


IDENTIFIERS = st.lists(
    st.sampled_from(
        ["get", "Get", "HTTP", "x", "_", "2", "2to", "response", "v2", "é"]
    ),
    max_size=4,
)


@given(
    st.sets(st.sampled_from(["get", "http", "response", "gethttp", "get_2", "v", "2"])),
    st.lists(IDENTIFIERS),
)
def test_a_text_has_the_words_that_the_index_would_say_it_has(
    asked: set[str], names: list[list[str]]
) -> None:
    text = " ".join(map("".join, names)).encode()
    assert WordCover([{word: 1.0} for word in asked]).share(text) == len(
        asked & words_of(text)
    ) / max(1, len(asked))


@given(st.integers(1, 10_000), st.data())
def test_rarer_words_tell_more_and_none_less_than_nothing(
    everything: int, data: st.DataObject
) -> None:
    fewer = data.draw(st.integers(0, everything))
    more = data.draw(
        st.integers(fewer, everything + 100)
    )  # dead chunks are counted too
    assert idf(everything, fewer) >= idf(everything, more) >= 0
