"""What a member is accessed on, read backwards: chains made at random are read as they were made."""

from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.parts.navigation.resolution.receiver_text import Step, read_receiver
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import parse_file

NAMES = st.sampled_from(["crane", "lift", "Wheel", "turn_by", "x1"])
BLANKS = st.sampled_from(["", "", " ", "\n  ", " /* ) . */ ", " // (\n  "])
ARGUMENTS = st.sampled_from(
    ["", "1", '")"', "f(1, g[2])", "x -> { return (1); }", "'('"]
)
STEPS = st.tuples(NAMES, st.none() | ARGUMENTS, BLANKS, BLANKS)


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=6), st.booleans())
def test_a_chain_is_read_as_it_was_made(
    steps: list[tuple[str, str | None, str, str]],
    is_made: bool,  # noqa: FBT001
) -> None:
    text = "class A { void f() { "
    expected = []
    for place, (name, arguments, before, behind) in enumerate(steps):
        if place:
            text += f"{before}.{behind}"
        form = "name" if arguments is None else "call"
        if is_made and not place:
            text += "new "
            form = "new"
        text += name
        if form != "name":
            text += f"({arguments or ''})"
        expected.append((form, name))
    data = f"{text}.last(); }} }}".encode()
    symbols = parse_file(b"A.java", data)
    assert isinstance(symbols, FileSymbols)
    step = read_receiver(symbols, data.rindex(b"last"))
    assert read_forms(step) == expected


def read_forms(step: Step | None) -> list[tuple[str, str]]:
    """Return the forms and names of a chain, first to last."""
    forms = list[tuple[str, str]]()
    while step is not None:
        forms.insert(0, (step.form, step.name))
        step = step.base
    return forms


def test_an_index_is_a_member_of_what_it_is_behind() -> None:
    data = b"class A { void f() { a.b(1)[c[2]].last(); } }"
    symbols = parse_file(b"A.java", data)
    assert isinstance(symbols, FileSymbols)
    step = read_receiver(symbols, data.rindex(b"last"))
    assert read_forms(step) == [("name", "a"), ("call", "b"), ("call", "[]")]


def test_what_is_no_chain_is_not_guessed() -> None:
    for expression in (
        "new int[1]",
        "{ }",
        '"text"',
        "(a + b)",
        "(a ? b : c)",
        "if (a)",
        "a + (b)",
    ):
        data = f"class A {{ void f() {{ {expression}.last(); }} }}".encode()
        symbols = parse_file(b"A.java", data)
        assert isinstance(symbols, FileSymbols)
        step = read_receiver(symbols, data.rindex(b"last"))
        assert step is None or step.name == "b", expression


def test_a_long_chain_ends_at_a_bound() -> None:
    chain = "a" + "\n.b()" * 5_000
    data = f"class A {{ void f() {{ {chain}.last(); }} }}".encode()
    symbols = parse_file(b"A.java", data)
    assert isinstance(symbols, FileSymbols)
    assert read_receiver(symbols, data.rindex(b"last")) is None
