"""A person at a terminal: a shell on a pseudo-terminal, keys that are typed, and the screen as an emulator shows it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conftest import BOUND
from tests.support.interrupts import allow_interrupts

pyte: Any = pytest.importorskip("pyte")

T = TypeVar("T")
HEIGHT = 24
PROMPT = "<\\#:$?> "
AT_THE_PROMPT = re.compile(r"<(\d+):(\d+)>$")
ROWS_KEPT = 5_000
"""How many rows that have left the screen at its top are remembered."""

# The shell opens the terminal itself, as the leader of a session, so that an interrupt typed there reaches what it runs.
OPENS_ITS_TERMINAL = (
    'PS1="$1" exec bash --noprofile --norc --noediting <"$0" >"$0" 2>&1'
)


class Screen(pyte.HistoryScreen):  # type: ignore[misc]  # pyte has no types
    """pyte's screen, for programs that ask for more than it knows."""

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        """Set how characters look; the private form is about keys (xterm's modifyOtherKeys, sent by Vim)."""
        if not private:
            super().select_graphic_rendition(*attributes)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person sees once a command has ended."""

    status: int
    lines: list[str]
    colored: list[str]
    """The stretches of text that are in a colour, bold or otherwise marked."""

    @property
    def text(self) -> str:
        """Return all lines as one text."""
        return "\n".join(self.lines)


class Terminal:
    """A shell in a folder, on a terminal of some width."""

    def __init__(self, folder: Path, environ: dict[str, str], width: int) -> None:
        self.width = width
        self._screen = Screen(width, HEIGHT, ROWS_KEPT)
        self._stream = pyte.ByteStream(self._screen)
        self._keyboard, theirs = pty.openpty()
        size = struct.pack("HHHH", HEIGHT, width, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        self._typed = ""
        self._prompts = 1
        allow_interrupts()
        self._shell = subprocess.Popen(
            ["bash", "-c", OPENS_ITS_TERMINAL, os.ttyname(theirs), PROMPT],
            cwd=folder,
            env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environ},
            start_new_session=True,
        )
        self._read_until(self._find_status)
        os.close(theirs)

    def close(self) -> None:
        """Close the window: the system ends what runs in it."""
        os.close(self._keyboard)
        self._shell.wait(BOUND)

    def press(self, keys: str) -> None:
        """Press keys; a line feed is Enter."""
        os.write(self._keyboard, keys.encode())

    def type(self, command: str) -> Shown:
        """Clear the screen, type a command, wait until it has ended, and look."""
        self.start(command)
        return self.finish()

    def start(self, command: str) -> None:
        """Clear the screen and type a command, which may wait for keys."""
        self._screen.reset()
        self._typed = command
        self._prompts += 1
        self.press(f"{command}\n")

    def wait_for(self, text: str) -> list[str]:
        """Wait until the screen shows a text, and return its lines."""
        self._read_until(lambda: text in "\n".join(self._screen.display) or None)
        return [line.rstrip() for line in self._screen.display]

    def wait_for_cursor(self, text: str) -> None:
        """Wait until the cursor stands on a text."""

        def is_there() -> bool | None:
            cursor = self._screen.cursor
            line = self._screen.display[cursor.y]
            return line[cursor.x :].startswith(text) or None

        self._read_until(is_there)

    def finish(self) -> Shown:
        """Wait until the command has ended, and look."""
        status = self._read_until(self._find_status)
        first = -(-len(self._typed) // self.width)
        bottom = self._screen.cursor.y
        visible = [self._screen.buffer[number] for number in range(bottom)]
        rows = [*self._screen.history.top, *visible][first:]
        lines = [self._read_row(row) for row in rows]
        colored = [piece for row in rows for piece in self._find_colored(row)]
        return Shown(status, lines, colored)

    def _read_row(self, row: Any) -> str:
        return "".join(row[column].data for column in range(self.width)).rstrip()

    def _find_colored(self, row: Any) -> list[str]:
        pieces = [""]
        for column in range(self.width):
            character = row[column]
            is_plain = character._replace(data=" ") == self._screen.default_char
            if is_plain:
                pieces.append("")
            else:
                pieces[-1] += character.data
        return [piece for piece in pieces if piece]

    def _find_status(self) -> int | None:
        """Return the status in the prompt that the cursor stands behind, once it is the awaited one."""
        cursor = self._screen.cursor
        # Behind it may be the rest of a full screen: pyte has no second one to go back to.
        line = self._screen.display[cursor.y][: cursor.x]
        prompt = AT_THE_PROMPT.search(line.rstrip())
        if prompt is None or int(prompt[1]) != self._prompts:
            return None
        return int(prompt[2])

    def _read_until(self, find: Callable[[], T | None]) -> T:
        """Show what arrives until something is found."""
        end = time.monotonic() + BOUND
        while (found := find()) is None:
            left = end - time.monotonic()
            assert left > 0, "\n".join(self._screen.display)
            readable, _, _ = select.select([self._keyboard], [], [], left)
            assert readable, "\n".join(self._screen.display)
            self._stream.feed(os.read(self._keyboard, 65536))
        return found
