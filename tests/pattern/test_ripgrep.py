"""Every line and span equals what ripgrep finds: a table of dialect corners, and patterns made from a grammar."""

import base64
import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import BadPattern
from flashgrep.pattern import Pattern

Found = dict[str, list[tuple[int, int, int, tuple[tuple[int, int], ...]]]]

RG = (
    shutil.which(
        "rg",
        path=os.pathsep.join(
            [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
        ),
    )
    or "rg"
)
MODES: dict[str, dict[str, Any]] = {
    "": {},
    "-i": {"case": "insensitive"},
    "-S": {"case": "smart"},
    "-w": {"word": True},
    "-x": {"line": True},
    "-F": {"mode": "literal"},
    "-F -i": {"mode": "literal", "case": "insensitive"},
    "-F -w": {"mode": "literal", "word": True},
    "-F -x": {"mode": "literal", "line": True},
    "-U": {"multiline": True},
    "-U -w": {"multiline": True, "word": True},
    "-U -x": {"multiline": True, "line": True},
    "-U --multiline-dotall": {"multiline": True, "dotall": True},
    "--crlf": {"crlf": True},
    "--crlf -x": {"crlf": True, "line": True},
    "-U --crlf": {"multiline": True, "crlf": True},
}
TEXTS: dict[str, bytes] = {
    "plain": b"foo\nbar\nfoo bar\n\nbarfoo foo_bar foo",
    "unicode": "éa Été ÉTÉ\nstraße STRASSE \u017ftraße\nK k \N{KELVIN SIGN}\n\u03c3 ς Σ ٣ 日\na\u0301b _a\n".encode(),
    "crlf": b"one\r\ntwo\rtwo\r\n\r\nfoo\n\rfoo\r\n",
    "broken": b"\xff foo \xc3\xa9\xa9 bar\nfoo\xe9bar\xffa\xc3\n a\xff \n",
    "odd": b"a.b*c [x] {1} $1 ^ \\d\naaa\tb  c\n0123456789\nx\n",
    "empty": b"",
    "blank": b"\n\n",
}
CORNERS = r"""
foo
foo|bar
foo$
^foo
^$
^
$
a*
x*
\bfoo\b
\Bfoo
foo\B
\<foo\>
\b{start}foo\b{end}
\b{start-half}f\w+\b{end-half}
(?-u:\b)foo
\w+
\W+
\d
(?-u)\d+
\s
\S+
.
..
(?s).+
(?-u:.)+
(?-u:\xff)
(?-u:[^a])
\xe9
\u{e9}t
é
(?i)été
(?i)k
(?i:s)tra
(?i)[^k]
(?i)ж
(?i)\x{3a3}
\pL+
\p{Greek}
\p{script=Han}
\p{gc:Nd}
\p{sc!=Latin}
\PL
\p{Lu}
(?i)\p{Lu}
\p{Alphabetic}
[[:alpha:]]+
[[:^alpha:]]
[a-z&&[^f]]+
[a-z--[o]]+
[a-f~~d-z]+
[\w--\d]+
[^\w\s]
[]a]
[^]a]
[-a]
[a-]
[--a]
[é-ü]
[^é]
[a&&b]
[\]\[]
[&a]
(foo)(bar)?
(?:foo)+
(?P<n>f)oo
(?<n>f)oo
fo{2}
fo{1,}
fo{ 1 , 2 }
(?:fo{2}){1}
o{2}?
o+?
(?U)o+
(?x) f o o
(?x)[ f ] o\ ?
(?i-i:F)oo|F
|foo
foo|
()
(|a)*
(|a)+
(a|b|)+
(?:a*)*
(?:a+|b)*?c
\.
\{1\}
\$1
\^
\-
\_
\t
\x41|\x2e
(?m-s)^.+$
(?R)foo$
(?R)two.
\r
\x{1F600}
[\r ]
a\|b
(?i)STRASSE
\b
\B
(?-u:\B)
\A\w
\w\z
""".strip().splitlines()


def ripgrep(pattern: str, folder: Path, flags: str) -> Found | None:
    """Return what ripgrep finds in every file of `folder`; None if it refuses the pattern."""
    command = [
        RG,
        "--json",
        "--no-config",
        "-a",
        "--encoding",
        "none",
        *flags.split(),
        "-e",
        pattern,
        ".",
    ]
    run = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if run.returncode == 2:
        return None
    found: Found = {}
    for line in run.stdout.splitlines():
        event = json.loads(line)
        if event["type"] == "match":
            data = event["data"]
            start, text = data["absolute_offset"], _bytes(data["lines"])
            spans = tuple(
                (start + span["start"], start + span["end"])
                for span in data["submatches"]
            )
            path = _bytes(data["path"]).decode().removeprefix("./")
            end = start + len(text.removesuffix(b"\n"))
            found.setdefault(path, []).append((data["line_number"], start, end, spans))
    return found


def _bytes(value: dict[str, str]) -> bytes:
    return (
        value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])
    )


def ours(pattern: str, texts: Mapping[str, bytes], flags: str) -> Found | None:
    """Return the same from our matcher; None if it refuses the pattern."""
    options = {"case": "sensitive"} | MODES[flags]
    try:
        matcher = Pattern(texts=(pattern,), **options).matcher()
    except BadPattern:
        return None
    found: Found = {}
    for name, data in texts.items():
        lines = [
            (line.number, line.start, line.end, line.spans)
            for line in matcher.lines(data, all_spans=True)
        ]
        assert matcher.search(data) == bool(lines)
        if lines:
            found[name] = lines
    return found


@pytest.fixture(scope="module")
def corners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corners")
    for name, data in TEXTS.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", ["", "-i", "-w", "-U", "-U --multiline-dotall", "--crlf"]
)
def test_the_corners_of_the_dialect_match_as_in_ripgrep(
    corners: Path, flags: str
) -> None:
    anchored = (
        "\\A",
        "\\z",
    )  # ripgrep shows no span for these on later lines; tested below by line
    patterns = [
        pattern for pattern in CORNERS if not any(mark in pattern for mark in anchored)
    ]
    different = [
        pattern
        for pattern in patterns
        if ripgrep(pattern, corners, flags) != ours(pattern, TEXTS, flags)
    ]
    assert not different


@pytest.mark.parametrize("pattern", [r"\A\w", r"\w\z", r"\Afoo\z"])
def test_text_anchors_hold_at_every_line_as_in_ripgrep(
    corners: Path, pattern: str
) -> None:
    theirs, mine = ripgrep(pattern, corners, ""), ours(pattern, TEXTS, "")
    assert theirs is not None
    assert mine is not None
    assert _numbers(theirs) == _numbers(mine)


def _numbers(found: Found) -> dict[str, list[int]]:
    return {name: [line[0] for line in lines] for name, lines in found.items()}


@pytest.mark.parametrize("flags", ["-c", "-c -w", "-c -i", "-c -x"])
def test_counted_lines_equal_ripgreps(corners: Path, flags: str) -> None:
    for pattern in [
        "foo",
        "o",
        "^",
        "a*",
        r"\bfoo\b",
        r"[é\s]",
        "foo$|bar",
        r"(?-u:\xff)",
    ]:
        command = [
            RG,
            "--no-config",
            "-a",
            "--include-zero",
            "--encoding",
            "none",
            *flags.split(),
            "-e",
            pattern,
            ".",
        ]
        run = subprocess.run(
            command, cwd=corners, capture_output=True, check=False, text=True
        )
        theirs = {
            line.split(":")[0].removeprefix("./"): int(line.split(":")[1])
            for line in run.stdout.splitlines()
        }
        options = {"case": "sensitive"} | MODES[
            " ".join(flag for flag in flags.split() if flag != "-c")
        ]
        matcher = Pattern(texts=(pattern,), **options).matcher()
        assert {name: matcher.count_lines(TEXTS[name]) for name in theirs} == theirs, (
            pattern
        )


def test_several_texts_match_as_several_expressions(tmp_path: Path) -> None:
    data = b"foo bar\nBAR foobar\n(a)\nnone\n"
    (tmp_path / "text").write_bytes(data)
    for options, flags in (
        ({"mode": "literal"}, ["-F"]),
        ({"word": True}, ["-w"]),
        ({}, ["-S"]),
    ):
        texts = ("foobar", "foo", "bar", "\\(a\\)" if "mode" not in options else "(a)")
        matcher = Pattern(
            texts=texts,
            **({"case": "smart" if flags == ["-S"] else "sensitive"} | options),
        ).matcher()
        command = [
            RG,
            "--no-config",
            "-o",
            "-b",
            "-N",
            *flags,
            *(word for text in texts for word in ("-e", text)),
        ]
        run = subprocess.run(
            [*command, "text"], cwd=tmp_path, capture_output=True, check=True
        )
        mine = [
            b"%d:%s" % (at, data[at:end])
            for line in matcher.lines(data, all_spans=True)
            for at, end in line.spans
        ]
        assert run.stdout.splitlines() == mine


LETTERS = [
    "a",
    "b",
    "k",
    "s",
    "K",
    "é",
    "É",
    "ß",
    "\u017f",
    "_",
    "-",
    " ",
    "1",
    "x",
    "日",
    "\u03c3",
    "ς",
    "٣",
    "\u0301",
    r"\.",
]
CLASSES = [
    r".",
    r"\w",
    r"\d",
    r"\s",
    r"\W",
    r"\D",
    r"\S",
    r"[a-z]",
    r"[^a]",
    r"[éa-k]",
    r"[\w--a]",
    r"[^\s]",
    r"[[:alpha:]_]",
    r"\pL",
    r"\p{Greek}",
    r"[^\x00-\x7f]",
    r"\P{L}",
]
BYTES = [
    r"(?-u:\xa9)",
    r"(?-u:[^a])",
    r"(?-u:\w)",
    r"(?-u:.)",
    r"\x{e9}",
    r"[a&&b]",
    r"(?s:.)",
    r"\r",
]
LOOKS = [
    r"\b",
    r"\B",
    r"^",
    r"$",
    r"\<",
    r"\>",
    r"\b{start-half}",
    r"\b{end-half}",
    r"(?-u:\b)",
    r"(?-u:\B)",
]
COUNTS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"]
GROUPS = ["({})", "(?:{})", "(?i:{})", "(?U:{})"]
PIECES = [*LETTERS[:-1], "\n", "\r\n", "aa", "ab", "foo", "\N{KELVIN SIGN}", "\t", "."]
STRAY = [b"\xff", b"\xc3", b"\xa9"]

atoms = (
    st.sampled_from(LETTERS)
    | st.sampled_from(CLASSES)
    | st.sampled_from(BYTES)
    | st.sampled_from(LOOKS)
)
patterns = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map("|".join)
        | st.builds(
            lambda group, body: group.format(body), st.sampled_from(GROUPS), inner
        )
        | st.builds(
            lambda body, count: f"(?:{body}){count}", inner, st.sampled_from(COUNTS)
        )
    ),
    max_leaves=10,
)
pieces = st.sampled_from([piece.encode() for piece in PIECES]) | st.sampled_from(STRAY)


def _settled(text: bytes) -> bytes:
    """Drop continuation bytes that start a line: ripgrep judges them with the line before, or without."""
    while b"\n\xa9" in text:
        text = text.replace(b"\n\xa9", b"\n")
    return text.lstrip(b"\xa9")


texts = st.lists(pieces, max_size=25).map(b"".join).map(_settled)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    pattern=patterns,
    flags=st.sampled_from(list(MODES)),
    corpus=st.lists(texts, min_size=1, max_size=8),
)
def test_any_pattern_matches_any_text_as_in_ripgrep(
    tmp_path_factory: pytest.TempPathFactory,
    pattern: str,
    flags: str,
    corpus: list[bytes],
) -> None:
    folder = tmp_path_factory.mktemp("made")
    named = {str(number): data for number, data in enumerate(corpus)}
    for name, data in named.items():
        (folder / name).write_bytes(data)
    assert ours(pattern, named, flags) == ripgrep(pattern, folder, flags)
    shutil.rmtree(folder)
