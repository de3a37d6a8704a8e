"""Makes the pictures of the documentation from real sessions: commands in a terminal (SVG), the page in a browser (PNG).

A clone of this checkout is searched, by a daemon of its own in a temporary folder.
"""

import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from fcntl import ioctl
from io import StringIO
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from scripts.tools.web import find_chromium, serve_page

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURES: Final = ROOT / "docs" / "pictures"
FGREP: Final = Path(sys.executable).with_name("fgrep")
PROJECT: Final = "flashgrep"
COMMANDS: Final = (
    ("fgrep", "query", "def find_hunks", "-C", "1"),
    ("fgrep", "definition", "find_hunks"),
    ("fgrep", "callers", "find_hunks"),
)
COLUMNS: Final = 100
ROWS: Final = 40
PAGE: Final = {
    "q": "find_hunks -file:test",
    "view": "file",
    "path": "flashgrep/parts/git/changes.py",
}
VIEWPORT: Final = (1100, 560)
FONT_FACE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""rich names fonts of another host; the reader's own monospace font does as well."""


def main(arguments: Sequence[str]) -> None:
    """Write the pictures into a folder, by default the documentation's."""
    target = Path(arguments[0]) if arguments else PICTURES
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        project = home / PROJECT
        subprocess.run(["git", "clone", "-q", str(ROOT), str(project)], check=True)
        state, cache = home / "state", home / "cache"
        for private in (state, cache):
            private.mkdir(mode=0o700)
        os.environ["FLASHGREP_STATE_DIR"] = str(state)
        os.environ["FLASHGREP_CACHE_DIR"] = str(cache)
        try:
            subprocess.run(
                [FGREP, "index", str(project)], check=True, capture_output=True
            )
            (target / "terminal.svg").write_text(draw_terminal(project), "utf-8")
            draw_page(project, target / "page.png")
        finally:
            subprocess.run([FGREP, "daemon", "stop"], check=True, capture_output=True)


def draw_terminal(project: Path) -> str:
    """Return the commands with what they print on a terminal, as SVG."""
    console = Console(
        record=True,
        file=StringIO(),
        width=COLUMNS,
        force_terminal=True,
        color_system="truecolor",
    )
    for command in COMMANDS:
        words = " ".join(f"'{word}'" if " " in word else word for word in command)
        console.print(Text(f"$ {words}", style="bold"))
        printed = run_in_terminal([str(FGREP), *command[1:]], project)
        console.print(Text.from_ansi(printed))
    picture = console.export_svg(
        title=PROJECT, theme=DEFAULT_TERMINAL_THEME, unique_id=PROJECT
    )
    return FONT_FACE.sub("", picture)


def run_in_terminal(command: Sequence[str], folder: Path) -> str:
    """Return what a command prints on a terminal of its own, without the ends of lines of terminals."""
    own, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color", "PAGER": "cat"}
    environ.pop("NO_COLOR", None)
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        pieces = []
        while piece := _read(own):
            pieces.append(piece)
    os.close(own)
    return b"".join(pieces).decode().replace("\r\n", "\n").rstrip()


def _read(terminal: int) -> bytes:
    """Return what there is to read; nothing once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def draw_page(project: Path, target: Path) -> None:
    """Save a picture of a file that a search led to."""
    width, height = VIEWPORT
    with serve_page(project) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"]
        )
        tab = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="light"
        )
        tab.goto(link)
        tab.wait_for_url("**/?*")
        parts = urlsplit(tab.url)
        query = urlencode({**PAGE, "project": PROJECT})
        tab.goto(f"{parts.scheme}://{parts.netloc}/?{query}")
        tab.wait_for_selector(".tree [aria-current]")
        tab.wait_for_selector("mark.match")
        tab.keyboard.press("n")
        tab.wait_for_selector(".row.chosen")
        tab.locator(".row.chosen mark.match").click()
        tab.wait_for_selector(".places h2")
        tab.screenshot(path=str(target))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
