"""A tool at work on a tree: its index, its processes, its answers."""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashgrep.base.paths import Paths
from scripts.benchmarks.peer_process import MIB, NotAvailable, Processes
from scripts.benchmarks.peer_results import Indexing, PeerResult
from scripts.benchmarks.peer_tools import LETTERS, Form, Peer, Question, Syntax, Way
from scripts.benchmarks.private import Client

INDEX_SECONDS = 1800.0
"""An index that takes longer is given up; the machine may be busy."""
PAGE = 10_000
"""Hits in one answer over our socket; further ones are asked for by its cursor."""
BUDGET = 1_000_000
"""Tokens of an answer, enough for a page."""
READY = re.compile(rb"state +ready|Indexing: +complete|ready: +(true|yes)")


@dataclass(slots=True)
class RunningPeer:
    """A tool with its index, its processes, and the figures collected so far."""

    peer: Peer
    result: PeerResult
    tree: Path
    state: Path
    processes: Processes
    client: Client | None = None
    """A connection to our own daemon."""

    def ask(self, way: Way, question: Question) -> bytes:
        """Return the output of a way to ask.

        Raises:
            NotAvailable: it fails, or does not end in time.

        """
        if way.form is Form.SOCKET:
            try:
                return b"\n".join(self._pages(way, question))
            except (
                OSError
            ) as error:  # the daemon has ended; the next call connects again
                if self.client:
                    self.client.close()
                    self.client = None
                raise NotAvailable(f"{way.name}: {error.strerror or error}") from None
        command = way.command(question)
        text = question.text
        if way.escape and question.syntax is Syntax.LITERAL:
            text = re.escape(text).replace("\\ ", " ")
        text = text.replace(" ", way.blank)
        flags = way.flags.get(question.kind, way.flags.get("", ()))
        return self.processes.run(self.placed(command, text, flags))

    def placed(
        self, command: Iterable[str], text: str = "", flags: Sequence[str] = ()
    ) -> list[str]:
        """Return a command with its placeholders filled in."""
        names = {"{tree}": str(self.tree), "{state}": str(self.state), "{text}": text}
        filled: list[str] = []
        for part in command:
            if part == "{flags}":
                filled += flags
            else:
                filled.append(re.sub(r"\{\w+\}", lambda match: names[match[0]], part))
        return filled

    def make_index(self, settle_seconds: float) -> None:
        """Make the index the first time, start the server, and note what it took.

        Raises:
            NotAvailable: it fails, or does not end in time.

        """
        peer = self.peer
        if not peer.index:
            return
        before = self.processes.cpu()
        started = time.perf_counter()
        with self.processes.peak() as peak:
            self.index()
            seconds = time.perf_counter() - started
        self.result.indexing = Indexing(
            round(seconds, 2),
            round(self.processes.cpu() - before, 2),
            round(self.size() / MIB, 1),
            round(peak[-1] / MIB),
        )
        if peer.serve:
            self.processes.start(self.placed(peer.serve))
            self._wait_until_ready()
        if peer.settle:
            with suppress(NotAvailable):
                self.processes.run(self.placed(peer.settle), settle_seconds)

    def index(self) -> None:
        """Make the index, or make it again, and wait for it."""
        self.processes.run(self.placed(self.peer.index), INDEX_SECONDS, worst=0)
        # A server that is started afterwards is what says that it is ready.
        if not self.peer.serve:
            self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + INDEX_SECONDS
        while self.peer.ready and not READY.search(self._readiness()):
            if time.monotonic() > until:
                raise NotAvailable(f"no index within {INDEX_SECONDS:.0f} s")
            time.sleep(0.05)

    def size(self) -> int:
        """Return the bytes of its index."""
        if not self.peer.where:
            return 0
        folder, _, names = self.placed((self.peer.where,))[0].partition("/**/")
        place = Path(folder)
        if place.is_file():
            return place.stat().st_size
        files = [path for path in place.rglob(names or "*") if path.is_file()]
        return sum(path.stat().st_size for path in files)

    def end(self) -> None:
        """Stop its processes."""
        if self.client:
            self.client.close()
        if self.peer.stop:
            with suppress(NotAvailable):
                self.processes.run(self.placed(self.peer.stop))
        self.processes.end()

    def _readiness(self) -> bytes:
        try:
            return self.processes.run(self.placed(self.peer.ready))
        except NotAvailable:  # its server is not ready yet
            return b""

    def _pages(self, way: Way, question: Question) -> Iterator[bytes]:
        if self.client is None:
            self.client = _connect(self.state / "daemon", self.tree)
        params: dict[str, Any] = {
            "text": question.text,
            "mode": question.syntax.value,
            "case": "insensitive" if question.kind in LETTERS else "sensitive",
            "order": "path",
            "limit": way.limit or PAGE,
            "max_tokens": BUDGET,
        }
        while True:
            self.client.send("query", params)
            page = self.client.line()
            answer = json.loads(page)
            if "error" in answer:
                raise NotAvailable(answer["error"]["message"])
            yield page
            cursor = answer["result"].get("next")
            if way.limit or not cursor:
                return
            params["cursor"] = cursor


def _connect(state: Path, tree: Path) -> Client:
    control = Client(Paths(str(state)).socket)
    folder = os.fsencode(tree).decode("latin-1")
    opened = control.call("$/open", folder=folder, adopt=True)
    control.close()
    return Client(opened["socket"])
