r"""Which 4-byte grams a text has: the contract between the index and the gram plan of a pattern.

ASCII A-Z is folded to a-z. The grams of a document are the 4-byte windows of each of its lines, including the ``\n`` at
its end, which is added to the last line if missing. So ``\n`` occurs only as the last byte of a gram. Windows that
consist only of space, tab, ``\r`` and ``\n`` are left out. A document with U+017F or U+212A, which fold to s and k,
also has the gram ``\n\n\n\n``. A gram is stored as its big-endian number, so that grams with a common prefix are
consecutive.
"""

from itertools import product

import numpy as np
import numpy.typing as npt

Grams = npt.NDArray[np.uint32]

GRAM = 4
"""Bytes in a gram; part of the index format."""

SLICE = 1 << 16
"""Bytes processed at once: their gram numbers, 256 KiB, are sorted within the processor's cache."""

FOLDS = b"\n\n\n\n"
_FOLDING = ("\u017f".encode(), "\u212a".encode())

_FOLD = bytes.maketrans(bytes(range(0x41, 0x5B)), bytes(range(0x61, 0x7B)))
_BLANKS = b"\t\r "
_BLANK_GRAMS = np.array(
    sorted(
        int.from_bytes(bytes(gram), "big")
        for gram in product(*(_BLANKS,) * 3, _BLANKS + b"\n")
    ),
    np.uint32,
)
"""Windows of blanks within one line, ascending."""
_LINE_ENDS = np.uint32(0x0A0A0A00)
_LAST = np.uint32(0xFF)
_ONES = np.uint32(0x01010101)
_HIGHS = np.uint32(0x80808080)


def grams_of(text: bytes) -> Grams:
    """Return the distinct grams of ``text``, ascending."""
    parts: list[Grams] = []
    for at in range(0, max(1, len(text)), SLICE):
        # Slices overlap by GRAM - 1 bytes, so that every window is in one. If the text
        # lacks its last line end, the slices that reach its end get one; because of the
        # overlap there may be two of them.
        folded = text[at : at + SLICE + GRAM - 1].translate(_FOLD)
        if at + len(folded) == len(text) and not folded.endswith(b"\n"):
            folded += b"\n"
        windows = np.ndarray(
            max(0, len(folded) - GRAM + 1), ">u4", folded, strides=(1,)
        )
        parts.append(_distinct(windows.astype(np.uint32)))
    part: Grams = parts[0] if len(parts) == 1 else _distinct(np.concatenate(parts))
    # Without those that consist of blanks or span lines. Finds zero bytes: subtracting
    # one sets the highest bit, which was not set before (Mycroft, 1987).
    others = part ^ _LINE_ENDS | _LAST
    is_gram = (others - _ONES) & ~others & _HIGHS == 0
    if len(part):
        blanks = part.searchsorted(_BLANK_GRAMS)
        is_gram[blanks[part.take(blanks, mode="clip") == _BLANK_GRAMS]] = False
    part = part.take(is_gram.nonzero()[0])
    if not text.isascii() and any(letter in text for letter in _FOLDING):
        folds = np.uint32(number(FOLDS))
        return np.insert(part, np.searchsorted(part, folds), folds)
    return part


def number(gram: bytes) -> int:
    """Return a gram's number; for a shorter prefix, the first number with that prefix."""
    return int.from_bytes(gram.ljust(GRAM, b"\0"), "big")


def _distinct(found: Grams) -> Grams:
    """Return the distinct numbers, ascending; sorts its argument in place."""
    found.sort()
    # By index: selecting by a mask takes three times as long, since its branches are
    # mispredicted.
    again = (found[1:] != found[:-1]).nonzero()[0]
    again += 1
    return np.concatenate((found[:1], found.take(again)))
