"""Code inside of another language: it stays at its place, whatever stands around it."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flashgrep.base.languages import LANGUAGES, SCRIPTS
from flashgrep.parts.meaning.chunking import chunk_text
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.embedded import HOSTS, read_inserts, read_scripts
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from tests.support.pace import paced

COMPONENTS = sorted(name for name, row in LANGUAGES.items() if row.symbols == SCRIPTS)
PIECES = [
    b"<script>", b"</script>", b"<style lang='scss'>", b"</style>", b"<!--", b"-->", b"{{ a(1) }}", b"{", b"}",
    b"<Item ", b' :a="b(', b'"', b"'", b"`", b"<%= c() %>", b"<%", b"%>", b"<?php", b"---\n", b"{#each d() as e}",
    b"/*", b"*/", b"```py\n", b"\n```\n", b"> ", b".. code:: js\n\n", b"  f()\n", b"\r\n", b"\xc3\xa9",
]  # fmt: skip


def called(language: str, text: str) -> list[str]:
    found = parse_symbols(language, text.encode())
    assert isinstance(found, ParsedFile)
    return [
        FileSymbols(found, text.encode()).word_at(offset)
        for offset in found.marked("call").tolist()
    ]


@given(
    st.sampled_from(sorted({*COMPONENTS, *HOSTS})),
    st.lists(st.sampled_from(PIECES), max_size=30),
)
@settings(max_examples=100, deadline=None)
@example("ejs", [b"<%", b"<style lang='scss'>", b"```py\n"])
def test_what_is_kept_of_a_text_stays_where_it_is(
    language: str, pieces: list[bytes]
) -> None:
    data = b"".join(pieces)
    if language in COMPONENTS:
        text = read_scripts(language, data)[1]
        assert len(text) == len(data)
        if language != "jupyter":  # its lines are texts of JSON
            assert [at for at, byte in enumerate(text) if byte == 10] == [
                at for at, byte in enumerate(data) if byte == 10
            ]
    for insert in read_inserts(language, data):
        assert insert.start + len(insert.text) <= len(data)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "vue",
            "<template><p @click='go(1)' :a=\"look\n(2)\" v-for='x in all(3)'>{{ show({ a: 4 }) }}</template>",
        ),
        (
            "svelte",
            "{#if go(1)}<p a={look(2)}>{#await all(3) then x}{@html show({ a: 4 })}{/await}</p>{/if}",
        ),
        (
            "astro",
            "---\ngo(1)\n---\n<p a={look(2)}>{all(3).map((x) => <b>it's {show({ a: 4 })}</b>)}</p>",
        ),
        (
            "ejs",
            "<% if (go(1)) { %><%= look(2) -%><%- all(3) %><% } %><%# none() %><script>show(4)</script>",
        ),
        (
            "html",
            "<p onclick='go(1)' onblur=\"look(2)\"><script>all(3)</script></p><script>show(4)</script>",
        ),
    ],
)
def test_a_template_calls_what_its_expressions_call(language: str, text: str) -> None:
    assert [name for name in called(language, text) if name not in {"map", "b"}] == [
        "go",
        "look",
        "all",
        "show",
    ]


@pytest.mark.parametrize(
    ("language", "markup"),
    [
        ("vue", "<template>{{ broken( }}<p :a='b]' @click='{'/></template>"),
        ("svelte", "{#if broken(}<p a={b]}/>"),
        ("astro", "<p a={broken(}/>"),
        (
            "vue",
            "<!-- {{ hidden() }} --><template lang='pug'>p(:a='hidden()')</template>",
        ),
    ],
)
def test_what_is_half_typed_or_hidden_in_markup_leaves_the_script_as_it_is(
    language: str, markup: str
) -> None:
    script = f"<script>\nfunction first() {{ second() }}\n</script>\n{markup}\n<script>\nthird()\n</script>"
    assert called(language, script) == ["second", "third"]
    found = parse_symbols(language, script.encode())
    assert isinstance(found, ParsedFile)
    assert found.names(script.encode()) == [b"first"]


def test_a_fence_that_is_broken_or_open_hides_no_other() -> None:
    text = "```py\ndef (((\n```\n```js\nfunction b() { c() }\n```\n````go\nfunc d() {}\n```\nfunc e() {}\n````\n~~~py\nx"
    found = parse_symbols("markdown", text.encode())
    assert isinstance(found, ParsedFile)
    assert {b"b", b"d", b"e"} <= set(found.names(text.encode()))
    assert called("markdown", text) == ["c"]


def test_what_prose_shows_is_declared_and_no_chunk_is_named_by_it() -> None:
    text = b"# Title\n\n```python\ndef shown():\n    return 1\n```\n"
    found = parse_symbols("markdown", text)
    assert isinstance(found, ParsedFile)
    symbols = FileSymbols(found, text)
    assert [
        (symbols.defined(at).name, symbols.defined(at).role) for at in range(2)
    ] == [
        ("Title", "definition"),
        ("shown", "declaration"),
    ]
    assert [
        name
        for chunk in chunk_text(1, b"a.md", text, found).chunks
        for name in chunk.defines
    ] == ["Title"]


@pytest.mark.parametrize(
    ("language", "piece"),
    [
        ("vue", b"{{ "), ("vue", b' :a="\''), ("vue", b"<!--"), ("vue", b"<Item"), ("svelte", b"{"),
        ("svelte", b'{\\"'), ("svelte", b"{/*"), ("astro", b"{`\\`"), ("html", b" onclick='\""), ("ejs", b"<%"),
        ("vue", b"<template "), ("html", b"<script "), ("svelte", b"<style lang "),
        ("markdown", b"```py\n"), ("markdown", b"```" + b" " * 3_000 + b"`\n"), ("markdown", b"`" * 200_000),
        ("markdown", b"> - "), ("rst", b".. code:: py\n"), ("php", b"<?php <style>"),
    ],
)  # fmt: skip
def test_reading_what_is_embedded_takes_time_in_a_texts_length(
    language: str, piece: bytes
) -> None:
    def seconds(size: int) -> float:
        data = piece * (size // len(piece))
        started = time.thread_time()
        if language in COMPONENTS or language == "html":
            read_scripts(language, data)
        list(read_inserts(language, data))
        return time.thread_time() - started

    seconds(1_000)
    assert seconds(200_000) < paced(2)  # a square of it would be minutes
