"""What is shown of a file for a chunk: exact lines, every gap told, within the size asked for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.parts.meaning.search.current_chunks import cut_chunks
from flashgrep.parts.meaning.search.passages import (
    MOST_HEAD,
    MOST_WHOLE,
    Excerpt,
    Passage,
    find_passage,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import parse_file

WORDS = [(b"brake",), (b"signal",)]


def passages(path: bytes, data: bytes) -> list[Passage]:
    """Return the passage of each chunk of a file."""
    symbols = parse_file(path, data)
    known = symbols if isinstance(symbols, FileSymbols) else None
    return [find_passage(data, chunk, known) for chunk in cut_chunks(path, data).chunks]


def check(passage: Passage, shown: Excerpt, data: bytes) -> None:
    """Compare what is shown with the file's lines, and its gaps with what is missing of them."""
    lines = data.decode().split("\n")
    expected, at = [], passage.whole[0]
    for first, last in shown.lines:
        assert at <= first <= last <= passage.whole[1]
        expected += [f"… {at}-{first - 1}"] * (first > at)
        expected.append("\n".join(lines[first - 1 : last]).removesuffix("\r"))
        at = last + 1
    expected += [f"… {at}-{passage.whole[1]}"] * (at <= passage.whole[1])
    assert shown.text == "\n".join(expected)


ASIDE = "\n".join(["    # Why the wheel", *["    # turns or does not"] * 4])
LINE = st.sampled_from(
    [
        "    x = 1",
        "    # brake at the signal",
        "    if wheel.turns():\n        wheel.brake()",
        "    call(" + "a, " * 30 + "b)",
        "    y = 2\n\n" + ASIDE,
    ]
)
FUNCTION = st.builds(
    lambda name, doc, lines: "\n".join([f"def {name}(wheel):", *doc, *lines, ""]),
    st.sampled_from(["start", "stop", "turn"]),
    st.sampled_from(
        [
            [],
            ['    """Say what it does."""'],
            ['    """Say.', "", "    More of it.", '    """'],
        ]
    ),
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
def test_what_is_shown_is_the_files_own_lines_and_what_is_not_is_reported(
    parts: list[str], size: int, end: str, ending: str
) -> None:
    data = "\n\n".join(parts).replace("\n", end).encode()
    data = data.rstrip() + ending.encode()
    for passage in passages(b"wheel.py", data):
        assert (
            passage.whole[0] <= passage.part[0] <= passage.part[1] <= passage.whole[1]
        )
        shown = passage.fit(size)
        if shown is not None:
            check(passage, shown, data)
            assert len(shown.text) <= size + 20 * len(shown.lines)
            asides = {
                line
                for first, last in passage.asides
                for line in range(first, last + 1)
            }
            spans = {(passage.whole,), (passage.part,), (passage.head, passage.part)}
            numbers = [
                [
                    line
                    for first, last in filter(None, span)
                    for line in range(first, last + 1)
                ]
                for span in spans
            ]
            assert [
                line for first, last in shown.lines for line in range(first, last + 1)
            ] in [[line for line in each if line not in asides] for each in numbers]
        cropped = passage.crop(size, WORDS)
        check(passage, cropped, data)
        lines = data.decode().split("\n")
        # A blank line beside a gap tells nothing.
        for span in cropped.lines:
            assert all(lines[line - 1].strip() for line in span)
        said = [f"{line}\n" for line in lines]
        asides = {
            line for first, last in passage.asides for line in range(first, last + 1)
        }
        code = "".join(
            said[line - 1]
            for line in range(passage.whole[0], passage.whole[1] + 1)
            if line not in asides
        )
        assert ("brake" in cropped.text) == ("brake" in code)


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
        (
            "a.py",
            'def walk():\n    """Long.\n' + "\n    more" * 20 + '\n    """\n%s',
            (1, MOST_HEAD),
        ),
    ],
)
def test_a_head_is_the_signature_and_the_documentation_behind_it(
    path: str, text: str, head: tuple[int, int]
) -> None:
    data = (
        text % "".join(f"    step({at}, 1_000_000_000_000_000);\n" for at in range(100))
    ).encode()
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
    assert first.crop(100, [(b"var",)]).text == data[:100].decode() + "…"
    assert not first.covers(first)


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        (
            "walk.py",
            'def walk(legs):\n    """One foot.\n\n    Go.\n    On.\n    """\n    go()\n    # a\n    # b\n    x()\n',
            'def walk(legs):\n    """One foot.\n… 3-6\n    go()\n    # a\n    # b\n    x()',
        ),
        (
            "walk.go",
            "package legs\n\nfunc walk() {\n\t// One\n\t// foot\n\t// before.\n\tgo(`\n// a\n// b\n// c`)\n}\n",
            "package legs\n\nfunc walk() {\n\t// One\n… 5-6\n\tgo(`\n// a\n// b\n// c`)\n}",
        ),
        (
            "walk.js",
            "/**\n * Walks.\n *\n * On legs.\n */\nfunction walk () {\n  return `\n  a\n  b\n  `\n}\n",
            "/**\n * Walks.\n… 3-5\nfunction walk () {\n  return `\n  a\n  b\n  `\n}",
        ),
        (
            "walk.sql.py",
            'run(\n    """select\n    legs\n    from\n    animals"""\n)\n',
            None,
        ),
        ("walk.py", "# One foot\n# before\n# the\n# other.\n", None),
    ],
)
def test_a_long_comment_is_shown_by_its_first_line(
    path: str, text: str, shown: str | None
) -> None:
    [passage] = passages(path.encode(), text.encode())
    fitting = passage.fit(MOST_WHOLE)
    assert fitting is not None
    check(passage, fitting, text.encode())
    assert fitting.text == (text.rstrip() if shown is None else shown)


@pytest.mark.parametrize(
    ("path", "comment", "code", "line"),
    [
        (
            "a.rs",
            "/// {}\n",
            "#[inline]\npub fn walk(legs: u8) {{\n    go(legs);\n}}\n",
            2,
        ),
        ("a.go", "// {}\n", "func walk(legs int) {{\n\tgo(legs)\n}}\n", 1),
        ("a.ts", "// {}\n", "export class Walk {{\n  legs = 2\n}}\n", 1),
    ],
)
def test_a_comment_stands_for_what_it_documents(
    path: str, comment: str, code: str, line: int
) -> None:
    count = 60
    head = "package legs\n\n" if path == "a.go" else ""
    above = "".join(
        comment.format(f"word {at} of what a long walk on legs is about")
        for at in range(count)
    )
    data = (head + above + code.format()).encode()
    *comments, end = passages(path.encode(), data)
    first = head.count("\n") + count + line
    assert comments
    for passage in comments:
        assert (passage.name.lower(), passage.whole[0]) == ("walk", first)
        shown = passage.fit(MOST_WHOLE)
        assert shown is not None
        assert shown.text == "\n".join(code.format().rstrip().split("\n")[line - 1 :])
        assert passage.covers(end)
    blank = (head + above + "\n" + code.format()).encode()
    assert not any(one.name for one in passages(path.encode(), blank))


def test_of_a_long_function_the_lines_with_rare_words_are_shown() -> None:
    body = [f"    wheel.turn({at})" for at in range(120)]
    body[60] = "    if signal.red(): wheel.brake()"
    data = "\n".join(["def drive(wheel, signal):", *body, ""]).encode()
    passage = passages(b"drive.py", data)[0]
    shown = passage.crop(
        300, [(b"turn",), (b"braking", b"brake", b"brakes"), (b"signal",)]
    )
    check(passage, shown, data)
    assert "def drive" in shown.text
    assert "wheel.brake()" in shown.text
    assert "wheel.turn(59)" in shown.text
    assert len(shown.text) <= 300 + 20 * len(shown.lines)
