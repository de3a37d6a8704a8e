"""From sets of code points to sets of byte sequences: a trie of byte classes.

The splitting of ranges follows Russ Cox's grep notes, as in Rust's utf8-ranges.
"""

from collections.abc import Iterator
from functools import lru_cache

from flashgrep.pattern.charset import ASCII, CharSet, Range
from flashgrep.pattern.nodes import NEVER, Concat, Either, Node, Octet

Sequence = tuple[Range, ...]

_WIDTH_LIMITS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)


_MOST_KEPT = 1024  # Ranges; \w and \pL have 700. A class that a caller wrote out may have ten thousand.


def octets(chars: CharSet) -> Node:
    """Return the tree of byte classes that matches exactly the UTF-8 encodings of `chars`."""
    return _kept_octets(chars) if len(chars.ranges) <= _MOST_KEPT else _octets(chars)


def _octets(chars: CharSet) -> Node:
    if chars <= ASCII:
        return Octet(chars)
    sequences = [sequence for low, high in chars.ranges for sequence in _split(low, high)]
    return _trie(sequences)


# Patterns repeat their classes; the large ones (\w, \pL) cost 5 ms to split.
_kept_octets = lru_cache(maxsize=512)(_octets)


def _split(low: int, high: int) -> Iterator[Sequence]:
    for limit in _WIDTH_LIMITS:
        if low <= limit < high:
            yield from _split(low, limit)
            yield from _split(limit + 1, high)
            return
    if high <= _WIDTH_LIMITS[0]:
        yield ((low, high),)
        return
    for bits in (6, 12, 18):
        mask = (1 << bits) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                yield from _split(low, low | mask)
                yield from _split((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from _split(low, (high & ~mask) - 1)
                yield from _split(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


def _trie(sequences: list[Sequence]) -> Node:
    """Group sequences by first byte, then first bytes by what may follow them."""
    tails: dict[Range, list[Sequence]] = {}
    for first, *rest in sequences:
        tails.setdefault(first, []).append(tuple(rest))
    heads: dict[tuple[Sequence, ...], list[Range]] = {}
    for first, found in tails.items():
        heads.setdefault(tuple(found), []).append(first)
    branches: list[Node] = [_branch(CharSet.of(*firsts), rest) for rest, firsts in heads.items()]
    if len(branches) == 1:
        return branches[0]
    return Either(tuple(branches)) if branches else NEVER


def _branch(first: CharSet, rest: tuple[Sequence, ...]) -> Node:
    if rest == ((),):
        return Octet(first)
    return Concat((Octet(first), _trie(list(rest))))
