"""Compares signatures of Go methods by their text: whether one implements what an interface requires."""

import re
from itertools import chain
from typing import Final

from flashgrep.parts.navigation.resolution.inference import Names
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.model import NAME_END

_NO_NAME: Final = frozenset({"chan", "func", "interface", "map", "struct"})
"""Keywords that begin a type and so cannot be a parameter's name."""
_NAMED: Final = re.compile(r"([^\W\d]\w*)\s+(\S.*)", re.DOTALL)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_QUALIFIER: Final = re.compile(r"\b[^\W\d]\w*\.(?=[^\W\d])")
_SAME: Final = {"byte": "uint8", "rune": "int32"}
_EMPTY: Final = re.compile(r"\binterface\s*\{\s*\}")
_INSIDE: Final = re.compile(r"\b(?:func|interface|struct)\b")
UNKNOWN: Final = "?"
"""A type that is not compared."""
_WORD: Final = re.compile(r"\w+")
_GENERIC: Final = re.compile(rb"\[\w")
"""What follows the name of a generic type; an array's length comes after a blank."""
_ALIAS: Final = re.compile(rb"[ \t]*=")
_MOST: Final = 4_000
"""Most characters read of a method's head."""

Types = tuple[str, ...]


def implements_method(
    names: Names,
    asked: Definition,
    own: Definition,
    owner: Definition,
    interface: Definition,
) -> bool:
    """Whether a type's member is the method that an interface requires; generic types are not compared."""
    # A name that is not exported is a different name in each package.
    is_seen = (
        asked.name[:1].isupper()
        or asked.path.rpartition(b"/")[0] == own.path.rpartition(b"/")[0]
    )
    if not is_seen or own.kind != "method":  # a field of the same name does not count
        return False
    signature = read_signature(asked)
    given_signature = read_signature(own)
    if signature is None or given_signature is None:
        return True
    if list(map(len, signature)) != list(map(len, given_signature)):
        return False
    if any(
        _GENERIC.match(
            definition.symbols.data, definition.symbols.row(definition.index)[NAME_END]
        )
        for definition in (owner, interface)
    ):
        return True
    for parameter_type, other in zip(
        chain.from_iterable(signature),
        chain.from_iterable(given_signature),
        strict=True,
    ):
        if parameter_type == other or UNKNOWN in {parameter_type, other}:
            continue
        # A name in one of them may be an alias of a name in the other.
        iterable = chain.from_iterable(
            map(names.definitions, _NAME.findall(f"{parameter_type} {other}"))
        )
        if not any(
            definition.language == "go"
            and _ALIAS.match(
                definition.symbols.data,
                definition.symbols.row(definition.index)[NAME_END],
            )
            for definition in iterable
        ):
            return False
    return True


def read_signature(method: Definition) -> tuple[Types, Types] | None:
    """Return a method's parameter and result types without packages; None if the text is not plain."""
    start = method.symbols.row(method.index)[NAME_END]
    text = _COMMENT.sub(
        "", method.symbols.data[start : start + _MOST].decode("utf-8", "replace")
    )
    if text.startswith("("):
        end = _find_end(text, 0)
    else:
        end = 0
    if not end:
        return None
    rest = text[end:].lstrip(" \t")
    if rest.startswith("("):
        close = _find_end(rest, 0)
        if close:
            return (_read_types(text[1 : end - 1]), _read_types(rest[1 : close - 1]))
        return None
    # A single result type ends with its line, or before the brace of the body.
    at = 0
    while at < len(rest) and rest[at] not in "\n;}":
        if rest[at] == "{" and not rest[:at].rstrip().endswith(("interface", "struct")):
            break
        at = (_find_end(rest, at) if rest[at] in "([{" else at + 1) or len(rest)
    return _read_types(text[1 : end - 1]), _read_types(rest[:at])


def _find_end(text: str, start: int) -> int:
    """Return where the bracket that opens at a position is closed; 0: nowhere."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at + 1
    return 0


def _read_types(text: str) -> Types:
    """Return the types in a parameter list; ``a, b int`` has two of the same type."""
    parts = []
    start = 0
    at = 0
    while at < len(text):
        if text[at] == ",":
            parts.append(text[start:at].strip())
            start = at + 1
        at = (_find_end(text, at) if text[at] in "([{" else at + 1) or len(text)
    parts = [
        current_part for current_part in [*parts, text[start:].strip()] if current_part
    ]
    named = [_NAMED.fullmatch(current_part) for current_part in parts]
    if not any(
        current_match is not None and current_match[1] not in _NO_NAME
        for current_match in named
    ):
        return tuple(map(_plain, parts))
    # Either all are named or none: a name without a type has the type of the next one.
    types = list[str]()
    following = ""
    for part, match in zip(reversed(parts), reversed(named), strict=True):
        following = (
            following
            if match is None and _NAME.fullmatch(part)
            else part
            if match is None
            else match[2]
        )
        types.append(_plain(following))
    return tuple(reversed(types))


def _plain(written: str) -> str:
    """Return a type without blanks and packages; ``UNKNOWN`` if it contains names or types."""
    written = _EMPTY.sub("any", _QUALIFIER.sub("", written))
    if _INSIDE.search(written):
        return UNKNOWN
    return re.sub(
        r"\s+", "", _WORD.sub(lambda word: _SAME.get(word[0], word[0]), written)
    )
