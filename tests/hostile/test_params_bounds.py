"""Parameters: every text, list and number has a maximum, and a refusal costs and repeats little."""

import gc
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from flashgrep import pattern
from flashgrep.base.errors import InvalidParams, MethodNotFound
from flashgrep.base.registry import Handler
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.collections.methods import Payload, make_payload_filter
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.meaning.search import fusion
from flashgrep.parts.meaning.search.current_chunks import FoundChunk
from flashgrep.pattern import unicode
from flashgrep.pattern.regex_tree import CharSet
from tests.support.pace import paced

BOUNDED = {
    "string": {"maxLength", "enum", "const"},
    "array": {"maxItems"},
    "integer": {"maximum", "enum", "const"},
    "number": {"maximum"},
}
MANY = 300_000
HUGE = "x" * 7_000_000
COSTLY: list[tuple[str, dict[str, Any]]] = [
    ("query", {"text": "x", **{f"k{n}": 1 for n in range(MANY)}}),
    ("query", {"text": "x", HUGE: 1}),
    ("query", {"text": "x", "language": ["py"] * MANY}),
    ("query", {"text": "x", "include": [HUGE]}),
    ("query", {"text": "x", "include": ["x/" * MANY]}),
    ("query", {"text": HUGE}),
    ("query", {"text": "x", "mode": HUGE}),
    ("query", {"text": "x", "limit": HUGE}),
    ("get_symbol", {"symbol_name": "x", "kind": ["nothing"] * MANY}),
    ("search_code_by_payload", {"payload": {f"k{n}": 1 for n in range(MANY)}}),
    ("search_code_by_payload", {"payload": {"name": [HUGE]}}),
    ("batch_write_code", {"operations": [{"id": 1, "file_path": 2}] * MANY}),
    ("batch_write_code", {"operations": [{HUGE: 1}]}),
    ("fs_read", {"path_bytes": HUGE}),
    ("stats", {"project": HUGE}),
]


@pytest.fixture(autouse=True, scope="module")
def own_garbage() -> Iterator[None]:
    """Leave out of collections what other tests hold: a pass over that takes 0.3 s, and any call may set it off."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def unbounded(node: dict[str, Any], where: str) -> Iterator[str]:
    """Yield the places of a schema that take a value of any size, as ``method.field: type``."""
    kind = node.get("type")
    if kind in BOUNDED and BOUNDED[kind].isdisjoint(node):
        yield f"{where}: {kind}"
    if (
        kind == "object"
        and node.get("additionalProperties") is not False
        and "maxProperties" not in node
    ):
        yield f"{where}: object"
    if node.keys().isdisjoint({"type", "$ref", "anyOf", "enum", "const"}):
        yield f"{where}: anything"
    inside = [
        (name, field)
        for key in ("properties", "$defs")
        for name, field in node.get(key, {}).items()
    ]
    for name, field in inside:
        yield from unbounded(field, f"{where}.{name}")
    for form in [*node.get("anyOf", ()), *([node["items"]] if "items" in node else ())]:
        yield from unbounded(form, where)


@pytest.mark.parametrize("handler", list(REGISTRY), ids=lambda handler: handler.name)
def test_every_parameter_has_a_maximum(handler: Handler) -> None:
    assert list(unbounded(handler.params_schema(), handler.name)) == []


@pytest.mark.parametrize(
    ("method", "params"),
    COSTLY,
    ids=[f"{at}-{case[0]}" for at, case in enumerate(COSTLY)],
)
def test_a_refusal_is_quick_and_repeats_no_megabyte(
    method: str, params: dict[str, Any]
) -> None:
    started = time.thread_time()
    with pytest.raises(InvalidParams) as caught:
        REGISTRY.get(method).validate(params)
    assert time.thread_time() - started < paced(0.25)
    assert len(str(caught.value.to_object())) < 10_000


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    cases: list[tuple[str, dict[str, Any], str, str]] = [
        ("query", {"text": "x", "limti": 1}, "limti", "did you mean limit?"),
        ("query", {"text": "x", "zzz": 1}, "zzz", "known are query, any_of, mode"),
        (
            "search_code_by_payload",
            {"payload": {"startline": 1}},
            "payload.startline",
            "did you mean startLine?",
        ),
        (
            "batch_write_code",
            {"operations": [{"id": "a", "pth": "x"}]},
            "operations.0.pth",
            "did you mean path?",
        ),
    ]
    for method, params, field, advice in cases:
        with pytest.raises(InvalidParams, match=re.escape(advice)) as caught:
            REGISTRY.get(method).validate(params)
        assert caught.value.data["field"] == field
    with pytest.raises(InvalidParams, match=r"k0: no such field \(and 4 more\)"):
        REGISTRY.get("query").validate({"text": "x", **{f"k{n}": n for n in range(5)}})


def test_a_method_that_does_not_exist_is_not_repeated_at_length() -> None:
    with pytest.raises(MethodNotFound) as caught:
        REGISTRY.get(HUGE)
    assert len(str(caught.value.to_object())) < 1000
    assert "suggestion" not in caught.value.data


def test_a_method_that_is_nearly_called_so_is_suggested() -> None:
    with pytest.raises(MethodNotFound) as caught:
        REGISTRY.get("serach_code")
    assert caught.value.data["suggestion"] == "did you mean search_code?"


def piece(name: str) -> FoundChunk:
    return FoundChunk(b"a.py", StoredChunk(0, 1, 1, 2, "function", name, ""), "")


@pytest.mark.parametrize(
    ("glob", "matched", "missed"),
    [
        ("get_*", ["get_name", "get_", "Class.get_x"], ["get", "forget"]),
        ("a?c", ["abc", "aéc"], ["ac", "abbc"]),
        ("a**b", ["ab", "a/b"], ["a"]),
        ("[x]\\", ["[x]\\"], ["x", "x\\"]),
    ],
)
def test_a_name_is_matched_by_star_and_question_mark_alone(
    glob: str, matched: list[str], missed: list[str]
) -> None:
    wanted = make_payload_filter(Payload(name=glob))
    assert wanted is not None
    assert [name for name in matched + missed if wanted(piece(name))] == matched


def test_a_name_with_many_stars_takes_linear_time() -> None:
    wanted = make_payload_filter(Payload(name="*a" * 500 + "b"))
    assert wanted is not None
    started = time.thread_time()
    assert not wanted(piece("a" * 2000))
    assert time.thread_time() - started < paced(1)


@pytest.mark.slow
def test_long_patterns_and_texts_are_not_kept_in_numbers() -> None:
    short = (pattern._matcher.short, pattern._grams.short, pattern._tree.short)
    kept = [*short, fusion._kept_stems, unicode._kept_classes]
    before = [cache.cache_info().currsize for cache in kept]
    for n in range(5):
        long = pattern.Pattern(texts=(f"x{n}" * 1500,))
        assert long.matcher().search(f"x{n}".encode() * 1500)
        assert long.matcher() is long.matcher()
        long.grams()
        fusion.Cover({"some": 1.0}).share(f"some{n} name{n} " * 100)
    unicode.byte_classes(
        CharSet(
            tuple(
                (char, char)
                for char in range(0x4E00, 0x4E00 + 2 * unicode._MOST_KEPT + 4, 2)
            )
        )
    )
    assert [cache.cache_info().currsize for cache in kept] == before
    assert 0 < pattern._matcher.long.cache_info().currsize <= pattern.CACHED_LONG


def test_forgetting_patterns_drops_the_long_ones_too() -> None:
    for text in ("short", "long" * 1000):
        pattern.Pattern(texts=(text,)).matcher()
        pattern.Pattern(texts=(text,)).grams()
    pattern.forget_patterns()
    caches = [
        cache
        for made in (pattern._tree, pattern._matcher, pattern._grams)
        for cache in (made.short, made.long)
    ]
    assert [cache.cache_info().currsize for cache in caches] == [0] * 6
