"""Whether a bare name is a parameter or a local variable, by the text, in languages without described scopes.

Such a name hides a member or a function of the same name. The outermost function is read up to the position: most files
of a question have no syntax tree, and parsing takes a hundred times as long.
"""

import re
from bisect import bisect_left
from itertools import islice
from typing import Final

import numpy as np

from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME_END,
    START,
    TYPE_KINDS,
)

_MOST_TEXT: Final = 50_000
"""Most bytes of a function searched for declarations."""
_MOST_HEAD: Final = 1_500
"""Bytes after a function's name that are searched for its parameters."""
_MOST_BEHIND: Final = 100
"""Bytes after a name that are searched for signs of a declaration."""
# Sources are untrusted, so every repetition is bounded.
_WORD_FIRST: Final = (
    rb"\b(?:val|var|let)\s{1,9}(?:mut\s+|ref\s+)?(?:%s\b|\([^()=]{0,200}\b%s\b)"
)
_ARROW: Final = (
    rb"[{(,|]\s{0,99}%s\s{0,9}(?::[^(){}=]{0,99})?(?:,[\w\s,:]{0,200})?\)?\s{0,9}(?:->|=>|\bin\b)"
    rb"|\bcase\s{1,9}%s\s{0,9}(?:=>|if\b)"
)
_LOOP: Final = (
    rb"\bfor\s{0,9}\(?\s{0,9}(?:[\w(, ]{0,99}[(, ])?%s\b[\w), ]{0,99}(?:\bin\b|<-)"
)
_CAUGHT: Final = rb"\bcatch\s{0,9}\([^()]{0,200}\b%s\b"
_TYPE_FIRST: Final = (
    rb"\b(?!(?:return|throw|new|else|case|in|is|as|instanceof|yield|await|do|goto|assert|not|and|or|when|ref|out"
    rb"|typeof|default|package|import|using)\b)\w{1,99}(?:\s?<[^()=;{}&|]{0,200}>)?(?:\[[\s,]{0,9}\])?\??(?:\.\.\.)?"
    rb"\s{1,99}%s\s{0,9}(?=[=;:,)\[]|in\b)"
)
_C_TYPE: Final = rb"(?!(?:return|throw|new|else|case|goto|delete|sizeof|typedef|using|not|and|or)\b)[A-Za-z_]\w{0,99}"
_C_FIRST: Final = (
    rb"(?<![\w.>])"
    + _C_TYPE
    + rb"(?:\s?<[^()=;{}&|]{0,200}>)?(?:\s{1,9}[*&\s]{0,9}|[*&]{1,3}\s{0,9})(?:const\s{1,9})?%s\s{0,9}(?=[=;:,)\[{])"
)
# In a product the first factor looks like the type of a pointer, so what is before
# it, or behind it, has to be that of a declaration.
_POINTER: Final = _C_TYPE + rb"\s{0,9}\*[*\s]{0,9}(?:const\s{1,9})?%s\s{0,9}"
_PLAIN_C_FIRST: Final = (
    rb"(?<![\w.>])"
    + _C_TYPE
    + rb"\s{1,9}%s\s{0,9}(?=[=;:,)\[{])"
    + rb"|(?<![\w.>=+/%&|<(,?!:-])(?<![=+/%&|<(,?!:-]\s)"
    + _POINTER
    + rb"(?=[=;,\[])|(?<=\()"
    + _POINTER
    + rb"(?==(?!=))"
)
"""In C ``mask & FLAG`` declares nothing, nor does ``(size * COUNT)``."""
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
    **dict.fromkeys(("cpp", "cuda", "objcpp"), (_C_FIRST,)),
    **dict.fromkeys(("c", "objc"), (_PLAIN_C_FIRST,)),
    "lua": (_LUA,),
    "ruby": (_RUBY,),
}
"""What declares a name in a function's body."""
_WITHOUT_BLOCKS: Final = frozenset({"lua", "ruby"})
"""Languages whose blocks end with a keyword; these are not tracked here."""
_SEES_OUTER: Final = frozenset({"kotlin", "swift", "rust"})
"""Languages in which a local's initializer may still refer to the name it hides."""
_OWN_VALUE: Final = re.compile(rb"\s*(?::[^=\n]{0,99})?=[^=\n;{}]{0,200}")
_SIGNS: Final = re.compile(rb"[(){}\[\];,]")
_OPEN: Final = frozenset({b"(", b"[", b"{"})
_CLOSE: Final = frozenset({b")", b"]", b"}"})
_GOES_ON: Final = re.compile(rb"\s{0,99}(?:yield|do)\b")
_MOST_CONDITION: Final = 200
"""Bytes before a name that are searched for a statement's keyword."""
_STATEMENT: Final = re.compile(
    rb"\b(?:for|foreach|catch|while|if|using|try|switch|when|fixed|lock)\s{0,9}\([^{};]{0,200}\Z"
)
_BRANCHES: Final = re.compile(
    rb"\b(?:when|switch|match)\s{0,9}(?:\([^{}]{0,150})?(?:\{[^{}]{0,150})?\Z"
)
_WITH_TYPES_APART: Final = frozenset({"java", "csharp", "dart", "groovy"})
"""Languages in which the context of a name distinguishes types from values."""
_WITH_CALLS_APART: Final = frozenset({"java", "php", "rust"})
"""Languages in which a field and a method may share a name, distinguished by what follows."""
_MACRO: Final = re.compile(rb"!(?!=)")
_SET: Final = re.compile(rb"=(?!=)")
_NEW: Final = re.compile(rb"\bnew\Z")
_CONSTRUCTED: Final = TYPE_KINDS | {"constructor"}
_MADE_BEFORE: Final = re.compile(rb"\bnew\s++(?:[\w<>,\s]{1,100}+(?:\.|::))*+\s*+\Z")
"""What stands before the type of a construction, with what qualifies it."""
_POSITIONAL: Final = re.compile(rb"\s*\([^(){};]*\)\s*(?:=>|when\b)")
_TYPE_PLACE: Final = re.compile(
    rb"(?:<[\w\s,.<>?\[\]]*>)?(?:\[\])*(?:\.\.\.)?\s+(?!(?:instanceof|is|as|in|and|or|when|switch|with|not)\b)[A-Za-z_]"
    rb"|\.class\b|\s*::"
)
"""What follows a type's name in a declaration."""
_QUERY: Final = re.compile(
    rb"\s+(?:from|where|select|join|let|orderby|group|into|equals|on|by|ascending|descending)\b\s*[^\s=;,)]"
)
"""What follows a value in a query of C#."""
_CASE: Final = re.compile(rb"\bcase\s(?:\s*[\w.\"']+\s*,)*\s*\Z")
_LABELLED: Final = re.compile(rb"\s*(?:,|:(?!:)|->)")
_ATTRIBUTE: Final = re.compile(rb"@(?:(?:spec|callback|macrocallback)\s+)?\Z")
_GENERIC: Final = re.compile(rb"\w<(?:[\w\s.?]*,)*\Z")
_LABELS: Final = {
    **dict.fromkeys(("swift", "csharp", "dart", "ruby"), b":"),
    **dict.fromkeys(("kotlin", "scala"), b"="),
}
"""What follows a parameter's name in a call with named arguments."""
_PARAMETER: Final = rb"(?:^|[,*&\s])%s\s*(?:[:=,?]|$)"
_TYPED_PARAMETER: Final = rb"[\w>\]*&?][\s*&]*(?<!\w)%s\s*(?:[=,\[]|$)"
_PARAMETERS: Final = {
    **dict.fromkeys(("kotlin", "scala", "swift", "rust"), rb"(?:^|[,\s])%s\s*:(?!:)"),
    **dict.fromkeys(("java", "csharp", "cpp", "cuda"), _TYPED_PARAMETER),
    **dict.fromkeys(("dart", "groovy"), rb"(?:^|[,\s])%s\s*(?:[=,]|$)"),
    "ruby": rb"(?:^|[,*&])\s*%s\s*(?:[:=,]|$)",
    "php": rb"(?!)",
}
"""How parameters are named, where types and names can be told apart; in PHP a name without a dollar sign is none."""
_CALLED_ALONE: Final = frozenset({
    "java", "kotlin", "scala", "csharp", "swift", "dart", "groovy", "ruby", "c", "cpp", "cuda", "objc", "objcpp",
})  # fmt: skip
"""Languages in which a bare name that is called means a function or a method, if there is one of that name."""


def is_hidden(
    symbols: FileSymbols, name: str, offset: int, *, is_callable: bool
) -> bool:
    """Whether a bare name at a position is local; ``is_callable``: whether the target could be called."""
    if symbols.language not in _DECLARED:
        return False
    data = symbols.data
    word = name.encode()
    behind = data[offset + len(word) : offset + len(word) + 40].lstrip(b" \t")
    if is_callable and symbols.language in _CALLED_ALONE and behind[:1] in {b"(", b"{"}:
        return False
    if has_parameter(symbols, name, offset):
        return True
    around = _outermost(symbols, offset)
    if around >= 0:
        start = symbols.row(around)[START]
    else:
        start = offset
    start = max(start, offset - _MOST_TEXT)
    text = data[start : offset + len(word) + _MOST_BEHIND]
    signs: list[tuple[int, bytes]] | None = None
    # The ``re`` module caches compiled patterns: one name is searched for in many
    # files.
    for pattern in _DECLARED[symbols.language]:
        end_before = 0
        for match in re.finditer(pattern.replace(b"%s", re.escape(word)), text):
            if match.start() > offset - start:
                break
            if start + match.start() < end_before or (
                pattern is _ARROW and _is_branch(text, match.start(), name)
            ):
                continue
            if symbols.language in _WITHOUT_BLOCKS:
                return True
            if signs is None:
                signs = _list_signs(symbols, start, offset)
            end = _find_end(symbols, pattern, match, start, offset, signs)
            if end is None:
                return True
            end_before = end
    return False


def _is_branch(text: bytes, at: int, name: str) -> bool:
    """Whether a name before an arrow is a compared value: a branch of ``when`` or ``switch``."""
    if text.startswith(b"case", at):
        return name[:1].isupper()  # in Scala a constant; a binding is lower case
    return (
        text.startswith((b"{", b","), at)
        and _BRANCHES.search(text, max(0, at - _MOST_CONDITION), at) is not None
    )


def _find_end(
    symbols: FileSymbols,
    pattern: bytes,
    found: re.Match[bytes],
    start: int,
    offset: int,
    signs: list[tuple[int, bytes]],
) -> int | None:
    """Return where a declaration's scope ends, if before a position; None: the name is still visible there.

    Later declarations by the same pattern before that end have ended there, too. ``start``: the offset of the searched
    text in the file; ``signs``: the signs from there to the position.
    """
    data = symbols.data
    declared = start + found.end()
    if pattern is _ARROW:
        at = declared
    else:
        at = start + found.start()
    if (
        symbols.language in _SEES_OUTER
        and declared <= offset
        and _OWN_VALUE.fullmatch(data, declared, offset)
    ):
        return at  # ``val size = size``
    # A statement's head may declare names for its body: ``for (int i = 0; …) { … }``,
    # ``if let a { … }``.
    is_head = pattern in {_LOOP, _CAUGHT} or (
        pattern is _LET and not data.startswith(b"guard", at)
    )
    depth = 0
    for here, sign in islice(signs, bisect_left(signs, (at, b"")), None):
        if sign in _OPEN:
            depth += 1
        elif sign in _CLOSE and depth:
            depth -= 1
            if (
                sign == b"}"
                and not depth
                and is_head
                and not _GOES_ON.match(data, here + 1)
            ):
                return here
        elif sign == b")" and pattern is not _ARROW:
            is_head = (
                is_head
                or _STATEMENT.search(data, max(0, at - _MOST_CONDITION), at) is not None
            )
        elif sign in _CLOSE:
            return here
        elif not depth and (
            (sign == b";" and is_head) or (sign == b"," and pattern is _ARROW)
        ):
            return at
    return None


def _list_signs(symbols: FileSymbols, start: int, end: int) -> list[tuple[int, bytes]]:
    """Return brackets, semicolons and commas outside of strings and comments, with their positions."""
    signs = [
        (match.start(), match[0]) for match in _SIGNS.finditer(symbols.data, start, end)
    ]
    starts = symbols.parsed.skips[:, 0]
    ends = symbols.parsed.skips[:, 1]
    places = np.array([place for place, _ in signs], np.int64)
    before = starts.searchsorted(places, side="right")
    # A position before the first skipped range gets the end 0.
    is_skipped = places < np.append(0, ends)[before]
    return [
        sign
        for sign, skipped in zip(signs, is_skipped.tolist(), strict=True)
        if not skipped
    ]


def is_other_kind(symbols: FileSymbols, kind: str, name: str, offset: int) -> bool:
    """Whether the context of a name rules out definitions of a kind."""
    if symbols.language == "elixir" and kind in CALLABLE_KINDS:
        # An attribute's name, or the function that a specification describes.
        return _ATTRIBUTE.search(symbols.data, max(0, offset - 50), offset) is not None
    data = symbols.data
    end = offset + len(name.encode())
    if symbols.language in _WITH_CALLS_APART and symbols.role(offset) != "import":
        is_asked = data[offset - 1 : offset] in {
            b".",
            b">",
        }  # after ``::`` Java has a method, PHP a constant
        behind = data[end : end + 40].lstrip()
        is_called = behind.startswith((b"(", b"::<"))
        is_macro = symbols.language == "rust" and _MACRO.match(behind) is not None
        if is_macro:
            return kind != "macro"
        is_apart = is_asked or symbols.language == "java"
        if is_called and kind in {"field", "property"} and is_apart:
            return True
        # ``this::size`` names a method, and so does an annotation's ``size = 1``.
        is_named = data.endswith(b"::", 0, offset) or _SET.match(behind) is not None
        if kind == "method" and is_apart and not is_called:
            return is_asked or not is_named
    if symbols.language not in _WITH_TYPES_APART:
        return False
    if symbols.language == "csharp" and kind in _CONSTRUCTED:
        return _is_called_in_csharp(symbols, offset, end)
    before = data[max(0, offset - 100) : offset].rstrip()
    behind = data[end : end + 200]
    if kind in {"constant", "field", "property", "variable", "method"}:
        is_made = before.endswith(b"new") and _NEW.search(before) is not None
        is_argument = (
            before[-1:] in {b"<", b","}
            and behind.lstrip()[:1] in {b">", b","}
            and b"<" in before
        )
        is_queried = symbols.language == "csharp" and _QUERY.match(behind) is not None
        return (
            is_made
            or (_TYPE_PLACE.match(behind) is not None and not is_queried)
            or (is_argument and _GENERIC.search(before) is not None)
        )
    return False


def _is_called_in_csharp(symbols: FileSymbols, offset: int, end: int) -> bool:
    """Whether a name of C# is called without ``new``, as no type is; a pattern may look like a call."""
    if symbols.role(offset) != "call":
        return False
    # ``Just(1) => …`` in a switch takes a value apart.
    data = symbols.data
    is_pattern = _POSITIONAL.match(data, end, end + _MOST_CONDITION) is not None
    before = data[max(0, offset - _MOST_CONDITION) : offset]
    return not is_pattern and _MADE_BEFORE.search(before) is None


def is_case(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a name is a constant that a ``case`` of Java compares with."""
    data = symbols.data
    end = offset + len(name.encode())
    start = max(0, offset - _MOST_CONDITION)
    return (
        symbols.language == "java"
        and _LABELLED.match(data, end) is not None
        and _CASE.search(data, start, offset) is not None
    )


def is_label(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a name is only the label of a named argument."""
    sign = _LABELS.get(symbols.language)
    data = symbols.data
    end = offset + len(name.encode())
    if sign is None or not data[end : end + 20].lstrip().startswith(sign):
        return False
    follows = data[end : end + 20].lstrip()[1:2]
    before = data[max(0, offset - 100) : offset].rstrip()[-1:]
    is_given = before in {b"(", b","} or (before == b"{" and symbols.language == "ruby")
    return follows not in {b"=", b":", b">"} and is_given


def is_within(
    symbols: FileSymbols, place: tuple[bytes, int], other: tuple[bytes, int]
) -> bool:
    """Whether the outermost function around a position contains another position, after its own name."""
    if place[0] == other[0]:
        around = _outermost(symbols, place[1])
    else:
        around = -1
    return (
        around >= 0
        and symbols.row(around)[NAME_END] <= other[1] < symbols.row(around)[END]
    )


def has_parameter(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a function around the position has a parameter of that name."""
    around = symbols.enclosing(offset)
    named = _PARAMETERS.get(symbols.language, _PARAMETER)
    named = named.replace(b"%s", re.escape(name.encode()))
    while around >= 0:
        row = symbols.row(around)
        if symbols.kind(around) in TYPE_KINDS:
            head = b""
        else:
            head = symbols.data[row[NAME_END] : row[NAME_END] + _MOST_HEAD]
        parameters = re.match(
            rb"\s*(?:<[^<>]*>)?\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*+)\)", head
        )
        if parameters and re.search(named, parameters[1]):
            return True
        around = symbols.parent(around)
    return False


def _outermost(symbols: FileSymbols, offset: int) -> int:
    """Return the outermost function around a position, or -1: nested functions see the names of enclosing ones."""
    around = symbols.enclosing(offset)
    callable_row = -1
    while around >= 0:
        callable_row = (
            around if symbols.kind(around) in CALLABLE_KINDS else callable_row
        )
        around = symbols.parent(around)
    return callable_row
