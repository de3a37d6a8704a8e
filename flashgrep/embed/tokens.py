"""Sub-words of code: what the static model counts.

``getHTTPResponse_v2`` gives ``get http response v 2``. A word that the vocabulary lacks is cut from the left into the
longest pieces it has, of 2 to 16 letters; a letter that begins none is left out. Only ASCII letters, digits and ``_``
are looked at. The rules are part of the model: its table was trained on bags cut by them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+")
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

SHORTEST, LONGEST = 2, 16
"""Letters in a piece of an unknown word."""

REMEMBERED = 60_000
"""Identifiers whose numbers are kept, about 15 MB; the frequent ones are back at once after it was emptied."""

REMEMBERED_LENGTH = 64
"""Characters up to which an identifier is worth keeping; longer ones are data and do not come again."""


class Bags(NamedTuple):
    """Bags of words of several texts, one after the other."""

    words: Numbers
    """Numbers of the distinct words, ascending within a text."""
    counts: Numbers
    """How often each occurs in its text."""
    bounds: Numbers
    """Where each text's words begin, and the end: one more than there are texts."""


class Vocabulary(dict[str, tuple[int, ...]]):
    """Known words, and a memory of identifiers: asked for any identifier, it gives the numbers of its words."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__()
        self.known: Mapping[str, int] = {word: number for number, word in enumerate(known)}

    def __missing__(self, identifier: str) -> tuple[int, ...]:
        found = tuple(chain.from_iterable(self._pieces(word.lower()) for word in _WORD.findall(identifier)))
        if len(identifier) <= REMEMBERED_LENGTH:
            if len(self) >= REMEMBERED:
                self.clear()
            self[identifier] = found
        return found

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of a text's words in order, with repeats."""
        return list(chain.from_iterable(map(self.__getitem__, _IDENTIFIER.findall(text))))

    def bags(self, texts: Sequence[str]) -> Bags:
        """Count the words of each text."""
        lists = [self.numbers(text) for text in texts]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        words = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
        width = max(1, len(self.known))
        keys, counts = np.unique(words + np.repeat(np.arange(len(lists)) * width, lengths), return_counts=True)
        bounds = np.searchsorted(keys, np.arange(len(lists) + 1) * width)
        return Bags(keys % width, counts, bounds)

    def _pieces(self, word: str) -> tuple[int, ...]:
        whole = self.known.get(word)
        return tuple(self._cut(word)) if whole is None else (whole,)

    def _cut(self, word: str) -> Iterable[int]:
        at = 0
        while at < len(word):
            ends = range(min(len(word), at + LONGEST), at + SHORTEST - 1, -1)
            end, number = next(((end, self.known[word[at:end]]) for end in ends if word[at:end] in self.known), (0, -1))
            if end:
                yield number
            at = end or at + 1
