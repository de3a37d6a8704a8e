"""Exact search: every answer equals the result of reading all files now.

The index proposes files; those changed since it was written are added. Each is read and matched, so no hit is stale; if
the index does not propose a file, no line of it can match.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, compress, dropwhile, filterfalse, islice
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson

from flashgrep.base.checkpoint import Expired, checkpoint, expiring
from flashgrep.base.errors import DeadlineExceeded
from flashgrep.base.lazy import LazyAttribute
from flashgrep.base.model import (
    Document,
    EncodedList,
    Skipped,
    path_to_json,
    path_to_text,
)
from flashgrep.files.columns import Columns, Lines, PositionEncoding
from flashgrep.pattern import ANYTHING, FOLDS, Gram, LineMatch, Matcher, Pattern
from flashgrep.pattern.backtracking import Backtracker
from flashgrep.search.hits import make_hit, put_spans
from flashgrep.search.printed import FIRST_FILES as PRINTED_AT_FIRST
from flashgrep.search.printed import (
    LEAST_CHARS,
    LEAST_FILES,
    LEAST_HITS,
    MOST_FILES,
    SAMPLE,
    SAMPLE_BYTES,
    SHARES,
    Batches,
    Numbers,
    Printed,
    Printer,
    add_up,
)
from flashgrep.search.ripgrep import (
    Counts,
    find_matching,
    pattern_flags,
    take_batch,
)
from flashgrep.search.snapshot import (
    TEXT_ID,
    Places,
    SearchStats,
    Snapshot,
    merge_series,
)

Output = Literal["lines", "files", "count"]
Order = Literal["path", "relevance"]
Engine = Literal["linear", "backtracking"]

MANY_FILES = 200
"""With more candidates than this ripgrep scans first: starting it takes as long as reading this many files."""

FIRST_FILES = 64
"""Files read here before ripgrep starts: a page is often full by then."""

FIRST_BATCH, LARGEST_BATCH = 1_000, 16_000
"""Files given to ripgrep at first, then four times as many each time: a page may be full before all are searched."""

UNCOUNTED = "binary files that are not indexed yet are not counted"
"""The detail of an answer if ripgrep skipped files about which nothing else is known."""

COUNT_ON_FILES = 200
"""When a page is full, this many more files are still counted for an exact total (about 5 ms)."""

ENCODED_FROM = 200
"""Hits that are encoded at once, in about 0.1 ms; fewer are left to the event loop."""

SHOWING_SECONDS = 0.2
"""Extra seconds after the deadline for ranking and showing what was found."""

BACKTRACKING_SECONDS = 10.0
"""Seconds for a question without a deadline with the backtracking engine."""

COUNT_ON_HITS = 20_000
"""When a page is full, this many more hits are still counted for an exact total (less than 0.2 s)."""

HIT_OVERHEAD, LINE_OVERHEAD, FILE_OVERHEAD, SPAN_OVERHEAD = 120, 3, 40, 72
"""Overhead in characters of JSON for a hit, a line of context, a file's name, and a span."""

MOST_SPANS = 1_000
"""Most spans of a hit that are returned."""


class Position(NamedTuple):
    """Where the next page begins.

    In path order: after line ``taken`` of the file. By relevance: in the window that starts with this file of this
    tier, after ``taken`` hits. ``total``: the total found by the first page. ``led``: defining files came first.
    """

    tier: int
    path: bytes
    taken: int
    total: int | None
    led: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to one project."""

    pattern: Pattern
    keep: Callable[[bytes], bool] | None = None
    output: Output = "lines"
    ranking: "Ranking | None" = None
    """Finds the lines in an order of its own, best first; None: all by path. A function of a module, for workers."""
    limit: int = 10
    before: int = 0
    after: int = 0
    max_chars: int = 32_000
    as_text: bool = False
    """Whether ``max_chars`` counts text, one line per hit below a heading per file; otherwise it counts JSON."""
    deadline: float | None = None
    use_index: bool = True
    engine: Engine = "linear"
    position: Position | None = None
    count_on: int = COUNT_ON_FILES
    spans: PositionEncoding | None = None
    """Requests all spans of a hit, with columns in this unit; None: only the column of the first."""
    as_json: bool = False
    """Whether many hits are returned as JSON, without ranks: encoding 10,000 hits of a worker blocked the daemon's event
    loop for 15 ms."""


@dataclass(slots=True)
class Answer(SearchStats):
    """Hits, and the files examined for them."""

    results: list[dict[str, Any]] = field(default_factory=list)
    total: int | None = None
    next: Position | None = None
    scanned: bool = False
    """Whether no gram narrowed the candidates."""
    candidates: int = 0
    ranks: list[tuple[object, ...]] = field(default_factory=list)
    """By relevance: each hit's sort key for merging with other projects."""
    encoded: EncodedList | None = None
    """Many results as JSON, in place of ``results``, if the question asks for that."""
    parts: list[bytes] = field(default_factory=list)
    """The first results as JSON, ENCODED_FROM in each, while more are found: as objects they take three times as much,
    and many searches may wait for their turn with a page half full."""
    encoded_hits: int = 0
    """How many are in ``parts``, or in ``encoded``."""

    def encode(self, count: int | None = None) -> None:
        """Replace the first results, or all, by their JSON; nobody then needs ranks."""
        first = self.results[:count]
        del self.results[:count]
        self.ranks.clear()
        if first:
            self.parts.append(orjson.dumps(first)[1:-1])
            self.encoded_hits += len(first)

    def add_json(self, part: bytes, count: int) -> None:
        """Add hits that are JSON already, without the brackets of a list."""
        self.encode()
        self.parts.append(part)
        self.encoded_hits += count

    def join_parts(self) -> None:
        """Join the parts and what is left to ``encoded``."""
        self.encode()
        joined = b",".join(self.parts)
        self.encoded = EncodedList(b"[%b]" % joined, self.encoded_hits)
        self.parts = []

    @property
    def hits(self) -> Sequence[dict[str, Any]]:
        """What was found, as objects or as JSON."""
        if self.encoded is not None:
            return self.encoded
        return self.results

    @property
    def has_hits(self) -> bool:
        """Whether anything was found."""
        return bool(self.results) or self.encoded is not None


class Search:
    """Answers one question in path order; runs in a thread."""

    def __init__(self, snapshot: Snapshot, question: Question) -> None:
        self.snapshot = snapshot
        self.question = question
        self.answer = Answer()
        self.is_linear = question.engine == "linear"
        self.matcher: Matcher | Backtracker
        self.is_counting = False
        """Whether the page is full: hits of further files are only counted."""
        self.counted = 0
        self.matching = 0
        """Files with a hit so far, among those read here."""
        self.rank: tuple[object, ...] = ()
        """By relevance: the rank of the last hit yielded."""
        self.paths: Iterator[bytes] | None = None
        """The files that are left; None: all."""
        self.room = question.max_chars
        """Characters that are left on the page after the whole files on it."""
        self.taken = 0
        """Hits of these files."""
        self.reached: tuple[Position | None, int] = None, 0
        """The last of these files, and the number of its last hit."""

    def run(self) -> Answer:
        """Answer the question; a deadline leaves what was found so far, with ``complete`` False.

        Raises:
            DeadlineExceeded: the backtracking engine ran out of time before it found anything.

        """
        question = self.question
        answer = self.answer
        snapshot = self.snapshot
        with expiring(question.deadline), ExitStack() as stack:
            try:
                for path, why in snapshot.table.skipped.items():
                    if path not in snapshot.pending and (
                        question.keep is None or question.keep(path)
                    ):
                        answer.count_skips(why)
                if self.is_linear:
                    self.matcher = question.pattern.matcher()
                else:
                    seconds = BACKTRACKING_SECONDS
                    if question.deadline is not None:
                        seconds = max(0.1, question.deadline - time.monotonic())
                    self.matcher = stack.enter_context(
                        Backtracker(question.pattern, seconds=seconds)
                    )
                if question.output == "lines":
                    if question.ranking is None and question.limit >= LEAST_HITS:
                        self._take_whole_files()
                    self._collect_lines()
                else:
                    self._collect_files()
            except Expired:
                answer.complete = False
            except DeadlineExceeded:
                if not answer.results:
                    raise
                answer.complete = False
        return answer

    # Which files

    @LazyAttribute
    def places(self) -> Places:
        """Return the table rows of the files that the index proposes, or of all texts if it cannot narrow them."""
        self.answer.scanned, places = find_candidates(self.snapshot, self.question)
        self.answer.candidates = len(places) + len(self.snapshot.pending)
        return places

    def files(self) -> Iterator[bytes]:
        """Return the requested files that may match, in the order of the answer, from its position on."""
        snapshot = self.snapshot
        keep = self.question.keep
        position = self.question.position
        paths: Iterator[bytes] = map(
            snapshot.table.paths.__getitem__, self.places.tolist()
        )
        if snapshot.pending:
            unchanged = filterfalse(snapshot.pending.__contains__, paths)
            paths = merge_series(unchanged, sorted(snapshot.changed_paths()))
        if position is not None:
            paths = dropwhile(position.path.__gt__, paths)
        if keep is None:
            return paths
        return filter(keep, paths)

    def files_to_read(self) -> Iterator[tuple[bytes, int]]:
        """Yield the files to read, with the number of their matching lines if ripgrep counted them (else 0)."""
        snapshot = self.snapshot
        answer = self.answer
        paths = self.paths or self.files()
        if snapshot.counts is not None:
            yield from self._counted_files(snapshot.counts, paths)
            return
        unsaved = snapshot.unsaved  # ripgrep would search the version on disk
        ripgrep = snapshot.ripgrep if self.is_linear else None
        if ripgrep:
            flags = pattern_flags(ripgrep, self.question.pattern)
        else:
            flags = None
        here = FIRST_FILES
        size = FIRST_BATCH
        while ripgrep and flags is not None:
            # A page is often full before ripgrep would have started. If most files
            # match, as the number of candidates suggests, ripgrep would exclude too few
            # to be worth its time.
            before = self.matching
            taken_count = 0
            for path in islice(paths, here):
                taken_count += 1
                yield path, 0
            if 2 * (self.matching - before) > taken_count:
                here = MANY_FILES
                continue
            batch = take_batch(paths, size)
            if len(batch) < MANY_FILES:
                paths = chain(batch, paths)
                break
            # Files that ripgrep leaves out count as read: it names too many files,
            # never too few.
            found = find_matching(
                ripgrep,
                snapshot.root,
                flags,
                [path for path in batch if path not in unsaved],
            )
            if unsaved:
                matching = frozenset(found)
                found = [path for path in batch if path in matching or path in unsaved]
            answer.files_read += len(batch) - len(found)
            if snapshot.pending and len(found) < len(batch):
                answer.detail = UNCOUNTED
            yield from ((path, 0) for path in found)
            here = MANY_FILES if 2 * len(found) > len(batch) else 0
            size = min(4 * size, LARGEST_BATCH)
        yield from ((path, 0) for path in paths)

    def _counted_files(
        self, counts: Counts, paths: Iterator[bytes]
    ) -> Iterator[tuple[bytes, int]]:
        """Yield those of the files that ripgrep counted lines in, and with 0 those that are to be read."""
        question = self.question
        of_file = counts.of_file
        if not counts.of_others and question.keep is None and question.position is None:
            # No look at each file of the project: most have no such line.
            paths = iter(self._choose(path for path, count in of_file.items() if count))
        while batch := list(islice(paths, FIRST_BATCH)):
            checkpoint()
            for path in batch:
                count = of_file.get(path, counts.of_others)
                if count == 0:
                    self.answer.files_read += 1
                else:
                    yield path, max(0, count)

    def _choose(self, chosen: Iterable[bytes]) -> list[bytes]:
        """Return those of some files that ``files`` has, in its order; the others count as read."""
        pending = self.snapshot.pending
        changed = self.snapshot.changed_paths()
        paths = self._candidates_among(chosen).difference(pending).union(changed)
        # What is not indexed as it is counts as it is now, not as it was.
        outdated = self._candidates_among(pending)
        count = len(self.places) - len(outdated) + len(changed)
        self.answer.files_read += count - len(paths)
        return sorted(paths)

    def _candidates_among(self, paths: Iterable[bytes]) -> set[bytes]:
        """Return those of some files that the index proposes."""
        table = self.snapshot.table
        rows = [row for path in paths if (row := table.find(path)) is not None]
        if not len(self.places):
            return set()
        # Places ascend; a row after the last one is compared with that.
        at = np.searchsorted(self.places, rows)
        are_proposed = self.places.take(at, mode="clip") == rows
        proposed = compress(rows, are_proposed.tolist())
        return {table.paths[row] for row in proposed}

    def read(self, path: bytes) -> Document | None:
        """Return a file's text, and count the file; None: it has no text or is gone."""
        document = self.snapshot.read(path)
        if document is None:
            return None
        self.answer.files_read += 1
        if isinstance(document, Skipped):
            self.answer.count_skips(document.reason)
            return None
        return document

    # Results

    def documents(self) -> Iterator[tuple[bytes, Document]]:
        """Yield the files that have a text; once the page is full, count the hits of the rest, up to a bound."""
        for path, _ in self.files_to_read():
            document = self.read(path)
            if document is None:
                continue
            if self.is_counting:
                count = self.count_hits(path, document)
                self.counted += count
                self.matching += count > 0
                if self.counted >= COUNT_ON_HITS:
                    return
            else:
                yield path, document

    def count_hits(self, path: bytes, document: Document) -> int:  # noqa: ARG002 - by relevance it depends on the path
        """Return a file's number of hits; a match over several lines counts once."""
        if isinstance(self.matcher, Matcher) and not self.matcher.crosses_lines:
            return self.matcher.count_lines(document.data)
        return sum(1 for _ in self.matcher.lines(document.data))

    def hits(self) -> Iterator[tuple[Position, int, bytes, Document, LineMatch]]:
        """Yield the matching lines in the order of the answer, each with the start of its file or window.

        The number is ``Position.taken`` after the hit: making a position for each takes as long as finding it.
        """
        position = self.question.position
        for path, document in self.documents():
            count = position.taken if position and position.path == path else 0
            lines = iter(
                self.matcher.lines(
                    document.data, all_spans=self.question.spans is not None
                )
            )
            first = next(lines, None)
            if first is None:
                continue
            self.matching += 1
            start = Position(0, path, 0, None)
            for match in chain((first,), lines):
                if match.number > count:
                    yield start, match.number, path, document, match

    def _take_whole_files(self) -> None:
        """Take files all of whose hits have room on the page, as ripgrep prints them."""
        question = self.question
        is_plain = not (question.before or question.after or question.spans)
        if not (self.is_linear and is_plain) or question.max_chars < LEAST_CHARS:
            return
        printer = Printer.of(self.snapshot, question.pattern)
        if printer is None:
            return
        files = self._estimate_files(question.limit, self._sample_hits())
        if files < LEAST_FILES:
            return
        with Batches(printer, self.files()) as batches:
            for share in SHARES:
                batches.add(min(max(int(share * files), LEAST_FILES), PRINTED_AT_FIRST))
            self.paths = batches.find_rest()
            while (batch := batches.finish()) is not None:
                count, printed = batch
                self.answer.files_read += count - len(printed.files)
                sizes = self._measure(printed)
                try:
                    more = self._estimate_more(count, printed, sizes)
                    batches.add(min(more - len(batches), 4 * count, MOST_FILES))
                finally:
                    # Also if the deadline passes while the next files are chosen: what is
                    # printed belongs to the page.
                    at = self._take_files(printed, sizes)
                left = printed.files[at:]
                self.paths = chain(left, batches.find_rest())
                if left:
                    return

    def _estimate_more(self, count: int, printed: Printed, sizes: Numbers) -> int:
        """Return how many files fill the page beside the printed ones of a batch of ``count``."""
        hits = int(printed.hits.sum())
        hits_left = self.question.limit - self.taken - hits
        spent = int(sizes.sum())
        # By characters, too: lines may be long.
        if spent:
            hits_left = min(hits_left, hits * (self.room - spent) // spent)
        return self._estimate_files(hits_left, (hits + 1) / count)

    def _sample_hits(self) -> float:
        """Return how many hits a file has, by the first ones; at least a little."""
        hits = 1.0
        for path in islice(self.files(), SAMPLE):
            document = self.snapshot.read(path)
            checkpoint()
            if isinstance(document, Document):
                head = document.data[:SAMPLE_BYTES]
                count = self.matcher.count_lines(head)
                hits += count * len(document.data) / (len(head) or 1)
        return hits / SAMPLE

    @staticmethod
    def _estimate_files(hits: int, hits_of_file: float) -> int:
        """Return how many files have so many hits, or a few more."""
        return int(1.1 * hits / hits_of_file)

    def _take_files(self, printed: Printed, sizes: Numbers) -> int:
        """Take files until not all hits of one have room; return how many were taken.

        ``sizes``: the characters that the hits of each take on the page.
        """
        question = self.question
        position = question.position
        files = printed.files
        hits = printed.hits
        # Of the file that ended the page before, some hits are on that page.
        if position is not None and position.path in files[:1]:
            hits[0] = 0
        # Of files that turn out to have changed these sums are a guess: it may end a
        # run early, and the next one begins there.
        counts = add_up(hits)
        spent = add_up(sizes)
        at = checked = 0
        while at < len(files):
            most_hits = counts[at] + question.limit - self.taken
            most_spent = spent[at] + self.room
            fits = min(
                int(np.searchsorted(counts, most_hits, "right")),
                int(np.searchsorted(spent, most_spent, "right")),
            )
            end = fits - 1
            # ripgrep follows links, so what it has read may be another file than we would
            # open. Only files that have room are looked at: each look costs 5 µs.
            if end > checked:
                hits[checked:end] *= self.snapshot.compare_with_index(
                    files[checked:end]
                )
                checked = end
            unread = np.flatnonzero(hits[at:end] == 0)
            if len(unread):
                end = at + int(unread[0])
            if end > at:
                self.room -= int(spent[end] - spent[at])
                self.taken += int(counts[end] - counts[at])
                self._add_lines(printed, at, end)
            elif hits[at] or not self._take_file(files[at]):
                break
            else:
                end = at + 1
            at = end
        return at

    def _measure(self, printed: Printed) -> Numbers:
        """Return the characters that the hits of each file take on the page."""
        chars = printed.chars
        hits = printed.hits
        names = np.array([len(path_to_text(path)) for path in printed.files], np.int64)
        if self.question.as_text:
            return chars + hits * LINE_OVERHEAD + names + 1
        return chars + hits * (names + HIT_OVERHEAD)

    def _add_lines(self, printed: Printed, start: int, stop: int) -> None:
        """Add the hits of consecutive files to the answer as ripgrep printed them."""
        answer = self.answer
        hits = printed.encode(start, stop)
        if self.question.as_json:
            count = int(printed.hits[start:stop].sum())
            answer.add_json(hits, count)
        else:
            answer.results += orjson.loads(b"[" + hits + b"]")
        answer.files_read += stop - start
        self.matching += stop - start
        self._reach(printed.files[stop - 1], printed.find_last(stop - 1))

    def _reach(self, path: bytes, last: int) -> None:
        """Note the last file whose hits are all on the page, and the number of its last hit."""
        self.reached = Position(0, path, 0, None), last
        # Where to go on after a deadline.
        self.answer.next = Position(0, path, last, None)

    def _take_file(self, path: bytes) -> bool:
        """Read a file and take its hits, if all have room."""
        question = self.question
        answer = self.answer
        place = path_to_json(path)
        hits, last = self._read_hits(path, place)
        if not hits:
            return True
        count = len(hits)
        chars = sum(len(hit["text"]) for hit in hits)
        named = len(place["file_path"])
        if question.as_text:
            room = self.room - chars - count * LINE_OVERHEAD - named - 1
        else:
            room = self.room - chars - count * (named + HIT_OVERHEAD)
        if room < 0 or self.taken + count > question.limit:
            answer.files_read -= 1  # it will be read
            return False
        answer.results += hits
        if question.as_json and len(answer.results) > ENCODED_FROM:
            answer.encode(ENCODED_FROM)
        self.room = room
        self.taken += count
        self.matching += 1
        self._reach(path, last)
        return True

    def _read_hits(
        self, path: bytes, place: dict[str, str]
    ) -> tuple[list[dict[str, Any]], int]:
        """Return the hits of a file that are not on the page before, and the number of the last one."""
        position = self.question.position
        taken = position.taken if position and position.path == path else 0
        document = self.read(path)
        if document is None:
            return [], 0
        lines = self.matcher.lines(document.data)
        fresh = (match for match in lines if match.number > taken)
        # One more than there is room for, so that the file is seen to be too long.
        matches = [*islice(fresh, self.question.limit - self.taken + 1)]
        hits = [make_hit(place, document, match) for match in matches]
        if matches:
            last = matches[-1].number
        else:
            last = 0
        return hits, last

    def _collect_lines(self) -> None:
        """Take hits until the page is full; then continue counting if little is left."""
        question, answer = self.question, self.answer
        room, results, limit = self.room, answer.results, question.limit
        hits = self.hits()
        path_shown, place, size, is_full = b"", dict[str, str](), 0, False
        start, last = self.reached
        columns = None
        taken = self.taken
        try:
            for begin, number, path, document, match in hits:
                if path != path_shown:
                    path_shown, place = path, path_to_json(path)
                    named = len(place["file_path"])
                    room -= question.as_text * (
                        named + 1
                    )  # in text, the hits of a file are below its name
                    size = LINE_OVERHEAD if question.as_text else named + HIT_OVERHEAD
                    columns = self._count_columns(document)
                hit = make_hit(place, document, match, question.before, question.after)
                spans = put_spans(hit, columns, match, MOST_SPANS)
                room -= SPAN_OVERHEAD * spans * (not question.as_text)
                room -= len(hit["text"]) + size
                if "before" in hit or "after" in hit:
                    context = (*hit.get("before", ()), *hit.get("after", ()))
                    room -= sum(len(line) + LINE_OVERHEAD for line in context)
                # The first hit is shown however long its line is: a client would retry
                # an empty page for ever.
                is_full = taken == limit or (room < 0 and taken > 0)
                if is_full:
                    break
                results.append(hit)
                taken += 1
                if self.rank:
                    answer.ranks.append(self.rank)
                if question.as_json and len(results) > ENCODED_FROM:
                    answer.encode(ENCODED_FROM)
                start, last = begin, number
        finally:  # also after the deadline
            answer.next = start and start._replace(taken=last)
        if not is_full:
            answer.next = None
            answer.total = question.position.total if question.position else taken
            return
        # The total is that of the first page, so that all pages agree.
        if question.position:
            answer.total = question.position.total
        elif answer.candidates - answer.files_read <= question.count_on:
            self.is_counting = True
            try:
                counted = sum(
                    1 for _ in islice(hits, COUNT_ON_HITS)
                )  # in the file, or window, that filled the page
            except Expired:  # the page is complete, but its total is unknown
                counted = COUNT_ON_HITS
            uncounted = counted + self.counted
            answer.total = taken + 1 + uncounted if uncounted < COUNT_ON_HITS else None
        answer.next = answer.next and answer.next._replace(total=answer.total)

    def _count_columns(self, document: Document) -> Columns | None:
        """Return the column counter for spans that the question asks for; None: none."""
        spans = self.question.spans
        if spans is None:
            return None
        return Columns(
            Lines(document.data), "utf-8" if document.encoding == "latin-1" else spans
        )

    def _collect_files(self) -> None:
        """Collect files, or files with their number of matching lines; continue to the end for the total of lines."""
        question = self.question
        answer = self.answer
        position = self.question.position
        files = lines = 0
        room = question.max_chars
        for path, count_known in self.files_to_read():
            if position and path == position.path:  # the last one of the previous page
                continue
            count = count_known
            if count_known:
                answer.files_read += 1
            elif (document := self.read(path)) is not None:
                by_lines = question.output == "count"
                if by_lines:
                    count = self.matcher.count_lines(document.data)
                else:
                    count = self.matcher.search(document.data)
                self.matching += count > 0
            if not count:
                continue
            files = files + 1
            lines = lines + count
            if len(answer.results) < question.limit and room > 0:
                answer.results.append(
                    path_to_json(path)
                    | ({"count": count} if question.output == "count" else {})
                )
                room -= len(path) + (
                    LINE_OVERHEAD if question.as_text else FILE_OVERHEAD
                )
                last = path
            elif answer.next is None:
                answer.next = Position(0, last, 0, None)
            unread = answer.candidates - answer.files_read
            if (
                answer.next
                and question.output == "files"
                and unread > question.count_on
            ):
                return
        if position:
            answer.total = position.total
        elif question.output == "count":
            answer.total = lines
        else:
            answer.total = files
        answer.next = answer.next and answer.next._replace(total=answer.total)


Ranking = Callable[[Snapshot, Question], Answer]
"""Answers a question for lines, best first."""


def search(snapshot: Snapshot, question: Question) -> Answer:
    """Answer a question, lines in the order of its ranking or all by path; raises as ``Search.run``."""
    if question.ranking is None or question.output != "lines":
        answer = Search(snapshot, question).run()
    else:
        answer = question.ranking(snapshot, question)
    if answer.parts:
        answer.join_parts()
    return answer


def find_candidates(snapshot: Snapshot, question: Question) -> tuple[bool, Places]:
    """Return whether all files must be scanned, and the table rows of those that may match."""
    is_narrow = question.use_index and question.engine == "linear"
    reader = snapshot.reader
    pattern = question.pattern
    if reader:
        text_ids = reader.candidates(pattern.grams() if is_narrow else ANYTHING)
    else:
        text_ids = None
    if reader is None or text_ids is None:
        return True, np.flatnonzero(snapshot.table.columns[:, TEXT_ID])
    if whole := pattern.whole_words:
        having = reader.with_words(text_ids, whole.encode())
        # A non-ASCII letter that folds to ASCII does not separate words in a search,
        # but does in the stored words.
        if (
            len(having) < len(text_ids)
            and (folding := reader.candidates(Gram(FOLDS))) is not None
        ):
            having = np.union1d(having, np.intersect1d(text_ids, folding))
        text_ids = having
    return False, snapshot.table.places(text_ids)
