"""How much of a question a name or a path says: words matched by their stems and by their beginnings.

People ask for ``encoding`` and ``asynchronous`` where code is named ``encoder`` and ``async``.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from flashgrep.index.words import parts

BEGINNING: Final = 0.8
"""What a word counts for that is only the beginning of another, as ``config`` of ``configuration``."""
_SHORTEST: Final = 4
"""Letters that two words must share to be one; an abbreviation of three (``env``) begins the word of the question."""
_LEAST_STEM: Final = 3

_MOST_KEPT: Final = 256
"""Characters of a text whose stems are remembered: names and paths are shorter, a question may be longer."""
_LONGEST: Final = 64
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VOWEL: Final = re.compile("[aeiouy]")
_ENDINGS: Final = (
    *("ization", "isation", "ations", "ation", "ition", "ments", "ment", "ings", "ing", "ness", "able", "ible"),
    *("ers", "er", "ors", "or", "ions", "ion", "ies", "ed", "es", "s", "ly", "e", "y", "al"),
)
"""Endings taken off, the first that fits: enough for comparing names, not for linguistics."""


class Cover:
    """The words of one question, each with its weight."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self._weights: dict[str, float] = {}
        for word, weight in words.items():
            stem = stem_of(word)
            self._weights[stem] = min(weight, self._weights.get(stem, weight))
        self._total = sum(self._weights.values())
        self._beginning: dict[str, list[str]] = {}
        """By their first letters: words that begin differently are never alike."""
        for stem in self._weights:
            self._beginning.setdefault(stem[:_LEAST_STEM], []).append(stem)
        self._matches: dict[str, dict[str, float]] = {}
        """By word of code: the words of the question that it stands for, and how well."""

    def share(self, text: str) -> float:
        """Return the share of the question's weight, 0 to 1, that the words of a name or path have."""
        if self._total <= 0:
            return 0.0
        best: dict[str, float] = {}
        for word in stems_of(text):
            matches = self._matches.get(word)
            if matches is None:
                near = self._beginning.get(word[:_LEAST_STEM], ())
                matches = self._matches[word] = {asked: how for asked in near if (how := _likeness(asked, word))}
            for asked, how in matches.items():
                best[asked] = max(how, best.get(asked, 0.0))
        return sum(self._weights[asked] * how for asked, how in best.items()) / self._total


def _likeness(asked: str, word: str) -> float:
    if asked == word:
        return 1.0
    shorter = min(len(asked), len(word))
    abbreviates = len(word) == _LEAST_STEM and len(asked) >= _SHORTEST and asked.startswith(word)
    begins = shorter >= _SHORTEST and (asked.startswith(word) or word.startswith(asked))
    return BEGINNING if abbreviates or begins else 0.0


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of a text's identifiers, whole and in parts."""
    return (_kept_stems if len(text) <= _MOST_KEPT else _stems)(text)


def _stems(text: str) -> frozenset[str]:
    return frozenset(
        stem_of(part.decode("ascii")) if len(part) <= _LONGEST else part.decode("ascii")
        for word in _IDENTIFIER.findall(text)
        for part in parts(word.encode())
    )


_kept_stems = lru_cache(maxsize=1 << 14)(_stems)  # names and paths recur from question to question: 10 µs each


@lru_cache(maxsize=1 << 14)
def stem_of(word: str) -> str:
    """Return a lower-case word without its ending; names with digits or underscores, and short words, as they are."""
    if len(word) < _SHORTEST or not word.isalpha():
        return word
    stem = word
    for ending in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _LEAST_STEM and _VOWEL.search(rest):
            stem = rest
            break
    if len(stem) > _LEAST_STEM and stem[-1] == stem[-2] and stem[-1] not in "sl":
        stem = stem[:-1]
    return stem[:-1] if len(stem) > _LEAST_STEM and stem[-1] in "ie" else stem
