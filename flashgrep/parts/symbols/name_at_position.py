"""The name at a position of a file, by the grammar, or the reason why there is none.

Also finds the declaration of a local name in languages without described scopes (``parts/symbols/parse/scoping.py``).
"""

import re
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import InvalidRange, NotFound
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.model import Skipped, path_to_text
from flashgrep.files.columns import PositionEncoding, find_column
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, END, NAME_END, START
from flashgrep.parts.symbols.parse.scoping import SCOPED
from flashgrep.parts.symbols.symbol_source import SymbolSource, tree_of

MOST_NAME: Final = 1_000
"""Most bytes of a name."""
_UNNAMED: Final = re.compile(
    r"string|comment|number|literal|content|text|fragment|primitive_type"
)
"""Types of nodes that may be a single word but do not name a symbol."""
_MOST_NESTED: Final = 20
"""Most declarators around a name: of pointers, arrays and functions."""
_MODULE_TEXTS: Final = frozenset(
    {"string_fragment", "interpreted_string_literal_content"}
)
"""Types of nodes that hold a module's name in an import of JavaScript, TypeScript or Go."""
PRIVATE: Final = "private_property_identifier"
"""The type of node of a private name in JavaScript and TypeScript, with its sign."""
_SHADOWING: Final = frozenset({"let_declaration", "let_condition"})
"""Declarations of Rust, whose names are not visible in their own values."""
_PART_FIELDS: Final = ("declarator", "name", "pattern")
_DECLARING: Final = ("declaration", "let", "variable", "binding")
_AROUND: Final = (
    "block",
    "compound",
    "body",
    "function",
    "method",
    "lambda",
    "closure",
    "for",
    "while",
    "catch",
    "arm",
)
"""Parts of the types of nodes that declare something, and of nodes that limit where a declaration is visible."""


@dataclass(frozen=True, slots=True)
class NameAtPosition:
    """A name at a position: its file, its span in bytes, and the file's tree if there is one."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    root: Node | None = None
    module: str = ""
    """The module as written, if the name is a module's name in an import."""

    @property
    def text(self) -> str:
        """The name."""
        return self.symbols.data[self.start : self.end].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class NoResult:
    """Why there is no name at a position, or no result for it."""

    reason: str
    detail: str = ""


def find_name_at(
    source: SymbolSource,
    path: bytes,
    line: int,
    column: int,
    encoding: PositionEncoding,
) -> NameAtPosition | NoResult:
    """Return the name at a line and column, both from 1; a position directly after a name also counts.

    Raises:
        NotFound: the file is gone.
        InvalidRange: the file has no such line.

    """
    symbols = source.open(path)
    if isinstance(symbols, Skipped):
        return NoResult(symbols.reason, symbols.detail)
    if symbols is None:
        if source.read(path) is None:
            shown_text = path_to_text(path)
            raise NotFound(
                f"no such file: {shown_text}", reason="file_not_found", path=shown_text
            )
        return NoResult("no_language", "files with this name have no symbols")
    found_line = read_line(symbols, line)
    if found_line is None:
        last = symbols.lines.line(len(symbols.data))
        raise InvalidRange(
            f"line {line} is past the end (the file has {last})", lines=last
        )
    start, text = found_line
    at = find_column(text, column, encoding)
    if at is not None:
        root = tree_of(symbols)
    else:
        root = None
    for offset in () if at is None else (start + at, start + at - 1):
        if (
            start <= offset < start + len(text)
            and (span := _name_at(symbols, root, offset)) is not None
        ):
            return NameAtPosition(
                path, symbols, *span, root, _module_at(symbols, root, span[0])
            )
    return _explain(symbols, text, start, at)


def read_line(symbols: FileSymbols, line: int) -> tuple[int, bytes] | None:
    """Return the offset where a line (from 1) begins, and its bytes without the line end; None: no such line."""
    data = symbols.data
    lines = symbols.lines
    if line > lines.line(len(data)):
        return None
    start = lines.start(line)
    end = data.find(b"\n", start)
    if end < 0:  # the last line need not end
        end = len(data)
    return start, data[start:end].removesuffix(b"\r")


def _explain(symbols: FileSymbols, text: bytes, start: int, at: int | None) -> NoResult:
    """Return why there is no name in a line; ``at``: the offset of the column in it, None past its end."""
    if at is None:
        return NoResult("past_line_end", "the line ends before this column")
    if not text.strip():
        return NoResult("blank", "the line is blank")
    skips = symbols.parsed.skips
    offset = start + at
    before = int(skips[:, 0].searchsorted(offset, side="right")) - 1
    if before >= 0 and offset < int(skips[before, 1]):
        return NoResult("text", "this position is in a comment or a string")
    return NoResult("no_name", "there is no name at this position")


def _name_at(
    symbols: FileSymbols, root: Node | None, offset: int
) -> tuple[int, int] | None:
    """Return the span of the name around an offset."""
    extra = re.escape(LANGUAGES[symbols.language].word)
    if root is None:
        leaf = None
    else:
        leaf = root.descendant_for_byte_range(offset, offset + 1)
    # Of a type in quotes the words have no nodes.
    if root is None or (leaf is not None and leaf.type == "string_content"):
        before = re.search(
            rb"[\w\x80-\xff%s]*\Z" % extra,
            symbols.data[max(0, offset - MOST_NAME) : offset],
        )
        if before:
            start = offset - len(before[0])
        else:
            start = offset
        word = symbols.word_at(start).encode("utf-8", "replace")
        if word and symbols.role(start) is not None:
            return (start, start + len(word))
        return None
    if symbols.language == "php" and symbols.data.startswith(b"$", offset):
        offset += 1  # the sign is no part of the name
    node = root.descendant_for_byte_range(offset, offset + 1)
    if node is not None and _module_at(symbols, root, offset):
        return node.start_byte, node.end_byte
    if node is not None and node.type == PRIVATE:  # nor is the sign of this one
        return node.start_byte + 1, node.end_byte
    if (
        node is None
        or node.child_count
        or not node.is_named
        or node.end_byte - node.start_byte > MOST_NAME
    ):
        return None
    text = symbols.data[node.start_byte : node.end_byte]
    is_name = re.fullmatch(rb"(?!\d)[\w\x80-\xff%s]+" % extra, text)
    # The node of a literal or a keyword has its text as its type: true, null, this.
    if (
        not is_name
        or _UNNAMED.search(node.type)
        or node.type == text.decode("ascii", "replace").lower()
    ):
        return None
    return node.start_byte, node.end_byte


def _module_at(symbols: FileSymbols, root: Node | None, offset: int) -> str:
    """Return the module that an import names, up to the offset; empty if there is none."""
    if (
        root is None
        or symbols.language not in SCOPED
        or symbols.role(offset) != "import"
    ):
        return ""
    leaf = root.descendant_for_byte_range(offset, offset + 1)
    if leaf is not None:
        around = leaf.parent
    else:
        around = None
    if (
        leaf is None
        or around is None
        or leaf.child_count
        or leaf.end_byte - leaf.start_byte > MOST_NAME
    ):
        return ""
    # "Up to the offset": at ``b`` of ``a.b.c`` the module is ``a.b``.
    start = leaf.start_byte
    outer = around.parent
    if leaf.type not in _MODULE_TEXTS:
        if around.type != "dotted_name" or outer is None or leaf.type != "identifier":
            return ""
        is_import = outer.type == "import_statement" or (
            outer.type == "aliased_import"
            and outer.parent is not None
            and outer.parent.type == "import_statement"
        )
        if (
            not is_import
            and outer.type != "relative_import"
            and outer.child_by_field_name("module_name") != around
        ):
            return ""
        if outer.type == "relative_import":
            start = outer.start_byte
        else:
            start = around.start_byte
    return symbols.data[start : leaf.end_byte].decode("utf-8", "replace")


def find_declaration(
    root: Node, symbols: FileSymbols, name: str, offset: int
) -> tuple[Node, Node] | None:
    """Return the local declaration that a bare name refers to: the node of the name and the declaring node.

    It is the last visible one before the offset, in the outermost enclosing function.
    """
    if symbols.language == "php":
        return _find_variable(root, symbols, name, offset)
    # A nested function sees the names of enclosing ones.
    around = outermost = symbols.enclosing(offset)
    while around >= 0:
        if symbols.kind(around) in CALLABLE_KINDS:
            outermost = around
        around = symbols.parent(around)
    if outermost < 0 or symbols.kind(outermost) not in CALLABLE_KINDS:
        return None
    row = symbols.row(outermost)
    declaration = None
    # The offsets of the word are indexed; a walk over the tree would visit every node.
    for at in symbols.words(name.encode(), fold=False):
        checkpoint()
        if at > offset or at >= row[END]:
            break
        if at < row[NAME_END] or symbols.index_at(at) >= 0:
            continue
        leaf = root.descendant_for_byte_range(at, at + 1)
        if leaf is not None:
            declaring = _declaring(leaf)
        else:
            declaring = None
        if leaf is None or declaring is None or not _is_seen(declaring, offset):
            continue
        if not (at < offset < _end_of_value(declaring)):
            declaration = leaf, declaring
    return declaration


def find_label(named: NameAtPosition) -> Node | None:
    """Return the label that a ``goto`` of C leads to: it may be before or behind, in the same function."""
    if named.root is None:
        return None
    symbols = named.symbols
    leaf = named.root.descendant_for_byte_range(named.start, named.end)
    if leaf is None or leaf.parent is None or leaf.parent.type != "goto_statement":
        return None
    function = symbols.enclosing(named.start)
    if function < 0:
        return None
    row = symbols.row(function)
    word = named.text.encode()
    for at in symbols.words(word, fold=False, start=row[START], end=row[END]):
        checkpoint()
        label = named.root.descendant_for_byte_range(at, at + len(word))
        around = label.parent if label is not None else None
        if around is not None and around.type == "labeled_statement":
            return label
    return None


def _end_of_value(declaring: Node) -> int:
    """Return where the value of Rust's ``let n = n`` ends, in which ``n`` is the one before; 0 for others."""
    node: Node | None = declaring
    while node is not None and "pattern" in node.type:
        node = node.parent
    if node is not None and node.type in _SHADOWING:
        return node.end_byte
    return 0


def _find_variable(
    root: Node, symbols: FileSymbols, name: str, offset: int
) -> tuple[Node, Node] | None:
    """Return where a variable of PHP is first named: in the function around it, or outside all functions."""
    if not _is_variable(symbols, offset) or name == "this":
        return None
    around = _enclosing_function(symbols, offset)
    for at in symbols.words(name.encode(), fold=False):
        checkpoint()
        if at > offset:
            return None
        if _is_variable(symbols, at) and _enclosing_function(symbols, at) == around:
            leaf = root.descendant_for_byte_range(at, at + 1)
            if leaf is not None:
                whole = leaf.parent
            else:
                whole = None
            if leaf is None or whole is None or symbols.index_at(at) >= 0:
                return None
            return leaf, whole.parent or whole
    return None


def _is_variable(symbols: FileSymbols, offset: int) -> bool:
    """Whether a name is that of a variable of PHP, not of a property."""
    return symbols.data.startswith(b"$", offset - 1) and not symbols.data.endswith(
        b"::", 0, offset - 1
    )


def _enclosing_function(symbols: FileSymbols, offset: int) -> int:
    """Return the outermost function or method around an offset, or -1: closures take the names around them."""
    around = symbols.enclosing(offset)
    outermost = -1
    while around >= 0:
        if symbols.kind(around) in CALLABLE_KINDS:
            outermost = around
        around = symbols.parent(around)
    return outermost


def _declaring(leaf: Node) -> Node | None:
    """Return the parameter, declaration or pattern that declares a name; None if the name is only used."""
    node = leaf
    for _ in range(_MOST_NESTED):
        parent = node.parent
        if parent is None:
            return None
        kind = parent.type
        is_part = any(
            node in parent.children_by_field_name(field) for field in _PART_FIELDS
        )
        if "parameter" in kind:
            if is_part or kind.endswith("parameters"):
                return parent
            return None
        if kind == "assignment" or "pattern" in kind:
            is_left = node == parent.child_by_field_name("left")
            is_type = node == parent.child_by_field_name("type")
            if kind == "assignment":
                declares = is_left
            else:
                declares = not is_type
            if declares:
                return parent
            return None
        if not is_part:
            return None
        # C nests declarators: in ``*name[3]`` an array's is inside a pointer's, and the
        # declaration is around both.
        if not kind.endswith("declarator"):
            if any(word in kind for word in (*_DECLARING, "for")):
                return parent
            return None
        node = parent
    return None


def _is_seen(declaring: Node, offset: int) -> bool:
    """Whether a declaration is visible at an offset: in the innermost block or function around the declaration."""
    around: Node | None = declaring
    # The variable of a loop is seen in the loop itself, any other in what is around.
    if not declaring.type.startswith("for"):
        around = declaring.parent
    while around is not None:
        kind = around.type
        is_head = (
            kind.endswith("declarator")
            or "parameter" in kind
            or kind.startswith("variable")
        )
        if not is_head and any(word in kind for word in _AROUND):
            return around.start_byte <= offset < around.end_byte
        around = around.parent
    return True
