"""A language server for tests, good or bad: what it does are the words in the file `mode` beside it.

It takes every word of Python for a use of what `def` defines, of the texts that it is told or that are on disk. It
notes its number as a process, and what it was told, in `log`.
"""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

HERE = Path(sys.argv[0]).parent
MODE = set((HERE / "mode").read_text().split())
OPEN: dict[str, str] = {}


def receive() -> dict[str, Any]:
    """Return the next message; the process ends with its input, but where it does not care."""
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    if not size:
        if "stays" in MODE:
            time.sleep(600)
        sys.exit()
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(size))
    return found


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def note(text: str) -> None:
    with (HERE / "log").open("a") as log:
        log.write(text + "\n")


def list_texts(root: str) -> dict[str, str]:
    found = {
        path.as_uri(): path.read_text() for path in sorted(Path(root).rglob("*.py"))
    }
    return found | OPEN


def count_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def find(root: str, uri: str, place: dict[str, int], pattern: str) -> list[Any]:
    line = list_texts(root)[uri].split("\n")[place["line"]]
    word = next(
        one[0]
        for one in re.finditer(r"\w+", line)
        if count_units(line[: one.end()]) >= place["character"]
    )
    found = []
    for each, text in list_texts(root).items():
        for number, one in enumerate(text.split("\n")):
            for match in re.finditer(pattern % word, one):
                start = {
                    "line": number,
                    "character": count_units(one[: match.start(1)]),
                }
                found.append(
                    {
                        "uri": each,
                        "range": {
                            "start": start,
                            "end": {
                                **start,
                                "character": count_units(one[: match.end(1)]),
                            },
                        },
                    }
                )
    return found


def grow() -> None:
    """Have a process of our own hold memory, as those do that servers start."""
    grown, tell = os.pipe()
    if child := os.fork():
        note(f"child {child}")
        os.read(grown, 1)
        return
    held = b"x" * (100 << 20)
    os.write(tell, held[:1])
    time.sleep(600)


def answer(root: str, method: str, params: Any) -> list[Any]:
    uri, place = params["textDocument"]["uri"], params["position"]
    note(f"{method} {uri}")
    if "grows" in MODE:
        grow()
    if "crashes" in MODE:
        os.abort()
    if "stays" in MODE:
        time.sleep(600)
    if "floods" in MODE:
        while True:
            send(
                method="window/logMessage",
                params={"type": 3, "message": "x" * 1_000_000},
            )
    if "prints" in MODE:
        sys.stdout.buffer.write(b"Loading ...\n" * 10_000)
        sys.stdout.buffer.flush()
    if "huge" in MODE:
        sys.stdout.buffer.write(b"Content-Length: 999999999\r\n\r\n")
        sys.stdout.buffer.flush()
    if "waits" in MODE:
        # Whoever opens the other end knows that the question is here, and lets it be
        # answered.
        (HERE / "gate").read_bytes()
    if "lies" in MODE:
        start = {"line": 0, "character": 0}
        far = {"start": {"line": 10**9, "character": 10**9}, "end": start}
        return [
            {"uri": "file:///etc/passwd", "range": {"start": start, "end": start}},
            {
                "uri": Path(root).as_uri() + "/../other/secret.py",
                "range": {"start": start, "end": start},
            },
            {
                "uri": Path(root).as_uri() + "/link.py",
                "range": {"start": {"line": 0, "character": 4}, "end": start},
            },
            {"uri": uri, "range": far},
            {"uri": uri, "range": {"start": {"line": -1, "character": True}}},
            {
                "uri": "https://example.org/a.py",
                "range": {"start": start, "end": start},
            },
            {
                "uri": uri.replace("%", "%25") + "%00",
                "range": {"start": start, "end": start},
            },
            "nonsense",
            None,
            {"uri": 7},
        ]
    return find(
        root,
        uri,
        place,
        r"def (%s)\b" if method.endswith("definition") else r"\b(%s)\b",
    )


def main() -> None:
    root = ""
    note(f"pid {os.getpid()}")
    while True:
        message = receive()
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            root = unquote(params["rootUri"].removeprefix("file://"))
            send(id="asks", method="workspace/configuration", params={"items": [{}]})
            send(
                id=message["id"],
                result={"capabilities": {"positionEncoding": "utf-16"}},
            )
        elif method == "textDocument/didOpen":
            OPEN[params["textDocument"]["uri"]] = params["textDocument"]["text"]
        elif method == "textDocument/didChange":
            OPEN[params["textDocument"]["uri"]] = params["contentChanges"][0]["text"]
            note(f"version {params['textDocument']['version']}")
        elif method == "textDocument/didClose":
            del OPEN[params["textDocument"]["uri"]]
        elif method == "$/cancelRequest":
            note(f"cancelled {params['id']}")
        elif method == "workspace/didChangeWatchedFiles":
            note(
                " ".join(
                    f"{one['type']}:{unquote(one['uri']).rpartition('/')[2]}"
                    for one in params["changes"]
                )
            )
        elif "id" in message and method and method.startswith("textDocument/"):
            send(id=message["id"], result=answer(root, method, params))


main()
