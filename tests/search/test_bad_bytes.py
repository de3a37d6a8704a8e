"""Text with bytes that are no UTF-8: what ripgrep finds in it, and where, is what we find, shown with U+FFFD."""

import base64
import json
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from flashgrep.base.model import Document
from flashgrep.files.extract import extract
from flashgrep.pattern import Pattern
from flashgrep.search.exact import ENCODED_FROM, Order, Question
from flashgrep.search.hits import make_hit
from tests.support.rankings import RANKINGS
from tests.support.truth import RG
from tests.support.workspace import opened, put

PARTS = [
    b"word", b"Word_2", b" ", b" ", b"x", "é".encode(), "É".encode(), "\u017f".encode(), "日".encode(), "😀".encode(),
    b"\xff", b"\xe9", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xed\xa0\x80", b"\xc0\xaf",
]  # fmt: skip
PATTERNS = [
    ("regex", "."), ("regex", "^..?$"), ("regex", r"\w+"), ("regex", r"\W"), ("regex", r"\bword"), ("regex", "[^x]x"),
    ("regex", r"word.x"), ("regex", r"(?-u:\xff)"), ("regex", r"(?-u:.)x"), ("literal", "é"), ("literal", "WORD"),
    ("literal", "\ufffd"), ("literal", "s"), ("regex", r"\p{Greek}|日"), ("regex", r"x$"), ("regex", r"^\W*word"),
]  # fmt: skip
Place = tuple[str, int, int, str]


def drawn_files() -> dict[str, bytes]:
    """Return files of random lines, most of them UTF-8 with damage."""
    chance = random.Random(5)
    lines = [
        b"".join(chance.choices(PARTS, k=chance.randint(0, 9))) for _ in range(300)
    ]
    return {
        f"{at}.txt": "été déjà là\n".encode() * 5 + b"\n".join(lines[at::10])
        for at in range(10)
    }


def theirs(root: Path, mode: str, text: str, *flags: str) -> set[Place]:
    """Return (file, line, first byte column, the line) of every matching line of ripgrep."""
    command = [
        str(RG),
        "--no-config",
        "--json",
        *(["-F"] if mode == "literal" else []),
        *flags,
        "-e",
        text,
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = set()
    for row in map(json.loads, done.stdout.splitlines()):
        if row["type"] == "match":
            data = row["data"]
            line = data["lines"].get("text", "").encode() or base64.b64decode(
                data["lines"]["bytes"]
            )
            shown = re.sub(
                "[\udc80-\udcff]", "\ufffd", line.decode("utf-8", "surrogateescape")
            )
            at = data["submatches"][0]["start"] + 1
            found.add(
                (
                    data["path"]["text"].removeprefix("./"),
                    data["line_number"],
                    at,
                    shown.removesuffix("\n"),
                )
            )
    return found


@pytest.mark.parametrize("order", ["path", "relevance"])
async def test_many_hits_as_json_are_those_that_few_are(
    root: Path, order: Order
) -> None:
    put(root, drawn_files())
    async with opened(root) as workspace:
        await workspace.refresh()
        pattern = Pattern(texts=(".",), mode="regex")
        question = Question(
            pattern=pattern, ranking=RANKINGS[order], limit=10_000, max_chars=1_000_000
        )
        plain = await workspace.search(question)
        encoded = await workspace.search(replace(question, as_json=True))
        assert len(plain.results) > ENCODED_FROM
        assert encoded.encoded is not None
        assert not encoded.results
        assert not encoded.ranks
        assert encoded.has_hits
        assert json.loads(encoded.encoded.json) == plain.results
        assert len(encoded.encoded) == len(plain.results)
        few = await workspace.search(
            replace(question, as_json=True, limit=ENCODED_FROM)
        )
        assert few.results == plain.results[:ENCODED_FROM]


async def test_lines_and_columns_are_ripgreps(root: Path) -> None:
    put(root, drawn_files())
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        hits = 0
        for mode, text in PATTERNS:
            for case, flags in (("sensitive", ()), ("insensitive", ("-i",))):
                pattern = Pattern(texts=(text,), mode=mode, case=case)  # type: ignore[arg-type]
                answer = await workspace.search(
                    Question(pattern=pattern, limit=10_000, max_chars=10**9)
                )
                ours = {
                    (
                        hit["file_path"],
                        hit["start_line"],
                        hit.get("byte_column", hit["column"]),
                        hit["text"],
                    )
                    for hit in answer.results
                }
                assert ours == theirs(root, mode, text, *flags), (mode, text, case)
                for hit in (
                    answer.results if "-u" not in text else ()
                ):  # the column counts what is shown
                    before = hit["text"][: hit["column"] - 1]
                    size = sum(
                        1 if each == "\ufffd" else len(each.encode()) for each in before
                    )
                    assert size == hit.get("byte_column", hit["column"]) - 1
                hits += len(ours)
        assert hits > 1_000


@pytest.mark.parametrize(
    ("data", "text", "column", "byte_column"),
    [
        ("café déjà\n".encode() + b"a\xffb here", "a\ufffdb here", 5, None),
        ("café\n".encode() + b"\xe2\x82\xc3\xa9 here", "\ufffd\ufffdé here", 5, 6),
        (b"caf\xe9 here", "café here", 6, None),
    ],
)
def test_a_hit_shows_bad_bytes_one_by_one(
    data: bytes, text: str, column: int, byte_column: int | None
) -> None:
    document = extract(data)
    assert isinstance(document, Document)
    match = next(
        iter(Pattern(texts=("here",), mode="literal").matcher().lines(document.data))
    )
    hit = make_hit({"file_path": "a.txt"}, document, match)
    assert (hit["text"], hit["column"], hit.get("byte_column")) == (
        text,
        column,
        byte_column,
    )
