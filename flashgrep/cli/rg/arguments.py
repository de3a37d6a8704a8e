"""ripgrep's command line, split into flags and positional words by ripgrep's own table of flags (``flags.tsv``)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Flag(NamedTuple):
    """One flag as given, by its long name; ``value`` is None where it takes none."""

    name: str
    value: str | None


@dataclass(slots=True)
class Arguments:
    """What was written; nothing here has looked at a disk."""

    flags: list[Flag] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words that the flags and their values were written with, in order."""
    positional: list[str] = field(default_factory=list)


@cache
def flag_table() -> tuple[dict[str, bool], dict[str, str]]:
    """Return whether each flag of ripgrep takes a value, by long name, and the long name of each letter."""
    takes_value: dict[str, bool] = {}
    letters: dict[str, str] = {}
    for line in (files(__package__) / "flags.tsv").read_text("utf-8").splitlines():
        name, letter, value = line.split("\t")
        takes_value[name] = bool(value)
        if letter:
            letters[letter] = name
    return takes_value, letters


def parse(argv: Sequence[str]) -> Arguments | None:
    """Return what the arguments say; None where ripgrep would refuse them, or knows a flag that our table does not."""
    found = Arguments()
    words = iter(argv)
    try:
        for word in words:
            if word == "--":
                found.positional.extend(words)
            elif word.startswith("-") and word != "-":
                found.words.append(word)
                (_take_long if word.startswith("--") else _take_letters)(found, word, words)
            else:
                found.positional.append(word)
    except (KeyError, ValueError, StopIteration):
        return None
    return found


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
        name, rest = letters[rest[0]], rest[1:]
        if not takes_value[name]:
            found.flags.append(Flag(name, None))
            continue
        if not rest:
            rest = next(following)
            found.words.append(rest)
        else:
            rest = rest.removeprefix("=")
        found.flags.append(Flag(name, rest))
        return
