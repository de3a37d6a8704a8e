"""ripgrep's JSON Lines: begin, match, context and end of each file with a match, and a summary."""

import base64
import json
import time
from typing import Any

from flashgrep.cli.rg.haystack import Haystack
from flashgrep.cli.rg.output import Output, Stats
from flashgrep.cli.rg.searcher import Block
from flashgrep.pattern import Matcher

_SECOND = 1_000_000_000


class JsonSink:
    """Prints messages, one a line."""

    def __init__(self, out: Output, matcher: Matcher, replace: bytes | None, *, line_number: bool = True) -> None:
        self.stats = Stats()
        self.match_count = 0
        self.counts_lines = 0
        self.needs_spans = True
        self._out = out
        self._matcher = matcher
        self._replace = replace
        self._line_number = line_number
        self._data = b""
        self._path: dict[str, str] = {}
        self._begun = False

    def count(self, lines: int) -> None:
        """Take a number of lines: never asked of a printer of lines."""

    @property
    def has_match(self) -> bool:
        """Whether the last file has a match."""
        return self.match_count > 0

    def begin(self, haystack: Haystack, path: bytes) -> None:
        """Start on a file."""
        self._out.restart()
        self._data = haystack.data
        self._path = _text(path)
        self._begun = False
        self.match_count = 0
        self.stats = Stats()

    def matched(self, block: Block) -> bool:
        """Print a match."""
        self._begin()
        self.match_count += 1
        self.stats.matches += len(block.spans)
        self.stats.matched_lines += block.end_number - block.number + 1
        self._lines("match", block.start, block.stop, block.number, [self._part(block, span) for span in block.spans])
        return True

    def context(self, start: int, stop: int, number: int) -> bool:
        """Print a line of context."""
        self._begin()
        self._lines("context", start, stop, number, [])
        return True

    def gap(self) -> None:
        """Leave a gap unsaid: the line numbers say it."""

    def binary(self, offset: int) -> None:
        """Wait for the end of the file, which says it."""

    def finish(self, searched: int, nul: int | None) -> None:
        """Close the file's figures, and print its end if it has a match."""
        self.stats.end(searched=searched, printed=self._out.count, found=self.has_match)
        if not self._begun:
            return
        self._message({"type": "end", "data": {"path": self._path, "binary_offset": nul, "stats": _stats(self.stats)}})

    def _begin(self) -> None:
        if not self._begun:
            self._message({"type": "begin", "data": {"path": self._path}})
            self._begun = True

    def _part(self, block: Block, span: tuple[int, int]) -> dict[str, Any]:
        low, high = block.start + span[0], block.start + span[1]
        found: dict[str, Any] = {"match": _text(self._data[low : min(high, block.stop)])}
        if self._replace is not None:
            found["replacement"] = _text(self._matcher.expand(self._data, (low, high), self._replace))
        return found | {"start": span[0], "end": span[1]}

    def _lines(self, kind: str, start: int, stop: int, number: int, parts: list[dict[str, Any]]) -> None:
        shown = number if self._line_number else None
        lines = {"lines": _text(self._data[start:stop]), "line_number": shown, "absolute_offset": start}
        self._message({"type": kind, "data": {"path": self._path, **lines, "submatches": parts}})

    def _message(self, message: dict[str, Any]) -> None:
        self._out.write(_line(message))


def summary(total: Stats) -> bytes:
    """Return the message that ends all."""
    whole = _duration(time.perf_counter_ns() - total.began)
    data = {"elapsed_total": _sorted(whole), "stats": _sorted(_stats(total))}
    return _line({"data": data, "type": "summary"})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _sorted(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _sorted(item) if isinstance(item, dict) else item for key, item in sorted(value.items())}


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode("ascii")}


def _duration(nanoseconds: int) -> dict[str, Any]:
    seconds, rest = divmod(nanoseconds, _SECOND)
    return {"secs": seconds, "nanos": rest, "human": f"{nanoseconds / _SECOND:.6f}s"}


def _stats(stats: Stats) -> dict[str, Any]:
    return {
        "elapsed": _duration(stats.elapsed),
        "searches": stats.searches,
        "searches_with_match": stats.searches_with_match,
        "bytes_searched": stats.bytes_searched,
        "bytes_printed": stats.bytes_printed,
        "matched_lines": stats.matched_lines,
        "matches": stats.matches,
    }
