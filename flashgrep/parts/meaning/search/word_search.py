"""Search for lines by words: in the files with most of them, or once all texts are cut, in the best chunks.

Words match in all their forms: a question where accounts are hidden also means code that says "hide_account".
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.identifiers import find_identifiers_with
from flashgrep.base.model import Document, path_to_json
from flashgrep.parts.meaning.index.word_impacts import (
    Family,
    shared_beginning,
    words_of,
)
from flashgrep.parts.meaning.search.chunk_index import idf
from flashgrep.parts.meaning.search.current_chunks import FoundChunk
from flashgrep.parts.meaning.search.fusion import (
    RULES,
    analyze_query,
    query_words,
    weigh_file,
)
from flashgrep.pattern import LineMatch, Pattern
from flashgrep.search.declared_kinds import read_kinds
from flashgrep.search.exact import Answer
from flashgrep.search.hits import make_hit
from flashgrep.search.ripgrep import Ripgrep, names_in, pattern_flags, walk
from flashgrep.search.snapshot import SIZE, TEXT_ID, SearchStats, Snapshot

_SHORTEST: Final = 3
"""Letters of a form; shorter words are mostly abbreviations and have no forms."""
_VOWELS: Final = frozenset("aeiou")
_LONGEST_DOUBLED: Final = 4
"""Most letters of a word that doubles its last one: ``stop``, ``stopped``; longer ones seldom do (``visit``)."""
_HISSING: Final = ("s", "x", "z", "ch", "sh")
"""Endings whose plural is formed with ``es``."""
MOST_TEXTS = 60
"""Most texts searched for their best lines: about 3 ms of reading."""
MOST_SCANNED = 3_000
"""Most files read because their current version is not indexed: about 0.1 s."""
MOST_WALKS = 4
"""Words for which ripgrep finds the files, if more files are not indexed than can be read."""
ENOUGH_WORDS = 0.5
SCANNED_WEIGHT = 0.8
"""A file found only by having words, without their weights, comes after the best that are ranked."""
K1, B = 1.2, 0.75
"""BM25's usual constants."""
SURE = 0.8
"""A chunk with none of the words is shown from this score on: one in a thousand unrelated chunks reaches it, and for
made-up words, which share parts with words in code, almost none."""


def spellings_of(question: str) -> list[tuple[bytes, ...]]:
    """Return the words of a question, each with its forms."""
    return [
        tuple(form.encode() for form in (word, *forms_of(word)))
        for word in query_words(question)
    ]


@lru_cache(maxsize=1 << 12)
def forms_of(word: str) -> tuple[str, ...]:
    """Return the other numbers and tenses of a lower-case word, by the rules for regular words."""
    if len(word) <= _SHORTEST or not word.isalpha():
        return ()
    bases = [word]
    if word.endswith("ed"):
        rest = word.removesuffix("ed")
    else:
        rest = word.removesuffix("ing")
    if word.endswith(("ies", "ied")):
        bases = [f"{word[:-3]}y"]
    elif rest != word and not rest.endswith("e") and not _VOWELS.isdisjoint(rest):
        is_doubled = rest[-1:] == rest[-2:-1] and not rest.endswith(("l", "s", "z"))
        # If the letters do not decide, both: ``hid`` and ``hide`` for ``hiding``.
        if is_doubled:
            bases = [rest[:-1]]
        else:
            bases = [rest, f"{rest}e"]
    elif word.endswith(("ches", "shes", "sses", "xes", "zes")):
        bases = [word[:-2], word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases = [word[:-1]]
    forms = set[str]()
    for base in [base for base in bases if len(base) >= _SHORTEST] or [word]:
        if base.endswith("e"):
            forms |= {base, f"{base}s", f"{base}d", f"{base[:-1]}ing"}
        elif base.endswith("y") and base[-2] not in _VOWELS:
            forms |= {base, f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"}
        else:
            stops = (
                base[-1] not in _VOWELS | set("hwxys")
                and base[-2] in _VOWELS
                and base[-3] not in _VOWELS
            )
            if stops and len(base) <= _LONGEST_DOUBLED:
                stem = base + base[-1]
            else:
                stem = base
            forms |= {
                base,
                base + ("es" if base.endswith(_HISSING) else "s"),
                f"{stem}ed",
                f"{stem}ing",
            }
    return tuple(sorted(forms - {word}))


class WordCover:
    """The words of a question, each with its forms and their weights, with which texts are compared."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = [*families]
        self._total = sum(max(family.values()) for family in self._families)
        # A word is part of its identifier letter by letter, so most identifiers need not be
        # split: those without the common prefix of a word and all its forms.
        self._beginnings = [shared_beginning(family) for family in self._families]

    def share(self, text: bytes) -> float:
        """Return the share, 0 to 1, of the words' weight that a text contains; forms have own weights."""
        if self._total <= 0:
            return 0.0
        names = find_identifiers_with(text, self._beginnings)
        if not names:
            return 0.0
        there = words_of(b" ".join(names))
        had = sum(
            max(
                (weight for word, weight in family.items() if word in there),
                default=0.0,
            )
            for family in self._families
        )
        return had / self._total


def search_words(
    snapshot: Snapshot, text: str, limit: int, keep: Callable[[bytes], bool] | None
) -> Answer:
    """Return, for the texts with most of the words, the line with most of them; ``score`` 0 to 1, best first.

    Files whose current version is not indexed are read, up to MOST_SCANNED; their score is their share of the words.
    """
    answer = Answer()
    words = [word.encode() for word in query_words(text)]
    for score, path in _rank_files(snapshot, text, answer):
        if len(answer.results) == limit:
            break
        if keep is None or keep(path):
            document = snapshot.read(path)
        else:
            document = None
        if isinstance(document, Document):
            count, line = _find_best_line(document.data, [(word,) for word in words])
            if count > 0:
                answer.files_read += 1
                answer.results.append(
                    make_hit(path_to_json(path), document, line)
                    | {"score": round(score, 4)}
                )
    return answer


def rank_by_words(snapshot: Snapshot, text: str) -> list[bytes]:
    """Return up to a few thousand files with most of a question's words, best first, indexed or not."""
    return [path for _, path in _rank_files(snapshot, text, SearchStats())]


def show_best_lines(chunks: Sequence[FoundChunk], text: str) -> Answer:
    """Return each chunk as its line with most of the words of ``text``, or its first line; scores are unchanged."""
    words = spellings_of(text)
    answer = Answer(files_read=len({found_chunk.path for found_chunk in chunks}))
    for chunk in chunks:
        data = chunk.text.encode()
        folded = data.lower() + chunk.path.lower()
        if chunk.score < SURE and not any(
            word_form in folded for word in words for word_form in word
        ):
            continue
        _, line = _find_best_line(data, words, chunk.chunk.start_line)
        answer.results.append(
            make_hit(path_to_json(chunk.path), Document(data), line)
            | {"score": chunk.score}
        )
    return answer


def _find_best_line(
    data: bytes, words: Sequence[Sequence[bytes]], first: int = 1
) -> tuple[int, LineMatch]:
    """Return the first line with most of the words, and its number of words; ``first``: the first line's number.

    A line has a word if it has one of its spellings.
    """
    best = (-2, 0, 0, b"")
    start = 0
    for number, line in enumerate(data.split(b"\n"), first):
        folded = line.lower()
        count = sum(any(map(folded.count, word)) for word in words)
        if (
            not count and not line.strip()
        ):  # a blank line ranks below one without any of the words
            count = -1
        if count > best[0]:
            best = (count, number, start, line)
        start += len(line) + 1
    count, number, start, line = best
    folded = line.lower()
    places = map(folded.find, chain.from_iterable(words))
    at = min(
        (place for place in places if place >= 0),
        default=len(line) - len(line.lstrip()),
    )
    return count, LineMatch(
        number, number, start, start + len(line), ((start + at, start + at + 1),)
    )


def _rank_files(
    snapshot: Snapshot, text: str, stats: SearchStats
) -> list[tuple[float, bytes]]:
    """Return files with some of a question's words and their scores, 0 to 1, best first.

    Prose, data, tests and generated code count less, unless asked for, as in the search by meaning.
    """
    words = [word.encode() for word in query_words(text)]
    query = analyze_query(text, {})
    kinds = read_kinds(snapshot)
    weighed = [
        (
            score
            * weigh_file(
                path,
                kinds,
                query,
                RULES,
            ),
            path,
        )
        for score, path in _score_files(snapshot, words, stats)
    ]
    return sorted(weighed, key=lambda item: (-item[0], item[1]))


def _score_files(
    snapshot: Snapshot, words: list[bytes], stats: SearchStats
) -> list[tuple[float, bytes]]:
    """Return files with some of the words and their scores, 0 to 1."""
    if not words:
        return []
    scored = _score_by_index(snapshot, words)
    changed = snapshot.changed_paths()
    if len(changed) > MOST_SCANNED and snapshot.ripgrep is not None:
        changed = _sort_by_words(
            snapshot,
            snapshot.ripgrep,
            words,
            changed,
        )
    for path in changed[:MOST_SCANNED]:
        checkpoint()
        document = snapshot.read(path)
        if isinstance(document, Document):
            stats.files_read += 1
            folded = document.data.lower()
            share = sum(word in folded for word in words) / len(words)
            if share >= ENOUGH_WORDS:
                scored.append((share * SCANNED_WEIGHT, path))
    return scored


def _score_by_index(
    snapshot: Snapshot, words: list[bytes]
) -> list[tuple[float, bytes]]:
    """Return unchanged files with their BM25 relative to the best; a word counts once per text, as with grams."""
    text_ids = snapshot.table.columns[:, TEXT_ID]
    sizes = snapshot.table.columns[:, SIZE].astype(np.float32)
    texts = np.unique(text_ids[text_ids > 0])
    if snapshot.reader is None or not len(texts):
        return []
    scores = np.zeros(int(texts[-1]) + 1, np.float32)
    there = np.zeros(len(scores), bool)
    there[texts] = True
    for word in words:
        checkpoint()
        candidates = snapshot.reader.candidates(
            Pattern(texts=(word.decode(),), mode="literal").grams()
        )
        if candidates is not None:
            candidates = candidates[candidates < len(scores)]
            candidates = candidates[
                there[candidates]
            ]  # a store also has texts of other projects
            scores[candidates] += idf(len(texts), len(candidates))
    # The file size stands for the number of words, which is not stored before texts are
    # cut.
    length = np.ones(len(scores), np.float32)
    length[text_ids] = sizes / max(1.0, float(sizes.mean()))
    scores *= (K1 + 1) / (1 + K1 * (1 - B + B * length))
    best = texts[np.argsort(-scores[texts], kind="stable")[: 4 * MOST_TEXTS]]
    paths = snapshot.paths_of_texts(best[scores[best] > 0].tolist())
    ranked = sorted(
        (
            (
                float(scores[text_id])
                * (1 + sum(word in path.lower() for word in words) / len(words)),
                path,
            )
            for text_id, same in paths.items()
            for path in same
        ),
        reverse=True,
    )
    return [(score / ranked[0][0], path) for score, path in ranked[:MOST_TEXTS]]


def _sort_by_words(
    snapshot: Snapshot, ripgrep: Ripgrep, words: list[bytes], paths: list[bytes]
) -> list[bytes]:
    """Return the files that have the longest of the words, those with the rarest ones first."""
    scores: dict[bytes, float] = defaultdict(float)
    for word in sorted(words, key=len, reverse=True)[:MOST_WALKS]:
        flags = pattern_flags(
            ripgrep, Pattern(texts=(word.decode(),), mode="literal", case="insensitive")
        )
        output = (
            walk(
                ripgrep,
                snapshot.root,
                [*flags, b"--files-with-matches"],
                snapshot.max_size,
            )
            if flags
            else None
        )
        matching = set(paths).intersection(names_in(output.printed)) if output else ()
        for path in matching:
            scores[path] += idf(len(paths), len(matching))
    return sorted(scores, key=lambda path: (-scores[path], path)) or paths
