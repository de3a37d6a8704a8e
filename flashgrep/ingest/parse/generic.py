"""Symbols by regular expressions, for languages without a grammar here: words that introduce a name, nothing more."""

import re
from typing import Final

import numpy as np

from flashgrep.ingest.parse.model import COLUMNS, KIND_ID, Ints, ParsedFile
from flashgrep.languages import LANGUAGES

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
_KIND_OF: Final = {word: KIND_ID[kind] for kind, words in _WORDS.items() for word in words.split("|")}
_DEFINITION: Final = re.compile(
    r"^[ \t]*(?:[(@#]\s*)?(?:(?:pub|public|private|protected|internal|export|static|abstract|async|override|open|sealed"
    r"|final|inline|external|extern|declare|default|partial|my|our|local)(?:\([\w ]+\))?\s+)*"
    rf"({'|'.join(_KIND_OF)})\*?\s+([^\W\d][\w$]*(?:[?!'](?=\W))?)".encode(),
    re.MULTILINE,
)
_TYPED_FUNCTION: Final = re.compile(
    rb"^[ \t]*(?:[A-Za-z_][\w<>,\[\]?*&]*\s+)+([A-Za-z_]\w*)\s*\([^;{}()]*\)\s*(?:async\s*)?(?:\{|=>)", re.MULTILINE
)
_CALL: Final = re.compile(rb"([^\W\d][\w$]*)\s*\(")
_SKIP: Final = re.compile(rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_SKIP_HASH: Final = re.compile(rb"(?:(?<=\n)|\A)\s*#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"")
_IMPORT: Final = re.compile(rb"^[ \t]*(?:import|use|require|include|from|#include|using|open)\b[^\n]*", re.MULTILINE)
_NOT_CALLED: Final = frozenset(b"if for while switch return catch function sizeof and or not when match".split())


def generic_tags(language: str, data: bytes) -> ParsedFile:
    """Return what looks like a definition, a call or an import."""
    skip = _SKIP_HASH if b"#" in LANGUAGES[language].comments else _SKIP
    skips = np.array([found.span() for found in skip.finditer(data)], np.int64).reshape(-1, 2)
    table = _outside(_table(language, data), skips)
    calls = [found.start(1) for found in _CALL.finditer(data) if found[1] not in _NOT_CALLED]
    return ParsedFile(
        language=language,
        definitions=table,
        marks={"call": np.setdiff1d(np.array(calls, np.int64), table[:, 0])},
        skips=skips,
        statements=np.array([found.span() for found in _IMPORT.finditer(data)], np.int64).reshape(-1, 2),
    )


def _table(language: str, data: bytes) -> Ints:
    rows = {
        found.start(2): (*found.span(2), *found.span(), _KIND_OF[found[1].decode()], 0, 0, 0)
        for found in _DEFINITION.finditer(data)
    }
    if LANGUAGES[language].comments[:1] == (b"//",):
        for found in _TYPED_FUNCTION.finditer(data):
            if found[1] not in _NOT_CALLED:
                row = (*found.span(1), *found.span(), KIND_ID["function"], 0, 0, 0)
                rows.setdefault(found.start(1), row)
    return np.array([rows[at] for at in sorted(rows)], np.int64).reshape(-1, COLUMNS)


def _outside(table: Ints, skips: Ints) -> Ints:
    """Return the rows whose name is in none of the spans."""
    before = np.searchsorted(skips[:, 0], table[:, 0], side="right") - 1
    inside = (before >= 0) & (table[:, 0] < skips[before, 1]) if len(skips) else np.zeros(len(table), np.bool_)
    outside: Ints = table[~inside]
    return outside
