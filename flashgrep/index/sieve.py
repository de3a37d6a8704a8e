"""Which texts have an identifier as a whole word: no gram tells where a word ends, the words of chunks do.

``index.words`` are made for ranking. Each identifier of a chunk is among them, whole and in small letters, so a text
has none that its chunks lack, if they hold all of it. Those that do are sealed when they are stored. A text that has no
seal, since it is not chunked yet or in part only (tables, minified text), may have any word.
"""

import sqlite3
import zlib
from collections.abc import Iterable

import numpy as np
import orjson

from flashgrep.damage import Damaged
from flashgrep.identifiers import find_identifiers
from flashgrep.index.postings import decode
from flashgrep.index.table import TextIds
from flashgrep.index.words import find_words

_BLANKS = bytes(range(0x21))

LIST_BYTES = 600
"""Postings worth decoding for each text: reading one takes 20 µs at least, decoding so many bytes 4 µs."""


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
