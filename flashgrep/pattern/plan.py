"""From a pattern's tree to the grams it needs.

After Russ Cox, "Regular Expression Matching with a Trigram Index" (codesearch): for each node the set of exact strings
while that stays small, else what its matches begin and end with, and what they must contain. All strings are folded.
"""

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from flashgrep.pattern.charset import NEWLINE, CharSet
from flashgrep.pattern.grams import ANYTHING, FOLDS, GRAM, MAX_PARTS, Gram, GramExpr, all_of, any_of, grams_in
from flashgrep.pattern.nodes import Chars, Concat, Either, Group, Look, Node, Octet, Repeat
from flashgrep.scheduler import checkpoint

Strings = frozenset[bytes]

MAX_STRINGS = 16  # Strings in one set; a class or a product above it breaks the run.
MAX_CLASS = 64  # Code points looked at before folding makes them fewer.
MAX_LENGTH = 4096  # Bytes in one exact set; then its grams are taken and the ends kept.
MAX_COPIES = 64  # Copies of a counted repetition that are written out.
MAX_JOINED = (
    200  # Parts of a sequence that are looked at: what follows them narrows hardly further, and takes 1 ms each.
)
_EDGE = GRAM - 1
_UNKNOWN = frozenset((b"",))
_FOLDING = ((CharSet.chars("\u017f"), CharSet.chars("sS")), (CharSet.chars("\u212a"), CharSet.chars("kK")))
_FOLD = bytes.maketrans(bytes(range(0x41, 0x5B)), bytes(range(0x61, 0x7B)))


class _Facts(NamedTuple):
    """What is known of a node's matches: all of them (`exact`), or how each begins and ends; and what each needs."""

    exact: Strings | None
    prefix: Strings = _UNKNOWN
    suffix: Strings = _UNKNOWN
    need: GramExpr = ANYTHING


_NOTHING_KNOWN = _Facts(None)
_EMPTY = _Facts(_UNKNOWN)


def plan(node: Node, *, multiline: bool) -> GramExpr:
    """Return an expression that holds for every text in which `node` matches.

    The two letters beyond ASCII that fold to s and k are so rare that they are planned apart: either the text has one
    of them, or the match is one of the pattern without them. Otherwise each s or k would double the alternatives.
    """
    node = node if multiline else _with_line_end(node)
    plain = _without_folds(node)
    need = _closed(_facts(plain)).need
    return need if plain == node else any_of((need, Gram(FOLDS)))


def _without_folds(node: Node) -> Node:  # noqa: PLR0911 # one case for each kind of node
    """Take U+017F and U+212A out of classes that have the ASCII letters they fold to."""
    match node:
        case Chars(found, at):
            if found.inside_ascii() or len(found) > MAX_CLASS:
                return node
            for rare, letter in _FOLDING:
                found = found - rare if (found & rare).ranges and (found & letter).ranges else found
            return Chars(found, at)
        case Concat(parts):
            return Concat(tuple(map(_without_folds, parts)))
        case Either(parts):
            return Either(tuple(map(_without_folds, parts)))
        case Repeat(inner, low, high, greedy):
            return Repeat(_without_folds(inner), low, high, greedy)
        case Group(inner, index, name):
            return Group(_without_folds(inner), index, name)
        case _:
            return node


def _with_line_end(node: Node) -> Node:
    """Read a final `$` as the line end that the index appends to every line; nothing can follow it."""
    match node:
        case Look("line_end"):
            return Chars(NEWLINE)
        case Concat(parts) if parts:
            return Concat((*parts[:-1], _with_line_end(parts[-1])))
        case Either(parts):
            return Either(tuple(map(_with_line_end, parts)))
        case Group(inner):
            return _with_line_end(inner)
        case _:
            return node


def _facts(node: Node) -> _Facts:  # noqa: PLR0911 # one case for each kind of node
    checkpoint()
    match node:
        case Chars(found):
            return _characters(found, as_bytes=False)
        case Octet(found):
            return _characters(found, as_bytes=True)
        case Look():
            return _EMPTY
        case Concat(parts):
            facts = _in_turn([_facts(part) for part in parts[:MAX_JOINED]])
            if len(parts) <= MAX_JOINED:
                return facts
            closed = _closed(facts)
            return _Facts(None, closed.prefix, _UNKNOWN, closed.need)
        case Either(parts):
            return _either([_facts(part) for part in parts])
        case Repeat():
            return _repeated(node)
        case Group(inner):
            return _facts(inner)


def _characters(found: CharSet, *, as_bytes: bool) -> _Facts:
    if len(found) > MAX_CLASS:
        return _NOTHING_KNOWN
    strings = frozenset((bytes((value,)) if as_bytes else chr(value).encode()).translate(_FOLD) for value in found)
    return _Facts(strings) if len(strings) <= MAX_STRINGS else _NOTHING_KNOWN


def _repeated(node: Repeat) -> _Facts:
    if node.high == 0:
        return _EMPTY
    inner = _facts(node.node)
    if node.low == 0:
        return _either([inner, _EMPTY]) if node.high == 1 else _NOTHING_KNOWN
    facts = reduce(_joined, [inner] * min(node.low, MAX_COPIES), _EMPTY)
    return facts if node.low == node.high and node.low <= MAX_COPIES else _closed(facts)


def _in_turn(parts: list[_Facts]) -> _Facts:
    """Join the exact strings of neighbours first, so that long runs meet what is inexact as a whole."""
    facts, run = _EMPTY, _EMPTY
    for part in parts:
        checkpoint()
        joined = _joined(run, part)
        if joined.exact is None:
            facts, joined = _joined(_joined(facts, run), part) if part.exact is None else _joined(facts, run), part
        run = _EMPTY if part.exact is None else joined
    return _joined(facts, run)


def _joined(left: _Facts, right: _Facts) -> _Facts:
    if left.exact is not None and right.exact is not None:
        if len(left.exact) * len(right.exact) <= MAX_STRINGS:
            need = left.need if right.need is ANYTHING else all_of((left.need, right.need))
            return _bounded(_Facts(_cross(left.exact, right.exact), need=need))
        left = _closed(left)
    prefix = left.prefix if left.exact is None else _cross(left.exact, _starts(right))
    suffix = right.suffix if right.exact is None else _cross(_ends(left), right.exact)
    between = _needed(_cross(_ends(left), _starts(right)))
    return _trimmed(_Facts(None, prefix, suffix, all_of((left.need, right.need, between))))


def _either(branches: list[_Facts]) -> _Facts:
    exact: Strings = frozenset().union(*(branch.exact or () for branch in branches))
    if len(exact) <= MAX_STRINGS and all(branch.exact is not None for branch in branches):
        return _Facts(exact, need=any_of(branch.need for branch in branches))
    closed = [_closed(branch) for branch in branches]
    prefix: Strings = frozenset().union(*(branch.prefix for branch in closed))
    suffix: Strings = frozenset().union(*(branch.suffix for branch in closed))
    return _trimmed(_Facts(None, prefix, suffix, any_of(branch.need for branch in closed)))


def _starts(facts: _Facts) -> Strings:
    return facts.prefix if facts.exact is None else facts.exact


def _ends(facts: _Facts) -> Strings:
    return facts.suffix if facts.exact is None else facts.exact


def _bounded(facts: _Facts) -> _Facts:
    exact = facts.exact or frozenset()
    return _closed(facts) if sum(map(len, exact)) > MAX_LENGTH else facts


def _closed(facts: _Facts) -> _Facts:
    """Turn exact strings into needed grams and known ends."""
    if facts.exact is None:
        return facts
    return _trimmed(_Facts(None, facts.exact, facts.exact, facts.need))


def _trimmed(facts: _Facts) -> _Facts:
    """Take the grams out of the known ends, then cut those to the bytes that a neighbour can still complete."""
    need = all_of((facts.need, _needed(facts.prefix), _needed(facts.suffix)))
    prefix = _few({text[:_EDGE] for text in facts.prefix}, first=True)
    suffix = _few({text[-_EDGE:] for text in facts.suffix}, first=False)
    return _Facts(None, prefix, suffix, need)


def _few(texts: Iterable[bytes], *, first: bool) -> Strings:
    """Shorten the strings until they are few enough; the empty string says that nothing is known."""
    found = frozenset(texts)
    for length in range(_EDGE - 1, -1, -1):
        if len(found) <= MAX_STRINGS:
            break
        found = frozenset(text[:length] if first else text[len(text) - min(length, len(text)) :] for text in found)
    return _UNKNOWN if b"" in found else found


def _cross(left: Strings, right: Strings) -> Strings:
    return frozenset(before + after for before in left for after in right)


def _needed(texts: Strings) -> GramExpr:
    if len(texts) > MAX_PARTS or not all(len(text) >= _EDGE for text in texts):
        return ANYTHING
    most = max(2, MAX_PARTS // max(1, len(texts)))
    return any_of(grams_in(text, most) for text in sorted(texts))
