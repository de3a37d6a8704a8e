"""``find`` for files by name: find itself, on the files that its tests do not rule out and on all that is not covered.

Only expressions that no folder, link or device can satisfy are planned, which ``-type f`` brings about. What find prints
of a file named as a starting point is what it prints of one that it meets on its way; options that count depths, follow
links, prune or run programs are not planned.
"""

import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from flashgrep.base.errors import FlashgrepError
from flashgrep.files.walk import Walker
from flashgrep.parts.hook.below import (
    Entry,
    check_cover,
    check_size,
    find_entries,
    locate,
)
from flashgrep.parts.hook.grep_plan import FEW, NO_FILE, Plan
from flashgrep.parts.hook.name_globs import check_glob, matches
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.search.snapshot import Snapshot

MOST_FILES: Final = 20_000
"""Below the starting points: each is judged, in about 3 µs."""
ACTIONS: Final = frozenset({"-print", "-print0"})
UNKNOWN: Final = frozenset({"-size", "-newer", "-mtime", "-mmin", "-perm", "-user"})
"""Tests with a value that find itself judges."""
GLOBS: Final = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename"})


class Subject(NamedTuple):
    """What an expression is asked about: a file, anything but a file (no path), or all that is below a folder."""

    path: bytes
    is_file: bool
    is_below: bool = False


class Node(Protocol):
    """A part of an expression."""

    def judge(self, subject: Subject) -> bool | None:
        """Return whether it is true of a subject; None: it may be."""


class Leaf(NamedTuple):
    """One test with its value."""

    name: str
    value: str

    def judge(self, subject: Subject) -> bool | None:
        """Return whether it is true of a subject; None: it may be."""
        if self.name == "-type":
            if subject.is_below:
                return None
            if subject.is_file or self.value == "f":
                return subject.is_file and self.value == "f"
            return None
        if self.name not in GLOBS or not subject.path:
            return None
        if subject.path.isascii():
            return self._judge_path(subject)
        # What a wildcard matches of other names depends on the locale.
        return None

    def _judge_path(self, subject: Subject) -> bool | None:
        glob = os.fsencode(self.value)
        ignores_case = self.name.startswith("-i")
        text = subject.path
        if self.name in {"-name", "-iname"}:
            if subject.is_below:
                return None
            text = text.rpartition(b"/")[2]
        elif subject.is_below:
            # Of all paths below a folder only the beginning is known.
            is_open = glob.endswith(b"*")
            if is_open and matches(glob, text + b"/", ignores_case=ignores_case):
                return True
            return None
        return matches(glob, text, ignores_case=ignores_case)


class Not(NamedTuple):
    """What is true where another is not."""

    inner: Node

    def judge(self, subject: Subject) -> bool | None:
        """Return whether it is true of a subject; None: it may be."""
        answer = self.inner.judge(subject)
        if answer is None:
            return None
        return not answer


class Every(NamedTuple):
    """True where all are; or, with ``any_of``, where one is."""

    inner: tuple[Node, ...]
    any_of: bool = False

    def judge(self, subject: Subject) -> bool | None:
        """Return whether it is true of a subject; None: it may be."""
        answers = [node.judge(subject) for node in self.inner]
        if self.any_of in answers:
            return self.any_of
        if None in answers:
            return None
        return not self.any_of


class FindArguments(NamedTuple):
    """A parsed command line."""

    starts: list[str]
    expression: list[str]
    tests: Node


def parse(argv: Sequence[str]) -> FindArguments:
    """Parse a command line.

    Raises:
        Unplannable: it has an option, a test or an action that no plan honours.

    """
    count = 0
    while count < len(argv) and not (argv[count][:1] == "-" or argv[count] in "()!"):
        count += 1
    expression = list(argv[count:])
    tests = list(expression)
    # Without actions every match is printed, as by one at the end.
    if tests and tests[-1] in ACTIONS:
        del tests[-1]
        if any(word in {"-o", "-or"} for word in tests):
            raise Unplannable
    if not tests:
        raise Unplannable
    reader = _Reader(tests)
    node = reader.read_any()
    if reader.words:
        raise Unplannable
    return FindArguments([*argv[:count]], expression, node)


class _Reader:
    """Reads an expression: alternatives of sequences of tests."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def read_any(self) -> Node:
        alternatives = [self._read_every()]
        while self.words and self.words[0] in {"-o", "-or"}:
            del self.words[0]
            alternatives.append(self._read_every())
        return Every(tuple(alternatives), any_of=True)

    def _read_every(self) -> Node:
        nodes = [self._read_one()]
        while self.words and self.words[0] not in {"-o", "-or", ")"}:
            if self.words[0] in {"-a", "-and"}:
                del self.words[0]
            nodes.append(self._read_one())
        return Every(tuple(nodes))

    def _read_one(self) -> Node:
        if not self.words:
            raise Unplannable
        word = self.words.pop(0)
        if word in {"!", "-not"}:
            return Not(self._read_one())
        if word == "(":
            node = self.read_any()
            if not self.words or self.words.pop(0) != ")":
                raise Unplannable
            return node
        if word == "-empty":
            return Leaf(word, "")
        if not self.words or word not in GLOBS | UNKNOWN | {"-type"}:
            raise Unplannable
        value = self.words.pop(0)
        if word == "-type" and value not in set("fdlpsbc"):
            raise Unplannable
        if word in GLOBS:
            # Slashes are plain characters to find; in a name they never match.
            check_glob(value.replace("/", "") or "x")
        return Leaf(word, value)


def finds_files_alone(arguments: FindArguments) -> bool:
    """Return whether nothing but a file can match."""
    return arguments.tests.judge(Subject(b"", is_file=False)) is False


def plan(
    argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker
) -> Plan | None:
    """Return what to give to find in place of these arguments; None: these as they are."""
    try:
        return _plan(argv, cwd, snapshot, walker)
    except (Unplannable, FlashgrepError, OSError, ValueError):
        return None


def _plan(argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker) -> Plan:
    arguments = parse(argv)
    check_cover(snapshot, walker)
    if not finds_files_alone(arguments):
        raise Unplannable
    entries: list[Entry] = []
    searched = 0
    for start in map(os.fsencode, arguments.starts or ["."]):
        below = locate(start, cwd, snapshot, walker)
        files = snapshot.table.below(below.inside)
        searched += len(files)
        if searched > MOST_FILES:
            raise Unplannable
        rules = _Rules(arguments.tests, below.prefix)
        entries += find_entries(below, files, snapshot, rules)
    if len(entries) > max(FEW, searched // 4):
        raise Unplannable
    check_size(entries)
    names = [entry.path for entry in entries] or [NO_FILE]
    if any(name.startswith(b"-") for name in names):
        raise Unplannable
    words = [*names, *map(os.fsencode, arguments.expression)]
    return Plan(words, max(0, searched - len(entries)))


class _Rules:
    """Which entries below a starting point may be printed."""

    def __init__(self, tests: Node, prefix: bytes) -> None:
        self._tests = tests
        self._prefix = prefix

    def has_file(self, path: bytes) -> bool:
        subject = Subject(self._prefix + path, is_file=True)
        return self._tests.judge(subject) is not False

    def enters(self, path: bytes) -> bool:
        subject = Subject(self._prefix + path, is_file=False, is_below=True)
        return self._tests.judge(subject) is not False
