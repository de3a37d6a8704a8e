"""The picker for terminals without fzf, using curses: an input line, and its results."""

import curses
import json
import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from flashgrep.base.model import path_from_json
from flashgrep.cli.daemon_client import find_user_paths
from flashgrep.rpc.connect import connect_folder, connect_or_alone, send_request

Line = tuple[str, int, int, str]
"""Path, line, column, text."""
PIECE: Final = 1 << 16
ESCAPE = "\x1b"
BACKSPACES = frozenset({"\x7f", "\b"})
ENTERS = frozenset({"\r", "\n"})
UP = frozenset({curses.KEY_UP, "\x10"})
DOWN = frozenset({curses.KEY_DOWN, "\x0e"})
METHODS: Final[dict[str, tuple[str, Callable[[str], dict[str, Any]]]]] = {
    "text": ("query", lambda text: {"query": text, "limit": 200}),
    "files": ("list_files", lambda text: {"query": text or None, "limit": 200}),
    "symbols": (
        "get_symbol",
        lambda text: {"symbol_name": text, "match": "fuzzy", "limit": 200},
    ),
    "meaning": ("search_code", lambda text: {"query": text, "limit": 30}),
}


class PlainPicker:
    """The text typed, its results, and the selected one."""

    def __init__(self, connection: socket.socket, kind: str, text: str) -> None:
        self._connection = connection
        self._kind = kind
        self.text = text
        self.lines = list[Line]()
        self.at = 0
        self.problem = ""
        self._asked = self._last = (
            0  # the query in flight, if any, and the last one sent
        )
        self._held = b""

    def ask(self) -> None:
        """Query for the text typed; the previous query is abandoned."""
        method, make_params = METHODS[self._kind]
        if self._asked:
            self._send({"method": "$/cancelRequest", "params": {"id": self._asked}})
        if not self.text and self._kind != "files":
            self._asked = 0
            self.lines = []
            self.problem = ""
            return
        self._asked = self._last = self._last + 1
        params = {
            name: value
            for name, value in make_params(self.text).items()
            if value is not None
        }
        self._send({"id": self._asked, "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.sendall(
            json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        )

    def read(self) -> None:
        """Process what the daemon sends.

        Raises:
            ConnectionError: it ended.

        """
        piece = self._connection.recv(PIECE)
        if not piece:
            raise ConnectionResetError("the daemon ended")
        *lines, self._held = (self._held + piece).split(b"\n")
        for answer in map(json.loads, lines):
            # Answers to abandoned queries are ignored, even if they were already on the
            # way.
            if answer.get("id") == self._asked:
                results = answer.get("result", {}).get("results", [])
                self.lines = [make_line(result) for result in results]
                self.at = 0
                self.problem = answer.get("error", {}).get("message", "")

    def press(self, key: str | int) -> Line | None:
        """Return the selected line if the key accepts it."""
        if key in ENTERS:
            if self.lines:
                return self.lines[self.at]
            return None
        if key in UP | DOWN:
            self.at = max(
                0, min(len(self.lines) - 1, self.at + (1 if key in DOWN else -1))
            )
        elif key in BACKSPACES or key == curses.KEY_BACKSPACE:
            self.text = self.text[:-1]
            self.ask()
        elif isinstance(key, str) and key.isprintable():
            self.text += key
            self.ask()
        return None

    def draw(self, screen: curses.window) -> None:
        """Show the state."""
        height, width = screen.getmaxyx()

        def put(row: int, text: str, look: int = 0) -> None:
            # A control character of a file must not reach the terminal; wide characters
            # may not fit.
            with suppress(curses.error):
                screen.addnstr(
                    row,
                    0,
                    "".join(letter if letter.isprintable() else "?" for letter in text),
                    width - 1,
                    look,
                )

        screen.erase()
        top = max(0, self.at - height + 3)
        for row, (path, line, _, text) in enumerate(
            self.lines[top : top + height - 1], 1
        ):
            if self._kind == "files":
                shown_text = path
            else:
                shown_text = f"{path}:{line}: {text.strip()}"
            attribute = 0
            if top + row - 1 == self.at:
                attribute = curses.A_REVERSE
            put(row, shown_text, attribute)
        if self.problem:
            put(1, self.problem)
        put(0, f"{self._kind}> {self.text}")
        screen.refresh()


def make_line(found: dict[str, Any]) -> Line:
    """Return the place of a result of any method."""
    line = found.get("line_number") or found.get("start_line") or 1
    text = (
        found.get("text")
        or found.get("signature")
        or found.get("symbol_name")
        or found.get("name")
        or ""
    )
    path = path_from_json(found["file_path"], found.get("file_path_bytes"))
    return os.fsdecode(path), line, found.get("column") or 1, text


def pick(kind: str, text: str) -> str:
    """Return ``path:line:column`` of the selection (for a file, its path), or nothing.

    Raises:
        OSError: there is no terminal, or no daemon can be reached.

    """
    paths = find_user_paths()
    folder = str(Path.cwd())
    with connect_folder(
        connect_or_alone(paths, os.environ), paths, os.environ, folder, adopt=True
    ) as connection:
        root: Any = send_request(connection, "stats", {})["result"]["root"]
        picker = PlainPicker(connection, kind, text)
        try:
            with on_terminal():
                chosen = curses.wrapper(lambda screen: run(screen, picker, connection))
        except curses.error as error:
            raise OSError(f"this terminal cannot show a picker: {error}") from None
    if not chosen:
        return ""
    path = os.path.relpath(Path(root, chosen[0]), folder)
    if kind == "files":
        return path
    return f"{path}:{chosen[1]}:{chosen[2]}"


def run(
    screen: curses.window, picker: PlainPicker, connection: socket.socket
) -> Line | None:
    """Show the picker until something is chosen, or the user leaves."""
    # Milliseconds; curses waits a second by default for the rest of an escape sequence.
    curses.set_escdelay(25)
    # select waits, for keys and answers alike; get_wch must not.
    screen.nodelay(True)
    picker.ask()
    while True:
        picker.draw(screen)
        readable, _, _ = select.select([sys.stdin, connection], [], [])
        if connection in readable:
            picker.read()
        while (key := read_key(screen)) is not None:
            if key == ESCAPE:
                return None
            chosen = picker.press(key)
            if chosen is not None:
                return chosen


def read_key(screen: curses.window) -> str | int | None:
    """Return a key that was pressed, or None where none was."""
    try:
        return screen.get_wch()
    except curses.error:
        return None


@contextmanager
def on_terminal() -> Iterator[None]:
    """Point standard input and output at the terminal, though they may be pipes: the result is for the caller."""
    terminal = os.open("/dev/tty", os.O_RDWR)
    descriptors = [os.dup(0), os.dup(1)]
    try:
        os.dup2(terminal, 0)
        os.dup2(terminal, 1)
        yield
    finally:
        os.dup2(descriptors[0], 0)
        os.dup2(descriptors[1], 1)
        for descriptor in (*descriptors, terminal):
            os.close(descriptor)
