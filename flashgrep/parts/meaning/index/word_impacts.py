"""Words of code: which words a text has, and how much each one contributes to a chunk's score.

That contribution is the word's part of BM25, quantised: an impact (Anh and Moffat, "Vector-space ranking with effective
early termination", 2001). The index stores (word, chunk) pairs. Their key is the word's CRC-32 with its last bits
replaced by the impact, so that each list of postings has the chunks of one word and impact. Words with the same key
(one pair in 2^29) are not distinguished, which can only affect the order of answers.
"""

import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from os.path import commonprefix
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.identifiers import (
    IdentifierCounts,
    Ints,
    count_identifiers,
    find_identifiers,
    places_of,
    split_words,
)
from flashgrep.index.postings import Pairs, count, decode, decode_lists
from flashgrep.index.segments import Kind, lists_of, segments

MOST_REPEATS: Final = 3
"""A word counts at most this often in a chunk; BM25 is nearly saturated there."""

SHORTEST_WORD: Final = 2
LONGEST_WORD: Final = 64
"""Bytes; longer runs are data, not names."""

LEVELS: Final = 8
"""Levels of impact; 16 made the postings a tenth larger and no answer better."""

K1, B = 1.2, 0.75
"""BM25's usual constants."""
USUAL_WORDS: Final = 90.0
"""BM25's average document length: fixed, so that the impact of a word does not depend on what else is indexed."""

_WEIGHT_BITS: Final = 4
"""Enough for ``MOST_REPEATS`` of the field that counts most."""
_LOW: Final = np.uint64(0xFFFFFFFF)

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


Family = Mapping[str, float]
"""A word and its other forms, each with a weight; in a chunk only the form with the highest value counts."""


def shared_beginning(words: Iterable[str]) -> bytes:
    """Return the letters that all words begin with: a text without them has none of the words."""
    return commonprefix([*words]).encode()  # noqa: RUF071 - letters, not folders


class Fields(NamedTuple):
    """The parts of a chunk that its words come from."""

    path: bytes
    names: bytes
    """Its name and the names it defines."""
    body: bytes
    context: bytes = b""
    """What an embedder gets besides path and body; its words count only for vectors."""


FIELD_WEIGHTS: Final = (2, 3, 1, 0)
"""How often a word of each field counts: what a chunk defines matters more than what it mentions."""
_NAMES, _CONTEXT = map(Fields._fields.index, ("names", "context"))


def parts(identifier: bytes) -> list[bytes]:
    """Return the words of an identifier, in lower case: itself, then its parts if it has several.

    "getHTTPResponse_v2" gives itself, get, http, response, v, 2.
    """
    words = split_words(identifier)
    if len(words) > 1:
        return [identifier.lower(), *words]
    return [identifier.lower()]


def names_of(text: bytes) -> set[bytes]:
    """Return the distinct identifiers of a text that count as words."""
    # Deduplicate first: a text repeats most of its identifiers.
    identifiers = set(find_identifiers(text))
    return {
        name
        for name in identifiers
        if SHORTEST_WORD <= len(name) <= LONGEST_WORD and not name[:1].isdigit()
    }


def words_of(text: bytes) -> set[str]:
    """Return the distinct words of a text, in lower case, as ``parts`` gives them."""
    return {word.decode("ascii") for name in names_of(text) for word in parts(name)}


def key_of(word: bytes) -> int:
    """Return the first of a word's ``LEVELS`` keys."""
    # The last bits hold the impact, so a word's keys are consecutive: one range of
    # postings.
    return zlib.crc32(word) // LEVELS * LEVELS


def count_fields(chunks: Sequence[Fields]) -> IdentifierCounts:
    """Count the identifiers of each field of chunks; the fields of a chunk are consecutive texts."""
    return count_identifiers([field for chunk in chunks for field in chunk])


def choose_for_vectors(counted: IdentifierCounts) -> IdentifierCounts:
    """Return the identifiers of each chunk for an embedder: of all fields but names, so one may occur several times."""
    places, fields = np.divmod(counted.texts, len(FIELD_WEIGHTS))
    counted_places = np.flatnonzero(fields != _NAMES)
    return counted._replace(
        texts=places.take(counted_places),
        numbers=counted.numbers.take(counted_places),
        counts=counted.counts.take(counted_places),
    )


def impacts_of(
    chunks: Sequence[Fields], counted: IdentifierCounts | None = None
) -> Pairs:
    """Return the (key, index into the list) pairs of chunks, ascending; ``counted``: their fields, if known already."""
    counted = counted or count_fields(chunks)
    # The keys of the words of each identifier, in the order of ``parts``: itself first,
    # then its parts.
    identifiers = counted.identifiers
    sizes = np.fromiter(map(len, identifiers), np.int64, len(identifiers))
    heads = np.frombuffer(b"".join(identifiers), np.uint8)[np.cumsum(sizes) - sizes]
    names = (
        (sizes >= SHORTEST_WORD)
        & (sizes <= LONGEST_WORD)
        & ((heads < ord("0")) | (heads > ord("9")))
    )
    words = counted.words
    of_parts = counted.lengths
    compounds = names & (of_parts > 1)
    lengths = names + compounds * of_parts
    is_whole = np.zeros(int(lengths.sum()), np.bool_)
    is_whole[(np.cumsum(lengths) - lengths)[names]] = True
    checksums = np.empty(len(is_whole), np.uint64)
    lowered = map(bytes.lower, identifiers)
    checksums[is_whole] = np.fromiter(
        map(zlib.crc32, lowered), np.uint64, len(identifiers)
    )[names]
    checksums[~is_whole] = np.fromiter(map(zlib.crc32, words), np.uint64, len(words))[
        compounds.repeat(of_parts)
    ]
    keys: Pairs = checksums // np.uint64(LEVELS) * np.uint64(LEVELS)

    # Then the weight of each distinct word of each chunk.
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
    # Sorting pairs with the weight in their lowest bits takes a third of the time of an
    # indirect sort.
    pairs: Pairs = flat << np.uint64(32) | (places << _WEIGHT_BITS | weights).astype(
        np.uint64
    )
    pairs.sort()
    low = (pairs & _LOW).astype(np.int64)
    pairs = (pairs & ~_LOW) | (low >> _WEIGHT_BITS).astype(np.uint64)
    starts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    pairs = pairs[starts]
    weight = np.add.reduceat(low & ((1 << _WEIGHT_BITS) - 1), starts)
    # BM25 without the inverse document frequency, which is only known at query time.
    length = np.bincount(places, repeats, len(chunks))[(pairs & _LOW).astype(np.int64)]
    share = weight / (weight + K1 * (1 - B + B * length / USUAL_WORDS))
    levels = np.minimum((share * LEVELS).astype(np.uint64), LEVELS - 1)
    # The level goes into the last bits of the key, which is the upper half.
    pairs |= levels << np.uint64(32)
    pairs.sort()
    return pairs


def value_of(level: int) -> float:
    """Return what a word of a level adds to a chunk's BM25, before it is multiplied by the word's rarity."""
    return (K1 + 1) * (level + 0.5) / LEVELS


class WordScores(NamedTuple):
    """The BM25 of each chunk, and for each word whether a chunk has it or one of its forms."""

    bm25: Floats
    having: list[Bools]

    def words_in(self, numbers: Ints) -> list[int]:
        """Return for each of these chunks the words that it has: a bit for each, the first word's is the lowest.

        A chunk with the number -1 has none.
        """
        if not self.having:
            return [0] * len(numbers)
        rows = np.stack([of_word[numbers] for of_word in self.having], axis=1)
        rows[numbers < 0] = False
        packed = np.packbits(rows, axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]


def scores_of(pairs: Pairs, families: Iterable[Family], count: int) -> WordScores:
    """Return the scores of the ``count`` chunks that these pairs belong to."""
    scores = np.zeros(count, np.float32)
    having = list[Bools]()
    for family in families:
        best = defaultdict[int, float](float)
        for word, weight in family.items():
            key = key_of(word.encode())
            low, high = np.searchsorted(
                pairs, [np.uint64(key << 32), np.uint64((key + LEVELS) << 32)]
            )
            for pair in pairs[low:high].tolist():
                place = pair & 0xFFFFFFFF
                value = weight * value_of(pair >> 32 & (LEVELS - 1))
                best[place] = max(value, best[place])
        of_family = np.zeros(count, np.bool_)
        for place, value in best.items():
            scores[place] += value
            of_family[place] = True
        having.append(of_family)
    return WordScores(scores, having)


class WordList(NamedTuple):
    """The chunks of one segment that have a word with one impact: numbers minus ``first``, encoded."""

    first: int
    level: int
    data: memoryview


class WordLists(NamedTuple):
    """The chunks that have a word, including dead ones: how many, and their encoded lists."""

    chunks: int
    lists: list[WordList]


def find_words(
    connection: sqlite3.Connection, words: Iterable[str]
) -> dict[str, WordLists]:
    """Return the lists of each word; words in no chunk are left out.

    Raises:
        Damaged: the postings are not as written.

    """
    rows = segments(connection, Kind.WORDS)
    lists_by_word: dict[str, WordLists] = {}
    for word in words:
        key = key_of(word.encode())
        lists = [
            WordList(row.first, at - key, data)
            for row in rows
            for at, data in lists_of(connection, row.id, key, key + LEVELS - 1)
        ]
        if lists:
            # Counted all at once: counting a single list takes as long as looking it
            # up.
            lists_by_word[word] = WordLists(
                count(b"".join(word_list.data for word_list in lists)), lists
            )
    return lists_by_word


def numbers_in(found: WordLists, chunks: int) -> Ints:
    """Return the numbers below ``chunks`` of the chunks that have a word, in no particular order."""
    numbers = [
        decode(word_list.data).astype(np.int64) + word_list.first
        for word_list in found.lists
    ]
    together = np.concatenate(numbers)
    # Chunks stored after this snapshot have higher numbers.
    return together[together < chunks]


def score(
    families: Iterable[Sequence[tuple[WordLists, float]]], chunks: int
) -> WordScores:
    """Return the scores of each chunk, 0 to ``chunks`` - 1, for families of words with their weights."""
    scores = np.zeros(chunks, np.float32)
    having = list[Bools]()
    for family in families:
        of_family = np.zeros(chunks, np.bool_)
        having.append(of_family)
        if not family:
            continue
        # Add the most frequent word of the family directly; then raise the scores of
        # chunks where another counts more.
        *rest, (most, weight) = sorted(family, key=lambda one: one[0].chunks)
        lists = [
            (of * value_of(current_word_list.level), current_word_list)
            for word, of in rest
            for current_word_list in word.lists
        ]
        lists.sort(key=itemgetter(0))
        numbers = np.empty(0, np.int64)
        values = np.empty(0, np.float32)
        if lists:
            # Decoded all at once: each call takes 10 µs, and lists of rare words have
            # only a few bytes.
            data = [current_word_list.data for _, current_word_list in lists]
            documents, counts = decode_lists(
                b"".join(data), np.cumsum([*map(len, data)])
            )
            numbers = documents.astype(np.int64) + np.repeat(
                [current_word_list.first for _, current_word_list in lists], counts
            )
            values = np.repeat(
                np.array([value for value, _ in lists], np.float32), counts
            )
            # Chunks stored after this snapshot have higher numbers.
            numbers, values = numbers[numbers < chunks], values[numbers < chunks]
        before = scores[numbers]
        for word_list in most.lists:
            checkpoint()
            there = decode(word_list.data).astype(np.int64) + word_list.first
            there = there[there < chunks]
            # A chunk occurs only once in a list, so adding by index is safe.
            scores[there] += weight * value_of(word_list.level)
            of_family[there] = True
        # For a chunk in several lists the last assignment wins, which has the highest
        # value.
        scores[numbers] = np.maximum(scores[numbers], before + values)
        of_family[numbers] = True
    return WordScores(scores, having)
