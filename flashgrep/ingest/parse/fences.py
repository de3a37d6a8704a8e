"""Code in prose: fences of Markdown, in lists and quotes as well, and code blocks of reStructuredText."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from flashgrep.languages import LANGUAGES, SCRIPTS

_FENCE: Final = re.compile(
    rb"^([ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t>]++)?)(`{3,}+|~{3,}+)[ \t]*+(\{?[ \t]*+\.?([\w+#-]*+)[^`\r\n]*+)\r?$",
    re.MULTILINE,
)
_DIRECTIVE: Final = re.compile(
    rb"^([ \t]*)\.\.[ \t]+(?:code|code-block|sourcecode)::[ \t]*([\w+#-]+)[ \t]*\r?\n"
    rb"(?:[ \t]+:[\w-]+:[^\n]*\n)*+((?:[ \t]*+\r?\n|\1[ \t]++[^\n]*(?:\n|\Z))*+)",
    re.MULTILINE,
)
_QUOTED: Final = re.compile(rb"^[ \t]{0,3}>[ \t>]*", re.MULTILINE)
_MOST_FENCES: Final = 2_000
"""Of a text; each is parsed by itself, since one that is broken must not hide the next."""


class Insert(NamedTuple):
    """Code in a file of another language: where it begins, and its text."""

    language: str
    start: int
    text: bytes
    defines: bool = False
    """Whether others can use what is defined there: no example can be used, nor a style by the script alongside it."""


def read_fences(language: str, data: bytes) -> Iterator[Insert]:
    """Yield the code in fences of a text in Markdown, those in lists and quotes as well, and in blocks of the other."""
    if language == "rst":
        for found in islice(_DIRECTIVE.finditer(data), _MOST_FENCES):
            if name := _code_language(found[2]):
                yield Insert(name, found.start(3), found[3])
        return
    at, number = 0, 0
    while number < _MOST_FENCES and (opened := _FENCE.search(data, at)):
        last = rb"^[ \t>]*+%b{%d,}+[ \t]*+\r?$" % (opened[2][:1], len(opened[2]))
        closed = re.compile(last, re.MULTILINE).search(data, opened.end())
        start, end = min(opened.end() + 1, len(data)), closed.start() if closed else len(data)
        at, number = closed.end() if closed else len(data), number + 1
        if name := _code_language(opened[4]):
            text = data[start:end]
            if b">" in opened[1]:
                text = _QUOTED.sub(lambda quoted: b" " * len(quoted[0]), text)
            yield Insert(name, start, text)


def _code_language(named: bytes) -> str:
    """Return the language that a fence is marked with, if that is code whose definitions we read."""
    return _NAMES.get(named.decode("utf-8", "replace").lower(), "")


_NAMES: Final = {
    name: row.name
    for row in LANGUAGES.values()
    if row.nature == "code" and row.symbols and row.symbols != SCRIPTS
    for name in (row.name, *row.aliases.split(), *(file.lower() for file in row.files.split() if file.isalnum()))
}
"""Languages by what people mark a fence with: their names and the endings of their files."""
