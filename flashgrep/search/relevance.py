"""Search by relevance: definitions first, then hits ranked among the files of a window, so that pages stay stable."""

import time
from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice

from flashgrep.checkpoint import Expired, checkpoint, expiring
from flashgrep.errors import InvalidParams
from flashgrep.index.tiers import TIERS, tier_of
from flashgrep.model import Document
from flashgrep.pattern import LineMatch
from flashgrep.search.definers import Definers, find_definers, names_asked
from flashgrep.search.exact import Answer, Position, Question, Search
from flashgrep.search.ranking import Definition, rank_key
from flashgrep.search.snapshot import Snapshot
from flashgrep.search.text import decoded

WINDOW_HITS = 200
"""Hits are ranked among the files of a window: whole files, best tier first, until it has so many."""

WINDOW_FILES = 100
FILE_HITS = 2_000
"""So many hits of one file are ranked; its others follow in the order of their lines."""

DEFINITIONS = 30
"""So many lines that define what is asked are ranked: each file that has one costs 0.4 ms."""

SHOWING_SECONDS = 0.2
"""What was found when the deadline came may take so much longer to be ranked and shown."""

KEPT_BYTES = 8 << 20
"""Of files that define what is asked, so that they are not read another time for their other lines."""

_DEFINING = -2 * TIERS
"""Added to the tier of a file for its lines that define what is asked, so that these come first."""
_LED = -TIERS
"""Added to the tier of such a file, or one of that name, for its other lines."""

Match = tuple[bytes, Document, LineMatch]
"""A matching line of a file."""


def search(snapshot: Snapshot, question: Question) -> Answer:
    """Answer a question, lines by relevance or all by path; raises as ``Search.run``."""
    ranked = question.order == "relevance" and question.output == "lines"
    answer = (RankedSearch if ranked else Search)(snapshot, question).run()
    if ranked and answer.next is not None and not answer.next.led and names_asked(question.pattern):
        answer.detail = "definitions do not come first yet: files are still being parsed"
    return answer


class RankedSearch(Search):
    """One question being answered by relevance.

    Lines that define what is asked come first, then the other lines of their files and those of files of that name,
    then all other files. Who defines a word is known once symbols are stored; before, all files are alike.
    """

    def __init__(self, snapshot: Snapshot, question: Question) -> None:
        super().__init__(snapshot, question)
        self._definers: Definers | None = None
        self._kept: dict[bytes, Document] = {}
        self._kept_bytes = 0

    def _hits(self) -> Iterator[tuple[Position, bytes, Document, LineMatch]]:
        """Rank window by window; a position inside a window names its first file and how many hits were taken."""
        self._definers = self._find_definers()
        taken = self._question.position.taken if self._question.position else 0
        words = self._question.pattern.texts
        for (tier, first), window, rest in self._windows():
            ranked = sorted(window, key=lambda item: rank_key(words, item[0], _line(item), self._parsed(*item)))
            start = Position(tier, first, 0, None, led=self._definers is not None)
            for at, (path, document, match) in enumerate(islice(chain(ranked, rest), taken, None), taken + 1):
                yield start._replace(taken=at), path, document, match
            taken = 0

    def _parsed(self, path: bytes, document: Document, line: LineMatch) -> Definition | None:
        if self._definers is None or path not in self._definers.defining:
            return None
        return self._definers.definitions(path, document).get(line.start, Definition.USED)

    def _windows(self) -> Iterator[tuple[tuple[int, bytes], list[Match], Iterator[Match]]]:
        """Yield where a window starts, hits to be ranked, and those of the last file that are too many for that."""
        window: list[Match] = []
        starts: list[tuple[int, bytes]] = []
        try:
            for tier, path, document, lines in chain(self._definitions(), self._uses()):
                starts.append((tier, path))
                matches = _of_file(path, document, lines)
                window.extend(islice(matches, FILE_HITS if tier >= 0 else WINDOW_HITS))
                most = DEFINITIONS if tier < _LED else WINDOW_HITS
                if len(starts) >= WINDOW_FILES or len(window) >= most:
                    yield starts[0], window, matches
                    window, starts = [], []
        except Expired:
            self.answer.complete = False
            if window:
                with expiring(time.monotonic() + SHOWING_SECONDS):  # while the window is taken, too
                    yield starts[0], window, iter(())
            raise
        if window:
            yield starts[0], window, iter(())

    def _definitions(self) -> Iterator[tuple[int, bytes, Document, Iterator[LineMatch]]]:
        """Yield the files that define what is asked, with the lines that do; their other lines come later."""
        definers = self._definers
        for tier, path in sorted((tier_of(path) + _DEFINING, path) for path in definers.defining) if definers else ():
            document = self._read_ahead(path) if self._wanted(tier, path) else None
            if definers is None or document is None:
                continue
            if (kept := self._kept_bytes + len(document.data)) <= KEPT_BYTES:
                self._kept_bytes, self._kept[path] = kept, document
            lines = [*self._lines_at(document.data, sorted(definers.definitions(path, document)))]
            if lines:
                yield tier, path, document, iter(lines)

    def _read_ahead(self, path: bytes) -> Document | None:
        """Return a file's text without counting it: it comes up again in its turn."""
        document = self._view.read(path)
        return document if isinstance(document, Document) else None

    def _document(self, path: bytes) -> Document | None:
        if path not in self._kept:
            return super()._document(path)
        self.answer.files_read += 1
        return self._kept.pop(path)

    def _lines_at(self, data: bytes, starts: Iterable[int]) -> Iterator[LineMatch]:
        """Yield those of the lines that start there that match."""
        for start in starts:
            end = data.find(b"\n", start)
            for line in self._matcher.lines(data[start:] if end < 0 else data[start:end]):
                number = data.count(b"\n", 0, start) + 1
                spans = tuple((low + start, high + start) for low, high in line.spans)
                yield LineMatch(number, number, start, start + line.end, spans)

    def _uses(self) -> Iterator[tuple[int, bytes, Document, Iterator[LineMatch]]]:
        """Yield the files that match, best first, with all lines that were not among the definitions."""
        definers = self._definers
        for path, _ in self._likely():
            found = self._matches(path)
            if found is None:
                continue
            document, lines = found
            tier = tier_of(path)
            if definers is not None and path in definers.paths:
                tier += _LED
                if path in definers.defining and (known := definers.definitions(path, document)):
                    lines = _others(lines, known)
            yield tier, path, document, lines

    def _in_order(self) -> Iterator[tuple[int, bytes]]:
        leading = self._definers.paths if self._definers else frozenset()
        yield from sorted((tier_of(path) + _LED, path) for path in leading)
        places = self._places
        tiers = self._view.table.columns[places, 5]
        rest = (path for path in self._changed() if path not in leading)
        changed = sorted(((tier_of(path), path) for path in rest), reverse=True)
        for tier in range(TIERS):
            for path in self._settled(places[tiers == tier]):
                while changed and changed[-1] < (tier, path):
                    yield changed.pop()
                if path not in leading:
                    yield tier, path
        while changed:
            yield changed.pop()

    def _find_definers(self) -> Definers | None:
        """Find out which files come first; on later pages as it was on the first."""
        position = self._question.position
        if not self._linear or (position is not None and not position.led):
            return None
        definers = find_definers(self._view, self._question.pattern, self._places, going_on=position is not None)
        if definers is None and position is not None:
            raise InvalidParams("cursor: the index was made anew since then; ask again without it", field="cursor")
        return definers


def _of_file(path: bytes, document: Document, lines: Iterator[LineMatch]) -> Iterator[Match]:
    return ((path, document, line) for line in lines)


def _others(lines: Iterator[LineMatch], known: Container[int]) -> Iterator[LineMatch]:
    return (line for line in lines if line.start not in known)


def _line(item: Match) -> tuple[str, int, int]:
    """Return the line's text, and where in it the match stands, for ranking."""
    checkpoint()
    _, document, match = item
    start, end = match.spans[0] if match.spans else (match.start, match.start)
    low = max(match.start, start - 200)
    text = decoded(document, low, min(match.end, end + 200))
    return text, start - low, match.number
