"""Ranked search by words, for questions that no line answers to the letter, until all texts are cut into chunks."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flashgrep.checkpoint import checkpoint
from flashgrep.model import Document
from flashgrep.pattern import LineMatch, Pattern
from flashgrep.search.exact import Answer
from flashgrep.search.fusion import words_of_question
from flashgrep.search.hits import make_hit
from flashgrep.search.meaning_recall import idf
from flashgrep.search.ripgrep import Ripgrep, names_in, pattern_flags, walk
from flashgrep.search.snapshot import Snapshot

MOST_TEXTS = 60
"""Texts looked at for their best lines: about 3 ms of reading."""

MOST_SCANNED = 3_000
"""Files read because they are not in the index as they are: about 0.1 s."""
MOST_WALKS = 4
"""Words of which ripgrep tells the files that have them, where more are not in the index than can be read."""

ENOUGH_WORDS = 0.5
SCANNED_WEIGHT = 0.8
"""A file known by its words alone, not by how telling they are, stands behind the best that are ranked."""

K1, B = 1.2, 0.75
"""BM25's usual constants."""


def search_words(snapshot: Snapshot, text: str, limit: int, keep: Callable[[bytes], bool] | None) -> Answer:
    """Return, for the texts with most of the words, their line with most of them; ``score`` 0 to 1, best first.

    Files that are not in the index as they are now are read, up to MOST_SCANNED; their score is their share of words.
    """
    answer = Answer()
    words = [word.encode() for word in words_of_question(text)]
    if not words:
        return answer
    scored = [*_ranked(snapshot, words), *_scanned(snapshot, words, answer)]
    for score, path in sorted(scored, key=lambda item: (-item[0], item[1])):
        if len(answer.results) == limit:
            break
        hit = _best_line(snapshot, path, words) if keep is None or keep(path) else None
        if hit is not None:
            answer.files_read += 1
            answer.results.append(hit | {"score": round(score, 4)})
    return answer


def rank_files(snapshot: Snapshot, words: list[bytes]) -> list[bytes]:
    """Return up to a few thousand files with most of the words, best first, whether they are indexed or not."""
    scored = [*_ranked(snapshot, words), *_scanned(snapshot, words, Answer())] if words else []
    return [path for _, path in sorted(scored, key=lambda item: (-item[0], item[1]))]


def _ranked(snapshot: Snapshot, words: list[bytes]) -> Iterator[tuple[float, bytes]]:
    """Yield unchanged files with their BM25 as a share of the best; a word counts once a text, as grams tell it."""
    blobs, sizes = snapshot.table.columns[:, 0], snapshot.table.columns[:, 1].astype(np.float32)
    texts = np.unique(blobs[blobs > 0])
    if snapshot.reader is None or not len(texts):
        return
    scores = np.zeros(int(texts[-1]) + 1, np.float32)
    for word in words:
        checkpoint()
        found = snapshot.reader.candidates(Pattern(texts=(word.decode(),), mode="literal").grams())
        if found is not None:
            found = found[found < len(scores)]
            scores[found] += idf(len(texts), len(found))
    length = np.ones(len(scores), np.float32)
    length[blobs] = sizes / max(1.0, float(sizes.mean()))
    scores *= (K1 + 1) / (1 + K1 * (1 - B + B * length))
    best = texts[np.argsort(-scores[texts], kind="stable")[: 4 * MOST_TEXTS]]
    paths = snapshot.paths_of_texts(best[scores[best] > 0].tolist())
    ranked = [
        (float(scores[blob]) * (1 + sum(word in path.lower() for word in words) / len(words)), path)
        for blob, those in paths.items()
        for path in those
    ]
    ranked.sort(reverse=True)
    yield from ((score / ranked[0][0], path) for score, path in ranked[:MOST_TEXTS])


def _scanned(snapshot: Snapshot, words: list[bytes], answer: Answer) -> Iterator[tuple[float, bytes]]:
    """Yield files the index does not know as they are, with the share of the words they have."""
    unknown = snapshot.changed_paths()
    if len(unknown) > MOST_SCANNED and snapshot.ripgrep is not None:
        unknown = _sort_by_words(snapshot, snapshot.ripgrep, words, unknown)
    for path in unknown[:MOST_SCANNED]:
        checkpoint()
        document = snapshot.read(path)
        if not isinstance(document, Document):
            continue
        answer.files_read += 1
        folded = document.data.lower()
        share = sum(word in folded for word in words) / len(words)
        if share >= ENOUGH_WORDS:
            yield share * SCANNED_WEIGHT, path


def _sort_by_words(snapshot: Snapshot, ripgrep: Ripgrep, words: list[bytes], paths: list[bytes]) -> list[bytes]:
    """Return the files that have the longest of the words, those with the most telling ones first."""
    scores: dict[bytes, float] = defaultdict(float)
    for word in sorted(words, key=len, reverse=True)[:MOST_WALKS]:
        flags = pattern_flags(ripgrep, Pattern(texts=(word.decode(),), mode="literal", case="insensitive"))
        output = walk(ripgrep, snapshot.root, [*flags, b"--files-with-matches"], snapshot.max_size) if flags else None
        found = set(paths).intersection(names_in(output.printed)) if output else ()
        for path in found:
            scores[path] += idf(len(paths), len(found))
    return sorted(scores, key=lambda path: (-scores[path], path)) or paths


def _best_line(snapshot: Snapshot, path: bytes, words: list[bytes]) -> dict[str, Any] | None:
    document = snapshot.read(path)
    if not isinstance(document, Document):
        return None
    best, found, start = 0, None, 0
    for number, line in enumerate(document.data.split(b"\n"), 1):
        folded = line.lower()
        count = sum(word in folded for word in words)
        if count > best:
            at = min(place for place in (folded.find(word) for word in words) if place >= 0)
            best, found = count, LineMatch(number, number, start, start + len(line), ((start + at, start + at + 1),))
        start += len(line) + 1
    return make_hit(path, document, found) if found else None
