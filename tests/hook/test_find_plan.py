"""A ``find`` for files as it is planned prints what find prints: the same paths in the same order."""

import os
import random

import pytest

from flashgrep.parts.hook.find_plan import plan
from tests.hook.project import FIND, LOCALES, Project
from tests.hook.test_grep_plan import project
from tests.support.rg_tree import commands

__all__ = ["project"]

PLANNED = r"""
. -type f -name *.py | -type f -name a.txt | . -name *.c -type f | sub -type f -name *.c | . -type f -iname *.PY
. -type f -path ./sub/* -name *.c | . -type f -name *.py -print | . -type f -name *.py -print0 | sub/ -type f -name one.c
. -type f -not -path ./.git/* -name *.log | . -type f ( -name *.py -o -name *.rs ) | . -type f ! -name *.txt -name *e.py
. -type f -name zzz | . -type f -name *.py -size -100k | . -name *.py -a -type f -a -not -empty | sub sub-y -type f -name *.rs
"""
UNCHANGED = r"""
. | . -name *.py | . -type d -name sub | . -type f -exec rm {} ; | . -type f -delete | . -maxdepth 1 -type f -name a.txt
-L . -type f -name a.txt | nope -type f -name x | . -type f -name [!a] | . -name sub -prune -o -type f -name a -print
.. -type f -name a | link-to-sub -type f -name *.c | . -type f,d -name a | . -name a -type f -print -o -name b -print
"""
TESTS = r"""
-name|*.py -name|*.c -name|a.txt -name|*e* -iname|*.PY -path|*/sub/* -path|./many/3/* -path|*deep* -size|-2k -empty
-name|*.log -name|.* -path|./.git/* -wholename|./sub/one.c -newer|a.txt -type|f -type|d -name|?.py -path|*/.hid/*
"""


@pytest.mark.parametrize("arguments", commands(PLANNED), ids=" ".join)
def test_common_finds_are_planned_and_print_the_same(
    project: Project, arguments: list[str]
) -> None:
    assert project.check(FIND, plan, arguments, project.root)


@pytest.mark.parametrize("arguments", commands(UNCHANGED), ids=" ".join)
def test_what_is_not_understood_runs_as_it_is(
    project: Project, arguments: list[str]
) -> None:
    cwd = os.fsencode(project.root)
    assert plan(arguments, cwd, project.snapshot, project.walker) is None


def draw(rng: random.Random) -> list[str]:
    """Return a random command line."""
    words = rng.choice(
        [".", ".", "", "sub", "sub/", "./many", ".git", "sub sub-y"]
    ).split()
    words += ["-type", "f"] if rng.random() < 0.8 else []
    for _ in range(rng.choice([1, 1, 2, 3])):
        if rng.random() < 0.25:
            words.append(rng.choice(["!", "-not"]))
        words += rng.choice(TESTS.split()).split("|")
        if rng.random() < 0.2:
            words += ["-o", "-name", "b.py"]
    if rng.random() < 0.3:
        words.append(rng.choice(["-print", "-print0"]))
    return words


def compare_drawn(project: Project, rng: random.Random, calls: int) -> int:
    """Compare random calls with find; return how many were planned."""
    planned = 0
    for _ in range(calls):
        locale = rng.choice(LOCALES)
        planned += project.check(FIND, plan, draw(rng), project.root, locale)
    return planned


@pytest.mark.slow
def test_drawn_finds_print_what_find_prints(project: Project) -> None:
    assert compare_drawn(project, random.Random(36), 150) > 30
