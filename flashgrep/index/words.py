"""Words of code: which a text has, and how much each says about a chunk.

That is its part of BM25, quantised: an impact (Anh and Moffat, "Vector-space ranking with effective early termination",
2001). The index keeps (word, chunk) pairs. Their key is the word's CRC-32, its last bits replaced by the impact, so
that a word's chunks of one impact are one list of postings. Two words of one key are taken for one another (one pair in
2^29): that changes an order of answers at most.
"""

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.index.postings import Pairs

MOST_REPEATS: Final = 3
"""A word counts at most so often in a chunk: BM25 has nearly saturated there."""

SHORTEST_WORD: Final = 2
LONGEST_WORD: Final = 64
"""Bytes; longer runs are data, not names."""

LEVELS: Final = 8
"""Steps of impact; 16 make the postings a tenth larger and no answer better."""

K1, B = 1.2, 0.75
"""BM25's usual constants."""
USUAL_WORDS: Final = 90.0
"""Words of a usual chunk: fixed, so that the impact of a word does not depend on what else is indexed."""

REMEMBERED: Final = 1 << 16
"""Identifiers whose keys are kept, about 15 MB; the frequent ones are back at once after it was emptied."""

_PART = re.compile(rb"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PART_OF_ONE_CASE = re.compile(rb"[a-z]+|[0-9]+")
_IN_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_SPACED = bytes(code if code in _IN_WORD else 32 for code in range(256))

Floats = npt.NDArray[np.float32]


class Fields(NamedTuple):
    """What the words of a chunk are taken from."""

    path: bytes
    names: bytes
    """What it is called and what it defines."""
    body: bytes


FIELD_WEIGHTS: Final = (2, 3, 1)
"""How often a word of each field counts: a chunk is about what it defines more than about what it mentions."""


def parts(identifier: bytes) -> list[bytes]:
    """Return ``getHTTPResponse_v2`` as itself in lower case, get, http, response, v, 2; a plain word only as itself."""
    folded = identifier.lower()
    if identifier == folded or identifier.isupper():  # most of what there is, and four times as fast
        found = _PART_OF_ONE_CASE.findall(folded)
    else:
        found = [part.lower() for part in _PART.findall(identifier)]
    return [folded, *found] if len(found) > 1 else [folded]


def words_of(text: bytes) -> set[str]:
    """Return the distinct words of a text: lower case, compounds whole and in parts."""
    found = set(text.translate(_SPACED).split())
    return {word.decode("ascii") for run in found for word in _words_of_run(run)}


def _words_of_run(run: bytes) -> list[bytes]:
    return parts(run) if SHORTEST_WORD <= len(run) <= LONGEST_WORD and not run[:1].isdigit() else []


def key_of(word: bytes) -> int:
    """Return the first of a word's ``LEVELS`` keys."""
    return zlib.crc32(word) // LEVELS * LEVELS


class _Keys(dict[bytes, tuple[int, ...]]):
    """A memory of identifiers: asked for any run of letters and digits, it gives the keys of its words."""

    def __missing__(self, run: bytes) -> tuple[int, ...]:
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[run] = tuple(map(key_of, _words_of_run(run)))
        return found


_KEYS = _Keys()


def impacts_of(chunks: Sequence[Fields]) -> Pairs:
    """Return the (key, place in the list) pairs of chunks, ascending.

    Blanking bytes and counting runs in C takes a third of the time of a regular expression.
    """
    keys: list[tuple[int, ...]] = []
    counts: list[int] = []
    sizes: list[int] = []
    for chunk in chunks:
        for field in chunk:
            found = Counter(field.translate(_SPACED).split())
            keys.extend(map(_KEYS.__getitem__, found))
            counts.extend(found.values())
            sizes.append(len(found))
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    flat = np.fromiter(chain.from_iterable(keys), np.uint64, int(lengths.sum()))
    fields = np.repeat(np.arange(len(sizes)), sizes).repeat(lengths)
    repeats = np.minimum(np.array(counts, np.int64), MOST_REPEATS).repeat(lengths)
    places = fields // len(FIELD_WEIGHTS)
    weighted = repeats * np.array(FIELD_WEIGHTS)[fields % len(FIELD_WEIGHTS)]
    pairs = flat << np.uint64(32) | places.astype(np.uint64)
    if not len(pairs):
        return pairs
    order = np.argsort(pairs)
    pairs, weighted = pairs[order], weighted[order]
    starts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    pairs, count = pairs[starts], np.add.reduceat(weighted, starts)
    length = np.bincount(places, repeats, len(chunks))[(pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)]
    share = count / (count + K1 * (1 - B + B * length / USUAL_WORDS))
    levels = np.minimum((share * LEVELS).astype(np.uint64), LEVELS - 1)
    pairs |= levels << np.uint64(32)
    pairs.sort()
    return pairs


def value_of(level: int) -> float:
    """Return what a word of a level adds to a chunk's BM25, before it is weighed by how rare it is."""
    return (K1 + 1) * (level + 0.5) / LEVELS


def scores_of(pairs: Pairs, weights: Mapping[str, float], count: int) -> Floats:
    """Return the BM25 of each of ``count`` chunks whose pairs these are, for words with their weights."""
    scores = np.zeros(count, np.float32)
    for word, weight in weights.items():
        key = key_of(word.encode())
        low, high = np.searchsorted(pairs, [np.uint64(key << 32), np.uint64((key + LEVELS) << 32)])
        for pair in pairs[low:high].tolist():
            scores[pair & 0xFFFFFFFF] += weight * value_of(pair >> 32 & (LEVELS - 1))
    return scores
