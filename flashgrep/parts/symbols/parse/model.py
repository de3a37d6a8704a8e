"""The result of parsing a file: columns of byte offsets, small enough to keep for every file of a large tree.

Only positions are kept; names, signatures and documentation are read from the file's text.

FORMAT 2: byte planes of zigzag 32-bit columns, deflated. A team's store may have FORMAT 1, without the last column.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from flashgrep.base.damage import Damaged, inflate

Ints = NDArray[np.int64]

KINDS: Final = (
    "function", "method", "constructor", "class", "struct", "union", "interface", "trait", "enum", "enumerator",
    "type", "constant", "variable", "field", "property", "event", "macro", "module", "namespace", "object",
    "extension", "heading", "package",
)  # fmt: skip
"""Kinds of definitions; packed files store the index in this tuple, so only append."""
KIND_ID: Final = {kind: number for number, kind in enumerate(KINDS)}
TYPE_KINDS: Final = frozenset(
    {"class", "struct", "union", "interface", "trait", "enum", "object", "extension"}
)
CALLABLE_KINDS: Final = frozenset({"function", "method", "constructor", "macro"})
MARKS: Final = ("call", "import", "base")
"""Kinds of marked references, each a sorted column of name offsets."""
COLUMNS: Final = 8
NAME, NAME_END, START, END, KIND, DECLARES, QUALIFIER, QUALIFIER_END = range(COLUMNS)
"""Columns of the definitions; a qualifier is text such as the receiver's type, empty if its ends are equal."""
NUMBER_BYTES: Final = 8
"""Bytes of one number of a column in memory."""
_FORMAT = 2
_WITHOUT_BOUND = 1
MOST_UNPACKED: Final = 64 << 20
"""Bytes; the worst case, 4 MB of source with an enumerator every two bytes, takes 56 MB."""
_NONE: Final = np.zeros(0, np.int64)
_EMPTY: Final = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ParsedFile:
    """Definitions (rows of ``COLUMNS``, ordered by start), marked names, and the spans that are not code."""

    language: str
    definitions: Ints = field(default_factory=lambda: np.zeros((0, COLUMNS), np.int64))
    marks: Mapping[str, Ints] = field(default_factory=dict)
    skips: Ints = field(default_factory=lambda: _EMPTY)
    """Comments and string text, as (start, end)."""
    statements: Ints = field(default_factory=lambda: _EMPTY)
    """Import statements, as (start, end)."""
    bound: Ints | None = None
    """Offsets of names that a scope may bind, without definitions, sorted; None: not determined."""
    grammar: str = "generic"
    """``tree-sitter``, or ``generic`` if patterns were used instead of a grammar."""

    @property
    def size(self) -> int:
        """Bytes of the columns."""
        columns = [self.definitions, self.skips, self.statements, *self.marks.values()]
        if self.bound is not None:
            columns.append(self.bound)
        return sum(column.nbytes for column in columns)

    def names(self, data: bytes) -> list[bytes]:
        """Return the distinct names defined or declared, sorted."""
        spans = zip(
            self.definitions[:, NAME].tolist(),
            self.definitions[:, NAME_END].tolist(),
            strict=True,
        )
        return sorted({data[start:end] for start, end in spans})

    def marked(self, kind: str) -> Ints:
        """Return the sorted name offsets of one kind of marked reference."""
        return self.marks.get(kind, _NONE)

    def may_bind(self, offset: int) -> bool:
        """Return whether a scope may bind the name at an offset, which defines nothing."""
        if self.bound is None:
            return True
        at = int(self.bound.searchsorted(offset))
        if at == len(self.bound):
            return False
        return int(self.bound[at]) == offset

    def merge(self, others: Sequence["ParsedFile"]) -> "ParsedFile":
        """Return this with what other grammars found elsewhere in the same file."""
        every = [self, *others]
        table = np.concatenate([parsed_file.definitions for parsed_file in every])
        return replace(
            self,
            definitions=table[np.lexsort((-table[:, END], table[:, START]))],
            marks={
                kind: np.sort(
                    np.concatenate([parsed_file.marked(kind) for parsed_file in every])
                )
                for kind in MARKS
            },
            skips=_sort_spans(
                np.concatenate([parsed_file.skips for parsed_file in every])
            ),
            statements=_sort_spans(
                np.concatenate([parsed_file.statements for parsed_file in every])
            ),
        )

    def read_as_code(self, start: int, end: int) -> "ParsedFile":
        """Return this without the comments and strings that overlap a span."""
        first = int(self.skips[:, 1].searchsorted(start, side="right"))
        last = int(self.skips[:, 0].searchsorted(end))
        if first < last:
            return replace(
                self, skips=np.delete(self.skips, slice(first, last), axis=0)
            )
        return self

    def move(self, by: int, *, declares: bool) -> "ParsedFile":
        """Return this moved by a number of bytes; ``declares``: its definitions become declarations."""
        table = self.definitions.copy()
        table[:, [NAME, NAME_END, START, END]] += by
        table[:, [QUALIFIER, QUALIFIER_END]] += by * (table[:, [QUALIFIER_END]] > 0)
        if declares:
            table[:, DECLARES] = 1
        return replace(
            self,
            definitions=table,
            marks={kind: self.marked(kind) + by for kind in MARKS},
            skips=self.skips + by,
            statements=self.statements + by,
            bound=None,
        )


def pack(parsed: ParsedFile) -> bytes:
    """Return the file's symbols as bytes that ``unpack`` reads back."""
    table = parsed.definitions
    columns = [
        _steps(table[:, START]),
        table[:, NAME] - table[:, START],
        table[:, NAME_END] - table[:, NAME],
        table[:, END] - table[:, NAME_END],
        table[:, KIND] * 2 + table[:, DECLARES],
        np.where(table[:, QUALIFIER_END] > 0, table[:, NAME] - table[:, QUALIFIER], 0),
        table[:, QUALIFIER_END] - table[:, QUALIFIER],
        *(_steps(parsed.marked(kind)) for kind in MARKS),
        *_span_columns(parsed.skips),
        *_span_columns(parsed.statements),
    ]
    counts = [
        len(table),
        *(len(parsed.marked(kind)) for kind in MARKS),
        len(parsed.skips),
        len(parsed.statements),
    ]
    if parsed.bound is not None:
        columns.append(_steps(parsed.bound))
        counts.append(len(parsed.bound))
    flat = np.concatenate(columns)
    zigzag = ((flat << 1) ^ (flat >> 63)).astype("<u4")
    planes = zigzag.view(np.uint8).reshape(-1, 4).T.tobytes()
    words = [_FORMAT, parsed.language, parsed.grammar, *counts]
    head = " ".join(map(str, words)) + "\n"
    return head.encode() + zlib.compress(planes, 6)


def unpack(packed: bytes) -> ParsedFile:
    """Return what ``pack`` was given.

    Raises:
        Damaged: these are not bytes from ``pack``.

    """
    try:
        head, _, body = packed.partition(b"\n")
        version, language, grammar, *numbers = head.decode().split(" ")
        if int(version) not in {_FORMAT, _WITHOUT_BOUND}:
            raise Damaged(f"symbols: packed in format {version}")
        rows, calls, imports, bases, skips, statements, *bound = map(int, numbers)
        data = inflate(body, MOST_UNPACKED)
        planes = np.frombuffer(data, np.uint8).reshape(4, -1).T
        unsigned = np.ascontiguousarray(planes).view("<u4").reshape(-1)
        zigzag = unsigned.astype(np.int64)
        flat = (zigzag >> 1) ^ -(zigzag & 1)
        sizes = [rows] * 7 + [
            calls,
            imports,
            bases,
            skips,
            skips,
            statements,
            statements,
            *bound,
        ]
        ends = list(accumulate(sizes))
        if ends[-1] != len(flat):
            raise Damaged(f"symbols: {len(flat)} numbers for {ends[-1]}")
        parts = [
            flat[end - size : end] for end, size in zip(ends, sizes, strict=True)
        ]  # np.split takes 50 µs
        steps, before_name, name_length, tail, kinds, back, qualifier_length = parts[:7]
        table = np.empty(
            (rows, COLUMNS), np.int64
        )  # filled column by column: np.stack takes as long as all the rest
        table[:, START] = start = steps.cumsum()
        table[:, NAME] = name = start + before_name
        table[:, NAME_END] = name_end = name + name_length
        table[:, END] = name_end + tail
        table[:, KIND] = kinds >> 1
        table[:, DECLARES] = kinds & 1
        table[:, QUALIFIER] = qualifier = (name - back) * (qualifier_length > 0)
        table[:, QUALIFIER_END] = qualifier + qualifier_length
        return ParsedFile(
            language=language,
            definitions=table,
            marks={
                kind: part.cumsum()
                for kind, part in zip(MARKS, parts[7:10], strict=True)
            },
            skips=_spans(parts[10], parts[11]),
            statements=_spans(parts[12], parts[13]),
            bound=parts[14].cumsum() if bound else None,
            grammar=grammar,
        )
    except (ValueError, IndexError) as error:
        raise Damaged(f"symbols: {error}") from error


def unpacked_size(packed: bytes) -> int:
    """Return the bytes of the columns once they are unpacked, or nearly: some of them are spans of two numbers."""
    head = packed.partition(b"\n")[0]
    rows, *others = map(int, head.split()[3:])
    return NUMBER_BYTES * (COLUMNS * rows + 2 * sum(others))


def packed_language(packed: bytes) -> str:
    """Return the language of packed symbols without unpacking them."""
    return packed.partition(b"\n")[0].split(b" ", 2)[1].decode()


def _steps(values: Ints) -> Ints:
    steps = (
        values.copy()
    )  # np.diff with prepend=0 takes four times as long, which matters for small files
    steps[1:] -= values[:-1]
    return steps


def _span_columns(spans: Ints) -> tuple[Ints, Ints]:
    starts = spans[:, 0]
    return _steps(starts), spans[:, 1] - starts


def _spans(steps: Ints, lengths: Ints) -> Ints:
    spans = np.empty((len(steps), 2), np.int64)
    spans[:, 0] = start = steps.cumsum()
    spans[:, 1] = start + lengths
    return spans


def _sort_spans(spans: Ints) -> Ints:
    return spans[np.argsort(spans[:, 0], kind="stable")]
