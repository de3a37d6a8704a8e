r"""Which grams a text must have for a pattern to match: an AND/OR expression over four-byte windows.

`index/grams.py` defines the grams of a text. Three facts matter here: "\n" occurs only as a gram's last byte; a window
of blanks is not indexed, so it is unknown, never absent; and a text with a non-ASCII character that folds to an ASCII
letter also has the gram FOLDS.

The plan follows Russ Cox, "Regular Expression Matching with a Trigram Index" (codesearch): each node has a set of exact
strings as long as that is small, otherwise the prefixes and suffixes of its matches and the grams they must contain.
All strings are folded.
"""

import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.pattern.regex_tree import (
    NEWLINE,
    Alternation,
    Assertion,
    ByteSet,
    Chars,
    CharSet,
    Concat,
    Group,
    Node,
    Repeat,
    map_children,
    plain_bytes,
)

GRAM = 4
FOLDS = b"\n\n\n\n"  # Cannot be a window; it means "has U+017F (folds to s) or U+212A (folds to k)".
MAX_PARTS = (
    64  # More parts do not narrow the candidates further, and each one costs a lookup.
)
MAX_TERMS = 512  # Grams in one expression.
MAX_STRINGS = (
    16  # Strings in one set; a larger class or product ends the run of exact strings.
)
MAX_CLASS = 64  # Code points of a class, before folding.
MAX_LENGTH = 4096  # Bytes in one exact set; of a larger set only the grams, prefixes and suffixes are kept.
MAX_COPIES = 64  # Unrolled copies of a counted repetition.
MAX_JOINED = 200  # Planned parts of a sequence; more of them hardly narrow the candidates, and take 1 ms each.
NO_WORD = ((0x00, 0x2F), (0x3A, 0x5E), (0x60, 0x60), (0x7B, 0xFF))
"""Bytes of a folded text that are none of an ASCII word; from and to."""
_BLANKS = b" \t\r\n"
_EDGE = GRAM - 1
_ASCII_WORD = re.compile(rb"\w{3}", re.ASCII)
_FOLDING = (
    (CharSet.chars("\u017f"), CharSet.chars("sS")),
    (CharSet.chars("\u212a"), CharSet.chars("kK")),
)
_FOLD = bytes.maketrans(bytes(range(0x41, 0x5B)), bytes(range(0x61, 0x7B)))


@dataclass(frozen=True, slots=True)
class Gram:
    """A four-byte gram that must occur; a value of three bytes stands for any gram with that prefix."""

    value: bytes
    ends_word: bool = False
    """Whether such a gram has to end with a byte that is none of an ASCII word."""

    def __str__(self) -> str:
        text = repr(self.value)[1:]
        if len(self.value) == GRAM:
            return text
        if self.ends_word:
            return rf"{text}\W"
        return f"{text}…"


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction; without parts it is always true."""

    parts: "tuple[GramExpr, ...]"

    def __str__(self) -> str:
        if self.parts:
            return "(" + " AND ".join(map(str, self.parts)) + ")"
        return "ANYTHING"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction; without parts it is always false."""

    parts: "tuple[GramExpr, ...]"

    def __str__(self) -> str:
        if self.parts:
            return "(" + " OR ".join(map(str, self.parts)) + ")"
        return "NOTHING"


GramExpr = Gram | AllOf | AnyOf

ANYTHING = AllOf(())
NOTHING = AnyOf(())


def _is_implied(
    part: GramExpr, conjunction: AbstractSet[GramExpr], grams: Iterable[Gram]
) -> bool:
    """Return whether another part of a conjunction implies this one; ``grams``: those among its parts."""
    if isinstance(part, AnyOf):
        # (a OR c) is implied by a.
        return any(_terms(branch) <= conjunction for branch in part.parts)
    if not isinstance(part, Gram) or len(part.value) >= GRAM or part.ends_word:
        return False
    # A prefix of three bytes is implied by a full gram with that prefix, and by one that ends a word.
    return any(gram.value.startswith(part.value) and gram != part for gram in grams)


def all_of(parts: Iterable[GramExpr]) -> GramExpr:
    """Return the conjunction, flattened, without parts that another part implies or that exceed the bounds."""
    flat: dict[GramExpr, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    if NOTHING in flat:
        return NOTHING
    grams = [part for part in flat if isinstance(part, Gram)]
    kept_parts: list[GramExpr] = []
    for part in flat:
        if not _is_implied(part, flat.keys(), grams):
            kept_parts.append(part)
    # If parts must be dropped, keep grams first, then short disjunctions.
    kept_parts.sort(key=_size)
    sizes = accumulate(map(_size, kept_parts))
    kept_parts = [
        part
        for part, size in zip(kept_parts[:MAX_PARTS], sizes, strict=False)
        if size <= MAX_TERMS
    ]
    if len(kept_parts) == 1:
        return kept_parts[0]
    return AllOf(tuple(kept_parts))


def any_of(parts: Iterable[GramExpr]) -> GramExpr:
    """Return the disjunction of grams and conjunctions of grams, without alternatives that imply another one.

    Disjunctions within an alternative are dropped in favour of its grams, so no expression is deeper than three. More
    than `MAX_PARTS` alternatives give ANYTHING.
    """
    flat: dict[GramExpr, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(_alternatives(part)))
    if ANYTHING in flat or len(flat) > MAX_PARTS * 2:
        return ANYTHING
    terms = {part: _terms(part) for part in flat}
    # (a AND b) implies a, so next to a it adds nothing.
    kept_parts = [
        part for part in flat if not any(terms[other] < terms[part] for other in flat)
    ]
    # Dropping an alternative would lose matches; only the whole disjunction may be
    # dropped.
    if len(kept_parts) > MAX_PARTS:
        return ANYTHING
    most = max(2, MAX_TERMS // max(1, len(kept_parts)))
    kept_parts = [
        AllOf(_spread(part.parts, most)) if isinstance(part, AllOf) else part
        for part in kept_parts
    ]
    if len(kept_parts) == 1:
        return kept_parts[0]
    return AnyOf(tuple(kept_parts))


def _alternatives(part: GramExpr) -> tuple[GramExpr, ...]:
    if isinstance(part, AnyOf):
        return part.parts
    if isinstance(part, Gram) or not part.parts:
        return (part,)
    grams = tuple(inner for inner in part.parts if isinstance(inner, Gram))
    # If there are only disjunctions, take the first; it is the shortest, since all_of
    # sorts by size.
    if not grams:
        return _alternatives(part.parts[0])
    return (grams[0] if len(grams) == 1 else AllOf(grams),)


def _terms(part: GramExpr) -> frozenset[GramExpr]:
    if isinstance(part, AllOf):
        return frozenset(part.parts)
    return frozenset((part,))


def _size(part: GramExpr) -> int:
    if isinstance(part, Gram):
        return 1
    return sum(map(_size, part.parts))


def _spread(parts: "tuple[GramExpr, ...]", most: int) -> "tuple[GramExpr, ...]":
    """Choose at most `most` parts at even distances, including the last, so that the grams of a text overlap least."""
    if len(parts) <= most:
        return parts
    return tuple(parts[index * (len(parts) - 1) // (most - 1)] for index in range(most))


def word_end(text: bytes) -> GramExpr:
    """Return what a text must have to contain ``text``, which must be folded, where an ASCII word ends."""
    ending = text[-_EDGE:]
    if not _ASCII_WORD.fullmatch(ending):
        return ANYTHING
    # What is before a word is in no gram where a line begins with it; what is after it,
    # the line end included, always is.
    gram = Gram(ending, ends_word=True)
    if b"s" in ending or b"k" in ending:
        return any_of((gram, Gram(FOLDS)))
    return gram


def grams_in(text: bytes, most: int = MAX_PARTS) -> GramExpr:
    """Return the grams that a text must have to contain `text`, which must be folded."""
    *lines, rest = text.split(b"\n")
    windows: list[bytes] = []
    for line in [*(line + b"\n" for line in lines), rest]:
        if len(line) == _EDGE and not line.endswith(b"\n"):
            windows.append(
                line
            )  # Three bytes that do not end a line are a prefix of some gram.
        else:
            windows += [line[at : at + GRAM] for at in range(len(line) - GRAM + 1)]
    # Windows of blanks are not indexed, so they must not be required.
    return all_of(
        _spread(
            tuple(Gram(window) for window in windows if window.strip(_BLANKS)), most
        )
    )


Strings = frozenset[bytes]

_UNKNOWN: Strings = frozenset((b"",))


class _Facts(NamedTuple):
    """What is known about a node's matches: all of them (`exact`) or prefixes and suffixes, and the grams they need."""

    exact: Strings | None
    prefix: Strings = _UNKNOWN
    suffix: Strings = _UNKNOWN
    need: GramExpr = ANYTHING

    @property
    def starts(self) -> Strings:
        """What the matches begin with: the whole strings if they are known."""
        if self.exact is None:
            return self.prefix
        return self.exact

    @property
    def ends(self) -> Strings:
        """What the matches end with: the whole strings if they are known."""
        if self.exact is None:
            return self.suffix
        return self.exact


_NOTHING_KNOWN = _Facts(None)
_EMPTY = _Facts(_UNKNOWN)


def plan_grams(node: Node, *, multiline: bool) -> GramExpr:
    """Return an expression that is true for every text in which `node` matches.

    The two non-ASCII letters that fold to s and k are rare, so they are planned separately: either the text has one of
    them, or it matches the pattern without them. Otherwise each s or k would double the alternatives.
    """
    if (
        text := plain_bytes(node)
    ) is not None:  # most queries; takes an eighth of the time
        return grams_in(text.translate(_FOLD))
    if not multiline:
        node = _with_line_end(node)
    plain = _without_folds(node)
    need = _close(_facts(plain)).need
    if plain == node:
        return need
    return any_of((need, Gram(FOLDS)))


def _with_line_end(node: Node) -> Node:
    """Replace a final `$` by the line end that the index appends to every line; nothing can follow it."""
    match node:
        case Assertion("line_end"):
            return Chars(NEWLINE)
        case Concat(parts) if parts:
            return Concat((*parts[:-1], _with_line_end(parts[-1])))
        case Alternation(parts):
            return Alternation(tuple(map(_with_line_end, parts)))
        case Group(inner):
            return _with_line_end(inner)
        case _:
            return node


def _without_folds(node: Node) -> Node:
    """Remove U+017F and U+212A from classes that have the ASCII letters they fold to."""
    if not isinstance(node, Chars):
        return map_children(node, _without_folds)
    char_set = node.set
    if char_set.is_ascii() or len(char_set) > MAX_CLASS:
        return node
    for rare, letter in _FOLDING:
        if (char_set & rare).ranges and (char_set & letter).ranges:
            char_set = char_set - rare
    return Chars(char_set, node.at)


def _facts_of_set(members: CharSet, encode: Callable[[int], bytes]) -> _Facts:
    if len(members) > MAX_CLASS:
        return _NOTHING_KNOWN
    # Folding makes one string of two members such as k and K.
    strings = frozenset(encode(member).translate(_FOLD) for member in members)
    if len(strings) > MAX_STRINGS:
        return _NOTHING_KNOWN
    return _Facts(strings)


def _facts(node: Node) -> _Facts:
    checkpoint()
    match node:
        case Chars(members):
            facts = _facts_of_set(members, lambda member: chr(member).encode())
        case ByteSet(members):
            facts = _facts_of_set(members, lambda member: bytes((member,)))
        # Consumes nothing; the condition itself is checked when lines are matched.
        case Assertion() | Repeat(_, _, 0):
            facts = _EMPTY
        case Concat(parts):
            facts = _join_all(parts)
        case Alternation(parts):
            facts = _either([_facts(part) for part in parts])
        case Repeat(inner, 0, high):
            # An optional node needs no grams; only "?" has two exact cases.
            if high == 1:
                facts = _either([_facts(inner), _EMPTY])
            else:
                facts = _NOTHING_KNOWN
        case Repeat(inner, low, high):
            copies = reduce(_join, [_facts(inner)] * min(low, MAX_COPIES), _EMPTY)
            # Without an upper bound only the required copies are known, and the match
            # may continue after them.
            if low == high and low <= MAX_COPIES:
                facts = copies
            else:
                facts = _close(copies)
        case Group(inner):
            facts = _facts(inner)
    return facts


def _join_all(parts: tuple[Node, ...]) -> _Facts:
    """Join runs of exact parts first, so that each run is joined with an inexact part as a whole."""
    facts = _EMPTY
    run = _EMPTY
    for part in map(_facts, parts[:MAX_JOINED]):
        joined = _join(run, part)
        # The run ends here. Join it as a whole: joined part by part, its inner grams
        # would be lost.
        if joined.exact is None:
            if part.exact is None:
                facts = _join(_join(facts, run), part)
            else:
                facts = _join(facts, run)
            joined = part
        run = _EMPTY if part.exact is None else joined
    facts = _join(facts, run)
    # What follows the planned parts is unknown, and so is the end of the match.
    if len(parts) <= MAX_JOINED:
        return facts
    return _close(facts)._replace(suffix=_UNKNOWN)


def _join(left: _Facts, right: _Facts) -> _Facts:
    """Return what is known about a match of `left` followed by one of `right`."""
    if left.exact is not None and right.exact is not None:
        if len(left.exact) * len(right.exact) <= MAX_STRINGS:
            if right.need is ANYTHING:
                need = left.need
            else:
                need = all_of((left.need, right.need))
            exact = _cross(left.exact, right.exact)
            facts = _Facts(exact, need=need)
            if sum(map(len, exact)) > MAX_LENGTH:
                return _close(facts)
            return facts
        left = _close(left)
    if left.exact is None:
        prefix = left.prefix
    else:
        prefix = _cross(left.exact, right.starts)
    if right.exact is None:
        suffix = right.suffix
    else:
        suffix = _cross(left.ends, right.exact)
    # The grams across the boundary, which neither side has on its own.
    between = _any_text(_cross(left.ends, right.starts))
    return _trim(_Facts(None, prefix, suffix, all_of((left.need, right.need, between))))


def _either(branches: list[_Facts]) -> _Facts:
    exact: Strings = frozenset().union(*(branch.exact or () for branch in branches))
    if len(exact) <= MAX_STRINGS and all(
        branch.exact is not None for branch in branches
    ):
        return _Facts(exact, need=any_of(branch.need for branch in branches))
    closed = [_close(branch) for branch in branches]
    prefix: Strings = frozenset().union(*(branch.prefix for branch in closed))
    suffix: Strings = frozenset().union(*(branch.suffix for branch in closed))
    return _trim(_Facts(None, prefix, suffix, any_of(branch.need for branch in closed)))


def _close(facts: _Facts) -> _Facts:
    """Turn exact strings into required grams, prefixes and suffixes."""
    if facts.exact is None:
        return facts
    return _trim(_Facts(None, facts.exact, facts.exact, facts.need))


def _trim(facts: _Facts) -> _Facts:
    """Require the grams of prefixes and suffixes, then cut these to the bytes that a neighbour can extend to a gram."""
    need = all_of((facts.need, _any_text(facts.prefix), _any_text(facts.suffix)))
    prefix = _shorten({text[:_EDGE] for text in facts.prefix}, first=True)
    suffix = _shorten({text[-_EDGE:] for text in facts.suffix}, first=False)
    return _Facts(None, prefix, suffix, need)


def _shorten(texts: Iterable[bytes], *, first: bool) -> Strings:
    """Shorten the strings until they are few enough; an empty string means that nothing is known."""
    strings = frozenset(texts)
    for length in range(_EDGE - 1, -1, -1):
        if len(strings) <= MAX_STRINGS:
            break
        strings = frozenset(
            text[:length] if first else text[len(text) - min(length, len(text)) :]
            for text in strings
        )
    if b"" in strings:
        return _UNKNOWN
    return strings


def _cross(left: Strings, right: Strings) -> Strings:
    return frozenset(before + after for before in left for after in right)


def _any_text(texts: Strings) -> GramExpr:
    """Return the grams that a text must have to contain one of these strings, which must be folded."""
    # One string that is too short makes the whole disjunction useless.
    if len(texts) > MAX_PARTS or not all(len(text) >= _EDGE for text in texts):
        return ANYTHING
    most = max(2, MAX_PARTS // max(1, len(texts)))
    return any_of(grams_in(text, most) for text in sorted(texts))
