"""Exact search: every answer is what reading all files now would give.

The index proposes the files that may match; those not indexed as they are now join them; each is read and matched, so
a hit is never stale. What a file is not proposed for, the index has proven absent.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import numpy as np

from flashgrep.checkpoint import Expired, checkpoint, expiring
from flashgrep.errors import DeadlineExceeded
from flashgrep.ingest.extract import read_file
from flashgrep.lazy import LazyAttribute
from flashgrep.model import Document, Skipped, show_path
from flashgrep.pattern import ANYTHING, LineMatch, Matcher, Pattern
from flashgrep.pattern.backtracking import Backtracker
from flashgrep.search.ripgrep import find_matching, pattern_flags
from flashgrep.search.snapshot import Places, SearchStats, Snapshot
from flashgrep.search.text import hit_of

Output = Literal["lines", "files", "count"]
Order = Literal["path", "relevance"]
Engine = Literal["linear", "backtracking"]

MANY_FILES = 200
"""More candidates are scanned by ripgrep first: to start it takes as long as to read so many."""

FIRST_FILES = 64
"""So many are read here before ripgrep is asked: a page is often full by then."""

FIRST_BATCH, LARGEST_BATCH = 1_000, 16_000
"""Files given to ripgrep at once, four times as many each time: a page may be full before all are searched."""
MOST_NAMES = 1 << 20
"""Bytes of paths given to ripgrep at once; Linux allows 2 MiB of arguments."""

UNCOUNTED = "binary files that are not indexed yet are not counted"
"""Said where ripgrep has passed over files of which nothing else is known."""

COUNT_ON_FILES = 200
"""When a page is full, so many more files are still counted for an exact total (about 5 ms)."""

BACKTRACKING_SECONDS = 10.0
"""What a question without a deadline may take with the backtracking engine."""

COUNT_ON_HITS = 20_000
"""When a page is full, so many more hits are still counted for an exact total (less than 0.2 s)."""

HIT_OVERHEAD = 120
"""Characters of JSON around a hit's texts."""


class Position(NamedTuple):
    """Where to go on.

    In path order: after line ``taken`` of the file. By relevance: in the window that starts with this file of this
    tier, after ``taken`` hits. ``total``: what the first page knew. ``led``: files that define the word came first.
    """

    tier: int
    path: bytes
    taken: int
    total: int | None
    led: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of one project."""

    pattern: Pattern
    keep: Callable[[bytes], bool] | None = None
    output: Output = "lines"
    order: Order = "path"
    limit: int = 10
    before: int = 0
    after: int = 0
    max_chars: int = 32_000
    deadline: float | None = None
    use_index: bool = True
    engine: Engine = "linear"
    position: Position | None = None


@dataclass(slots=True)
class Answer(SearchStats):
    """Hits, and what was looked at for them."""

    results: list[dict[str, Any]] = field(default_factory=list)
    total: int | None = None
    next: Position | None = None
    scanned: bool = False
    """Whether no gram narrowed the candidates."""
    candidates: int = 0


class Search:
    """One question being answered; runs in a thread."""

    def __init__(self, snapshot: Snapshot, question: Question) -> None:
        self._view = snapshot
        self._question = question
        self._linear = question.engine == "linear"
        self._matcher: Matcher | Backtracker
        self.answer = Answer()

    def run(self) -> Answer:
        """Answer the question; a deadline leaves what was found so far, with ``complete`` False.

        Raises:
            DeadlineExceeded: the backtracking engine ran out of time before it found anything.

        """
        with expiring(self._question.deadline):
            if self._linear:
                self._run()
                return self.answer
            with Backtracker(self._question.pattern, seconds=self._seconds_left()) as self._matcher:
                try:
                    self._run()
                except DeadlineExceeded:
                    if not self.answer.results:
                        raise
                    self.answer.complete = False
        return self.answer

    def _run(self) -> None:
        try:
            self._count_declined()
            if self._linear:
                self._matcher = self._question.pattern.matcher()
            if self._question.output == "lines":
                self._page(self._hits())
            else:
                self._files()
        except Expired:
            self.answer.complete = False

    def _seconds_left(self) -> float:
        deadline = self._question.deadline
        return BACKTRACKING_SECONDS if deadline is None else max(0.1, deadline - time.monotonic())

    # Which files

    def _count_declined(self) -> None:
        keep, pending = self._question.keep, self._view.pending
        for path, why in self._view.table.skipped.items():
            if path not in pending and (keep is None or keep(path)):
                self._skip(why)

    def _skip(self, why: str) -> None:
        self.answer.skipped[why] = self.answer.skipped.get(why, 0) + 1

    def _paths(self) -> Iterator[bytes]:
        """Yield the files that may match, in the question's order, from its position on."""
        return (path for tier, path in self._in_order() if self._wanted(tier, path))

    def _wanted(self, tier: int, path: bytes) -> bool:
        """Return whether a file is asked about, and not on the pages before."""
        keep, position = self._question.keep, self._question.position
        return (position is None or (tier, path) >= position[:2]) and (keep is None or keep(path))

    @LazyAttribute
    def _places(self) -> Places:
        """Return the places in the table of files that may match by the index."""
        snapshot, question = self._view, self._question
        expression = question.pattern.grams() if question.use_index and self._linear else ANYTHING
        blobs = snapshot.reader.candidates(expression) if snapshot.reader else None
        if blobs is None:
            self.answer.scanned = True
            places = np.flatnonzero(snapshot.table.columns[:, 0])
        else:
            places = snapshot.table.places(blobs)
        self.answer.candidates = len(places) + len(snapshot.pending)
        return places

    def _changed(self) -> list[bytes]:
        return [path for path, mark in self._view.pending.items() if mark.ours]

    def _in_order(self) -> Iterator[tuple[int, bytes]]:
        """Yield the files that may match, with their tiers, in this order; by path all are of one tier."""
        changed = sorted(self._changed(), reverse=True)
        for path in self._settled(self._places):
            while changed and changed[-1] < path:
                yield 0, changed.pop()
            yield 0, path
        while changed:
            yield 0, changed.pop()

    def _settled(self, places: Iterable[int]) -> Iterator[bytes]:
        paths, pending = self._view.table.paths, self._view.pending
        for at in places:
            path = paths[at]
            if path not in pending:
                yield path

    # What is in them

    def _document(self, path: bytes) -> Document | None:
        try:
            _, document = read_file(self._view.files, path, self._view.max_size)
        except (FileNotFoundError, NotADirectoryError):
            return None
        self.answer.files_read += 1
        if isinstance(document, Skipped):
            self._skip(document.reason)
            return None
        return document

    def _matches(self, path: bytes) -> tuple[Document, Iterator[LineMatch]] | None:
        """Return a file and its matching lines, one by one: a file can have millions."""
        document = self._document(path)
        if document is None:
            return None
        lines = iter(self._matcher.lines(document.data))
        first = next(lines, None)
        return None if first is None else (document, chain((first,), lines))

    def _likely(self) -> Iterator[tuple[bytes, int]]:
        """Yield the files to be read, with how often they match where that is known (else 0)."""
        snapshot, question, answer = self._view, self._question, self.answer
        paths = self._paths()
        if snapshot.counts is not None:
            for path in paths:
                checkpoint()
                count = snapshot.counts.get(path, -1)
                answer.files_read += count == 0
                if count:
                    yield path, max(0, count)
            return
        yield from ((path, 0) for path in islice(paths, FIRST_FILES))
        flags = pattern_flags(snapshot.ripgrep, question.pattern) if snapshot.ripgrep and self._linear else None
        size = FIRST_BATCH
        while flags is not None and (batch := _take(paths, size)):
            if len(batch) < MANY_FILES or snapshot.ripgrep is None:
                paths = chain(batch, paths)
                break
            found = find_matching(snapshot.ripgrep, snapshot.root, flags, batch)
            answer.files_read += len(batch) - len(found)
            if snapshot.pending and len(found) < len(batch):
                answer.detail = UNCOUNTED
            yield from ((path, 0) for path in found)
            size = min(4 * size, LARGEST_BATCH)
        yield from ((path, 0) for path in paths)

    def _hits(self) -> Iterator[tuple[Position, bytes, Document, LineMatch]]:
        position = self._question.position
        for path, _ in self._likely():
            found = self._matches(path)
            if found is None:
                continue
            taken = position.taken if position and position.path == path else 0
            for match in found[1]:
                if match.number > taken:
                    yield Position(0, path, match.number, None), path, found[0], match

    # What is answered

    def _page(self, found: Iterator[tuple[Position, bytes, Document, LineMatch]]) -> None:
        question, answer = self._question, self.answer
        before_page = question.position
        known = before_page.total if before_page else None
        room = question.max_chars
        for position, path, document, match in found:
            checkpoint()
            hit = hit_of(path, document, match, question.before, question.after)
            room -= _weight(hit)
            if len(answer.results) == question.limit or (room < 0 and answer.results):
                answer.total = known if before_page else self._rest(len(answer.results) + 1, found)
                answer.next = answer.next and answer.next._replace(total=answer.total)
                return
            answer.results.append(hit)
            answer.next = position
        answer.next = None
        answer.total = known if before_page else len(answer.results)

    def _rest(self, counted: int, found: Iterator[object]) -> int | None:
        """Count what is left, when that is little work."""
        if self.answer.candidates - self.answer.files_read > COUNT_ON_FILES:
            return None
        try:
            more = sum(1 for _ in islice(found, COUNT_ON_HITS))
        except Expired:
            return None
        return counted + more if more < COUNT_ON_HITS else None

    def _files(self) -> None:
        """Answer with files, or with files and how many lines match in each."""
        question, answer = self._question, self.answer
        position = question.position
        files, lines = 0, 0
        room = question.max_chars
        for path, known in self._likely():
            if position and path == position.path:
                continue
            count = known or self._count(path)
            if not count:
                continue
            self.answer.files_read += bool(known)
            files, lines = files + 1, lines + count
            if len(answer.results) < question.limit and room > 0:
                answer.results.append(show_path(path) | ({"count": count} if question.output == "count" else {}))
                room -= len(path) + 40
                last = path
            else:
                answer.next = Position(0, last, 0, None)
                if question.output == "files" and answer.candidates - answer.files_read > COUNT_ON_FILES:
                    return
        total = lines if question.output == "count" else files
        answer.total = position.total if position else total
        answer.next = answer.next and answer.next._replace(total=answer.total)

    def _count(self, path: bytes) -> int:
        document = self._document(path)
        if document is None:
            return 0
        if self._question.output == "files":
            return int(self._matcher.search(document.data))
        if isinstance(self._matcher, Backtracker):
            return len(self._matcher.lines(document.data))
        return self._matcher.count_lines(document.data)


def _take(paths: Iterator[bytes], count: int) -> list[bytes]:
    """Return the next paths, ``count`` or as many as go on a command line."""
    taken, room = [], MOST_NAMES
    for path in islice(paths, count):
        taken.append(path)
        room -= len(path) + 11  # "./", the NUL byte and a pointer
        if room < 0:
            break
    return taken


def _weight(hit: dict[str, Any]) -> int:
    size = len(hit["text"]) + len(hit["file_path"]) + HIT_OVERHEAD
    if "before" in hit or "after" in hit:
        size += sum(len(line) + 3 for line in (*hit.get("before", ()), *hit.get("after", ())))
    return size
