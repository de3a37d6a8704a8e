"""Relays JSON-RPC lines between stdio and the daemon, surviving the daemon's exit. Standard library only.

A host treats the end of a server's output as the end of the server, and few restart it. So the relay outlives the
daemon: it answers requests in flight with an error, reconnects at the host's next request, which starts the daemon if
needed, and repeats the handshake. Only whole lines are passed on, in both directions.
"""

import json
import os
import select
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from flashgrep.base.program_name import name_program
from flashgrep.rpc import inflight
from flashgrep.rpc.inflight import InFlight, Kind, Line, answered_key, id_key, items_of

PIECE = 65_536
MOST_QUEUED = 1024 * 1024
"""Most bytes queued for a slow reader; beyond it the writer waits, as it would without us."""
MOST_LINE = 64 * 1024 * 1024
"""Longer lines of the host are refused; the daemon's own limit is 8 MiB unless a setting says otherwise."""
TOO_LONG = "send the request in parts, or a path instead of content; the rest of the line is ignored"
BLANK = b" \t\r\n"
HANDSHAKE_SECONDS = 20.0
"""A daemon that does not answer a repeated handshake within this time counts as dead."""
SESSION = (
    "auth",
    "$/bind",
    "initialize",
    "notifications/initialized",
    "logging/setLevel",
)
"""Messages that make up a connection's state; the last of each is repeated to the next daemon, in this order."""
REPEATED = frozenset(
    {
        *SESSION,
        "ping",
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    }
)
"""Sent again if they were in flight: hosts give up if one fails, and none does work that could crash a daemon."""
READS = frozenset(
    {
        "batch",
        "callers",
        "calls",
        "changes",
        "code_research",
        "declaration",
        "definition",
        "get_slice",
        "get_symbol",
        "glob",
        "implementations",
        "list_files",
        "outline",
        "query",
        "read_code",
        "references",
        "repo_map",
        "search_code",
        "search_code_by_payload",
        "search_code_fulltext",
        "search_code_semantic",
        "semantic_search",
        "stats",
        "structural",
        "supertypes",
    }
)
"""Methods and tools that only read: sent again once if they were in flight. Once, since one may have ended the daemon.
A test compares them with the registry, which a relay does not load."""
READ_SENDINGS = 2
MOST_SENDINGS = 4
"""How many daemons one line may crash before it is answered with an error."""
CALM_SECONDS = 30.0
"""Seconds without trouble after which the next one counts as the first."""
LONGEST_PAUSE = 30.0
"""Seconds between two attempts at most, while the daemon ends again and again or does not start."""
PATIENCE_SECONDS = 3.0
"""Seconds that requests wait for the next attempt; if it is later, they are answered with an error at once."""
FREE_TROUBLES = 2
"""After one or two exits the next daemon is tried at once: a restart, and a start that collides with it."""
FOREVER = float("inf")
SUBSCRIBE = "$/subscribe"
UNSUBSCRIBE = "$/unsubscribe"
STATUS = "status"
MOST_SUBSCRIPTIONS = 256
BUFFERS = "buffers"
BUFFERS_LOST = b'{"jsonrpc":"2.0","method":"$/buffersLost"}\n'
"""Sent to a host with unsaved text when the daemon that had it is gone: the host must open its files again."""
UNAVAILABLE = -32000
TOO_LARGE = -32003
INTERNAL_ERROR = -32603
CANCELLED = "notifications/cancelled"
MOST_REPORT = 500
"""Characters of a line on standard error."""


class StderrLog:
    """Writes single lines to standard error; one that nobody reads, or that is closed, stops nothing."""

    def warning(self, event: str) -> None:
        """Write a line."""
        report = name_program(f"fgrep: {event}").encode(errors="backslashreplace")
        line = report[:MOST_REPORT].replace(b"\n", b" ") + b"\n"
        with suppress(OSError, ValueError):
            if select.select([], [2], [], 0)[1]:
                os.write(2, line)

    def exception(self, event: str, **values: object) -> None:
        """Write what failed inside of us, with the exception being handled, in one line."""
        self.warning(f"{event} {values or ''}: {sys.exc_info()[1]!r}")


class Relay:
    """Relays one host's lines until the host, or our parent, ends."""

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        source: int = 0,
        sink: int = 1,
        *,
        watched: int | None = None,
        linger: float | None = None,
    ) -> None:
        """``connect`` returns a connection that is bound and ready; it may start the daemon, and raise OSError.

        ``watched``: a descriptor; end when it becomes readable. ``linger``: end this many seconds after the end of
        ``source`` at the latest.
        """
        self._connect = connect
        self._source = source
        self._sink = sink
        self._watched = watched
        self._linger = linger
        self._source_open = True
        self._until = FOREVER
        self._wire: socket.socket | None = None
        self._attempt: _Attempt | None = None
        self._to_daemon: deque[Line] = deque()
        self._to_daemon_size = self._sent = (
            0  # bytes in _to_daemon, and how many of its first line the daemon has
        )
        self._to_host = bytearray()
        self._host_part, self._daemon_part = (
            bytearray(),
            bytearray(),
        )  # incomplete lines
        self._dropping = False  # the rest of a line of the host that is too long
        self._may_send = True
        self._in_flight = InFlight()
        self._daemon_requests: set[str] = (
            set()
        )  # ids of requests from the current daemon to the host
        self._has_buffers = False  # whether the host has sent unsaved text
        self._session: dict[
            object, tuple[bytes, str | None]
        ] = {}  # by method: lines, and the keys of their answers
        self._subscriptions: dict[
            object, tuple[bytes, str | None]
        ] = {}  # the same, by project
        self._troubles = 0
        self._last_trouble = 0.0
        self._not_before = 0.0
        self._why = ""
        self.log = StderrLog()

    def _reconnect(self) -> None:
        queued = {method for line in self._to_daemon for method in line.methods}
        # What the host repeats by itself, above all "initialize", must not reach the
        # daemon twice.
        handshake = [
            self._session[name]
            for name in SESSION
            if name in self._session.keys() - queued
        ]
        self._attempt = _Attempt(
            self._connect, [*handshake, *self._subscriptions.values()]
        )

    def run(self, wire: socket.socket) -> None:
        """Carry lines, at first over ``wire``."""
        wire.setblocking(False)
        self._wire = wire
        try:
            while (
                self._source_open
                or self._wire
                or self._attempt
                or self._to_daemon
                or self._to_host
            ):
                now = time.monotonic()
                # What was not answered by then stays unanswered: the host closed its
                # side long ago.
                if now >= self._until:
                    return
                # Reconnect at the next request, not at once: a daemon that was stopped
                # stays stopped.
                is_connected = self._wire or self._attempt
                if self._to_daemon and not is_connected and now >= self._not_before:
                    self._reconnect()
                readable, writable = self._select(now)
                if self._watched in readable:
                    return
                self._carry(readable, writable)
        finally:
            if self._wire is not None:
                self._wire.close()

    def _select(
        self, now: float
    ) -> tuple[list[socket.socket | int], list[socket.socket | int]]:
        """Return what can be read and written of what we want to; also returns at the time of the next attempt."""
        readers: list[socket.socket | int] = (
            [] if self._watched is None else [self._watched]
        )
        writers: list[socket.socket | int] = []
        if self._to_host:
            writers = [self._sink]
        until = self._until
        # Backpressure in both directions: a descriptor is not selected while there is
        # no room for its data.
        if self._source_open and self._to_daemon_size < MOST_QUEUED:
            readers.append(self._source)
        if self._attempt is not None:
            # The pipe's end, closed by the thread, wakes select as data would.
            readers.append(self._attempt.done)
        elif self._wire is None and self._to_daemon:
            until = min(until, self._not_before)
        if self._wire is not None and len(self._to_host) < MOST_QUEUED:
            readers.append(self._wire)
        # Keep reading from a daemon that no longer reads: its last answers may be on
        # the way.
        if self._wire is not None and self._to_daemon and self._may_send:
            writers.append(self._wire)
        ready = select.select(
            readers, writers, [], None if until == FOREVER else max(0.0, until - now)
        )
        return ready[0], ready[1]

    def _carry(
        self, readable: list[socket.socket | int], writable: list[socket.socket | int]
    ) -> None:
        # As select saw them: a later step must not take for ready what an earlier one
        # closes or opens.
        wire = self._wire
        attempt = self._attempt
        if attempt is not None and attempt.done in readable:
            self._attempt = None
            os.close(attempt.done)
            self._wire = attempt.wire
            self._may_send = True
            if self._wire is None:
                self._note_trouble(attempt.problem)
                self._to_daemon.clear()
                self._to_daemon_size = 0
                for line in self._in_flight.lines():
                    self._refuse(line)
            else:
                self._take_piece(attempt.unread)
        if self._source in readable:
            self._read_host()
        if wire is not None and wire in writable:
            self._write_daemon(wire)
        if wire is not None and wire in readable:
            self._read_daemon(wire)
        if self._sink in writable:
            # A pipe that select calls writable takes this much without blocking.
            del self._to_host[: os.write(self._sink, self._to_host[: select.PIPE_BUF])]

    # From the host to the daemon

    def _read_host(self) -> None:
        piece = os.read(self._source, PIECE)
        if not piece:
            self._source_open = False
            if self._linger is not None:
                self._until = time.monotonic() + self._linger
            piece = (
                b"\n" if self._host_part else b""
            )  # a last line without a line end is still a line
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if not self._dropping:
                self._take_line(bytes(self._host_part + line) + b"\n")
            self._dropping = False
            self._host_part.clear()
        if not self._dropping:
            self._host_part += rest
        observed = len(self._host_part)
        if observed > MOST_LINE:
            self._dropping = True
            self._host_part.clear()
            data: dict[str, object] = {
                "limit_bytes": MOST_LINE,
                "observed_bytes": observed,
                "guidance": TOO_LONG,
            }
            self._to_host += inflight.refuse_line(
                TOO_LARGE, "line too long", {"reason": "payload_too_large", **data}
            )
        if not self._source_open and not self._to_daemon:
            _send_eof(self._wire)

    def _take_line(self, data: bytes) -> None:
        """Queue a line for the daemon, which answers whatever is wrong with it; a failure of ours ends only the line.

        A host that loses the session over one line loses its tools for good.
        """
        if not data.strip(BLANK):  # the daemon skips it
            return
        message = inflight.parse(data)
        line = Line(data, message)
        try:
            if self._note_line(line, message):
                self._queue_line(line)
        except Exception:
            self.log.exception("internal error: a line of the host", bytes=len(data))
            self._to_host += inflight.refuse_all(
                line, INTERNAL_ERROR, "internal error", {"reason": "internal_error"}
            )
            self._in_flight.forget(line)

    def _note_line(self, line: Line, message: object) -> bool:
        """Record what a line means for the connection; return whether it is for the daemon."""
        # A batch is one line with several items; each of them may belong to the
        # session.
        for item in items_of(message):
            kind = inflight.classify(item)
            method = item.get("method")
            if kind is Kind.INVALID:
                continue  # the daemon says what is wrong
            if kind is Kind.REPLY and not line.is_batch:
                if id_key(item) not in self._daemon_requests:
                    return False  # the daemon that sent the request has ended
                self._daemon_requests.discard(id_key(item))
            elif method in SESSION:
                # The last one counts, since a host may initialize again.
                self._session[method] = _make_repeatable(item)
            elif method in {SUBSCRIBE, UNSUBSCRIBE}:
                self._note_subscription(item)
            elif method == BUFFERS:
                self._has_buffers = True
            elif (
                method == CANCELLED and kind is Kind.NOTIFICATION
            ):  # such a request goes unanswered
                self._settle_cancellation(item.get("params"))
        # A notification without a daemon was meant for the lost connection; its session
        # state is recorded.
        return line.is_answered or self._wire is not None

    def _queue_line(self, line: Line) -> None:
        # Before sending: the daemon's answer may be read in the same round in which the
        # line is written.
        self._in_flight.add(line)
        self._to_daemon.append(line)
        self._to_daemon_size += len(line.data)
        # A host should not hang for half a minute for an error that is already known.
        if (
            self._wire is None
            and self._not_before - time.monotonic() > PATIENCE_SECONDS
        ):
            self._refuse(line)

    def _settle_cancellation(self, params: object) -> None:
        request_id: object = None
        if isinstance(params, dict):
            request_id = params.get("requestId")
        elif isinstance(params, list) and params:
            request_id = params[0]
        key = id_key({"id": request_id})
        if key != inflight.NULL:
            self._in_flight.settle(key)

    def _note_subscription(self, item: dict[str, object]) -> None:
        params = item.get("params")
        project = json.dumps(
            params.get("project") if isinstance(params, dict) else None
        )
        # Removed and added at the end, so that the dictionary is in the order of
        # requests and the oldest one is dropped.
        self._subscriptions.pop(project, None)
        if item["method"] == SUBSCRIBE:
            self._subscriptions[project] = _make_repeatable(item)
        while len(self._subscriptions) > MOST_SUBSCRIPTIONS:
            del self._subscriptions[next(iter(self._subscriptions))]

    def _write_daemon(self, wire: socket.socket) -> None:
        line = self._to_daemon[0]
        try:
            self._sent += wire.send(memoryview(line.data)[self._sent :])
        except BlockingIOError:
            return
        except OSError:  # reading reports the same, after the answers already sent
            self._may_send = False
            return
        if self._sent == len(line.data):
            self._to_daemon.popleft()
            self._to_daemon_size -= len(line.data)
            self._sent = 0
            line.sendings += 1
            if not self._to_daemon and not self._source_open:
                _send_eof(wire)

    # From the daemon to the host

    def _read_daemon(self, wire: socket.socket) -> None:
        try:
            piece = wire.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._lose_daemon(wire)
        else:
            self._take_piece(piece)

    def _take_piece(self, piece: bytes) -> None:
        """Pass on complete lines of the daemon, and record which requests they answer."""
        *parts, rest = piece.split(b"\n")
        for part in parts:
            line = bytes(self._daemon_part + part)
            self._daemon_part.clear()
            self._to_host += line + b"\n"
            try:
                self._note_answer(line)
            except Exception:
                self.log.exception(
                    "internal error: a line of the daemon", bytes=len(line)
                )
        self._daemon_part += rest

    def _note_answer(self, line: bytes) -> None:
        """Record what a line of the daemon answers or asks."""
        # Most lines are single answers; their id is found without parsing the result,
        # which may be megabytes.
        key = answered_key(line)
        if key is not None:
            self._in_flight.settle(key)
            return
        message = inflight.parse(line)
        for item in items_of(message):
            key = id_key(item)
            if "method" not in item:
                # In a batch's answer the id null is an item's: others of its line may
                # be unanswered.
                if key != inflight.NULL or not isinstance(message, list):
                    self._in_flight.settle(key)
            elif "id" in item:
                # Remembered, so that the host's reply to a dead daemon is not given to
                # the next one.
                self._daemon_requests.add(key)

    # Between two daemons

    def _lose_daemon(self, wire: socket.socket) -> None:
        """Answer requests in flight with an error; those not yet sent completely wait for the next daemon."""
        wire.close()
        self._wire = None
        self._sent = 0
        self._daemon_part.clear()
        self._daemon_requests.clear()
        # By identity: two equal lines are two requests.
        unsent = set(map(id, self._to_daemon))
        # The regular end: the host hung up, and the daemon closed after its last
        # answer.
        if not self._source_open and not self._in_flight and not unsent:
            return
        had_buffers = self._has_buffers
        if had_buffers:
            # Before answers of the next daemon, which knows nothing of them.
            self._to_host += BUFFERS_LOST
            self._has_buffers = False
        self._note_trouble("the daemon ended")
        # Notifications were meant for the lost connection.
        waiting = [line for line in self._to_daemon if line.is_answered]
        self._to_daemon.clear()
        for line in waiting:
            # Counted even though it was not received: with daemons that end at once it
            # would wait for ever.
            line.sendings += 1
        again = [line for line in self._in_flight.lines() if id(line) not in unsent]
        for line in again + waiting:
            if line.sendings < MOST_SENDINGS and (
                id(line) in unsent or self._is_repeatable(line, had_buffers=had_buffers)
            ):
                self._to_daemon.append(line)
            else:
                self._refuse(line)
        self._to_daemon_size = sum(len(line.data) for line in self._to_daemon)

    def _is_repeatable(self, line: Line, *, had_buffers: bool) -> bool:
        """Return whether a completely sent line may be sent to the next daemon: it cannot have written."""
        if line.methods <= REPEATED:
            return True
        # The next daemon knows nothing of unsaved text, and would answer from the disk.
        # A host that has hung up does not wait for a daemon to start.
        if had_buffers or not self._source_open:
            return False
        return line.sendings < READ_SENDINGS and line.operations <= READS

    def _note_trouble(self, why: str) -> None:
        """Report what is wrong, and wait before the next attempt, longer each time."""
        now = time.monotonic()
        # A pause between attempts does not count as calm, hence both durations.
        if now - self._last_trouble > CALM_SECONDS + LONGEST_PAUSE:
            self._troubles = 1
        else:
            self._troubles = self._troubles + 1
        self._last_trouble = now
        self._why = why
        more = self._troubles - FREE_TROUBLES
        self._not_before = now + (
            min(LONGEST_PAUSE, 2.0 ** (more - 2)) if more > 0 else 0.0
        )
        self.log.warning(why)

    def _refuse(self, line: Line) -> None:
        # It is unknown whether a completely sent request was carried out before the
        # daemon ended.
        suggestion = (
            "try again; if the call writes, check first whether it was carried out"
        )
        data: dict[str, object] = {"reason": "daemon_ended", "suggestion": suggestion}
        self._to_host += inflight.refuse_all(
            line, UNAVAILABLE, f"{self._why}: try again", data
        )
        self._in_flight.forget(line)
        if line in self._to_daemon:
            self._to_daemon.remove(line)
            self._to_daemon_size -= len(line.data)


class _Attempt:
    """Connects in a thread: starting a daemon takes up to half a minute, during which the host may end or cancel."""

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        handshake: list[tuple[bytes, str | None]],
    ) -> None:
        """``handshake``: lines that a new connection has to hear first, and the keys of their answers."""
        self.done, self._tell = os.pipe()
        self.wire: socket.socket | None = None
        self.unread = b""
        """What the daemon sent during the handshake that must reach the host."""
        self.problem = ""
        self.log = StderrLog()
        # A daemon thread: one still connecting when the host ends must not keep this
        # process alive.
        threading.Thread(
            target=self._run, args=(connect, handshake), daemon=True
        ).start()

    def _run(
        self,
        connect: Callable[[], socket.socket],
        handshake: list[tuple[bytes, str | None]],
    ) -> None:
        try:
            wire = connect()
            try:
                wire.settimeout(HANDSHAKE_SECONDS)
                self.unread = _repeat(wire, handshake)
                wire.setblocking(False)
            except BaseException:
                wire.close()
                raise
            self.wire = wire
        except Exception as error:
            self.problem = str(error)
            if not isinstance(error, (OSError, ValueError)):
                self.log.exception("internal error: the handshake with the daemon")
        finally:
            # In any case wake the reader of ``done``, after setting everything that it
            # will read here.
            os.close(self._tell)


def _make_repeatable(item: dict[str, object]) -> tuple[bytes, str | None]:
    """Return an item of a message as a line of its own, and the key of its answer; None for a notification."""
    return json.dumps(item).encode() + b"\n", id_key(item) if "id" in item else None


def _repeat(wire: socket.socket, handshake: list[tuple[bytes, str | None]]) -> bytes:
    """Send lines, each after the answer to the previous one; the host has these answers from an earlier daemon.

    Return what must still reach the host: the status of subscribed projects, and what follows the last answer.
    """
    rest_held = b""
    news = bytearray()
    for data, key in handshake:
        wire.sendall(data)
        # A notification has no answer, and the next line follows at once.
        while key is not None:
            line, end, rest = rest_held.partition(b"\n")
            if not end:
                piece = wire.recv(PIECE)
                if not piece:
                    raise ConnectionResetError("the daemon ended")
                rest_held += piece
                continue
            rest_held = rest
            if answered_key(line) == key:
                news += _tell_status(data, line)
                break
            if any(
                item.get("method") == STATUS for item in items_of(inflight.parse(line))
            ):
                news += line + b"\n"
    return bytes(news) + rest_held


def _tell_status(asked: bytes, answer: bytes) -> bytes:
    """Return the answer to a repeated subscription as a status notification; nothing for other requests."""
    request, answered = (
        [*items_of(inflight.parse(line)), {}][0] for line in (asked, answer)
    )
    if request.get("method") != SUBSCRIBE:
        return b""
    params = request.get("params")
    gone = {
        "project": params.get("project") if isinstance(params, dict) else None,
        "stage": "closed",
    }
    notice = {
        "jsonrpc": "2.0",
        "method": STATUS,
        "params": answered.get("result", gone),
    }
    return json.dumps(notice).encode() + b"\n"


def _send_eof(wire: socket.socket | None) -> None:
    if wire is not None:
        with suppress(OSError):  # the daemon has ended; reading will report it
            wire.shutdown(socket.SHUT_WR)
