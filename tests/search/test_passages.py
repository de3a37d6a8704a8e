"""What is shown of a file for a chunk: exact lines, every gap told, within the size asked for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.search.chunks import cut_chunks
from flashgrep.search.passages import MOST_HEAD, MOST_WHOLE, Passage, Shown, find_passage
from flashgrep.search.symbol_source import parse_file

WORDS = [b"brake", b"signal"]


def passages(path: bytes, data: bytes) -> list[Passage]:
    """Return the passage of each chunk of a file."""
    symbols = parse_file(path, data)
    known = symbols if isinstance(symbols, FileSymbols) else None
    return [find_passage(data, chunk, known) for chunk in cut_chunks(path, data).chunks]


def check(passage: Passage, shown: Shown, data: bytes) -> None:
    """Compare what is shown with the file's lines, and its gaps with what is missing of them."""
    lines = data.decode().split("\n")
    expected, at = [], passage.whole[0]
    for first, last in shown.lines:
        assert at <= first <= last <= passage.whole[1]
        expected += [f"… {at}-{first - 1}"] * (first > at)
        expected.append("\n".join(lines[first - 1 : last]).rstrip())
        at = last + 1
    expected += [f"… {at}-{passage.whole[1]}"] * (at <= passage.whole[1])
    assert shown.text == "\n".join(expected)


LINE = st.sampled_from(
    [
        "    x = 1",
        "    # brake at the signal",
        "    if wheel.turns():\n        wheel.brake()",
        "    call(" + "a, " * 30 + "b)",
    ]
)
FUNCTION = st.builds(
    lambda name, doc, lines: "\n".join([f"def {name}(wheel):", *doc, *lines, ""]),
    st.sampled_from(["start", "stop", "turn"]),
    st.sampled_from([[], ['    """Say what it does."""'], ['    """Say.', "", "    More of it.", '    """']]),
    st.lists(LINE, min_size=1, max_size=150),
)
TINY = st.sampled_from(["import os\n", "LEFT = 1\n", "class Wheel:\n    size = 3\n"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(FUNCTION, TINY), min_size=1, max_size=5),
    st.integers(0, 2 * MOST_WHOLE),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n"]),
)
def test_what_is_shown_is_the_files_own_lines_and_what_is_not_is_told(
    parts: list[str], size: int, end: str, ending: str
) -> None:
    data = "\n\n".join(parts).replace("\n", end).encode()
    data = data.rstrip() + ending.encode()
    for passage in passages(b"wheel.py", data):
        assert passage.whole[0] <= passage.part[0] <= passage.part[1] <= passage.whole[1]
        shown = passage.fit(size)
        if shown is not None:
            check(passage, shown, data)
            assert len(shown.text) <= size + 20 * len(shown.lines)
            assert shown.lines in {(passage.whole,), (passage.part,), (passage.head, passage.part)}
        cropped = passage.crop(size, WORDS)
        check(passage, cropped, data)
        assert len(cropped.lines) <= 2
        first, last = cropped.lines[-1]
        assert passage.part[0] <= first <= last <= passage.part[1]
        lines = data.decode().split("\n")
        has_word = [any("brake" in line for line in lines[a - 1 : b]) for a, b in (passage.part, (first, last))]
        assert has_word[0] == has_word[1]


def test_a_chunk_of_a_function_is_shown_with_all_of_it() -> None:
    body = "".join(f"    step({at}, 'a word or two about it')\n" for at in range(100))
    walk = f'def walk(legs):\n    """Set one foot before the other."""\n{body}'
    data = f"import os\n\n\n{walk}\n\ndef rest():\n{body[:400]})\n".encode()
    found = [one for one in passages(b"walk.py", data) if one.name == "walk"]
    assert len(found) > 2
    for passage in found[1:]:
        assert (passage.kind, passage.whole) == ("function", (4, 105))
        assert passage.covers(found[-1])
        whole = passage.fit(MOST_WHOLE)
        assert whole is not None
        assert whole.lines == ((4, 105),)
        part = passage.fit(3_000)
        assert part is not None
        assert part.lines == ((4, 5), passage.part)
        assert part.text.startswith(
            f'def walk(legs):\n    """Set one foot before the other."""\n… 6-{passage.part[0] - 1}\n'
        )


@pytest.mark.parametrize(
    ("path", "text", "head"),
    [
        ("a.js", "function walk (a, b) {\n%s}\n", (1, 1)),
        ("a.ts", "export function walk (\n  a: Leg,\n  b: Leg,\n) {\n%s}\n", (1, 4)),
        ("a.go", "package a\n\nfunc walk(a int) {\n%s}\n", (3, 3)),
        ("a.py", "def walk():\n    # in a comment\n    # of two lines\n%s", (1, 2)),
        ("a.py", 'def walk():\n    """Long.\n' + "\n    more" * 20 + '\n    """\n%s', (1, MOST_HEAD)),
    ],
)
def test_a_head_is_the_signature_and_the_documentation_behind_it(path: str, text: str, head: tuple[int, int]) -> None:
    data = (text % "".join(f"    step({at}, 1_000_000_000_000_000);\n" for at in range(100))).encode()
    assert passages(path.encode(), data)[-1].head == head


def test_a_part_of_a_line_is_shown_alone() -> None:
    data = b"var a=1;" * 2_000 + b"\nvar b\n"
    first, *_ = passages(b"a.min.js", data)
    assert first.whole == (1, 1)
    shown = first.fit(MOST_WHOLE)
    assert shown is not None
    assert shown.text.encode() in data
    assert len(shown.text) <= 2_000
    assert first.fit(100) is None
    assert first.crop(100, [b"var"]).text == data[:100].decode() + "…"
    assert not first.covers(first)
