"""The process that parses: batches in on stdin, one answer a file on stdout, in order.

A batch is a frame (``child_process``) and the texts it announces; an answer is a frame and the bytes it announces:
``[[language, size], …]`` for a batch; ``[packed size, [name size, …]]`` or ``[reason, detail]`` for an answer. A file
that crashes a grammar ends this process: the parent (``isolate``) sees which answer is missing.
"""

import gc
import os
import signal
import sys

from flashgrep.child_process import limit_memory, make_frame, read_frame
from flashgrep.ingest.parse import ParsedFile, pack, parse_symbols
from flashgrep.ingest.parse.grammar import unpack_grammars
from flashgrep.languages import LANGUAGES
from flashgrep.machine import release_memory

MEMORY_BYTES = 3 << 30
"""Address space; the largest file accepted needs about 200 MB, the interpreter and grammars map 600 MB."""
FILE_SECONDS = 15.0
"""The parser gives up on a file itself after 5 s; three times that means it hangs where it cannot look at the clock."""


def answer(language: str, data: bytes) -> bytes:
    """Parse one file and return its answer."""
    parsed = parse_symbols(language, data)
    if not isinstance(parsed, ParsedFile):
        return make_frame([parsed.reason, parsed.detail])
    names, packed = parsed.names(data), pack(parsed)
    return make_frame([len(packed), [len(name) for name in names]]) + b"".join([*names, packed])


def main() -> None:
    """Answer batches until stdin ends."""
    limit_memory(MEMORY_BYTES)
    os.nice(5)
    # What parsing makes has no cycles, but there is much of it: collecting took a tenth of the time.
    gc.freeze()
    gc.disable()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    unpacked: set[str] = set()
    while (batch := read_frame(stdin)) is not None:
        texts = [(language, stdin.read(size)) for language, size in batch]
        grammars = {LANGUAGES[language].symbols for language, _ in batch}
        unpack_grammars(grammars - unpacked)
        unpacked |= grammars
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
