"""Decoding SCIP files message by message: the occurrences of each document. The input is not trusted.

The wire format is https://protobuf.dev/programming-guides/encoding, the messages are those of
``parts.navigation.scip.proto``. Only the
fields we need are read, the others are skipped: 150 lines instead of a dependency with a compiled part.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from flashgrep.files.columns import PositionEncoding

MOST_MESSAGE: Final = 128 << 20
"""Bytes of a document; in real projects they take a few hundred kilobytes."""
MOST_OCCURRENCES: Final = 2_000_000
MOST_SYMBOL: Final = 8_192
"""Bytes of a symbol's name, which includes the names of everything that encloses it."""
MOST_PATH: Final = 4_096
_MOST_SHIFT: Final = 63
_MOST_LINE: Final = (1 << 31) - 1
_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""The wire types of fields; fixed ones have this many bytes."""
_MORE: Final = 0x80
"""The bit that says that more bytes of a number follow."""
_METADATA = 1
_DOCUMENTS = 2
_TOOL = 2
_PROJECT_ROOT = 3
_PATH = 1
_OCCURRENCES = 2
_TEXT = 5
_ENCODING = 6
_RANGE = 1
_SYMBOL = 2
_ROLES = 3
_TYPED_RANGES: Final = {8: 3, 9: 4}
"""Field numbers: of an index, its metadata, a document, an occurrence.

The last are messages of this many numbers that newer indexers write instead of a range, in the same order.
"""
_MOST_FIELD: Final = 15
"""Of an index: it has three fields, and may get more."""
_ON_ONE_LINE, _ON_SEVERAL = 3, 4
"""How many numbers a range has: the last line is left out if it equals the first."""
_ENCODINGS: Final[dict[int, PositionEncoding]] = {1: "utf-8", 2: "utf-16", 3: "utf-32"}
_LAST: Final = re.compile(
    r"(?:`((?:[^`]|``)+)`|([\w+\-$]+))(?:\([\w+\-$]*\)\.|[/#.:!])\Z|[\[(]([\w+\-$]+)[\])]\Z"
)

Place = tuple[int, int, int, int]
"""First line and column, last line and the column after the end, counted from 0."""


class Malformed(Exception):
    """A file is not SCIP, is truncated, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The tool that made an index, and the indexed folder, as a ``file:`` URL."""

    project_root: str = ""
    tool: str = ""


@dataclass(slots=True)
class ScipDocument:
    """The data of one source file."""

    path: bytes = b""
    """Relative to the indexed folder."""
    encoding: PositionEncoding | None = None
    """The unit of columns; None: unspecified."""
    text: bytes | None = None
    """The file's text, if the index has it."""
    places: list[Place] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)
    """The range, the symbol and the roles of each occurrence; roles are bits (1: definition, 2: import)."""

    @property
    def is_inside(self) -> bool:
        """Whether its path is below the indexed folder; that of generated code may not be."""
        parts = self.path.split(b"/")
        return (
            len(self.path) <= MOST_PATH
            and b"\0" not in self.path
            and {b"", b".", b".."}.isdisjoint(parts)
        )


def read_index(file: BinaryIO) -> Iterator[Metadata | ScipDocument]:
    """Yield the messages of a SCIP file, with one document in memory at a time.

    Raises:
        Malformed: the rest cannot be read.

    """
    while (tag := _read_varint(file)) is not None:
        size = _read_varint(file)
        # Nearly any other file fails here at its first bytes, before anything large is
        # read.
        if size is None or tag & 7 != _BYTES or not 1 <= tag >> 3 <= _MOST_FIELD:
            raise Malformed("not a SCIP index")
        if size > MOST_MESSAGE:
            raise Malformed(f"message too large: {size:,} bytes")
        message = file.read(size)
        if len(message) < size:
            raise Malformed("the file is truncated")
        if tag >> 3 == _METADATA:
            yield read_metadata(message)
        elif tag >> 3 == _DOCUMENTS:
            yield read_document(message)


def read_name(symbol: str) -> str:
    """Return the name that a symbol ends with (``f`` of ``scheme manager package version dir/`a.py`/C#f().``)."""
    match = _LAST.search(symbol)
    if match is None:
        return ""
    return (match[1] or "").replace("``", "`") or match[2] or match[3]


def read_metadata(message: bytes) -> Metadata:
    """Return the metadata of an index."""
    root = tool = ""
    for number, value in _fields(message):
        if number == _TOOL and isinstance(value, bytes):
            # The fields of the tool: 1, its name, and 2, its version.
            texts = {
                current_number: text
                for current_number, text in _fields(value)
                if current_number in {1, 2} and isinstance(text, bytes)
            }
            tool = b" ".join(texts[text] for text in sorted(texts)).decode(
                "utf-8", "replace"
            )[:200]
        elif number == _PROJECT_ROOT and isinstance(value, bytes):
            root = value.decode("utf-8", "surrogateescape")[:MOST_PATH]
    return Metadata(root, tool)


def read_document(message: bytes) -> ScipDocument:
    """Return the data of a source file; raises as ``read_index``."""
    scip_document = ScipDocument()
    for number, value in _fields(message):
        if number == _OCCURRENCES and isinstance(value, bytes):
            read_occurrence(value, scip_document)
            if len(scip_document.places) > MOST_OCCURRENCES:
                raise Malformed(
                    f"document with more than {MOST_OCCURRENCES:,} occurrences"
                )
        elif number == _PATH and isinstance(value, bytes):
            scip_document.path = value
        elif number == _TEXT and isinstance(value, bytes):
            scip_document.text = value or None
        elif number == _ENCODING and isinstance(value, int):
            scip_document.encoding = _ENCODINGS.get(value)
    return scip_document


def read_occurrence(message: bytes, found: ScipDocument) -> None:
    """Add an occurrence to a document; raises as ``read_index``."""
    place: list[int] = []
    symbol = b""
    roles = 0
    for number, value in _fields(message):
        if number == _RANGE or number in _TYPED_RANGES:
            # A range may be packed, or have a field per number; a reader must accept
            # both.
            place += read_range(number, value)
        elif number == _SYMBOL and isinstance(value, bytes):
            symbol = value
        elif number == _ROLES and isinstance(value, int):
            roles = value & 0xFF
    if not symbol:  # only syntax highlighting, or a diagnostic
        return
    if len(place) == _ON_ONE_LINE:
        place.insert(2, place[0])
    if (
        len(place) != _ON_SEVERAL
        or max(place) > _MOST_LINE
        or len(symbol) > MOST_SYMBOL
    ):
        raise Malformed("occurrence without a valid range, or with too long a name")
    found.places.append((place[0], place[1], place[2], place[3]))
    found.symbols.append(symbol.decode("utf-8", "surrogateescape"))
    found.roles.append(roles)


def read_range(number: int, value: int | bytes) -> list[int]:
    """Return the numbers of a range from a field of an occurrence; raises as ``read_index``."""
    if isinstance(value, int):
        return [value]
    if number in _TYPED_RANGES:
        fields = dict(_fields(value))  # zeros are omitted
        parts = (fields.get(part, 0) for part in range(1, _TYPED_RANGES[number] + 1))
        return [part for part in parts if isinstance(part, int)]
    numbers = []
    at = 0
    while at < len(value):
        current_number, at = _varint(value, at)
        numbers.append(current_number)
    return numbers


def _read_varint(file: BinaryIO) -> int | None:
    """Return the next number of a file, or None at its end."""
    value = shift = 0
    while byte := file.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < _MORE:
            return value
        shift += 7
        if shift > _MOST_SHIFT:
            break
    if shift:
        raise Malformed("the file is truncated")
    return None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: numbers, or the bytes of strings and nested messages."""
    at = 0
    size = len(data)
    while at < size:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(data, at)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise Malformed("field of an unsupported wire type")
        if length > size - at:
            raise Malformed("field longer than its message")
        if kind == _BYTES:
            yield tag >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset and the offset after it."""
    value = shift = 0
    # 64 bits take ten bytes of seven each.
    for byte in data[at : at + 10]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, at
        shift += 7
    raise Malformed("number of more than ten bytes")
