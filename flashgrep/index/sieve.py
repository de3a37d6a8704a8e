"""Which texts have an identifier as a whole word: no gram tells where a word ends, the words of chunks do.

``index.words`` are made for ranking. Each identifier of a chunk is among them, whole and in small letters, so a text
has none that its chunks lack, if they hold all of it. Those that do are sealed when they are stored. Of one that is
chunked in part only (tables, minified text, registers of a chip, up to 24 MB in Linux) all identifiers are in a Bloom
filter (1970) alongside its chunks: a hundredth of the text at most, since such texts repeat themselves. A text that is
not chunked yet may have any word.
"""

import sqlite3
import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.damage import Damaged
from flashgrep.identifiers import find_identifiers
from flashgrep.index.postings import decode
from flashgrep.index.table import TextIds
from flashgrep.index.words import LONGEST_WORD, find_words, names_of

_BLANKS = bytes(range(0x21))

LIST_BYTES = 600
"""Postings worth decoding for each text: reading one takes 20 µs at least, decoding this many bytes 4 µs."""

FILTER_BITS = 10
"""Bits of a filter for each identifier: one text in a hundred is read for nothing."""
_PROBES = 6
MOST_FILTERED = 1 << 20
"""Identifiers that a filter is made of, at most: data that has more (identifiers of records, say) may have any word."""
_PIECE = 1 << 18
"""Bytes of a text that are cut into identifiers at once: objects of Python take six times as many."""
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio's, by which Knuth's multiplicative hashing spreads numbers."""


def hold_every_identifier(data: bytes, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether each identifier of a text lies in one of these spans of it, ordered: none is left out or cut."""
    end = 0
    for start, after in [*spans, (len(data), len(data))]:
        # Two spans that touch may part an identifier: it does if the two bytes there are one.
        around = data[end - 1 : end + 1] if 0 < end == start < len(data) else b""
        if data[end:start].translate(None, _BLANKS) or (around and find_identifiers(around) == [around]):
            return False
        end = after
    return True


def make_filter(text_id: int, data: bytes) -> bytes | None:
    """Return a Bloom filter of a text's identifiers in small letters, after its checksum; None: they are too many."""
    parts, begun = [np.empty(0, np.uint32)], b""
    for at in range(0, len(data), _PIECE):
        part = begun + data[at : at + _PIECE]
        # An identifier at the end may continue. Of one that is too long for a word, its end may count as one more.
        begun = b""
        if (
            at + _PIECE < len(data)
            and (last := find_identifiers(part[-LONGEST_WORD - 1 :]))
            and part.endswith(last[-1])
        ):
            begun = last[-1]
        names = names_of(part)
        parts.append(np.fromiter((zlib.crc32(name.lower()) for name in names), np.uint32, len(names)))
    found = np.unique(np.concatenate(parts))
    if len(found) > MOST_FILTERED:
        return None
    bits = np.zeros(len(found) * FILTER_BITS // 8 + 8, np.uint8)
    places = _probe(found, 8 * len(bits)).ravel()
    np.bitwise_or.at(bits, places >> np.uint64(3), np.uint8(1) << (places & np.uint64(7)).astype(np.uint8))
    written = bits.tobytes()
    return zlib.crc32(written, text_id).to_bytes(4, "little") + written


def _probe(hashes: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint64]:
    """Return the bits that stand for each hash (Kirsch and Mitzenmacher, "Less hashing, same performance", 2006)."""
    mixed = hashes.astype(np.uint64) * _MIXER
    steps = np.arange(_PROBES, dtype=np.uint64)[:, None] * (mixed >> np.uint64(32) | np.uint64(1))
    found: npt.NDArray[np.uint64] = ((mixed & np.uint64(0xFFFFFFFF)) + steps) % np.uint64(bits)
    return found


def apply_filters(connection: sqlite3.Connection, text_ids: TextIds, names: Iterable[bytes]) -> TextIds:
    """Return those of some texts that may have every one of these identifiers by their filters, if they have any.

    ``names``: as ``words.names_of`` has them.

    Raises:
        Damaged: what is stored is not what was written.

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
            raise Damaged("the filter of a text's words")
        places = _probe(hashes, 8 * len(bits))
        if not (bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8) & 1).all():
            lacking.append(text_id)
    return text_ids[~np.isin(text_ids, lacking)] if lacking else text_ids


def seal_of(text_id: int, first: int, count: int) -> int:
    """Return the checksum of a row, so that a flipped bit cannot hide a file."""
    return zlib.crc32(b"%d %d %d" % (text_id, first, count))


def drop_wordless(connection: sqlite3.Connection, text_ids: TextIds, names: Iterable[bytes]) -> TextIds:
    """Return those of some texts that may have every one of these identifiers, ASCII case aside.

    ``names``: as ``words.names_of`` has them.

    Raises:
        Damaged: what is stored is not what was written.

    """
    rows = connection.execute(
        "SELECT text_id, first, count, seal FROM chunked INDEXED BY chunked_words "
        "WHERE seal IS NOT NULL AND text_id IN (SELECT value FROM json_each(?))",
        [orjson.dumps(text_ids.tolist()).decode()],
    ).fetchall()
    if any(seal_of(*row[:3]) != row[3] for row in rows):
        raise Damaged("where the chunks of a text are")
    sealed, first, count, _ = np.array(rows, np.int64).reshape(-1, 4).T
    lacks = np.zeros(len(sealed), bool)
    for name in names:
        word = name.lower().decode("ascii")
        lists = found.lists if (found := find_words(connection, [word]).get(word)) else ()
        # A common word rules out few; reading the candidates is cheaper.
        if sum(len(one.data) for one in lists) > LIST_BYTES * len(sealed):
            continue
        has = np.zeros(len(sealed), bool)
        for one in lists:
            numbers = decode(one.data).astype(np.int64) + one.first
            # A text's chunks are consecutive numbers: some number lies between its first and its last.
            has |= np.searchsorted(numbers, first + count) > np.searchsorted(numbers, first)
        lacks |= ~has
    return text_ids[~np.isin(text_ids, sealed[lacks])]
