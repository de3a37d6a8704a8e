"""Hits as ripgrep prints them: what a page of thousands needs, at a tenth of the time of matching each line here.

Only what is the same for both is taken: files that the index knows to be without a NUL byte and that are still as they
were indexed after ripgrep has read them, and lines of ASCII without control characters. All others are read here.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Self

import numpy as np
import orjson

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import path_to_json
from flashgrep.pattern import Pattern
from flashgrep.search.hits import LONG_LINE
from flashgrep.search.ripgrep import (
    MOST_ERRORS,
    Ripgrep,
    Running,
    find_unread,
    pattern_flags,
    take_batch,
)
from flashgrep.search.snapshot import Snapshot

LEAST_HITS = 2_000
"""Of a page for which ripgrep prints: it takes 15 ms to start, in which 1,000 hits are found here."""
LEAST_CHARS = 40 * LEAST_HITS
"""Of such a page: on one of fewer so many hits have no room."""
SAMPLE, SAMPLE_BYTES = 16, 1 << 14
"""Files, and the start of each, in which hits are counted first, in 1 ms: they say how many files fill a page."""
LEAST_FILES, FIRST_FILES, MOST_FILES = 200, 1_500, 16_000
"""Files given to ripgrep at once: at least, at first and later. A page that fewer fill is found here: of 10,000 hits in
one file ripgrep printed all of 1,000 files first, for 75 ms of processor time instead of 30."""
SHARES = (0.4, 0.6)
"""Of a page's files, those of two batches that are printed at once, with half of the threads each: on two processors
they take a sixth less of their time than one with two threads, and the hits of the first, which ends sooner, are taken
while the second one runs."""
MOST_PRINTED = 16 << 20
"""Bytes; with more, the files are read here."""
_LOOK = (
    b"--heading",
    b"--with-filename",
    b"--line-number",
    b"--column",
    b"--no-ignore",
    b"--field-match-separator=\\x01",
)
SEPARATOR = b"\x01"
"""Between the fields of a line."""
_FIELDS = ("number", "column", "text")
_ESCAPES = (
    (b"\\", b"\\\\"),
    (b'"', b'\\"'),
    (b"\t", b"\\t"),
)
"""What stands otherwise in a string of JSON; a backslash first."""
_PLAIN, _END, _BETWEEN, _OTHER = range(4)
_SHOWN = frozenset(b"\t" + bytes(range(ord(" "), ord("\x7f") + 1)))
_MARKS = {ord("\n"): _END, ord(SEPARATOR): _BETWEEN}
_KINDS = bytes(
    _PLAIN if byte in _SHOWN else _MARKS.get(byte, _OTHER) for byte in range(256)
)
"""Of bytes: what is no ASCII, or a control character, has other columns or another form in JSON."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Printed:
    """The files of a batch that match or have to be read here, in their order, and what ripgrep printed of them."""

    files: Sequence[bytes]
    hits: Numbers
    """Of each file; 0: it has to be read."""
    chars: Numbers
    """In the texts of a file's lines."""
    _lines: bytes
    """Of all files, each as number, column and text with ``SEPARATOR`` between, and a line feed."""
    _bounds: Numbers
    """Where the lines of each file begin, and where the last ones end."""

    @classmethod
    def of(cls, files: Sequence[bytes], blocks: Mapping[bytes, bytes]) -> "Printed":
        """Return what was printed; ``blocks``: a file's lines, without the last line feed."""
        texts = [blocks.get(path, b"") for path in files]
        lines = b"\n".join(texts) + b"\n"
        bounds = add_up(np.array([len(text) + 1 for text in texts], np.int64))
        kinds = np.frombuffer(lines.translate(_KINDS), np.uint8)
        marks = np.flatnonzero(kinds)
        kinds = kinds[marks]
        # A line is fine if what is marked of it is two separators and its end. Of a binary
        # file ripgrep says in a line without separators that it matches.
        at_ends = np.flatnonzero(kinds == _END)
        ends = marks[at_ends]
        is_fine = np.diff(at_ends, prepend=-1) == len(_FIELDS)
        for back in 1, 2:
            is_fine &= kinds.take(at_ends - back, mode="clip") == _BETWEEN
        is_fine &= np.diff(ends, prepend=-1) <= LONG_LINE + 1
        lengths = ends - marks[at_ends - 1] - 1
        # Each file has one line at least.
        first = np.searchsorted(ends, bounds)
        is_known = np.logical_and.reduceat(is_fine, first[:-1])
        return cls(
            files,
            hits=np.where(is_known, np.diff(first), 0),
            chars=np.where(is_known, np.add.reduceat(lengths, first[:-1]), 0),
            _lines=lines,
            _bounds=bounds,
        )

    def encode(self, start: int, stop: int) -> bytes:
        """Return the hits of consecutive files as JSON, without the brackets of a list; none has to be read."""
        fields = self._split(start, stop)
        heads = [
            b'"},' + orjson.dumps(path_to_json(path))[:-1] + b',"start_line":'
            for path in self.files[start:stop]
        ]
        # Joined at once: formatting each hit takes twice as long.
        numbers = fields[0::3]
        hits = zip(
            chain.from_iterable(map(repeat, heads, self.hits[start:stop].tolist())),
            numbers,
            repeat(b',"end_line":'),
            numbers,
            repeat(b',"column":'),
            fields[1::3],
            repeat(b',"text":"'),
            fields[2::3],
            strict=False,
        )
        return b"".join(chain.from_iterable(hits)).removeprefix(b'"},') + b'"}'

    def find_last(self, at: int) -> int:
        """Return the number of the last line of a file that need not be read."""
        return int(self._split(at, at + 1)[-len(_FIELDS)])

    def _split(self, start: int, stop: int) -> list[bytes]:
        """Return the number, column and text of each line of consecutive files; texts as in JSON."""
        lines = self._lines[self._bounds[start] : self._bounds[stop] - 1]
        for mark, escaped in _ESCAPES:
            lines = lines.replace(mark, escaped)
        return lines.replace(b"\n", SEPARATOR).split(SEPARATOR)


def add_up(numbers: Numbers) -> Numbers:
    """Return the sum of all numbers before each one, and of all."""
    return np.concatenate(([0], np.cumsum(numbers)))


class Printer:
    """Has ripgrep print the lines of a project's files that match."""

    def __init__(
        self, ripgrep: Ripgrep, flags: Sequence[bytes], snapshot: Snapshot
    ) -> None:
        self._ripgrep = ripgrep
        self._flags = flags
        self._snapshot = snapshot
        self._doubtful = {
            *snapshot.pending,
            *snapshot.unsaved,
        }
        if snapshot.reader is not None:
            self._doubtful.update(snapshot.reader.find_cut())

    @classmethod
    def of(cls, snapshot: Snapshot, pattern: Pattern) -> "Printer | None":
        """Return the printer for a pattern; None: ripgrep may find something else."""
        ripgrep = snapshot.ripgrep
        if ripgrep is None or snapshot.own_index is None or snapshot.counts is not None:
            return None
        if pattern.multiline or pattern.crlf or pattern.matches_empty():
            return None
        flags = pattern_flags(ripgrep, pattern)
        if flags is None or not ripgrep.bundled:
            return None
        return cls(
            ripgrep,
            flags,
            snapshot,
        )

    @property
    def is_shared(self) -> bool:
        """Whether other clients wait beside."""
        return self._ripgrep.is_shared

    def choose(self, paths: Sequence[bytes]) -> list[bytes]:
        """Return the files whose lines ripgrep prints as they are found here."""
        plain = (path for path in paths if b"\n" not in path)
        return [path for path in plain if path not in self._doubtful]

    def start(self, paths: Sequence[bytes], *, waits: bool) -> Running | None:
        """Start ripgrep on files; None as ``Running.start``."""
        names = [b"./" + path for path in paths]
        arguments = [*self._flags, *_LOOK, b"--", *names]
        root = self._snapshot.root
        # Beside another one, each has half of the processors.
        ripgrep = self._ripgrep._replace(is_shared=True)
        return Running.start(ripgrep, root, arguments, waits=waits)


class Printing:
    """A batch of files whose lines ripgrep prints."""

    def __init__(self, printer: Printer, paths: Sequence[bytes]) -> None:
        self.paths = paths
        self._sure = printer.choose(paths)
        self._printer = printer
        self._running: Running | None = None

    def start(self, *, waits: bool = False) -> None:
        """Start ripgrep, unless it runs; it ``waits`` for a slot if there is none, or else ``finish`` does.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        if self._running is None and self._sure:
            self._running = self._printer.start(self._sure, waits=waits)

    def finish(self) -> Printed:
        """Wait for ripgrep, and return what it printed of those files that may match.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        self.start(waits=True)
        blocks = self._collect()
        checkpoint()
        if blocks is None:
            return Printed.of(self.paths, {})
        absent = {*self._sure}.difference(blocks)
        files = [path for path in self.paths if path not in absent]
        return Printed.of(files, blocks)

    def close(self) -> None:
        """End ripgrep, if it runs."""
        if self._running is not None:
            self._running.close()

    def _collect(self) -> dict[bytes, bytes] | None:
        """Return the lines of each file that has some; of a file that ripgrep cannot read, nothing."""
        if not self._sure:
            return {}
        if self._running is None:
            return None
        with closing(self._running):
            output = self._running.collect(MOST_PRINTED, MOST_ERRORS)
        if output is None:
            return None
        asked = frozenset(self._sure)
        unread = find_unread(output, asked)
        if unread is None:
            return None
        blocks = dict.fromkeys(unread, b"")
        blocks.update(_read(output.printed))
        if asked.issuperset(blocks):
            return blocks
        return None


class Batches:
    """The files of a page that ripgrep prints, in batches: one runs while the hits of another are taken."""

    def __init__(self, printer: Printer, paths: Iterator[bytes]) -> None:
        self._printer = printer
        self._paths = paths
        self._begun = deque[Printing]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for printing in self._begun:
            printing.close()

    def __len__(self) -> int:
        """Return how many files are in batches that are not finished."""
        return sum(len(printing.paths) for printing in self._begun)

    def add(self, size: int) -> None:
        """Begin a batch of the next ``size`` files; if these are too few, or no more are left, they are read here.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        if size < LEAST_FILES:
            return
        batch = take_batch(self._paths, size)
        if len(batch) < LEAST_FILES:
            self._paths = chain(batch, self._paths)
            return
        printing = Printing(self._printer, batch)
        # Two would take all processors from other clients.
        if not (self._begun and self._printer.is_shared):
            printing.start()
        self._begun.append(printing)

    def finish(self) -> tuple[int, Printed] | None:
        """Wait for the first batch, and return how many files it has and what was printed; None: none is left.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        if not self._begun:
            return None
        # It is closed with the others if the wait ends early.
        printing = self._begun[0]
        printed = printing.finish()
        self._begun.popleft()
        if self._begun:
            self._begun[0].start()
        return len(printing.paths), printed

    def find_rest(self) -> Iterator[bytes]:
        """Return the files that are in no finished batch."""
        begun = chain.from_iterable([printing.paths for printing in self._begun])
        return chain(begun, self._paths)


def _read(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the files in an output, each as a name, a NUL byte, its lines and an empty line between two files."""
    text = output.replace(b"\r\n", b"\n").removesuffix(b"\n")
    if not text:
        return
    for block in text.removeprefix(b"./").split(b"\n\n./"):
        name, _, lines = block.partition(b"\0")
        yield name, lines
