"""The functions of a chunk: named one by one, and shown if they say as much of the question as the best of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.files.columns import Lines
from flashgrep.methods.text import FOR_MODEL
from flashgrep.parts.meaning.methods import (
    MOST_NAMED,
    NEAR,
    NEAR_IF_SHORT,
    OF_OUTSIDE,
    SHORT,
    choose_for_model,
    choose_functions,
    is_worth_showing,
    order_for_model,
    render_chunks,
)
from flashgrep.parts.meaning.search.current_chunks import (
    FoundChunk,
    FoundFile,
    cut_chunks,
)
from flashgrep.parts.meaning.search.functions import (
    MOST_TOGETHER,
    PLACES_OF_SYMBOL,
    FoundFunction,
    QuestionWords,
    choose_places,
    find_functions,
    find_implementation,
    narrow,
)
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer
from flashgrep.parts.meaning.search.passages import (
    MOST_WHOLE,
    Passage,
    find_passage,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, START
from flashgrep.parts.symbols.symbol_source import parse_file

WORDS = QuestionWords(
    {"brake": 2.0, "signal": 1.0},
    {"brake": {"brake": 2.0, "braking": 1.0}, "signal": {"signal": 1.0}},
)
SMALL = b"""class Wheel:
    def start(self):
        self.turning = True

    def whistle(self):
        self.steam.open()
        self.steam.close()

    def stop(self):
        # at the signal
        self.turning = False

    def brake(self):
        self.shoe.press()
        self.signal()
"""


def split(data: bytes) -> tuple[Passage, tuple[FoundFunction, ...]]:
    """Return the passage of a text of one chunk, and its functions."""
    symbols = parse_file(b"wheel.py", data)
    assert isinstance(symbols, FileSymbols)
    (chunk,) = cut_chunks(b"wheel.py", data).chunks
    passage = find_passage(data, chunk, symbols)
    return passage, find_functions(data, chunk, passage, symbols, WORDS)


def test_a_chunk_of_small_functions_has_each_with_its_lines() -> None:
    _, functions = split(SMALL)
    assert [(one.name, one.lines) for one in functions] == [
        ("Wheel", (1, 15)),
        ("Wheel.start", (2, 3)),
        ("Wheel.whistle", (5, 7)),
        ("Wheel.stop", (9, 11)),
        ("Wheel.brake", (13, 15)),
    ]
    relevance = {one.plain_name: one.relevance for one in functions}
    # By its name and its text; by its text; not at all.
    assert (
        relevance["brake"]
        > relevance["stop"]
        > relevance["start"]
        == relevance["whistle"]
        == 0
    )
    assert WORDS.measure("x", b"Braking") == WORDS.measure("x", b"brake") > 0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"Braking()", b"signal", b"x" * 9_000, b"turn()", b"br"]),
        min_size=1,
        max_size=6,
    )
)
def test_functions_measured_together_are_measured_as_each_by_itself(
    says: list[bytes],
) -> None:
    data = b"class Wheel:\n" + b"".join(
        b"    def brake%d(self):\n        %b\n\n" % (number, text)
        for number, text in enumerate(says)
    )
    symbols = parse_file(b"wheel.py", data)
    assert isinstance(symbols, FileSymbols)
    for chunk in cut_chunks(b"wheel.py", data).chunks:
        passage = find_passage(data, chunk, symbols)
        for function in find_functions(data, chunk, passage, symbols, WORDS):
            first = passage.lines.start(function.lines[0])
            end = passage.lines.start(function.lines[1] + 1)
            if function.row >= 0:
                first = symbols.row(function.row)[START]
                end = symbols.row(function.row)[END]
            elif not passage.name:
                first, end = chunk.start, chunk.end
            text = data[first : min(end, first + MOST_WHOLE)]
            name = function.plain_name.rpartition(".")[2]
            assert function.relevance == WORDS.measure(name, text)


def test_a_function_of_several_chunks_is_one() -> None:
    data = b"def wait():\n" + b"    wheel.turn()\n" * 400
    symbols = parse_file(b"wheel.py", data)
    assert isinstance(symbols, FileSymbols)
    chunk = cut_chunks(b"wheel.py", data).chunks[2]
    passage = find_passage(data, chunk, symbols)
    (function,) = find_functions(data, chunk, passage, symbols, WORDS)
    assert (function.name, function.lines) == ("wait", (1, 401))


def test_what_has_no_functions_is_itself() -> None:
    passage, (function,) = split(b"LEFT = 1\nRIGHT = 2\n")
    assert function.lines == passage.part == (1, 2)
    assert function.kind == ""


def test_only_what_says_most_is_shown_of_small_functions() -> None:
    passage, (_, *functions) = split(SMALL)
    narrowed = narrow(passage, functions)
    assert (narrowed.name, narrowed.kind, narrowed.whole) == (
        "Wheel.brake",
        "method",
        (13, 15),
    )
    shown = narrowed.fit(1000)
    assert shown is not None
    assert shown.text.encode() == SMALL[SMALL.index(b"    def brake") :].rstrip()


OVERLOADED = b"""class Train {
  stop(at: Signal): void
  stop(at: Station, brake: Brake): void
  stop(at: Signal | Station, brake?: Brake): void {
    this.shoe.press(at)
  }
  whistle(): void {
    this.steam.open()
  }
}
"""


def test_of_overloads_the_one_with_the_code_is_shown() -> None:
    symbols = parse_file(b"train.ts", OVERLOADED)
    assert isinstance(symbols, FileSymbols)
    (chunk,) = cut_chunks(b"train.ts", OVERLOADED).chunks
    passage = find_passage(OVERLOADED, chunk, symbols)
    _, *functions = find_functions(OVERLOADED, chunk, passage, symbols, WORDS)
    assert [one.lines for one in functions] == [(2, 2), (3, 3), (4, 6), (7, 9)]
    leading = [find_implementation(one) for one in functions]
    assert [one.lines for one in leading] == [*[(4, 6)] * 3, (7, 9)]
    assert [one.name for one in leading] == [*["Train.stop"] * 3, "Train.whistle"]
    narrowed = narrow(passage, functions)
    assert (narrowed.name, narrowed.whole) == ("Train.stop", (4, 6))


def test_a_chunk_of_overloads_alone_stands_for_their_code() -> None:
    lines = [
        f"export function stop(at: Signal{at}, brake: Brake{at}): void"
        for at in range(40)
    ]
    lines += [
        "export function stop(at: Signal, brake: Brake): void {",
        *[f"  shoes[{at}].press(at)" for at in range(60)],
        "}",
    ]
    data = "\n".join(lines).encode()
    symbols = parse_file(b"train.ts", data)
    assert isinstance(symbols, FileSymbols)
    chunks = cut_chunks(b"train.ts", data).chunks
    alone = [chunk for chunk in chunks if chunk.end_line <= 40]
    assert len(alone) > 1
    for chunk in alone:
        passage = find_passage(data, chunk, symbols)
        assert passage.name == "stop"
        assert passage.whole == (41, 102)
        shown = passage.fit(MOST_WHOLE)
        assert shown is not None
        assert shown.text.encode() in data


def test_functions_between_those_that_are_shown_are_told_by_their_lines() -> None:
    first, *rest = SMALL.split(b"\n", 1)
    data = first + b"\n    def signal(self):\n        brake()\n\n" + rest[0]
    passage, (_, *functions) = split(data)
    narrowed = narrow(passage, functions)
    assert narrowed.whole == (2, 18)
    shown = narrowed.fit(1000)
    assert shown is not None
    assert shown.lines == ((2, 3), (16, 18))
    assert "… 4-15" in shown.text


def test_where_no_function_says_anything_all_are_shown() -> None:
    passage, functions = split(SMALL.replace(b"brak", b"slow").replace(b"signal", b"x"))
    assert narrow(passage, functions) is passage


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.sampled_from([b"brake", b"signal", b"brake, signal", b"turn"]),
        min_size=1,
        max_size=9,
    ),
    st.integers(1, 4),
)
def test_what_is_narrowed_is_in_the_chunk_and_has_the_best_whole(
    says: list[bytes], lines: int
) -> None:
    data = b"".join(
        b"def f%d():\n" % number + b"    x(%s)\n" % text * lines + b"\n"
        for number, text in enumerate(says)
    )
    passage, functions = split(data)
    narrowed = narrow(passage, functions)
    assert passage.whole[0] <= narrowed.whole[0] <= narrowed.whole[1]
    assert narrowed.whole[1] <= passage.whole[1]
    shown = narrowed.fit(10_000)
    assert shown is not None
    best = max(functions, key=lambda function: function.relevance)
    assert any(
        first <= best.lines[0] and best.lines[1] <= last for first, last in shown.lines
    )
    numbers = [range(first, last + 1) for first, last in shown.lines]
    whole = [
        function
        for function in functions
        if any(set(function.lines) <= set(span) for span in numbers)
    ]
    if narrowed is not passage:
        # Where functions are as short as a marker, those between are shown, too.
        assert len(whole) <= MOST_TOGETHER or lines == 1


@pytest.mark.parametrize("count", [1, PLACES_OF_SYMBOL, PLACES_OF_SYMBOL + 3])
def test_of_one_name_few_places_are_told(count: int) -> None:
    same = [FoundFunction((at, at), 1.0, "brake") for at in range(count)]
    others = [FoundFunction((at, at), 1.0, f"turn{at}") for at in range(5)]
    chosen = choose_places([*same, *others], PLACES_OF_SYMBOL + 4)
    assert chosen == [*same[:PLACES_OF_SYMBOL], *others][: PLACES_OF_SYMBOL + 4]


def make_file(path: bytes, near: float, count: int) -> FoundFile:
    """Return a file with functions of a line each, best first."""
    functions = [
        FoundFunction((at, at), 0.1, f"turn{at}", score=1 - at / 50)
        for at in range(1, count + 1)
    ]
    return FoundFile(path, near, functions)


def test_the_best_functions_of_all_files_are_named_and_one_of_each_at_least() -> None:
    files = [make_file(b"a.py", 1.0, 60), make_file(b"b.py", 0.9, 60)]
    files += [make_file(b"c.py", 0.6, 60), make_file(b"d.py", 0.59, 60)]
    files += [make_file(b"e.py", 0.5, 60), make_file(b"f.py", 0.4, 60)]
    code: Any = [
        {"path": "a.py", "start_line": 2, "end_line": 3},
        {"path": "e.py", "start_line": 2, "end_line": 3},
    ]
    named = {
        one["path"]: [function["start_line"] for function in one["functions"]]
        for one in choose_functions(files, code)
    }
    assert list(named) == ["a.py", "b.py", "c.py", "d.py"]
    assert named["d.py"] == [], "only its path; of what is shown not even that"
    assert sum(map(len, named.values())) == MOST_NAMED
    counts = [len(lines) for lines in named.values()]
    assert counts == sorted(counts, reverse=True)
    assert named["a.py"] == [1, *range(4, counts[0] + 3)]
    assert named["b.py"] == [*range(1, counts[1] + 1)]


def test_a_place_is_named_once_and_not_if_most_of_it_is_shown() -> None:
    spans = [(10, 30), (9, 30), (1, 8), (40, 49), (50, 59)]
    functions = [
        FoundFunction(span, 0.1, f"turn{at}", score=1 - at / 50)
        for at, span in enumerate(spans)
    ]
    code: Any = [{"path": "a.py", "start_line": 44, "end_line": 54}]
    (file,) = choose_functions([FoundFile(b"a.py", 1.0, functions)], code)
    assert [place["name"] for place in file["functions"]] == ["turn0", "turn2"]


@pytest.mark.parametrize(
    ("near", "text", "is_shown"),
    [
        (NEAR, SMALL, True),
        (NEAR_IF_SHORT, SMALL, True),
        (NEAR_IF_SHORT - 0.01, SMALL, False),
        (NEAR_IF_SHORT, SMALL + b"    # more of it\n    x = 1\n" * SHORT, False),
    ],
)
def test_a_short_result_is_shown_further_from_the_best(
    near: float, text: bytes, *, is_shown: bool
) -> None:
    chunk = cut_chunks(b"wheel.py", SMALL).chunks[0]
    passage = Passage(lines=Lines(text), part=(1, 1), whole=(1, text.count(b"\n")))
    piece = FoundChunk(b"wheel.py", chunk, "", near=near, passage=passage)
    assert is_worth_showing(piece) is is_shown


def make_result(path: bytes, kind: str, near: float, text: bytes = SMALL) -> FoundChunk:
    """Return a result of a kind, which takes all of a text."""
    chunk = cut_chunks(path, SMALL).chunks[0]
    lines = (1, text.count(b"\n"))
    passage = Passage(lines=Lines(text), part=lines, whole=lines, kind=kind, name=kind)
    return FoundChunk(path, chunk, "", near=near, passage=passage)


@pytest.mark.parametrize("kind", ["method", "class", "constant"])
def test_code_outside_of_functions_counts_less(kind: str) -> None:
    results = [make_result(b"a.py", "block", 1.0), make_result(b"b.py", kind, 0.9)]
    first, second = order_for_model(results)
    assert (first.path, first.near) == (b"b.py", 1.0)
    assert second.near == pytest.approx(OF_OUTSIDE / 0.9)
    # By itself it is as near as anything.
    (alone,) = order_for_model(results[:1])
    assert alone.near == 1.0


def test_the_code_of_a_file_stands_together() -> None:
    results = [
        make_result(path, "method", near, b"brake()\n" * at)
        for at, (path, near) in enumerate(
            [(b"a.py", 1.0), (b"b.py", 0.99), (b"a.py", 0.98)], start=1
        )
    ]
    code, _ = choose_for_model(MeaningAnswer(results=results), "brake")
    assert [piece["path"] for piece in code] == ["a.py", "a.py", "b.py"]


@pytest.mark.parametrize("best_file", [b"a.py", b"b.py"])
def test_a_file_that_is_first_in_both_orders_is_told_first(best_file: bytes) -> None:
    results = [make_result(b"a.py", "block", 1.0), make_result(b"b.py", "method", 0.99)]
    place = FoundFunction((2, 3), 0.1, "brake", score=1.0)
    paths = sorted([b"a.py", b"b.py"], key=lambda path: path != best_file)
    files = [FoundFile(path, 1.0, [place]) for path in paths]
    answer = MeaningAnswer(results=results, files=files)
    code, told = choose_for_model(answer, "brake")
    result: Any = {"results": code, "files": told}
    lines = [*render_chunks(result, FOR_MODEL)]
    # Its code is outside of functions, and counts too little to be shown.
    if best_file == b"a.py":
        assert [bool(piece["content"]) for piece in code] == [False, True]
        assert lines == ["a.py: brake 2-3", "", *lines[2:]]
        assert lines[2] == "b.py:1-15 method (0.00)"
    else:
        assert [piece["path"] for piece in code] == ["b.py"]
        assert lines[0] == "b.py:1-15 method (0.00)"
        assert lines[-1] == "a.py: brake 2-3"


def test_lines_without_a_name_are_told_only_where_nothing_else_is() -> None:
    nameless = FoundFunction((1, 9), 0.1, "", score=1.0)
    named = FoundFunction((10, 19), 0.1, "brake", score=0.5)
    files = [FoundFile(b"a.py", 1.0, [nameless, named])]
    files += [FoundFile(b"b.py", 0.9, [nameless]), FoundFile(b"c.py", 0.8, [nameless])]
    code: Any = [{"path": "c.py", "start_line": 30, "end_line": 39}]
    told = {
        file["path"]: [place["name"] for place in file["functions"]]
        for file in choose_functions(files, code)
    }
    assert told == {"a.py": ["brake"], "b.py": [""]}


def test_further_functions_stand_below_the_last_code_of_their_file() -> None:
    def make_piece(path: str, first: int) -> Any:
        return {
            "path": path,
            "file_path": path,
            "kind": "function",
            "name": "turn",
            "start_line": first,
            "end_line": first + 1,
            "content": "code",
            "score": 0.9,
        }

    pieces = [make_piece("a.py", 1), make_piece("b.py", 1), make_piece("a.py", 8)]
    places = [{"name": "Wheel.stop", "start_line": 20, "end_line": 29}]
    places += [{"name": "turn", "start_line": 8, "end_line": 9}]
    files = [
        {"path": path, "file_path": path, "functions": places}
        for path in ("a.py", "c.py")
    ]
    files += [
        {"path": path, "file_path": path, "functions": []} for path in ("d.py", "e.py")
    ]
    result: Any = {"results": pieces, "files": files}
    assert list(render_chunks(result, FOR_MODEL)) == [
        *("a.py:1-2 turn (0.90)", "code", ""),
        *("b.py:1-2 turn", "code", ""),
        *("a.py:8-9 turn", "code", "also: stop 20-29", ""),
        "c.py: stop 20-29, turn 8-9",
        "less likely: d.py, e.py",
    ]
