"""The functions of a chunk, each with how much of a question its name and its text say.

A chunk is often several small functions, of which one is meant. So files name functions, not chunks, and a model is
shown of such a chunk the functions that say most.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from flashgrep.parts.meaning.chunk_names import NAMED_KINDS
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.meaning.index.word_impacts import Family, shared_beginning
from flashgrep.parts.meaning.search.fusion import Cover
from flashgrep.parts.meaning.search.passages import MOST_WHOLE, Passage, Span
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, KIND, NAME, NAME_END, START
from flashgrep.parts.symbols.signatures import find_code

OF_NAME: Final = 0.15
"""Weight of the share of the question's words that a function's name covers; the best chunk has 1."""
OF_TEXT: Final = 0.3
"""The same for the words in its text. Both together: the function meant is among the first three for 54.5 % of our
questions instead of 48.8 %, among ten for 71.2 instead of 66.8 %."""
PLACES_OF_SYMBOL: Final = 2
"""Places of one qualified name in a file: a declaration and a definition, or two of many overloads."""
SHARE_OF_BEST: Final = 0.5
MOST_TOGETHER: Final = 3
"""Of a chunk of several functions those are shown that say at least this share of what the best says, at most so many.
"""
_GAP: Final = 2
"""Lines between two functions that are shown with them: a marker is as long."""
_NAMED_KINDS: Final = frozenset(NAMED_KINDS)


class FoundFunction(NamedTuple):
    """A function or a type in a chunk; the chunk itself if it has none."""

    lines: Span
    relevance: float
    """How much of the question its name and its text say."""
    plain_name: str
    """Qualified only where ``symbols`` are missing."""
    symbols: FileSymbols | None = None
    row: int = -1
    """Its row in ``symbols``."""
    score: float = 0.0
    """``relevance`` and the score of its chunk relative to the best chunk."""

    @property
    def name(self) -> str:
        """Its qualified name, which takes longer to find than everything else."""
        if self.symbols is None:
            return self.plain_name
        return self.symbols.qualified(self.row)

    @property
    def kind(self) -> str:
        """Its kind; empty if it is a chunk."""
        if self.symbols is None:
            return ""
        return self.symbols.kind(self.row)


class QuestionWords:
    """The words of a question, with which names and texts are compared."""

    def __init__(
        self, words: Mapping[str, float], families: Mapping[str, Family]
    ) -> None:
        self._cover = Cover(words)
        self._weights = dict(words)
        self._total = sum(words.values())
        self._spellings = dict[str, list[bytes]]()
        self._beginnings = dict[str, bytes]()
        for word in words:
            forms = families[word]
            self._spellings[word] = [form.encode() for form in forms]
            self._beginnings[word] = shared_beginning(forms)

    def measure(self, name: str, text: bytes) -> float:
        """Return how much of the question a function says by its name and its text."""
        folded = text.lower()
        return self.measure_in(name, folded, self.find_likely(folded))

    def find_likely(self, folded: bytes) -> list[str]:
        """Return the words that a text may have: it has what all their forms begin with."""
        likely = list[str]()
        for word, beginning in self._beginnings.items():
            if beginning in folded:
                likely.append(word)
        return likely

    def measure_in(self, name: str, folded: bytes, likely: Iterable[str]) -> float:
        """Return the same for a text in lower case; ``likely``: all of its words are among these."""
        of_name = self._cover.share(name)
        weight = 0.0
        for word in likely:
            for spelling in self._spellings[word]:
                if spelling in folded:
                    weight += self._weights[word]
                    break
        of_text = 0.0
        if weight:
            of_text = weight / self._total
        return OF_NAME * of_name + OF_TEXT * of_text


def find_functions(
    data: bytes,
    chunk: StoredChunk,
    passage: Passage,
    symbols: FileSymbols | None,
    words: QuestionWords,
) -> tuple[FoundFunction, ...]:
    """Return the functions and types that begin in a chunk; what is around it, or the chunk itself, if there are none."""
    if passage.name or symbols is None:
        lines = passage.whole if passage.name else passage.part
        start = passage.lines.start(lines[0])
        end = min(passage.lines.start(lines[1] + 1), start + MOST_WHOLE)
        name = passage.name or chunk.name
        relevance = words.measure(name.rpartition(".")[2], data[start:end])
        function = FoundFunction(
            lines=lines,
            relevance=relevance,
            plain_name=name,
        )
        return (function,)
    table = symbols.parsed.definitions
    low, high = table[:, START].searchsorted([chunk.start, chunk.end]).tolist()
    rows = table[low:high].tolist()
    last_end = max((row[END] for row in rows), default=0)
    # All of their texts at once: functions are inside of types, and most have few words.
    text_end = min(last_end, chunk.end + MOST_WHOLE) + 1
    folded = data[chunk.start : text_end].lower()
    likely = words.find_likely(folded)
    functions = list[FoundFunction]()
    for index, row in enumerate(rows, low):
        if row[KIND] not in _NAMED_KINDS:
            continue
        start = row[START]
        end = max(start, row[END] - 1)
        name = data[row[NAME] : row[NAME_END]].decode("utf-8", "replace")
        place = start - chunk.start
        length = min(end + 1 - start, MOST_WHOLE)
        text = folded[place : place + length]
        relevance = words.measure_in(name, text, likely)
        first = symbols.lines.line(start)
        last = symbols.lines.line(end)
        function = FoundFunction(
            lines=(first, last),
            relevance=relevance,
            plain_name=name,
            symbols=symbols,
            row=index,
        )
        functions.append(function)
    if functions:
        return tuple(functions)
    relevance = words.measure(chunk.name, data[chunk.start : chunk.end])
    itself = FoundFunction(
        lines=passage.part,
        relevance=relevance,
        plain_name=chunk.name,
    )
    return (itself,)


def find_implementation(function: FoundFunction) -> FoundFunction:
    """Return a function with the place of its code, if it is only an overload's signature."""
    symbols = function.symbols
    if symbols is None:
        return function
    code = find_code(symbols, function.row)
    if code == function.row:
        return function
    row = symbols.row(code)
    first = symbols.lines.line(row[START])
    last = symbols.lines.line(row[END] - 1)
    return function._replace(lines=(first, last), row=code)


def choose_places(ranked: Iterable[FoundFunction], most: int) -> list[FoundFunction]:
    """Return the first functions, at most two places of a name."""
    chosen = list[FoundFunction]()
    namesakes = defaultdict[str, list[FoundFunction]](list)
    for function in ranked:
        if len(chosen) == most:
            break
        others = namesakes[function.plain_name.rpartition(".")[2]]
        # Qualified only where several names meet.
        if len(others) >= PLACES_OF_SYMBOL:
            names = [other.name for other in others]
            if names.count(function.name) >= PLACES_OF_SYMBOL:
                continue
        others.append(function)
        chosen.append(function)
    return chosen


def narrow(passage: Passage, functions: Sequence[FoundFunction]) -> Passage:
    """Return a passage of several functions without those that say much less of the question than the best."""
    if passage.name or passage.text or len(functions) < MOST_TOGETHER - 1:
        return passage
    ranked = sorted(functions, key=attrgetter("relevance"), reverse=True)
    # Of overloads the one with the code.
    by_lines = dict[Span, FoundFunction]()
    for function in map(find_implementation, ranked):
        by_lines.setdefault(function.lines, function)
    ranked = [*by_lines.values()]
    best = ranked[0]
    least = SHARE_OF_BEST * best.relevance
    if least <= 0:
        return passage
    likely = ranked[:MOST_TOGETHER]
    answering = [function for function in likely if function.relevance >= least]
    spans = _join_spans((function.lines for function in answering), passage.part)
    if not spans:
        return passage
    whole = (spans[0][0], spans[-1][1])
    left_out = list[Span]()
    for before, after in pairwise(spans):
        first = before[1] + 1
        last = after[0] - 1
        left_out.append((first, last))
    return replace(
        passage,
        part=whole,
        whole=whole,
        left_out=tuple(left_out),
        kind=best.kind,
        name=best.name,
    )


def _join_spans(spans: Iterable[Span], around: Span) -> list[Span]:
    """Return lines as far as they are in others, in order; joined where a marker would be as long as the gap."""
    joined = list[Span]()
    for first, last in sorted(spans):
        start = max(first, around[0])
        end = min(last, around[1])
        if joined and start <= joined[-1][1] + 1 + _GAP:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start <= end:
            joined.append((start, end))
    return joined
