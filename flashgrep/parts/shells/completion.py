"""``fgrep completion``: print what a shell reads to complete commands and options, or the manual page."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

FILES: Final = {
    "bash": "fgrep.bash",
    "zsh": "_fgrep",
    "fish": "fgrep.fish",
    "man": "fgrep.1",
}
FOLDER: Final = Path(__file__).parent / "files"
"""Written by ``scripts/generate``."""


def completion(
    kind: Annotated[
        Literal["bash", "zsh", "fish", "man"],
        typer.Argument(help="bash, zsh, fish; man: the manual page."),
    ],
) -> None:
    """Print the completion of commands and options for a shell, or the manual page."""
    sys.stdout.write((FOLDER / FILES[kind]).read_text("utf-8"))
