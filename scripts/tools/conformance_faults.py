"""Tests faults that an MCP host may meet, against ``fgrep mcp`` and ``fgrep serve`` as shipped.

These are a cancelled call, a killed and a restarted daemon, a missing folder, and two hosts at once. Run by
``scripts/conformance``; with ``--faults`` alone.
"""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scripts.tools.pipes import pipes_of

FLASHGREP = str(Path(sys.executable).with_name("flashgrep"))
REVISION = "2025-11-25"
INITIALIZE = {
    "protocolVersion": REVISION,
    "capabilities": {},
    "clientInfo": {"name": "faults", "version": "1"},
}
SECONDS = 60.0
"""Time limit for a daemon to be available again."""
RUNNING_SECONDS = 0.5
"""A call without an answer after this long is taken to be running: others take milliseconds."""
CALLS = 50
"""Calls that each of two hosts sends at once."""
SLOW = {"query": "(a+)+b", "mode": "regex", "engine": "backtracking"}
"""A query that in ``slow.txt`` runs until its deadline of 30 s."""

Ask = Callable[[str, dict[str, Any]], str]
"""Calls a tool and returns the text of its answer, or of the error."""


class Lines:
    """A host of ``fgrep mcp``."""

    def __init__(self, project: str, own: dict[str, str]) -> None:
        """Start the process and do the handshake."""
        command = [FLASHGREP, "mcp", "--project", project]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own
        )
        self.given, self.told = pipes_of(self.process)
        self.number = 0
        self.unasked: list[Any] = []
        """Ids of answers that nothing waited for."""
        self.send("initialize", INITIALIZE)
        self.receive()

    def send(
        self, method: str, params: dict[str, Any], *, notifies: bool = False
    ) -> int:
        """Send a message; return its id."""
        self.number += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params} | (
            {} if notifies else {"id": self.number}
        )
        self.given.write(json.dumps(message).encode() + b"\n")
        self.given.flush()
        return self.number

    def receive(self) -> dict[str, Any]:
        """Return the next answer."""
        while True:
            answer: dict[str, Any] = json.loads(self.told.readline())
            if "method" not in answer:
                return answer

    def ask(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text of its answer."""
        number = self.send("tools/call", {"name": tool, "arguments": arguments})
        while (answer := self.receive())["id"] != number:
            self.unasked.append(answer["id"])
        return _text_of(answer)

    def close(self) -> list[Any]:
        """Close the connection; return the ids of unread answers."""
        self.given.close()
        left = [json.loads(line).get("id") for line in self.told]
        self.process.wait(SECONDS)
        return left


def _text_of(answer: dict[str, Any]) -> str:
    return (
        str(answer["error"])
        if "error" in answer
        else str(answer["result"]["content"][0]["text"])
    )


class Posts:
    """A host of ``fgrep serve``."""

    def __init__(self, url: str, token: str, project: str) -> None:
        """Take the server's address and token."""
        self.url, self.token, self.project = urlsplit(url), token, project

    def ask(
        self, tool: str, arguments: dict[str, Any], seconds: float = SECONDS
    ) -> str:
        """Call a tool and return the text of its answer."""
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
        }
        connection = http.client.HTTPConnection(
            self.url.hostname or "", self.url.port, timeout=seconds
        )
        try:
            connection.request(
                "POST", f"/mcp?project={self.project}", json.dumps(call), headers
            )
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        found = re.search(
            rb"^(?:data: )?(\{.*\})\s*$", body, re.MULTILINE
        )  # plain JSON, or an event
        return (
            _text_of(json.loads(found[1]))
            if found
            else f"status {answer.status}: {body!r}"
        )


def find_faults(
    own: dict[str, str], serve: Callable[[dict[str, str]], Any]
) -> Iterator[str]:
    """Test each fault over both transports; yield failures. ``serve`` runs ``fgrep serve`` for its URL and token."""
    project = Path(own["PROJECT"])
    (project / "slow.txt").write_text("a" * 60 + "c\n", encoding="utf-8")
    other = project.with_name("other")
    (other / ".git").mkdir(parents=True)
    (other / "b.py").write_text("def needle():\n    pass\n", encoding="utf-8")

    def restart(_: int) -> None:
        subprocess.run(
            [FLASHGREP, "daemon", "restart"], env=own, check=True, capture_output=True
        )

    with serve(own) as (url, token):
        lines, posts = Lines(str(project), own), Posts(url, token, str(project))
        yield from _cancel(lines, posts)
        ways: dict[str, Ask] = {"mcp": lines.ask, "serve": posts.ask}
        yield from _lose_daemon(
            "a daemon killed", ways, own, lambda pid: os.kill(pid, signal.SIGKILL)
        )
        yield from _lose_daemon("a daemon restarted", ways, own, restart)
        # A call still running would have got an error when its daemon ended.
        yield from _judge(
            "mcp, no answer to a call taken back",
            holds=not lines.unasked,
            told=lines.unasked,
        )
        yield from _wrong_folder(own, Posts(url, token, f"{project}/nowhere"))
        yield from _two_hosts(
            lines, Lines(str(other), own), Posts(url, token, str(other))
        )


def _judge(name: str, *, holds: bool, told: object) -> Iterator[str]:
    """Print that the check holds, or yield what was answered instead."""
    if holds:
        print(f"ok        {name}")
    else:
        yield f"{name}: {told}"


def _cancel(lines: Lines, posts: Posts) -> Iterator[str]:
    taken_back = lines.send("tools/call", {"name": "query", "arguments": SLOW})
    runs = not select.select([lines.told], [], [], RUNNING_SECONDS)[0]
    lines.send("notifications/cancelled", {"requestId": taken_back}, notifies=True)
    told = lines.ask("query", {"query": "needle"})
    yield from _judge(
        "mcp, a call taken back", holds=runs and "a.py" in told, told=(runs, told)
    )
    try:
        told, runs = (
            posts.ask("query", SLOW, RUNNING_SECONDS),
            False,
        )  # closes the connection
    except TimeoutError:
        told, runs = posts.ask("query", {"query": "needle"}), True
    yield from _judge(
        "serve, a call hung up on", holds=runs and "a.py" in told, told=(runs, told)
    )


def _lose_daemon(
    name: str, ways: dict[str, Ask], own: dict[str, str], end: Callable[[int], object]
) -> Iterator[str]:
    """End the daemon; until a new one answers, calls must be answered or get an error that says to try again."""
    before = _find_daemon(own)
    end(before)
    for way, ask in ways.items():
        until, told = time.monotonic() + SECONDS, ""
        while "a.py" not in told and time.monotonic() < until:
            try:
                told = ask("query", {"query": "needle"})
            except (
                OSError,
                http.client.HTTPException,
            ) as error:  # HTTP has no relay that waits for the next daemon
                told = repr(error)
                time.sleep(RUNNING_SECONDS)
        yield from _judge(
            f"{way}, {name}",
            holds="a.py" in told and _find_daemon(own) != before,
            told=told,
        )


def _find_daemon(own: dict[str, str]) -> int:
    """Return the daemon's process id."""
    told = subprocess.run(
        [FLASHGREP, "daemon", "status", "--json"],
        env=own,
        check=True,
        capture_output=True,
    )
    return int(json.loads(told.stdout)["pid"])


def _wrong_folder(own: dict[str, str], posts: Posts) -> Iterator[str]:
    command = [FLASHGREP, "mcp", "--project", posts.project]
    refused = subprocess.run(
        command, env=own, input=b"", capture_output=True, check=False, timeout=SECONDS
    )
    told = refused.stderr.decode()
    holds = refused.returncode != 0 and posts.project in told
    yield from _judge("mcp, a folder that is not there", holds=holds, told=told)
    told = posts.ask("query", {"query": "needle"})
    yield from _judge(
        "serve, a folder that is not there",
        holds="nowhere" in told and "a.py" not in told,
        told=told,
    )


def _two_hosts(one: Lines, other: Lines, posts: Posts) -> Iterator[str]:
    """Query from two hosts and the server at once: each must get its own project's answers, each once."""
    hosts = ((one, "a.py"), (other, "b.py"))
    asked = [
        [
            host.send("tools/call", {"name": "query", "arguments": {"query": "needle"}})
            for host, _ in hosts
        ]
        for _ in range(CALLS)
    ]
    served = posts.ask("query", {"query": "needle"})
    for (host, file), numbers in zip(hosts, zip(*asked, strict=True), strict=True):
        answers = [host.receive() for _ in numbers]
        is_whole = sorted(answer["id"] for answer in answers) == list(numbers)
        holds = (
            is_whole
            and all(_text_of(answer).startswith(file) for answer in answers)
            and not host.close()
        )
        yield from _judge(
            f"mcp, two hosts at once: {file}", holds=holds, told=answers[:2]
        )
    yield from _judge("serve, beside two hosts", holds="b.py" in served, told=served)
