"""ripgrep's summaries: counts, names of files, or nothing but whether there is a match."""

import sys
from dataclasses import dataclass
from typing import Literal

from flashgrep.cli.rg.haystack import Haystack
from flashgrep.cli.rg.output import PATH, Output, Stats
from flashgrep.cli.rg.searcher import Block
from flashgrep.pattern import Matcher

Kind = Literal["count", "count_matches", "files_with_matches", "files_without_match"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What is said of each file."""

    kind: Kind
    quiet: bool = False
    path: bool = True
    null: bool = False
    include_zero: bool = False
    line_end: bytes = b"\n"
    stats: bool = False


class SummarySink:
    """Says one thing of each file."""

    def __init__(self, out: Output, how: Summary, matcher: Matcher) -> None:
        self.stats = Stats()
        self._counts = how.stats or how.kind == "count_matches"
        self._crosses = matcher.crosses_lines
        self.needs_spans = self._counts or self._crosses
        one = how.quiet or how.kind.startswith("files")
        self.counts_lines = 0 if self.needs_spans else 1 if one else sys.maxsize
        self._out = out
        self._how = how
        self._count = 0
        self._path = b""
        self._quits = True

    @property
    def has_match(self) -> bool:
        """Whether the last file has what was asked for."""
        return (self._count == 0) == (self._how.kind == "files_without_match")

    def begin(self, haystack: Haystack, path: bytes) -> None:
        """Start on a file."""
        self._out.restart()
        self._path = path
        self._quits = haystack.on_nul == "quit"
        self._count = 0
        self.stats = Stats()

    def matched(self, block: Block) -> bool:
        """Count a match; the first is enough where only names are wanted."""
        matches = max(1, len(block.spans)) if self.needs_spans else 1
        self._count += matches if self._crosses else 1
        if not self._counts:
            return not self._how.quiet and self._how.kind != "files_with_matches"
        self.stats.matches += matches
        self.stats.matched_lines += block.end_number - block.number + 1
        return True

    def count(self, lines: int) -> None:
        """Take the number of matching lines of the file."""
        self._count = lines

    def context(self, start: int, stop: int, number: int) -> bool:
        """Leave a line of context unsaid."""
        del start, stop, number
        return True

    def gap(self) -> None:
        """Leave a gap unsaid."""

    def binary(self, offset: int) -> None:
        """Wait for the end of the file, which says it again."""

    def finish(self, searched: int, nul: int | None) -> None:
        """Say what there is to say; nothing of a file whose search a NUL byte ended."""
        self.stats.end(searched=searched, printed=self._out.count, found=self._count > 0)
        if nul is not None and self._quits:
            self._count = 0
            return
        how = self._how
        if how.quiet:
            return
        if how.kind in {"count", "count_matches"}:
            if self._count or how.include_zero:
                self._name(b":")
                count = self._count if how.kind == "count" else self.stats.matches
                self._out.write(b"%d" % count + how.line_end)
        elif self.has_match:
            self._name(how.line_end)

    def _name(self, separator: bytes) -> None:
        if self._how.path or self._how.kind.startswith("files"):
            self._out.paint(PATH, self._path)
            self._out.write(b"\0" if self._how.null else separator)
