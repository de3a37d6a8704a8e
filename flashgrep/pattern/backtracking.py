"""`engine: "backtracking"`: look-around and back-references with Python's `re`, in a child process that can be killed.

Such patterns can take exponential time, and `re` can be neither interrupted nor limited. So each query has its own
worker, and a time limit for all its files. The syntax is that of `re` for text, not ripgrep's. The worker answers
each message (``base.frames``) with one. It receives the pattern first, then files. Run as a program, this module is the worker.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import accumulate, islice
from typing import Any, BinaryIO, Self

from flashgrep.base.child_process import ChildEnded, ChildPipes, end_child, read_message
from flashgrep.base.errors import BadPattern, DeadlineExceeded
from flashgrep.base.frames import frame
from flashgrep.pattern import LineMatch, Pattern
from flashgrep.pattern.matcher import NONE, Span, find_blocks, spans_between

_NICE = 10
"""Niceness of the worker: it may use the processor for seconds, and all other work takes precedence."""
_ESCAPE = re.compile(r"\\.")  # The letter of an escape does not count for smart case.


class Backtracker:
    """A matcher in a child process; a context manager, for one thread at a time.

    Raises:
        BadPattern: from the constructor, if `re` rejects the pattern.
        DeadlineExceeded: from any call, `seconds` after the start; the worker has been killed then.
    """

    def __init__(self, pattern: Pattern, *, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._seconds = seconds
        # The alarm is a second or two later than our own limit: it matters only if we
        # are not there to kill the worker.
        command = [
            sys.executable,
            "-P",
            "-m",
            "flashgrep.pattern.backtracking",
            str(int(seconds) + 2),
        ]
        self._worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._pipes = ChildPipes(self._worker)
        try:
            refusal = json.loads(self._ask(json.dumps(asdict(pattern)).encode()))
        except BaseException:
            self.close()
            raise
        if refusal:
            self.close()
            raise BadPattern(
                f"{refusal['message']} (backtracking engine)",
                at=refusal["at"],
                construct="",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def search(self, data: bytes) -> bool:
        """Return whether any line matches."""
        return bool(self.lines(data, limit=1))

    def lines(
        self, data: bytes, *, all_spans: bool = False, limit: int | None = None
    ) -> list[LineMatch]:
        """Return the matching lines, as `Matcher.lines` yields them."""
        options = json.dumps({"all_spans": all_spans, "limit": limit}).encode()
        answer: list[Any] = json.loads(self._ask(options + b"\n" + data))
        return [
            LineMatch(
                number, last, start, end, tuple((first, stop) for first, stop in spans)
            )
            for number, last, start, end, spans in answer
        ]

    def count_lines(self, data: bytes) -> int:
        """Return how many lines match."""
        return len(self.lines(data))

    def close(self) -> None:
        """Kill the worker."""
        end_child(self._worker)

    def _ask(self, message: bytes) -> bytes:
        try:
            self._pipes.write(frame(message), self._ends)
            return self._pipes.read_message(self._ends)
        except ChildEnded:  # ended by its alarm, or the time limit has passed
            self.close()
            problem = (
                f"the backtracking engine did not finish within {self._seconds:g} s"
            )
            raise DeadlineExceeded(problem) from None


def _compile(options: Mapping[str, Any]) -> re.Pattern[str]:
    texts = options["texts"]
    if options["mode"] == "literal":
        texts = [re.escape(text) for text in texts]
    # A single text is left unchanged, so that the position of an error refers to it.
    if len(texts) == 1:
        body = texts[0]
    else:
        body = "|".join(f"(?:{text})" for text in texts)
    flags = re.MULTILINE
    if options["dotall"]:
        flags |= re.DOTALL
    has_capital = any(map(str.isupper, _ESCAPE.sub("", body)))
    ignores_case = {"smart": not has_capital, "insensitive": True}
    if ignores_case.get(options["case"], False):
        flags |= re.IGNORECASE
    # First without the additions of -x and -w, for the position of an error.
    pattern = re.compile(body, flags)
    if options["line"]:
        return re.compile(rf"^(?:{body})$", flags)
    if options["word"]:
        return re.compile(rf"(?<!\w)(?:{body})(?!\w)", flags)
    return pattern


def main() -> None:
    """Serve until standard input ends; `argv[1]` is the number of seconds until an alarm ends the process."""
    if hasattr(signal, "alarm"):
        signal.alarm(
            int(sys.argv[1])
        )  # the parent may be gone, and `re` cannot be interrupted
    os.nice(_NICE)
    source = sys.stdin.buffer
    sink = sys.stdout.buffer
    options = json.loads(read_message(source) or b"{}")
    try:
        pattern = _compile(options)
    except re.error as error:
        _write_message(sink, {"message": str(error), "at": error.pos or 0})
        return
    _write_message(sink, None)
    while message := read_message(source):
        header, _, data = message.partition(b"\n")
        request = json.loads(header)
        if options["multiline"]:
            blocks = find_blocks(_Text(pattern, data), data)
        else:
            blocks = _find_lines(pattern, data)
        blocks_found = islice(blocks, request["limit"])
        _write_message(
            sink,
            [
                line if request["all_spans"] else line._replace(spans=line.spans[:1])
                for line in blocks_found
            ],
        )


def _find_lines(pattern: re.Pattern[str], data: bytes) -> Iterator[LineMatch]:
    # Split at "\n" only, as ripgrep does: str.splitlines would also split at form feeds
    # and U+2028.
    start = 0
    for number, line in enumerate(
        data.removesuffix(b"\n").split(b"\n") if data else [], 1
    ):
        found_spans = spans_between(_Text(pattern, line), line, 0, len(line))
        spans = tuple((start + first, start + last) for first, last in found_spans)
        if spans:
            yield LineMatch(number, number, start, start + len(line), spans)
        start += len(line) + 1


class _Text:
    """Bytes decoded for `re`, with a map back to byte offsets; bytes that are not UTF-8 become surrogates."""

    def __init__(self, pattern: re.Pattern[str], data: bytes) -> None:
        self._search = pattern.search
        self._text = data.decode(errors="surrogateescape")
        # `re` counts characters, hits count bytes. For ASCII the two are equal, and no
        # table is needed.
        sizes = (len(char.encode(errors="surrogateescape")) for char in self._text)
        self._offsets = (
            range(len(data) + 1)
            if data.isascii()
            else list(accumulate(sizes, initial=0))
        )

    def find(self, _data: bytes, pos: int, end: int) -> Span:
        """Return the span of the first match between two offsets of the data given to the constructor."""
        first = bisect_left(self._offsets, pos)
        last = bisect_left(self._offsets, end)
        match = self._search(self._text, first, last)
        if match:
            return (self._offsets[match.start()], self._offsets[match.end()])
        return NONE


def _write_message(sink: BinaryIO, answer: object) -> None:
    sink.write(frame(json.dumps(answer).encode()))
    sink.flush()


if __name__ == "__main__":
    main()
