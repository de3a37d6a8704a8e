"""From a syntax tree to columns: run the tags query, nest by intervals, settle kinds by what is around."""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Final

import numpy as np
from tree_sitter import Node, QueryCursor

from flashgrep.checkpoint import checkpoint
from flashgrep.ingest.parse.generic import definitions_beside, is_inside
from flashgrep.ingest.parse.grammar import DEPTH, MATCH_LIMIT, Grammar
from flashgrep.ingest.parse.model import (
    CALLABLE_KINDS,
    COLUMNS,
    KIND_ID,
    KINDS,
    MARKS,
    NAME,
    TYPE_KINDS,
    Ints,
    ParsedFile,
)
from flashgrep.languages import LANGUAGES

_ANONYMOUS: Final = len(KINDS)
_INLINE: Final = len(KINDS) + 1
"""Scopes without a name, for nesting only: a function's, and a type's."""
_SCOPE_ID: Final = {**KIND_ID, "anonymous": _ANONYMOUS, "inline": _INLINE}
_CONSTRUCTS: Final = {kind: (number, 0) for kind, number in _SCOPE_ID.items()} | {
    f"declaration.{kind}": (number, 1) for kind, number in _SCOPE_ID.items()
}
"""By the name of a construct's capture: its kind, and whether it only declares."""
_TYPES: Final = frozenset({KIND_ID[kind] for kind in TYPE_KINDS} | {_INLINE})
_FUNCTIONS: Final = frozenset({KIND_ID[kind] for kind in CALLABLE_KINDS} | {_ANONYMOUS})
_LOCAL: Final = frozenset({KIND_ID["variable"], KIND_ID["constant"]})
_IN_TYPE: Final = {KIND_ID["function"]: KIND_ID["method"], KIND_ID["variable"]: KIND_ID["field"]}
_MACRO: Final = KIND_ID["macro"]
_PROPERTY: Final = KIND_ID["property"]
_NO_KEYWORDS: Final = frozenset[bytes]()
_KEYWORDS: Final = frozenset(
    b"if else for while do switch case return sizeof goto int void char long struct union enum const static".split()
)
"""Words that the grammars of C and C++ take for names after a macro that they cannot read."""
_OF_C: Final = frozenset({"c", "cpp", "objc"})
_KEEPS_LOCALS: Final = frozenset({"bash", "vim"})
"""Languages whose queries take no variable that is a function's own, or where functions set those of the whole file."""
_QUALIFIED: Final = re.compile(rb"[^\W\d][\w.:\\]*(?:::|[.\\])(?=\w)")
_LEAD: Final = b":#$@%\\"
"""What may be before a name: Ruby's symbols, Bash's and Markdown's marks, the sigils of Perl and PowerShell, TeX."""
_MARKS_NAMES: Final = {
    **dict.fromkeys(("javascript", "typescript", "tsx", "vue", "svelte", "astro"), ord("#")),
    **dict.fromkeys(("kotlin", "scala", "swift"), ord("`")),
}
"""What is before private names, and before names that are keywords, and counts as theirs in the grammar."""
_QUOTED: Final = frozenset(KIND_ID[kind] for kind in ("property", "object", "module", "method", "function"))
"""Kinds that may be named by a string: the keys of data, Groovy's methods."""
_QUOTES: Final = ((b"`",), (b"`", b'"', b"'"))
"""What may be around a name: of any kind, and of those."""
_WHOLE_NAME: Final = frozenset({KIND_ID["heading"], KIND_ID["package"]})
_NEWLINE: Final = 10
_CHECKED: Final = 256
"""Matches between two checkpoints, about 0.3 ms."""

_Row = tuple[int, int, bool, int, int, int, int, int, int]
"""One definition or nameless scope: start, -end, whether it has a name, the name's start and end, kind, whether it only
declares, the qualifier's start and end. In the order of the first four, what is around is before what is in it."""
_PLACE: Final = itemgetter(0, 1, 2, 3)


def tags(
    language: str, grammar: Grammar, data: bytes, root: Node, blanked: Sequence[tuple[int, int]] = ()
) -> ParsedFile:
    """Return the symbols of a file; ``root``: of its syntax tree, which has nothing of what is ``blanked``."""
    cursor = QueryCursor(grammar.query, match_limit=MATCH_LIMIT)
    cursor.set_max_start_depth(DEPTH)
    word = LANGUAGES[language].word
    splits, lead = b"." not in word, _LEAD.translate(None, word)
    keywords = _KEYWORDS if LANGUAGES[language].symbols in _OF_C else _NO_KEYWORDS
    named: dict[int, tuple[int, _Row]] = {}
    scopes: list[_Row] = []
    references: dict[str, list[Node]] = {kind: [] for kind in (*MARKS, "bound", "skip", "statement", "error")}
    for number, (pattern, captured) in enumerate(cursor.matches(root)):
        if number % _CHECKED == 0:
            checkpoint()
        if pattern >= grammar.definitions:
            for capture, nodes in captured.items():
                if capture in references:
                    references[capture] += nodes
            continue
        row = _read_definition(captured, data, lead, splits=splits)
        name = row[3]
        if row[5] >= _ANONYMOUS:
            scopes.append(row)
        elif (
            name < row[4]
            and not (row[5] != _MACRO and data[name : row[4]] in keywords)
            and (name not in named or named[name][0] > pattern)
        ):  # the first pattern knows best
            named[name] = pattern, row
    skips = _spans(references["skip"])
    if (root.has_error or blanked) and (
        LANGUAGES[language].nature == "code" or language == "tex"
    ):  # words of prose introduce no names
        # Much of what follows a mistake may be lost to the grammar, exactly while somebody edits the file.
        errors = _outermost([*((node.start_byte, node.end_byte) for node in references["error"]), *blanked])
        beside = definitions_beside(language, data, errors, skips)
        beside = beside if root.has_error else beside[is_inside(beside[:, NAME], errors)]
        for name, name_end, start, end, kind, *rest in beside.tolist():
            named.setdefault(name, (0, (start, -end, True, name, name_end, kind, *rest)))
    table = _settle(language, [*(row for _, row in named.values()), *scopes])
    taken = {row[0] for row in table}
    return ParsedFile(
        language=language,
        definitions=np.array(table, np.int64).reshape(-1, COLUMNS),
        marks={kind: _starts(language, references[kind], data, taken) for kind in MARKS},
        skips=skips,
        statements=_spans(references["statement"]),
        bound=_starts(language, references["bound"], data, taken) if grammar.tells_bound else None,
        grammar="tree-sitter",
    )


def _read_definition(captured: dict[str, list[Node]], data: bytes, lead: bytes, *, splits: bool) -> _Row:
    """Return what one match says of a definition.

    ``lead``: bytes that may be before a name and are no part of it. ``splits``: what is before a name's last dot
    qualifies it.
    """
    start = end = body_end = kind = name = name_end = -1
    declares = qualifier = qualifier_end = 0
    for capture, (node, *_) in captured.items():
        if capture == "name":
            name, name_end = node.start_byte, node.end_byte
        elif capture in _CONSTRUCTS:
            kind, declares = _CONSTRUCTS[capture]
            start, end = node.start_byte, node.end_byte
            if end and data[end - 1] == _NEWLINE:  # some grammars count the line end in
                end -= 1
        elif capture == "container":
            qualifier, qualifier_end = node.start_byte, node.end_byte
        elif capture == "body":  # where it is the sibling of what it is the body of
            body_end = node.end_byte
    end = max(end, body_end)
    text = data[name:name_end]
    # Most names are of letters, digits and ``_`` alone, and there is nothing to take off.
    if name >= 0 and not text.replace(b"_", b"").isalnum():
        stripped = _strip_marks(text, kind, data[name_end : name_end + 1], lead)
        name += text.find(stripped)
        name_end = name + len(stripped)
        if splits and kind not in _WHOLE_NAME and not qualifier_end and (found := _QUALIFIED.match(stripped)):
            qualifier, qualifier_end = name, name + found.end()
            name += found.end()
    return start, -end, kind < _ANONYMOUS, name, name_end, kind, declares, qualifier, qualifier_end


def _strip_marks(name: bytes, kind: int, following: bytes, lead: bytes) -> bytes:
    """Return a name without what the grammar counts in; ``following``: the byte after it."""
    if kind == KIND_ID["heading"]:
        text = name.strip(b" \t\r\n#")
        text = text[1:-1].strip() if text[:1] == b"{" and text[-1:] == b"}" else text
        return text.partition(b"\n")[0].rstrip()
    if name[-1:] == b"=" and name[:-1].isalnum() and following in b"'\"":
        return name[:-1]  # a shell alias: ``ll='ls -l'``
    if name[:1] in _QUOTES[kind in _QUOTED] and len(name) > len("''") and name.endswith(name[:1]):
        return name.strip(name[:1])
    return name.lstrip(lead)


def _settle(language: str, rows: list[_Row]) -> list[tuple[int, ...]]:
    """Nest definitions and return them as rows of a table.

    Functions in types become methods, variables there fields; variables of functions are left out.
    """
    rows.sort(key=_PLACE)
    around: list[tuple[int, int]] = []  # end and kind of the scopes that have begun, the innermost last
    table: list[tuple[int, ...]] = []
    for start, minus_end, has_name, name, name_end, own_kind, declares, qualifier, qualifier_end in rows:
        kind, end = own_kind, -minus_end
        while around and around[-1][0] <= start:
            around.pop()
        scope = -1
        for scope_end, candidate in reversed(around):
            if scope_end >= end:
                scope = candidate
                break
        # CMake's macros have no variables of their own; its functions set those of their callers by saying so.
        is_seen = language in _KEEPS_LOCALS or (language == "cmake" and (scope == _MACRO or declares))
        if kind in _LOCAL and scope in _FUNCTIONS and not is_seen:
            continue
        if scope in _TYPES:
            kind = _IN_TYPE.get(kind, kind)
        if has_name:
            table.append((name, name_end, start, end, kind, declares, qualifier, qualifier_end))
        if kind not in _LOCAL and (kind != _PROPERTY or language != "nix"):  # a value there may hold variables
            around.append((end, kind))
    return table


def _starts(language: str, nodes: list[Node], data: bytes, taken: AbstractSet[int]) -> Ints:
    """Return where the last part of each name begins, without names that are ``taken``."""
    if language == "elixir":  # it has ``Shop.Store`` as one node
        starts = {data.rfind(b".", node.start_byte, node.end_byte) + 1 or node.start_byte for node in nodes}
    elif language == "tex":
        starts = {node.start_byte + (data[node.start_byte] in _LEAD) for node in nodes}
    elif (mark := _MARKS_NAMES.get(language)) is not None:
        starts = {node.start_byte + (data[node.start_byte] == mark) for node in nodes}
    else:
        starts = {node.start_byte for node in nodes}
    return np.array(sorted(starts - taken), np.int64)


def _spans(nodes: Iterable[Node]) -> Ints:
    """Return the nodes' spans, sorted, those inside another left out."""
    return _outermost((node.start_byte, node.end_byte) for node in nodes)


def _outermost(spans: Iterable[tuple[int, int]]) -> Ints:
    outer: list[tuple[int, int]] = []
    last = -1
    for start, minus_end in sorted({(start, -end) for start, end in spans}):
        if -minus_end > last:
            last = -minus_end
            outer.append((start, last))
    return np.array(outer, np.int64).reshape(-1, 2)
