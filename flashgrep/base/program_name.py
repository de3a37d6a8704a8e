"""The name that people typed: what is printed for them says it, too.

Texts say ``fgrep``. Who typed ``flashgrep`` may have another ``fgrep`` first on PATH, so what they are told to type next
must say that. Imported by the thin client: nothing heavy here.
"""

import sys

OF_GREP = frozenset({"fgrep", "fgrep.exe"})
"""Names of the program that may mean the classic one."""
PREFIX = "fgrep: "
BEFORE = " `'("
"""What stands before a command in a text."""


def is_called_fgrep() -> bool:
    """Return whether this process was started by the name that may mean the classic ``fgrep``."""
    return sys.argv[0].rpartition("/")[2] in OF_GREP


def name_program(text: str) -> str:
    """Return a text of ours with its commands as this process was called.

    A name of the program begins a line, before a colon, or is a word before a command.
    """
    if is_called_fgrep() or "fgrep" not in text:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        named = line
        for mark in BEFORE:
            named = named.replace(f"{mark}fgrep ", f"{mark}flashgrep ")
        if line.startswith(PREFIX):
            named = f"flashgrep: {named.removeprefix(PREFIX)}"
        lines.append(named)
    return "\n".join(lines)


def tell(text: str) -> None:
    """Write a text of ours, with its line feeds, to standard error, its commands as this process was called."""
    # There is none if whoever started this process has closed it.
    if sys.stderr is not None:
        sys.stderr.write(name_program(text))
