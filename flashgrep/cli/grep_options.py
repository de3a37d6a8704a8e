"""The options of ``fgrep query``: the letters of grep and ripgrep, each with what it means in ripgrep's own words.

Where the two disagree grep's meaning holds, since that is what fingers know: ``-r`` and ``-R`` say nothing new, ``-L``
lists the files without a match, ``-E`` means a regular expression, ``-h`` leaves out file names, ``-I`` passes over
binary files, ``-Z`` ends names with NUL. All other letters and every long name are ripgrep's. What is neither is an
option of the method ``query``.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from flashgrep.pattern.grep_syntax import LOOKS_LIKE_REGEX, translate_basic

Mode = Literal["smart", "literal", "regex", "pcre2"]

_LETTERS: Final = """
A after-context | B before-context | C context | E extended-regexp | F fixed-strings | G basic-regexp | H with-filename
I binary-without-match | L files-without-match | M max-columns | N no-line-number | P pcre2 | R recursive | S smart-case
T type-not | U multiline | Z null | a text | b byte-offset | c count | d max-depth | e regexp | f file | g glob
h no-filename | i ignore-case | l files-with-matches | m max-count | n line-number | o only-matching | p project | q quiet
r recursive | s case-sensitive | t type | u unrestricted | v invert-match | w word-regexp | x line-regexp
y ignore-case | z null-data | 0 null | . hidden
"""
_PAIRS: Final = [entry.split() for entry in re.split(r"[|\n]", _LETTERS) if entry]
LETTERS: Final = {pair[0]: pair[1] for pair in _PAIRS}
"""The long name of each letter."""
_WITH_VALUE: Final = """
after-context before-context color colors context context-separator encoding exclude field-context-separator
field-match-separator file glob iglob ignore-file include max-columns max-count max-depth max-filesize
path-separator regexp replace sort sortr threads type type-add type-not
"""
WITH_VALUE: Final = frozenset(_WITH_VALUE.split())
"""Options with a value."""
ALTERNATIVES: Final[Mapping[str, str]] = {
    "colour": "color",
    "dereference-recursive": "recursive",
    "no-ignore-case": "case-sensitive",
    "perl-regexp": "pcre2",
    "silent": "quiet",
    "with-line-number": "line-number",
}
"""grep's long names of what ripgrep calls otherwise."""
OF_GREP: Final = frozenset({"binary-files", "exclude-dir"})
"""Options of grep with a value, which ripgrep says otherwise."""
_PLAIN: Final = """
binary block-buffered byte-offset case-sensitive column count count-matches crlf debug files-with-matches
files-without-match fixed-strings follow glob-case-insensitive heading hidden ignore-case include-zero
invert-match line-buffered line-number line-regexp max-columns-preview multiline multiline-dotall no-column
no-filename no-heading no-hidden no-ignore no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global
no-ignore-parent no-ignore-vcs no-line-number no-messages no-unicode null null-data one-file-system
only-matching passthru pcre2 quiet search-zip smart-case stats stop-on-nonmatch text trim unrestricted vimgrep
with-filename word-regexp basic-regexp binary-without-match extended-regexp recursive
"""
PLAIN: Final = frozenset(_PLAIN.split())
"""Options without a value."""
MODES: Final[Mapping[str, Mode]] = {
    "fixed-strings": "literal",
    "extended-regexp": "regex",
    "basic-regexp": "regex",
    "pcre2": "pcre2",
}
SILENT: Final = frozenset(
    {"recursive", "binary-without-match", "extended-regexp", "basic-regexp"}
)
"""Options of grep that say what is so anyway, and those that only set the mode."""
ALL: Final = "all"
"""Our own: print everything on a terminal, too."""

_CASES: Final[Mapping[str, str]] = {
    "ignore-case": "insensitive",
    "case-sensitive": "sensitive",
    "smart-case": "smart",
}
_OF_METHOD: Final[Mapping[str, tuple[str, str]]] = {
    "after-context": ("after", ""),
    "before-context": ("before", ""),
    "context": ("context", ""),
    "word-regexp": ("word", "true"),
    "line-regexp": ("line", "true"),
    "multiline": ("multiline", "true"),
    "multiline-dotall": ("dotall", "true"),
    "files-with-matches": ("output", "files"),
    "count": ("output", "count"),
    **{name: ("case", value) for name, value in _CASES.items()},
}
"""The method's parameter for an option, and its value; none: the option's own."""
OF_DISPLAY: Final = frozenset(
    {
        "color",
        "column",
        "heading",
        "line-number",
        "no-column",
        "no-heading",
        "no-messages",
        "with-filename",
        "line-buffered",
    }
)
"""Options that change only how an answer looks; our own page on a terminal has its own look."""
PROJECT: Final = "project"
COLORING: Final = frozenset({"--color", "--colour"})
COLOR_VALUES: Final = frozenset({"always", "ansi", "auto", "never"})


class WrongOption(ValueError):
    """An option that neither grep, ripgrep nor the method has, or a value that is missing; the text says which."""


@dataclass(slots=True)
class GrepLine:
    """The arguments of ``fgrep query`` as parsed; nothing here has touched the disk."""

    patterns: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    flags: list[tuple[str, str | None]] = field(default_factory=list)
    """ripgrep's flags by their long names, in order, with their values; without patterns and the mode."""
    mode: Mode = "smart"
    others: list[str] = field(default_factory=list)
    """Options that only the method has, as they were written."""
    everything: bool = False
    """``--all`` was given."""

    def has(self, *names: str) -> bool:
        """Return whether one of these flags was given."""
        return any(name in names for name, _ in self.flags)

    def shows_color(self, *, default: bool) -> bool:
        """Return whether matches are coloured; ``default``: unless an option says so or not."""
        choices = [value for name, value in self.flags if name == "color"]
        if not choices or choices[-1] == "auto":
            return default
        return choices[-1] != "never"

    @property
    def may_be_regex(self) -> bool:
        """Whether the text itself may be meant, or a regular expression."""
        return self.mode == "smart" and any(map(LOOKS_LIKE_REGEX.search, self.patterns))


def parse(words: Sequence[str], fields: Mapping[str, bool]) -> GrepLine:
    """Parse the words after ``fgrep query``.

    ``fields``: the options that only the method has, by their long names, and whether each takes a value.

    Raises:
        WrongOption: an option is unknown, or lacks its value.

    """
    line = GrepLine()
    operands: list[str] = []
    has_patterns = False
    is_basic = False
    rest = iter(_attach_color(words))
    for word in rest:
        if word == "--":
            operands += rest
            break
        if word == "-" or not word.startswith("-"):
            operands.append(word)
            continue
        for name, value in _split_word(word, rest, fields, line.others):
            if name == ALL:
                line.everything = True
            elif name == "regexp":
                line.patterns += (value or "").split("\n")
                has_patterns = True
            elif name in MODES:
                line.mode = MODES[name]
                is_basic = name == "basic-regexp"
            elif name not in SILENT:
                line.flags.append((name, value))
            has_patterns = has_patterns or name == "file"
    if not has_patterns:
        line.patterns = operands[:1]
        operands = operands[1:]
    elif line.mode == "smart":
        # What -e and -f give is a regular expression, as everywhere.
        line.mode = "regex"
    if is_basic:
        line.patterns = list(map(translate_basic, line.patterns))
    line.paths = operands
    return line


def _attach_color(words: Sequence[str]) -> Iterator[str]:
    """Yield the words, the value of ``--color`` behind an equals sign: grep wants it there, ripgrep's is the next word."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield word
            yield from rest
            return
        if word not in COLORING:
            yield word
            continue
        value = next(rest, None)
        if value in COLOR_VALUES:
            yield f"{word}={value}"
            continue
        yield word
        if value is not None:
            yield value


def _split_word(
    word: str,
    following: Iterator[str],
    fields: Mapping[str, bool],
    others: list[str],
) -> list[tuple[str, str | None]]:
    """Return the options in a word that begins with a dash; those of the method alone are added to ``others``."""
    if not word.startswith("--"):
        return _split_letters(word, following, others)
    name, equals, value = word[2:].partition("=")
    name = ALTERNATIVES.get(name, name)
    if name in PLAIN or name == ALL:
        if equals:
            raise WrongOption(f"Option '--{name}' takes no value.")
        return [(name, None)]
    if name == "color" and not equals:
        return [("color", "always")]
    if name in WITH_VALUE or name in OF_GREP:
        if not equals:
            value = _next_value(following, word)
        return _translate(name, value)
    if name not in fields:
        near = difflib.get_close_matches(name, [*fields, *PLAIN, *WITH_VALUE], 1)
        if near:
            hint = f" Did you mean --{near[0]}?"
        else:
            hint = ""
        raise WrongOption(f"No such option: --{name}.{hint}")
    others.append(word)
    if fields[name] and not equals:
        others.append(_next_value(following, word))
    return []


def _split_letters(
    word: str, following: Iterator[str], others: list[str]
) -> list[tuple[str, str | None]]:
    """Return the options of a word of letters: ``-rnC2`` is three."""
    options: list[tuple[str, str | None]] = []
    rest = word[1:]
    while rest:
        letter = rest[0]
        rest = rest[1:]
        if letter.isdigit() and letter != "0":
            # -5 is -C 5, as in grep.
            return [*options, ("context", letter + rest)]
        name = LETTERS.get(letter)
        if name is None:
            raise WrongOption(f"No such option: -{letter}")
        if name in PLAIN:
            options.append((name, None))
            continue
        if rest:
            value = rest.removeprefix("=")
        else:
            value = _next_value(following, word)
        if name == PROJECT:
            others += [f"--{PROJECT}", value]
            return options
        return [*options, (name, value)]
    return options


def _translate(name: str, value: str) -> list[tuple[str, str | None]]:
    """Return what an option of grep that ripgrep lacks means for ripgrep."""
    if name == "binary-files":
        if value == "text":
            return [("text", None)]
        return []
    if name == "exclude-dir":
        return [("exclude", f"{value.rstrip('/')}/")]
    return [(name, value)]


def _next_value(following: Iterator[str], word: str) -> str:
    value = next(following, None)
    if value is None:
        raise WrongOption(f"Option '{word}' requires an argument.")
    return value


def write_ripgrep(line: GrepLine, mode: Mode) -> list[str]:
    """Return ripgrep's arguments for a line, its patterns read as ``mode`` says; paths are left to the caller."""
    words: list[str] = []
    for name, value in line.flags:
        if name == "include":
            words.append(f"--glob={value}")
        elif name == "exclude":
            words.append(f"--glob=!{value}")
        elif value is None:
            words.append(f"--{name}")
        else:
            words.append(f"--{name}={value}")
    if mode == "literal":
        words.append("--fixed-strings")
    if mode == "pcre2":
        words.append("--pcre2")
    return [*words, *(f"--regexp={pattern}" for pattern in line.patterns)]


def find_ripgrep_only(line: GrepLine) -> str:
    """Return what in a line the method ``query`` cannot be asked, as it is written; empty: it can be asked all of it."""
    if line.mode == "pcre2":
        return "--pcre2"
    if len(line.paths) > 1:
        return f"more than one PATH ({' '.join(line.paths)})"
    in_both = OF_DISPLAY | _OF_METHOD.keys() | {"glob", "include", "exclude", "type"}
    for name, _ in line.flags:
        if name not in in_both:
            return f"--{name}"
    return ""


def write_method(line: GrepLine) -> list[str]:
    """Return a question that ``find_ripgrep_only`` lets pass as options of the method ``query``.

    grep's letters are for lines as they are, so without a flag for it case matters, as in grep.
    """
    options: dict[str, str] = {"case": "sensitive", "mode": line.mode}
    repeated: list[str] = []
    for name, value in line.flags:
        if name in OF_DISPLAY:
            continue
        if name == "glob":
            excluded = (value or "").startswith("!")
            option = "exclude" if excluded else "include"
            repeated.append(f"--{option}={(value or '').removeprefix('!')}")
        elif name in {"include", "exclude", "type"}:
            option = "language" if name == "type" else name
            repeated.append(f"--{option}={value}")
        elif name in _OF_METHOD:
            option, fixed = _OF_METHOD[name]
            options[option] = fixed or value or ""
    words = [*line.others, *repeated]
    for option, text in options.items():
        if text == "true":
            words.append(f"--{option}")
        elif not any(word.startswith(f"--{option}") for word in line.others):
            words += [f"--{option}", text]
    if line.paths:
        words += ["--path", line.paths[0]]
    words += [f"--any-of={pattern}" for pattern in line.patterns[1:]]
    return [*words, "--", *line.patterns[:1]]
