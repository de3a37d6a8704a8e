"""Which texts have an identifier as a whole word. Grams do not say where a word ends, but the words of chunks do.

``parts.meaning.index.word_impacts`` is made for ranking. It has each identifier of a chunk, whole and in lower case.
If the chunks of
a text cover all of it, the text has no identifier that its chunks lack; such a text gets a seal when it is stored. For
a text that is chunked only in part (tables, minified text, register lists, up to 24 MB in Linux), all identifiers are
in a Bloom filter (1970) next to its chunks, which takes at most a hundredth of the text, since such texts are
repetitive. A text that is not chunked yet may have any word.
"""

import sqlite3
import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.base.damage import Damaged
from flashgrep.base.identifiers import find_identifiers
from flashgrep.index.postings import decode
from flashgrep.index.table import TextIds
from flashgrep.parts.meaning.index.word_impacts import (
    LONGEST_WORD,
    find_words,
    names_of,
)

_BLANKS = bytes(range(0x21))

LIST_BYTES = 600
"""Bytes of postings worth decoding per text: reading a text takes at least 20 µs, decoding this many bytes 4 µs."""

FILTER_BITS = 10
"""Bits of a filter per identifier; the false positive rate is one in a hundred."""
_PROBES = 6
MOST_FILTERED = 1 << 20
"""The most identifiers in a filter. A text with more of them (record ids, say) gets none, so it may have any word."""
_PIECE = 1 << 18
"""Bytes of a text split into identifiers at once; the Python objects take six times as much memory."""
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the multiplier of Knuth's multiplicative hashing."""


def hold_every_identifier(data: bytes, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether each identifier of a text is completely in one of these spans, which are ordered."""
    end = 0
    for start, after in [*spans, (len(data), len(data))]:
        # Adjacent spans may split an identifier: they do if the two bytes at their
        # boundary form one.
        if 0 < end == start < len(data):
            around = data[end - 1 : end + 1]
        else:
            around = b""
        if data[end:start].translate(None, _BLANKS) or (
            around and find_identifiers(around) == [around]
        ):
            return False
        end = after
    return True


def make_filter(text_id: int, data: bytes) -> bytes | None:
    """Return the checksum and Bloom filter of a text's identifiers, in lower case; None if they are too many."""
    parts = [np.empty(0, np.uint32)]
    word_start = b""
    for at in range(0, len(data), _PIECE):
        part = word_start + data[at : at + _PIECE]
        # An identifier at the end of a piece may continue in the next. If it is too
        # long for a word, its end may be added as a word of its own, which does no
        # harm.
        word_start = b""
        if (
            at + _PIECE < len(data)
            and (last := find_identifiers(part[-LONGEST_WORD - 1 :]))
            and part.endswith(last[-1])
        ):
            word_start = last[-1]
        names = names_of(part)
        parts.append(
            np.fromiter(
                (zlib.crc32(name.lower()) for name in names), np.uint32, len(names)
            )
        )
    hashes = np.unique(np.concatenate(parts))
    if len(hashes) > MOST_FILTERED:
        return None
    bits = np.zeros(len(hashes) * FILTER_BITS // 8 + 8, np.uint8)
    places = _probe(hashes, 8 * len(bits)).ravel()
    np.bitwise_or.at(
        bits,
        places >> np.uint64(3),
        np.uint8(1) << (places & np.uint64(7)).astype(np.uint8),
    )
    written = bits.tobytes()
    return zlib.crc32(written, text_id).to_bytes(4, "little") + written


def _probe(hashes: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint64]:
    """Return the bit positions of each hash (Kirsch and Mitzenmacher, "Less hashing, same performance", 2006)."""
    mixed = hashes.astype(np.uint64) * _MIXER
    steps = np.arange(_PROBES, dtype=np.uint64)[:, None] * (
        mixed >> np.uint64(32) | np.uint64(1)
    )
    found_bits: npt.NDArray[np.uint64] = (
        (mixed & np.uint64(0xFFFFFFFF)) + steps
    ) % np.uint64(bits)
    return found_bits


def apply_filters(
    connection: sqlite3.Connection, text_ids: TextIds, names: Iterable[bytes]
) -> TextIds:
    """Return the texts whose filter does not rule out any of these identifiers; a text without a filter stays.

    ``names``: from ``words.names_of``.

    Raises:
        Damaged: what is stored is not as written.

    """
    rows = connection.execute(
        "SELECT text_id, words FROM chunked INDEXED BY chunked_filters "
        "WHERE words IS NOT NULL AND text_id IN (SELECT value FROM json_each(?))",
        [orjson.dumps(text_ids.tolist()).decode()],
    )
    hashes = np.array([zlib.crc32(name.lower()) for name in names], np.uint32)
    lacking = []
    for text_id, words in rows:
        bits = np.frombuffer(words, np.uint8, offset=4)
        if zlib.crc32(words[4:], text_id) != int.from_bytes(words[:4], "little"):
            raise Damaged("filter of a text's words: checksum")
        places = _probe(hashes, 8 * len(bits))
        if not (
            bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8) & 1
        ).all():
            lacking.append(text_id)
    if lacking:
        return text_ids[~np.isin(text_ids, lacking)]
    return text_ids


def seal_of(text_id: int, first: int, count: int) -> int:
    """Return the checksum of a row of ``chunked``, so that a flipped bit cannot hide a file."""
    return zlib.crc32(b"%d %d %d" % (text_id, first, count))


def drop_wordless(
    connection: sqlite3.Connection, text_ids: TextIds, names: Iterable[bytes]
) -> TextIds:
    """Return the texts whose words do not rule out any of these identifiers, ignoring ASCII case; others stay.

    ``names``: from ``words.names_of``.

    Raises:
        Damaged: what is stored is not as written.

    """
    rows = connection.execute(
        "SELECT text_id, first, count, seal FROM chunked INDEXED BY chunked_words "
        "WHERE seal IS NOT NULL AND text_id IN (SELECT value FROM json_each(?))",
        [orjson.dumps(text_ids.tolist()).decode()],
    ).fetchall()
    if any(seal_of(*row[:3]) != row[3] for row in rows):
        raise Damaged("row of a text's chunks: checksum")
    sealed, first, count, _ = np.array(rows, np.int64).reshape(-1, 4).T
    lacks = np.zeros(len(sealed), bool)
    for name in names:
        word = name.lower().decode("ascii")
        lists = (
            found_word.lists
            if (found_word := find_words(connection, [word]).get(word))
            else ()
        )
        # A common word rules out few texts; reading the candidates is cheaper.
        if sum(
            len(current_word_list.data) for current_word_list in lists
        ) > LIST_BYTES * len(sealed):
            continue
        has = np.zeros(len(sealed), bool)
        for word_list in lists:
            numbers = decode(word_list.data).astype(np.int64) + word_list.first
            # The chunks of a text have consecutive numbers, so check whether any number
            # is in that range.
            has |= np.searchsorted(numbers, first + count) > np.searchsorted(
                numbers, first
            )
        lacks |= ~has
    return text_ids[~np.isin(text_ids, sealed[lacks])]
