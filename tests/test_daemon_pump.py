"""Bytes through the pump: every one arrives, in order, in both directions, whoever is slow or ends first."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from flashgrep.pump import MOST_HELD, pump


@dataclass(slots=True)
class Pumped:
    """A pump running in a thread, and the outer ends of its three descriptors."""

    source: int
    sink: int
    far: socket.socket
    thread: threading.Thread

    def read_all(self) -> bytes:
        pieces = []
        while piece := os.read(self.sink, 65536):
            pieces.append(piece)
        return b"".join(pieces)


@pytest.fixture
def pumped() -> Iterator[Pumped]:
    source_end, source = os.pipe()
    sink, sink_end = os.pipe()
    near, far = socket.socketpair()

    def run() -> None:
        pump(near, source_end, sink_end)
        near.close()
        os.close(sink_end)

    thread = threading.Thread(target=run)
    thread.start()
    running = Pumped(source, sink, far, thread)
    yield running
    far.close()
    thread.join(20)
    assert not thread.is_alive()
    os.close(source_end)
    os.close(sink)


def test_more_than_is_held_passes_both_ways_at_once(pumped: Pumped) -> None:
    up, down = os.urandom(3 * MOST_HELD), os.urandom(3 * MOST_HELD)
    seen: list[bytes] = []

    def feed() -> None:
        view = memoryview(up)
        while view:
            view = view[os.write(pumped.source, view) :]
        os.close(pumped.source)

    def answer() -> None:
        pumped.far.sendall(down)
        while piece := pumped.far.recv(65536):
            seen.append(piece)
        pumped.far.close()

    threads = [threading.Thread(target=feed), threading.Thread(target=answer)]
    for thread in threads:
        thread.start()
    assert pumped.read_all() == down
    for thread in threads:
        thread.join(20)
    assert b"".join(seen) == up


def test_an_ended_input_is_passed_on_and_the_answer_still_comes(pumped: Pumped) -> None:
    os.write(pumped.source, b"ask\n")
    os.close(pumped.source)
    assert pumped.far.makefile("rb").read() == b"ask\n"
    pumped.far.sendall(b"answer\n")
    pumped.far.shutdown(socket.SHUT_WR)
    assert pumped.read_all() == b"answer\n"


def test_the_end_of_the_connection_ends_it_while_input_stays_open(pumped: Pumped) -> None:
    pumped.far.sendall(b"bye\n")
    pumped.far.close()
    assert pumped.read_all() == b"bye\n"
    os.close(pumped.source)
