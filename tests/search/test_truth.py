"""Exact search against ripgrep: on drawn trees, before, during and after indexing, and while the tree changes."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.rankings import RANKINGS
from tests.support.truth import ripgrep
from tests.support.workspace import ask, opened, put, repository

pytestmark = pytest.mark.slow

WORDS = [
    "alpha",
    "Beta",
    "gamma_delta",
    "getHTTP",
    "x",
    "été",
    "\u017f",
    "Kelvin",
    "12",
    "foo(bar)",
    "a.b",
    "\t",
]
NAMES = [
    "a.py",
    "b.txt",
    "sub/c.py",
    "sub/deep/d.rs",
    "sub/.hidden",
    "ign/e.py",
    "name with space.py",
    "new\nline.c",
]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]
PATTERNS = [
    ("literal", "alpha"), ("literal", "Beta"), ("literal", "foo(bar)"), ("literal", "été"), ("literal", "x"),
    ("literal", "absent_everywhere"), ("regex", r"gamma_\w+"), ("regex", r"get[A-Z]+"), ("regex", r"^alpha|12$"),
    ("regex", r"a.b"), ("regex", r"\bx\b"), ("regex", r"(?i)KELVIN"), ("regex", r"[^a-z\s]+"),
    ("regex", r"alpha\s+Beta"), ("regex", r"(alpha|Beta).*\d{2}"), ("regex", "^$"),
]  # fmt: skip

lines = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
ends = st.sampled_from(["\n", "\r\n"])
texts = st.tuples(st.lists(lines, max_size=8), ends, st.booleans()).map(
    lambda drawn: drawn[1].join(drawn[0]) + (drawn[1] if drawn[2] else "")
)
contents = st.one_of(
    st.tuples(texts, st.sampled_from(ENCODINGS)).map(
        lambda drawn: drawn[0].encode(drawn[1], "replace")
    ),
    st.tuples(texts, st.binary(max_size=12)).map(
        lambda drawn: drawn[0].encode() + drawn[1]
    ),
)
trees = st.dictionaries(st.sampled_from(NAMES), contents, max_size=6)
rules = st.sampled_from(
    ["", "ign/\n", "*.py\n!a.py\n", "sub/*\n!sub/deep/\n", ".hidden\n"]
)


async def compare(
    workspace: Workspace, root: Path, patterns: list[tuple[str, str]]
) -> None:
    for mode, text in patterns:
        wanted = ripgrep(root, text, *(["-F"] if mode == "literal" else []))
        assert await ask(workspace, mode, text) == wanted, (mode, text)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    before=trees,
    after=trees,
    ignore=rules,
    gone=st.sets(st.sampled_from(NAMES)),
    patterns=st.lists(st.sampled_from(PATTERNS), min_size=3, max_size=4, unique=True),
)
async def test_hits_equal_ripgreps_before_and_after_indexing_and_after_changes(
    before: dict[str, bytes],
    after: dict[str, bytes],
    ignore: str,
    gone: set[str],
    patterns: list[tuple[str, str]],
) -> None:
    with repository() as root:
        put(root, before)
        async with opened(root) as workspace:
            await compare(workspace, root, patterns)
            await workspace.wait_indexed()
            await compare(workspace, root, patterns)
            put(root, after)
            (root / ".gitignore").write_text(ignore)
            for name in gone:
                (root / name).unlink(missing_ok=True)
            await compare(workspace, root, patterns)
            await workspace.wait_indexed()
            await compare(workspace, root, patterns)


async def test_the_index_and_the_slow_truth_agree_after_a_restart() -> None:
    with repository() as root:
        put(root, {name: f"{' '.join(WORDS)} {name}\n".encode() * 3 for name in NAMES})
        async with opened(root) as workspace:
            await workspace.wait_indexed()
        put(
            root,
            {
                "a.py": b"alpha changed while nobody looked\n",
                "fresh.py": b"Beta is new\n",
            },
        )
        (root / "b.txt").unlink()
        async with opened(root) as workspace:
            for mode, text in PATTERNS:
                assert await ask(workspace, mode, text) == await ask(
                    workspace, mode, text, use_index=False
                )
            await compare(workspace, root, PATTERNS)


@pytest.mark.parametrize("order", ["path", "relevance"])
@pytest.mark.parametrize(
    "pattern",
    [
        Pattern(texts=("alpha",), mode="literal"),
        Pattern(texts=(r"alp\w+|gamma",), mode="regex"),
        Pattern(texts=(r"alpha\ngamma",), mode="regex", multiline=True),
        Pattern(texts=(r"alpha$\s",), mode="regex", multiline=True),
    ],
)
async def test_a_full_page_knows_how_many_hits_there_are_in_all(
    pattern: Pattern, order: Literal["path", "relevance"]
) -> None:
    with repository() as root:
        text = b"alpha\ngamma alpha alpha\n\nalpha\nalpha\nend"
        put(
            root,
            {f"{number % 7}/{number}.py": text * (number % 5) for number in range(150)},
        )
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            question = Question(
                pattern=pattern, ranking=RANKINGS[order], limit=100_000, max_chars=10**9
            )
            everything = await workspace.search(question)
            for limit in (1, 30, 250):
                page = await workspace.search(replace(question, limit=limit))
                assert (len(page.results), page.total) == (
                    limit,
                    len(everything.results),
                )
