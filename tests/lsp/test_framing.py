"""Messages of the wire, whole and broken."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.parts.lsp import wire
from flashgrep.parts.lsp.wire import MOST_HEADER, MessageReader, Unreadable

OBJECTS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.text(max_size=20), max_size=3
)


def frame(body: bytes, header: bytes = b"Content-Length") -> bytes:
    return b"%s: %d\r\n\r\n" % (header, len(body)) + body


def read(data: bytes, cuts: list[int] | None = None) -> list[Any]:
    reader, found = MessageReader(), []
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    for start, end in pairwise(places):
        found += [
            str(one) if isinstance(one, Unreadable) else one
            for one in reader.feed(data[start:end])
        ]
    return found


@given(
    st.lists(OBJECTS, max_size=5),
    st.lists(st.integers(0, 10_000)),
    st.sampled_from([b"Content-Length", b"content-LENGTH"]),
)
def test_messages_come_whole_wherever_the_wire_cuts_them(
    messages: list[dict[str, Any]], cuts: list[int], header: bytes
) -> None:
    data = b"".join(frame(json.dumps(message).encode(), header) for message in messages)
    assert read(data, cuts) == messages


@settings(max_examples=40)
@given(
    st.binary(max_size=200).filter(lambda junk: b"ontent" not in junk),
    st.lists(st.integers(0, 10_000), max_size=6),
)
def test_what_is_no_message_costs_none_behind_it(junk: bytes, cuts: list[int]) -> None:
    assert read(junk + b"\r\n\r\n" + frame(b'{"a": 1}'), cuts)[-1:] == [{"a": 1}]


def test_a_header_without_an_end_is_not_kept() -> None:
    reader = MessageReader()
    assert not list(reader.feed(b"x" * (10 * MOST_HEADER)))
    assert list(reader.feed(b"\r\n\r\n" + frame(b"{}"))) == [{}]


def test_other_headers_may_stand_before_the_length() -> None:
    assert read(
        b"Content-Type: application/json; charset=utf-8\r\n" + frame(b"{}")
    ) == [{}]


def test_a_message_that_is_too_long_is_skipped_as_it_comes(monkeypatch: Any) -> None:
    monkeypatch.setattr(wire, "MOST_MESSAGE", 100)
    found = read(frame(b" " * 1000) + frame(b"{}"), list(range(0, 1000, 50)))
    assert found == ["a message of more than 100 bytes is not read", {}]


def test_a_message_that_is_no_object_is_reported() -> None:
    found = read(
        frame(b"[1]")
        + frame(b"{")
        + frame(b"[" * 100_000)
        + frame(b"\xff")
        + frame(b"{}")
    )
    assert [one if isinstance(one, dict) else one.partition(":")[0] for one in found] == [
        "not a JSON-RPC object", "invalid JSON", "invalid JSON", "invalid JSON", {}
    ]  # fmt: skip
