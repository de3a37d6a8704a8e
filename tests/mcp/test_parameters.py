"""Signatures of many languages with the names of their parameters alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.methods.parameters import name_parameters
from flashgrep.methods.text import ENTRY_SHOWN, shorten_entries


@pytest.mark.parametrize(
    ("signature", "named"),
    [
        ('__init__(url: str = "", scope: Scope | None = None)', "__init__(url, scope)"),
        ("f(a=(1, 2), *, b: dict[str, int] = {}, **kw) -> T", "f(a, *, b, **kw) -> T"),
        ("exec(mut list: &mut Threads, slots: &mut [b, …", "exec(mut list, slots, …"),
        ("exec(list: &mut Threads, slo…", "exec(list, slo…"),
        ("exec(list: &mut Thr…", "exec(list, …"),
        ("step(f: fn(A) -> B, x: i32) -> C", "step(f, x) -> C"),
        ("before( result: Result, metadata?: Data, )", "before(result, metadata)"),
        (
            "on<K extends keyof E>(event: K, ...args: P<E[K], 1>): Q",
            "on<K extends keyof E>(event, ...args): Q",
        ),
        ("render({x, y}: Props = {}, z = 1)", "render({x, y}, z)"),
        ("move(from start: Int, to end: Int) -> Bool", "move(from start, to end) -> Bool"),
        ("std::string f(std::string const& a, int b = 3)", "std::string f(std::string const& a, int b)"),
        ("(r *Registry) Register(c Collector) error", "(r *Registry) Register(c Collector) error"),
        ("serialize (context, data)", "serialize (context, data)"),
        ("class Wheel", "class Wheel"),
        ("stop()", "stop()"),
    ],
)  # fmt: skip
def test_parameters_are_named_without_their_types(signature: str, named: str) -> None:
    assert name_parameters(signature) == named


@given(st.text("ab:=,<>()[]{} -", max_size=30))
def test_no_signature_grows(signature: str) -> None:
    named = name_parameters(signature)
    # A comma may get a blank behind it.
    assert len(named) <= len(signature) + signature.count(",")


def test_only_what_does_not_fit_in_a_line_loses_its_types() -> None:
    short = "4-6 stop(self, at: int)"
    long = "  8-9 brake(self, shoe: tuple[Shoe, ...], signal: Signal = RED) -> None"
    assert len(long) > ENTRY_SHOWN
    assert shorten_entries([short, long]) == ["4-6 stop(at: int)", "  8-9 brake(shoe, signal)"]  # fmt: skip
