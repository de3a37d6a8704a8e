"""Compares signatures of TypeScript methods by their text: whether one may implement what an interface requires.

Types are compared only if both are built in; anything that the text leaves open may fit.
"""

import re
from typing import Final, NamedTuple

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.model import NAME, NAME_END

_MOST: Final = 2_000
"""Most characters read of a method's head."""
_MOST_BEFORE: Final = 60
_HIDDEN: Final = re.compile(rb"\b(?:private|protected)\s[\w\s]*\Z|#\Z")
_OPENING: Final = re.compile(r"[?!]?\s*(?=[(<])")
_PARAMETER: Final = re.compile(r"([\w$]+)(\?)?\s*(?::([^=]*))?(=.*)?", re.DOTALL)
_FIELD: Final = re.compile(rb"[?!]?[ \t]*:([^=;\n]*)")
_RESULT: Final = re.compile(r"\s*:([^{;\n]*)")
_OWN: Final = frozenset({"string", "number", "boolean", "bigint", "symbol", "void"})
_NOTHING: Final = frozenset({"null", "undefined"})
_PROMISE: Final = re.compile(r"Promise<.*>", re.DOTALL)


class Signature(NamedTuple):
    """Parameter types, each as the parts of its union (empty: unknown), the number required, and the result type."""

    parameters: list[frozenset[str]]
    needed: int
    has_rest: bool
    result: frozenset[str]


def may_implement(own: Definition, asked: Definition) -> bool:
    """Whether, by the text of two methods, one may implement the other."""
    data = own.symbols.data
    start = own.symbols.row(own.index)[NAME]
    if _HIDDEN.search(data, max(0, start - _MOST_BEFORE), start):
        return False
    if own.kind != "method":
        field = _FIELD.match(data, own.symbols.row(own.index)[NAME_END])
        if field is not None:
            parts = _read_union(field[1].decode("utf-8", "replace"))
        else:
            parts = frozenset[str]()
        return not parts or not parts <= _OWN
    signature = read_signature(own)
    wanted_signature = read_signature(asked)
    if signature is None or wanted_signature is None:
        return True
    if (
        signature.needed > len(wanted_signature.parameters)
        and not wanted_signature.has_rest
    ):
        return False
    # Parameters of methods are compared bivariantly: either may be a part of the other.
    pairs = zip(signature.parameters, wanted_signature.parameters, strict=False)
    is_taken = all(
        not parameter or not other or not parameter | other <= _OWN or parameter & other
        for parameter, other in pairs
    )
    promises = {part for part in wanted_signature.result if _PROMISE.fullmatch(part)}
    # A void result accepts anything; a named type is unknown.
    is_any_given = (
        not wanted_signature.result
        or "void" in wanted_signature.result
        or not wanted_signature.result - promises <= _OWN
    )
    return is_taken and (
        is_any_given
        or all(
            bool(promises)
            if _PROMISE.fullmatch(part)
            else part not in _OWN or part in wanted_signature.result
            for part in signature.result
        )
    )


def read_signature(method: Definition) -> Signature | None:
    """Return a method's signature; None for overloads, or if the text is not plain."""
    symbols = method.symbols
    around = method.symbols.parent(method.index)
    alike = sum(
        symbols.parent(index) == around for index in symbols.defining(method.name)
    )
    start = symbols.row(method.index)[NAME_END]
    text = symbols.data[start : start + _MOST].decode("utf-8", "replace")
    if alike == 1:
        opening = _OPENING.match(text)
    else:
        opening = None
    if opening is not None:
        at = opening.end()
    else:
        at = len(text)
    if text.startswith("<", at):
        _, at = _split(text, at)
    parts, end = _split(text, at)
    if not end:
        return None
    types = list[frozenset[str]]()
    needed = 0
    has_rest = False
    for part in parts:
        plain = _PARAMETER.fullmatch(part)
        if plain is not None and plain[1] == "this":
            continue
        if part.startswith("..."):
            has_rest = True
            continue
        types.append(_read_union(plain[3] or "") if plain is not None else frozenset())
        needed += plain is not None and not plain[2] and not plain[4]
    result = _RESULT.match(text, end)
    return Signature(
        types,
        needed,
        has_rest,
        _read_union(result[1]) if result is not None else frozenset(),
    )


def _split(text: str, start: int) -> tuple[list[str], int]:
    """Return the content of a bracket split at commas, and its end; 0: it contains strings or comments."""
    depth = 0
    parts = list[str]()
    since = start + 1
    for at in range(start, len(text)):
        sign = text[at]
        if sign in "'\"`/":
            break
        depth += (sign in "([{<") - (
            sign in ")]}" or (sign == ">" and text[at - 1] != "=")
        )
        if depth == 0 or (depth == 1 and sign == ","):
            parts.append(text[since:at].strip())
            since = at + 1
        if depth == 0:
            return [part for part in parts if part], at + 1
    return [], 0


def _read_union(written: str) -> frozenset[str]:
    """Return the parts of a union without ``null`` and ``undefined``; empty if they are not plain."""
    parts, _ = _split(f"({written.replace('|', ',')})", 0)
    plain = ("boolean" if part in {"true", "false"} else part for part in parts)
    if written.rstrip().endswith("|"):
        return frozenset()
    return frozenset(plain) - _NOTHING
