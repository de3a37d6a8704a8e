"""Expressions in the markup of components and pages, as statements at their places among the scripts.

What is around an expression, quotes and braces, becomes the signs that make it a statement of its own: as many
bytes as before. A component's tag is a statement that names it. An expression whose brackets do not match is left out,
so that it cannot spoil the script.
"""

import re
from typing import Final

COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_COMPONENT: Final = rb"<(?P<tag>[A-Z][\w.]*)"
_VUE: Final = re.compile(
    _COMPONENT
    # Each part ends at a brace or a quote, so that a template without the closing one takes time in its length.
    + rb"|\{\{(?P<shown>[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+)\}\}"
    + rb"|\s(?P<name>v-[\w.:\[\]-]++|[:@#][\w.:\[\]-]++)(?P<equals>\s*=\s*)(?P<quote>[\"'])"
    + rb"(?P<value>(?:(?!(?P=quote)).)*+)(?P=quote)",
    re.DOTALL,
)
_PUG: Final = re.compile(rb"""<template\b[^<>]{0,1000}\blang\s*=\s*["']?(?!html)\w""")
_EACH: Final = re.compile(rb"^.*?\s(?:in|of)\s", re.DOTALL)
_HANDLER: Final = re.compile(
    rb"\son[a-z]+(?P<equals>\s*=\s*)(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote)).)*+)(?P=quote)", re.DOTALL
)
_BRACED: Final = re.compile(_COMPONENT + rb"|\{")
# What may be escaped, and what nothing ends, is passed over, so that nothing is looked through twice.
_SIGN: Final = re.compile(
    rb"\\.|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\]|\\.)*+(?:`|\Z)|/\*.*?(?:\*/|\Z)|[()\[\]{}]",
    re.DOTALL,
)
_PAIRS: Final = {b")": b"(", b"]": b"[", b"}": b"{"}
SVELTE_HEAD: Final = re.compile(
    rb"\s*(?:[#:@/](?P<block>if|else\s+if|each|await|key|html|render|attach|debug)?(?:\s|$)|[#:@/]\w+)"
)
_BINDS: Final = {b"each": re.compile(rb"\sas\s"), b"await": re.compile(rb"\s(?:then|catch)\s")}


def keep_vue(markup: bytes, text: bytearray) -> None:
    """Put the expressions of a Vue component's markup into the text of its scripts."""
    if _PUG.search(markup):
        return
    for found in _VUE.finditer(markup):
        if found["tag"]:
            _keep_tag(found, text)
        elif found["shown"] is not None:
            _keep(text, found.start(), found.end("shown"), b";(", found["shown"], b")")
        else:
            name, value = found["name"], found["value"]
            if name.startswith((b"#", b"v-slot")):  # it binds names
                continue
            if name == b"v-for" and (bound := _EACH.match(value)):
                value = value[bound.end() :].rjust(len(value))
            opening, closing = (b"{", b"}") if name.startswith((b"@", b"v-on")) else (b"(", b")")
            before = b";" + b" " * (found.start("quote") - found.start("equals") - 1) + opening
            _keep(text, found.start("equals"), found.end("value"), before, value, closing)


def keep_handlers(markup: bytes, text: bytearray) -> None:
    """Put what a page's elements do on events into the text of its scripts."""
    for found in _HANDLER.finditer(markup):
        before = b";" + b" " * (found.start("quote") - found.start("equals") - 1) + b"{"
        _keep(text, found.start("equals"), found.end("value"), before, found["value"], b"}")


def keep_braces(markup: bytes, text: bytearray, head: re.Pattern[bytes] | None) -> None:
    """Put what is in braces in a component's markup into the text of its scripts.

    ``head``: what may begin such an expression and is none of it.
    """
    at = 0
    while found := _BRACED.search(markup, at):
        at = found.end()
        if found["tag"]:
            _keep_tag(found, text)
            continue
        depth = 1
        while depth and (sign := _SIGN.search(markup, at)):
            at = sign.end()
            depth += (sign[0] == b"{") - (sign[0] == b"}")
        if depth:
            return  # nothing tells where it ends; nor, then, where others begin
        code = markup[found.end() : at - 1]
        if head is not None and (begun := head.match(code)):
            if begun["block"] is None:
                continue
            if begun["block"] in _BINDS and (bound := _BINDS[begun["block"]].search(code)):
                code = code[: bound.start()].ljust(len(code))
            code = b" " * begun.end() + code[begun.end() :]
        elif code.lstrip().startswith(b"..."):
            code = code.replace(b"...", b"   ", 1)
        _keep(text, found.start(), at - 1, b";", code, b";")


def _keep_tag(found: re.Match[bytes], text: bytearray) -> None:
    start, end = found.span("tag")
    text[start - 1 : end] = b";" + found["tag"]
    if text[end : end + 1] == b" ":
        text[end : end + 1] = b";"


def _keep(text: bytearray, start: int, end: int, before: bytes, code: bytes, after: bytes) -> None:
    """Write an expression between what makes a statement of it; ``end``: where the expression ends."""
    waiting = list[bytes]()
    for sign in _SIGN.finditer(code):
        if sign[0] in _PAIRS:
            if not waiting or waiting.pop() != _PAIRS[sign[0]]:
                return
        elif sign[0] in _PAIRS.values():
            waiting.append(sign[0])
    if not waiting and code.strip():
        text[start : end + len(after)] = before + code + after
