"""A ripgrep command line parsed with ripgrep's own table of flags (``flags.tsv``), and what each flag means for a plan.

A call that cannot be planned raises ``Unplannable``: ripgrep then runs as it was called, and reports in its own words
what is wrong.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from flashgrep.base.errors import InvalidParams
from flashgrep.pattern import Pattern

_HARMLESS = """
after-context before-context block-buffered byte-offset color colors column context context-separator count
count-matches field-context-separator field-match-separator files-with-matches heading line-buffered line-number
max-columns max-columns-preview max-count messages mmap null only-matching path-separator pretty quiet replace sort
sort-files sortr threads trim vimgrep with-filename no-block-buffered no-byte-offset no-column no-config
no-context-separator no-filename no-heading no-line-buffered no-line-number no-max-columns-preview no-messages no-mmap
no-sort-files no-trim ignore ignore-dot ignore-exclude ignore-files ignore-global ignore-parent ignore-vcs no-binary
no-encoding no-follow no-include-zero no-invert-match no-json no-multiline no-multiline-dotall no-pcre2
no-pre no-search-zip no-stats no-text require-git
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Flags that change neither which files are searched nor which lines match (or restore what is the default)."""
COVER = frozenset(
    [
        "glob",
        "hidden",
        "iglob",
        "no-hidden",
        "max-depth",
        "type",
        "type-add",
        "type-not",
    ]
)
"""Flags that change which files are searched, as ``cover`` has it."""
PATTERN_FLAGS: dict[str, dict[str, object]] = {
    "case-sensitive": {"case": "sensitive"},
    "ignore-case": {"case": "insensitive"},
    "smart-case": {"case": "smart"},
    "word-regexp": {"word": True, "line": False},
    "line-regexp": {"word": False, "line": True},
    "fixed-strings": {"mode": "literal"},
    "no-fixed-strings": {"mode": "regex"},
    "crlf": {"crlf": True},
    "no-crlf": {"crlf": False},
}
"""Flags that change what matches, and the member of a pattern that each sets; the last one given holds. Multi-line
searches are not planned: they read on after a NUL byte, where the index of a text ends."""


PLANNED = (
    HARMLESS
    | COVER
    | PATTERN_FLAGS.keys()
    | {"regexp", "file", "search-zip", "max-count"}
)


LEAST_ROOM = 96 * 1024
"""Bytes, of a client that does not say: Linux allows 128 KiB with any limit on the stack, its environment included."""


class Unplannable(Exception):
    """The call has to run unchanged."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of ``fgrep rg``."""

    argv: Sequence[str]
    cwd: bytes
    config: str | None
    """The file that RIPGREP_CONFIG_PATH names."""
    readable_input: bool
    """Whether standard input is a pipe, a file or a socket: ripgrep searches that where no path is given."""
    room: int = LEAST_ROOM
    """Bytes of arguments that the client can run a program with, ``WORD_OVERHEAD`` included."""


class Flag(NamedTuple):
    """One flag as given, by its long name; ``value`` is None where it takes none."""

    name: str
    value: str | None


@dataclass(slots=True)
class Arguments:
    """The parsed command line; nothing here has touched the disk."""

    flags: list[Flag] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words that the flags and their values were written with, in order."""
    positional: list[str] = field(default_factory=list)


@cache
def flag_table() -> tuple[dict[str, bool], dict[str, str]]:
    """Return which ripgrep flags take a value, by long name, and the long name of each short flag."""
    takes_value: dict[str, bool] = {}
    letters: dict[str, str] = {}
    for line in (files(__package__) / "flags.tsv").read_text("utf-8").splitlines():
        name, letter, value = line.split("\t")
        takes_value[name] = bool(value)
        if letter:
            letters[letter] = name
    return takes_value, letters


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        Unplannable: ripgrep would reject it, or it has a flag that our table lacks.

    """
    arguments = Arguments()
    words = iter(argv)
    try:
        for word in words:
            if word == "--":
                arguments.positional.extend(words)
            elif word.startswith("-") and word != "-":
                # "-" alone is standard input, a path.
                arguments.words.append(word)
                (_take_long if word.startswith("--") else _take_letters)(
                    arguments, word, words
                )
            else:
                arguments.positional.append(word)
    except (KeyError, ValueError, StopIteration):
        raise Unplannable from None
    return arguments


def _take_long(found: Arguments, word: str, following: Iterator[str]) -> None:
    name, equals, value = word[2:].partition("=")
    if not flag_table()[0][name]:
        if equals:
            raise ValueError(word)
        found.flags.append(Flag(name, None))
        return
    if not equals:
        value = next(following)
        found.words.append(value)
    found.flags.append(Flag(name, value))


def _take_letters(found: Arguments, word: str, following: Iterator[str]) -> None:
    takes_value, letters = flag_table()
    rest = word[1:]
    while rest:
        name = letters[rest[0]]
        rest = rest[1:]
        if not takes_value[name]:
            found.flags.append(Flag(name, None))
            continue
        if not rest:
            rest = next(following)
            found.words.append(rest)
        else:
            # ripgrep takes -A=2 as well as -A2.
            rest = rest.removeprefix("=")
        found.flags.append(Flag(name, rest))
        return


def read_arguments(call: Call) -> Arguments:
    """Return the call's arguments after those of ripgrep's configuration file, if there is one.

    Raises:
        Unplannable: the file has a flag that a plan cannot honour.
        OSError, ValueError: the configuration cannot be read.

    """
    arguments = parse(call.argv)
    if call.config and not any(flag.name == "no-config" for flag in arguments.flags):
        lines = Path(os.fsdecode(call.cwd), call.config).read_text("utf-8").splitlines()
        stripped = [line.strip() for line in lines]
        # In front, so that the command line's flags come later and win.
        arguments = parse(
            [
                *(line for line in stripped if line and not line.startswith("#")),
                *call.argv,
            ]
        )
    check_flags(arguments)
    return arguments


def check_flags(arguments: Arguments) -> None:
    """Check that a plan honours every flag.

    Raises:
        Unplannable: one changes what is searched, or what matches, in another way.

    """
    for flag in arguments.flags:
        # With --max-count 0 ripgrep searches nothing.
        if flag.name not in PLANNED or (flag.name == "max-count" and flag.value == "0"):
            raise Unplannable


def read_room(params: Mapping[str, Any]) -> int:
    """Return the room for arguments that a client has, as it says.

    Raises:
        InvalidParams: it says no number.

    """
    room = params.get("room", LEAST_ROOM)
    if not isinstance(room, int):
        raise InvalidParams("room: a number of bytes is required")
    return room


def read_patterns(flags: Sequence[Flag], cwd: bytes) -> list[str]:
    """Return the patterns that flags give.

    Raises:
        Unplannable: one is in a file that should not be read here, as a pipe, which can be read only once.
        OSError, ValueError: one is in a file that cannot be read.

    """
    texts = []
    for flag in flags:
        if flag.name == "regexp":
            texts.append(flag.value or "")
        elif flag.name == "file":
            path = Path(os.fsdecode(cwd), flag.value or "")
            if not path.is_file() or _is_of_a_process(path):
                raise Unplannable
            lines = path.read_text("utf-8").split("\n")
            texts += [
                line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])
            ]
            if not texts:  # no pattern at all: nothing matches
                raise Unplannable
    return texts


def _is_of_a_process(path: Path) -> bool:
    """Return whether a path may name something else in another process; in /dev/shm are files."""
    top = path.parts[1:3]
    if top == ("dev", "shm"):
        return False
    return top[:1] in {("dev",), ("proc",)}


def make_pattern(flags: Sequence[Flag], texts: Sequence[str]) -> Pattern:
    """Return the pattern that ripgrep would search for."""
    set_by_flags: dict[str, Any] = {"mode": "regex", "case": "sensitive"}
    for flag in flags:
        set_by_flags.update(PATTERN_FLAGS.get(flag.name, {}))
    return Pattern(texts=tuple(texts), **set_by_flags)
