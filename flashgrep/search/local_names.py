"""Whether a bare name is a parameter or a local variable, as the text tells, in languages whose scopes nobody reads.

Such a name hides a member or a function of its name. What is read is the outermost function around the place, as far as
to it: there is no syntax tree of most files that a question meets, and making one takes a hundred times as long.
"""

import re
from typing import Final

from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, NAME_END, START, TYPE_KINDS

_MOST_TEXT: Final = 50_000
"""Bytes of a function that are looked through for what it declares."""
_MOST_HEAD: Final = 1_500
"""Bytes after a function's name in which its parameters end."""
_MOST_BEHIND: Final = 100
"""Bytes after a name that tell whether it is declared there."""
# Sources are anybody's, so whatever may repeat is bounded.
_WORD_FIRST: Final = rb"\b(?:val|var|let)\s{1,9}(?:mut\s+|ref\s+)?(?:%s\b|\([^()=]{0,200}\b%s\b)"
_ARROW: Final = (
    rb"[{(,|]\s{0,99}%s\s{0,9}(?::[^(){}=]{0,99})?(?:,[\w\s,:]{0,200})?\)?\s{0,9}(?:->|=>|\bin\b)"
    rb"|\bcase\s{1,9}%s\s{0,9}(?:=>|if\b)"
)
_LOOP: Final = rb"\bfor\s{0,9}\(?\s{0,9}(?:[\w(, ]{0,99}[(, ])?%s\b[\w), ]{0,99}(?:\bin\b|<-)"
_CAUGHT: Final = rb"\bcatch\s{0,9}\([^()]{0,200}\b%s\b"
_TYPE_FIRST: Final = (
    rb"\b(?!(?:return|throw|new|else|case|in|is|as|instanceof|yield|await|do|goto|assert|not|and|or|when|ref|out"
    rb"|typeof|default|package|import|using)\b)\w{1,99}(?:\s?<[^()=;{}&|]{0,200}>)?(?:\[[\s,]{0,9}\])?\??(?:\.\.\.)?"
    rb"\s{1,99}%s\s{0,9}(?=[=;:,)\[]|in\b)"
)
_LET: Final = rb"\b(?:if|guard|while|case)\s{1,9}(?:let|var)\s{1,9}[^:=\n{]{0,99}\b%s\b"
_LUA: Final = (
    rb"\blocal\s{1,9}(?:[\w\s,]{0,200},\s{0,9})?%s\b(?!\s*\()"
    rb"|\bfor\s{1,9}(?:[\w\s,]{0,99},\s{0,9})?%s\b[\w\s,]{0,99}(?:=|\bin\b)"
    rb"|\bfunction\b[^()\n]{0,99}\([^()]{0,200}\b%s\b"
)
_RUBY: Final = (
    rb"(?m)(?:^|;|\b(?:if|while|unless|and|or)\b|\()[ \t]{0,99}(?:[\w*]{1,50},\s{0,9}){0,9}"
    rb"%s\s{0,9}(?:\|\||&&|[-+*/])?=(?![=~>])|\|[^|\n]{0,200}\b%s\b[^|\n]{0,200}\|"
    rb"|^[ \t]{0,99}def\s[^\n(;]{0,99}[( ][^\n)]{0,200}(?<![:@])\b%s\b|=>\s{0,9}%s$"
)
_DECLARED: Final = {
    **dict.fromkeys(("kotlin", "scala"), (_WORD_FIRST, _ARROW, _LOOP, _CAUGHT)),
    "swift": (_WORD_FIRST, _LET, _ARROW, _LOOP),
    "rust": (_WORD_FIRST, _LET),
    **dict.fromkeys(("java", "csharp", "dart", "groovy"), (_TYPE_FIRST, _ARROW, _LOOP)),
    "lua": (_LUA,),
    "ruby": (_RUBY,),
}
"""What declares a name in a function's body."""
_WITH_TYPES_APART: Final = frozenset({"java", "csharp", "dart", "groovy"})
"""Languages in which what is around a name tells a type from a value."""
_NEW: Final = re.compile(rb"\bnew\Z")
_TYPE_PLACE: Final = re.compile(
    rb"(?:<[\w\s,.<>?\[\]]*>)?(?:\[\])*(?:\.\.\.)?\s+(?!(?:instanceof|is|as|in|and|or|when|switch|with|not)\b)[A-Za-z_]"
    rb"|\.class\b|\s*::"
)
"""What follows a type's name where something is declared to be of it."""
_ATTRIBUTE: Final = re.compile(rb"@(?:(?:spec|callback|macrocallback)\s+)?\Z")
_GENERIC: Final = re.compile(rb"\w<(?:[\w\s.?]*,)*\Z")
_LABELS: Final = {
    **dict.fromkeys(("swift", "csharp", "dart", "ruby"), b":"),
    **dict.fromkeys(("kotlin", "scala"), b"="),
}
"""What follows the name of a parameter where a call says which one it gives."""
_PARAMETER: Final = rb"(?:^|[,*&\s])%s\s*(?:[:=,?]|$)"
_TYPED_PARAMETER: Final = rb"[\w>\]*&?][\s*&]*(?<!\w)%s\s*(?:[=,\[]|$)"
_PARAMETERS: Final = {
    **dict.fromkeys(("kotlin", "scala", "swift", "rust"), rb"(?:^|[,\s])%s\s*:(?!:)"),
    **dict.fromkeys(("java", "csharp", "cpp", "cuda"), _TYPED_PARAMETER),
    **dict.fromkeys(("dart", "groovy"), rb"(?:^|[,\s])%s\s*(?:[=,]|$)"),
    "ruby": rb"(?:^|[,*&])\s*%s\s*(?:[:=,]|$)",
}
"""How parameters are named, where that can be told from their types."""
_CALLED_ALONE: Final = frozenset({"java", "kotlin", "scala", "csharp", "swift", "dart", "groovy", "ruby"})
"""Languages in which what is called by a bare name is a function or a method, if there is one of the name."""


def is_hidden(symbols: FileSymbols, name: str, offset: int, *, is_callable: bool) -> bool:
    """Whether a bare name at a place is local there; ``is_callable``: whether what is looked for could be called."""
    if symbols.language not in _DECLARED:
        return False
    data, wanted = symbols.data, name.encode()
    behind = data[offset + len(wanted) : offset + len(wanted) + 40].lstrip(b" \t")
    if is_callable and symbols.language in _CALLED_ALONE and behind[:1] in {b"(", b"{"}:
        return False
    if has_parameter(symbols, name, offset):
        return True
    around = _outermost(symbols, offset)
    start = symbols.row(around)[START] if around >= 0 else offset
    start = max(start, offset - _MOST_TEXT)
    text = data[start : offset + len(wanted) + _MOST_BEHIND]
    # The library keeps what it compiled: one name is looked for in many files.
    patterns = (one.replace(b"%s", re.escape(wanted)) for one in _DECLARED[symbols.language])
    found = (re.search(pattern, text) for pattern in patterns)
    return any(one is not None and one.start() <= offset - start for one in found)


def is_other_kind(symbols: FileSymbols, kind: str, name: str, offset: int) -> bool:
    """Whether what is around a name tells that no definition of a kind can be meant."""
    if symbols.language == "elixir" and kind in CALLABLE_KINDS:
        # An attribute's name, or that of the function that a specification is about.
        return _ATTRIBUTE.search(symbols.data, max(0, offset - 50), offset) is not None
    if symbols.language not in _WITH_TYPES_APART:
        return False
    data, end = symbols.data, offset + len(name.encode())
    before, behind = data[max(0, offset - 100) : offset].rstrip(), data[end : end + 200]
    if kind in {"constant", "field", "property", "variable", "method"}:
        is_made = before.endswith(b"new") and _NEW.search(before) is not None
        is_argument = before[-1:] in {b"<", b","} and behind.lstrip()[:1] in {b">", b","} and b"<" in before
        return is_made or _TYPE_PLACE.match(behind) is not None or (is_argument and _GENERIC.search(before) is not None)
    return False


def is_label(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a name only says which parameter of a call a value is for."""
    sign = _LABELS.get(symbols.language)
    data, end = symbols.data, offset + len(name.encode())
    if sign is None or not data[end : end + 20].lstrip().startswith(sign):
        return False
    follows = data[end : end + 20].lstrip()[1:2]
    return follows not in {b"=", b":", b">"} and data[max(0, offset - 100) : offset].rstrip()[-1:] in {b"(", b","}


def is_within(symbols: FileSymbols, place: tuple[bytes, int], other: tuple[bytes, int]) -> bool:
    """Whether the outermost function around a place has another place in it, after its own name."""
    around = _outermost(symbols, place[1]) if place[0] == other[0] else -1
    return around >= 0 and symbols.row(around)[NAME_END] <= other[1] < symbols.row(around)[END]


def has_parameter(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a function around the place has a parameter of the name."""
    around, named = symbols.enclosing(offset), _PARAMETERS.get(symbols.language, _PARAMETER)
    named = named.replace(b"%s", re.escape(name.encode()))
    while around >= 0:
        row = symbols.row(around)
        head = b"" if symbols.kind(around) in TYPE_KINDS else symbols.data[row[NAME_END] : row[NAME_END] + _MOST_HEAD]
        parameters = re.match(rb"\s*(?:<[^<>]*>)?\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*+)\)", head)
        if parameters and re.search(named, parameters[1]):
            return True
        around = symbols.parent(around)
    return False


def _outermost(symbols: FileSymbols, offset: int) -> int:
    """Return the outermost function around a place, or -1: a nested one sees the names of those around it."""
    around, found = symbols.enclosing(offset), -1
    while around >= 0:
        found = around if symbols.kind(around) in CALLABLE_KINDS else found
        around = symbols.parent(around)
    return found
