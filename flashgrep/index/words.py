"""Words of code: which a text has, and how much each says about a chunk.

That is its part of BM25, quantised: an impact (Anh and Moffat, "Vector-space ranking with effective early termination",
2001). The index keeps (word, chunk) pairs. Their key is the word's CRC-32, its last bits replaced by the impact, so
that a word's chunks of one impact are one list of postings. Two words of one key are taken for one another (one pair in
2^29): that changes an order of answers at most.
"""

import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.checkpoint import checkpoint
from flashgrep.identifiers import Counted, Ints, count_identifiers, find_identifiers, places_of, split_words
from flashgrep.index.postings import Pairs, count, decode, decode_lists
from flashgrep.index.segments import Kind, lists_of, segments

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

_WEIGHT_BITS: Final = 4
"""Room for ``MOST_REPEATS`` of the field that counts most."""
_LOW: Final = np.uint64(0xFFFFFFFF)

Floats = npt.NDArray[np.float32]


Family = Mapping[str, float]
"""A word and other forms of it, each with its weight: a chunk counts the one that says most there."""


class Fields(NamedTuple):
    """What the words of a chunk are taken from."""

    path: bytes
    names: bytes
    """What it is called and what it defines."""
    body: bytes
    context: bytes = b""
    """What an embedder is told of besides path and body: its words count for vectors alone."""


FIELD_WEIGHTS: Final = (2, 3, 1, 0)
"""How often a word of each field counts: a chunk is about what it defines more than about what it mentions."""
_NAMES, _CONTEXT = map(Fields._fields.index, ("names", "context"))


def parts(identifier: bytes) -> list[bytes]:
    """Return ``getHTTPResponse_v2`` as itself in lower case, get, http, response, v, 2; a plain word only as itself."""
    found = split_words(identifier)
    return [identifier.lower(), *found] if len(found) > 1 else [identifier.lower()]


def names_of(text: bytes) -> set[bytes]:
    """Return the distinct identifiers of a text that count as words."""
    # Distinct first: a text repeats most of its identifiers.
    found = set(find_identifiers(text))
    return {name for name in found if SHORTEST_WORD <= len(name) <= LONGEST_WORD and not name[:1].isdigit()}


def words_of(text: bytes) -> set[str]:
    """Return the distinct words of a text: lower case, compounds whole and in parts."""
    return {word.decode("ascii") for name in names_of(text) for word in parts(name)}


def key_of(word: bytes) -> int:
    """Return the first of a word's ``LEVELS`` keys."""
    # The last bits are free for the impact, so a word's keys stand side by side: one range of postings.
    return zlib.crc32(word) // LEVELS * LEVELS


def count_fields(chunks: Sequence[Fields]) -> Counted:
    """Count the identifiers of each field of chunks, the fields of a chunk one after the other."""
    return count_identifiers([field for chunk in chunks for field in chunk])


def choose_for_vectors(counted: Counted) -> Counted:
    """Return what an embedder is told of chunks whose fields are counted: each one's identifiers, some repeatedly."""
    places, fields = np.divmod(counted.texts, len(FIELD_WEIGHTS))
    told = np.flatnonzero(fields != _NAMES)
    return counted._replace(
        texts=places.take(told), numbers=counted.numbers.take(told), counts=counted.counts.take(told)
    )


def impacts_of(chunks: Sequence[Fields], counted: Counted | None = None) -> Pairs:
    """Return the (key, place in the list) pairs of chunks, ascending; ``counted``: their fields, if somebody has."""
    counted = counted or count_fields(chunks)
    # The keys of the words that each identifier counts as, as ``parts`` has them: itself first, then its parts.
    identifiers = counted.identifiers
    sizes = np.fromiter(map(len, identifiers), np.int64, len(identifiers))
    heads = np.frombuffer(b"".join(identifiers), np.uint8)[np.cumsum(sizes) - sizes]
    names = (sizes >= SHORTEST_WORD) & (sizes <= LONGEST_WORD) & ((heads < ord("0")) | (heads > ord("9")))
    words, of_parts = counted.words, counted.lengths
    compounds = names & (of_parts > 1)
    lengths = names + compounds * of_parts
    is_whole = np.zeros(int(lengths.sum()), np.bool_)
    is_whole[(np.cumsum(lengths) - lengths)[names]] = True
    checksums = np.empty(len(is_whole), np.uint64)
    lowered = map(bytes.lower, identifiers)
    checksums[is_whole] = np.fromiter(map(zlib.crc32, lowered), np.uint64, len(identifiers))[names]
    checksums[~is_whole] = np.fromiter(map(zlib.crc32, words), np.uint64, len(words))[compounds.repeat(of_parts)]
    keys: Pairs = checksums // np.uint64(LEVELS) * np.uint64(LEVELS)

    # Then each word of each chunk once, with how much it weighs there.
    own = np.flatnonzero(counted.texts % len(FIELD_WEIGHTS) != _CONTEXT)
    numbers = counted.numbers.take(own)
    flat = keys[places_of(numbers, lengths)]
    if not len(flat):
        return flat
    of_pair = lengths[numbers]
    repeats = np.minimum(counted.counts.take(own), MOST_REPEATS).repeat(of_pair)
    fields = counted.texts.take(own).repeat(of_pair)
    places = fields // len(FIELD_WEIGHTS)
    weights = repeats * np.array(FIELD_WEIGHTS)[fields % len(FIELD_WEIGHTS)]
    # Sorted with its weight in the lowest bits, a pair takes a third of the time that sorting by index takes.
    pairs: Pairs = flat << np.uint64(32) | (places << _WEIGHT_BITS | weights).astype(np.uint64)
    pairs.sort()
    low = (pairs & _LOW).astype(np.int64)
    pairs = (pairs & ~_LOW) | (low >> _WEIGHT_BITS).astype(np.uint64)
    starts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    pairs, weight = pairs[starts], np.add.reduceat(low & ((1 << _WEIGHT_BITS) - 1), starts)
    # BM25's part that does not depend on how rare the word is; that is only known when somebody asks.
    length = np.bincount(places, repeats, len(chunks))[(pairs & _LOW).astype(np.int64)]
    share = weight / (weight + K1 * (1 - B + B * length / USUAL_WORDS))
    levels = np.minimum((share * LEVELS).astype(np.uint64), LEVELS - 1)
    # Into the last bits of the key, which is in the upper half.
    pairs |= levels << np.uint64(32)
    pairs.sort()
    return pairs


def value_of(level: int) -> float:
    """Return what a word of a level adds to a chunk's BM25, before it is weighed by how rare it is."""
    return (K1 + 1) * (level + 0.5) / LEVELS


def scores_of(pairs: Pairs, families: Iterable[Family], count: int) -> Floats:
    """Return the BM25 of each of ``count`` chunks whose pairs these are."""
    scores = np.zeros(count, np.float32)
    for family in families:
        best = defaultdict[int, float](float)
        for word, weight in family.items():
            key = key_of(word.encode())
            low, high = np.searchsorted(pairs, [np.uint64(key << 32), np.uint64((key + LEVELS) << 32)])
            for pair in pairs[low:high].tolist():
                place, value = pair & 0xFFFFFFFF, weight * value_of(pair >> 32 & (LEVELS - 1))
                best[place] = max(value, best[place])
        for place, value in best.items():
            scores[place] += value
    return scores


class WordList(NamedTuple):
    """Chunks of one segment that have a word with one impact: numbers less ``first``, encoded."""

    first: int
    level: int
    data: memoryview


class WordLists(NamedTuple):
    """The chunks that have a word, dead ones included: how many, and their lists, encoded."""

    chunks: int
    lists: list[WordList]


def find_words(connection: sqlite3.Connection, words: Iterable[str]) -> dict[str, WordLists]:
    """Return where each word is; those in no chunk are left out.

    Raises:
        Damaged: the postings are not what was written.

    """
    rows = segments(connection, Kind.WORDS)
    found: dict[str, WordLists] = {}
    for word in words:
        key = key_of(word.encode())
        lists = [
            WordList(row.first, at - key, data)
            for row in rows
            for at, data in lists_of(connection, row.id, key, key + LEVELS - 1)
        ]
        if lists:
            # Counted at once: each list by itself takes as long as looking it up.
            found[word] = WordLists(count(b"".join(one.data for one in lists)), lists)
    return found


def numbers_in(found: WordLists, chunks: int) -> Ints:
    """Return the chunks below ``chunks`` that have a word, in no order."""
    numbers = [decode(one.data).astype(np.int64) + one.first for one in found.lists]
    together = np.concatenate(numbers)
    # Chunks stored after this state of the index was taken have higher numbers.
    return together[together < chunks]


def score(families: Iterable[Sequence[tuple[WordLists, float]]], chunks: int) -> Floats:
    """Return the BM25 of each chunk by number, 0 to ``chunks`` - 1, for the words of each family with their weights."""
    scores = np.zeros(chunks, np.float32)
    for family in families:
        # What most chunks have is added as it is; the rest counts where it says more.
        *rest, (most, weight) = sorted(family, key=lambda one: one[0].chunks)
        lists = [(of * value_of(one.level), one) for word, of in rest for one in word.lists]
        lists.sort(key=itemgetter(0))
        numbers, values = np.empty(0, np.int64), np.empty(0, np.float32)
        if lists:
            # All at once: a list takes 10 µs by itself, and of rare words it has a few bytes.
            data = [one.data for _, one in lists]
            documents, counts = decode_lists(b"".join(data), np.cumsum([*map(len, data)]))
            numbers = documents.astype(np.int64) + np.repeat([one.first for _, one in lists], counts)
            values = np.repeat(np.array([value for value, _ in lists], np.float32), counts)
            # Chunks stored after this state of the index was taken have higher numbers.
            numbers, values = numbers[numbers < chunks], values[numbers < chunks]
        before = scores[numbers]
        for one in most.lists:
            checkpoint()
            there = decode(one.data).astype(np.int64) + one.first
            # A list has a chunk once, so adding by index loses nothing.
            scores[there[there < chunks]] += weight * value_of(one.level)
        # Of a chunk in several lists the last value stays, which is the highest.
        scores[numbers] = np.maximum(scores[numbers], before + values)
    return scores
