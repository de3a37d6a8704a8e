"""Ranked search by words, for questions that no line answers to the letter."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from flashgrep.index.words import match_any
from flashgrep.ingest.extract import read_file
from flashgrep.model import Document
from flashgrep.pattern import LineMatch
from flashgrep.search.exact import Answer, View
from flashgrep.search.text import hit_of

MOST_TEXTS = 60
"""Texts looked at for their best lines: about 3 ms of reading."""

MOST_SCANNED = 3_000
"""Files read because their words are not stored yet: about 0.1 s."""

ENOUGH_WORDS = 0.5
SCANNED_WEIGHT = 0.8
"""A file known by its words alone, not by how telling they are, stands behind the best that are ranked."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


def search_words(view: View, text: str, limit: int, keep: Callable[[bytes], bool] | None) -> Answer:
    """Return, for the texts with most of the words, their line with most of them; ``score`` 0 to 1, best first.

    Files whose words are not in the index yet are read, up to MOST_SCANNED, and scored by the share of words they have.
    """
    answer = Answer()
    words = list(dict.fromkeys(word.lower().encode() for word in _WORD.findall(text)))
    if not words:
        return answer
    scored = [*_ranked(view, text), *_scanned(view, words, answer)]
    for score, path in sorted(scored, key=lambda item: (-item[0], item[1])):
        if len(answer.results) == limit:
            break
        hit = _best_line(view, path, words) if keep is None or keep(path) else None
        if hit is not None:
            answer.files_read += 1
            answer.results.append(hit | {"score": round(score, 4)})
    return answer


def _ranked(view: View, text: str) -> Iterator[tuple[float, bytes]]:
    """Yield unchanged files with their BM25, as a share of the best."""
    match = match_any(text)
    ranked = view.reader.ranked(match, MOST_TEXTS) if match and view.reader else []
    paths = view.paths_of([blob for blob, _ in ranked])
    for blob, score in ranked:
        yield from ((score / ranked[0][1], path) for path in paths[blob])


def _scanned(view: View, words: list[bytes], answer: Answer) -> Iterator[tuple[float, bytes]]:
    """Yield files the word table does not know as they are, with the share of the words they have."""
    unknown = [path for path, mark in view.pending.items() if mark.ours]
    if not view.worded:
        unknown += [path for path in view.table.paths if path not in view.pending]
    for path in unknown[:MOST_SCANNED]:
        document = _document(view, path)
        if document is None:
            continue
        answer.files_read += 1
        folded = document.data.lower()
        share = sum(word in folded for word in words) / len(words)
        if share >= ENOUGH_WORDS:
            yield share * SCANNED_WEIGHT, path


def _document(view: View, path: bytes) -> Document | None:
    try:
        _, document = read_file(view.files, path, view.max_size)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return document if isinstance(document, Document) else None


def _best_line(view: View, path: bytes, words: list[bytes]) -> dict[str, Any] | None:
    document = _document(view, path)
    if document is None:
        return None
    best, found, start = 0, None, 0
    for number, line in enumerate(document.data.split(b"\n"), 1):
        folded = line.lower()
        count = sum(word in folded for word in words)
        if count > best:
            at = min(place for place in (folded.find(word) for word in words) if place >= 0)
            best, found = count, LineMatch(number, number, start, start + len(line), ((start + at, start + at + 1),))
        start += len(line) + 1
    return hit_of(path, document, found) if found else None
