"""The help of each command, read from a generated table: what declares the commands takes half a second to import."""

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path(__file__).with_name("help.tsv")
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


@dataclass(slots=True)
class HelpPage:
    """What is said of a command: its usage, text, and tables of names and what they mean."""

    name: str
    """The words of the command; empty: of the whole command line."""
    usage: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def find_page(words: Sequence[str]) -> HelpPage | None:
    """Return the page of the command that these words begin with; None: of a command that is not in the table."""
    lines = TABLE.read_text("utf-8").splitlines()
    # "daemon logs" before "daemon".
    for length in (2, 1):
        name = " ".join(words[:length])
        for at, line in enumerate(lines):
            if line.startswith(f"{PageMark.PAGE}\t{name}\t"):
                return _read_page(line, lines[at + 1 :])
    return None


def _read_page(head: str, lines: Sequence[str]) -> HelpPage:
    _, name, arguments = head.split("\t")
    page = HelpPage(name, f"Usage: fgrep {name} {arguments}".rstrip())
    for line in lines:
        mark, *fields = line.split("\t")
        if mark == PageMark.PAGE:
            break
        if mark == PageMark.PARAGRAPH:
            page.paragraphs.append(fields[0])
        elif mark == PageMark.TABLE:
            page.tables.append((fields[0], {}))
        else:
            page.tables[-1][1][fields[0]] = fields[1]
    return page


def write_page(page: HelpPage) -> None:
    """Print a page, as wide as the terminal."""
    sys.stdout.write("\n".join(lay_out(page)))


def lay_out(page: HelpPage) -> Iterator[str]:
    """Yield the parts of a page, each of which ends with a line end."""
    try:
        columns = os.get_terminal_size(1).columns or MOST_COLUMNS
    except OSError:  # no terminal
        columns = MOST_COLUMNS
    width = min(columns, MOST_COLUMNS) - 2
    yield f"{page.usage}\n"
    for paragraph in page.paragraphs:
        text = textwrap.fill(
            paragraph,
            width,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        yield f"{text}\n"
    names = [name for _, rows in page.tables for name in rows]
    longest = max(map(len, names), default=0)
    label = min(longest, MOST_LABEL, max(LEAST_TEXT, width // 2)) + 4
    for title, rows in page.tables:
        yield "\n".join([f"{title}:", *_lay_out_rows(rows, label, width), ""])


def _lay_out_rows(rows: Mapping[str, str], label: int, width: int) -> Iterator[str]:
    indent = " " * label
    for name, text in rows.items():
        head = f"  {name}".ljust(label)
        if len(name) + 4 > label:
            yield f"  {name}"
            head = indent
        # On a terminal too narrow for two columns the text runs over, but stays whole.
        yield textwrap.fill(
            text,
            max(width, label + LEAST_TEXT),
            initial_indent=head,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
