r"""Which 4-byte grams a text has: the contract between the index and the pattern planner.

A document's grams are taken from its bytes with ASCII A-Z folded to a-z, line by line, each line with its ``\n``
appended (the last line too): every 4-byte window, so that ``\n`` occurs only as the last byte of a gram. Windows made
of nothing but space, tab, ``\r`` and ``\n`` are left out. A document with U+017F or U+212A, which fold to s and k, has
the gram ``\n\n\n\n`` beside them. A gram is kept as its big-endian number, so that all grams
with a common prefix are neighbours.
"""

import numpy as np
import numpy.typing as npt

Grams = npt.NDArray[np.uint32]

GRAM = 4
"""Bytes in a gram; part of the index format."""

SLICE = 4 << 20
"""Bytes looked at in one go: numpy needs about 16 bytes of memory for each."""

SLOT_BITS = 15
SLOTS = 1 << SLOT_BITS
"""Slots of the table that takes repeated windows out: 128 KiB, which stay in a processor's cache."""
FEW = SLOTS // 4
"""So few windows are sorted as soon."""
_SCATTER = np.uint32(2_654_435_761)  # Knuth's multiplicative hash

FOLDS = b"\n\n\n\n"
_FOLDING = ("\u017f".encode(), "\u212a".encode())

_FOLD = bytes.maketrans(bytes(range(0x41, 0x5B)), bytes(range(0x61, 0x7B)))
_LINE_END = 10
_SPACE = np.zeros(256, bool)
_SPACE[[9, 10, 13, 32]] = True


def grams_of(text: bytes) -> Grams:
    """Return the distinct grams of ``text``, ascending."""
    parts: list[Grams] = []
    for at in range(0, max(1, len(text)), SLICE):
        # A slice overlaps the next one by what a window needs; the last one gets the line end that it may lack.
        folded = text[at : at + SLICE + GRAM - 1].translate(_FOLD)
        if at + SLICE >= len(text) and not folded.endswith(b"\n"):
            folded += b"\n"
        windows = np.empty(max(0, len(folded) - GRAM + 1), np.uint32)
        end = 0
        for start in range(GRAM if len(windows) else 0):  # every fourth window is a column of numbers as they stand
            start_of_these, end = end, end + (len(folded) - start) // GRAM
            windows[start_of_these:end] = np.frombuffer(folded, ">u4", end - start_of_these, start)
        parts.append(_distinct(windows))
    found = parts[0] if len(parts) == 1 else _distinct(np.concatenate(parts))
    if any(letter in text for letter in _FOLDING):
        folds = np.uint32(number(FOLDS))
        return np.insert(found, np.searchsorted(found, folds), folds)
    return found


def number(gram: bytes) -> int:
    """Return a gram's number; a shorter prefix gives the first number with that prefix."""
    return int.from_bytes(gram.ljust(GRAM, b"\0"), "big")


def _distinct(found: Grams) -> Grams:
    """Return the distinct numbers, ascending, without those of blanks and of what spans lines."""
    if len(found) > FEW:
        # Five of six windows repeat another. Each goes to a slot of a table; one that finds another number there
        # afterwards stays as it is. What is left is sorted in a quarter of the time, the table included in two thirds.
        slots = found * _SCATTER >> np.uint32(32 - SLOT_BITS)
        table = np.full(SLOTS, number(b"    "), np.uint32)
        table[slots] = found
        found = np.concatenate((table, found[table[slots] != found]))
    found.sort()
    keep = np.ones(len(found), bool)
    np.not_equal(found[1:], found[:-1], out=keep[1:])
    distinct = found[keep]
    first, second, third, fourth = (distinct >> np.uint32(shift) & np.uint32(0xFF) for shift in (24, 16, 8, 0))
    drop = (first == _LINE_END) | (second == _LINE_END) | (third == _LINE_END)
    drop |= _SPACE[first] & _SPACE[second] & _SPACE[third] & _SPACE[fourth]
    kept: Grams = distinct[~drop]
    return kept
