"""The process that parses: batches in on stdin, one answer a file on stdout, in order.

A batch is a frame and the texts it announces; an answer is a frame and the bytes it announces. A frame is four bytes
of length (little-endian) and that much JSON: ``[[language, size], …]`` for a batch; ``[packed size, [name size, …]]``
or ``[reason, detail]`` for an answer. A file that crashes a grammar ends this process: the parent (``isolate``) sees
which answer is missing.
"""

import contextlib
import gc
import os
import resource
import signal
import sys
from typing import Any, BinaryIO

import orjson

from flashgrep.ingest.parse import ParsedFile, pack, parse_symbols
from flashgrep.machine import release_memory

MEMORY_BYTES = 3 << 30
"""Address space; the largest file accepted needs about 200 MB, the interpreter and grammars map 600 MB."""
FILE_SECONDS = 15.0
"""The parser gives up on a file itself after 5 s; three times that means it hangs where it cannot look at the clock."""


def read_frame(stream: BinaryIO) -> Any:
    """Return the next frame's JSON, or None at the end."""
    head = stream.read(4)
    return orjson.loads(stream.read(int.from_bytes(head, "little"))) if len(head) == 4 else None  # noqa: PLR2004 - the length's size


def frame(value: Any) -> bytes:
    """Return a frame of JSON."""
    body = orjson.dumps(value)
    return len(body).to_bytes(4, "little") + body


def answer(language: str, data: bytes) -> bytes:
    """Parse one file and return its answer."""
    parsed = parse_symbols(language, data)
    if not isinstance(parsed, ParsedFile):
        return frame([parsed.reason, parsed.detail])
    names, packed = parsed.names(data), pack(parsed)
    return frame([len(packed), [len(name) for name in names]]) + b"".join([*names, packed])


def main() -> None:
    """Answer batches until stdin ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    with contextlib.suppress(ValueError, OSError):  # a bound the system refuses is one we go without
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    os.nice(5)
    # What parsing makes has no cycles, but there is much of it: collecting took a tenth of the time.
    gc.freeze()
    gc.disable()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while (batch := read_frame(stdin)) is not None:
        texts = [(language, stdin.read(size)) for language, size in batch]
        for language, data in texts:
            # Processor time, since a loaded machine is not the file's fault. The signal ends this process.
            signal.setitimer(signal.ITIMER_PROF, FILE_SECONDS)
            answered = answer(language, data)
            signal.setitimer(signal.ITIMER_PROF, 0)
            try:
                stdout.write(answered)
                stdout.flush()
            except BrokenPipeError:  # the indexer was killed
                os._exit(1)
        gc.collect()
        release_memory()  # a large tree's pieces are spread over the heap: 500 MB stayed with a worker otherwise


if __name__ == "__main__":
    main()
