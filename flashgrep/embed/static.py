"""The embedded default: a table of word vectors learnt for code, summed. Offline, numpy only.

The data file is made by ``scripts/train_embedder``: ``tokens`` (uint8: UTF-8 words, one a line), ``table`` (int8, words
x dims), ``scale`` and ``qscale`` (float16, a word's row scale times its weight in code and in questions), ``quantiles``
(float32, rows of probability and cosine of unrelated pairs), ``format`` (1). A text's vector is the sum over its
distinct words of row x scale x (1 + ln count), at unit length.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from flashgrep.embed.scale import Scale
from flashgrep.embed.tokens import Vocabulary
from flashgrep.embed.vectors import Vectors
from flashgrep.errors import ProviderUnavailable

FORMAT = 1
DATA = Path(__file__).parent / "data" / "static.npz"
MAX_CHARS = 16_384  # ten times a chunk; bounds the time that one line of encoded data can take
SLICE = 256  # texts counted together: their words take about 2 MB

Weights = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class StaticEmbedder:
    """The model of one data file. Threads may share it."""

    vocabulary: Vocabulary = field(repr=False)
    table: npt.NDArray[np.int8] = field(repr=False)
    code_weights: Weights = field(repr=False)
    query_weights: Weights = field(repr=False)
    scale: Scale
    name: str
    """Tells one table from another: vectors of two must never be compared."""
    batch: Final[int] = SLICE
    max_chars: Final[int] = MAX_CHARS

    @property
    def dims(self) -> int:
        """Width of a vector."""
        return int(self.table.shape[1])

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        return self._embed(texts, self.code_weights)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question."""
        return self._embed(texts, self.query_weights)

    def confidence(self, similarity: float) -> float:
        """Map a cosine to 0-1 by the unrelated pairs of the data file."""
        return self.scale.confidence(similarity)

    def with_scale(self, scale: Scale) -> Self:
        """Return the same model with another scale."""
        return replace(self, scale=scale)

    def _embed(self, texts: Sequence[str], weights: Weights) -> Vectors:
        rows = np.empty((len(texts), self.dims), np.float32)
        for at in range(0, len(texts), SLICE):
            self._sum([text[: self.max_chars] for text in texts[at : at + SLICE]], weights, rows[at : at + SLICE])
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        np.divide(rows, lengths, out=rows, where=lengths > 0)
        return rows

    def _sum(self, texts: Sequence[str], weights: Weights, rows: Vectors) -> None:
        bags = self.vocabulary.bags(texts)
        damped = weights[bags.words] * (1 + np.log(bags.counts)).astype(np.float32)
        bounds = bags.bounds.tolist()
        for row, (start, end) in enumerate(pairwise(bounds)):
            # Text by text: rows of one text stay in the processor's cache, those of a batch would not. And by einsum,
            # since BLAS adds up in an order that depends on the processor and its cores.
            chosen = self.table.take(bags.words[start:end], axis=0).astype(np.float32)
            np.einsum("i,ij->j", damped[start:end], chosen, out=rows[row])


@cache
def load(path: Path) -> StaticEmbedder:
    """Return the model of a data file, read once a process.

    Raises:
        ProviderUnavailable: no such file, or one that is damaged or of another format.

    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            return _checked({name: data[name] for name in data.files})
    except FileNotFoundError:
        raise ProviderUnavailable(f"{path}: the embedded model is missing from this installation") from None
    except (OSError, EOFError, BadZipFile, KeyError, ValueError) as error:
        raise ProviderUnavailable(f"{path}: not a model of format {FORMAT}: {error}") from None


def release() -> None:
    """Let go of what ``load`` keeps; embedders in use go on."""
    load.cache_clear()


def _checked(data: dict[str, npt.NDArray[Any]]) -> StaticEmbedder:
    if int(data["format"]) != FORMAT:
        raise ValueError(f"its format is {int(data['format'])}")
    words = data["tokens"].tobytes().decode().split("\n")
    table, scale, qscale = data["table"], data["scale"], data["qscale"]
    if table.dtype != np.int8 or table.shape[:1] != (len(words),) or not scale.shape == qscale.shape == (len(words),):
        raise ValueError(f"{len(words)} words, but a table of {table.dtype} {table.shape}")
    weights = (scale.astype(np.float32), qscale.astype(np.float32))
    if not all(np.isfinite(weight).all() for weight in weights):
        raise ValueError("weights that are not finite")
    name = f"flashgrep-static-{zlib.crc32(table.tobytes()):08x}"
    scale_of_pairs = Scale.of([(p, c) for p, c in data["quantiles"].tolist()])
    return StaticEmbedder(Vocabulary(words), table, *weights, scale_of_pairs, name)
