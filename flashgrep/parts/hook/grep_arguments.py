"""A command line of GNU grep, parsed: which flags a plan honours, and what they mean for the files and the pattern.

Anything else raises ``Unplannable``: grep then runs as it was called, and reports in its own words what is wrong.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from flashgrep.parts.hook.gnu_pattern import Dialect, is_heavy, widen
from flashgrep.parts.hook.name_globs import check_glob, has_name, has_path
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.pattern import Pattern

LETTERS: Final[Mapping[str, str]] = {
    **dict.fromkeys("nHhloqsbZTUaIu0123456789z", "harmless"),
    **dict.fromkeys("wx", "harmless"),
    "i": "ignore-case",
    "y": "ignore-case",
    "r": "recursive",
    "R": "dereference-recursive",
    "E": "extended-regexp",
    "F": "fixed-strings",
    "G": "basic-regexp",
    "P": "perl-regexp",
}
"""Short flags without a value. Not planned: -v, -L and -c speak of files without a match."""
LETTERS_WITH_VALUE: Final[Mapping[str, str]] = {
    **dict.fromkeys("ABC", "harmless"),
    "m": "max-count",
    "e": "regexp",
    "f": "file",
}
_LONG_HARMLESS: Final = """
line-number with-filename no-filename files-with-matches only-matching quiet silent no-messages byte-offset null
initial-tab binary text null-data word-regexp line-regexp line-buffered color colour no-group-separator
"""
_LONG_PLANNED: Final = """
ignore-case no-ignore-case recursive dereference-recursive extended-regexp fixed-strings basic-regexp perl-regexp
"""
_VALUE_HARMLESS: Final = """
after-context before-context context group-separator color colour binary-files
"""
_VALUE_PLANNED: Final = """
max-count regexp file include exclude exclude-dir
"""
LONG: Final[Mapping[str, str]] = {
    **dict.fromkeys(_LONG_HARMLESS.split(), "harmless"),
    **{name: name for name in _LONG_PLANNED.split()},
}
LONG_WITH_VALUE: Final[Mapping[str, str]] = {
    **dict.fromkeys(_VALUE_HARMLESS.split(), "harmless"),
    **{name: name for name in _VALUE_PLANNED.split()},
}
OPTIONAL_VALUE: Final = frozenset({"color", "colour"})
"""Their value comes after an equals sign, or not at all."""
RECURSIVE: Final = frozenset({"recursive", "dereference-recursive"})
DIALECTS: Final[Mapping[str, Dialect]] = {
    "extended-regexp": "extended",
    "fixed-strings": "fixed",
    "basic-regexp": "basic",
    "perl-regexp": "perl",
}


class Grammar(NamedTuple):
    """The flags of a program that a plan honours, each with its meaning."""

    letters: Mapping[str, str]
    letters_with_value: Mapping[str, str]
    long: Mapping[str, str]
    long_with_value: Mapping[str, str]
    stops_at_operand: bool = False
    """Whether flags may not come after operands."""


GREP: Final = Grammar(LETTERS, LETTERS_WITH_VALUE, LONG, LONG_WITH_VALUE)
GREP_AT_ALL: Final = Grammar(
    {**LETTERS, **dict.fromkeys("vLc", "harmless")},
    LETTERS_WITH_VALUE,
    {
        **LONG,
        "invert-match": "harmless",
        "files-without-match": "harmless",
        "count": "harmless",
    },
    LONG_WITH_VALUE,
)
"""With the flags that no plan honours."""


class Flag(NamedTuple):
    """One flag by its meaning, with its value; empty if it takes none."""

    meaning: str
    value: str


@dataclass(slots=True)
class GrepArguments:
    """A parsed command line; nothing here has touched the disk."""

    flags: list[Flag] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """The words of the flags and their values, in order."""
    operands: list[str] = field(default_factory=list)
    bare: int | None = None
    """How many operands came before ``--``; None: there was none."""

    @property
    def has_pattern_flags(self) -> bool:
        """Whether the patterns are values of flags, so that every operand is a file."""
        return any(flag.meaning in {"regexp", "file"} for flag in self.flags)

    @property
    def is_recursive(self) -> bool:
        """Whether folders are walked."""
        return any(flag.meaning in RECURSIVE for flag in self.flags)

    @property
    def follows_links(self) -> bool:
        """Whether links that are met on the walk are followed; a ``-r`` beside ``-R`` changes nothing."""
        return any(flag.meaning == "dereference-recursive" for flag in self.flags)

    def values_of(self, meaning: str) -> list[str]:
        """Return the values given for a flag."""
        return [flag.value for flag in self.flags if flag.meaning == meaning]


def parse(argv: Sequence[str], grammar: Grammar = GREP) -> GrepArguments:
    """Parse a command line; flags may come after operands, as getopt has it.

    Raises:
        Unplannable: grep would reject it, or it has a flag that no plan honours.

    """
    arguments = GrepArguments()
    words = iter(argv)
    for word in words:
        if word == "--":
            arguments.bare = len(arguments.operands)
            arguments.operands.extend(words)
        elif word == "-" or not word.startswith("-"):
            arguments.operands.append(word)
        elif grammar.stops_at_operand and arguments.operands:
            raise Unplannable
        elif word.startswith("--"):
            _take_long(arguments, word, words, grammar)
        else:
            _take_letters(arguments, word, words, grammar)
    return arguments


def _take_long(
    arguments: GrepArguments, word: str, words: Iterator[str], grammar: Grammar
) -> None:
    name, equals, value = word[2:].partition("=")
    meanings = grammar.long_with_value
    arguments.words.append(word)
    if equals and name in meanings:
        arguments.flags.append(Flag(meanings[name], value))
    elif not equals and name in grammar.long:
        arguments.flags.append(Flag(grammar.long[name], ""))
    elif not equals and name in meanings and name not in OPTIONAL_VALUE:
        value = _take_value(arguments, words)
        arguments.flags.append(Flag(meanings[name], value))
    else:
        raise Unplannable


def _take_letters(
    arguments: GrepArguments, word: str, words: Iterator[str], grammar: Grammar
) -> None:
    arguments.words.append(word)
    rest = word[1:]
    while rest:
        letter = rest[0]
        rest = rest[1:]
        if letter in grammar.letters:
            arguments.flags.append(Flag(grammar.letters[letter], ""))
        elif letter in grammar.letters_with_value:
            value = rest or _take_value(arguments, words)
            meaning = grammar.letters_with_value[letter]
            arguments.flags.append(Flag(meaning, value))
            return
        else:
            raise Unplannable


def _take_value(arguments: GrepArguments, words: Iterator[str]) -> str:
    value = next(words, None)
    if value is None:
        raise Unplannable
    arguments.words.append(value)
    return value


def read_pattern(arguments: GrepArguments, cwd: bytes) -> tuple[Pattern, list[str]]:
    """Return a pattern that matches at least what grep's patterns do, and the operands that are files.

    Raises:
        Unplannable: there is no pattern, or one is not understood.
        OSError, ValueError: a file of patterns cannot be read.

    """
    texts: list[str] = []
    for flag in arguments.flags:
        if flag.meaning == "regexp":
            texts += flag.value.split("\n")
        elif flag.meaning == "file":
            texts += _read_patterns_file(flag.value, cwd)
    operands = arguments.operands
    if not arguments.has_pattern_flags:
        if not operands:
            raise Unplannable
        texts = operands[0].split("\n")
        operands = operands[1:]
    dialect = _read_dialect(arguments)
    if not texts or (dialect == "perl" and len(texts) > 1):
        raise Unplannable
    ignores_case = False
    for flag in arguments.flags:
        if flag.meaning in {"ignore-case", "no-ignore-case"}:
            ignores_case = flag.meaning == "ignore-case"
    pattern = Pattern(
        texts=tuple(widen(text, dialect, ignores_case=ignores_case) for text in texts),
        mode="regex",
        case="insensitive" if ignores_case else "sensitive",
    )
    return pattern, operands


def has_heavy_pattern(arguments: GrepArguments) -> bool:
    """Return whether a pattern would take the program memory without measure."""
    texts = arguments.values_of("regexp")
    if not arguments.has_pattern_flags:
        texts = arguments.operands[:1]
    try:
        dialect = _read_dialect(arguments)
    except Unplannable:
        return False
    return any(is_heavy(line, dialect) for text in texts for line in text.split("\n"))


def _read_dialect(arguments: GrepArguments) -> Dialect:
    """Return the dialect of the patterns; grep refuses some that are mixed, and takes the last of others."""
    dialects: set[Dialect] = set()
    for flag in arguments.flags:
        if flag.meaning in DIALECTS:
            dialects.add(DIALECTS[flag.meaning])
    if len(dialects) > 1:
        raise Unplannable
    if dialects:
        return dialects.pop()
    return "basic"


def _read_patterns_file(name: str, cwd: bytes) -> list[str]:
    path = Path(os.fsdecode(cwd), name)
    if name == "-" or not path.is_file() or path.is_relative_to("/proc"):
        raise Unplannable
    lines = path.read_text("utf-8").split("\n")
    if not lines[-1]:
        del lines[-1]
    return lines


class Selection:
    """Which files below a folder grep searches: ``--include``, ``--exclude`` and ``--exclude-dir``."""

    def __init__(self, arguments: GrepArguments) -> None:
        """Read the flags.

        Raises:
            Unplannable: a wildcard that is not understood.

        """
        self._files = [
            (flag.meaning == "include", check_glob(flag.value))
            for flag in arguments.flags
            if flag.meaning in {"include", "exclude"}
        ]
        self._folders = [
            check_glob(value.rstrip("/"))
            for value in arguments.values_of("exclude-dir")
        ]

    def has_file(self, path: bytes) -> bool:
        """Return whether a file met on the walk is searched."""
        return self._judge(path, has_name)

    def enters(self, path: bytes) -> bool:
        """Return whether a folder met on the walk is entered."""
        return not any(has_name(glob, path) for glob in self._folders)

    def check_operand(self, path: bytes, *, is_folder: bool) -> None:
        """Check that grep also searches a file or folder that is named on its command line.

        There wildcards are compared with more than the last name.

        Raises:
            Unplannable: it would leave it out.

        """
        if is_folder:
            if any(has_path(glob, path) for glob in self._folders):
                raise Unplannable
        elif not self._judge(path, has_path):
            raise Unplannable

    def _judge(self, path: bytes, matches: Callable[[bytes, bytes], bool]) -> bool:
        # The last that matches decides; if none does, the kind of the first.
        for includes, glob in reversed(self._files):
            if matches(glob, path):
                return includes
        return not (self._files and self._files[0][0])
