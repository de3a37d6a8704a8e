"""Code inside of another language: Vue, Svelte and Astro, pages, ERB and EJS, notebooks, fences in prose.

The rest of a file is blanked out, so that what is found in its code is at its place in the file. Of templates
the expressions are kept, too: a function that a component's markup alone calls has that for its caller.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from flashgrep.ingest.parse.fences import Insert, read_fences
from flashgrep.ingest.parse.templates import COMMENT, SVELTE_HEAD, keep_braces, keep_handlers, keep_vue
from flashgrep.languages import LANGUAGES, SCRIPTS, WORDS

# A tag that nothing ends goes as far as the next one begins, so that a text of such tags takes time in its length.
_SCRIPT: Final = re.compile(
    rb"<script\b([^><]*+(?:<(?!script\b)[^><]*+)*+)>(.*?)(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_STYLE: Final = re.compile(
    rb"<style\b([^><]*+(?:<(?!style\b)[^><]*+)*+)>(.*?)(?:</style\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
_FRONT_MATTER: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)(?:^---|\Z)", re.DOTALL | re.MULTILINE)
_TYPED: Final = re.compile(rb"""\blang\s*=\s*["']?(tsx|ts|typescript)\b""", re.IGNORECASE)
_STYLED: Final = re.compile(rb"""\blang\s*=\s*["']?(\w+)""", re.IGNORECASE)
_NO_CODE: Final = re.compile(rb"""\btype\s*=\s*["']?(?!module|text/(?:java|type)script|application/javascript)""")
_BLANKED: Final = re.compile(rb"[^\r\n]")
_MARKUP: Final = re.compile(rb"<[A-Za-z>]")

_TAGS: Final = {
    "ejs": re.compile(rb"<%(?!%)([-=_#]?)(.*?)(?:[-_]?%>|\Z)", re.DOTALL),
    "erb": re.compile(rb"<%[-=]?(?![#%])()(.*?)(?:-?%>|\Z)", re.DOTALL),
    "php": re.compile(rb"<\?(?:php\b|=)()(.*?)(?:\?>|\Z)", re.DOTALL),
}
"""Code of the server within a page: what it begins with, and the code."""
_CELL_MARK: Final = re.compile(rb'"(?:cell_type"\s*:\s*"(\w+)"|source"\s*:\s*(\[?))')
_STRING: Final = re.compile(rb'\s*+,?\s*+"((?:[^"\\\n]|\\.)*+)"')
_ESCAPE: Final = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_COMMAND: Final = re.compile(rb"^[%!][^\n]*", re.MULTILINE)
_KERNEL: Final = re.compile(rb'"language"\s*:\s*"(\w+)"')

_PAGES: Final = frozenset({"html", "ejs", "erb", "php", "vue", "svelte", "astro"})
HOSTS: Final = _PAGES | {"markdown", "rst"}
"""Languages whose files hold code of others."""


def read_scripts(language: str, data: bytes) -> tuple[str, bytes]:
    """Return the grammar that a file's scripts are in, and its text with everything else made blanks."""
    text = bytearray(_BLANKED.sub(b" ", data))
    if language in {"erb", "jupyter"}:
        return (_read_cells if language == "jupyter" else _read_tags)(language, data, text), bytes(text)
    grammar, front_end = "javascript", 0
    if language == "astro":
        grammar = "typescript"
        if front := _FRONT_MATTER.match(data):
            start, end = front.span(1)
            text[start:end], front_end = front[1], front.end()
    markup, scripts = bytearray(data), list[tuple[int, bytes]]()
    markup[:front_end] = _BLANKED.sub(b" ", data[:front_end])
    for hidden in (_SCRIPT, _STYLE, COMMENT):
        for found in hidden.finditer(bytes(markup)):
            markup[found.start() : found.end()] = _BLANKED.sub(b" ", found[0])
            if hidden is not _SCRIPT or _NO_CODE.search(found[1]):
                continue
            scripts.append((found.start(2), _blank_tags(language, found[2])))
            # What is right TypeScript is read wrongly as JavaScript, hardly vice versa.
            if typed := _TYPED.search(found[1]):
                grammar = "tsx" if typed[1].lower() == b"tsx" else "typescript"
    _TEMPLATES[language](bytes(markup), text)
    if language == "astro" and _MARKUP.search(text, front_end):
        grammar = "tsx"
    for start, script in scripts:  # last, since one may be in an expression
        text[start - 1 : start + len(script)] = b";" + script
    return grammar, bytes(text)


def _read_tags(language: str, data: bytes, text: bytearray) -> str:
    """Return a page's grammar, and put its code of the server into a text of blanks, each piece as a statement."""
    for code in _TAGS[language].finditer(data):
        start, end = code.span(2)
        if code[1] != b"#":
            text[start - 1 : end] = b";" + code[2]
            text[end : end + 1] = b";" * len(text[end : end + 1])
    return "ruby" if language == "erb" else "javascript"


_TEMPLATES: Final[dict[str, Callable[[bytes, bytearray], object]]] = {
    "astro": lambda markup, text: keep_braces(markup, text, None),
    "ejs": lambda markup, text: _read_tags("ejs", markup, text),
    "html": keep_handlers,
    "svelte": lambda markup, text: keep_braces(markup, text, SVELTE_HEAD),
    "vue": keep_vue,
}
"""What keeps the expressions of a language's markup."""


def _blank_tags(language: str, script: bytes) -> bytes:
    """Return a page's script without what the server puts in: a name where it puts a value, else nothing."""
    if language not in _TAGS:
        return script

    def blank(code: re.Match[bytes]) -> bytes:
        blanks = _BLANKED.sub(b" ", code[0])
        return b"_" + blanks[1:] if code[0][2:3] == b"=" else blanks

    return _TAGS[language].sub(blank, script)


def read_inserts(language: str, data: bytes) -> Iterator[Insert]:
    """Yield the code of other languages in a file, beside that of its own: styles, pages' scripts, fences in prose."""
    if language in {"markdown", "rst"}:
        yield from read_fences(language, data)
    if language not in _PAGES:
        return
    page = _blank_tags(language, data)
    if language in {"html", "erb", "php"}:
        grammar, scripts = read_scripts("html", page)
        if scripts.strip():
            yield Insert(grammar, 0, scripts, defines=language == "html")
    if language == "ejs":  # its scripts are read with the code of the server
        yield Insert("html", 0, _SCRIPT.sub(lambda script: _BLANKED.sub(b" ", script[0]), page))
    for style in _STYLE.finditer(page) if language != "ejs" and b"<style" in data else ():
        written = _STYLED.search(style[1])
        if written is None or written[1].lower() in {b"css", b"postcss", b"scss"}:
            yield Insert("scss" if written and written[1].lower() == b"scss" else "css", style.start(2), style[2])


def _read_cells(_language: str, data: bytes, text: bytearray) -> str:
    """Return the grammar of a notebook's kernel, and put the code of its cells into a text of blanks.

    A cell's lines are JSON texts. Each begins a line of its own where its quote is, since indentation counts.
    """
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
    return language.symbols if language and language.symbols not in {"", SCRIPTS, WORDS} else "python"


def _unescape(found: re.Match[bytes]) -> bytes:
    """Return what an escape of JSON stands for, with blanks before it up to its length."""
    meant = {b"\\n": b"\n", b'\\"': b'"', b"\\\\": b"\\"}.get(found[0], b"")
    return meant.rjust(len(found[0]))
