"""Reads and writes messages over stdin and stdout, in one thread per direction, so that neither blocks the other.

A message is a header with a length, an empty line, and JSON. Invalid input is skipped; later messages are still read.
"""

import json
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

MOST_MESSAGE: Final = 64 * 1024 * 1024
"""Bytes of a message; a longer one is skipped without being buffered."""
MOST_HEADER: Final = 8192
LENGTH: Final = re.compile(
    rb"(?i)content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*(?:\r?\n|$)"
)
HEADER_END: Final = re.compile(rb"\r?\n\r?\n")
PIECE: Final = 65_536
MOST_QUEUED: Final = 8 * 1024 * 1024
"""Bytes of unsent output; above this, input is not read until the editor catches up."""
MOST_WAITING: Final = 256
"""Messages read but not yet handled."""
FLUSH_SECONDS = 2.0


class Unreadable(Exception):
    """Takes the place of an invalid message; its text says why."""


class MessageReader:
    """Splits a byte stream into messages."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._left: int | None = None  # length of the body; None: a header comes first
        self._skipping = 0

    def feed(self, piece: bytes) -> Iterator[dict[str, Any] | Unreadable]:
        """Yield the messages that this piece completes, in order."""
        self._held += piece
        while True:
            if self._skipping:
                skipped = min(self._skipping, len(self._held))
                del self._held[:skipped]
                self._skipping -= skipped
            if self._left is None and not self._read_header():
                return
            if self._left is None:
                continue
            if self._left > MOST_MESSAGE:
                self._skipping = self._left
                self._left = None
                yield Unreadable(
                    f"a message of more than {MOST_MESSAGE:,} bytes is not read"
                )
                continue
            if len(self._held) < self._left:
                return
            body = bytes(self._held[: self._left])
            del self._held[: self._left]
            self._left = None
            yield decode_message(body)

    def _read_header(self) -> bool:
        """Consume a header, and return whether there was one; one without a length counts."""
        end = HEADER_END.search(self._held)
        if end is None:
            if len(self._held) > MOST_HEADER:
                # Only the front is dropped: a header may start in the rest.
                del self._held[: -MOST_HEADER // 2]
            return False
        length = LENGTH.search(self._held, 0, end.end())
        if length is not None:
            self._left = int(length[1])
        del self._held[: end.end()]
        return True


def decode_message(body: bytes) -> dict[str, Any] | Unreadable:
    """Return the object that a message's body encodes."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"invalid JSON: {error}")
    if isinstance(message, dict):
        return message
    return Unreadable("not a JSON-RPC object")


Received = dict[str, Any] | Unreadable


class Output:
    """Writes data in order, in a thread; ``on_end`` is called there when the reader is gone."""

    def __init__(self, descriptor: int, on_end: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_end = on_end
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        with self._changed:
            if not self._closed:
                self._pieces.append(data)
                self._size += len(data)
                self._changed.notify_all()

    def wait_for_room(self) -> None:
        """Wait until at most ``MOST_QUEUED`` bytes are unsent."""
        with self._changed:
            self._changed.wait_for(lambda: self._size <= MOST_QUEUED or self._closed)

    def close(self) -> None:
        """Accept no more data, and write what is queued within ``FLUSH_SECONDS``."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._pieces or self._closed)
                    if not self._pieces:
                        return
                    rest = memoryview(self._pieces.popleft())
                size = len(rest)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                with self._changed:
                    self._size -= size
                    self._changed.notify_all()
        except OSError:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            self._on_end()


class Input:
    """Reads messages in a thread, which calls ``take`` with each; call ``done`` once a message is handled."""

    def __init__(
        self, descriptor: int, output: Output, take: Callable[[Received | None], None]
    ) -> None:
        """``take`` receives None at the end of input."""
        self._descriptor = descriptor
        self._output = output
        self._take = take
        self._slots = threading.Semaphore(MOST_WAITING)
        threading.Thread(target=self._run, daemon=True).start()

    def done(self) -> None:
        """Free the slot of a handled message."""
        self._slots.release()

    def _run(self) -> None:
        reader = MessageReader()
        try:
            while piece := os.read(self._descriptor, PIECE):
                for message in reader.feed(piece):
                    self._output.wait_for_room()
                    self._slots.acquire()
                    self._take(message)
        except OSError:  # the terminal was closed
            pass
        self._take(None)
