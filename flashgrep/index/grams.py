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
"""Bytes looked at in one go: numpy needs about 12 bytes of memory for each."""

FOLDS = b"\n\n\n\n"
_FOLDING = ("\u017f".encode(), "\u212a".encode())

_FOLD = np.arange(256, dtype=np.uint8)
_FOLD[65:91] += 32
_SPACE = np.zeros(256, dtype=bool)
_SPACE[[9, 10, 13, 32]] = True


def grams_of(text: bytes) -> Grams:
    """Return the distinct grams of ``text``, ascending."""
    starts = range(0, max(1, len(text)), SLICE)
    parts = [_distinct(_windows(text[at : at + SLICE + GRAM - 1], last=at + SLICE >= len(text))) for at in starts]
    if any(letter in text for letter in _FOLDING):
        parts.append(np.array([number(FOLDS)], np.uint32))
    return parts[0] if len(parts) == 1 else _distinct(np.concatenate(parts))


def number(gram: bytes) -> int:
    """Return a gram's number; a shorter prefix gives the first number with that prefix."""
    return int.from_bytes(gram.ljust(GRAM, b"\0"), "big")


def _windows(text: bytes, *, last: bool) -> Grams:
    """Return every window's number, with repeats. ``last``: the text ends here, so its last line gets its line end."""
    if last and not text.endswith(b"\n"):
        text += b"\n"
    raw = np.frombuffer(text, np.uint8)
    if len(raw) < GRAM:
        return np.empty(0, np.uint32)
    line_end = raw == 10  # noqa: PLR2004 - the code of a line feed
    space = _SPACE[raw]
    drop = line_end[:-3] | line_end[1:-2] | line_end[2:-1]
    drop |= space[:-3] & space[1:-2] & space[2:-1] & space[3:]
    folded = _FOLD[raw].astype(np.uint32)
    found = folded[:-3] << 24
    found |= folded[1:-2] << 16
    found |= folded[2:-1] << 8
    found |= folded[3:]
    kept: Grams = found[~drop]
    return kept


def _distinct(found: Grams) -> Grams:
    if len(found) == 0:
        return found
    found.sort()
    keep = np.empty(len(found), bool)
    keep[0] = True
    np.not_equal(found[1:], found[:-1], out=keep[1:])
    return found[keep]
