"""Symbols of a file: what it defines, calls, imports and inherits from, by tree-sitter or by patterns.

``parse_symbols`` is the entry point; ``isolate`` runs it in a process that may crash or hang without harm.
"""

import time
from collections.abc import Callable

from tree_sitter import Node

from flashgrep.base.languages import LANGUAGES, SCRIPTS, WORDS
from flashgrep.base.model import Skipped
from flashgrep.parts.symbols.parse.embedded import read_inserts, read_scripts
from flashgrep.parts.symbols.parse.generic import find_generic_tags
from flashgrep.parts.symbols.parse.grammar import NoGrammar, ParseTimeout, grammar_of
from flashgrep.parts.symbols.parse.macros import BLANKED, blank_conflicts
from flashgrep.parts.symbols.parse.model import ParsedFile, pack, unpack
from flashgrep.parts.symbols.parse.repair import parse_and_repair
from flashgrep.parts.symbols.parse.tags import collect_tags

__all__ = ["ParsedFile", "pack", "parse_symbols", "unpack"]

MAX_BYTES = 4_000_000
"""Larger files are data or bundles; a syntax tree takes about 15 times the memory of its text."""
MAX_SECONDS = 5.0
"""The slowest file of the kernel takes 2 s; beyond this a grammar is lost in its own error recovery."""
MAX_LINE = 20_000
"""Mean bytes per line beyond which a file is minified, so that its names mean nothing."""


def parse_symbols(
    language: str,
    data: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    seconds: float = MAX_SECONDS,
    keep_tree: Callable[[Node], None] | None = None,
) -> ParsedFile | Skipped:
    """Return the symbols of a file in a language that has some, or why this file has none.

    ``keep_tree`` receives the root of the syntax tree, if there is one and nothing was blanked out for it, so that the
    caller need not parse the text again.
    """
    if len(data) > max_bytes:
        return Skipped("too_large", f"symbols: over {max_bytes} bytes")
    if len(data) > MAX_LINE * (1 + data.count(b"\n")):
        return Skipped("too_large", "symbols: minified")
    deadline = time.thread_time() + seconds
    source, whole = LANGUAGES[language].symbols, data
    if source == WORDS:
        return find_generic_tags(language, data)
    if source == SCRIPTS:
        source, data = read_scripts(language, data)
    try:
        grammar = grammar_of(source)
        text = data
        if LANGUAGES[language].nature == "code":
            text = blank_conflicts(data)
        if language in BLANKED:
            text = BLANKED[language](text)
        parsed = parse_and_repair(source, grammar, text, seconds)
        if keep_tree is not None and text == data:
            keep_tree(parsed.tree.root_node)
        found = collect_tags(
            language, grammar, data, parsed.tree.root_node, parsed.blanked
        )
        found = _read_inserts(found, whole, deadline)
    except NoGrammar:
        return find_generic_tags(language, data)
    except ParseTimeout:
        return Skipped("too_large", f"symbols: over {seconds:g} s to parse")
    return found


def _read_inserts(found: ParsedFile, data: bytes, deadline: float) -> ParsedFile:
    """Return a file's symbols with those of code in other languages inside it.

    Raises:
        ParseTimeout: the deadline, in processor time of this thread, has passed.

    """
    inserted = list[ParsedFile]()
    for insert in read_inserts(found.language, data):
        if (seconds_left := deadline - time.thread_time()) < 0:
            raise ParseTimeout
        inside = parse_symbols(insert.language, insert.text, seconds=seconds_left)
        if isinstance(inside, ParsedFile):
            inserted.append(inside.move(insert.start, declares=not insert.defines))
            found = found.read_as_code(insert.start, insert.start + len(insert.text))
    if inserted:
        return found.merge(inserted)
    return found
