"""Measures `fgrep lsp` as editors use it: against other language servers on the same files, and with ten editors."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, Final, cast

FGREP: Final = Path(sys.executable).with_name("flashgrep")
OTHERS: Final = {".c": ["clangd", "--log=error"], ".go": ["gopls"], ".py": ["pylsp"]}
"""Each language's own server; used if installed."""
CAPABILITIES: Final = {
    "general": {"positionEncodings": ["utf-16"]},
    "experimental": {"serverStatusNotification": True},
    "textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}},
}
CALL: Final = re.compile(
    r"(?<![\w.])(?!(?:if|for|while|switch|return|sizeof|def|func|print|len|class)\b)([A-Za-z_]\w{3,})\("
)
FILES, PLACES, NAMES, OUTLINES = 12, 5, 20, 20
LEAST_BYTES: Final = 2_000
LARGE_LINES: Final = 5_000
EDITORS, SECONDS, KEYS_A_SECOND = 10, 15, 12


@dataclass(slots=True)
class LanguageServer:
    """A language server in a process, with blocking calls."""

    command: list[str]
    root: Path
    environ: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)
    _input: IO[bytes] = field(init=False)
    _output: IO[bytes] = field(init=False)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environ,
            cwd=self.root,
        )
        self._input, self._output = (
            cast("IO[bytes]", self.process.stdin),
            cast("IO[bytes]", self.process.stdout),
        )
        folders = [{"uri": self.root.as_uri(), "name": self.root.name}]
        self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": self.root.as_uri(),
                "workspaceFolders": folders,
                "capabilities": CAPABILITIES,
                "initializationOptions": self.options,
            },
        )
        self.send({"method": "initialized", "params": {}})

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._input.flush()

    def ask(self, method: str, params: Any) -> Any:
        """Return the result of a request, None for an error; requests of the server are answered with null."""
        number = next(self._ids)
        self.send({"id": number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == number and "method" not in message:
                return message.get("result")

    def wait_until_loaded(self) -> None:
        """Wait until a server that says how far it is has read the whole project."""
        while True:
            message = self._read()
            is_status = message.get("method") == "experimental/serverStatus"
            if is_status and message["params"]["quiescent"]:
                return

    def _read(self) -> dict[str, Any]:
        """Return the next message; a request of the server is answered with null."""
        length = 0
        while header := self._output.readline().strip():
            if header.lower().startswith(b"content-length:"):
                length = int(header[15:])
        if not length:
            raise ConnectionError(f"{self.command[0]} ended")
        message: dict[str, Any] = json.loads(self._output.read(length))
        if "method" in message and "id" in message:
            self.send({"id": message["id"], "result": None})
        return message

    def open(self, path: Path, text: str, language: str = "") -> None:
        """Open a document."""
        document = {
            "uri": path.as_uri(),
            "languageId": language,
            "version": 1,
            "text": text,
        }
        self.send(
            {"method": "textDocument/didOpen", "params": {"textDocument": document}}
        )

    def memory(self) -> int:
        """Return the memory of the process, in MB."""
        return read_memory(self.process.pid)

    def close(self) -> None:
        """Stop the server."""
        try:
            self.ask("shutdown", None)
            self.send({"method": "exit"})
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def read_memory(pid: int) -> int:
    """Return the resident memory, in MB, of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        * os.sysconf("SC_PAGESIZE")
        >> 20
    )
    return own + sum(read_memory(int(child)) for child in children)


def read_processor_time(pid: int) -> float:
    """Return the processor time, in ms, of a process and its ended children."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    return 1000 * sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def measure(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the time that a call takes, in ms, and its result."""
    began = time.perf_counter()
    result = run()
    return 1000 * (time.perf_counter() - began), result


def show(name: str, times: list[float], more: str = "") -> None:
    """Print percentiles."""
    times = sorted(times)
    at = (
        [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.99)]
        if times
        else [0.0, 0.0]
    )
    print(
        f"  {name:34} {len(times):5}  p50 {at[0]:8.1f} ms  p99 {at[1]:8.1f} ms  {more}",
        flush=True,
    )


@dataclass(frozen=True, slots=True)
class Questions:
    """The requests to all servers of a language: files, positions of calls in them, and names."""

    files: dict[Path, str]
    places: list[tuple[Path, int, int]]
    names: list[str]
    large: Path


def choose_questions(root: Path, suffix: str) -> Questions | None:
    """Return requests spread over a tree's files of one language, the same in each run; None: too few files."""
    paths = sorted(
        path
        for path in root.rglob(f"*{suffix}")
        if path.is_file() and path.stat().st_size > LEAST_BYTES
    )
    if len(paths) < FILES:
        return None
    large = min(
        paths,
        key=lambda path: (abs(path.read_bytes().count(b"\n") - LARGE_LINES), path),
    )
    chosen = [paths[at * len(paths) // FILES] for at in range(FILES)]
    files = {path: path.read_text(errors="replace") for path in (*chosen, large)}
    places, names = list[tuple[Path, int, int]](), list[str]()
    for path in chosen:
        lines = files[path].splitlines()
        calls = [
            (path, at, found.start(1))
            for at, line in enumerate(lines)
            if line[:1].isspace()
            and line.isascii()
            and line.lstrip()[:1] not in {"#", "/", "*", '"'}
            for found in islice(CALL.finditer(line), 1)
        ]
        places += calls[:: max(1, len(calls) // PLACES)][:PLACES]
        names += [CALL.match(lines[at], column)[1] for _, at, column in calls[:PLACES]]  # type: ignore[index]
    return Questions(files, places, list(dict.fromkeys(names))[:NAMES], large)


def compare_servers(root: Path, environ: dict[str, str]) -> None:
    """Print the times of `fgrep lsp` and of each language's own server for the same requests about a tree."""
    for suffix, command in OTHERS.items():
        asked = choose_questions(root, suffix)
        if asked is None:
            continue
        for words in ([str(FGREP), "lsp"], command):
            if shutil.which(words[0]) is None:
                print(f"{words[0]} is not installed", flush=True)
                continue
            began = time.perf_counter()
            with closing(LanguageServer(words, root, environ)) as server:
                measure_server(server, asked, began)


def measure_server(server: LanguageServer, asked: Questions, began: float) -> None:
    """Print the times of one server."""
    print(
        f"{' '.join([Path(server.command[0]).name, *server.command[1:]])}, {asked.large.suffix}",
        flush=True,
    )

    def define(path: Path, line: int, column: int) -> Any:
        where = {
            "textDocument": {"uri": path.as_uri()},
            "position": {"line": line, "character": column + 1},
        }
        return server.ask("textDocument/definition", where)

    def outline(path: Path) -> Any:
        return server.ask(
            "textDocument/documentSymbol", {"textDocument": {"uri": path.as_uri()}}
        )

    first, *_ = asked.places
    server.open(first[0], asked.files[first[0]])
    define(*first)
    print(
        f"  started, first definition after {1000 * (time.perf_counter() - began):.0f} ms"
    )
    for path, text in asked.files.items():
        if path != first[0]:
            server.open(path, text)
        outline(path)  # warm-up: the server reads and parses the file
    found = [measure(lambda place=place: define(*place)) for place in asked.places]  # type: ignore[misc]
    show(
        "definition",
        [took for took, _ in found],
        f"{sum(bool(one) for _, one in found)} found",
    )
    found = [
        measure(lambda name=name: server.ask("workspace/symbol", {"query": name}))  # type: ignore[misc]
        for name in asked.names
    ]
    show(
        "workspace/symbol",
        [took for took, _ in found],
        f"{sum(bool(one) for _, one in found)} found",
    )
    found = [measure(lambda: outline(asked.large)) for _ in range(OUTLINES)]
    lines = asked.files[asked.large].count("\n")
    show(
        f"documentSymbol, {lines:,} lines",
        [took for took, _ in found],
        f"{len(found[0][1] or [])} at the top",
    )
    print(f"  memory {server.memory()} MB", flush=True)


def measure_editors(root: Path, environ: dict[str, str], daemon: int) -> None:
    """Print the waiting times of ten editors at once: each types into its own file, searches, and opens definitions."""
    suffix = max(OTHERS, key=lambda one: sum(1 for _ in root.rglob(f"*{one}")))
    asked = choose_questions(root, suffix)
    if asked is None:
        print(f"no {EDITORS} editors: too few files in {', '.join(OTHERS)}")
        return
    times: dict[str, list[float]] = {
        "live grep, a key": [],
        "definition, text just typed": [],
    }
    memory, failed = [], []

    def type_and_ask(number: int) -> None:
        path = [*asked.files][number]
        places = [place for place in asked.places if place[0] == path]
        try:
            with closing(LanguageServer([str(FGREP), "lsp"], root, environ)) as editor:
                editor.open(path, asked.files[path])
                type_text(editor, path, places, asked.names[number], times)
                memory.append(editor.memory())
        except (OSError, ValueError) as error:
            failed.append(str(error))

    began = read_processor_time(daemon)
    threads = [
        threading.Thread(target=type_and_ask, args=(number,))
        for number in range(EDITORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{EDITORS} editors, {KEYS_A_SECOND} keys a second each, for {SECONDS} s")
    for name, taken in times.items():
        show(name, taken)
    took = (read_processor_time(daemon) - began) / max(1, sum(map(len, times.values())))
    print(f"  processor time of the daemon {took:.1f} ms a question")
    print(
        f"  memory: fgrep lsp at most {max(memory, default=0)} MB, the daemon {read_memory(daemon)} MB"
    )
    if failed:
        sys.exit(f"{len(failed)} editors failed: {failed[0]}")


def type_text(
    editor: LanguageServer,
    path: Path,
    places: list[tuple[Path, int, int]],
    word: str,
    times: dict[str, list[float]],
) -> None:
    """Type a word at the top of a file, repeatedly.

    Each keystroke searches for the text typed so far; every eighth also goes to a definition in the unsaved text.
    """
    uri, began, typed = path.as_uri(), time.perf_counter(), 0
    search, define = times
    while time.perf_counter() - began < SECONDS:
        length = typed % len(word)
        start = {"line": 0, "character": length}
        change = {"range": {"start": start, "end": start}, "text": word[length]}
        if length == 0:  # on its own line
            change["text"] = f"{word[0]}\n"
        typed += 1
        document = {"uri": uri, "version": typed + 1}
        editor.send({
            "method": "textDocument/didChange", "params": {"textDocument": document, "contentChanges": [change]}
        })  # fmt: skip
        if typed % 8 and length > 1:
            arguments = [word[: length + 1], {"mode": "literal"}]
            asked = {"command": "flashgrep.search", "arguments": arguments}
            times[search].append(
                measure(lambda: editor.ask("workspace/executeCommand", asked))[0]  # noqa: B023
            )
        elif places:
            _, line, column = places[typed % len(places)]
            where = {
                "line": line + (typed - 1) // len(word) + 1,
                "character": column + 1,
            }
            params = {"textDocument": {"uri": uri}, "position": where}
            times[define].append(
                measure(lambda: editor.ask("textDocument/definition", params))[0]  # noqa: B023
            )
        rest = began + typed / KEYS_A_SECOND - time.perf_counter()
        if rest > 0:
            time.sleep(rest)
