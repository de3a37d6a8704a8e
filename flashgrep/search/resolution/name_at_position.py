"""What is at a place of a file: a name according to the grammar, or why there is none.

Also what a local name is declared by, in languages whose scopes nobody has described (``ingest.parse.scoping``).
"""

import re
from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from flashgrep.checkpoint import checkpoint
from flashgrep.errors import InvalidRange, NotFound
from flashgrep.ingest.columns import PositionEncoding, find_column
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.ingest.parse.model import CALLABLE_KINDS, END, NAME_END
from flashgrep.ingest.parse.scoping import SCOPED
from flashgrep.languages import LANGUAGES
from flashgrep.model import Skipped, path_to_text
from flashgrep.search.symbol_source import SymbolSource, tree_of

MOST_NAME: Final = 1_000
"""Bytes of a name."""
_UNNAMED: Final = re.compile(r"string|comment|number|literal|content|text|fragment|primitive_type")
"""Types of nodes that may be one word but do not name anything in a project."""
_MOST_NESTED: Final = 20
"""Declarators around a name, of pointers, arrays and functions."""
_MODULE_TEXTS: Final = frozenset({"string_fragment", "interpreted_string_literal_content"})
"""Types of nodes that are a module's name in an import of JavaScript, TypeScript or Go."""
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
"""Parts of the types of nodes that declare something, and of those that what is declared is seen in."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name at a place: its file, where it stands, in bytes, and the tree of the file where there is one."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    root: Node | None
    module: str = ""
    """The module as it is written, where an import names it there."""

    @property
    def text(self) -> str:
        """The name."""
        return self.symbols.data[self.start : self.end].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why there is no name at a place, or nothing is known of its file."""

    reason: str
    detail: str = ""


def find_at_place(
    source: SymbolSource, path: bytes, line: int, column: int, encoding: PositionEncoding
) -> Named | Nothing:
    """Return the name at a line and column, both from 1; a place right after a name is on it, too.

    Raises:
        NotFound: the file is gone.
        InvalidRange: the text has no such line.

    """
    symbols = source.open(path)
    if isinstance(symbols, Skipped):
        return Nothing(symbols.reason, symbols.detail)
    if symbols is None:
        if source.read(path) is None:
            shown = path_to_text(path)
            raise NotFound(f"no such file: {shown}", reason="file_not_found", path=shown)
        return Nothing("no_language", "symbols are known of no file of this name")
    found = read_line(symbols, line)
    if found is None:
        last = symbols.lines.line(len(symbols.data))
        raise InvalidRange(f"line {line}: the file has {last}", lines=last)
    start, text = found
    at = find_column(text, column, encoding)
    root = tree_of(symbols) if at is not None else None
    for offset in () if at is None else (start + at, start + at - 1):
        if start <= offset < start + len(text) and (span := _name_at(symbols, root, offset)) is not None:
            return Named(path, symbols, *span, root, _module_at(symbols, root, span[0]))
    return _explain(symbols, text, start, at)


def read_line(symbols: FileSymbols, line: int) -> tuple[int, bytes] | None:
    """Return the offset at which a line, from 1, begins, and its bytes without its end; None where it has none."""
    data, lines = symbols.data, symbols.lines
    if line > lines.line(len(data)):
        return None
    start = lines.start(line)
    end = data.find(b"\n", start)
    return start, data[start : end if end >= 0 else len(data)].removesuffix(b"\r")


def _explain(symbols: FileSymbols, text: bytes, start: int, at: int | None) -> Nothing:
    """Return why there is no name in a line; ``at``: the byte of it that is meant, None past its end."""
    if at is None:
        return Nothing("past_line_end", "the line ends before this column")
    if not text.strip():
        return Nothing("blank", "the line is blank")
    skips = symbols.parsed.skips
    before = int(skips[:, 0].searchsorted(start + at, side="right")) - 1
    if before >= 0 and start + at < int(skips[before, 1]):
        return Nothing("text", "this position is in a comment or a string")
    return Nothing("no_name", "there is no name at this position")


def _name_at(symbols: FileSymbols, root: Node | None, offset: int) -> tuple[int, int] | None:
    """Return the bytes of the name around a place."""
    extra = re.escape(LANGUAGES[symbols.language].word)
    if root is None:
        before = re.search(rb"[\w\x80-\xff%s]*\Z" % extra, symbols.data[max(0, offset - MOST_NAME) : offset])
        start = offset - len(before[0]) if before else offset
        word = symbols.word_at(start).encode("utf-8", "replace")
        return (start, start + len(word)) if word and symbols.role(start) is not None else None
    node = root.descendant_for_byte_range(offset, offset + 1)
    if node is not None and _module_at(symbols, root, offset):
        return node.start_byte, node.end_byte
    if node is None or node.child_count or not node.is_named or node.end_byte - node.start_byte > MOST_NAME:
        return None
    text = symbols.data[node.start_byte : node.end_byte]
    is_name = re.fullmatch(rb"(?!\d)[\w\x80-\xff%s]+" % extra, text)
    # A literal's or a keyword's node is called as it is written: true, null, this.
    if not is_name or _UNNAMED.search(node.type) or node.type == text.decode("ascii", "replace").lower():
        return None
    return node.start_byte, node.end_byte


def _module_at(symbols: FileSymbols, root: Node | None, offset: int) -> str:
    """Return the module that an import names at a place, as far as to there; empty where none does."""
    if root is None or symbols.language not in SCOPED or symbols.role(offset) != "import":
        return ""
    leaf = root.descendant_for_byte_range(offset, offset + 1)
    around = leaf.parent if leaf is not None else None
    if leaf is None or around is None or leaf.child_count or leaf.end_byte - leaf.start_byte > MOST_NAME:
        return ""
    # "As far as to there": at ``b`` of ``a.b.c`` the module is ``a.b``.
    start, outer = leaf.start_byte, around.parent
    if leaf.type not in _MODULE_TEXTS:
        if around.type != "dotted_name" or outer is None or leaf.type != "identifier":
            return ""
        is_import = outer.type == "import_statement" or (
            outer.type == "aliased_import" and outer.parent is not None and outer.parent.type == "import_statement"
        )
        if not is_import and outer.type != "relative_import" and outer.child_by_field_name("module_name") != around:
            return ""
        start = outer.start_byte if outer.type == "relative_import" else around.start_byte
    return symbols.data[start : leaf.end_byte].decode("utf-8", "replace")


def find_declaration(root: Node, symbols: FileSymbols, name: str, offset: int) -> tuple[Node, Node] | None:
    """Return the local declaration that a bare name at a place means: the node of the name and that around it.

    The last one before the place, in the outermost function around it, that is seen there.
    """
    # A nested function sees the names of those around it.
    around = outermost = symbols.enclosing(offset)
    while around >= 0:
        outermost = around if symbols.kind(around) in CALLABLE_KINDS else outermost
        around = symbols.parent(around)
    if outermost < 0 or symbols.kind(outermost) not in CALLABLE_KINDS:
        return None
    row, found = symbols.row(outermost), None
    # Places of the word are known; walking the tree for declarations would visit every node.
    for at in symbols.words(name.encode(), fold=False):
        checkpoint()
        if at > offset or at >= row[END]:
            break
        if at < row[NAME_END] or symbols.index_at(at) >= 0:
            continue
        leaf = root.descendant_for_byte_range(at, at + 1)
        declaring = _declaring(leaf) if leaf is not None else None
        if leaf is not None and declaring is not None and _is_seen(declaring, offset):
            found = leaf, declaring
    return found


def _declaring(leaf: Node) -> Node | None:
    """Return the parameter, declaration or pattern that a name is declared by; None where it is only used."""
    node = leaf
    for _ in range(_MOST_NESTED):
        parent = node.parent
        if parent is None:
            return None
        kind = parent.type
        is_part = any(node in parent.children_by_field_name(field) for field in _PART_FIELDS)
        if "parameter" in kind:
            return parent if is_part or kind.endswith("parameters") else None
        if kind == "assignment" or "pattern" in kind:
            is_left = node == parent.child_by_field_name("left")
            is_type = node == parent.child_by_field_name("type")
            return parent if (is_left if kind == "assignment" else not is_type) else None
        if not is_part:
            return None
        # C nests declarators: ``*name[3]`` is a pointer's in an array's, and the declaration is around all of them.
        if not kind.endswith("declarator"):
            return parent if any(word in kind for word in (*_DECLARING, "for")) else None
        node = parent
    return None


def _is_seen(declaring: Node, offset: int) -> bool:
    """Whether what is declared is seen at a place: in the block or the function right around it."""
    around = declaring if declaring.type.startswith("for") else declaring.parent
    while around is not None:
        kind = around.type
        is_head = kind.endswith("declarator") or "parameter" in kind or kind.startswith("variable")
        if not is_head and any(word in kind for word in _AROUND):
            return around.start_byte <= offset < around.end_byte
        around = around.parent
    return True
