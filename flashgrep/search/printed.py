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
from flashgrep.search.ripgrep import (
    Ripgrep,
    find_unread,
    pattern_flags,
    run,
)
from flashgrep.search.snapshot import Snapshot

LEAST_HITS = 2_000
"""Of a page for which ripgrep prints: it takes 15 ms to start, in which 1,000 hits are found here."""
LEAST_CHARS = 40 * LEAST_HITS
"""Of such a page: on one of fewer so many hits have no room."""
FILE_HITS = 4
"""A guess at the hits of a file, for the first files."""
LEAST_FILES, MOST_FILES = 200, 16_000
"""Files given to ripgrep at once."""
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


@dataclass(frozen=True)
class Printed:
    """The matching lines of one file: ``number:column:text``."""

    lines: bytes

    @cached_property
    def fields(self) -> list[list[bytes]]:
        """Return the number, column and text of each line."""
        return [line.split(b":", 2) for line in self.lines.split(b"\n")]

    @property
    def last(self) -> int:
        """The number of the last line."""
        return int(self.fields[-1][0])

    def measure(self) -> int:
        """Return the number of characters in the lines."""
        return sum(len(text) for _, _, text in self.fields)

    def hits(self, place: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the hits, as ``hits.make_hit`` does; ``place``: the file's path, as shown."""
        return [
            {
                **place,
                "start_line": int(number),
                "end_line": int(number),
                "column": int(column),
                "text": text.decode("ascii"),
            }
            for number, column, text in self.fields
        ]

    def encode(self, place: Mapping[str, str]) -> bytes:
        """Return the hits as JSON, without the brackets of a list."""
        start = orjson.dumps(place)[:-1] + b',"start_line":'
        escaped = self.lines.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        fields = (
            line.split(b":", 2) for line in escaped.replace(b"\t", b"\\t").split(b"\n")
        )
        return b",".join(
            b'%b%b,"end_line":%b,"column":%b,"text":"%b"}'
            % (
                start,
                number,
                number,
                column,
                text,
            )
            for number, column, text in fields
        )


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

    def print(self, paths: Sequence[bytes]) -> dict[bytes, Printed | None]:
        """Return the files that may match, with their lines; None: it has to be read.

        Raises:
            Abandoned, Expired: as ``base.checkpoint.checkpoint``.

        """
        sure = [
            path for path in paths if path not in self._doubtful and b"\n" not in path
        ]
        printed = self._run(self._snapshot.root, sure)
        if printed is None:
            return dict.fromkeys(paths)
        checkpoint()
        return {
            path: printed.get(path)
            for path in paths
            if path in printed or path in self._doubtful or b"\n" in path
        }

    def _run(
        self, root: RootFolder, paths: Sequence[bytes]
    ) -> dict[bytes, Printed | None] | None:
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
        unread = find_unread(output, frozenset(paths))
        if unread is None:
            return None
        printed: dict[bytes, Printed | None] = dict.fromkeys(unread)
        printed.update(self._read(output.printed))
        if printed.keys() <= {*paths}:
            return printed
        return None

    def _read(self, output: bytes) -> Iterator[tuple[bytes, Printed | None]]:
        """Yield the files in an output, each as a name, a NUL byte, its lines and an empty line between two files."""
        name, *blocks = output.split(b"\0")
        for block in blocks:
            checkpoint()
            lines, _, following = block.rpartition(b"\n")
            path = name.removeprefix(b"./")
            name = following
            ended = lines.rstrip(b"\n") + b"\n"
            yield path, self._judge(path, ended.replace(b"\r\n", b"\n")[:-1])

    def _judge(self, path: bytes, lines: bytes) -> Printed | None:
        """Return the lines of a file, if they are what a search here finds."""
        is_plain = lines.isascii() and len(lines.translate(None, _CONTROLS)) == len(
            lines
        )
        is_short = len(lines) <= LONG_LINE or all(
            len(line) <= LONG_LINE for line in lines.split(b"\n")
        )
        # Of a binary file it says that it matches.
        is_known = is_plain and is_short and _LINES.fullmatch(lines)
        # It follows links, so what it has read may be another file than we would open.
        if is_known and self._snapshot.is_as_indexed(path):
            return Printed(lines)
        return None
