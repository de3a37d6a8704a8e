"""Refining a question by a chat model on a real server, and by words when there is none."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.config import Refinement, Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.models import (
    MAX_ANSWER,
    MAX_WORDS,
    Refiner,
    add_words,
    open_refiner,
)
from tests.support.embed_server import Api, Reply, serving

QUERY, PROMPT = (
    "retry",
    "Where do we retry uploads when the S3Client.put_object call fails? Please find the code",
)
BY_WORDS = "retry uploads S3Client.put_object call fails"


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as server:
        yield server


def opened(api: Api, **section: Any) -> Refiner:
    wanted = Refinement(
        **{
            "provider": "openai",
            "url": api.url + "/v1",
            "timeout_seconds": 5,
            **section,
        }
    )
    return open_refiner(Settings(refinement=wanted), {"OPENAI_API_KEY": "sk-key"})


def said(content: object) -> Reply:
    return Reply(
        {
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": content}}
            ]
        }
    )


def test_without_a_model_the_words_of_the_prompt_are_added() -> None:
    assert open_refiner(Settings(), {}).refine(QUERY, PROMPT) == BY_WORDS


def test_without_a_prompt_a_question_stays_as_it_is(api: Api) -> None:
    assert opened(api).refine("  as it is ", " ") == "  as it is "
    assert not api.requests


def test_a_chat_model_is_asked_and_its_line_taken(api: Api) -> None:
    api.next.append(said("upload retry put_object backoff\n"))
    assert (
        opened(api, model="my-chat").refine(QUERY, PROMPT)
        == "upload retry put_object backoff"
    )
    (request,) = api.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == "Bearer sk-key"
    assert request.body["model"] == "my-chat"
    assert [message["role"] for message in request.body["messages"]] == [
        "system",
        "user",
    ]
    assert QUERY in request.body["messages"][1]["content"]
    assert PROMPT in request.body["messages"][1]["content"]


@pytest.mark.parametrize(
    ("content", "taken"),
    [
        ('\n "retry upload" \nand some talk', "retry upload"),
        ("<think>the user\nwants</think>\nretry upload", "retry upload"),
        ("```\nretry upload\n```", "retry upload"),
        ("Query: retry upload", "retry upload"),
        ("x" * 5000, "x" * MAX_ANSWER),
    ],
)
def test_what_models_put_around_their_line_is_left_out(
    api: Api, content: str, taken: str
) -> None:
    api.next.append(said(content))
    assert opened(api).refine(QUERY, PROMPT) == taken


@pytest.mark.parametrize(
    "fault",
    [
        Reply(status=400, body={"error": {"message": "no such model"}}),
        Reply(status=401),
        Reply({"choices": []}),
        Reply({"choices": [{"message": {}}]}),
        Reply([]),
        Reply({"choices": 3}),
        said(None),
        said(""),
        said("<think>without end"),
        said(["a"]),
    ],
)
def test_a_model_that_fails_leaves_it_to_the_words(api: Api, fault: Reply) -> None:
    api.next.append(fault)
    assert opened(api).refine(QUERY, PROMPT) == BY_WORDS


def test_a_model_that_does_not_answer_in_time_leaves_it_to_the_words(api: Api) -> None:
    api.next.extend([Reply(drip=-1), Reply(drip=-1)])
    assert opened(api, timeout_seconds=0.2).refine(QUERY, PROMPT) == BY_WORDS


def test_a_missing_key_is_reported_when_it_is_opened() -> None:
    with pytest.raises(ProviderUnavailable, match="set OPENAI_API_KEY"):
        open_refiner(Settings(refinement=Refinement(provider="openai")), {})


def test_local_servers_need_no_key() -> None:
    assert (
        open_refiner(Settings(refinement=Refinement(provider="ollama")), {}).endpoint
        is not None
    )


@given(st.text(max_size=40), st.text(max_size=300))
def test_words_are_added_once_in_their_order_and_not_too_many(
    query: str, prompt: str
) -> None:
    found = add_words(query, prompt)
    assert found.startswith(query.strip())
    added = found[len(query.strip()) :].split()
    assert len(added) <= MAX_WORDS
    assert len({word.lower() for word in added}) == len(added)
    assert found == add_words(query, prompt)
    place = 0
    for word in added:
        place = prompt.index(word, place)


def test_a_word_that_comes_twice_is_added_once() -> None:
    assert add_words("a", "Parser parser PARSER tokens") == "a Parser tokens"
