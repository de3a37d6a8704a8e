"""A daemon that ends between a command and its answer: what reads is asked again once, what writes is not."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashgrep.cli import client
from tests.conftest import BOUND, short_folder

VERSION = {"version": "99.9", "folder": "", "changed": False}
ANSWER = {"stdout": "found\n", "stderr": "", "status": 0}


class Dying:
    """A daemon's control socket: it hangs up over the first ``deaths`` commands and answers the others."""

    def __init__(self, folder: Path, deaths: int) -> None:
        self.asked: list[str] = []
        self._deaths = deaths
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / "daemon.sock"))
        self._listening.listen()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    result = self._result(json.loads(line))
                    if result is None:
                        break
                    connection.sendall(
                        json.dumps(
                            {"jsonrpc": "2.0", "result": result, "id": 1}
                        ).encode()
                        + b"\n"
                    )

    def _result(self, request: Any) -> Any:
        if request["method"] == "$/version":
            return VERSION
        self.asked.append(request["params"]["argv"][0])
        return None if len(self.asked) <= self._deaths else ANSWER

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.thread.join(BOUND)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = short_folder()
    monkeypatch.setenv("FLASHGREP_STATE_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def run(
    monkeypatch: pytest.MonkeyPatch, state: Path, deaths: int, *arguments: str
) -> tuple[int, list[str]]:
    """Run a command against a daemon that dies so often; return its status and what was asked."""
    monkeypatch.setattr("sys.argv", ["fgrep", *arguments])
    daemon = Dying(state, deaths)
    try:
        return client.run(), daemon.asked
    finally:
        daemon.close()


def test_what_reads_is_asked_again_once(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_die_of_interrupts", lambda: None)
    assert run(monkeypatch, state, 1, "query", "x") == (0, ["query", "query"])
    assert capfd.readouterr() == ("found\n", "")


def test_but_not_for_ever(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_die_of_interrupts", lambda: None)
    assert run(monkeypatch, state, 9, "query", "x") == (2, ["query", "query"])
    assert "the daemon ended before it answered" in capfd.readouterr().err


@pytest.mark.parametrize(
    "command", ["write-code", "fs-remove", "index-codebase", "watch-codebase"]
)
def test_what_writes_says_that_its_fate_is_unknown(
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.setattr(client, "_die_of_interrupts", lambda: None)
    assert run(monkeypatch, state, 1, command, "a") == (2, [command])
    assert (
        "it may or may not have been carried out: check before you try again"
        in capfd.readouterr().err
    )


def test_what_writes_is_known_to_be_done_though_nobody_reads_what_it_prints(
    state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_die_of_interrupts", lambda: None)
    reader, writer = os.pipe()
    kept = os.dup(1)
    os.close(reader)
    os.dup2(writer, 1)
    try:
        assert run(monkeypatch, state, 0, "write-code", "a") == (
            client.BROKEN_PIPE,
            ["write-code"],
        )
    finally:
        os.dup2(kept, 1)
        os.close(writer)
        os.close(kept)
    assert capfd.readouterr().err == ""
