"""Code inside another language: Vue, Svelte and Astro, pages, ERB and EJS, notebooks, fences in prose.

The rest of a file is blanked out, so that offsets in its code are offsets in the file. Expressions in templates are
kept, too, since a function may be called only by a component's markup. They become statements among the scripts: the
quotes or braces around an expression are replaced by as many bytes that make it a statement. A component's tag becomes
a statement that names it. An expression with unbalanced brackets is left out, so that it cannot spoil the script.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from flashgrep.base.languages import LANGUAGES, SCRIPTS, WORDS

_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_COMPONENT: Final = rb"<(?P<tag>[A-Z][\w.]*)"
_VUE: Final = re.compile(
    _COMPONENT
    # Each part ends at a brace or a quote, so that a template without the closing one
    # takes linear time.
    + rb"|\{\{(?P<shown>[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+)\}\}"
    + rb"|\s(?P<name>v-[\w.:\[\]-]++|[:@#][\w.:\[\]-]++)(?P<equals>\s*=\s*)(?P<quote>[\"'])"
    + rb"(?P<value>(?:(?!(?P=quote)).)*+)(?P=quote)",
    re.DOTALL,
)
_PUG: Final = re.compile(rb"""<template\b[^<>]{0,1000}\blang\s*=\s*["']?(?!html)\w""")
_EACH: Final = re.compile(rb"^.*?\s(?:in|of)\s", re.DOTALL)
_HANDLER: Final = re.compile(
    rb"\son[a-z]+(?P<equals>\s*=\s*)(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote)).)*+)(?P=quote)",
    re.DOTALL,
)
_BRACED: Final = re.compile(_COMPONENT + rb"|\{")
# Escapes, strings and comments are consumed whole, even if they never end, so that
# nothing is scanned twice.
_SIGN: Final = re.compile(
    rb"\\.|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\]|\\.)*+(?:`|\Z)|/\*.*?(?:\*/|\Z)|[()\[\]{}]",
    re.DOTALL,
)
_PAIRS: Final = {b")": b"(", b"]": b"[", b"}": b"{"}
_SVELTE_HEAD: Final = re.compile(
    rb"\s*(?:[#:@/](?P<block>if|else\s+if|each|await|key|html|render|attach|debug)?(?:\s|$)|[#:@/]\w+)"
)
_BINDS: Final = {
    b"each": re.compile(rb"\sas\s"),
    b"await": re.compile(rb"\s(?:then|catch)\s"),
}


def keep_vue(markup: bytes, text: bytearray) -> None:
    """Copy the expressions in a Vue component's markup into the text of its scripts."""
    if _PUG.search(markup):
        return
    for match in _VUE.finditer(markup):
        if match["tag"]:
            _keep_tag(match, text)
        elif match["shown"] is not None:
            _keep(text, match.start(), match.end("shown"), b";(", match["shown"], b")")
        else:
            name = match["name"]
            value = match["value"]
            if name.startswith((b"#", b"v-slot")):  # these bind names
                continue
            if name == b"v-for" and (bound := _EACH.match(value)):
                value = value[bound.end() :].rjust(len(value))
            if name.startswith((b"@", b"v-on")):
                _keep_value(text, match, b"{", value, b"}")
            else:
                _keep_value(text, match, b"(", value, b")")


def keep_handlers(markup: bytes, text: bytearray) -> None:
    """Copy the event handlers of a page's elements into the text of its scripts."""
    for match in _HANDLER.finditer(markup):
        _keep_value(text, match, b"{", match["value"], b"}")


def keep_braces(markup: bytes, text: bytearray, head: re.Pattern[bytes] | None) -> None:
    """Copy the expressions in braces in a component's markup into the text of its scripts.

    ``head``: what may precede an expression in its braces.
    """
    at = 0
    while match := _BRACED.search(markup, at):
        at = match.end()
        if match["tag"]:
            _keep_tag(match, text)
            continue
        depth = 1
        while depth and (sign := _SIGN.search(markup, at)):
            at = sign.end()
            if sign[0] == b"{":
                depth += 1
            elif sign[0] == b"}":
                depth -= 1
        if depth:
            return  # it never ends, so where others begin is unknown
        code = markup[match.end() : at - 1]
        if head is not None and (new_match := head.match(code)):
            block = new_match["block"]
            if block is None:
                continue
            binding = _BINDS.get(block)
            if binding is not None and (bound := binding.search(code)):
                code = code[: bound.start()].ljust(len(code))
            code = b" " * new_match.end() + code[new_match.end() :]
        elif code.lstrip().startswith(b"..."):
            code = code.replace(b"...", b"   ", 1)
        _keep(text, match.start(), at - 1, b";", code, b";")


def _keep_tag(found: re.Match[bytes], text: bytearray) -> None:
    start, end = found.span("tag")
    text[start - 1 : end] = b";" + found["tag"]
    if text[end : end + 1] == b" ":
        text[end : end + 1] = b";"


def _keep_value(
    text: bytearray,
    attribute: re.Match[bytes],
    opening: bytes,
    code: bytes,
    closing: bytes,
) -> None:
    """Write an attribute's value in these brackets, at its place."""
    start = attribute.start("equals")
    gap = attribute.start("quote") - start - 1
    before = b";" + b" " * gap + opening
    _keep(text, start, attribute.end("value"), before, code, closing)


def _keep(
    text: bytearray, start: int, end: int, before: bytes, code: bytes, after: bytes
) -> None:
    """Write an expression between the bytes that make it a statement; ``end``: where the expression ends."""
    waiting = list[bytes]()
    for sign in _SIGN.finditer(code):
        if sign[0] in _PAIRS:
            if not waiting:
                return
            if waiting.pop() != _PAIRS[sign[0]]:
                return
        elif sign[0] in _PAIRS.values():
            waiting.append(sign[0])
    if waiting:
        return
    if code.strip():
        text[start : end + len(after)] = before + code + after


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
"""Fences of one text; each is parsed by itself, since a broken one must not hide the next."""


class Insert(NamedTuple):
    """Code in a file of another language: its own language, where it begins, and its text."""

    language: str
    start: int
    text: bytes
    defines: bool = False
    """Whether other code can use its definitions: not those of examples, nor those of styles."""


class Fence(NamedTuple):
    """A block of code in prose: where its text begins and ends, its label, and whether it is in a quote."""

    start: int
    end: int
    label: bytes
    is_quoted: bool = False


def find_fences(language: str, data: bytes) -> Iterator[Fence]:
    """Yield the fences of a Markdown text, also in lists and quotes, or the blocks of code of reStructuredText."""
    if language == "rst":
        for match in islice(_DIRECTIVE.finditer(data), _MOST_FENCES):
            yield Fence(match.start(3), match.end(3), match[2])
        return
    at = 0
    number = 0
    while number < _MOST_FENCES and (opened := _FENCE.search(data, at)):
        last = rb"^[ \t>]*+%b{%d,}+[ \t]*+\r?$" % (opened[2][:1], len(opened[2]))
        closed = re.compile(last, re.MULTILINE).search(data, opened.end())
        start = min(opened.end() + 1, len(data))
        if closed:
            end = closed.start()
            at = closed.end()
        else:
            end = len(data)
            at = len(data)
        number = number + 1
        yield Fence(start, end, opened[4], b">" in opened[1])


def read_fences(language: str, data: bytes) -> Iterator[Insert]:
    """Yield the code in fences that are labelled with a language, with the marks of quotes blanked out."""
    for fence in find_fences(language, data):
        if name := _code_language(fence.label):
            text = data[fence.start : fence.end]
            if fence.is_quoted:
                text = _QUOTED.sub(lambda quoted: b" " * len(quoted[0]), text)
            yield Insert(name, fence.start, text)


def _code_language(named: bytes) -> str:
    """Return the language that a fence is labelled with, if it is code whose definitions we read."""
    return _NAMES.get(named.decode("utf-8", "replace").lower(), "")


def _list_labels() -> Iterator[tuple[str, str]]:
    """Yield the labels of fences, each with its language: the languages' names and the endings of their files."""
    for row in LANGUAGES.values():
        if row.nature != "code" or row.symbols in {"", SCRIPTS}:
            continue
        yield row.name, row.name
        for alias in row.aliases.split():
            yield alias, row.name
        for file in row.files.split():
            if file.isalnum():
                yield file.lower(), row.name


_NAMES: Final = dict(_list_labels())
"""Languages by the labels of fences."""


# A tag that never ends reaches to the beginning of the next, so that a text of such
# tags takes linear time.
_SCRIPT: Final = re.compile(
    rb"<script\b([^><]*+(?:<(?!script\b)[^><]*+)*+)>(.*?)(?:</script\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_STYLE: Final = re.compile(
    rb"<style\b([^><]*+(?:<(?!style\b)[^><]*+)*+)>(.*?)(?:</style\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_FRONT_MATTER: Final = re.compile(
    rb"\A\s*---[ \t]*\r?\n(.*?)(?:^---|\Z)", re.DOTALL | re.MULTILINE
)
_TYPED: Final = re.compile(
    rb"""\blang\s*=\s*["']?(tsx|ts|typescript)\b""", re.IGNORECASE
)
_STYLED: Final = re.compile(rb"""\blang\s*=\s*["']?(\w+)""", re.IGNORECASE)
_NO_CODE: Final = re.compile(
    rb"""\btype\s*=\s*["']?(?!module|text/(?:java|type)script|application/javascript)"""
)
_BLANKED: Final = re.compile(rb"[^\r\n]")
_MARKUP: Final = re.compile(rb"<[A-Za-z>]")

_TAGS: Final = {
    "ejs": re.compile(rb"<%(?!%)([-=_#]?)(.*?)(?:[-_]?%>|\Z)", re.DOTALL),
    "erb": re.compile(rb"<%[-=]?(?![#%])()(.*?)(?:-?%>|\Z)", re.DOTALL),
    "php": re.compile(rb"<\?(?:php\b|=)()(.*?)(?:\?>|\Z)", re.DOTALL),
}
"""Server code in a page: the mark that it begins with, and the code."""
_CELL_MARK: Final = re.compile(rb'"(?:cell_type"\s*:\s*"(\w+)"|source"\s*:\s*(\[?))')
_STRING: Final = re.compile(rb'\s*+,?\s*+"((?:[^"\\\n]|\\.)*+)"')
_ESCAPE: Final = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")
_COMMAND: Final = re.compile(rb"^[%!][^\n]*", re.MULTILINE)
_KERNEL: Final = re.compile(rb'"language"\s*:\s*"(\w+)"')

_PAGES: Final = frozenset({"html", "ejs", "erb", "php", "vue", "svelte", "astro"})
HOSTS: Final = _PAGES | {"markdown", "rst"}
"""Languages whose files contain code in other languages."""


def read_scripts(language: str, data: bytes) -> tuple[str, bytes]:
    """Return the grammar for a file's scripts, and its text with everything else blanked out."""
    text = bytearray(_BLANKED.sub(b" ", data))
    if language == "jupyter":
        grammar = _read_cells(data, text)
        return grammar, bytes(text)
    if language == "erb":
        grammar = _read_tags(language, data, text)
        return grammar, bytes(text)
    grammar = "javascript"
    front_end = 0
    if language == "astro":
        grammar = "typescript"
        if front := _FRONT_MATTER.match(data):
            start, end = front.span(1)
            text[start:end] = front[1]
            front_end = front.end()
    markup = bytearray(data)
    scripts = list[tuple[int, bytes]]()
    markup[:front_end] = _BLANKED.sub(b" ", data[:front_end])
    for hidden in (_SCRIPT, _STYLE, _COMMENT):
        for match in hidden.finditer(bytes(markup)):
            markup[match.start() : match.end()] = _BLANKED.sub(b" ", match[0])
            if hidden is not _SCRIPT:
                continue
            if _NO_CODE.search(match[1]):
                continue
            scripts.append((match.start(2), _blank_tags(language, match[2])))
            # The grammar of JavaScript fails on TypeScript; the reverse is rare.
            if typed := _TYPED.search(match[1]):
                grammar = "typescript"
                if typed[1].lower() == b"tsx":
                    grammar = "tsx"
    _TEMPLATES[language](bytes(markup), text)
    if language == "astro" and _MARKUP.search(text, front_end):
        grammar = "tsx"
    for start, script in scripts:  # last, since a script may be inside an expression
        text[start - 1 : start + len(script)] = b";" + script
    return grammar, bytes(text)


def _read_tags(language: str, data: bytes, text: bytearray) -> str:
    """Return a page's grammar, and write its server code into a text of blanks, each piece as a statement."""
    for code in _TAGS[language].finditer(data):
        start, end = code.span(2)
        if code[1] != b"#":
            text[start - 1 : end] = b";" + code[2]
            text[end : end + 1] = b";" * len(text[end : end + 1])
    if language == "erb":
        return "ruby"
    return "javascript"


_TEMPLATES: Final[dict[str, Callable[[bytes, bytearray], object]]] = {
    "astro": lambda markup, text: keep_braces(markup, text, None),
    "ejs": lambda markup, text: _read_tags("ejs", markup, text),
    "html": keep_handlers,
    "svelte": lambda markup, text: keep_braces(markup, text, _SVELTE_HEAD),
    "vue": keep_vue,
}
"""By language, the function that keeps the expressions of its markup."""


def _blank_tags(language: str, script: bytes) -> bytes:
    """Return a page's script without server code; a name replaces code that inserts a value."""
    if language not in _TAGS:
        return script

    def blank(code: re.Match[bytes]) -> bytes:
        blanks = _BLANKED.sub(b" ", code[0])
        sign = code[0][2:3]
        if sign == b"=":
            return b"_" + blanks[1:]
        return blanks

    return _TAGS[language].sub(blank, script)


def read_inserts(language: str, data: bytes) -> Iterator[Insert]:
    """Yield the code in other languages in a file, besides its own: styles, scripts of pages, fences in prose."""
    if language in {"markdown", "rst"}:
        yield from read_fences(language, data)
    if language not in _PAGES:
        return
    page = _blank_tags(language, data)
    if language in {"html", "erb", "php"}:
        grammar, scripts = read_scripts("html", page)
        if scripts.strip():
            yield Insert(grammar, 0, scripts, defines=language == "html")
    # Its scripts are parsed with the server code.
    if language == "ejs":
        markup = _SCRIPT.sub(lambda script: _BLANKED.sub(b" ", script[0]), page)
        yield Insert("html", 0, markup)
        return
    if b"<style" not in data:
        return
    for style in _STYLE.finditer(page):
        dialect = b"css"
        if written := _STYLED.search(style[1]):
            dialect = written[1].lower()
        if dialect in _STYLES:
            yield Insert(_STYLES[dialect], style.start(2), style[2])


_STYLES: Final = {b"css": "css", b"postcss": "css", b"scss": "scss"}
"""The grammars of styles, by their dialects as written."""


def _read_cells(data: bytes, text: bytearray) -> str:
    """Return the grammar of a notebook's kernel, and write the code of its cells into a text of blanks.

    A cell's lines are JSON strings. Each begins a line of its own at its quote, since indentation counts.
    """
    is_code = False
    for mark in _CELL_MARK.finditer(data):
        if mark[1]:
            is_code = mark[1] == b"code"
            continue
        at = mark.end()
        is_list = bool(mark[2])
        while is_code and (match := _STRING.match(data, at)):
            start = match.start(1)
            at = match.end()
            line = _ESCAPE.sub(_unescape, match[1])
            line = _COMMAND.sub(lambda command: b" " * len(command[0]), line)
            text[start - 1 : at - 1] = b"\n" + line
            is_code = is_list
    kernel = _KERNEL.search(data)
    if kernel is None:
        return "python"
    language = LANGUAGES.get(kernel[1].decode().lower())
    if language is None:
        return "python"
    if language.symbols in {"", SCRIPTS, WORDS}:
        return "python"
    return language.symbols


def _unescape(found: re.Match[bytes]) -> bytes:
    """Return what a JSON escape stands for, with blanks before it that keep the length."""
    meant = {b"\\n": b"\n", b'\\"': b'"', b"\\\\": b"\\"}.get(found[0], b"")
    return meant.rjust(len(found[0]))
