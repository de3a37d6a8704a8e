"""Reads what each tool prints, and compares it with a full scan by ripgrep."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.benchmarks.peer_tools import LETTERS, Form, Question, Syntax

LINE = re.compile(rb"^(.+?):(\d+):")
Places = set[tuple[bytes, int]]
"""Lines, each as a path relative to the tree and a number from 1."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How an answer differs from the full scan: lines, or files if the tool answers by blocks of a file."""

    missing: int
    extra: int
    expected: int

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self.missing or self.extra)

    def __str__(self) -> str:
        """Return it as words."""
        return f"{self.missing} missing, {self.extra} too many of {self.expected}"


def compare(answer: Places, expected: Places, form: Form) -> Difference:
    """Compare an answer with the full scan's; probe's blocks only by their files."""
    if form is Form.PROBE:
        answer = {(path, 0) for path, _ in answer}
        expected = {(path, 0) for path, _ in expected}
    return Difference(len(expected - answer), len(answer - expected), len(expected))


def scan(rg: Path, tree: Path, question: Question) -> Places:
    """Return what ripgrep finds on the disk now."""
    plain = ("-F",) if question.syntax is Syntax.LITERAL else ()
    letters = LETTERS.get(question.kind, ())
    command = [
        rg,
        "--no-config",
        "--no-heading",
        "-nH",
        *plain,
        *letters,
        "-e",
        question.text,
    ]
    done = subprocess.run(
        command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return read_places(done.stdout, Form.LINES, tree)


def scan_words(rg: Path, tree: Path, words: Sequence[str]) -> dict[str, Places]:
    """Return where ripgrep finds each of several words on the disk now, by one scan."""
    patterns = [part for word in words for part in ("-e", word)]
    done = subprocess.run(
        [rg, "--no-config", "--no-heading", "-nH", "-F", *patterns],
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    places: dict[str, Places] = {word: set() for word in words}
    for line in done.stdout.splitlines(keepends=True):
        for word in words:
            if os.fsencode(word) in line.partition(b":")[2]:
                places[word] |= read_places(line, Form.LINES, tree)
    return places


def read_places(printed: bytes, form: Form, tree: Path) -> Places:
    """Return the lines that a tool's output names."""
    prefix = os.fsencode(tree) + b"/"
    return {
        (path.removeprefix(prefix).removeprefix(b"./"), line)
        for path, line in READERS[form](printed)
    }


def _read_lines(printed: bytes) -> Places:
    places = set()
    for line in printed.splitlines():
        match = LINE.match(line)
        if match:
            places.add((match[1], int(match[2])))
    return places


def _read_socket(printed: bytes) -> Places:
    hits = [
        hit
        for page in printed.splitlines()
        for hit in json.loads(page)["result"]["results"]
    ]
    return {(os.fsencode(hit["file_path"]), hit["start_line"]) for hit in hits}


def _read_probe(printed: bytes) -> Places:
    start = printed.find(b"{")
    if start < 0:
        return set()
    blocks: list[Mapping[str, Any]] = json.JSONDecoder().raw_decode(
        printed[start:].decode()
    )[0]["results"]
    return {(os.fsencode(block["file"]), block["lines"][0]) for block in blocks}


READERS: Mapping[Form, Callable[[bytes], Places]] = {
    Form.LINES: _read_lines,
    Form.SOCKET: _read_socket,
    Form.PROBE: _read_probe,
}
