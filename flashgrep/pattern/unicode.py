"""Unicode: properties, simple case folding, word characters, and sets of code points as classes of UTF-8's bytes.

`unicode.txt` is written by `scripts/unicode_tables` from the tables of ripgrep's engine, and read at first use. A line
is the names of a set, a tab, and its ranges: hexadecimal, each start relative to the end before, `.length` after it.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from flashgrep.pattern.tree import (
    ASCII,
    ASCII_WORD,
    LAST_ASCII,
    NEVER,
    CharSet,
    Concat,
    Either,
    Node,
    Octet,
    Range,
    walk,
)

_DATA = Path(__file__).with_name("unicode.txt")
_MOST_KEPT = 1024  # Ranges; \w and \pL have 700. A class that a caller wrote out may have ten thousand.
_WIDTH_LIMITS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)  # The last code points of one to four bytes.
_WORD_BYTES = frozenset(ASCII_WORD)

ByteRanges = tuple[Range, ...]
"""Byte strings of one length: a range for each byte."""

Side = bool | None
"""Is the neighbour a word character? None: it is no valid UTF-8."""


def find_property(name: str, value: str | None = None) -> CharSet | None:
    r"""Return the set of `\p{name}` or `\p{name=value}`, in any case and spacing; None if there is no such property."""
    plain = _normalize(name)
    if value is None:
        names = [plain, f"gc={plain}", f"sc={plain}"]
    else:
        kind = {"gc": "gc", "generalcategory": "gc", "sc": "sc", "script": "sc"}.get(plain)
        names = [f"{kind}={_normalize(value)}"]
    return next((_read_set(name) for name in names if name in _sets()), None)


def _normalize(name: str) -> str:
    """Return a name as the tables have it: `is` in front, blanks, `-` and `_` do not count."""
    plain = name.lower()
    bare = "".join(char for char in plain.removeprefix("is") if char.isascii() and char not in "_- ")
    return "isc" if bare == "c" and plain.startswith("is") else bare  # The name of another property, of no set.


@cache
def _sets() -> dict[str, str]:
    lines = _DATA.read_text(encoding="utf-8").split("\n")[1:-1]
    return {name: ranges for names, _, ranges in (line.partition("\t") for line in lines) for name in names.split(" ")}


@cache
def _read_set(name: str) -> CharSet:
    ranges: list[Range] = []
    end = 0
    for item in _sets()[name].split(","):
        step, _, length = item.partition(".")
        start = end + int(step, 16)
        end = start + int(length or "0", 16)
        ranges.append((start, end))
    return CharSet(tuple(ranges))


def word() -> CharSet:
    r"""Return Unicode `\w`: Alphabetic, marks, decimal numbers, connector punctuation and the two joiners."""
    return _read_set("PERL_WORD")


def digit() -> CharSet:
    r"""Return Unicode `\d`."""
    return _read_set("gc=nd")


def space() -> CharSet:
    r"""Return Unicode `\s`."""
    return _read_set("whitespace")


def fold(chars: CharSet) -> CharSet:
    """Return `chars` and everything equal to one of them except for case (simple folding)."""
    if chars <= ASCII:
        # Of all others, these two alone fold to letters of ASCII.
        found = fold_ascii(chars)
        extra = ("\N{KELVIN SIGN}" if ord("k") in found else "") + (
            "\N{LATIN SMALL LETTER LONG S}" if ord("s") in found else ""
        )
        return found | CharSet.chars(extra)
    # Only members that have a case are gone through: \w has 140,000, of which few thousand do.
    orbits, cased = _case_orbits()
    return chars | CharSet.chars(other for char in chars & cased for other in orbits[char])


def fold_ascii(chars: CharSet) -> CharSet:
    """Return `chars` and the other case of their ASCII letters: folding where Unicode is off."""
    return chars | CharSet.chars(chr(char).swapcase() for char in chars & ASCII)


@cache
def _case_orbits() -> tuple[dict[int, str], CharSet]:
    """Return, for each character that has a case, all that are equal to it except for case; and all that have one."""
    orbits = {ord(char): orbit for orbit in _sets()["CASE_ORBITS"].split(" ") for char in orbit}
    return orbits, CharSet.chars(map(chr, orbits))


def word_before(text: bytes, at: int) -> Side:
    """Return whether the code point that ends at `at` is a word character."""
    if at == 0:
        return False
    if text[at - 1] <= LAST_ASCII:
        return text[at - 1] in _WORD_BYTES
    start = at - 1
    while start > max(at - 4, 0) and text[start] & 0xC0 == 0x80:  # noqa: PLR2004 # a continuation byte
        start -= 1
    # As the engine does, judge what is decoded from there, even if stray continuation bytes follow it.
    return word_after(text[start:at], 0)


def word_after(text: bytes, at: int) -> Side:
    """Return whether the code point that starts at `at` is a word character."""
    if at == len(text):
        return False
    lead = text[at]
    if lead <= LAST_ASCII:
        return lead in _WORD_BYTES
    return _is_word(text[at : at + (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)])  # noqa: PLR2004 # UTF-8's leads


@lru_cache(maxsize=4096)  # The characters of one script, in the main.
def _is_word(encoded: bytes) -> Side:
    try:
        char = encoded.decode()
    except UnicodeDecodeError:
        return None
    return ord(char) in word() if len(char) == 1 else None


def byte_classes(chars: CharSet) -> Node:
    """Return the tree of byte classes that matches exactly the UTF-8 encodings of `chars`.

    The splitting of ranges follows Russ Cox's grep notes, as in Rust's utf8-ranges.
    """
    return _classes(chars)[0]


def count_byte_classes(chars: CharSet) -> int:
    """Return how many byte classes that tree has."""
    return _classes(chars)[1]


def _classes(chars: CharSet) -> tuple[Node, int]:
    return _kept_classes(chars) if len(chars.ranges) <= _MOST_KEPT else _make_classes(chars)


def _make_classes(chars: CharSet) -> tuple[Node, int]:
    if chars.is_ascii():
        return Octet(chars), 1
    tree = _trie([sequence for low, high in chars.ranges for sequence in _split(low, high)])
    return tree, sum(isinstance(part, Octet) for part in walk(tree))


# Patterns repeat their classes; the large ones (\w, \pL) cost 5 ms to split.
_kept_classes = lru_cache(maxsize=512)(_make_classes)


def _split(low: int, high: int) -> Iterator[ByteRanges]:
    """Cut a range of code points into parts whose encodings are all combinations of a range for each byte."""
    for limit in _WIDTH_LIMITS:
        if low <= limit < high:
            yield from _split(low, limit)
            yield from _split(limit + 1, high)
            return
    if high <= LAST_ASCII:
        yield ((low, high),)
        return
    # Each continuation byte holds six bits. A range is cut where one does not span all its values.
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


def _trie(sequences: list[ByteRanges]) -> Node:
    """Group sequences by their first byte, then first bytes by what may follow them."""
    tails: dict[Range, list[ByteRanges]] = {}
    for first, *rest in sequences:
        tails.setdefault(first, []).append(tuple(rest))
    heads: dict[tuple[ByteRanges, ...], list[Range]] = {}
    for first, found in tails.items():
        # Equal tails are shared: RE2 writes the program out in full, and \w would repeat most of them.
        heads.setdefault(tuple(found), []).append(first)
    branches: list[Node] = []
    for rests, firsts in heads.items():
        head = Octet(CharSet.of(*firsts))
        branches.append(head if rests == ((),) else Concat((head, _trie(list(rests)))))
    if len(branches) == 1:
        return branches[0]
    return Either(tuple(branches)) if branches else NEVER
