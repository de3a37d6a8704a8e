"""The teacher's data: MiniLM's vectors of tens of thousands of documentation sentences."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from scripts.train_embedder.corpus import Corpus
from scripts.train_embedder.minilm import MiniLM, Vectors
from scripts.train_embedder.ragged import Ints
from scripts.train_embedder.sampling import Sparse, bags_matrix
from scripts.train_embedder.vocabulary import Bags

QUESTIONS: Final = 16_000
LENGTHS: Final = (4, 20)
WORD_PIECES: Final = 32


class Teacher(NamedTuple):
    """Questions by row, and their vectors."""

    rows: Ints
    vectors: Vectors
    bags: Bags
    width: int
    rng: np.random.Generator

    def draw(self, count: int) -> tuple[Sparse, Vectors]:
        """Return a sample of questions as bags, and their vectors."""
        chosen = self.rng.integers(len(self.rows), size=count)
        places, owners = self.bags.words.places(self.rows[chosen])
        words = self.bags.words.values[places].astype(np.int64)
        return bags_matrix(
            owners, words, self.bags.damped[places], (count, self.width)
        ), self.vectors[chosen]


def taught(work: Path, corpus: Corpus, count: int = QUESTIONS) -> tuple[Ints, Vectors]:
    """Return a sample of rows with questions of reasonable length, and MiniLM's vectors of the questions."""
    field = corpus.fields["question"]
    usable = np.flatnonzero(
        (field.lengths >= LENGTHS[0]) & (field.lengths <= LENGTHS[1])
    )
    rows = np.sort(np.random.default_rng(3).permutation(usable)[:count])
    asked = [
        " ".join(
            corpus.words[n] for n in field.values[field.bounds[r] : field.bounds[r + 1]]
        )
        for r in rows
    ]
    return rows, MiniLM(work, WORD_PIECES).encode(asked)
