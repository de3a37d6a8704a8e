"""Exact search against ripgrep on real code: the standard library and packages, by patterns of their own text.

``scripts/fuzz`` runs the same with fresh seeds for as long as it is given.
"""

import random
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from flashgrep.base.model import path_from_json
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.truth import RG, Found, ripgrep
from tests.support.workspace import opened, repository

pytestmark = pytest.mark.slow

STDLIB = (
    "asyncio",
    "email",
    "encodings",
    "json",
    "http",
    "idlelib",
    "lib2to3",
    "test/test_email",
    "xml",
)
PACKAGES = (
    "pip/_vendor",
    "pydantic",
    "anyio",
    "numpy/_core",
    "pygments/styles",
    "hypothesis",
)
MOST_BYTES = 8 << 20
"""Text of one tree: a scan of it takes some 20 ms."""

PATTERNS = 60
SEED = 20261
WHOLE_TREE = 10**6
"""More hits than the trees have lines."""

MANY_HITS = 5_000
"""A pattern with more of them says little for its time."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A pattern drawn from a text."""

    text: str
    regex: bool = False
    insensitive: bool = False
    word: bool = False

    def pattern(self) -> Pattern:
        """Return it in our terms."""
        return Pattern(
            texts=(self.text,),
            mode="regex" if self.regex else "literal",
            case="insensitive" if self.insensitive else "sensitive",
            word=self.word,
        )

    def flags(self) -> list[str]:
        """Return ripgrep's options for it."""
        given = (("-F", not self.regex), ("-i", self.insensitive), ("-w", self.word))
        return [flag for flag, on in given if on]


def _piece(rng: random.Random, line: str) -> str:
    length = rng.choice([1, 2, 3, 4, 5, 8, 13, 30])
    start = rng.randrange(max(1, len(line) - length))
    return line[start : start + length]


def _loosened(rng: random.Random, line: str) -> str:
    """Make a regex of a line by putting something wider in the place of some of its parts."""
    parts = re.findall(r"\w+|\s+|[^\w\s]", _piece(rng, line) or line)
    wide = {
        "word": [
            r"\w+",
            r"[a-z_]+",
            r"[A-Za-z]\w*",
            ".*",
            r"\S+",
            "(?:{}|zzz)",
            "(?i:{})",
            "{}?",
            "\\b{}",
            r"[^\s(]+",
        ],
        "space": [r"\s+", r"\s*", "[ \t]+", " "],
        "other": [".", "{}", r"\W", "(?:{})+"],
    }
    out = []
    for part in parts:
        kind = (
            "space"
            if part.isspace()
            else "word"
            if re.fullmatch(r"\w+", part)
            else "other"
        )
        keep = re.escape(part)
        out.append(
            rng.choice(wide[kind]).replace("{}", keep) if rng.random() < 0.4 else keep
        )
    edges = rng.random()
    return ("^" if edges < 0.1 else "") + "".join(out) + ("$" if edges > 0.9 else "")


def draw(rng: random.Random, lines: list[str]) -> Drawn:
    """Draw one pattern from the lines of a tree."""
    line = rng.choice(lines)
    kind = rng.randrange(7)
    if kind <= 1:
        return Drawn(_piece(rng, line), insensitive=kind == 1)
    if kind == 2:
        words = re.findall(r"\w+", line) or ["self"]
        return Drawn(
            rng.choice(words), word=rng.random() < 0.7, insensitive=rng.random() < 0.3
        )
    if kind == 3:
        return Drawn(_piece(rng, line).swapcase(), insensitive=True)
    if kind == 4:
        pieces = [
            re.escape(_piece(rng, rng.choice(lines)))
            for _ in range(rng.randrange(2, 4))
        ]
        return Drawn("|".join(pieces), regex=True, insensitive=rng.random() < 0.3)
    return Drawn(
        _loosened(rng, line),
        regex=True,
        insensitive=rng.random() < 0.2,
        word=rng.random() < 0.1,
    )


def copy_some(base: Path, folders: tuple[str, ...], root: Path) -> None:
    """Copy source files of some folders, up to MOST_BYTES."""
    left = MOST_BYTES
    for folder in folders:
        for file in sorted((base / folder).rglob("*")):
            if (
                not file.is_file()
                or file.suffix in {".so", ".pyc", ".a"}
                or (left := left - file.stat().st_size) < 0
            ):
                continue
            place = root / file.relative_to(base)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)


def lines_of(root: Path, names: str = "*.py") -> list[str]:
    """Return the lines patterns are drawn from: those with something to look for."""
    found: list[str] = []
    for file in sorted(
        file
        for file in root.rglob(names)
        if file.is_file() and ".git" not in file.parts
    ):
        found += [
            line
            for line in file.read_text("utf-8", "replace").splitlines()
            if len(line.strip()) > 3 and "\0" not in line
        ]
    return found


def counted(root: Path, drawn: Drawn) -> int:
    """Return how many lines ripgrep counts."""
    command = [
        str(RG),
        "--no-config",
        "-c",
        "--no-filename",
        *drawn.flags(),
        "-e",
        drawn.text,
    ]
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False
    )
    return sum(map(int, done.stdout.split()))


async def hits(workspace: Workspace, drawn: Drawn, *, use_index: bool) -> Found:
    """Return (path, line) of all hits."""
    question = Question(
        pattern=drawn.pattern(),
        limit=WHOLE_TREE,
        max_chars=1 << 40,
        use_index=use_index,
    )
    answer = await workspace.search(question)
    assert answer.complete
    assert answer.next is None
    found = {
        (
            path_from_json(hit["file_path"], hit.get("file_path_bytes")),
            hit["start_line"],
        )
        for hit in answer.results
    }
    assert answer.total == len(found) == len(answer.results)
    return found


async def differences(workspace: Workspace, root: Path, drawn: Drawn) -> list[str]:
    """Return, for each way of answering that is not ripgrep's, what differs."""
    if counted(root, drawn) > MANY_HITS:
        return []
    wanted = ripgrep(root, drawn.text, *drawn.flags())
    found = {use: await hits(workspace, drawn, use_index=use) for use in (True, False)}
    return [
        f"{drawn} use_index={use}: missed {sorted(wanted - got)[:5]}, too many {sorted(got - wanted)[:5]}"
        for use, got in found.items()
        if got != wanted
    ]


@pytest.mark.parametrize(
    ("base", "folders"),
    [(sysconfig.get_path("stdlib"), STDLIB), (sysconfig.get_path("purelib"), PACKAGES)],
    ids=["standard library", "packages"],
)
async def test_patterns_of_a_real_trees_own_text_find_what_ripgrep_finds(
    base: str, folders: tuple[str, ...]
) -> None:
    with repository() as root:
        copy_some(Path(base), folders, root)
        lines = lines_of(root)
        assert len(lines) > 5_000
        rng = random.Random(SEED)
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            assert await workspace.refresh()
            for _ in range(PATTERNS // 2):
                assert await differences(workspace, root, draw(rng, lines)) == []
