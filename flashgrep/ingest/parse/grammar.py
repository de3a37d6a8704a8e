"""Grammars and our tags queries, one ``.scm`` file a language; loaded once, when first needed."""

import re
import time
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, cast

from tree_sitter import Language, Parser, Query, Tree
from tree_sitter_language_pack import SupportedLanguage, get_language

from flashgrep.scheduler import Abandoned, Expired, checkpoint

_QUERIES: Final = resources.files(__package__) / "queries"
_REFERENCES: Final = "; references\n"
_INHERITS: Final = re.compile(r"^; inherits: (\w+)$", re.MULTILINE)


class ParseTimeout(Exception):
    """A grammar took longer over one file than it may."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language and the two halves of its tags query; none of it changes, so threads share it."""

    language: Language
    definitions: Query
    references: Query
    reads_text: bool
    """Whether a query compares the text of nodes."""


@cache
def grammar_of(name: str) -> Grammar:
    """Return a grammar with its query, as ``Language.symbols`` names it."""
    loaded = get_language(cast("SupportedLanguage", name))
    definitions, references = _read_query(name)
    reads_text = "(#" in definitions + references
    return Grammar(loaded, Query(loaded, definitions), Query(loaded, references), reads_text)


def _read_query(name: str) -> tuple[str, str]:
    """Return a query's definitions and references, each followed by those of the query it inherits from, if any."""
    text = (_QUERIES / f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(_REFERENCES)
    if (base := _INHERITS.search(text)) is None:
        return definitions, references
    more_definitions, more_references = _read_query(base[1])
    return definitions + more_definitions, references + more_references


def parse_tree(grammar: Grammar, data: bytes, seconds: float) -> Tree:
    """Parse within a bound on time. The nodes of a tree have ``text`` only where the grammar's queries read it.

    Raises:
        ParseTimeout: the bound was reached.

    """
    # A parser is a state machine without a lock: two threads in one end the process. Making one costs 0.3 µs.
    parser = Parser(grammar.language)
    tree = _bounded(parser, data, seconds)
    if tree is None:
        checkpoint()  # where it was not the parser's own bound that came
        raise ParseTimeout
    # With a callable for its source, a tree asks that for each text that a query compares: once more, from bytes, which
    # takes over all that was parsed without an error.
    return parser.parse(data, old_tree=tree) if grammar.reads_text else tree


def _bounded(parser: Parser, data: bytes, seconds: float) -> Tree | None:
    deadline = time.monotonic() + seconds
    lent: list[memoryview] = []

    def is_over(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - the parser calls it so
        try:
            checkpoint()
        except (Abandoned, Expired):  # nothing may be raised through the parser
            return True
        return time.monotonic() > deadline

    def read(offset: int, _point: object) -> memoryview:
        lent.append(whole[offset:])
        return lent[-1]

    # A callable source, because the callback is only asked for one. The parser keeps a reference to whatever that gives
    # (py-tree-sitter 0.26.1), so it is given views, which let go of the text.
    with memoryview(data) as whole:
        try:
            return parser.parse(read, progress_callback=is_over)
        except ValueError:  # the callback stopped it
            return None
        finally:
            for view in lent:
                view.release()
