r"""Which 4-byte grams a text has: the contract between the index and the gram plan of a pattern.

ASCII A-Z is folded to a-z. The grams of a document are the 4-byte windows of each of its lines, including the ``\n`` at
its end, which is added to the last line if missing. So ``\n`` occurs only as the last byte of a gram. Windows that
consist only of space, tab, ``\r`` and ``\n`` are left out. A document with U+017F or U+212A, which fold to s and k,
also has the gram ``\n\n\n\n``. A gram is stored as its big-endian number, so that grams with a common prefix are
consecutive.
"""

from itertools import product
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import numpy.typing as npt

Grams = npt.NDArray[np.uint32]

GRAM = 4
"""Bytes in a gram; part of the index format."""

SLICE = 1 << 16
"""Bytes processed at once: their gram numbers, 256 KiB, are sorted within the processor's cache."""

FOLDS = b"\n\n\n\n"
_FOLDING = ("\u017f".encode(), "\u212a".encode())

_FOLD = bytes.maketrans(ascii_uppercase.encode(), ascii_lowercase.encode())
_BLANKS = b"\t\r "


def _list_blank_grams() -> Grams:
    """Return the windows of blanks within one line, ascending."""
    grams = set()
    for gram in product(_BLANKS, _BLANKS, _BLANKS, _BLANKS + b"\n"):
        grams.add(number(bytes(gram)))
    return np.array(sorted(grams), np.uint32)


_LINE_ENDS = np.uint32(0x0A0A0A00)
_LAST = np.uint32(0xFF)
_ONES = np.uint32(0x01010101)
_HIGHS = np.uint32(0x80808080)


def grams_of(text: bytes) -> Grams:
    """Return the distinct grams of ``text``, ascending."""
    parts: list[Grams] = []
    for at in range(0, max(1, len(text)), SLICE):
        windows = _read_windows(text, at)
        parts.append(_distinct(windows.astype(np.uint32)))
    part = parts[0]
    if len(parts) > 1:
        part = _distinct(np.concatenate(parts))
    is_gram = _is_within_a_line(part)
    if len(part):
        places = part.searchsorted(_BLANK_GRAMS)
        is_there = part.take(places, mode="clip") == _BLANK_GRAMS
        is_gram[places[is_there]] = False
    part = part.take(is_gram.nonzero()[0])
    # Few texts have a letter beyond ASCII: only these are searched for the two.
    if not text.isascii() and any(letter in text for letter in _FOLDING):
        folds = np.uint32(number(FOLDS))
        return np.insert(part, np.searchsorted(part, folds), folds)
    return part


def _read_windows(text: bytes, at: int) -> npt.NDArray[np.uint32]:
    """Return the windows of the slice of a text that begins at a byte, in their order."""
    # Slices overlap by GRAM - 1 bytes, so that every window is in one. If the text
    # lacks its last line end, the slices that reach its end get one; because of the
    # overlap there may be two of them.
    overlap = GRAM - 1
    folded = text[at : at + SLICE + overlap].translate(_FOLD)
    is_last = at + len(folded) == len(text)
    if is_last and not folded.endswith(b"\n"):
        folded += b"\n"
    count = max(0, len(folded) - overlap)
    return np.ndarray(count, ">u4", folded, strides=(1,))


def _is_within_a_line(grams: Grams) -> npt.NDArray[np.bool_]:
    """Return for each gram whether a line end is at most its last byte."""
    # Finds zero bytes: subtracting one sets the highest bit, which was not set before
    # (Mycroft, 1987).
    others = grams ^ _LINE_ENDS
    others |= _LAST
    borrows = others - _ONES
    borrows &= ~others
    borrows &= _HIGHS
    is_within: npt.NDArray[np.bool_] = borrows == 0
    return is_within


def number(gram: bytes) -> int:
    """Return a gram's number; for a shorter prefix, the first number with that prefix."""
    return int.from_bytes(gram.ljust(GRAM, b"\0"), "big")


def _distinct(grams: Grams) -> Grams:
    """Return the distinct numbers, ascending; sorts its argument in place."""
    grams.sort()
    # By index: selecting by a mask takes three times as long, since its branches are
    # mispredicted.
    is_other = grams[1:] != grams[:-1]
    places = is_other.nonzero()[0]
    places += 1
    return np.concatenate((grams[:1], grams.take(places)))


_BLANK_GRAMS = _list_blank_grams()
