"""The help of each command, read from a generated table: what declares the commands takes half a second to import.

Nothing heavy is imported here, either: dataclasses, pathlib and textwrap took half of the time of a page.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from flashgrep.base.program_name import name_program

FOLDER = os.path.dirname(__file__)
TABLE = os.path.join(FOLDER, "help.tsv")
"""Lines of a mark and its fields, separated by tabs: see ``PageMark``."""
MOST_COLUMNS = 100
"""Longer lines are hard to read."""
MOST_LABEL = 32
"""Columns for names; behind a longer one the text begins on the next line."""
LEAST_TEXT = 16
"""Columns for what is said of a name, however narrow the terminal is."""


class PageMark:
    """What a line of the table has, by its first field."""

    PAGE = "="
    """The command's words, and its arguments as in its usage."""
    PARAGRAPH = "p"
    TABLE = "h"
    """The heading of the rows that follow."""
    ROW = "r"
    """A name, and what is said of it."""


class HelpPage:
    """What is said of a command: its usage, text, and tables of names and what they mean.

    ``name``: the words of the command; empty: of the whole command line.
    """

    def __init__(self, name: str, usage: str) -> None:
        self.name = name
        self.usage = usage
        self.paragraphs: list[str] = []
        self.tables: list[tuple[str, dict[str, str]]] = []


def find_page(words: Sequence[str]) -> HelpPage | None:
    """Return the page of the command that these words begin with; None: of a command that is not in the table."""
    with open(TABLE, encoding="utf-8") as table:
        lines = table.read().splitlines()
    # "daemon logs" before "daemon".
    for length in (2, 1):
        name = " ".join(words[:length])
        beginning = f"{PageMark.PAGE}\t{name}\t"
        for at, line in enumerate(lines):
            if line.startswith(beginning):
                following = lines[at + 1 :]
                return _read_page(line, following)
    return None


def _read_page(head: str, lines: Sequence[str]) -> HelpPage:
    _, name, arguments = head.split("\t")
    usage = f"Usage: fgrep {name} {arguments}"
    page = HelpPage(name, usage.rstrip())
    for line in lines:
        mark, *fields = line.split("\t")
        if mark == PageMark.PAGE:
            break
        if mark == PageMark.PARAGRAPH:
            page.paragraphs.append(fields[0])
        elif mark == PageMark.TABLE:
            page.tables.append((fields[0], {}))
        else:
            _, rows = page.tables[-1]
            rows[fields[0]] = fields[1]
    return page


def write_page(page: HelpPage) -> None:
    """Print a page, as wide as the terminal."""
    text = "\n".join(lay_out(page))
    sys.stdout.write(text)


def lay_out(page: HelpPage) -> Iterator[str]:
    """Yield the parts of a page, each of which ends with a line end."""
    try:
        columns = os.get_terminal_size(1).columns or MOST_COLUMNS
    except OSError:  # no terminal
        columns = MOST_COLUMNS
    columns = min(columns, MOST_COLUMNS)
    width = columns - 2
    yield name_program(f"{page.usage}\n")
    for paragraph in page.paragraphs:
        yield f"{_fill(name_program(paragraph), width, '  ', '  ')}\n"
    longest = 0
    for _, rows in page.tables:
        longest = max(longest, *map(len, rows))
    half = max(LEAST_TEXT, width // 2)
    label = min(longest, MOST_LABEL, half) + 4
    for title, rows in page.tables:
        lines = [f"{title}:"]
        lines += _lay_out_rows(rows, label, width)
        lines.append("")
        yield "\n".join(lines)


def _lay_out_rows(rows: Mapping[str, str], label: int, width: int) -> Iterator[str]:
    indent = " " * label
    # On a terminal too narrow for two columns the text runs over, but stays whole.
    right = max(width, label + LEAST_TEXT)
    for name, text in rows.items():
        named = f"  {name}"
        if len(named) + 2 <= label:
            head = named.ljust(label)
        else:
            yield named
            head = indent
        yield _fill(name_program(text), right, head, indent)


def _fill(text: str, width: int, head: str, indent: str) -> str:
    """Return a text in lines of at most ``width`` columns; a longer word stays whole.

    ``head``: what the first line begins with; ``indent``: the others.
    """
    lines: list[str] = []
    line = head
    space = ""
    for word in text.split():
        if space and len(line) + len(word) >= width:
            lines.append(line)
            line = indent
            space = ""
        line += space + word
        space = " "
    lines.append(line)
    return "\n".join(lines)
