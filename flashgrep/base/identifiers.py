"""Identifiers in code and the words in them, for many texts at a time.

An identifier is a run of ASCII letters, digits and ``_``; its words are ``get http response v 2`` for
"getHTTPResponse_v2". The word index and the embedded model use the same rules: the model was trained with them. Texts
repeat their identifiers, so these are counted first, and each distinct one of a batch is split once, by numpy.
"""

import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_OTHER, _DIGIT, _LOWER, _UPPER = range(4)
_TO_LOWER: Final = 32
"""From a capital's code to that of its small letter."""
_SPACE: Final = 32


def _classify(code: int) -> int:
    character = bytes([code])
    if character.isdigit():
        return _DIGIT
    if character.islower():
        return _LOWER
    if character.isupper():
        return _UPPER
    return _OTHER


def _space(code: int) -> int:
    """Return the code, or a space's if no identifier has it."""
    if _CLASS[code] == _OTHER and code != ord("_"):
        return _SPACE
    return code


def _fold(code: int) -> int:
    """Return the small letter's code for a capital, and a space's for what no word has."""
    if _CLASS[code] == _OTHER:
        return _SPACE
    if _CLASS[code] == _UPPER:
        return code + _TO_LOWER
    return code


_CLASS: Final = bytes(map(_classify, range(256)))
_SPACED: Final = bytes(map(_space, range(256)))
_FOLDED: Final = bytes(map(_fold, range(256)))
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


def find_identifiers_with(text: bytes, parts: Iterable[bytes]) -> set[bytes]:
    """Return the identifiers of a text with one of these parts, which are in lower case, in any case."""
    spaced = text.translate(_SPACED)
    spaced += b" "
    folded = spaced.lower()
    identifiers = set[bytes]()
    for part in parts:
        at = folded.find(part)
        # Below the last space: an empty part is found there, too.
        while 0 <= at < len(text):
            start = spaced.rfind(b" ", 0, at) + 1
            end = spaced.find(b" ", at)
            identifiers.add(spaced[start:end])
            at = folded.find(part, end + 1)
    return identifiers


def count_identifiers(texts: Sequence[bytes]) -> IdentifierCounts:
    """Count the identifiers of each text."""
    # One lookup numbers an identifier, and no line of Python runs for it.
    number_of = defaultdict[bytes, int](itertools.count().__next__)
    numbers = array("q")
    ends = [0]
    for text in texts:
        identifiers = find_identifiers(text)
        numbers.extend(map(number_of.__getitem__, identifiers))
        ends.append(len(numbers))
    # Text and identifier in one number, so that one sort groups equal pairs.
    text_bits = np.arange(len(texts)) << _NUMBER_BITS
    sizes = np.diff(ends)
    pairs = np.repeat(text_bits, sizes)
    pairs |= np.array(numbers, np.int64)
    pairs.sort()
    steps = np.diff(pairs, prepend=-1)
    starts = np.flatnonzero(steps)
    distinct = pairs[starts]
    number_mask = (1 << _NUMBER_BITS) - 1
    distinct_identifiers = list(number_of)
    words, lengths = split_all(distinct_identifiers)
    return IdentifierCounts(
        identifiers=distinct_identifiers,
        texts=distinct >> _NUMBER_BITS,
        numbers=distinct & number_mask,
        counts=np.diff(starts, append=len(pairs)),
        words=words,
        lengths=lengths,
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
    was_upper = before == _UPPER
    # A word begins where the class changes, except between a capital and the lower-case
    # letters after it; if several capitals precede a lower-case letter, the last one
    # begins the word.
    begins = here != before
    begins &= here != _OTHER
    capitalised = was_upper & (here == _LOWER)
    begins &= ~capitalised
    next_capitalised = here == _UPPER
    next_capitalised &= after == _LOWER
    next_capitalised &= was_upper
    begins |= next_capitalised
    has_word_before = before != _OTHER
    inner = np.flatnonzero(begins & has_word_before) + 1
    folded = np.frombuffer(text.translate(_FOLDED), np.uint8)
    spaced = np.insert(folded, inner, _SPACE)
    words = spaced.tobytes().split()
    sizes = np.fromiter(map(len, identifiers), np.int64, len(identifiers))
    sizes += 1
    ends = np.cumsum(sizes)
    # How many words begin up to each byte; the difference between two ends is what
    # one identifier has.
    totals = np.cumsum(begins)
    lengths = np.diff(totals[ends - 1], prepend=0)
    return words, lengths


def places_of(rows: Ints, lengths: Ints) -> Ints:
    """Return the indexes of some rows' items in the flat list of all rows; ``lengths``: the items of each row."""
    chosen = lengths[rows]
    firsts = np.cumsum(lengths) - lengths
    new_firsts = np.cumsum(chosen) - chosen
    shifts = firsts[rows] - new_firsts
    places = np.arange(int(chosen.sum()))
    places += np.repeat(shifts, chosen)
    return places
