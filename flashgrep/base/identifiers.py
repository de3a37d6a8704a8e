"""Identifiers in code and the words in them, for many texts at a time.

An identifier is a run of ASCII letters, digits and ``_``; its words are ``get http response v 2`` for
"getHTTPResponse_v2". The word index and the embedded model use the same rules: the model was trained with them. Texts
repeat their identifiers, so these are counted first, and each distinct one of a batch is split once, by numpy.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_OTHER, _DIGIT, _LOWER, _UPPER = range(4)
_CLASS: Final = bytes(
    _DIGIT
    if 48 <= code < 58  # noqa: PLR2004 - ASCII
    else _LOWER
    if 97 <= code < 123  # noqa: PLR2004 - ASCII
    else _UPPER
    if 65 <= code < 91  # noqa: PLR2004 - ASCII
    else _OTHER
    for code in range(256)
)
_SPACED: Final = bytes(
    code if _CLASS[code] or code == ord("_") else ord(" ") for code in range(256)
)
_FOLDED: Final = bytes(
    code + 32 if _CLASS[code] == _UPPER else code if _CLASS[code] else 32
    for code in range(256)
)
_SPACE: Final = 32
_NUMBER_BITS: Final = 32
_WORD: Final = re.compile(rb"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


class IdentifierCounts(NamedTuple):
    """Identifier counts for the texts of a batch, as parallel columns, one text after the other."""

    identifiers: list[bytes]
    """The distinct identifiers of all texts."""
    texts: Ints
    """The text of each pair."""
    numbers: Ints
    """Index of its identifier in ``identifiers``."""
    counts: Ints
    words: list[bytes]
    """The words of the identifiers, one after the other, as from ``split_all``."""
    lengths: Ints
    """How many words each has."""


def find_identifiers(text: bytes) -> list[bytes]:
    """Return the identifiers of a text in order, with repeats."""
    return text.translate(_SPACED).split()


def count_identifiers(texts: Sequence[bytes]) -> IdentifierCounts:
    """Count the identifiers of each text."""
    number_of: defaultdict[bytes, int] = defaultdict()
    # One lookup numbers an identifier, and no line of Python runs for it.
    number_of.default_factory = number_of.__len__
    found_numbers = array("q")
    ends = [0]
    for text in texts:
        found_numbers.extend(map(number_of.__getitem__, find_identifiers(text)))
        ends.append(len(found_numbers))
    number_of.default_factory = None  # else it would reference itself, and indexing processes rarely collect garbage
    # Text and identifier in one number, so that one sort groups equal pairs.
    pairs = np.repeat(np.arange(len(texts)) << _NUMBER_BITS, np.diff(ends)) | np.array(
        found_numbers, np.int64
    )
    pairs.sort()
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    distinct = pairs[starts]
    numbers = distinct & ((1 << _NUMBER_BITS) - 1)
    identifiers = list(number_of)
    counts = np.diff(starts, append=len(pairs))
    return IdentifierCounts(
        identifiers, distinct >> _NUMBER_BITS, numbers, counts, *split_all(identifiers)
    )


def split_words(identifier: bytes) -> list[bytes]:
    """Return the words of one identifier in lower case; none for ``_``."""
    return [word.lower() for word in _WORD.findall(identifier)]


def split_all(identifiers: Sequence[bytes]) -> tuple[list[bytes], Ints]:
    """Return the words of identifiers, as from ``split_words``, one after the other, and the number of each."""
    text = b"\n".join([b"", *identifiers, b"", b""])
    classes = np.frombuffer(text.translate(_CLASS), np.uint8)
    before = classes[:-2]
    here = classes[1:-1]
    after = classes[2:]
    # A word begins where the class changes, except between a capital and the lower-case
    # letters after it; if several capitals precede a lower-case letter, the last one
    # begins the word.
    begins = (
        (here != before) & (here != _OTHER) & ((before != _UPPER) | (here != _LOWER))
    )
    begins |= (before == _UPPER) & (here == _UPPER) & (after == _LOWER)
    inner = np.flatnonzero(begins & (before != _OTHER)) + 1
    spaced = np.insert(np.frombuffer(text.translate(_FOLDED), np.uint8), inner, _SPACE)
    ends = np.cumsum(np.fromiter(map(len, identifiers), np.int64, len(identifiers)) + 1)
    return spaced.tobytes().split(), np.diff(np.cumsum(begins)[ends - 1], prepend=0)


def places_of(rows: Ints, lengths: Ints) -> Ints:
    """Return the indexes of some rows' items in the flat list of all rows; ``lengths``: the items of each row."""
    chosen = lengths[rows]
    first = (np.cumsum(lengths) - lengths)[rows]
    return np.repeat(first - (np.cumsum(chosen) - chosen), chosen) + np.arange(
        int(chosen.sum())
    )
