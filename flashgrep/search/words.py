"""Ranked search by words, for questions that no line answers to the letter."""

import re
from collections.abc import Callable
from typing import Any

from flashgrep.index.words import match_any
from flashgrep.ingest.extract import read_file
from flashgrep.model import Document
from flashgrep.pattern import LineMatch
from flashgrep.search.exact import Answer, View
from flashgrep.search.text import hit_of

MOST_TEXTS = 60
"""Texts looked at for their best lines: about 3 ms of reading."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")


def search_words(view: View, text: str, limit: int, keep: Callable[[bytes], bool] | None) -> Answer:
    """Return, for the texts with most of the words, their line with most of them; ``score`` 0 to 1, best first."""
    answer = Answer()
    match = match_any(text)
    if not match or view.reader is None:
        return answer
    words = [word.lower().encode() for word in _WORD.findall(text)]
    ranked = view.reader.ranked(match, MOST_TEXTS)
    best = ranked[0][1] if ranked else 1.0
    for blob, score in ranked:
        for path in view.paths_of(blob):
            if len(answer.results) < limit and (keep is None or keep(path)):
                hit = _best_line(view, path, words)
                answer.files_read += 1
                if hit is not None:
                    answer.results.append(hit | {"score": round(score / best, 4)})
    return answer


def _best_line(view: View, path: bytes, words: list[bytes]) -> dict[str, Any] | None:
    try:
        _, document = read_file(view.root, path, view.max_size)
    except (FileNotFoundError, NotADirectoryError):
        return None
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
    return hit_of(path, document, found) if found else None
