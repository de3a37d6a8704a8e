"""Code on a terminal: with line numbers, in the colours of its language.

In the client's process: what a lexer makes of a hostile file must not hold up the daemon.
"""

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Console
from rich.syntax import Syntax

MOST_COLORED: Final = 256 * 1024
"""Characters of a piece in colours; a lexer takes up to a second for a megabyte."""
THEME: Final = "ansi_dark"
"""The sixteen colours that the user's terminal defines."""
NUMBER: Final = "\x1b[32m{}\x1b[0m"
"""As in the lines that ``query`` prints."""


def format_code(pieces: Iterable[Mapping[str, Any]], *, in_color: bool) -> bytes:
    """Return lines, and pieces of code, as a terminal shows them.

    ``pieces``: each with its ``text``; code also with its ``path`` and the number of its ``first`` line.
    """
    lines: list[str] = []
    for piece in pieces:
        text = piece["text"]
        if "path" not in piece:
            lines.append(text)
        else:
            lines += _number(text, piece["path"], piece["first"], in_color=in_color)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _number(text: str, path: str, first: int, *, in_color: bool) -> list[str]:
    if not text:  # an empty file has no line
        return []
    text = text.removesuffix("\n")
    shown = text
    if in_color and len(text) <= MOST_COLORED:
        shown = _color(text, path)
    lines = shown.split("\n")
    width = len(str(first + len(lines) - 1))
    numbered = []
    for number, line in enumerate(lines, first):
        label = f"{number:{width}}"
        if in_color:
            label = NUMBER.format(label)
        numbered.append(f"{label}  {line}")
    return numbered


def _color(text: str, path: str) -> str:
    """Return code with the escape sequences of its colours; as it is if a lexer would change its lines."""
    lexer = Syntax.guess_lexer(path, text)
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=80
    )
    with console.capture() as capture:
        console.print(Syntax(text, lexer, theme=THEME).highlight(text), soft_wrap=True)
    # The console ends what it prints, and the text, which has no line end, may get one.
    colored = capture.get().removesuffix("\n")
    if colored.count("\n") > text.count("\n"):
        colored = colored.removesuffix("\n")
    if colored.count("\n") != text.count("\n"):
        return text
    return colored
