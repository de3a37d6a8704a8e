"""The child process of `backtracking`: reads a pattern, then files, and answers each with its matching lines."""

import json
import os
import re
import signal
import sys
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any, BinaryIO

from flashgrep.pattern.finders import NONE, Span
from flashgrep.pattern.matcher import LineMatch, apart, blocks_of, spans_between

_NICE = 10
"""It may run away for seconds: whatever else is to do goes first."""
_FALSE_UPPER = re.compile(r"\\.")  # An escape's letter says nothing about the case that is meant.


def main() -> None:
    """Serve until standard input ends; `argv[1]` is the number of seconds after which the system ends us."""
    if hasattr(signal, "alarm"):
        signal.alarm(int(sys.argv[1]))  # our parent may be gone while `re` runs away
    os.nice(_NICE)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    options = json.loads(_received(source))
    try:
        pattern = _compiled(options)
    except re.error as error:
        _send(sink, {"message": str(error), "at": error.pos or 0})
        return
    _send(sink, None)
    while message := _received(source):
        asked, _, data = message.partition(b"\n")
        _send(sink, _lines(pattern, data, whole=options["multiline"], **json.loads(asked)))


def _compiled(options: dict[str, Any]) -> re.Pattern[str]:
    escape = options["mode"] == "literal"
    texts = [re.escape(text) if escape else text for text in options["texts"]]
    body = texts[0] if len(texts) == 1 else "|".join(f"(?:{text})" for text in texts)
    flags = re.MULTILINE | (re.DOTALL if options["dotall"] else 0)
    smart = options["case"] == "smart" and not any(map(str.isupper, _FALSE_UPPER.sub("", body)))
    if smart or options["case"] == "insensitive":
        flags |= re.IGNORECASE
    re.compile(body, flags)  # so that an error's position is one in the text as given
    if options["line"]:
        return re.compile(rf"^(?:{body})$", flags)
    return re.compile(rf"(?<!\w)(?:{body})(?!\w)" if options["word"] else body, flags)


def _lines(
    pattern: re.Pattern[str], data: bytes, *, whole: bool, all_spans: bool, limit: int | None
) -> list[LineMatch]:
    found = islice(_blocks(pattern, data) if whole else _single_lines(pattern, data), limit)
    return [line if all_spans else line._replace(spans=line.spans[:1]) for line in found]


def _single_lines(pattern: re.Pattern[str], data: bytes) -> Iterator[LineMatch]:
    start = 0
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n") if data else [], 1):
        spans = spans_between(_Text(pattern, line), line, 0, len(line))
        shifted = tuple((start + first, start + last) for first, last in spans)
        if shifted:
            yield LineMatch(number, number, start, start + len(line), shifted)
        start += len(line) + 1


def _blocks(pattern: re.Pattern[str], data: bytes) -> Iterator[LineMatch]:
    number, counted = 1, 0
    for start, end, spans in blocks_of(_Text(pattern, data), data):
        stop = end - 1 if data[end - 1 : end] == b"\n" else end
        number += data.count(b"\n", counted, start)
        counted = start
        yield LineMatch(number, number + data.count(b"\n", start, stop), start, stop, tuple(apart(spans)))


class _Text:
    """Bytes as text that `re` can search, and the way back to byte offsets; what is no UTF-8 becomes surrogates."""

    def __init__(self, pattern: re.Pattern[str], data: bytes) -> None:
        self._search = pattern.search
        self._text = data.decode(errors="surrogateescape")
        sizes = (len(char.encode(errors="surrogateescape")) for char in self._text)
        self._offsets = range(len(data) + 1) if data.isascii() else list(accumulate(sizes, initial=0))

    def find(self, _data: bytes, pos: int, end: int) -> Span:
        """Return the span of the first match between two offsets of the data this was made of."""
        first, last = bisect_left(self._offsets, pos), bisect_left(self._offsets, end)
        found = self._search(self._text, first, last)
        return (self._offsets[found.start()], self._offsets[found.end()]) if found else NONE


def _received(source: BinaryIO) -> bytes:
    return source.read(int.from_bytes(source.read(8), "big"))


def _send(sink: BinaryIO, answer: object) -> None:
    message = json.dumps(answer).encode()
    sink.write(len(message).to_bytes(8, "big") + message)
    sink.flush()


if __name__ == "__main__":
    main()
