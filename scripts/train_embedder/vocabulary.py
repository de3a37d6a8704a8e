"""Chooses the table's sub-words, and converts a corpus to bags of them."""

import string
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from flashgrep.parts.meaning.embed.static import Vocabulary
from scripts.train_embedder.corpus import Corpus
from scripts.train_embedder.ragged import Ints, Ragged

SIZE: Final = 40_000
FEWEST: Final = 8
"""Fewest rows with a word of the vocabulary."""
LONGEST: Final = 30
SLICE: Final = 50_000

Floats = npt.NDArray[np.float32]


class Bags(NamedTuple):
    """A field of all rows: the distinct words of each, and 1 + ln of their counts."""

    words: Ragged
    damped: Floats


def choose(corpus: Corpus, size: int = SIZE) -> tuple[list[str], Ints]:
    """Return the vocabulary, most frequent first, then missing letters and digits; and the number of rows of each."""
    rows = np.zeros(len(corpus.words), np.int64)
    for field in (
        corpus.fields["code"],
        corpus.fields["question"],
        corpus.fields["rest"],
    ):
        rows += _rows_with(field, len(corpus.words))
    order = np.argsort(-rows, kind="stable")[: 2 * size].tolist()
    kept = [
        number
        for number in order
        if rows[number] >= FEWEST and _usable(corpus.words[number])
    ][:size]
    words = [corpus.words[number] for number in kept]
    missing = [
        letter
        for letter in string.ascii_lowercase + string.digits
        if letter not in set(words)
    ]
    counts = np.concatenate([rows[kept], np.full(len(missing), FEWEST, np.int64)])
    return words + missing, counts


def _usable(word: str) -> bool:
    return len(word) < LONGEST and not (word.isdigit() and len(word) > 4)  # noqa: PLR2004 - years and ports stay


def _rows_with(field: Ragged, known: int) -> Ints:
    totals = np.zeros(known, np.int64)
    for start in range(0, len(field.bounds) - 1, SLICE):
        bounds = field.bounds[start : start + SLICE + 1]
        owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        keys = np.unique(owners * known + field.values[bounds[0] : bounds[-1]])
        totals += np.bincount(keys % known, minlength=known)
    return totals


def bags_of(corpus: Corpus, words: list[str]) -> dict[str, Bags]:
    """Return all fields of a corpus as bags; unknown words are split like in the embedder."""
    vocabulary = Vocabulary(words)
    pieces = Ragged.of(vocabulary[word.encode()] for word in corpus.words)
    return {
        name: _bags(field, pieces, len(words)) for name, field in corpus.fields.items()
    }


def _bags(field: Ragged, pieces: Ragged, known: int) -> Bags:
    words, damped, lengths = [], [], []
    for start in range(0, len(field.bounds) - 1, SLICE):
        bounds = field.bounds[start : start + SLICE + 1]
        owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        places, which = pieces.places(
            field.values[bounds[0] : bounds[-1]].astype(np.int64)
        )
        keys, counts = np.unique(
            owners[which] * known + pieces.values[places], return_counts=True
        )
        words.append((keys % known).astype(np.int32))
        damped.append((1 + np.log(counts)).astype(np.float32))
        lengths.append(np.bincount(keys // known, minlength=len(bounds) - 1))
    ends = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Bags(Ragged(np.concatenate(words), ends), np.concatenate(damped))
