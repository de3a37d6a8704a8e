"""Hits as ripgrep prints them: what a page of thousands needs, at a tenth of the time of matching each line here.

Only what is the same for both is taken: files that the index knows to be without a NUL byte and that are still as they
were indexed after ripgrep has read them, and lines of ASCII without control characters. All others are read here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from flashgrep.base.checkpoint import checkpoint
from flashgrep.files.openat import RootFolder
from flashgrep.pattern import Pattern
from flashgrep.search.hits import LONG_LINE
from flashgrep.search.ripgrep import Ripgrep, find_unread, pattern_flags, run
from flashgrep.search.snapshot import Snapshot

LEAST_HITS = 2_000
"""Of a page for which ripgrep prints: it takes 15 ms to start, in which 1,000 hits are found here."""
LEAST_CHARS = 40 * LEAST_HITS
"""Of such a page: on one of fewer so many hits have no room."""
SAMPLE, SAMPLE_BYTES = 16, 1 << 14
"""Files, and the start of each, in which hits are counted first, in 1 ms: they say how many files fill a page."""
LEAST_FILES, MOST_FILES = 200, 16_000
"""Files given to ripgrep at once. A page that fewer fill is found here: of 10,000 hits in one file ripgrep printed all
of 1,000 files first, for 75 ms of processor time instead of 30."""
MOST_PRINTED = 16 << 20
"""Bytes; with more, the files are read here."""
_LOOK = (
    b"--heading",
    b"--with-filename",
    b"--line-number",
    b"--column",
    b"--no-ignore",
)
_LINES = re.compile(rb"\d+:\d+:[^\n]*(?:\n\d+:\d+:[^\n]*)*")
_CONTROLS = bytes([*range(9), *range(11, 32)])
_ESCAPED = re.compile(rb'[\\"\t]')


@dataclass(frozen=True)
class Printed:
    """The matching lines of one file, each as ``number:column:text``; ASCII."""

    lines: bytes

    @cached_property
    def fields(self) -> list[list[str]]:
        """Return the number, column and text of each line."""
        return [line.split(":", 2) for line in self.lines.decode("ascii").split("\n")]

    @property
    def last(self) -> int:
        """The number of the last line."""
        return int(self.fields[-1][0])

    def measure(self) -> int:
        """Return the number of characters in the texts of the lines."""
        return sum(len(text) for _, _, text in self.fields)

    def hits(self, place: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the hits, as ``hits.make_hit`` does; ``place``: the file's path, as shown."""
        return [
            {
                **place,
                "start_line": int(number),
                "end_line": int(number),
                "column": int(column),
                "text": text,
            }
            for number, column, text in self.fields
        ]

    def encode(self, place: Mapping[str, str]) -> bytes:
        """Return the hits as JSON, without the brackets of a list."""
        place_json = orjson.dumps(place).decode()
        start = place_json[:-1] + ',"start_line":'
        fields = self.fields
        if _ESCAPED.search(self.lines):
            escaped = self.lines.replace(b"\\", b"\\\\")
            escaped = escaped.replace(b'"', b'\\"')
            escaped = escaped.replace(b"\t", b"\\t")
            fields = Printed(escaped).fields
        hits = [
            f'{start}{number},"end_line":{number},"column":{column},"text":"{text}"}}'
            for number, column, text in fields
        ]
        return ",".join(hits).encode()


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

    def print(self, paths: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """Return the files that may match, with what ripgrep prints of each; None: the file has to be read.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        plain = (path for path in paths if b"\n" not in path)
        sure = [path for path in plain if path not in self._doubtful]
        printed = self._run(self._snapshot.root, sure)
        if printed is None:
            return dict.fromkeys(paths)
        checkpoint()
        absent = {*sure}.difference(printed)
        return {path: printed.get(path) for path in paths if path not in absent}

    def _run(
        self, root: RootFolder, paths: Sequence[bytes]
    ) -> dict[bytes, bytes | None] | None:
        if not paths:
            return {}
        names = [b"./" + path for path in paths]
        arguments = [
            *self._flags,
            *_LOOK,
            b"--",
            *names,
        ]
        output = run(
            self._ripgrep,
            root,
            arguments,
            most_printed=MOST_PRINTED,
        )
        if output is None:
            return None
        asked = frozenset(paths)
        unread = find_unread(output, asked)
        if unread is None:
            return None
        printed: dict[bytes, bytes | None] = dict.fromkeys(unread)
        printed.update(_read(output.printed))
        if asked.issuperset(printed):
            return printed
        return None

    def judge(self, path: bytes, lines: bytes) -> Printed | None:
        """Return the lines printed of a file, if they are what a search here finds."""
        is_plain = lines.isascii() and len(lines.translate(None, _CONTROLS)) == len(
            lines
        )
        rows = lines.split(b"\n")
        longest = max(map(len, rows))
        is_short = longest <= LONG_LINE
        # Of a binary file it says that it matches.
        is_known = is_plain and is_short and _LINES.fullmatch(lines)
        # It follows links, so what it has read may be another file than we would open.
        if is_known and self._snapshot.is_as_indexed(path):
            return Printed(lines)
        return None


def _read(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the files in an output, each as a name, a NUL byte, its lines and an empty line between two files."""
    name, *blocks = output.split(b"\0")
    for block in blocks:
        checkpoint()
        lines, _, following = block.rpartition(b"\n")
        path = name.removeprefix(b"./")
        name = following
        ended = lines.rstrip(b"\n") + b"\n"
        yield path, ended.replace(b"\r\n", b"\n")[:-1]
