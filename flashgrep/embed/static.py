"""The embedded default: a table of word vectors learnt for code, summed. Offline, numpy only.

The data file is made by ``scripts/train_embedder``: ``tokens`` (uint8: UTF-8 words, one a line), ``table`` (int8, words
x dims), ``scale`` and ``qscale`` (float16, a word's row scale times its weight in code and in questions), ``quantiles``
(float32, rows of probability and cosine of unrelated pairs), ``format`` (1). A text's vector is the sum over its
distinct words of row x scale x (1 + ln count), at unit length.

Words are sub-words of code: ``getHTTPResponse_v2`` gives ``get http response v 2``. A word that the vocabulary lacks is
cut from the left into the longest pieces it has, of 2 to 16 letters; a letter that begins none is left out. Only ASCII
letters, digits and ``_`` are looked at. These rules are part of the model: its table was trained on words cut by them.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from flashgrep.embed.interface import Scale, Vectors
from flashgrep.errors import ProviderUnavailable
from flashgrep.identifiers import Counted, count_identifiers, places_of

FORMAT = 1
DATA = Path(__file__).parent / "data" / "static.npz"
MAX_CHARS = 16_384  # ten times a chunk; bounds the time that one line of encoded data can take
SLICE = 256  # texts counted together: their words take about 2 MB
SHORTEST, LONGEST = 2, 16  # letters in a piece of an unknown word
COUNT_BITS = 15
"""Room for as many words of one kind as ``MAX_CHARS`` letters can have."""
REMEMBERED = 60_000
"""Words that are cached, about 10 MB. A full cache is emptied and soon useful again."""
REMEMBERED_LENGTH = 64
"""Bytes up to which a word is worth keeping; longer ones are data and do not come again."""

Numbers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


class Bags(NamedTuple):
    """Bags of words of several texts, one after the other."""

    words: Numbers
    """Numbers of the distinct words, ascending within a text."""
    counts: Numbers
    """How often each occurs in its text."""
    bounds: Numbers
    """Where each text's words begin, and the end: one more than there are texts."""


class Vocabulary(dict[bytes, tuple[int, ...]]):
    """Known words, and a memory of others: asked for any word of an identifier, it gives the numbers it stands for."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__()
        self.known = {word.encode(): number for number, word in enumerate(known)}

    def __missing__(self, word: bytes) -> tuple[int, ...]:
        """Return the numbers of a word: its own, or those of the pieces it is cut into."""
        number = self.known.get(word)
        numbers = [] if number is None else [number]
        at = 0 if number is None else len(word)
        while at < len(word):
            # The longest piece that is known; a byte that begins none is passed over.
            for end in range(min(len(word), at + LONGEST), at + SHORTEST - 1, -1):
                number = self.known.get(word[at:end])
                if number is not None:
                    numbers.append(number)
                    at = end
                    break
            else:
                at += 1
        found = tuple(numbers)
        if len(word) <= REMEMBERED_LENGTH:
            if len(self) >= REMEMBERED:
                self.clear()
            self[word] = found
        return found

    def bags(self, texts: Sequence[str]) -> Bags:
        """Count the words of each text."""
        return self.count(count_identifiers([text.encode("ascii", "replace") for text in texts]), len(texts))

    def count(self, counted: Counted, texts: int) -> Bags:
        """Return the words of this many texts whose identifiers are counted; a text may have one several times."""
        pieces = list(map(self.__getitem__, counted.words))
        ends = np.cumsum(np.fromiter(chain([0], map(len, pieces)), np.int64, len(pieces) + 1))
        flat = np.fromiter(chain.from_iterable(pieces), np.int64, int(ends[-1]))
        bounds = ends[np.concatenate(([0], np.cumsum(counted.lengths)))]
        lengths = np.diff(bounds)  # of pieces now: an identifier's follow each other as its words do
        of_pair = lengths[counted.numbers]
        numbers = flat[places_of(counted.numbers, lengths)]
        width = max(1, len(self.known))
        # Sorted with its count in the lowest bits, a word takes a third of the time that sorting by index takes.
        rows = (counted.texts.repeat(of_pair) * width + numbers) << COUNT_BITS | counted.counts.repeat(of_pair)
        rows.sort()
        keys, counts = rows >> COUNT_BITS, rows & ((1 << COUNT_BITS) - 1)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[starts], np.add.reduceat(counts, starts) if len(starts) else counts
        return Bags(keys % width, counts, np.searchsorted(keys, np.arange(texts + 1) * width))


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

    def embed_identifiers(self, counted: Counted, texts: int) -> Vectors:
        """Return a row for each of this many texts of code, none longer than ``MAX_CHARS``, by their identifiers."""
        return self._sum(self.vocabulary.count(counted, texts), self.code_weights)

    def _embed(self, texts: Sequence[str], weights: Weights) -> Vectors:
        rows = [np.empty((0, self.dims), np.float32)]
        for at in range(0, len(texts), SLICE):
            bags = self.vocabulary.bags([text[: self.max_chars] for text in texts[at : at + SLICE]])
            rows.append(self._sum(bags, weights))
        return np.concatenate(rows)

    def _sum(self, bags: Bags, weights: Weights) -> Vectors:
        rows = np.empty((len(bags.bounds) - 1, self.dims), np.float32)
        damped = weights[bags.words] * (1 + np.log(bags.counts)).astype(np.float32)
        for row, (start, end) in enumerate(pairwise(bags.bounds.tolist())):
            # Text by text: rows of one text stay in the processor's cache, those of a slice would not. And by
            # einsum, since BLAS adds up in an order that depends on the processor and its cores.
            chosen = self.table.take(bags.words[start:end], axis=0).astype(np.float32)
            np.einsum("i,ij->j", damped[start:end], chosen, out=rows[row])
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        np.divide(rows, lengths, out=rows, where=lengths > 0)
        return rows


@cache
def load(path: Path) -> StaticEmbedder:
    """Return the model of a data file, read once a process.

    Raises:
        ProviderUnavailable: no such file, or one that is damaged or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            data = {name: archive[name] for name in archive.files}
        return _check_model(data)
    except FileNotFoundError:
        raise ProviderUnavailable(f"{path}: the embedded model is missing from this installation") from None
    except (OSError, EOFError, BadZipFile, KeyError, ValueError) as error:
        raise ProviderUnavailable(f"{path}: not a model of format {FORMAT}: {error}") from None


def release() -> None:
    """Drop what ``load`` keeps; embedders in use go on."""
    load.cache_clear()


def _check_model(data: dict[str, npt.NDArray[Any]]) -> StaticEmbedder:
    if int(data["format"]) != FORMAT:
        raise ValueError(f"its format is {int(data['format'])}")
    words = data["tokens"].tobytes().decode().split("\n")
    table, scale, qscale = data["table"], data["scale"], data["qscale"]
    if table.dtype != np.int8 or table.shape[:1] != (len(words),) or not scale.shape == qscale.shape == (len(words),):
        raise ValueError(f"{len(words)} words, but a table of {table.dtype} {table.shape}")
    weights = (scale.astype(np.float32), qscale.astype(np.float32))
    if not all(np.isfinite(weight).all() for weight in weights):
        raise ValueError("weights that are not finite")
    # What a vector of code depends on; questions' weights may change with the vectors of an index still good.
    name = f"flashgrep-static-{zlib.crc32(scale.tobytes(), zlib.crc32(table.tobytes())):08x}"
    scale_of_pairs = Scale.of([(p, c) for p, c in data["quantiles"].tolist()])
    return StaticEmbedder(Vocabulary(words), table, *weights, scale_of_pairs, name)
