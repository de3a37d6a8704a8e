"""Looking up words in the postings of chunks: how many chunks have each, and the BM25 of them all."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from flashgrep.checkpoint import checkpoint
from flashgrep.index.postings import count, decode
from flashgrep.index.segments import Kind, lists_of, segments
from flashgrep.index.words import LEVELS, Floats, key_of, value_of


class _List(NamedTuple):
    """Chunks of one segment that have a word with one impact: numbers less ``first``, encoded."""

    first: int
    level: int
    data: memoryview


class WordLists(NamedTuple):
    """The chunks that have a word, dead ones included: how many, and their lists, encoded."""

    chunks: int
    lists: list[_List]


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
            _List(row.first, at - key, data)
            for row in rows
            for at, data in lists_of(connection, row.id, key, key + LEVELS - 1)
        ]
        if lists:
            found[word] = WordLists(sum(count(one.data) for one in lists), lists)
    return found


def score(found: Sequence[tuple[WordLists, float]], chunks: int) -> Floats:
    """Return the BM25 of each chunk by number, 0 to ``chunks`` - 1, for words with their weights."""
    scores = np.zeros(chunks, np.float32)
    for word, weight in found:
        for one in word.lists:
            checkpoint()
            numbers = decode(one.data).astype(np.int64) + one.first
            scores[numbers[numbers < chunks]] += weight * value_of(one.level)
    return scores
