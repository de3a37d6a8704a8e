"""From a syntax tree to columns: run the tags query, nest definitions by span, adjust kinds to what is around."""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import Final

import numpy as np
from tree_sitter import Node, QueryCursor

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import LANGUAGES
from flashgrep.parts.symbols.parse.generic import find_missed_definitions, is_inside
from flashgrep.parts.symbols.parse.grammar import DEPTH, MATCH_LIMIT, Grammar
from flashgrep.parts.symbols.parse.model import (
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

_ANONYMOUS: Final = len(KINDS)
_INLINE: Final = len(KINDS) + 1
"""Scopes without a name, only for nesting: a function's, and a type's."""
_SCOPE_ID: Final = {**KIND_ID, "anonymous": _ANONYMOUS, "inline": _INLINE}
_CONSTRUCTS: Final = {kind: (number, 0) for kind, number in _SCOPE_ID.items()} | {
    f"declaration.{kind}": (number, 1) for kind, number in _SCOPE_ID.items()
}
"""By the name of a capture: the kind of construct, and whether it only declares."""
_TYPES: Final = frozenset({KIND_ID[kind] for kind in TYPE_KINDS} | {_INLINE})
_FUNCTIONS: Final = frozenset({KIND_ID[kind] for kind in CALLABLE_KINDS} | {_ANONYMOUS})
_LOCAL: Final = frozenset({KIND_ID["variable"], KIND_ID["constant"]})
_IN_TYPE: Final = {
    KIND_ID["function"]: KIND_ID["method"],
    KIND_ID["variable"]: KIND_ID["field"],
}
_MACRO: Final = KIND_ID["macro"]
_PROPERTY: Final = KIND_ID["property"]
_NO_KEYWORDS: Final = frozenset[bytes]()
_KEYWORDS: Final = frozenset(
    b"if else for while do switch case return sizeof goto int void char long struct union enum const static".split()
)
"""Words that the grammars of C and C++ take for names after a macro that they cannot parse."""
_OF_C: Final = frozenset({"c", "cpp", "objc"})
_KEEPS_LOCALS: Final = frozenset({"bash", "vim"})
"""Languages whose queries leave out local variables, or whose functions set variables of the whole file."""
_QUALIFIED: Final = re.compile(rb"[^\W\d][\w.:\\]*(?:::|[.\\])(?=\w)")
_LEAD: Final = b":#$@%\\"
"""What may precede a name: marks of Ruby, Bash and Markdown, sigils of Perl and PowerShell, TeX's backslash."""
_MARKS_NAMES: Final = {
    **dict.fromkeys(
        ("javascript", "typescript", "tsx", "vue", "svelte", "astro"), ord("#")
    ),
    **dict.fromkeys(("kotlin", "scala", "swift"), ord("`")),
}
"""The mark before private names, or names that are keywords, which the grammar counts as part of the name."""
_QUOTED: Final = frozenset(
    KIND_ID[kind] for kind in ("property", "object", "module", "method", "function")
)
"""Kinds whose name may be a string: the keys of data, Groovy's methods."""
_QUOTES: Final = ((b"`",), (b"`", b'"', b"'"))
"""Quotes that may enclose a name: of any kind, and of the kinds in ``_QUOTED``."""
_WHOLE_NAME: Final = frozenset({KIND_ID["heading"], KIND_ID["package"]})
_NEWLINE: Final = 10
_CHECKED: Final = 256
"""Matches between two checkpoints, about 0.3 ms."""

_Row = tuple[int, int, bool, int, int, int, int, int, int]
"""One definition or nameless scope: start, -end, whether it has a name, the name's start and end, kind, whether it only
declares, the qualifier's start and end. Sorted by the first four, a scope comes before what it contains."""
_PLACE: Final = itemgetter(0, 1, 2, 3)


def collect_tags(
    language: str,
    grammar: Grammar,
    data: bytes,
    root: Node,
    blanked: Sequence[tuple[int, int]] = (),
) -> ParsedFile:
    """Return the symbols of a file; ``root``: of its syntax tree, which lacks the spans in ``blanked``."""
    cursor = QueryCursor(grammar.query, match_limit=MATCH_LIMIT)
    cursor.set_max_start_depth(DEPTH)
    word = LANGUAGES[language].word
    splits, lead = b"." not in word, _LEAD.translate(None, word)
    keywords = _KEYWORDS if LANGUAGES[language].symbols in _OF_C else _NO_KEYWORDS
    named: dict[int, tuple[int, _Row]] = {}
    scopes: list[_Row] = []
    references: dict[str, list[Node]] = {
        kind: []
        for kind in (
            *(*MARKS, "bound", "skip", "quoted"),
            *("statement", "error", "attribute"),
        )
    }
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
        ):  # of several patterns, the first is the most specific
            named[name] = pattern, row
    if references["attribute"]:
        references["call"] = _outside(references["call"], references["attribute"])
    quoted = {node.start_byte for node in references["quoted"]}
    skips = _spans(
        [node for node in references["skip"] if node.start_byte not in quoted]
    )
    if root.has_error or blanked:
        beside = _find_beside(language, data, root, references["error"], blanked, skips)
        for row in beside:
            named.setdefault(row[3], (0, row))
    table = _nest(language, [*(row for _, row in named.values()), *scopes])
    named_offsets = {row[0] for row in table}
    return ParsedFile(
        language=language,
        definitions=np.array(table, np.int64).reshape(-1, COLUMNS),
        marks={
            kind: _starts(language, references[kind], data, named_offsets)
            for kind in MARKS
        },
        skips=skips,
        statements=_spans(references["statement"]),
        bound=_starts(language, references["bound"], data, named_offsets)
        if grammar.captures_bound
        else None,
        grammar="tree-sitter",
    )


def _find_beside(
    language: str,
    data: bytes,
    root: Node,
    errors: Sequence[Node],
    blanked: Sequence[tuple[int, int]],
    skips: Ints,
) -> Iterator[_Row]:
    """Yield what a file defines that its tree may lack."""
    # Words of prose introduce no names.
    is_code = LANGUAGES[language].nature == "code"
    if not is_code and language != "tex":
        return
    spans = [(node.start_byte, node.end_byte) for node in errors]
    missing = _outermost([*spans, *blanked])
    missed = find_missed_definitions(language, data, missing, skips)
    # The grammar may lose much of what follows an error, and a file has errors while
    # it is being edited. Without one only what was blanked is missing.
    if not root.has_error:
        missed = missed[is_inside(missed[:, NAME], missing)]
    for name, name_end, start, end, kind, *rest in missed.tolist():
        yield (start, -end, True, name, name_end, kind, *rest)


def _read_definition(
    captured: dict[str, list[Node]], data: bytes, lead: bytes, *, splits: bool
) -> _Row:
    """Return the definition that one match describes.

    ``lead``: bytes that may precede a name and are not part of it. ``splits``: whether what precedes a name's last dot
    is its qualifier.
    """
    start = end = body_end = kind = name = name_end = -1
    declares = qualifier = qualifier_end = 0
    for capture, (node, *_) in captured.items():
        if capture == "name":
            name = node.start_byte
            name_end = node.end_byte
        elif capture in _CONSTRUCTS:
            kind, declares = _CONSTRUCTS[capture]
            start = node.start_byte
            end = node.end_byte
            if end and data[end - 1] == _NEWLINE:  # some grammars include the line feed
                end -= 1
        elif capture == "container":
            qualifier = node.start_byte
            qualifier_end = node.end_byte
        elif capture == "body":  # in grammars where a body is its signature's sibling
            body_end = node.end_byte
    end = max(end, body_end)
    text = data[name:name_end]
    # Most names consist of letters, digits and ``_``: there is nothing to strip.
    if name >= 0 and not text.replace(b"_", b"").isalnum():
        stripped = _strip_marks(text, kind, data[name_end : name_end + 1], lead)
        name += text.find(stripped)
        name_end = name + len(stripped)
        if (
            splits
            and kind not in _WHOLE_NAME
            and not qualifier_end
            and (match := _QUALIFIED.match(stripped))
        ):
            qualifier = name
            qualifier_end = name + match.end()
            name += match.end()
    return (
        start,
        -end,
        kind < _ANONYMOUS,
        name,
        name_end,
        kind,
        declares,
        qualifier,
        qualifier_end,
    )


def _strip_marks(name: bytes, kind: int, following: bytes, lead: bytes) -> bytes:
    """Return a name without the marks that the grammar includes; ``following``: the byte after it."""
    if kind == KIND_ID["heading"]:
        text = name.strip(b" \t\r\n#")
        # LaTeX has a heading's text in braces.
        if text[:1] == b"{" and text[-1:] == b"}":
            text = text[1:-1].strip()
        return text.partition(b"\n")[0].rstrip()
    if name[-1:] == b"=" and name[:-1].isalnum() and following in b"'\"":
        return name[:-1]  # a shell alias: ``ll='ls -l'``
    if (
        name[:1] in _QUOTES[kind in _QUOTED]
        and len(name) > len("''")
        and name.endswith(name[:1])
    ):
        return name.strip(name[:1])
    return name.lstrip(lead)


def _find_scope(around: Sequence[tuple[int, int]], end: int) -> int:
    """Return the kind of the innermost open scope that reaches to ``end``, or -1."""
    for scope_end, kind in reversed(around):
        if scope_end >= end:
            return kind
    return -1


def _nest(language: str, rows: list[_Row]) -> list[tuple[int, ...]]:
    """Nest definitions and return them as rows of a table.

    Functions in types become methods, variables in types fields; local variables are left out.
    """
    rows.sort(key=_PLACE)
    around: list[
        tuple[int, int]
    ] = []  # end and kind of the open scopes, the innermost last
    table: list[tuple[int, ...]] = []
    for (
        start,
        minus_end,
        has_name,
        name,
        name_end,
        own_kind,
        declares,
        qualifier,
        qualifier_end,
    ) in rows:
        kind = own_kind
        end = -minus_end
        while around and around[-1][0] <= start:
            around.pop()
        scope = _find_scope(around, end)
        # CMake's macros have no local variables; its functions can set those of their
        # callers explicitly.
        is_seen = language in _KEEPS_LOCALS or (
            language == "cmake" and (scope == _MACRO or declares)
        )
        if kind in _LOCAL and scope in _FUNCTIONS and not is_seen:
            continue
        if scope in _TYPES:
            kind = _IN_TYPE.get(kind, kind)
        if has_name:
            table.append(
                (name, name_end, start, end, kind, declares, qualifier, qualifier_end)
            )
        if kind not in _LOCAL and (
            kind != _PROPERTY or language != "nix"
        ):  # Nix's properties are no scopes
            around.append((end, kind))
    return table


def _starts(
    language: str, nodes: list[Node], data: bytes, taken: AbstractSet[int]
) -> Ints:
    """Return where the last part of each name begins, without those in ``taken``."""
    if language == "elixir":  # ``Shop.Store`` is one node
        starts = {
            data.rfind(b".", node.start_byte, node.end_byte) + 1 or node.start_byte
            for node in nodes
        }
    elif language == "tex":
        starts = {node.start_byte + (data[node.start_byte] in _LEAD) for node in nodes}
    elif (mark := _MARKS_NAMES.get(language)) is not None:
        starts = {node.start_byte + (data[node.start_byte] == mark) for node in nodes}
    else:
        starts = {node.start_byte for node in nodes}
    return np.array(sorted(starts - taken), np.int64)


def _spans(nodes: Iterable[Node]) -> Ints:
    """Return the nodes' spans, sorted, without those inside another."""
    return _outermost((node.start_byte, node.end_byte) for node in nodes)


def _outside(names: Sequence[Node], around: Sequence[Node]) -> list[Node]:
    """Return the names that are in none of the nodes, as what an attribute lists is not called."""
    starts = np.array([node.start_byte for node in names], np.int64)
    inside = is_inside(starts, _spans(around)).tolist()
    return [
        node for node, is_listed in zip(names, inside, strict=True) if not is_listed
    ]


def _outermost(spans: Iterable[tuple[int, int]]) -> Ints:
    outer: list[tuple[int, int]] = []
    last = -1
    for start, minus_end in sorted({(start, -end) for start, end in spans}):
        if -minus_end > last:
            last = -minus_end
            outer.append((start, last))
    return np.array(outer, np.int64).reshape(-1, 2)
