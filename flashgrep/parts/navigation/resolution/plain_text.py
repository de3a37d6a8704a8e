"""What the text alone shows about a name, to avoid parsing the file (2 to 30 ms for the part around a method).

Each function returns what the syntax tree would show, or reports that the tree is needed. For imports in languages
without module resolution, only the text of the statements is read.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    SEEN,
    Definition,
    Resolution,
)
from flashgrep.parts.symbols.parse.imports import DOTTED, PACKAGED
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    NAME_END,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.symbol_source import imports_of

_CHAIN: Final = re.compile(
    rb"(?<![\w$\x80-\xff#@\\])[A-Za-z_$\x80-\xff][\w$\x80-\xff]*(?:[?!]?\.[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)*[?!]?\Z"
)
_POINT: Final = re.compile(r"[?!]?\.")
_REST: Final = re.compile(rb"(?:\.?[\w$\x80-\xff]+)*")
_MOST_CHAIN: Final = 200
"""Most bytes of a chain of names; longer ones need the tree."""
_SUPER: Final = re.compile(rb"(?<![\w.])super\(\s*\)\.\Z")
_STATIC: Final = re.compile(rb"\bstatic\b")
_JUMP: Final = re.compile(rb"(?<![\w.])(?:goto|break|continue)[ \t]+\Z")
_ENDS_LABEL: Final = re.compile(rb"[ \t]*:[ \t]*(?://[^\n]*)?\r?\n")
_GETTER: Final = re.compile(rb"(?<![\w$.])get\s+#?\Z")
_PARAMETER: Final = re.compile(rb"\s*\(\s*(self|cls)\s*[,)]")
_BINDS_OWN: Final = re.compile(
    rb"\blambda[^:\n]*\b(?:self|cls)\b|\b(?:for|as|global|nonlocal)\s+(?:self|cls)\b"
    rb"|\b(?:self|cls)\s*(?:,[^()\n]*)?(?::?=(?!=)|:(?!=))"
)
"""What may rebind ``self`` in a method."""
_METHODS: Final = frozenset({"method", "constructor", "function"})
_SETS: Final = re.compile(
    rb"\s*(?:[-+*/%&|^@]|//|\*\*|<<|>>)?(?::|=(?!=)|,|\)\s*=(?!=))"
)
"""What may follow the target of an assignment."""

_OWN_MEMBER: Final = (b"self.", b"cls.", b"this.")
_UNPLAIN: Final = re.compile(rb"[\"'`#]|//|/\*|\n\s*@")
"""Strings and comments, in which brackets mean nothing, and decorators."""

_TOP_LEVEL: Final = {
    "python": re.compile(rb"(?:async\s+)?(?:def|class)\s+"),
    "go": re.compile(rb"(?:func|type)\s[^\n]*"),
    **dict.fromkeys(
        ("javascript", "typescript", "tsx"), re.compile(rb"export\s+[\w\s*]*")
    ),
}
"""What precedes the name of a definition that is certainly at the top level."""
_NAMESPACE: Final = rb"\bnamespace\s+%s\s*=\s*(?:\w+::)*(\w+)\s*;"
_INCLUDING: Final = frozenset(
    {"c", "cpp", "cuda", "objc", "objcpp", "ruby", "php", "perl"}
)
"""Languages in which an included file's name binds nothing: ``server`` may be an object despite ``server.h``."""


def read_chain(symbols: FileSymbols, end: int) -> tuple[list[str], int] | None:
    """Return the names of the chain ``a.b.c`` that ends at a position, and its start; None if more belongs to it."""
    start = max(0, end - _MOST_CHAIN)
    match = _CHAIN.search(symbols.data, start, end)
    if match is None or (match.start() == start and start):
        return None
    before = symbols.data[max(0, match.start() - _MOST_CHAIN) : match.start()].rstrip()
    names = _POINT.split(match[0].decode("utf-8", "replace").rstrip("?!"))
    # After a dot it is a member of something; a comment or a string may end anywhere.
    if before.endswith((b".", b"*/", b'"', b"'", b"`")) or names[0] == "super":
        return None
    return names, match.start()


def read_base(symbols: FileSymbols, offset: int) -> tuple[list[str], int] | None:
    """Return the names of the chain ``a.b.c`` that contains a base's name, and its start."""
    data = symbols.data
    rest = _REST.match(data, offset)
    if rest is not None:
        end = rest.end()
    else:
        end = offset
    after = data[end : end + _MOST_CHAIN].lstrip()
    if after.startswith((b".", b"?", b"!", b"/")):
        chain = None
    else:
        chain = read_chain(symbols, end)
    if chain is None or chain[0][0] == "this":
        return None
    return chain


def find_own_class(symbols: FileSymbols, offset: int) -> int:
    """Return the Python class around a position, by the file's definitions; -1 if there is none."""
    index = symbols.enclosing(offset)
    while index >= 0 and symbols.kind(index) not in TYPE_KINDS:
        index = symbols.parent(index)
    return index


def is_followed_by_point(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a member is accessed on the name at a position."""
    return symbols.data.startswith(b".", offset + len(name.encode()))


def is_getter(symbols: FileSymbols, offset: int) -> bool:
    """Whether a JavaScript method, given the offset of its name, is read like a field."""
    return (
        _GETTER.search(symbols.data, max(0, offset - _MOST_CHAIN), offset) is not None
    )


def is_on_super(symbols: FileSymbols, offset: int) -> bool:
    """Whether a name is accessed on ``super()``, without arguments, in Python."""
    return _SUPER.search(symbols.data, max(0, offset - _MOST_CHAIN), offset) is not None


def is_static(symbols: FileSymbols, index: int) -> bool:
    """Whether a definition of a class is one of the class itself, in JavaScript."""
    row = symbols.row(index)
    return _STATIC.search(symbols.data, row[START], row[NAME]) is not None


def is_in_static(symbols: FileSymbols, owner: int, offset: int) -> bool:
    """Whether a position is in a member of a class itself, where ``this`` is the class."""
    # Arrow functions, which may be between, have the same ``this``.
    index = symbols.enclosing(offset)
    while index >= 0 and symbols.parent(index) != owner:
        index = symbols.parent(index)
    return index >= 0 and is_static(symbols, index)


def is_label(symbols: FileSymbols, name: str, offset: int) -> bool:
    """Whether a name is the label of a statement in Go, or of a jump to one."""
    data = symbols.data
    # The key of a literal, the other name at the beginning of a line, has a value behind it.
    if _ENDS_LABEL.match(data, offset + len(name.encode())) is not None:
        start = data.rfind(b"\n", 0, offset) + 1
        return not data[start:offset].strip()
    return _JUMP.search(data, max(0, offset - _MOST_CHAIN), offset) is not None


def find_self(symbols: FileSymbols, word: str, offset: int) -> int | None:
    """Return the class that ``self`` or ``cls`` stands for at a position in Python; None: the tree is needed."""
    index = symbols.enclosing(offset)
    inner = -1
    while index >= 0 and symbols.kind(index) in CALLABLE_KINDS:
        index, inner = symbols.parent(index), index
    if inner < 0 or index < 0 or symbols.kind(index) not in TYPE_KINDS:
        return None
    row = symbols.row(inner)
    first = _PARAMETER.match(symbols.data, row[NAME_END])
    if (
        first is None
        or first[1].decode() != word
        or _BINDS_OWN.search(symbols.data, first.end(), row[END])
    ):
        return None
    # A nested function may have a parameter of that name.
    inside = symbols.data[first.end() : row[END]]
    return (
        None
        if b"def " in inside
        and re.search(rb"\bdef\s+\w+\s*\([^)]*\b(?:self|cls)\b", inside)
        else index
    )


def find_this(symbols: FileSymbols, offset: int) -> int | None:
    """Return the class of ``this`` at a position in JavaScript and TypeScript; None: the tree is needed."""
    inner = symbols.enclosing(offset)
    if inner >= 0 and symbols.kind(inner) in CALLABLE_KINDS:
        around = symbols.parent(inner)
    else:
        around = -1
    # A method of an object literal is a definition inside the enclosing method, so no
    # other ``this`` occurs here.
    if around >= 0 and symbols.kind(around) == "class":
        return around
    return None


def find_methods(symbols: FileSymbols, owner: int, name: str) -> list[int] | None:
    """Return a type's own methods of a name; None: something else may bind the name in the type.

    For Python, JavaScript and TypeScript. Assigned attributes and anything else that is not plain need the tree.
    """
    row = symbols.row(owner)
    data = symbols.data
    rows = []
    is_python = symbols.language == "python"
    if name.startswith("#"):  # the word index has names without the sign
        return None
    for at in symbols.words(
        name.encode(),
        fold=False,
        start=row[NAME_END],
        end=row[END],
    ):
        if (
            not is_python and b"#" in data[at - 1 : at + 1]
        ):  # a private name is a different name
            return None
        if (index := symbols.index_at(at)) >= 0:
            around = symbols.parent(index)
            if around == owner:
                # An object inside the class, for instance in a decorator, may also have
                # methods.
                depth = data.count(b"{", row[NAME_END], at) - data.count(
                    b"}", row[NAME_END], at
                )
                if symbols.kind(index) not in _METHODS or (
                    not is_python and depth != 1
                ):
                    return None
                rows.append(index)
            elif not is_python and around >= 0 and symbols.parent(around) == owner:
                return None  # a constructor parameter may also be a field
        elif (role := symbols.role(at)) is not None and (
            _SETS.match(data, at + len(name.encode()))
            if data[at - 1 : at] == b"."
            else role != "call"
        ):
            return None
    return (
        rows if is_python or not rows[1:] else None
    )  # only the tree shows which overload has a body


def find_part_of_members(
    symbols: FileSymbols, owner: int, name: str
) -> tuple[tuple[int, int], ...]:
    """Return the spans of a class that suffice to find what binds a name: its head, and the members that bind it.

    Empty if the class is needed as a whole.
    """
    data = symbols.data
    row = symbols.row(owner)
    word = name.encode().lstrip(b"#")
    head = _find_class_head(symbols, owner)
    if head is None:
        return ()
    spans = [head]
    comment = b"#" if symbols.language == "python" else b"//"
    for at in symbols.words(
        word,
        fold=False,
        start=head[1],
        end=row[END],
    ):
        member = symbols.index_at(at)
        if member < 0:
            before = data[at - len(b"this.#") : at].rstrip(b"#")
            is_own = (
                before.endswith(_OWN_MEMBER)
                and _SETS.match(data, at + len(word)) is not None
            )
            # A member that was not recognized as a definition may also be in the body.
            if not is_own and (
                symbols.enclosing(at) != owner or not symbols.parsed.may_bind(at)
            ):
                continue
            member = symbols.enclosing(at)
        while member >= 0 and (above := symbols.parent(member)) != owner:
            member = above
        start, end = symbols.row(member)[START : END + 1] if member >= 0 else (0, 0)
        line = data.rfind(b"\n", 0, start) + 1
        end_line = data.find(b"\n", end) + 1
        rest = data[end:end_line].strip(b" \t\r\n;,")
        # If members share a line, none can be left out.
        if (
            member < 0
            or data[line:start].strip()
            or (rest and not rest.startswith(comment))
        ):
            return ()
        if (line, end_line) != spans[-1]:
            if line < spans[-1][1]:
                return ()
            spans.append((line, end_line))
    return (
        *spans,
        *(() if symbols.language == "python" else ((row[END] - 1, row[END]),)),
    )


def _find_class_head(symbols: FileSymbols, owner: int) -> tuple[int, int] | None:
    """Return the span of a top-level class up to the start of its body, or in Python up to its first definition."""
    data = symbols.data
    row = symbols.row(owner)
    written = _TOP_LEVEL.get(symbols.language)
    start = data.rfind(b"\n", 0, row[NAME]) + 1
    if written is None or symbols.kind(owner) != "class" or start > row[START]:
        return None
    starts = symbols.parsed.definitions[:, START]
    following = starts[(starts > row[NAME]) & (starts < row[END])]
    if written.fullmatch(data, start, row[NAME]) is None or not len(following):
        return None
    end = data.rfind(b"\n", 0, int(following.min())) + 1
    if symbols.language != "python":
        # Up to the brace that opens the body: what follows may decorate a member that
        # is left out.
        depth = 0
        opening = 0
        for brace in re.finditer(rb"[{}]", data[start:end]):
            if not depth:
                opening = brace.end()
            depth += 1 if brace[0] == b"{" else -1
        end = start + opening
    is_plain = _UNPLAIN.search(data, start, end) is None and row[NAME_END] <= end
    if is_plain:
        return (start, end)
    return None


def find_part(symbols: FileSymbols, index: int) -> tuple[tuple[int, int], ...]:
    """Return the spans that suffice to look up names of a definition in all enclosing scopes except the file's own.

    They cover the outermost enclosing definition; of a class only its head, the enclosing member and its end, since
    no other part is visible there. Empty if the file is needed as a whole.
    """
    around = list[int]()
    while index >= 0:
        around.insert(0, index)
        index = symbols.parent(index)
    written = _TOP_LEVEL.get(symbols.language)
    data = symbols.data
    if not around or written is None:
        return ()
    row = symbols.row(around[0])
    start = data.rfind(b"\n", 0, row[NAME]) + 1
    if start > row[START] or written.fullmatch(data, start, row[NAME]) is None:
        return ()
    spans = [(start, row[END])]
    closing = list[tuple[int, int]]()
    for outer, inner in pairwise(around):
        if symbols.kind(outer) != "class":
            break
        (start, end), row = spans[-1], symbols.row(inner)
        starts = symbols.parsed.definitions[:, START]
        head_end = (
            data.rfind(b"\n", 0, int(starts[starts > symbols.row(outer)[NAME]].min()))
            + 1
        )
        line = data.rfind(b"\n", 0, row[START]) + 1
        head = data[start:head_end]
        is_plain = (
            symbols.language == "python" or head.count(b"{") == head.count(b"}") + 1
        )
        if (
            not (start < head_end <= line)
            or data[line : row[START]].strip()
            or not is_plain
        ):
            break
        spans[-1:] = [(start, head_end), (line, row[END])]
        if symbols.language != "python":
            closing.insert(0, (end - 1, end))
    return (*spans, *closing)


def resolve_import(symbols: FileSymbols, target: Definition) -> Resolution | None:
    """Return the evidence that an import brings the target into the file, if one does."""
    word = re.compile(rb"(?<![\w$])" + re.escape(target.name.encode()) + rb"(?![\w$])")
    folder = (
        target.path.rpartition(b"/")[0].rpartition(b"/")[2].decode("utf-8", "replace")
    )
    stem = target.stem.encode()
    for statement in _statements(symbols):
        is_named = word.search(statement) is not None
        if not is_named and stem not in statement:
            continue
        module = set(re.findall(r"[\w$-]+", statement.decode("utf-8", "replace")))
        if is_named:
            return Resolution(
                SEEN if module & {target.stem, folder} else GUESS, "import"
            )
        if (
            b"*" in statement or (b"::" not in statement and b"#include" in statement)
        ) and target.stem in module:
            return Resolution(0.85, "import")
    return None


def find_aliases(symbols: FileSymbols, name: str) -> set[tuple[str, bool]]:
    """Return the aliases under which a file imports a name, each with whether other files may import the alias."""
    if symbols.language in DOTTED:
        named = (
            import_
            for some in imports_of(symbols).names.values()
            for import_ in some
            if import_.name == name != import_.local
        )
        return {(import_.local, False) for import_ in named}
    renamed = re.escape(name.encode()) + rb"\s+as\s+(\w+)"
    if (
        re.search(renamed, symbols.data) is None
    ):  # takes a tenth of the time of reading all statements
        return set()
    word = re.compile(rb"(?<![\w$])" + renamed)
    statements = (
        (word.search(statement), statement.startswith(b"pub"))
        for statement in _statements(symbols)
    )
    return {
        (match[1].decode("utf-8", "replace"), is_public)
        for match, is_public in statements
        if match
    } - {(name, False)}


def find_real_name(symbols: FileSymbols, name: str) -> str:
    """Return the original name of a type or namespace if the file uses an alias for it."""
    if symbols.language in PACKAGED and name:
        return next(
            (
                import_.name
                for import_ in imports_of(symbols).names.get(name, ())
                if import_.name
            ),
            name,
        )
    if symbols.language != "cpp" or not name or b"namespace" not in symbols.data:
        return name
    match = re.search(_NAMESPACE % re.escape(name.encode()), symbols.data)
    if match:
        return match[1].decode("utf-8", "replace")
    return name


def _statements(symbols: FileSymbols) -> Iterator[bytes]:
    return (
        symbols.data[start:end] for start, end in symbols.parsed.statements.tolist()
    )


def find_module(symbols: FileSymbols, on: str) -> str:
    """Return the module that an import binds to a word, or an empty string."""
    if not on or symbols.language in _INCLUDING:
        return ""
    word = re.compile(rb"(?<![\w$.])" + re.escape(on.encode()) + rb"(?![\w$])")
    for statement in _statements(symbols):
        if not word.search(statement):
            continue
        alias = re.search(
            rb"(?<![\w$.:/-])([\w$.:/-]++)[\"']?\s+as\s+"
            + re.escape(on.encode())
            + rb"\b",
            statement,
        )
        # Rust's ``a::{self as b}``.
        alias = (
            re.search(
                rb"(?<!\w)(\w++)::\{[^{}]*\bself\s+as\s+"
                + re.escape(on.encode())
                + rb"\b",
                statement,
            )
            or alias
        )
        if alias:
            return re.split(r"[.:/]+", alias[1].decode("utf-8", "replace"))[-1]
        if not on[:1].isupper():
            return on
    return ""
