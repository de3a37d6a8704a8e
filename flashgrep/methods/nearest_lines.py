"""The lines nearest to a text that no line has: few, since any more would only look like an answer."""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final

from flashgrep.api.view import View
from flashgrep.files.globs import PathFilter
from flashgrep.pattern import Pattern
from flashgrep.search.exact import COUNT_ON_FILES, Answer, Question, Ranking

NEAREST: Final = 3
"""Most lines shown to a model."""
MOST_COMPARED: Final = 200
"""Lines with some of the words that are compared."""
MOST_WORDS: Final = 6
"""Words of a text of which a line may have some in their order, the longest."""
WORDS_IN_ORDER: Final = 3
"""How many of them it must have: two come in many lines."""
MOST_COUNTED_WORDS: Final = 6
"""Words whose files are counted, longest first, to find the rarest."""
WORD: Final = re.compile(r"\w{3,}")


class NearestLines:
    """Finds in a view the lines with the most words of a text."""

    def __init__(
        self,
        view: View,
        text: str,
        keep: PathFilter | None,
        ranking: Ranking | None,
        deadline: float,
    ) -> None:
        words = WORD.findall(text.lower())
        self.words = list(dict.fromkeys(words))
        self._view = view
        self._keep = keep
        self._ranking = ranking
        self._deadline = deadline

    async def find(self) -> Answer | None:
        """Return lines with some words in their order, or else with the rarest; None: no file has any word.

        Those with the most words come first, and of as many, definitions and sources; last lines that are so long that
        they are cut, since one of data has words by chance.
        """
        if len(self.words) >= WORDS_IN_ORDER:
            answer = await self._ask(_match_in_order(self.words))
            if any(not hit.get("cut") for hit in answer.results):
                return self._choose(answer)
        rarest = await self._find_rarest()
        if rarest is None:
            return None
        answer = await self._ask(_match_text(rarest))
        return self._choose(answer)

    def _choose(self, answer: Answer) -> Answer:
        ranked = [(self._rank(hit), hit) for hit in answer.results]
        ranked.sort(key=lambda pair: pair[0])
        nearest = ranked[:NEAREST]
        answer.results = [hit for _, hit in nearest]
        answer.ranks = [rank for rank, _ in nearest]
        answer.total = len(nearest)
        answer.next = None
        return answer

    def _rank(self, hit: dict[str, Any]) -> tuple[object, ...]:
        text = hit["text"].lower()
        of_line = set(WORD.findall(text))
        # A word inside another one, as in ``connectors``, is less.
        whole = sum(word in of_line for word in self.words)
        parts = sum(word in text for word in self.words)
        return hit.get("cut", False), -whole, -parts

    async def _ask(self, pattern: Pattern) -> Answer:
        question = Question(
            pattern=pattern,
            keep=self._keep,
            ranking=self._ranking,
            limit=MOST_COMPARED,
            max_chars=MOST_COMPARED * 200,
            as_text=True,
            deadline=self._deadline,
        )
        return await self._view.search(question)

    async def _find_rarest(self) -> str | None:
        """Return the word that the fewest files have; None: no file has any."""
        by_length = sorted(self.words, key=lambda word: (-len(word), word))
        rarest = None
        fewest = 0
        for word in by_length[:MOST_COUNTED_WORDS]:
            question = Question(
                pattern=_match_text(word),
                keep=self._keep,
                output="files",
                limit=1,
                deadline=self._deadline,
                count_on=COUNT_ON_FILES,
            )
            answer = await self._view.search(question)
            files = answer.total
            # Unknown: more than are counted.
            if files is None:
                files = COUNT_ON_FILES + 1
            if files and (rarest is None or files < fewest):
                rarest = word
                fewest = files
        return rarest


def _match_text(text: str) -> Pattern:
    return Pattern(texts=(text,), mode="literal", case="insensitive")


def _match_in_order(words: Sequence[str]) -> Pattern:
    """Return the pattern of some words in their order in a line.

    A message has words of its occasion, as ``failed to open x: refused``, which no line of the code has; the others
    are in it as they are written.
    """
    longest = sorted(words, key=len, reverse=True)[:MOST_WORDS]
    in_order = [word for word in words if word in longest]
    choices = combinations(in_order, WORDS_IN_ORDER)
    texts = tuple(map(".*".join, choices))
    return Pattern(texts=texts, mode="regex", case="insensitive")
