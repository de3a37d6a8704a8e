"""Grammars and our tags queries, one ``.scm`` file a language; loaded once, when first needed."""

import time
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, cast

from tree_sitter import Parser, Query, Tree
from tree_sitter_language_pack import SupportedLanguage, get_language

_QUERIES: Final = resources.files(__package__) / "queries"
_READ: Final = 1 << 16
_REFERENCES: Final = "; references\n"


class ParseTimeout(Exception):
    """A grammar took longer over one file than it may."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language's parser and the two halves of its tags query."""

    parser: Parser
    definitions: Query
    references: Query


@cache
def has_grammar(language: str) -> bool:
    """Whether there is a tags query, and so a grammar, for a language."""
    return (_QUERIES / f"{language}.scm").is_file()


@cache
def grammar_of(language: str) -> Grammar:
    """Return a language's grammar; call it only where ``has_grammar`` says so."""
    loaded = get_language(cast("SupportedLanguage", language))
    definitions, _, references = (_QUERIES / f"{language}.scm").read_text("utf-8").partition(_REFERENCES)
    return Grammar(Parser(loaded), Query(loaded, definitions), Query(loaded, references))


def parse_tree(grammar: Grammar, data: bytes, seconds: float) -> Tree:
    """Parse within a bound on time.

    Raises:
        ParseTimeout: the bound was reached.

    """
    deadline = time.monotonic() + seconds

    def is_over(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - the parser calls it so
        return time.monotonic() > deadline

    def read(offset: int, _point: object) -> bytes:
        return data[offset : offset + _READ]

    # A callable source, because the callback is only asked for one; slices of 64 KiB cost nothing measurable.
    try:
        tree = grammar.parser.parse(read, progress_callback=is_over)
    except ValueError:  # the callback stopped it
        tree = None
    if tree is None:
        grammar.parser.reset()
        raise ParseTimeout
    return tree
