"""Adjacent words of a question that code has side by side: ``retry limit`` in ``retryLimits`` and in a comment."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from flashgrep.parts.meaning.index.word_impacts import Family, shared_beginning

_BETWEEN: Final = b" _-"
"""What may be between two words that are side by side."""


class _Pair(NamedTuple):
    """Two adjacent words of a question."""

    bits: int
    spellings: list[bytes]
    """The first word and its forms."""
    beginning: bytes
    """What the second word and its forms begin with."""


class WordPairs:
    """The pairs of adjacent words of a question, with which texts are compared.

    Stop words are no words here, so ``size of the cache`` has the pair of ``size`` and ``cache``.
    """

    def __init__(self, families: Mapping[str, Family]) -> None:
        self._pairs = list[_Pair]()
        bits = 0b11
        for first, second in pairwise(families.values()):
            # What the first word ends with must be known, of the second only how it begins.
            pair = _Pair(
                bits,
                spellings=[form.encode() for form in first],
                beginning=shared_beginning(second),
            )
            self._pairs.append(pair)
            bits <<= 1

    def find_possible(self, words: int) -> list[_Pair]:
        """Return the pairs that a text with these words may have; ``words``: a bit for each, the first word's is the lowest."""
        possible = list[_Pair]()
        for pair in self._pairs:
            if words & pair.bits == pair.bits:
                possible.append(pair)
        return possible

    def share(self, words: int, text: bytes) -> float:
        """Return the share of the pairs that a text with these words has side by side, in any of their forms."""
        folded = text.lower()
        joined = folded.translate(None, _BETWEEN)
        count = 0
        for pair in self.find_possible(words):
            for spelling in pair.spellings:
                phrase = spelling + pair.beginning
                if phrase in joined:
                    count += 1
                    break
        return count / max(1, len(self._pairs))
