"""The embedded default model: a table of word vectors trained for code. Works offline and needs only numpy.

The data file is made by ``scripts/train_embedder``: ``tokens`` (uint8: UTF-8 words, one per line), ``table`` (int8,
words x dims), ``scale`` and ``qscale`` (float16, the scale of a word's row times its weight in code and in queries),
``quantiles`` (float32, rows of probability and cosine of unrelated pairs), ``format`` (1). A text's vector is the sum
over its distinct words of row x scale x (1 + ln count), at unit length.

Words are the parts of identifiers: "getHTTPResponse_v2" gives ``get http response v 2``. A word that is not in the
vocabulary is split from the left into the longest known pieces of 2 to 16 letters; a letter that begins no piece is
skipped. Only ASCII letters, digits and ``_`` count. These rules are part of the model: its table was trained with them.
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

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.identifiers import IdentifierCounts, count_identifiers, places_of
from flashgrep.parts.meaning.embed.interface import Scale, Vectors

FORMAT = 1
DATA = Path(__file__).parent / "data" / "static.npz"
MAX_CHARS = 16_384  # ten times a chunk; limits the time for one line of encoded data
SLICE = 256  # texts counted together: their words take about 2 MB
SHORTEST, LONGEST = 2, 16  # letters in a piece of an unknown word
COUNT_BITS = 15
"""Enough for the count of one word in ``MAX_CHARS`` letters."""
REMEMBERED = 60_000
"""How many words are cached, in about 10 MB. A full cache is cleared; it soon fills with useful words again."""
REMEMBERED_LENGTH = 64
"""The longest word that is cached, in bytes; longer ones are data and rarely recur."""

Numbers = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]


class Bags(NamedTuple):
    """The bags of words of several texts, concatenated."""

    words: Numbers
    """Numbers of the distinct words, ascending within a text."""
    counts: Numbers
    """How often each occurs in its text."""
    bounds: Numbers
    """Where the words of each text begin, and the end of the last: one entry more than there are texts."""


class Vocabulary(dict[bytes, tuple[int, ...]]):
    """The known words, with a cache: maps any word of an identifier to its numbers."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__()
        self.known = {word.encode(): number for number, word in enumerate(known)}

    def __missing__(self, word: bytes) -> tuple[int, ...]:
        """Return the numbers of a word: its own, or those of its pieces."""
        number = self.known.get(word)
        if number is None:
            numbers = []
        else:
            numbers = [number]
        if number is None:
            at = 0
        else:
            at = len(word)
        while at < len(word):
            # Find the longest known piece; skip a byte that begins none.
            for end in range(min(len(word), at + LONGEST), at + SHORTEST - 1, -1):
                number = self.known.get(word[at:end])
                if number is not None:
                    numbers.append(number)
                    at = end
                    break
            else:
                at += 1
        numbers_found = tuple(numbers)
        if len(word) <= REMEMBERED_LENGTH:
            if len(self) >= REMEMBERED:
                self.clear()
            self[word] = numbers_found
        return numbers_found

    def bags(self, texts: Sequence[str]) -> Bags:
        """Count the words of each text."""
        return self.count(
            count_identifiers([text.encode("ascii", "replace") for text in texts]),
            len(texts),
        )

    def count(self, counted: IdentifierCounts, texts: int) -> Bags:
        """Return the words of this many texts from their counted identifiers; an identifier may recur in a text."""
        pieces = list(map(self.__getitem__, counted.words))
        ends = np.cumsum(
            np.fromiter(chain([0], map(len, pieces)), np.int64, len(pieces) + 1)
        )
        flat = np.fromiter(chain.from_iterable(pieces), np.int64, int(ends[-1]))
        bounds = ends[np.concatenate(([0], np.cumsum(counted.lengths)))]
        lengths = np.diff(
            bounds
        )  # in pieces; those of an identifier are consecutive, like its words
        of_pair = lengths[counted.numbers]
        numbers = flat[places_of(counted.numbers, lengths)]
        width = max(1, len(self.known))
        # Sorting words with their counts in the lowest bits takes a third of the time
        # of an indirect sort.
        rows = (
            counted.texts.repeat(of_pair) * width + numbers
        ) << COUNT_BITS | counted.counts.repeat(of_pair)
        rows.sort()
        keys = rows >> COUNT_BITS
        counts = rows & ((1 << COUNT_BITS) - 1)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        keys = keys[starts]
        counts = np.add.reduceat(counts, starts) if len(starts) else counts
        return Bags(
            keys % width, counts, np.searchsorted(keys, np.arange(texts + 1) * width)
        )


@dataclass(frozen=True, slots=True, eq=False)
class StaticEmbedder:
    """The model of one data file. Thread-safe."""

    vocabulary: Vocabulary = field(repr=False)
    table: npt.NDArray[np.int8] = field(repr=False)
    code_weights: Weights = field(repr=False)
    query_weights: Weights = field(repr=False)
    scale: Scale
    name: str
    """Identifies the table: vectors from different tables must never be compared."""
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
        """Return a row for each query."""
        return self._embed(texts, self.query_weights)

    def confidence(self, similarity: float) -> float:
        """Map a cosine to 0-1, with the unrelated pairs of the data file."""
        return self.scale.confidence(similarity)

    def embed_identifiers(self, counted: IdentifierCounts, texts: int) -> Vectors:
        """Return a row for each of this many texts, none longer than ``MAX_CHARS``, from their counted identifiers."""
        return self._sum(self.vocabulary.count(counted, texts), self.code_weights)

    def _embed(self, texts: Sequence[str], weights: Weights) -> Vectors:
        rows = [np.empty((0, self.dims), np.float32)]
        for at in range(0, len(texts), SLICE):
            bags = self.vocabulary.bags(
                [text[: self.max_chars] for text in texts[at : at + SLICE]]
            )
            rows.append(self._sum(bags, weights))
        return np.concatenate(rows)

    def _sum(self, bags: Bags, weights: Weights) -> Vectors:
        rows = np.zeros((len(bags.bounds) - 1, self.dims), np.float32)
        damped = weights[bags.words] * (1 + np.log(bags.counts)).astype(np.float32)
        for row, (start, end) in enumerate(pairwise(bags.bounds.tolist())):
            if start == end:  # no known word
                continue
            # Text by text: the rows of one text fit the processor's cache, those of a
            # slice would not. By einsum, since BLAS sums in an order that depends on
            # the processor and its cores.
            chosen = self.table.take(bags.words[start:end], axis=0).astype(np.float32)
            np.einsum("i,ij->j", damped[start:end], chosen, out=rows[row])
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        lengths[lengths == 0] = 1
        rows /= lengths[:, None]
        return rows


@cache
def load(path: Path) -> StaticEmbedder:
    """Return the model of a data file, which is read once per process.

    Raises:
        ProviderUnavailable: the file is missing, damaged, or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            data = {name: archive[name] for name in archive.files}
        return _check_model(data)
    except FileNotFoundError:
        raise ProviderUnavailable(
            f"{path}: the embedded model is missing from this installation"
        ) from None
    except (OSError, EOFError, BadZipFile, KeyError, ValueError) as error:
        raise ProviderUnavailable(
            f"{path}: not a model of format {FORMAT}: {error}"
        ) from None


def release() -> None:
    """Clear the cache of ``load``; embedders in use stay valid."""
    load.cache_clear()


def _check_model(data: dict[str, npt.NDArray[Any]]) -> StaticEmbedder:
    if int(data["format"]) != FORMAT:
        raise ValueError(f"its format is {int(data['format'])}")
    words = data["tokens"].tobytes().decode().split("\n")
    table = data["table"]
    scale = data["scale"]
    qscale = data["qscale"]
    if (
        table.dtype != np.int8
        or table.shape[:1] != (len(words),)
        or not scale.shape == qscale.shape == (len(words),)
    ):
        raise ValueError(
            f"{len(words)} words, but a table of {table.dtype} {table.shape}"
        )
    weights = (scale.astype(np.float32), qscale.astype(np.float32))
    if not all(np.isfinite(weight).all() for weight in weights):
        raise ValueError("weights that are not finite")
    # Only what vectors of code depend on: changed query weights do not invalidate the
    # vectors of an index.
    name = f"flashgrep-static-{zlib.crc32(scale.tobytes(), zlib.crc32(table.tobytes())):08x}"
    scale_of_pairs = Scale.of([(p, c) for p, c in data["quantiles"].tolist()])
    return StaticEmbedder(Vocabulary(words), table, *weights, scale_of_pairs, name)
