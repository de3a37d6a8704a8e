"""Ranking of specifications: by words, by meaning, and both better than either."""

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.config import Settings
from flashgrep.parts.meaning.embed import Embedder, open_embedder
from flashgrep.parts.specs.openspec import parse
from flashgrep.parts.specs.search import (
    SNIPPET,
    Rows,
    SpecMatch,
    SpecVectors,
    make_snippet,
    score_words,
    search,
    split_passages,
    split_words,
)
from flashgrep.parts.specs.spec_repository import ProjectSpec, SpecFile, find_spec_files
from tests.conftest import MakeProject, daemon_in, short_folder
from tests.scenarios.ways import ways

SAMPLES = Path(__file__).parent / "samples"
QUESTIONS = [
    ("how does the server close down when told to stop", "000", "Graceful Shutdown"),
    ("environment variables for the server name", "000", "Configuration"),
    ("look for code by its metadata", "000", "Payload Search Tool"),
    ("turn the server off by a setting", "000", "MCP Server Initialization"),
    ("automated checks of the handlers", "000", "Testing"),
    ("find exact words in source text", "000", "Full-Text Search Tool"),
    ("only files that changed are read again", "001", "index_codebase Tool"),
    ("follow changes on disk live", "001", "watch_codebase Tool"),
    ("who calls a function", "001", "code_research Tool"),
    ("how far is the indexing", "001", "Progress Reporting"),
    ("limit the number of hits", "001", "search_code Tool"),
    ("stdin and stdout transport", "001", "MCP Server Protocol"),
    (
        "business logic does not belong in the protocol layer",
        "003",
        "MCP Interface Layer",
    ),
    (
        "work with reduced functionality when nothing was indexed",
        "003",
        "Graceful Degradation",
    ),
    ("one example of a requirement in full", "003", "Get Scenario Tool"),
    (
        "how many scenarios does each requirement have",
        "003",
        "Get Spec Requirements Tool",
    ),
    ("the folder has no spec files", "003", "List Specs Tool"),
    ("read lines of a file", "004", "get_slice method"),
    ("where is a symbol used", "004", "get_symbol method"),
    ("how big is the index", "004", "stats method"),
    ("answers should be small", "004", "Minimal responses"),
    ("skill file cannot be loaded", "004", "Bootstrap error handling"),
    (
        "do not descend into excluded folders",
        "004",
        "Glob performance remains suitable for large repositories",
    ),
    ("which files are indexed", "004", "list_files method"),
]
VECTORS = SpecVectors()
STRANGE = [
    "chocolate cake recipe",
    "weather tomorrow in paris",
    "football world cup winner",
    "mortgage interest rate",
]


class Counting:
    """The embedder at hand, which remembers what it was asked to embed."""

    def __init__(self) -> None:
        self.inner = open_embedder(Settings(), {})
        self.name, self.dims, self.batch, self.max_chars = (
            "counting",
            self.inner.dims,
            8,
            1000,
        )
        self.asked: list[str] = []

    def embed_code(self, texts: Sequence[str]) -> Rows:
        self.asked += texts
        return self.inner.embed_code(texts)

    def embed_queries(self, texts: Sequence[str]) -> Rows:
        return self.inner.embed_queries(texts)

    def confidence(self, similarity: float) -> float:
        return self.inner.confidence(similarity)


def make_spec(name: str, text: str) -> ProjectSpec:
    return ProjectSpec(SpecFile(name, name.encode()), parse(text))


@pytest.fixture(scope="module")
def specs() -> list[ProjectSpec]:
    return [
        make_spec(file.stem, file.read_text(encoding="utf-8"))
        for file in sorted(SAMPLES.glob("0*.md"))
    ]


def ask(
    specs: list[ProjectSpec],
    query: str,
    embedder: Embedder | None,
    threshold: float = 0,
    limit: int = 100,
) -> list[SpecMatch]:
    return search(
        specs,
        query,
        embedder=embedder,
        vectors=VECTORS,
        limit=limit,
        threshold=threshold,
    )


def rank(found: list[SpecMatch], spec_id: str, name: str) -> int:
    names = [
        (one.passage.spec.id, one.requirement.name if one.requirement else "")
        for one in found
    ]
    return names.index((spec_id, name)) + 1


@pytest.mark.slow
def test_words_and_meaning_together_rank_better_than_words(
    specs: list[ProjectSpec],
) -> None:
    def reciprocal(embedder: Embedder | None) -> float:
        ranks = [
            rank(ask(specs, query, embedder), spec_id, name)
            for query, spec_id, name in QUESTIONS
        ]
        return float(np.mean([1 / one for one in ranks]))

    both, words = reciprocal(open_embedder(Settings(), {})), reciprocal(None)
    assert both > max(words, 0.65), (both, words)


def test_what_no_specification_is_about_is_below_the_threshold(
    specs: list[ProjectSpec],
) -> None:
    embedder = open_embedder(Settings(), {})
    assert [
        query for query in STRANGE if ask(specs, query, embedder, threshold=0.4)
    ] == []
    passing = [
        query for query, *_ in QUESTIONS if ask(specs, query, embedder, threshold=0.4)
    ]
    assert len(passing) >= len(QUESTIONS) * 0.9


@pytest.mark.slow
def test_a_passage_asked_for_in_its_own_words_comes_first(
    specs: list[ProjectSpec],
) -> None:
    embedder = open_embedder(Settings(), {})
    for spec in specs:
        for passage in split_passages(spec):
            (best, *_) = ask(specs, passage.text, embedder)
            assert best.passage.text == passage.text
            assert best.score > 0.8


def test_texts_are_embedded_once_and_forgotten_with_their_file() -> None:
    embedder, vectors = Counting(), SpecVectors()
    first, second = (
        make_spec("a", "# A\n## Purpose\none\n"),
        make_spec("b", "# B\n## Purpose\ntwo\n"),
    )

    def find(*specs: ProjectSpec) -> list[str]:
        embedder.asked.clear()
        search(specs, "one", embedder=embedder, vectors=vectors, limit=5, threshold=0)
        return embedder.asked

    assert find(first, second, make_spec("copy", "# A\n## Purpose\none\n")) == [
        "A\none",
        "B\ntwo",
    ]
    assert find(first, second) == []
    assert find(first, make_spec("b", "# B\n## Purpose\nthree\n")) == ["B\nthree"]
    assert find(second) == ["B\ntwo"]
    assert find() == []


def test_a_requirement_is_found_once_by_its_best_passage() -> None:
    text = (
        "# Doors\n## Purpose\nhouses\n## Requirements\n### Requirement: Locks\nDoors SHALL lock.\n"
        "#### Scenario: Key\n- **WHEN** a key turns\n- **THEN** it locks\n"
        "#### Scenario: Code\n- **WHEN** digits are typed\n- **THEN** it opens\n"
        "## REMOVED Requirements\n- `### Requirement: Bells`\n"
        "## RENAMED Requirements\n- FROM: `### Requirement: Gates`\n- TO: `### Requirement: Portals`\n"
    )
    specs = [make_spec("doors", text)]

    def best(query: str) -> tuple[str, str, str, int]:
        found = ask(specs, query, None)
        assert len(found) == 3
        top = found[0]
        assert top.requirement is not None
        return top.passage.kind, top.requirement.name, top.snippet, top.passage.line

    assert best("digits typed") == (
        "scenario",
        "Locks",
        "Locks: Code WHEN digits are typed THEN it opens",
        10,
    )
    assert split_words("files filed filing file") == ["fil"] * 4
    assert best("turning keys")[:2] == ("scenario", "Locks")
    assert best("houses") == ("purpose", "Locks", "Doors houses", 2)
    assert best("bell") == ("requirement", "Bells", "Bells", 14)
    assert best("gates") == ("requirement", "Portals", "Portals Gates", 16)


def test_a_purpose_without_requirements_is_found_by_itself() -> None:
    (found,) = ask([make_spec("plan", "# Plan\n## Purpose\nhouses\n")], "house", None)
    assert (found.requirement, found.snippet) == (None, "Plan houses")


def test_words_are_compared_whole_in_parts_and_without_endings() -> None:
    assert split_words("getHTTPResponse indexing Gebäude_2") == [
        "gethttprespons",
        "get",
        "http",
        "respons",
        "index",
        "gebäude_2",
    ]
    scores = score_words(
        Counter(split_words("index files")),
        [split_words("a file index"), ["index"], ["other"], []],
    )
    assert scores[0] > scores[1] > scores[2] == scores[3] == 0
    assert score_words(Counter(), [["index"]]) == [0]
    assert score_words(Counter(["x"]), []) == []


@given(
    st.lists(st.sampled_from("abcd"), min_size=1),
    st.lists(st.lists(st.sampled_from("abcdef"), max_size=9)),
)
def test_a_share_of_words_is_a_share(wanted: list[str], texts: list[list[str]]) -> None:
    scores = score_words(Counter(wanted), texts)
    for score, text in zip(scores, texts, strict=True):
        assert 0 <= score <= 1 + 1e-9
        assert (score > 0) == bool(set(wanted) & set(text))


def test_a_snippet_begins_where_the_question_is_answered() -> None:
    text = "\n".join(
        [
            *(f"line {at} says nothing at all of it" for at in range(30)),
            "here is the needle",
            "and more",
        ]
    )
    assert make_snippet(text, split_words("needle")) == "here is the needle and more"
    cut = make_snippet(text, split_words("nothing"))
    assert cut.startswith("line 0 ")
    assert cut.endswith(" …")
    assert len(cut) <= SNIPPET + 2


def test_files_are_specifications_by_their_name_and_folder() -> None:
    paths = [
        b"specs/a/spec.md",
        b"specs/b/myspec.md",
        b"specs/spec.md",
        b"other/spec.md",
        b"specs/caf\xe9/spec.md",
    ]
    found = [(one.id, one.path) for one in find_spec_files(paths, ["./specs/"])]
    assert found == [("a", paths[0]), ("caf\ufffd", paths[4]), ("specs", paths[2])]
    twice = find_spec_files(
        [b"x/one/specs/a/spec.md", b"specs/a/spec.md"],
        ["specs", "x/*/specs", "x/one/specs", "x/on?/specs"],
    )
    assert [one.id for one in twice] == ["a", "one/a"]
    same = find_spec_files(
        [b"specs/a/spec.md", b"b/a/spec.md", b"c/a/spec.md"], ["specs", "b", "c"]
    )
    assert [one.id for one in same] == ["a", "b/a", "c/a"]


@pytest.mark.slow
def test_without_its_provider_words_alone_decide_and_the_answer_says_so(
    project: MakeProject,
) -> None:
    folder, root = (
        short_folder(),
        project(
            {"specs/doors/spec.md": "# Doors\n## Purpose\nHouses are closed by them.\n"}
        ),
    )
    working = daemon_in(folder)
    broken = daemon_in(
        folder,
        FLASHGREP_EMBEDDING_PROVIDER="ollama",
        FLASHGREP_EMBEDDING_URL="http://127.0.0.1:9",
        FLASHGREP_EMBEDDING_ATTEMPTS="1",
    )
    try:
        working.start()
        assert working.run("index", str(root)).returncode == 0
        working.stop()
        broken.start()
        with ways(broken, root, ["unix"]) as (way,):
            found = way.result("search_specs", query="houses closed")
        assert [one["spec_id"] for one in found["results"]] == ["doors"]
        assert "words only" in found["coverage"]["detail"]
    finally:
        broken.stop()
        shutil.rmtree(folder)
