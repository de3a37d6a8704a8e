"""Rerankers against a real server in each of their shapes, and its faults."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.config import Reranking, Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.models import MAX_CHARS, HttpReranker, open_reranker
from tests.support.embed_server import Api, Reply, overlap, ranking, serving

DOCUMENTS = [
    "read a file",
    "write a file to disk",
    "nothing",
    "parse the configuration file",
]
QUERY = "read the configuration file"
TRUTH = [overlap(QUERY, text) for text in DOCUMENTS]


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as server:
        yield server


def opened(api: Api, provider: str = "http", **section: Any) -> HttpReranker:
    wanted = Reranking(
        **{
            "provider": provider,
            "url": api.url,
            "timeout_seconds": 5,
            "top": 20,
            **section,
        }
    )
    found = open_reranker(Settings(reranking=wanted), {"JINA_API_KEY": "jina-key"})
    assert isinstance(found, HttpReranker)
    return found


def test_none_is_opened_when_none_is_configured() -> None:
    assert open_reranker(Settings(), {}) is None


@pytest.mark.parametrize("provider", ["http", "jina", "cohere", "tei"])
def test_scores_come_back_in_the_order_of_the_texts(api: Api, provider: str) -> None:
    model = opened(api, provider)
    assert model.scores(QUERY, DOCUMENTS).tolist() == pytest.approx(TRUTH)
    assert api.requests[0].path == "/rerank"
    assert model.top == 20


def test_voyage_has_its_own_word_for_results(api: Api) -> None:
    api.next.append(Reply({"object": "list", "data": ranking(QUERY, DOCUMENTS)}))
    assert opened(api, "voyage").scores(QUERY, DOCUMENTS).tolist() == pytest.approx(
        TRUTH
    )


def test_jina_is_asked_in_its_shape_with_its_key(api: Api) -> None:
    opened(api, "jina", model="my-reranker").scores(QUERY, DOCUMENTS)
    assert api.requests[0].headers["Authorization"] == "Bearer jina-key"
    assert api.requests[0].body == {
        "model": "my-reranker",
        "query": QUERY,
        "documents": DOCUMENTS,
        "top_n": 4,
        "return_documents": False,
    }


def test_text_embeddings_inference_is_asked_in_its_shape(api: Api) -> None:
    opened(api, "tei").scores(QUERY, DOCUMENTS)
    assert api.requests[0].body == {
        "query": QUERY,
        "texts": DOCUMENTS,
        "raw_scores": False,
        "truncate": True,
    }


def test_nothing_to_rank_asks_nobody(api: Api) -> None:
    assert opened(api).scores(QUERY, []).shape == (0,)
    assert not api.requests


def test_long_texts_are_cut(api: Api) -> None:
    opened(api).scores(QUERY, ["x" * 10 * MAX_CHARS])
    assert len(api.requests[0].body["documents"][0]) == MAX_CHARS


@given(st.lists(st.floats(-60, 60), min_size=1, max_size=6))
def test_logits_become_levels_in_the_same_order(logits: list[float]) -> None:
    with serving() as api:
        api.next.append(
            Reply(
                {
                    "results": [
                        {"index": n, "relevance_score": score}
                        for n, score in enumerate(logits)
                    ]
                }
            )
        )
        found = opened(api).scores(QUERY, ["text"] * len(logits))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(logits)]) >= 0).all()
    if min(logits) < 0:
        assert found.tolist() == pytest.approx(
            [1 / (1 + math.exp(-max(-50, min(50, score)))) for score in logits]
        )


@pytest.mark.parametrize(
    "body",
    [
        {"results": ranking(QUERY, DOCUMENTS[:3])},
        {"results": [*ranking(QUERY, DOCUMENTS), {"index": 0, "relevance_score": 1}]},
        {"results": [{"index": n + 1, "relevance_score": 1} for n in range(4)]},
        {"results": [{"index": n, "relevance_score": None} for n in range(4)]},
        {"results": [{"index": n, "relevance_score": "nan"} for n in range(4)]},
        {"results": [{"index": [n], "relevance_score": 1} for n in range(4)]},
        {"results": None},
        {},
        [],
        "no",
    ],
)
def test_an_answer_of_another_shape_is_refused(api: Api, body: object) -> None:
    api.next.append(Reply(body))
    with pytest.raises(ProviderUnavailable, match=r"scores for 4 texts|not a ranking"):
        opened(api).scores(QUERY, DOCUMENTS)


def test_a_passing_fault_is_tried_once_more_and_a_lasting_one_reported(
    api: Api,
) -> None:
    api.next.append(Reply(status=429, headers={"Retry-After": "0"}))
    assert opened(api).scores(QUERY, DOCUMENTS).tolist() == pytest.approx(TRUTH)
    api.next.extend([Reply(status=500)] * 5)
    with pytest.raises(ProviderUnavailable, match="status 500"):
        opened(api).scores(QUERY, DOCUMENTS)
    assert len(api.requests) == 4


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"provider": "http"}, "needs a URL"),
        ({"provider": "tei"}, "needs a URL"),
        ({"provider": "cohere"}, "set COHERE_API_KEY"),
        ({"provider": "local"}, "absolute path"),
        ({"provider": "local", "model": "relative/folder"}, "absolute path"),
    ],
)
def test_what_is_missing_is_reported_when_it_is_opened(
    section: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ProviderUnavailable, match=problem):
        open_reranker(Settings(reranking=Reranking(**section)), {})


def test_a_cross_encoder_needs_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    settings = '{"architectures": ["BertForSequenceClassification"]}'
    (tmp_path / "config.json").write_text(settings)
    section = Reranking(provider="local", model=str(tmp_path))
    with pytest.raises(ProviderUnavailable, match="pip install sentence-transformers"):
        open_reranker(Settings(reranking=section), {})
