"""The line to show of each piece of code that was found by meaning."""

from flashgrep.model import Document
from flashgrep.pattern import LineMatch
from flashgrep.search.exact import Answer
from flashgrep.search.fusion import words_of_question
from flashgrep.search.hits import make_hit
from flashgrep.search.meaning import MeaningAnswer, Piece

SURE = 0.8
"""A piece with none of the words is shown from this score on: one in a thousand unrelated pieces reaches it, and of
made-up words, which have pieces of other words in common with code, almost none."""

_NOTHING = -1
"""A blank line is worth less than one without any of the words."""


def lines_of(found: MeaningAnswer, text: str) -> Answer:
    """Return each piece as its line with most of the words of ``text``, or its first; scores stay."""
    words = [word.encode() for word in words_of_question(text)]
    answer = Answer(files_read=len({piece.path for piece in found.results}))
    for piece in found.results:
        data = piece.text.encode()
        if piece.score < SURE and not any(word in data.lower() or word in piece.path.lower() for word in words):
            continue
        hit = make_hit(piece.path, Document(data), _best_line(piece, data, words))
        answer.results.append(hit | {"score": piece.score})
    return answer


def _best_line(piece: Piece, data: bytes, words: list[bytes]) -> LineMatch:
    best, start = (_NOTHING - 1, 0, 0, b""), 0
    for place, line in enumerate(data.split(b"\n")):
        folded = line.lower()
        count = sum(word in folded for word in words) if line.strip() else _NOTHING
        if count > best[0]:
            best = (count, place, start, line)
        start += len(line) + 1
    _, place, start, line = best
    folded = line.lower()
    at = min((found for found in map(folded.find, words) if found >= 0), default=len(line) - len(line.lstrip()))
    number = piece.chunk.start_line + place
    return LineMatch(number, number, start, start + len(line), ((start + at, start + at + 1),))
