"""HTTP for strangers: requests that two servers would read differently, slow ones, unread ones, and very many."""

import http.client
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from flashgrep.parts.http.wire.admission import ADMITTED, date_header
from flashgrep.parts.http.wire.protocol import (
    BURST,
    MOST_STRANGERS,
    REQUESTS_A_SECOND,
    Deadlines,
    Server,
)
from flashgrep.parts.http.wire.server import listen, server
from tests.conftest import BOUND, DaemonAtHand
from tests.support.mcp_clients import open_http

SECOND = b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n"
HOST = b"Host: a\r\n"
LONG_ANSWER = b"x" * (16 << 20)  # more than the system keeps for a connection

SMUGGLED = {
    "both lengths": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, chunked first": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "two equal lengths": b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, 0\r\n\r\n",
    "a length with a sign": b"Content-Length: +0\r\n\r\n",
    "a length in hexadecimal": b"Content-Length: 0x0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "two encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown encoding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "an encoding twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "an identity": b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"Content-Length : 0\r\n\r\n",
    "a folded header": b"X-A: b\r\n Content-Length: 0\r\n\r\n",
    "a folded encoding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a line without a carriage return": b"X-A: b\nContent-Length: 0\r\n\r\n",
    "an end without carriage returns": b"X-A: b\n\n",
    "a lone carriage return": b"X-A: b\rContent-Length: 5\r\n\r\n",
    "a NUL": b"X-A: b\0c\r\n\r\n",
    "an underscore name": b"Content_Length: 5\r\nContent-Length: 0\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
}
"""Rest of a head, and the body: no server may go on behind any of these."""
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = {
    "plain": b"0\r\n\r\n",
    "an extension": b"0;a=b\r\n\r\n",
    "a trailer": b"0\r\nContent-Length: 99\r\n\r\n",
    "a trailer ending without carriage returns": b"0\r\nX: y\n\n",
    "an end without a carriage return": b"0\r\n\n",
    "a size without a carriage return": b"0\n\r\n",
    "a size with a sign": b"+0\r\n\r\n",
    "a size in C": b"0x0\r\n\r\n",
    "a long size": b"0" * 40 + b"\r\n\r\n",
    "an overflow": b"10000000000000000\r\n\r\n",
    "a wrong end of a chunk": b"1\r\na00\r\n\r\n",
}


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """Answer like a guard: strangers at ``/`` and ``/second``, known clients elsewhere; ``/long`` is long."""
    if scope["type"] != "http":
        while True:
            event = (await receive())["type"]
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return
    if scope["path"] == "/held":
        while (await receive()).get("more_body"):
            pass
    is_known = scope["path"] == "/known"
    if not scope[ADMITTED](is_known=is_known):
        await send({"type": "http.response.start", "status": 429, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    body = b"short"
    if scope["path"] == "/long" or scope["query_string"] == b"long":
        body = LONG_ANSWER
    length = (b"content-length", str(len(body)).encode())
    headers = [length, date_header()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serve(deadlines: Deadlines) -> Iterator[int]:
    """Serve in a thread, and yield the port."""
    listener = listen(0)
    ready = threading.Event()
    made: list[Server] = []
    loops: list[Any] = []

    async def run() -> None:
        made.append(server(answer, deadlines))
        loops.append(anyio.lowlevel.current_token())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made[0].serve, [listener])
            await made[0].ready.wait()
            ready.set()

    thread = threading.Thread(target=anyio.run, args=(run,))
    thread.start()
    try:
        assert ready.wait(BOUND)
        yield listener.getsockname()[1]
    finally:
        anyio.from_thread.run_sync(made[0].stop, token=loops[0])
        thread.join(BOUND)
        listener.close()
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serve(Deadlines()) as port:
        yield port


@pytest.fixture(scope="module")
def hasty() -> Iterator[int]:
    """Serve with short deadlines."""
    with serve(Deadlines(head=0.5, body=0.5, unread=0.5)) as port:
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), BOUND)


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until the other end closes."""
    told = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            told += piece
    return told


def ask_known(connection: socket.socket) -> list[int]:
    """Ask as a known client on a connection that stays open, and return the status."""
    connection.sendall(b"GET /known HTTP/1.1\r\nHost: a\r\n\r\n")
    told = b""
    while not told.endswith(b"short"):
        piece = connection.recv(1 << 16)
        assert piece, told
        told += piece
    return statuses(told)


def statuses(told: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", told)]


@pytest.mark.parametrize("name", SMUGGLED)
def test_a_request_that_servers_read_differently_is_refused_and_nothing_after_it_is_read(
    port: int, name: str
) -> None:
    with connect(port) as connection:
        connection.sendall(b"POST /known HTTP/1.1\r\n" + HOST + SMUGGLED[name] + SECOND)
        told = statuses(read_all(connection))
    assert told in ([400], [501]), name


@pytest.mark.parametrize("name", CHUNKS)
def test_nothing_is_read_behind_a_body_in_chunks(
    port: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(port) as connection:
        head = b"POST /known HTTP/1.1\r\n" + HOST + CHUNKED
        connection.sendall(head + CHUNKS[name] + SECOND)
        assert len(statuses(read_all(connection))) == 1, name
    assert not caplog.records, name


def test_an_old_request_in_chunks_is_refused(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(
            b"POST /known HTTP/1.0\r\n" + HOST + CHUNKED + CHUNKS["plain"] + SECOND
        )
        assert statuses(read_all(connection)) == [400]


def test_two_good_requests_in_one_packet_are_both_answered(port: int) -> None:
    with connect(port) as connection:
        good = b"POST /known HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\n\n"
        last = b"GET /known HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        connection.sendall(good + last)
        assert statuses(read_all(connection)) == [200, 200]


def test_a_second_head_that_never_ends_is_cut_off(hasty: int) -> None:
    with connect(hasty) as connection:
        assert ask_known(connection) == [200]
        begun = time.monotonic()
        connection.sendall(b"G")
        assert read_all(connection) == b""
        assert time.monotonic() - begun < BOUND / 2


@pytest.mark.parametrize("path", [b"/held", b"/known"])
def test_a_body_that_trickles_is_cut_off(hasty: int, path: bytes) -> None:
    """Also when the answer has been sent before the body came."""
    ended = threading.Event()
    with connect(hasty) as connection:
        head = (
            b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n"
        )
        connection.sendall(head)

        def trickle() -> None:
            with suppress(OSError):
                while not ended.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()
        read_all(connection)
        ended.set()
        thread.join()


@pytest.mark.parametrize("path", [b"/long", b"/known?long"])
def test_an_answer_that_nobody_reads_is_dropped(hasty: int, path: bytes) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(BOUND)
        connection.connect(("127.0.0.1", hasty))
        connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        threading.Event().wait(1.5)  # longer than the deadline: the thing under test
        assert len(read_all(connection)) < len(LONG_ANSWER)


def test_an_error_behind_a_begun_answer_ends_the_connection_alone(port: int) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(BOUND)
        connection.connect(("127.0.0.1", port))
        connection.sendall(b"POST /known?long HTTP/1.1\r\n" + HOST + CHUNKED)
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(b"nonsense\r\n")
        assert statuses(read_all(connection)) == []


def test_of_strangers_who_do_not_read_the_oldest_gives_way(port: int) -> None:
    crowd: list[socket.socket] = []
    with closing(Crowd(crowd)):
        for _ in range(MOST_STRANGERS + 4):
            time.sleep(1 / REQUESTS_A_SECOND)
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(BOUND)
            connection.connect(("127.0.0.1", port))
            connection.sendall(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
            crowd.append(connection)
        assert len(read_all(crowd[0])) < len(LONG_ANSWER)
        newest = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
        newest.request("GET", "/known")
        assert newest.getresponse().status == 200
        newest.close()


class Crowd:
    """Connections that end together."""

    def __init__(self, connections: list[socket.socket]) -> None:
        self._connections = connections

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def test_strangers_have_a_rate_and_known_clients_have_none() -> None:
    with serve(Deadlines()) as port:
        told: list[int] = []
        for _ in range(2 * BURST):
            with connect(port) as connection:
                connection.sendall(
                    SECOND.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
                )
                told += statuses(read_all(connection))
        assert told[:BURST] == [200] * BURST
        assert 429 in told[BURST:]
        with connect(port) as connection:
            for _ in range(BURST):
                assert ask_known(connection) == [200]


def test_a_daemon_tells_a_crowd_to_come_later_and_answers_its_owner(
    daemon: DaemonAtHand,
) -> None:
    port = open_http(daemon)
    head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    told: list[int] = []
    for _ in range(2 * BURST):
        with connect(port) as connection:
            connection.sendall(head)
            told += statuses(read_all(connection))
    assert 429 in told
    with closing(daemon.wire("unix")) as owner:
        assert owner.call("$/status")["pid"]
