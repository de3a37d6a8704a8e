"""What a client that cannot be reached, or says nonsense, is answered: no way back, wrong bindings, foreign cursors."""

import base64
from typing import Any

import pytest

from flashgrep.base.errors import InvalidParams, Unavailable
from flashgrep.base.registry import Session
from flashgrep.mcp.binding import check_binding
from flashgrep.mcp.service import PROMPTS, get_prompt, read_cursor
from flashgrep.parts.http.wire.routes import Caller
from flashgrep.rpc.context import Peer


async def test_a_client_that_only_waits_for_its_answer_gets_no_other_message() -> None:
    session = Session(wire="http")
    peer: Peer = Caller(session)
    assert peer.session is session
    assert peer.notify("notifications/progress", {}) is False
    with pytest.raises(Unavailable, match="roots/list") as caught:
        await peer.request("roots/list", {})
    assert caught.value.reason == "client_refused"


@pytest.mark.parametrize(
    "cursor",
    [
        7,
        ["x"],
        "%%%",
        "ä",
        base64.urlsafe_b64encode(b"to 3"),
        base64.urlsafe_b64encode(b"from x").decode(),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused(cursor: Any) -> None:
    with pytest.raises(InvalidParams, match="not one of ours") as caught:
        read_cursor(cursor)
    assert caught.value.data == {"field": "cursor"}


def test_our_cursor_says_where_to_go_on() -> None:
    assert read_cursor(None) == 0
    assert read_cursor(base64.urlsafe_b64encode(b"from 30").decode()) == 30


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (["project"], "by name"),
        ({"project": 1}, "project: a string"),
        ({"folder": ["/x"]}, "folder: a string"),
        ({"roots": 1, "area": 2}, "unknown: area, roots"),
        ({"toolsets": "core"}, "toolsets: an array of strings"),
        ({"collections": [1]}, "collections: an array of strings"),
    ],
)
def test_a_binding_that_makes_no_sense_is_refused(params: Any, told: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        check_binding(params)
    assert told in caught.value.message


@pytest.mark.parametrize("name", list(PROMPTS))
def test_a_prompt_holds_what_was_given_and_wants_all_it_lists(name: str) -> None:
    wanted = [argument["name"] for argument in PROMPTS[name].describe()["arguments"]]
    told = get_prompt(name, {each: f"my own {each}" for each in wanted})
    (message,) = told["messages"]
    assert all(f"my own {each}" in message["content"]["text"] for each in wanted)
    assert (told["description"], message["role"]) == (PROMPTS[name].description, "user")
    for each in wanted:
        with pytest.raises(InvalidParams, match=each):
            get_prompt(name, {other: " " if other == each else "x" for other in wanted})


@pytest.mark.parametrize("name", ["nobody", None, 7])
def test_the_error_for_an_unknown_prompt_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(InvalidParams) as caught:
        get_prompt(name, {})
    assert caught.value.data["allowed"] == list(PROMPTS)
