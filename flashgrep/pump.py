"""Bytes between standard input and output and a socket, both ways at once. Standard library only."""

import os
import select
import socket
import time

PIECE = 65_536
PIPE_PIECE = 512
"""POSIX's least PIPE_BUF: a pipe that select calls writable takes this much without blocking."""
MOST_HELD = 1024 * 1024
"""Bytes held for a reader that is slow; beyond it the writer waits, as it would without us."""


def pump(
    connection: socket.socket,
    source: int = 0,
    sink: int = 1,
    *,
    watched: int | None = None,
    linger: float | None = None,
) -> None:
    """Carry ``source`` to the connection and the connection to ``sink``, until the connection ends.

    ``watched``: a descriptor; return when it becomes readable. ``linger``: return so many seconds after the end of
    ``source`` at the latest.
    """
    connection.setblocking(False)
    wire = connection.fileno()
    up, down, source_open = bytearray(), bytearray(), True
    until: float | None = None
    always = [] if watched is None else [watched]
    while True:
        readers = ([wire] if len(down) < MOST_HELD else []) + ([source] if source_open and len(up) < MOST_HELD else [])
        writers = ([wire] if up else []) + ([sink] if down else [])
        patience = None if until is None else until - time.monotonic()
        if patience is not None and patience <= 0:
            return
        readable, writable, _ = select.select(readers + always, writers, [], patience)
        if watched in readable:
            return
        if source in readable:
            source_open = _take(os.read(source, PIECE), up)
            if not source_open and linger is not None:
                until = time.monotonic() + linger
        if wire in writable:
            del up[: connection.send(up)]
        if not source_open and not up:
            _no_more(connection)
        if wire in readable and not _take(_received(connection), down):
            _drain(sink, down)
            return
        if sink in writable:
            del down[: os.write(sink, down[:PIPE_PIECE])]


def _take(piece: bytes, into: bytearray) -> bool:
    into += piece
    return bool(piece)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(PIECE)
    except ConnectionError:
        return b""


def _no_more(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_WR)
    except OSError:  # it was shut down already, by us or by the other side
        return


def _drain(sink: int, held: bytearray) -> None:
    while held:
        del held[: os.write(sink, held)]
