"""Ignore files of thousands of patterns: exact as short ones, bounded in memory and time, and what is cut is told."""

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flashgrep.files.ignore import (
    MAX_PATTERNS,
    MAX_RULES_FILE,
    MAX_SHARING,
    RuleSet,
    read_rules,
)
from flashgrep.files.rule_dialects import GIT_RULES, RIPGREP_RULES, Rule, RuleDialect
from flashgrep.files.walk import Walker
from flashgrep.files.wildcard import BadGlob, compile_matcher
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.rg_tree import RG

pytestmark = pytest.mark.slow

ATOMS = (
    *"aab",
    "ab",
    "*",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "\\*",
    "/",
    "/",
    "**",
    "**/",
    "/**",
    ".c",
    "{a,b}",
    "{a}",
)
NAMES = ("a", "b", "ab", "aab", "a.c", "b.c", "*", "ba")


def random_line(rng: random.Random) -> str:
    sign, end = rng.choice(["", "", "!"]), rng.choice(["", "", "", "/"])
    return sign + "".join(rng.choice(ATOMS) for _ in range(rng.randint(1, 5))) + end


def compiled(
    rules: list[Rule], dialect: RuleDialect
) -> Iterator[tuple[Rule, Callable[[bytes], bool]]]:
    """Yield the rules that can be read, each with what says whether it matches, the last first."""
    for rule in reversed(rules):
        with contextlib.suppress(BadGlob):
            yield rule, compile_matcher([dialect.translate(rule.glob)])


@pytest.mark.parametrize("dialect", [GIT_RULES, RIPGREP_RULES])
@pytest.mark.parametrize("seed", range(6))
def test_the_tables_say_what_the_rules_say_one_by_one(
    seed: int, dialect: RuleDialect
) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        rules = list(
            dialect.parse(
                "\n".join(random_line(rng) for _ in range(rng.randint(1, 25))).encode()
            )
        )
        tables, one_by_one = RuleSet(rules, dialect), list(compiled(rules, dialect))
        for _ in range(60):
            name = rng.choice(NAMES).encode()
            folder = b"/".join(
                rng.choice(NAMES).encode() for _ in range(rng.randint(0, 3))
            )
            path = folder + b"/" + name if folder else name
            is_dir = rng.random() < 0.5
            wanted = next(
                (
                    rule.ignores
                    for rule, matches in one_by_one
                    if (is_dir or not rule.folders_only)
                    and matches(path if rule.by_path else name)
                ),
                None,
            )
            assert tables.verdict(path, name, is_dir) == wanted, (rules, path, is_dir)
            mentioned = set(
                tables.find_mentions(
                    folder, [name, b"other"], b"\0" + name + b"\0\0other\0"
                )
            )
            assert wanted is None or name in mentioned, (rules, path)


def test_a_long_file_leaves_the_files_that_ripgrep_leaves(tmp_path: Path) -> None:
    rng = random.Random(5)
    (tmp_path / ".git").mkdir()
    for _ in range(400):
        folder = tmp_path.joinpath(
            *(rng.choice(NAMES) + "d" for _ in range(rng.randint(0, 2)))
        )
        folder.mkdir(parents=True, exist_ok=True)
        (
            folder / (rng.choice(NAMES) + rng.choice(NAMES) + str(rng.randrange(10)))
        ).touch()
    odd = [f"{random_line(rng)}{at % 10}" for at in range(300)]
    many = [f"{'!' * (at % 2)}*{at:x}*q" for at in range(300)] + [
        f"x{at}*" for at in range(4000)
    ]
    lines = [
        line for line in odd + many if "{" not in line
    ]  # git's dialect has no braces
    rng.shuffle(lines)
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    theirs = subprocess.run(
        [RG, "--files"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    walker = Walker(os.fsencode(tmp_path))
    assert sorted(os.fsdecode(entry.path) for entry in walker.walk()) == sorted(
        theirs.splitlines()
    )
    assert 0 < len(theirs.splitlines()) < 400
    assert walker.unused_rules() == ""


MEASURE = """
import resource, sys
from flashgrep.files.walk import Walker
list(Walker(sys.argv[1].encode()).walk())  # what is imported, and the tree without the rules
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import os; os.rename(sys.argv[1] + "/rules", sys.argv[1] + "/.gitignore")
list(Walker(sys.argv[1].encode()).walk())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("pattern", ["a{0}*b{0:x}", "s/{0:x}d/*.log", "!*.{0}\n*.{0}x"])
def test_fifty_thousand_patterns_take_less_than_100_mb(
    tmp_path: Path, pattern: str
) -> None:
    (tmp_path / ".git").mkdir()
    for folder in range(20):
        (tmp_path / "s" / f"{folder:x}d").mkdir(parents=True)
        for at in range(20):
            (tmp_path / "s" / f"{folder:x}d" / f"a{at}b{folder}.py").touch()
    (tmp_path / "rules").write_text(
        "\n".join(pattern.format(at) for at in range(50_000))
    )
    begun = time.monotonic()
    said = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(said.stdout) < 100
    assert time.monotonic() - begun < 30


def rules_of(tmp_path: Path, text: bytes) -> RuleSet | None:
    file = tmp_path / ".gitignore"
    file.write_bytes(text)
    return read_rules(os.fsencode(file))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a" * 1_000_000 + b"\nb\n", "1 of 2 patterns used"),
        (
            b"b\n" + b"".join(b"%d\n" % at for at in range(MAX_PATTERNS + 8)),
            "200,000 of 200,009 patterns used",
        ),
        (
            b"b\n" + b"".join(b"*a%d*\n" % at for at in range(MAX_SHARING + 9)),
            "1,001 of 1,010 patterns used",
        ),
    ],
)
def test_what_is_cut_is_reported_and_the_rest_holds(
    tmp_path: Path, text: bytes, told: str
) -> None:
    rules = rules_of(tmp_path, text)
    assert rules is not None
    assert rules.cut == told
    assert rules.verdict(b"b", b"b", False) is True


@pytest.mark.parametrize(
    "text",
    [
        b"b\n!" + b"*" * 5000 + b"b\n",
        b"b\n" + b"".join(b"!*a%d*\n" % at for at in range(MAX_SHARING + 9)),
        b"b\n" + b"".join(b"%d\n" % at for at in range(MAX_PATTERNS)) + b"!b\n",
        b"b\n" + b"#" * MAX_RULES_FILE,
    ],
)
def test_a_cut_hides_nothing(tmp_path: Path, text: bytes) -> None:
    rules = rules_of(tmp_path, text)
    assert rules is not None
    assert rules.cut
    assert rules.verdict(b"b", b"b", False) is None


def test_a_repeated_line_counts_once_and_where_it_stands_last(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, b"*.o\n!a.o\n" * 5000 + b"*.o\n")
    assert rules is not None
    assert (rules.cut, rules.verdict(b"a.o", b"a.o", False)) == ("", True)


def test_an_answer_says_which_rules_were_not_used(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(
        {
            "sub/.gitignore": "a" * 5000 + "\nb.txt\n",
            "sub/a.txt": "needle",
            "sub/b.txt": "needle",
        }
    )
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as wire:
        coverage = wire.call("query", text="needle")["coverage"]
        assert coverage["complete"]
        assert "sub/.gitignore: 1 of 2 patterns used" in coverage["detail"]
        (root / "sub" / ".gitignore").write_text("b.txt\n")
        coverage = wire.call("query", text="needle")["coverage"]
        assert "patterns used" not in coverage.get("detail", "")
