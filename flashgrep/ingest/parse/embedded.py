"""Scripts inside of another language: components of Vue, Svelte and Astro, pages, ERB, the cells of notebooks.

The rest of the file is blanked out, so that what is found in a script stands where it is in the file.
"""

import re
from typing import Final

from flashgrep.languages import LANGUAGES, SCRIPTS, WORDS

_SCRIPT: Final = re.compile(rb"<script\b([^>]*)>(.*?)(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_FRONT_MATTER: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)(?:^---|\Z)", re.DOTALL | re.MULTILINE)
_TYPED: Final = re.compile(rb"""\blang\s*=\s*["']?(tsx|ts|typescript)\b""", re.IGNORECASE)
_NO_CODE: Final = re.compile(rb"""\btype\s*=\s*["']?(?!module|text/(?:java|type)script|application/javascript)""")
_BLANKED: Final = re.compile(rb"[^\r\n]")


_RUBY: Final = re.compile(rb"<%[-=]?(?![#%])(.*?)(?:-?%>|\Z)", re.DOTALL)
_CELL_MARK: Final = re.compile(rb'"(?:cell_type"\s*:\s*"(\w+)"|source"\s*:\s*(\[?))')
_STRING: Final = re.compile(rb'\s*+,?\s*+"((?:[^"\\\n]|\\.)*+)"')
_ESCAPE: Final = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_COMMAND: Final = re.compile(rb"^[%!][^\n]*", re.MULTILINE)
_KERNEL: Final = re.compile(rb'"language"\s*:\s*"(\w+)"')


def read_scripts(language: str, data: bytes) -> tuple[str, bytes]:
    """Return the grammar that a file's scripts are in, and its text with everything else made blanks."""
    if language == "erb":
        ruby = bytearray(_BLANKED.sub(b" ", data))
        for code in _RUBY.finditer(data):
            start, end = code.span(1)
            ruby[start:end] = code[1]
            ruby[end : end + 1] = b";"  # each piece is a statement of its own
        return "ruby", bytes(ruby)
    if language == "jupyter":
        return _read_cells(data)
    grammar, spans = "javascript", []
    if language == "astro":
        if front := _FRONT_MATTER.match(data):
            spans.append(front.span(1))
        grammar = "typescript"
    for script in _SCRIPT.finditer(data):
        if _NO_CODE.search(script[1]):
            continue
        spans.append(script.span(2))
        if typed := _TYPED.search(
            script[1]
        ):  # what is right TypeScript is read wrongly as JavaScript, hardly vice versa
            grammar = "tsx" if typed[1].lower() == b"tsx" else "typescript"
    parts, end = [], 0
    for start, stop in spans:
        parts += [_BLANKED.sub(b" ", data[end:start]), data[start:stop]]
        end = stop
    return grammar, b"".join([*parts, _BLANKED.sub(b" ", data[end:])])


def _read_cells(data: bytes) -> tuple[str, bytes]:
    """Return the grammar of a notebook's kernel and the code of its cells.

    A cell's lines are JSON texts. Each begins a line of its own where its quote stands, since indentation counts.
    """
    text = bytearray(_BLANKED.sub(b" ", data))
    is_code = False
    for mark in _CELL_MARK.finditer(data):
        if mark[1]:
            is_code = mark[1] == b"code"
            continue
        at, is_list = mark.end(), bool(mark[2])
        while is_code and (found := _STRING.match(data, at)):
            start, at = found.start(1), found.end()
            line = _COMMAND.sub(lambda command: b" " * len(command[0]), _ESCAPE.sub(_unescape, found[1]))
            text[start - 1 : at - 1] = b"\n" + line
            is_code = is_list
    kernel = _KERNEL.search(data)
    language = LANGUAGES.get(kernel[1].decode().lower()) if kernel else None
    grammar = language.symbols if language and language.symbols not in {"", SCRIPTS, WORDS} else "python"
    return grammar, bytes(text)


def _unescape(found: re.Match[bytes]) -> bytes:
    """Return what an escape of JSON stands for, with blanks before it up to its length."""
    meant = {b"\\n": b"\n", b'\\"': b'"', b"\\\\": b"\\"}.get(found[0], b"")
    return meant.rjust(len(found[0]))
