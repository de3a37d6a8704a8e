"""Symbols by regular expressions: keywords that introduce a name, nothing more.

For languages without a grammar here, and for text that a grammar could not parse.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.languages import LANGUAGES
from flashgrep.parts.symbols.parse.model import (
    COLUMNS,
    KIND_ID,
    NAME,
    START,
    Ints,
    ParsedFile,
)
from flashgrep.parts.symbols.parse.patterns import PATTERNS

Bools = NDArray[np.bool_]
Row = tuple[int, int, int, int, int, int, int, int]

_WORDS: Final = {
    "function": "fn|func|fun|function|def|defn|defun|sub|proc|procedure|subroutine|method|define|let",
    "class": "class|contract|service",
    "struct": "struct|record|message",
    "interface": "interface|protocol|trait|mixin",
    "enum": "enum",
    "type": "type|typedef|newtype",
    "module": "module|namespace|package|unit",
    "constant": "const|final|val",
    "variable": "var",
}
_KIND_OF: Final = {
    word: KIND_ID[kind] for kind, words in _WORDS.items() for word in words.split("|")
}
# The number of modifiers is bounded: each may be on a line of its own, and a file of
# such lines would take quadratic time, since each line may begin a definition.
_DEFINITION: Final = re.compile(
    r"^[ \t]*(?:[(@#]\s*)?(?:(?:pub|public|private|protected|internal|export|static|abstract|async|override|open|sealed"
    r"|final|inline|external|extern|declare|default|partial|my|our|local"
    r"|suspend|operator|infix|data|case|implicit|lateinit|mutating|unsafe|@[\w.]+)(?:\([^()\n]*\))?\s+){0,8}"
    # Between the keyword and the name: Go's receiver, type parameters, what a name
    # belongs to.
    rf"({'|'.join(_KIND_OF)})\*?\s+(?:\([^()\n]*\)\s*)?(?:<[^<>\n]*>\s*)?(?:[^\W\d][\w$]*(?:\.|::|:(?=\w+\s*\()))*"
    r"([^\W\d][\w$]*(?:[?!'](?=\W))?)".encode(),
    re.MULTILINE,
)
_TYPED_FUNCTION: Final = re.compile(
    rb"(?m)^[ \t]*(?:@\w+[ \t]+){0,3}(?:[A-Za-z_][\w<>,\[\]?*&]*\s+){1,8}([A-Za-z_]\w*)\s*\([^;{}()]*\)\s*"
    rb"(?:async\s*|throws\b[^;{}()]*)?(?:\{|=>)"
)
_METHOD: Final = (  # compiled when first needed
    rb"(?m)^[ \t]+(?:(?:async|static|get|set|public|private|protected|readonly|override)[ \t]+|\*[ \t]*){0,6}"
    rb"(\#?[A-Za-z_$][\w$]*+)(?:<[^<>\n]*>)?\([^;{}()]*\)[ \t]*(?::[^;{}()=\n]+)?\{"
)
_FIELD: Final = (
    rb"(?m)^[ \t]+(?:@\w+[ \t]+)?(?=[^\n=;]*\b(?:public|protected|private|static)\b)"
    rb"(?:(?:public|protected|private|internal|static|final|readonly|volatile|transient)[ \t]+){1,6}"
    rb"[A-Za-z_][^\n=;(){}\"]*?[ \t]([A-Za-z_$][\w$]*+)[ \t]*[=;]"
)
_PROPERTY: Final = (
    rb"(?m)^[ \t]++(?=(?:public|protected|private|internal)\b)"
    rb"(?:(?:public|protected|private|internal|static|virtual|override|abstract|required|new|sealed)[ \t]+){1,6}"
    rb"[A-Za-z_][^\n=;(){}\"]*?[ \t]([A-Za-z_]\w*+)\s*(?:\{\s*(?:get|set|init|\[|private|internal|protected)\b|=>)"
)
_SWIFT_LEAD: Final = rb"(?m)^[ \t]*+(?:@?\w+(?:\([^()\n]*\))?[ \t]+){0,6}"
_BY_SHAPE: Final[dict[str, tuple[tuple[str, bytes], ...]]] = {
    "csharp": (
        ("method", _TYPED_FUNCTION.pattern),
        ("field", _FIELD),
        ("property", _PROPERTY),
    ),
    "java": (("method", _TYPED_FUNCTION.pattern), ("field", _FIELD)),
    "kotlin": (
        (
            "function",
            rb"(?m)^[ \t]*+(?:@?\w+[ \t]+){0,6}fun[ \t]+`([^`\n]{1,200})`[ \t]*\(",
        ),
    ),
    "dart": (
        ("method", _TYPED_FUNCTION.pattern),
        (
            "field",
            rb"(?m)^[ ]{2}(?:(?:static|late|final|const|covariant)[ ]){1,3}(?:[\w<>?,.]+[ ]){0,3}(\w+)(?:[ ]=[ \n]|;)",
        ),
    ),
    "rust": (
        (
            "extension",
            rb"(?m)^[ \t]*+(?:unsafe[ \t]+)?impl(?:<[^\n{]*?>)?[ \t]+(?:[^\n{;]*?[ \t]for[ \t]+)?&?(?:\w+::)*(\w+)",
        ),
        ("module", rb"(?m)^[ \t]*+(?:pub(?:\([\w ]+\))?[ \t]+)?mod[ \t]+(\w+)"),
        ("enum", rb"(?m)^[ \t]*+(?:pub(?:\([\w ]+\))?[ \t]+)?enum[ \t]+(\w+)"),
        ("struct", rb"(?m)^[ \t]*+(?:pub(?:\([\w ]+\))?[ \t]+)?struct[ \t]+(\w+)"),
    ),
    "swift": (
        (
            "function",
            _SWIFT_LEAD + rb"func[ \t]+`?([A-Za-z_]\w*|[-+*/%=<>!&|^~?]+)`?[ \t]*[<(]",
        ),
        ("extension", _SWIFT_LEAD + rb"extension[ \t]+(?:\w+\.)*([A-Z]\w*)"),
        ("type", _SWIFT_LEAD + rb"(?:typealias|associatedtype)[ \t]+([A-Z]\w*)"),
        (
            "field",
            (
                rb"(?m)^[ \t]++(?:@\w+[ \t]+)?(?:(?:public|private|fileprivate|internal|open|static|lazy|weak|override"
                rb"|final)(?:\(set\))?[ \t]+){1,4}(?:let|var)[ \t]+`?(\w+)"
            ),
        ),
        ("class", _SWIFT_LEAD + rb"actor[ \t]+([A-Z]\w*)"),
        ("constructor", _SWIFT_LEAD + rb"(init)[?!]?[<(]"),
        ("method", _SWIFT_LEAD + rb"(?:(deinit(?=[ \t]*\{)|subscript(?=[<(])))"),
    ),
    **dict.fromkeys(("javascript", "typescript", "tsx"), (("method", _METHOD),)),
}
"""Languages in which not every member has a keyword, with patterns for the shape of each kind."""
_CLOSED_BY_LINES: Final = frozenset(
    (
        "c",
        "cpp",
        "csharp",
        "dart",
        "go",
        "java",
        "javascript",
        "kotlin",
        "python",
        "rust",
        "scala",
        "swift",
        "tsx",
        "typescript",
    )
)
"""Languages whose strings end with their line, unless they begin with three quotes or a backtick."""

_QUALIFIER: Final = re.compile(rb"(?:[^\W\d][\w<>,]*(?:\.|::)|::)+(?=[^\s.:])")
_CALL: Final = re.compile(rb"(?<![\w$])([^\W\d][\w$]*)\s*\(")
_SKIP: Final = re.compile(rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_SKIP_HASH: Final = re.compile(rb"^[ \t]*#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.MULTILINE)
_SKIP_DASHES: Final = re.compile(rb"--[^\n]*|\"[^\"\n]*\"")
_SKIP_BRACES: Final = re.compile(rb"\{#.*?(?:#\}|\Z)", re.DOTALL)
_IMPORT: Final = re.compile(
    rb"^[ \t]*(?:import|use|require|include|from|#include|using|open)\b[^\n]*",
    re.MULTILINE,
)
_PACKAGE: Final = KIND_ID["package"]
"""The name of a package stays whole, as with a grammar."""
_PROSE: Final = frozenset({"bibtex", "tex"})
"""Languages in whose titles and keys dots separate nothing."""
_BY_LINES: Final = frozenset({"vim"})
"""Languages whose comments and strings end with their line, so that the grammar is wrong about longer ones."""
_LET_BINDS: Final = frozenset({"javascript", "rust", "swift", "tsx", "typescript"})
"""Languages in which ``let`` does not define functions."""
_CLEAR: Final = frozenset(
    b"fn func fun function def defn defun sub proc procedure subroutine class interface trait".split()
)
_QUOTES: Final = (b'"', b"'")
_BEFORE_LONG: Final = (b"@", b"$", b"R", b"#")
"""What precedes the quote of a string over several lines in C#, C++, Rust and Swift."""
_C_FAMILY: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp"})
_NOT_CALLED: Final = frozenset(
    b"if for foreach while switch return catch function is sizeof and or not when match with".split()
)
_STATEMENTS: Final = frozenset(b"return new else throw case await yield".split())
"""Words that begin a line which has parentheses and a brace but defines nothing."""


def _choose_skip(comments: Collection[bytes]) -> re.Pattern[bytes]:
    """Return what finds the strings, and the comments that begin like this."""
    if b"{#" in comments:
        return _SKIP_BRACES
    if b"#" in comments:
        return _SKIP_HASH
    if b"--" in comments:
        return _SKIP_DASHES
    return _SKIP


def find_generic_tags(language: str, data: bytes) -> ParsedFile:
    """Return what looks like a definition, a call or an import."""
    skip = _choose_skip(LANGUAGES[language].comments)
    skips = np.array(
        [found_match.span() for found_match in skip.finditer(data)], np.int64
    ).reshape(-1, 2)
    rows: dict[int, Row] = {}
    if language in PATTERNS:
        for row in _by_patterns(language, data):
            rows.setdefault(row[0], row)  # of two kinds, the first is more certain
    else:
        rows = {row[0]: row for row, _ in _find_introductions(language, data)}
        if LANGUAGES[language].comments[:1] == (b"//",):
            kind = KIND_ID["function"]
            for match in _TYPED_FUNCTION.finditer(data):
                if match[1] not in _NOT_CALLED:
                    row = (*match.span(1), *match.span(), kind, 0, 0, 0)
                    rows.setdefault(match.start(1), row)
    in_order = [rows[at] for at in sorted(rows)]
    table = np.array(in_order, np.int64).reshape(-1, COLUMNS)
    # An operator's name may be in quotes, like a string; its definition does not begin
    # with them.
    if language in PATTERNS:
        starts = table[:, START]
    else:
        starts = table[:, NAME]
    table = table[~is_inside(starts, skips)]
    calls = np.array(
        [
            found_match.start(1)
            for found_match in _CALL.finditer(data)
            if found_match[1] not in _NOT_CALLED
        ],
        np.int64,
    )
    return ParsedFile(
        language=language,
        definitions=table,
        marks={"call": np.setdiff1d(calls[~is_inside(calls, skips)], table[:, 0])},
        skips=skips,
        statements=np.array(
            [found_match.span() for found_match in _IMPORT.finditer(data)], np.int64
        ).reshape(-1, 2),
    )


def _find_introductions(language: str, data: bytes) -> Iterator[tuple[Row, bytes]]:
    """Yield what keywords introduce, as rows of a table, each with its keyword."""
    signs = re.escape(LANGUAGES[language].word)
    more = re.compile(rb"[\w" + signs + rb"]*+")
    for match in _DEFINITION.finditer(data):
        name, name_end = match.span(2)
        kind = _KIND_OF[match[1].decode()]
        if match[1] == b"let" and language in _LET_BINDS:
            if match[0].startswith((b" ", b"\t")) and match[0].lstrip().startswith(
                b"let"
            ):
                continue  # most likely a local variable
            kind = KIND_ID["constant"]
        if LANGUAGES[language].word and (rest := more.match(data, name_end)):
            name_end = rest.end()
        yield (name, name_end, match.start(), name_end, kind, 0, 0, 0), match[1]


def _by_patterns(language: str, data: bytes) -> Iterator[Row]:
    """Yield what a language's own patterns find."""
    for kind, pattern, within in PATTERNS[language].introductions:
        if within is None:
            bodies = [(0, len(data))]
        else:
            bodies = [found_match.span("body") for found_match in within.finditer(data)]
        for start, end in bodies:
            for match in pattern.finditer(data, start, end):
                name, name_end = match.span("name")
                if kind == _PACKAGE or language in _PROSE:
                    qualified = None
                else:
                    qualified = _QUALIFIER.match(data, name, name_end)
                if qualified is None:
                    own = name
                else:
                    own = qualified.end()
                begin = match.end() - len(match[0].lstrip())
                yield (
                    own,
                    name_end,
                    begin,
                    match.end(),
                    kind,
                    0,
                    name if own > name else 0,
                    own if own > name else 0,
                )


def find_missed_definitions(
    language: str, data: bytes, errors: Ints, skips: Ints
) -> Ints:
    """Return what looks like a definition in a text that its grammar could not fully parse, as rows of a table.

    Inside ``errors``, spans that the grammar could not parse, all keywords count. Elsewhere the grammar may have
    misread what follows an error, so those keywords count that rarely precede anything but a definition, and methods
    with a typical shape. ``skips`` are comments and strings. A language's own patterns count everywhere. In C, keywords
    also introduce mere mentions (``struct file *f``), so there are no rows.
    """
    found_rows: Ints
    if language in PATTERNS:
        found_rows = np.array(list(_by_patterns(language, data)), np.int64).reshape(
            -1, COLUMNS
        )
        if language in _BY_LINES:
            return found_rows
        return found_rows[~is_inside(found_rows[:, START], skips)]
    if language in _C_FAMILY:
        return np.empty((0, COLUMNS), np.int64)
    introductions = []
    clear = []
    for row, word in _find_introductions(language, data):
        introductions.append(row)
        clear.append(word in _CLEAR)
    rows = np.array(introductions, np.int64).reshape(-1, COLUMNS)
    is_clear = np.array(clear, np.bool_)
    # A string is only the grammar's guess, to get past an error, if it begins right
    # after a letter, or if it continues although strings end with their line: then it
    # begins where another string ends.
    unclosed = [quote * 3 for quote in _QUOTES if data.count(quote * 3) % 2]
    trusted = np.zeros(len(skips), np.bool_)
    for number, (start, end) in enumerate(skips.tolist()):
        if data[start : start + 1] in _QUOTES:
            at = start
        else:
            at = start - 1
        quote = data[at : at + 1]
        trusted[number] = not data[start - 1 : start].isalnum() and (
            language not in _CLOSED_BY_LINES
            or quote not in _QUOTES
            or data.find(b"\n", start, end) < 0
            or (
                quote * 3 in data[max(0, at - 2) : at + 3] and quote * 3 not in unclosed
            )
            or data[at - 1 : at] in _BEFORE_LONG
        )
    counted = rows[is_clear | is_inside(rows[:, 0], errors)]
    if language in _BY_SHAPE:
        shaped = [
            (
                *match.span(1),
                match.end(0) - len(match[0].lstrip()),
                match.end(1),
                KIND_ID[kind],
                0,
                0,
                0,
            )
            for kind, pattern in _BY_SHAPE[language]
            for match in re.finditer(pattern, data)
            if match[1] not in _NOT_CALLED
            and match[0].split(None, 1)[0] not in _STATEMENTS
        ]
        counted = np.concatenate(
            [counted, np.array(shaped, np.int64).reshape(-1, COLUMNS)]
        )
    found_rows = counted[~is_inside(counted[:, 0], skips[trusted])]
    return found_rows


def is_inside(offsets: Ints, spans: Ints) -> Bools:
    """Return which offsets are in one of the spans, which are sorted and disjoint."""
    if not len(spans):
        return np.zeros(len(offsets), np.bool_)
    before = np.searchsorted(spans[:, 0], offsets, side="right") - 1
    inside: Bools = (before >= 0) & (offsets < spans[before, 1])
    return inside
