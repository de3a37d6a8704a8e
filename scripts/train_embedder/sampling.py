"""Batches: the fields of a row used as the question, those used as the code, and the words hidden from it."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from scripts.train_embedder.ragged import Ints
from scripts.train_embedder.vocabulary import Bags

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

BATCH, BLOCK = 2048, 128
"""Rows of a batch, and of each run of neighbouring rows in it, the hard negatives."""

TOLD, NAMED, WITH_NAME, DESCRIBED = 0.85, 0.15, 0.12, 0.3
"""Shares of documented rows that use their question; and of those, with the name, and with the rest as well."""
HIDE_NAME: Final = 0.35
DROP: Final = 0.1
"""Share of the code's words left out at random."""
REST: Final = 0.35
"""Share of rows whose code keeps the rest of the documentation."""
PLACE: Final = 0.7
"""Share of rows whose code keeps its path."""
PHRASED: Final = 0.25
"""Share of questions phrased like a person's, so that such phrases get little weight."""
PHRASES: Final = (
    "how does", "how do i", "how is", "where is", "where are", "where do we", "what does", "which function",
    "which class", "code that", "find the code that", "the part that", "how to", "where does it", "why does",
    "what happens when", "how are", "function to", "method that", "logic for", "implementation of", "what is the",
    "how can i", "where is the code for", "when does", "show me", "which file", "how does the code", "what handles",
)  # fmt: skip


Sparse = csr_matrix
"""Bags of words of a batch, one per row; counts of a word in several fields are added."""


class Batch(NamedTuple):
    """Question i belongs to code i."""

    questions: Sparse
    code: Sparse
    same: Flags
    """Pairs of rows with similar questions or overlapping code, which are no negatives for each other."""


class Picked(NamedTuple):
    """Fields that make up one side of a batch."""

    owners: Ints
    words: Ints
    damped: Floats


class Sampler:
    """Samples batches endlessly; every row is used once before any is repeated."""

    def __init__(
        self,
        bags: dict[str, Bags],
        vocabulary: list[str],
        overlap: Ints,
        seed: int = 1,
        block: int = BLOCK,
    ) -> None:
        self._bags = bags
        self._block = block
        self._width = len(vocabulary)
        shared = bags_matrix(
            *overlap.T,
            np.ones(len(overlap), np.float32),
            (len(bags["code"].words.lengths),) * 2,
        )
        self._overlap = (shared + shared.T).tocsr()
        self._rng = np.random.default_rng(seed)
        numbers = {word: number for number, word in enumerate(vocabulary)}
        self._phrases = [
            np.array([numbers[w] for w in phrase.split() if w in numbers])
            for phrase in PHRASES
        ]
        self._lengths = {name: bag.words.lengths for name, bag in bags.items()}
        self._queue: list[Ints] = []

    def draw(self) -> Batch:
        """Return the next batch."""
        rows = self._rows()
        draws = self._rng.random((6, len(rows)))
        asked = (self._lengths["question"][rows] >= 2) & (draws[0] < TOLD)  # noqa: PLR2004 - one word asks nothing
        questions = self._questions(rows, asked, draws)
        code = self._code(rows, asked, draws)
        same = _alike(questions, len(rows)) | (
            self._overlap[rows][:, rows].toarray() > 0
        )
        return Batch(
            self._sparse(questions, len(rows)), self._sparse(code, len(rows)), same
        )

    def _rows(self) -> Ints:
        if not self._queue:
            block = self._block
            total = len(self._lengths["code"])
            starts = np.arange(int(self._rng.integers(block)), total - block, block)
            self._rng.shuffle(starts)
            full = len(starts) * block // BATCH * BATCH // block
            rows = (starts[:full, None] + np.arange(block)).reshape(-1, BATCH)
            self._queue = list(rows)
        return self._queue.pop()

    def _pick(self, field: str, rows: Ints, wanted: Flags) -> Picked:
        chosen = np.flatnonzero(wanted)
        bag = self._bags[field]
        places, owners = bag.words.places(rows[chosen])
        return Picked(
            chosen[owners],
            bag.words.values[places].astype(np.int64),
            bag.damped[places],
        )

    def _questions(
        self, rows: Ints, asked: Flags, draws: npt.NDArray[np.float64]
    ) -> Picked:
        placed = ~asked & (draws[1] < 0.25) & (self._lengths["place"][rows] > 0)  # noqa: PLR2004 - a quarter ask by path
        named = ~asked & ~placed | asked & (draws[1] < WITH_NAME)
        parts = [
            self._pick("question", rows, asked),
            self._pick("rest", rows, asked & (draws[1] > 1 - DESCRIBED)),
            self._pick("name", rows, named),
            self._pick("place", rows, placed),
            self._phrased(asked & (draws[2] < PHRASED)),
        ]
        return _joined(parts)

    def _phrased(self, wanted: Flags) -> Picked:
        chosen = np.flatnonzero(wanted)
        phrases = [
            self._phrases[number]
            for number in self._rng.integers(len(PHRASES), size=len(chosen))
        ]
        owners = np.repeat(chosen, [len(phrase) for phrase in phrases])
        words = np.concatenate([*phrases, np.empty(0, np.int64)]).astype(np.int64)
        return Picked(owners, words, np.ones(len(words), np.float32))

    def _code(self, rows: Ints, asked: Flags, draws: npt.NDArray[np.float64]) -> Picked:
        full = draws[1] > 1 - DESCRIBED
        parts = [
            self._pick("code", rows, np.ones(len(rows), np.bool_)),
            self._pick("place", rows, asked & (draws[3] < PLACE)),
            self._pick("rest", rows, asked & ~full & (draws[4] < REST)),
        ]
        code = _joined(parts)
        hidden = self._pick("name", rows, (asked & (draws[5] < HIDE_NAME)) | ~asked)
        return self._thinned(code, hidden, len(rows))

    def _thinned(self, code: Picked, hidden: Picked, rows: int) -> Picked:
        """Drop hidden words and some random ones, but never all of a row."""
        keys = code.owners * self._width + code.words
        keep = ~np.isin(keys, hidden.owners * self._width + hidden.words)
        keep &= self._rng.random(len(keep)) > DROP
        left = np.bincount(code.owners[keep], minlength=rows)
        keep |= left[code.owners] == 0
        return Picked(*(part[keep] for part in code))

    def _sparse(self, picked: Picked, rows: int) -> Sparse:
        return bags_matrix(*picked, shape=(rows, self._width))


def bags_matrix(
    owners: Ints, words: Ints, damped: Floats, shape: tuple[int, int]
) -> Sparse:
    """Return the sparse matrix of (row, word, value) entries."""
    return csr_matrix((damped, (owners, words)), shape=shape, dtype=np.float32)


def _joined(parts: list[Picked]) -> Picked:
    return Picked(*(np.concatenate(side) for side in zip(*parts, strict=True)))


def _alike(questions: Picked, rows: int) -> Flags:
    sums = np.zeros(rows, np.int64)
    np.add.at(sums, questions.owners, questions.words * 2_654_435_761 % 1_000_003)
    same: Flags = sums[:, None] == sums[None, :]
    np.fill_diagonal(same, val=False)
    return same
