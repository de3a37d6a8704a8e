"""Occurrences of a name in one file: the text has the positions of the word, the columns say what each of them is."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.languages import LANGUAGES
from flashgrep.base.lazy import LazyAttribute
from flashgrep.files.columns import Lines
from flashgrep.parts.symbols.parse.describe import (
    documentation,
    find_body,
    receiver,
    signature,
)
from flashgrep.parts.symbols.parse.embedded import find_fences
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    DECLARES,
    END,
    KIND,
    KINDS,
    NAME,
    NAME_END,
    QUALIFIER,
    QUALIFIER_END,
    START,
    TYPE_KINDS,
    Ints,
    ParsedFile,
    packed_language,
    unpack,
)

Flags = NDArray[np.bool_]
Role = Literal[
    "definition", "declaration", "implementation", "import", "call", "reference"
]
ROLES: Final[tuple[Role, ...]] = (
    "definition",
    "declaration",
    "implementation",
    "call",
    "reference",
    "import",
)
"""Roles, in the order in which answers list them: a name that a thousand files import is used in them, too."""
STRING_PREFIXES: Final = {
    "python": frozenset(b"b f r t u br rb fr rf rt tr".split()),
    "rust": frozenset(b"b c r br cr".split()),
    "c": frozenset(b"l r u u8 lr ur u8r".split()),
    "cpp": frozenset(b"l r u u8 lr ur u8r".split()),
}
"""Letters that begin a string in a language, in lower case: no names, where a quote is next to them."""
STRING_STARTS: Final = (b'"', b"'", b'#"')
_GENERICS: Final = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|[*&\s]")
_PARTS: Final = re.compile(r"::|[.#/\\]|->")
_NO_MODULES: Final = frozenset({"", "src", "lib", "mod", "main", "index", "__init__"})
"""Names of files and folders that do not appear in the names of modules."""
_PACKAGE: Final = re.compile(
    rb"(?m)^(?:\xef\xbb\xbf)?(?:package|namespace)\s+([\w.\\]+)"
)
_PACKAGE_BYTES: Final = 8192
"""Bytes at the start of a text in which it may declare its package."""
_USE_SIGNS: Final = frozenset("(<[{&*")
_AROUND_NAME: Final = re.compile(
    r"^[&*]+(?=[\w(])|(?<=[\w>\]?!])\([^()]*\)$|\{[^{}]*\}$"
)
"""Pointers before a name, and arguments or a literal's fields behind it."""
_TYPE_ARGUMENTS: Final = re.compile(
    r"(?<=\w)(?:(?:::)?<[\w\s,:&'*.|\[\]]*>|\[[^\W\d][\w\s,.*]*\])"
)
_MODULE_MEMBER: Final = re.compile(r"[\w.]*\.[\w.]*:[^\W\d][\w.]*")
"""As entry points are written: ``package.module:Name``."""
_ARITY: Final = re.compile(r"(?<=[\w?!])/\d{1,2}$")
_ROOTS: Final = frozenset({"crate", "self", "super"})
"""Names of Rust for a module by where it is used."""
_SCOPES: Final = TYPE_KINDS | CALLABLE_KINDS | {"module", "namespace", "heading"}
_WORD: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
) | frozenset(range(128, 256))
_BATCH: Final = 1_000
"""Positions of a word whose roles are determined together."""
OWN: Final = frozenset(
    {"self", "this", "cls", "Self", "super", "@", "base", "parent", "static"}
)
"""Words for the object a method runs on."""
PROSE: Final = frozenset(
    name
    for name, language in LANGUAGES.items()
    if language.nature == "prose" and name not in {"html", "tex", "bibtex"}
)
"""Languages whose words are words, except in blocks of code; headings are definitions all the same."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One position of a name; lines and columns from 1, ``offset`` in bytes."""

    name: str
    role: Role
    kind: str
    """The definition's kind; empty if the name is only used."""
    container: str
    """A qualified name: of the scope around the definition, or of the definition around the use."""
    start_line: int
    end_line: int
    line: int
    column: int
    offset: int
    receiver: str | None = None


def split_name(name: str) -> tuple[list[str], str]:
    """Return the qualifiers and the last part of a name like ``Class.method``, ``mod::fn``, ``Class.prototype.fn``.

    Also as tracebacks, Go and uses write it: ``(*T).Method``, ``List<T>::add``, ``add(item)``, ``pkg.mod:Name``, and
    Elixir, with the number of parameters: ``Token.sign/4``.
    """
    plain_name = _strip_uses(_ARITY.sub("", name))
    parts = [part for part in _PARTS.split(plain_name) if part]
    qualifiers = list[str]()
    for part in parts[:-1]:
        plain = part.strip("()*&")
        if plain and plain != "prototype" and plain not in _ROOTS:
            qualifiers.append(plain)
    if len(parts) < 2:  # noqa: PLR2004 - a qualifier and a name
        return [], plain_name
    return qualifiers, parts[-1]


def _strip_uses(name: str) -> str:
    """Return a name without what its uses have beside it: arguments, type arguments, pointers, a literal's braces."""
    if _MODULE_MEMBER.fullmatch(name):
        return name.replace(":", ".")
    if _USE_SIGNS.isdisjoint(name) or name.startswith("operator"):
        return name
    plain = _AROUND_NAME.sub("", name)
    # From the inside out: type arguments have their own.
    while True:
        inner = _TYPE_ARGUMENTS.sub("", plain)
        if inner == plain:
            return plain
        plain = inner


_HEAD: Final = 20_000
"""Bytes that are searched for the package declaration, which comes after the licence."""
_STATED: Final = re.compile(
    rb"(?m)^(?:\xef\xbb\xbf)?[ \t]*(?:<\?php\s[^\n]{0,99}?|[^\n]{0,200}?\*/[ \t]*)?\b(?:package|namespace)\s+([\w.\\]+)"
)
"""At the start of a line, or after a byte order mark, a PHP opening tag or a comment."""


class FileSymbols:
    """A file's text and columns together, with lookups by name and by position.

    Packed columns are unpacked (0.2 ms) when they are first needed.
    """

    def __init__(
        self,
        parsed: ParsedFile | bytes,
        data: bytes,
        kept: dict[object, Any] | None = None,
    ) -> None:
        """``kept``: a cache of what is read from an unsaved text, dropped with it; None: cache by content, for all."""
        self.kept = kept
        self._given = parsed
        self.language = (
            packed_language(parsed) if isinstance(parsed, bytes) else parsed.language
        )
        self.data = data
        self.lines = Lines(data)

    @LazyAttribute
    def parsed(self) -> ParsedFile:
        """Return the file's columns."""
        if isinstance(self._given, bytes):
            return unpack(self._given)
        return self._given

    @LazyAttribute
    def digest(self) -> bytes:
        """Return what identifies the text without holding it."""
        return hashlib.blake2b(self.data, digest_size=16).digest()

    @LazyAttribute
    def package(self) -> str:
        """Return the package or namespace that the file states, with dots between its parts; empty: none."""
        stated = _STATED.search(self.data, 0, _HEAD)
        if stated is None:
            return ""
        return stated[1].decode("utf-8", "replace").replace("\\", ".")

    @property
    def count(self) -> int:
        """How many definitions the file has."""
        return len(self.parsed.definitions)

    @property
    def rows(self) -> list[list[int]]:
        """The definitions' rows as plain integers, made anew each time: they take seven times as much as the columns."""
        return self.parsed.definitions.tolist()  # type: ignore[no-any-return] # numpy cannot say how deep

    @LazyAttribute
    def _by_name(self) -> tuple[Ints, Ints]:
        """Offsets of the definitions' names, ascending, and their rows; a lookup needs few of them."""
        names = self.parsed.definitions[:, NAME]
        # Rows are sorted by where definitions begin, which need not be the order of
        # their names.
        order = np.argsort(names)
        return names[order], order

    def row(self, index: int) -> list[int]:
        """Return a definition's row as plain integers."""
        return self.parsed.definitions[index].tolist()  # type: ignore[no-any-return] # numpy cannot say how deep

    def name(self, index: int) -> str:
        """Return a definition's name."""
        row = self.row(index)
        return self.data[row[NAME] : row[NAME_END]].decode("utf-8", "replace")

    def kind(self, index: int) -> str:
        """Return a definition's kind."""
        return KINDS[self.parsed.definitions[index, KIND]]

    def parent(self, index: int) -> int:
        """Return the innermost scope around a definition, or -1."""
        if index not in self._parents:  # needed again and again for the same few
            row = self.row(index)
            self._parents[index] = self._around(row[START], row[END], index)
        return self._parents[index]

    @LazyAttribute
    def _parents(self) -> dict[int, int]:
        return {}

    def bases(self, index: int) -> Iterator[int]:
        """Yield the offsets of the bases in a type's own head, not those of types inside it."""
        row = self.row(index)
        offsets = self.parsed.marked("base")
        inside = (offsets >= row[START]) & (offsets < row[END])
        for offset in offsets[inside].tolist():
            if self.enclosing(offset) == index:
                yield offset

    def enclosing(self, offset: int) -> int:
        """Return the innermost definition around an offset, or -1; the name of a definition is in its parent."""
        own = self.index_at(offset)
        if own >= 0:
            return self.parent(own)
        return self._around(offset, offset + 1, -1)

    def around(self, offset: int) -> int:
        """Return the innermost definition around an offset, even one whose own name is there, or -1."""
        return self._around(offset, offset + 1, -1)

    def _around(self, start: int, end: int, but: int) -> int:
        table = self.parsed.definitions
        is_around = (table[:, START] <= start) & (table[:, END] >= end)
        holds = is_around.nonzero()[0]
        mine: list[int] = []
        if but >= 0:
            mine = table[but, [START, END]].tolist()
        for index in holds[::-1].tolist():
            # Backwards: of those around a position, the last one begins nearest to it,
            # so it is the innermost. One with the same span is another name of the same
            # thing.
            if (
                index != but
                and self.kind(index) in _SCOPES
                and table[index, [START, END]].tolist() != mine
            ):
                return index  # type: ignore[no-any-return] # numpy cannot say how deep
        return -1

    def container(self, index: int) -> str:
        """Return the qualified name around a definition, including its own qualifier; empty at top level."""
        row = self.row(index)
        own = ""
        # Nearly all are qualified by what is around them alone.
        if row[QUALIFIER] < row[QUALIFIER_END]:
            stated = self.data[row[QUALIFIER] : row[QUALIFIER_END]]
            plain = _GENERICS.sub("", stated.decode("utf-8", "replace"))
            parts = _PARTS.split(plain.replace(":", "::"))
            own = ".".join(filter(None, parts))
        above = self.parent(index)
        # ``void A::f()`` inside another type names its own type; the one around does
        # not count then.
        if above < 0 or (own and self.kind(above) in TYPE_KINDS):
            return own
        outer = self.qualified(above)
        if outer and own:
            return f"{outer}.{own}"
        return outer or own

    def qualified(self, index: int) -> str:
        """Return a definition's name with its container."""
        container = self.container(index)
        name = self.name(index)
        if self.kind(index) == "extension":
            name = _GENERICS.sub("", name)
        if container:
            return f"{container}.{name}"
        return name

    def signature(self, index: int) -> str:
        """Return a definition up to its body."""
        row = self.row(index)
        return signature(self.lines, row[NAME], row[START], row[END])

    def find_head_end(self, index: int) -> int:
        """Return the last line of a definition's signature, or of the comment or string that its body begins with."""
        row = self.row(index)
        skips = self.parsed.skips
        definition = self.data[row[NAME] : row[END]]
        end = row[NAME] + find_body(definition, 0)
        at = int(skips[:, 0].searchsorted(end))
        if at < len(skips) and not self.data[end : int(skips[at, 0])].strip(
            b" \t\r\n{:\"'rRuUbB"
        ):
            end = int(skips[at, 1])
        return self.lines.line(end)

    def documentation(self, index: int) -> str:
        """Return the first line of a definition's documentation."""
        row = self.row(index)
        return documentation(self.lines, self.language, row[NAME], row[START], row[END])

    def defined(self, index: int) -> Occurrence:
        """Return a definition as an occurrence."""
        row = self.row(index)
        first, last = (
            self.lines.line(row[START]),
            self.lines.line(max(row[START], row[END] - 1)),
        )
        return self._occurrence(
            row[NAME], self.name(index), self.defined_role(index), index, (first, last)
        )

    def defined_role(self, index: int) -> Role:
        """Return whether a row defines, declares, or (an extension) adds to what is defined elsewhere."""
        if self.kind(index) == "extension":
            return "implementation"
        return (
            "declaration" if self.parsed.definitions[index, DECLARES] else "definition"
        )

    def index_at(self, offset: int) -> int:
        """Return the definition whose name begins at an offset, or -1."""
        names, order = self._by_name
        at = int(names.searchsorted(offset))
        if at == len(names) or names[at] != offset:
            return -1
        return int(order[at])

    def places(self, name: str, *, fold: bool = False) -> Iterator[tuple[int, Role]]:
        """Yield where the name occurs in code, each with its role, in order; ``fold`` ignores ASCII case."""
        wanted = name.encode()
        words = self.words(wanted, fold=fold)
        while some := list(islice(words, _BATCH)):
            for offset, role in zip(
                some, self._roles(np.array(some, np.int64)), strict=True
            ):
                index = self.index_at(offset)
                if index < 0:
                    if role is not None:
                        yield offset, role
                elif self.parsed.definitions[index, NAME_END] == offset + len(wanted):
                    yield offset, self.defined_role(index)

    def defining(self, name: str, *, fold: bool = False) -> Iterator[int]:
        """Yield the definitions and declarations of a name, in order of position."""
        wanted = name.encode()
        if not fold:
            yield from self._list_of_name(wanted)
            return
        for offset in self.words(wanted, fold=True):
            index = self.index_at(offset)
            if index < 0:
                continue
            if self.parsed.definitions[index, NAME_END] == offset + len(wanted):
                yield index

    def _list_of_name(self, wanted: bytes) -> Iterator[int]:
        """Yield the definitions of a name: few have its length, while a text has the word often."""
        names, order = self._by_name
        alike = (self._sizes == len(wanted)).nonzero()[0]
        behind = -1
        for at, offset in zip(alike.tolist(), names[alike].tolist(), strict=True):
            # Of several with one name the first is meant.
            if offset != behind and self.data.startswith(wanted, offset):
                yield int(order[at])
            behind = offset

    @LazyAttribute
    def _sizes(self) -> Ints:
        """How many bytes the definitions' names have, in the order of their offsets."""
        names, order = self._by_name
        ends: Ints = self.parsed.definitions[:, NAME_END]
        return ends[order] - names

    def beginning(
        self, start: str, *, fold: bool = False
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the definitions and declarations whose names begin with ``start``, each with its name."""
        if fold:
            start = start.lower()
        wanted = start.encode()
        for index, row in enumerate(self.rows):
            name = self.data[row[NAME] : row[NAME_END]]
            if not name.isascii():
                name = self.name(index).encode()
            compared = name
            if fold:
                compared = _lower(name)
            if compared.startswith(wanted):
                yield index, name

    def calls(self, name: str) -> Iterator[int]:
        """Yield where the name is called, like ``places``, but faster for a frequent word."""
        words = self.words(name.encode(), fold=False)
        marked = self.parsed.marked("call")
        if not len(marked):
            return
        while some := list(islice(words, _BATCH)):
            offsets = np.array(some, np.int64)
            called = _are_among(marked, offsets)
            if called.any():
                offsets = offsets[called]
                roles = zip(offsets.tolist(), self._roles(offsets), strict=True)
                yield from (offset for offset, role in roles if role == "call")

    def occurrence(self, offset: int, role: Role, size: int) -> Occurrence:
        """Return a result of ``places`` in full; ``size``: bytes of the name."""
        index = self.index_at(offset)
        if index >= 0:
            return self.defined(index)
        text = self.data[offset : offset + size].decode("utf-8", "replace")
        return self._occurrence(offset, text, role, -1, None)

    def role(self, offset: int) -> Role | None:
        """Return the role of a word that defines nothing; None inside comments and strings."""
        if _has(self.parsed.marked("base"), offset):
            return "implementation"
        if _has(self.parsed.marked("import"), offset) or self._within(
            self.parsed.statements, offset
        ):
            return "import"
        if _has(self.parsed.marked("call"), offset):
            return "call"
        is_prose = self.language in PROSE and not self._within(self._fences, offset)
        if is_prose or self._within(self.parsed.skips, offset):
            return None
        return "reference"

    def words(
        self, wanted: bytes, *, fold: bool, start: int = 0, end: int | None = None
    ) -> Iterator[int]:
        """Yield the offsets at which the bytes are a whole word; ``start``, ``end``: where it may begin."""
        if not wanted:
            return
        data = self.data
        if fold:
            data = data.lower()
            wanted = wanted.lower()
        extra = LANGUAGES[self.language].word
        is_prefix = wanted.lower() in STRING_PREFIXES.get(self.language, ())
        size = len(wanted)
        last = len(data)
        if end is not None:
            # A word that begins before the end may extend beyond it.
            last = end + size - 1
        at = data.find(wanted, start, last)
        while at >= 0:
            # Most matches of a short word are inside longer ones, so the byte before is
            # checked first.
            if (
                not at or data[at - 1] not in _WORD or data[at] not in _WORD
            ) and _stands_alone(data, at, at + size, extra):
                if not (is_prefix and data.startswith(STRING_STARTS, at + size)):
                    yield at
            at = data.find(wanted, at + 1, last)

    def word_at(self, offset: int) -> str:
        """Return the name that begins at an offset."""
        match = _name_pattern(LANGUAGES[self.language].word).match(self.data, offset)
        if match is None:
            return ""
        return match[0].decode("utf-8", "replace")

    def _occurrence(
        self,
        offset: int,
        text: str,
        role: Role,
        index: int,
        span: tuple[int, int] | None,
    ) -> Occurrence:
        line = self.lines.line(offset)
        if index < 0:
            around = self.around(offset)
        else:
            around = -1
        return Occurrence(
            name=text,
            role=role,
            kind=self.kind(index) if index >= 0 else "",
            container=self.container(index)
            if index >= 0
            else self.qualified(around)
            if around >= 0
            else "",
            start_line=span[0] if span else line,
            end_line=span[1] if span else line,
            line=line,
            column=self.lines.column(offset),
            offset=offset,
            receiver=receiver(self.data, offset, self.language) if index < 0 else None,
        )

    def _roles(self, offsets: Ints) -> list[Role | None]:
        """Return the roles of words that define nothing; calling ``role`` for each takes ten times as long."""
        is_import = _are_among(self.parsed.marked("import"), offsets) | _are_within(
            self.parsed.statements, offsets
        )
        found: list[Role | None] = ["reference"] * len(offsets)
        is_skipped = _are_within(self.parsed.skips, offsets)
        if self.language in PROSE:
            is_skipped |= ~_are_within(self._fences, offsets)
        for role, where in (
            (None, is_skipped),
            ("call", _are_among(self.parsed.marked("call"), offsets)),
            ("import", is_import),
            ("implementation", _are_among(self.parsed.marked("base"), offsets)),
        ):
            for at in where.nonzero()[0].tolist():
                found[at] = role  # type: ignore[assignment] # mypy takes the tuples' first part for any text
        return found

    def is_text(self, offset: int) -> bool:
        """Whether an offset is in a comment or in the text of a string."""
        return self._within(self.parsed.skips, offset)

    @LazyAttribute
    def _fences(self) -> Ints:
        """Return the blocks of code in prose, as spans in order."""
        spans = [
            (fence.start, fence.end) for fence in find_fences(self.language, self.data)
        ]
        return np.array(spans, np.int64).reshape(-1, 2)

    @staticmethod
    def _within(spans: Ints, offset: int) -> bool:
        before = int(spans[:, 0].searchsorted(offset, side="right")) - 1
        return before >= 0 and offset < int(spans[before, 1])


@cache
def _lower(name: bytes) -> bytes:
    if name.isascii():
        return name.lower()
    return name.decode().lower().encode()


@cache
def _name_pattern(extra: bytes) -> re.Pattern[bytes]:
    # A map asks 345,000 names of 1,800 files: escaping alone took a sixth of its time.
    # Languages have few sets of letters.
    return re.compile(rb"[\w\x80-\xff%s]+" % re.escape(extra))


def matches_qualifiers(found: Occurrence, qualifiers: list[str]) -> bool:
    """Return whether an occurrence may be what a qualified name means, by its scope or by its receiver."""
    if not qualifiers:
        return True
    around = [_GENERICS.sub("", part) for part in found.container.split(".") if part]
    if found.kind:
        return around[-len(qualifiers) :] == qualifiers
    own = found.receiver is None or found.receiver in OWN
    last = qualifiers[-1]
    return found.receiver == last or (own and last in around)


def matches_place(
    found: Occurrence, path: bytes, data: bytes, names: list[str]
) -> bool:
    """Return whether a definition is what a name means that begins with its module: ``pkg.Name``, ``a.b.Class.method``.

    ``names``: the qualifiers. The last ones are its whole container, those before them the end of its module: of its
    path, or of the package that its text declares.
    """
    around = [_GENERICS.sub("", part) for part in found.container.split(".") if part]
    split = len(names) - len(around)
    if split <= 0 or names[split:] != around:
        return False
    module = names[:split]
    folder, _, file = path.decode("utf-8", "replace").replace("-", "_").rpartition("/")
    folders = [part for part in folder.split("/") if part not in _NO_MODULES]
    stem = file.partition(".")[0]
    modules = [folders]
    if stem not in _NO_MODULES:
        modules.append([*folders, stem])
    package = _PACKAGE.search(data, 0, _PACKAGE_BYTES)
    if package is not None:
        modules.append(re.split(r"[.\\]", package[1].decode("utf-8", "replace")))
    return any(parts[-len(module) :] == module for parts in modules)


def _has(sorted_offsets: Ints, offset: int) -> bool:
    at = int(
        sorted_offsets.searchsorted(offset)
    )  # np.searchsorted takes three times as long
    return at < len(sorted_offsets) and int(sorted_offsets[at]) == offset


def _are_among(sorted_offsets: Ints, offsets: Ints) -> Flags:
    if not len(sorted_offsets):
        return np.zeros(len(offsets), np.bool_)
    found: Flags = (
        sorted_offsets.take(sorted_offsets.searchsorted(offsets), mode="clip")
        == offsets
    )
    return found


def _are_within(spans: Ints, offsets: Ints) -> Flags:
    if not len(spans):
        return np.zeros(len(offsets), np.bool_)
    before = spans[:, 0].searchsorted(offsets, "right") - 1
    return (before >= 0) & (offsets < spans[:, 1].take(before, mode="clip"))


def _stands_alone(data: bytes, start: int, end: int, extra: bytes) -> bool:
    """Return whether no name continues before or after."""
    if (
        start
        and data[start] in _WORD
        and (data[start - 1] in _WORD or data[start - 1] in extra.strip(b"?!'"))
    ):
        return False
    if end >= len(data) or data[end - 1] not in _WORD:
        return True
    return data[end] not in _WORD and not (
        data[end] in extra and data[end + 1 : end + 2] != b"="
    )
