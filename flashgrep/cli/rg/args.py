"""ripgrep's command line, read without touching the world: flags to values, in ripgrep's order of precedence."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from flashgrep.errors import InvalidParams

Mode = Literal[
    "standard", "files_with_matches", "files_without_match", "count", "count_matches", "json", "files", "type_list"
]
SortKey = Literal["none", "path", "modified", "accessed"]
_MOST_UNRESTRICTED = 3
_LARGEST = 2**64 - 1
_USAGE = """usage: fgrep rg [FLAGS] PATTERN [PATH...]
       fgrep rg [FLAGS] -e PATTERN... [PATH...]
       fgrep rg --files | --type-list

Prints what ripgrep prints for these flags, from the index where it can; files are in the order of their paths.
Standard input is not read, and .flashgrepignore holds as .ignore does. A flag not listed here is refused.
"""


@dataclass(slots=True)
class Arguments:
    """What was written, flag by flag; nothing here has looked at a disk."""

    mode: Mode = "standard"
    positional: list[str] = field(default_factory=list)
    patterns: list[tuple[Literal["text", "file"], str]] = field(default_factory=list)
    case: Literal["sensitive", "insensitive", "smart"] = "sensitive"
    boundary: Literal["", "word", "line"] = ""
    fixed: bool = False
    multiline: bool = False
    dotall: bool = False
    crlf: bool = False
    binary: Literal["auto", "convert", "text"] = "auto"
    max_count: int | None = None
    before: int | None = None
    after: int | None = None
    around: int = 0
    line_number: bool | None = None
    column: bool | None = None
    byte_offset: bool = False
    only_matching: bool = False
    vimgrep: bool = False
    heading: bool | None = None
    with_filename: bool | None = None
    null: bool = False
    trim: bool = False
    max_columns: int = 0
    color: Literal["auto", "never", "always", "ansi"] = "auto"
    replace: str | None = None
    quiet: bool = False
    stats: bool = False
    include_zero: bool = False
    messages: bool = True
    globs: list[str] = field(default_factory=list)
    iglobs: list[str] = field(default_factory=list)
    types: list[tuple[str, bool]] = field(default_factory=list)
    """Types in the order given, each with whether it is wanted."""
    hidden: bool = False
    ignore: bool = True
    vcs_ignore: bool = True
    unrestricted: int = 0
    max_depth: int | None = None
    sort: SortKey = "none"
    reverse: bool = False

    def context(self) -> tuple[int, int]:
        """Return how many lines are shown before and after a match: ``-B`` and ``-A`` go before ``-C``."""
        return (
            self.around if self.before is None else self.before,
            self.around if self.after is None else self.after,
        )


_Update = Callable[[Arguments, str], None]


def parse(argv: list[str]) -> Arguments:
    """Return what the arguments after ``rg`` say; the last of contrary flags holds.

    Raises:
        InvalidParams: a flag that is not known or not supported, or a value it cannot take.

    """
    found = Arguments()
    words = iter(argv)
    for word in words:
        if word == "--":
            found.positional.extend(words)
        elif word.startswith("--"):
            _long(found, word[2:], words)
        elif word.startswith("-") and word != "-":
            _cluster(found, word[1:], words)
        else:
            found.positional.append(word)
    return found


def usage() -> bytes:
    """Return the help: every flag there is."""
    letters = {name: letter for letter, name in _LETTERS.items()}
    rows = []
    for name in sorted({*_SWITCHES, *_VALUES}):
        short = f"-{letters[name]}, " if name in letters else "    "
        rows.append(f"  {short}--{name}{' VALUE' if name in _VALUES else ''}")
    for name, reason in sorted(_REFUSED.items()):
        rows.append(f"  not --{name}: {reason}")
    return "\n".join([_USAGE, *rows, ""]).encode()


def _long(found: Arguments, text: str, words: Any) -> None:
    name, equals, value = text.partition("=")
    if name in _SWITCHES:
        if equals:
            raise _wrong(f"--{name}", "takes no value")
        _switch(found, name)
    elif name in _VALUES:
        _take(found, f"--{name}", _VALUES[name], value if equals else next(words, None))
    else:
        raise _unknown(f"--{name}", _REFUSED.get(name, ""))


def _cluster(found: Arguments, letters: str, words: Any) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _LETTERS.get(letter, "")
        if name in _SWITCHES:
            _switch(found, name)
        elif name in _VALUES:
            _take(found, f"-{letter}", _VALUES[name], letters.removeprefix("=") if letters else next(words, None))
            return
        else:
            raise _unknown(f"-{letter}", _REFUSED.get(name, ""))


def _take(found: Arguments, shown: str, update: _Update, value: str | None) -> None:
    if value is None:
        raise _wrong(shown, "missing value")
    try:
        update(found, value)
    except ValueError as error:
        raise _wrong(shown, str(error)) from None


def _switch(found: Arguments, name: str) -> None:
    for key, value in _SWITCHES[name].items():
        if key == "unrestricted":
            _unrestrict(found)
        elif key == "no_json":
            found.mode = "standard" if found.mode == "json" else found.mode
        else:
            setattr(found, key, value)


def _unrestrict(found: Arguments) -> None:
    found.unrestricted += 1
    if found.unrestricted > _MOST_UNRESTRICTED:
        raise _wrong("-u", f"flag can only be repeated up to {_MOST_UNRESTRICTED} times")
    found.ignore = False
    found.hidden |= found.unrestricted > 1
    if found.unrestricted == _MOST_UNRESTRICTED:
        found.binary = "convert"


def _unknown(flag: str, reason: str) -> InvalidParams:
    return InvalidParams(f"{flag} is not supported: {reason}" if reason else f"unrecognized flag {flag}", flag=flag)


def _wrong(flag: str, problem: str) -> InvalidParams:
    return InvalidParams(f"error parsing flag {flag}: {problem}", flag=flag)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _LARGEST:
        raise ValueError("value is not a valid number: invalid digit found in string")
    return int(text)


def _to(name: str) -> _Update:
    return lambda found, text: setattr(found, name, _number(text))


def _onto(name: str) -> _Update:
    return lambda found, text: getattr(found, name).append(text)


def _pattern(kind: Literal["text", "file"]) -> _Update:
    return lambda found, text: found.patterns.append((kind, text))


def _type(*, wanted: bool) -> _Update:
    return lambda found, text: found.types.append((text, wanted))


def _choice(name: str, *choices: str) -> _Update:
    def update(found: Arguments, text: str) -> None:
        if text not in choices:
            raise ValueError(f"choice '{text}' is unrecognized")
        setattr(found, name, text)

    return update


def _sort(*, reverse: bool) -> _Update:
    choose = _choice("sort", "none", "path", "modified", "accessed")

    def update(found: Arguments, text: str) -> None:
        choose(found, text)
        found.reverse = reverse

    return update


def _replacement(found: Arguments, text: str) -> None:
    found.replace = text


def _no_effect(_found: Arguments, text: str) -> None:
    _number(text)


_SWITCHES: dict[str, dict[str, Any]] = {
    "binary": {"binary": "convert"},
    "block-buffered": {},
    "byte-offset": {"byte_offset": True},
    "case-sensitive": {"case": "sensitive"},
    "column": {"column": True},
    "count": {"mode": "count"},
    "count-matches": {"mode": "count_matches"},
    "crlf": {"crlf": True},
    "files": {"mode": "files"},
    "files-with-matches": {"mode": "files_with_matches"},
    "files-without-match": {"mode": "files_without_match"},
    "fixed-strings": {"fixed": True},
    "heading": {"heading": True},
    "hidden": {"hidden": True},
    "ignore": {"ignore": True, "vcs_ignore": True},
    "ignore-case": {"case": "insensitive"},
    "ignore-vcs": {"vcs_ignore": True},
    "include-zero": {"include_zero": True},
    "json": {"mode": "json"},
    "line-buffered": {},
    "line-number": {"line_number": True},
    "line-regexp": {"boundary": "line"},
    "messages": {"messages": True},
    "multiline": {"multiline": True},
    "multiline-dotall": {"dotall": True},
    "no-binary": {"binary": "auto"},
    "no-block-buffered": {},
    "no-byte-offset": {"byte_offset": False},
    "no-column": {"column": False},
    "no-config": {},
    "no-crlf": {"crlf": False},
    "no-filename": {"with_filename": False},
    "no-fixed-strings": {"fixed": False},
    "no-heading": {"heading": False},
    "no-hidden": {"hidden": False},
    "no-ignore": {"ignore": False},
    "no-ignore-vcs": {"vcs_ignore": False},
    "no-include-zero": {"include_zero": False},
    "no-json": {"no_json": True},
    "no-line-buffered": {},
    "no-line-number": {"line_number": False},
    "no-messages": {"messages": False},
    "no-multiline": {"multiline": False},
    "no-multiline-dotall": {"dotall": False},
    "no-stats": {"stats": False},
    "no-text": {"binary": "auto"},
    "no-trim": {"trim": False},
    "null": {"null": True},
    "only-matching": {"only_matching": True},
    "pretty": {"color": "always", "heading": True, "line_number": True},
    "quiet": {"quiet": True},
    "smart-case": {"case": "smart"},
    "sort-files": {"sort": "path", "reverse": False},
    "stats": {"stats": True},
    "text": {"binary": "text"},
    "trim": {"trim": True},
    "type-list": {"mode": "type_list"},
    "unrestricted": {"unrestricted": 1},
    "vimgrep": {"vimgrep": True},
    "with-filename": {"with_filename": True},
    "word-regexp": {"boundary": "word"},
}
"""Flags without a value, and what they set."""

_VALUES: dict[str, _Update] = {
    "after-context": _to("after"),
    "before-context": _to("before"),
    "color": _choice("color", "never", "auto", "always", "ansi"),
    "context": _to("around"),
    "file": _pattern("file"),
    "glob": _onto("globs"),
    "iglob": _onto("iglobs"),
    "max-columns": _to("max_columns"),
    "max-count": _to("max_count"),
    "max-depth": _to("max_depth"),
    "maxdepth": _to("max_depth"),
    "regexp": _pattern("text"),
    "replace": _replacement,
    "sort": _sort(reverse=False),
    "sortr": _sort(reverse=True),
    "threads": _no_effect,
    "type": _type(wanted=True),
    "type-not": _type(wanted=False),
}
"""Flags with a value; ``--threads`` changes nothing that is printed."""

_LETTERS = {
    "0": "null",
    ".": "hidden",
    "A": "after-context",
    "B": "before-context",
    "C": "context",
    "F": "fixed-strings",
    "H": "with-filename",
    "I": "no-filename",
    "L": "follow",
    "M": "max-columns",
    "N": "no-line-number",
    "P": "pcre2",
    "S": "smart-case",
    "T": "type-not",
    "U": "multiline",
    "a": "text",
    "b": "byte-offset",
    "c": "count",
    "d": "max-depth",
    "e": "regexp",
    "f": "file",
    "g": "glob",
    "i": "ignore-case",
    "j": "threads",
    "l": "files-with-matches",
    "m": "max-count",
    "n": "line-number",
    "o": "only-matching",
    "p": "pretty",
    "q": "quiet",
    "r": "replace",
    "s": "case-sensitive",
    "t": "type",
    "u": "unrestricted",
    "v": "invert-match",
    "w": "word-regexp",
    "x": "line-regexp",
    "z": "search-zip",
}

_REFUSED = {
    "follow": "links are never followed",
    "invert-match": "an index of what files hold cannot tell what they lack",
    "passthru": "it prints whole files, which needs no search",
    "passthrough": "it prints whole files, which needs no search",
    "pcre2": "patterns are ripgrep's default dialect, which takes time linear in the text",
    "pre": "no other program is run",
    "search-zip": "compressed files are not searched",
}
"""Flags of ripgrep that people look for, and why they are not here."""
