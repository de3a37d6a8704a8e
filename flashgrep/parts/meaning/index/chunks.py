"""Tables of chunks by text: where each chunk of a text is, and which texts have vectors.

The number of a chunk is never reused. So lookups can skip the postings and vectors of dropped texts, which are removed
later. Vectors are in separate files (``parts.meaning.index.vectors``); these tables say which rows of which file
belong to a text.
"""

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Final, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.damage import Damaged, inflate
from flashgrep.base.identifiers import IdentifierCounts
from flashgrep.index import segments
from flashgrep.index.postings import Pairs, encode
from flashgrep.index.schema import StageBacklog, take_numbers
from flashgrep.index.segments import Kind, SegmentRow
from flashgrep.index.stage import DEAD_SHARE, RowsKey, StageRows, Transactions
from flashgrep.parts.meaning.index.sieve import seal_of
from flashgrep.parts.meaning.index.word_impacts import Fields, impacts_of
from flashgrep.parts.symbols import symbol_table as symbols

STALE_SHARE: Final = 0.5
"""All chunks are rebuilt once more than this share of their numbers belongs to texts that are gone."""
FEW: Final = 20_000
"""With fewer chunks than this that is never worth it."""

MOST_UNPACKED: Final = 16 << 20
"""Bytes. A text has at most 4,000 chunks, which take about 2 MB."""

MOST_SPLIT: Final = 16 << 20
LARGEST_SPLIT: Final = 2 << 20
"""Bytes of chunks that are kept inflated, in all and of one text."""
ROW_BYTES: Final = 48
"""Bytes of a chunk's row besides its text."""

Ints = npt.NDArray[np.int64]
ToRead = tuple[int, bytes, bytes, bytes, bytes]
"""A text to read: its number, content hash, one path, its packed symbols or chunks, and the path it is named by."""


class StoredChunk(NamedTuple):
    """One chunk of a text, as made by ``parts.meaning.chunking``: whole lines, unless a line is too long."""

    start: int
    end: int
    """Byte offsets; trailing blanks are excluded."""
    start_line: int
    end_line: int
    """Counted from 1, both inclusive."""
    kind: str
    """The definition's kind, ``section`` or ``block``."""
    name: str
    """The qualified name of the main definition, or a path of headings; may be empty."""
    header: str
    """Signatures of the enclosing definitions, outermost first, or the headings above it; may be empty."""
    defines: Sequence[str] = ()
    """The first dozen names it defines."""


class ChunkedText(NamedTuple):
    """A text's chunks, and the fields that the words of each come from."""

    text_id: int
    chunks: Sequence[StoredChunk]
    fields: Sequence[Fields]
    is_whole: bool = False
    """Whether every identifier of the text is in one of the chunks."""
    words: bytes | None = None
    """If not, a filter of its identifiers (``sieve.make_filter``), unless they are too many."""
    path: bytes = b""
    """The file whose name the chunks contain: its words are among the words of each chunk."""


class PackedText(NamedTuple):
    """A text's chunks, ready to be stored."""

    text_id: int
    chunks: int
    """How many it has."""
    path: bytes
    packed: bytes
    is_whole: bool
    words: bytes | None


class PackedChunks(NamedTuple):
    """Chunks of some texts, ready to be stored."""

    texts: list[PackedText]
    pairs: Pairs
    """Words, and the index of the chunk among those of all these texts."""


class VectorSet(NamedTuple):
    """The vectors of one embedder."""

    id: int
    name: str
    dims: int
    file: str
    rows: int


class ChunkMap(NamedTuple):
    """Which text each number belongs to: parallel arrays, ordered by ``first``, then by ``size``."""

    first: Ints
    size: Ints
    text_id: Ints
    by_text_id: Ints
    """The permutation that sorts ``text_id``."""
    is_dense: bool
    """Whether every number given out so far belongs to a text."""

    @classmethod
    def of(
        cls, first: Ints, size: Ints, text_id: Ints, given: int | None = None
    ) -> "ChunkMap":
        """Return the map of these columns; ``given``: how many numbers were given out; None: just these."""
        return cls(
            first,
            size,
            text_id,
            np.argsort(text_id, kind="stable"),
            given in {None, int(size.sum())},
        )

    def entries(self, text_ids: Ints) -> Ints:
        """Return the index of each text in the map, or -1."""
        if not len(self.text_id):
            return np.full(len(text_ids), -1, np.int64)
        at = np.minimum(
            np.searchsorted(self.text_id, text_ids, sorter=self.by_text_id),
            len(self.text_id) - 1,
        )
        entries = self.by_text_id[at]
        return np.where(self.text_id[entries] == text_ids, entries, -1)

    def numbers(self, text_ids: Ints, places: Ints) -> Ints:
        """Return the numbers of chunks, given by text and index in the text; -1 if there is none."""
        if not len(self.text_id):
            return np.full(len(text_ids), -1, np.int64)
        entries = self.entries(text_ids)
        is_there = (entries >= 0) & (places < self.size[entries])
        return np.where(is_there, self.first[entries] + places, -1)

    def locate(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return, for each number, its text and its index in that text; text 0 if it belongs to none."""
        if not len(self.first):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        at = np.maximum(np.searchsorted(self.first, numbers, "right") - 1, 0)
        inside = numbers - self.first[at]
        is_inside = (inside >= 0) & (inside < self.size[at])
        return np.where(is_inside, self.text_id[at], 0), inside


def pack(
    texts: Sequence[ChunkedText], counted: IdentifierCounts | None = None
) -> PackedChunks:
    """Return the chunks of texts, ready to be stored; ``counted``: the identifiers of all fields, if known already."""
    rows = [
        PackedText(
            text.text_id,
            len(text.chunks),
            text.path,
            zlib.compress(orjson.dumps([tuple(chunk) for chunk in text.chunks]), 3),
            text.is_whole,
            text.words,
        )
        for text in texts
    ]
    return PackedChunks(
        rows, impacts_of([fields for text in texts for fields in text.fields], counted)
    )


def put(connection: sqlite3.Connection, batches: Sequence[PackedChunks]) -> None:
    """Store chunks of texts that have none yet, and their words as one segment; call it inside a transaction."""
    # One range of numbers for all batches, so that their words form one segment: each
    # segment slows every lookup down.
    first = number = take_numbers(
        connection,
        "next_chunk",
        sum(text.chunks for batch in batches for text in batch.texts),
    )
    parts: list[Pairs] = []
    for batch in batches:
        # A batch counts its chunks from 0. The chunk is the lower half of a pair, so
        # adding does not change the key.
        parts.append(batch.pairs + np.uint64(number - first))
        for text_id, count, path, packed, is_whole, words in batch.texts:
            # Without a seal and a filter the text may have any word
            # (``parts.meaning.index.sieve``).
            row = [
                text_id,
                number,
                count,
                path,
                packed,
                seal_of(text_id, number, count) if is_whole else None,
                words,
            ]
            connection.execute(
                "INSERT OR IGNORE INTO chunked VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
            number += count
    if number > first:
        pairs = np.concatenate(parts)
        pairs.sort()
        segment = SegmentRow(
            take_numbers(connection, "next_segment"), Kind.WORDS, first, number - 1, 0
        )
        segments.put(connection, segment, encode(pairs, segment.id))
    _advance_round(connection)


def _advance_round(connection: sqlite3.Connection) -> None:
    take_numbers(connection, "chunk_round")


def round_of(connection: sqlite3.Connection) -> int:
    """Return a number that grows whenever chunks or vectors change."""
    return int(
        connection.execute(
            "SELECT value FROM meta WHERE key = 'chunk_round'"
        ).fetchone()[0]
    )


_NAME: Final = (
    "(SELECT min(named.path) FROM project CROSS JOIN path AS named "
    "ON named.project = project.id AND named.text_id = text.id)"
)
"""The first path of a text in any project, since projects that share a text share its chunks."""
_CUT: Final = "FROM chunked JOIN text ON text.id = chunked.text_id WHERE text.id IN (SELECT value FROM json_each(?))"


def forget_old_names(connection: sqlite3.Connection, text_ids: Iterable[int]) -> None:
    """Drop the chunks of those texts whose first path has changed, so that they are chunked again.

    The words of the path are among the words of each chunk. Otherwise an index that has seen files added, removed and
    moved would rank differently from a new one.
    """
    query = f"SELECT chunked.text_id, first, count {_CUT} AND chunked.path <> {_NAME}"
    misnamed = connection.execute(
        query, [orjson.dumps(list(text_ids)).decode()]
    ).fetchall()
    for text_id, first, count in misnamed:
        connection.execute("DELETE FROM embedded WHERE text_id = ?", [text_id])
        if count:
            # The row stays, with a negative number, so that ``count_orphans`` can tell
            # how many postings are dead.
            query = "UPDATE chunked SET text_id = ?, path = '', packed = '', seal = NULL, words = NULL WHERE text_id = ?"
            connection.execute(query, [-first, text_id])
        else:
            connection.execute("DELETE FROM chunked WHERE text_id = ?", [text_id])
    if misnamed:
        _advance_round(connection)


def count_orphans(connection: sqlite3.Connection) -> int:
    """Return how many chunks belong to no text any more, since their text was chunked again."""
    return int(
        connection.execute(
            "SELECT total(count) FROM chunked WHERE text_id < 0"
        ).fetchone()[0]
    )


_FIRST_PATHS: Final = (
    "path.project = ? AND NOT EXISTS (SELECT 1 FROM path AS other WHERE other.project = path.project "
    "AND other.text_id = path.text_id AND other.path < path.path)"
)
"""Selects each text of a project once, by its first path."""
_UNCHUNKED: Final = (
    "FROM path JOIN text ON text.id = path.text_id JOIN symbol ON symbol.text_id = path.text_id "
    f"LEFT JOIN chunked ON chunked.text_id = path.text_id WHERE {_FIRST_PATHS} AND chunked.text_id IS NULL"
)


def choose_to_chunk(
    connection: sqlite3.Connection,
    project: int,
    limit: int,
    most_bytes: int,
    after: int,
) -> list[ToRead]:
    """Return parsed texts of a project that have no chunks, with numbers above ``after``, and their packed symbols.

    At most ``limit`` texts and ``most_bytes`` in total, but always at least one text.
    """
    rows = connection.execute(
        f"SELECT text.id, text.hash, path.path, symbol.packed, {_NAME}, text.size "
        f"{_UNCHUNKED} AND path.text_id > ? ORDER BY path.text_id LIMIT ?",
        [project, after, limit],
    )
    return [row[:5] for row in symbols.take_bytes(rows, most_bytes)]


def count_to_chunk(connection: sqlite3.Connection, project: int) -> StageBacklog:
    """Return how many parsed texts of a project have no chunks yet."""
    query = f"SELECT count(*), total(text.size) {_UNCHUNKED}"
    return StageBacklog(*map(int, connection.execute(query, [project]).fetchone()))


_UNEMBEDDED: Final = (
    "FROM path JOIN text ON text.id = path.text_id JOIN chunked ON chunked.text_id = path.text_id "
    "LEFT JOIN embedded ON embedded.vector_set = ? AND embedded.text_id = path.text_id "
    f"WHERE {_FIRST_PATHS} AND chunked.count > 0 AND embedded.text_id IS NULL"
)


def choose_to_embed(
    connection: sqlite3.Connection,
    project: int,
    vector_set: int,
    limit: int,
    most_bytes: int,
    after: int,
) -> list[ToRead]:
    """Return texts of a project without vectors in a set, and their packed chunks; bounds as in ``choose_to_chunk``."""
    rows = connection.execute(
        "SELECT text.id, text.hash, path.path, chunked.packed, chunked.path, text.size "
        f"{_UNEMBEDDED} AND path.text_id > ? ORDER BY path.text_id LIMIT ?",
        [vector_set, project, after, limit],
    )
    return [row[:5] for row in symbols.take_bytes(rows, most_bytes)]


def count_to_embed(
    connection: sqlite3.Connection, project: int, vector_set: int
) -> StageBacklog:
    """Return how many texts of a project have no vectors in a set yet."""
    query = f"SELECT count(*), total(text.size) {_UNEMBEDDED}"
    return StageBacklog(
        *map(int, connection.execute(query, [vector_set, project]).fetchone())
    )


def note_settings(
    connection: sqlite3.Connection, project: int, embedding: str, vector_set: int
) -> None:
    """Record the settings and the set of a project's vectors, once every text has its vectors."""
    query = "UPDATE project SET embedding = ?, vector_set = ? WHERE id = ?"
    connection.execute(query, [embedding, vector_set, project])


def settings_of(connection: sqlite3.Connection, project: int) -> str:
    """Return the settings with which all of a project's vectors were last made; empty if they never were complete."""
    noted = connection.execute(
        "SELECT embedding FROM project WHERE id = ?", [project]
    ).fetchone()
    if noted is None:
        return ""
    return str(noted[0])


def count_to_embed_with(
    connection: sqlite3.Connection, project: int, embedding: str
) -> int:
    """Return how many texts lack vectors made with these settings; 1 if these settings were never completed."""
    noted = connection.execute(
        "SELECT vector_set.id FROM project JOIN vector_set ON vector_set.id = vector_set "
        "WHERE project.id = ? AND embedding = ?",
        [project, embedding],
    ).fetchone()
    if noted is None:
        return 1
    return count_to_embed(connection, project, noted[0]).texts


_FIELDS: Final = {len(StoredChunk._fields) - 1, len(StoredChunk._fields)}


class _Chunks(Sequence[StoredChunk]):
    """A text's chunks, each decoded on access: a query needs about two of 50, or of a table's 4,000."""

    def __init__(self, rows: list[bytes]) -> None:
        """``rows``: the JSON of each chunk, without its brackets."""
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> StoredChunk: ...

    @overload
    def __getitem__(self, at: slice) -> list[StoredChunk]: ...

    def __getitem__(self, at: int | slice) -> StoredChunk | list[StoredChunk]:
        if isinstance(at, int):
            return _make_chunk(b"[%b]" % self._rows[at])
        if self._rows[at]:
            return _make_chunks(b"[[%b]]" % b"],[".join(self._rows[at]))
        return []


def _make_chunk(text: bytes) -> StoredChunk:
    """Return one chunk: a question decodes 250, in half the time of a list of one."""
    try:
        fields = orjson.loads(text)
    except ValueError as error:
        raise Damaged(f"chunks: {error}") from error
    if len(fields) not in _FIELDS:
        raise Damaged("chunks: unexpected fields")
    return StoredChunk(*fields)


def _make_chunks(text: bytes) -> list[StoredChunk]:
    try:
        fields = orjson.loads(text)
        fits = {*map(len, fields)} <= _FIELDS and {*map(type, fields)} <= {list}
    except (ValueError, TypeError) as error:
        raise Damaged(f"chunks: {error}") from error
    if not fits:
        raise Damaged("chunks: unexpected fields")
    return list(starmap(StoredChunk, fields))


def unpack(packed: bytes) -> list[StoredChunk]:
    """Return the chunks of a text.

    Raises:
        Damaged: they are not as written.

    """
    return _make_chunks(inflate(packed, MOST_UNPACKED))


SPLIT_TEXTS: Final = BoundedCache[tuple[bytes, int], Sequence[StoredChunk]](
    MOST_SPLIT, LARGEST_SPLIT
)


def split_chunks(packed: bytes, count: int) -> Sequence[StoredChunk]:
    """Return the ``count`` chunks of a text, decoded on access: a query needs few, and decoding all takes 0.2 ms.

    Recent ones are kept: inflating takes 50 µs a text, and a query looks at 100 of them.

    Raises:
        Damaged: they are not as written. Damage in a single chunk is raised when that chunk is accessed.

    """
    chunks = SPLIT_TEXTS.find((packed, count))
    if chunks is None:
        inflated = inflate(packed, MOST_UNPACKED)
        rows = inflated[2:-2].split(b"],[")
        # A name or signature may contain the separator too; then there are too many
        # rows.
        if len(rows) == count:
            chunks = _Chunks(rows)
        else:
            chunks = unpack(packed)
        size = len(packed) + len(inflated) + ROW_BYTES * len(rows)
        SPLIT_TEXTS.put((packed, count), size, chunks)
    return chunks


def chunks_of_texts(
    connection: sqlite3.Connection, text_ids: Collection[int]
) -> dict[int, Sequence[StoredChunk]]:
    """Return the chunks of texts; those whose chunks are not stored are left out."""
    query = "SELECT text_id, packed, count FROM chunked WHERE text_id IN (SELECT value FROM json_each(?))"
    return {
        text_id: split_chunks(packed, count)
        for text_id, packed, count in connection.execute(
            query, [orjson.dumps(list(text_ids)).decode()]
        )
    }


def chunk_map(connection: sqlite3.Connection) -> ChunkMap:
    """Return which text each chunk belongs to, including texts without chunks."""
    return _map(
        connection.execute(
            "SELECT first, count, text_id FROM chunked ORDER BY first, count"
        ).fetchall()
    )


def row_map(connection: sqlite3.Connection, vector_set: int) -> ChunkMap:
    """Return which text each row of a set's vectors belongs to."""
    # The join leaves out rows of texts whose chunks were dropped; the file still has
    # them.
    query = "SELECT row, count, text_id FROM embedded JOIN chunked USING (text_id) WHERE vector_set = ? ORDER BY row"
    rows = connection.execute(query, [vector_set]).fetchall()
    rows_counted = connection.execute(
        "SELECT total(rows) FROM vector_set WHERE id = ?", [vector_set]
    ).fetchone()[0]
    return _map(rows, int(rows_counted))


def _map(rows: list[tuple[int, int, int]], given: int | None = None) -> ChunkMap:
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return ChunkMap.of(columns[0], columns[1], columns[2], given)


def total(connection: sqlite3.Connection, project: int | None = None) -> int:
    """Return the number of chunks, of all texts or of one project's."""
    query = "SELECT total(count) FROM chunked WHERE ? OR text_id IN (SELECT text_id FROM path WHERE project = ?)"
    return int(connection.execute(query, [project is None, project]).fetchone()[0])


def vector_sets(connection: sqlite3.Connection) -> list[VectorSet]:
    """Return the sets of vectors, oldest first."""
    return [
        VectorSet(*row)
        for row in connection.execute("SELECT * FROM vector_set ORDER BY id")
    ]


def add_vector_set(
    connection: sqlite3.Connection, name: str, dims: int, file: str
) -> VectorSet:
    """Add an empty set for an embedder."""
    row = connection.execute(
        "INSERT INTO vector_set (name, dims, file, rows) VALUES (?, ?, ?, 0) RETURNING *",
        [name, dims, file],
    ).fetchone()
    return VectorSet(*row)


def add_vectors(
    connection: sqlite3.Connection,
    vector_set: VectorSet,
    text_ids: Sequence[tuple[int, int]],
) -> None:
    """Record the texts, each (number, chunks), whose vectors were appended to the set's file, in this order."""
    row = vector_set.rows
    for text_id, count in text_ids:
        connection.execute(
            "INSERT OR IGNORE INTO embedded VALUES (?, ?, ?)",
            [vector_set.id, text_id, row],
        )
        row += count
    connection.execute(
        "UPDATE vector_set SET rows = ? WHERE id = ?", [row, vector_set.id]
    )
    _advance_round(connection)


def drop_unused_sets(connection: sqlite3.Connection) -> list[VectorSet]:
    """Drop the sets that no project uses, and return the others."""
    for vector_set in vector_sets(connection):
        if not connection.execute(
            "SELECT count(*) FROM project WHERE vector_set = ?", [vector_set.id]
        ).fetchone()[0]:
            drop_vector_set(connection, vector_set.id)
    return vector_sets(connection)


def drop_vector_set(connection: sqlite3.Connection, vector_set: int) -> None:
    """Drop a set."""
    connection.execute("DELETE FROM embedded WHERE vector_set = ?", [vector_set])
    connection.execute("DELETE FROM vector_set WHERE id = ?", [vector_set])
    _advance_round(connection)


def drop_dead(connection: sqlite3.Connection) -> bool:
    """Drop the chunks of texts that are gone; once most numbers are dead, drop all chunks and return True."""
    connection.execute("DELETE FROM chunked WHERE text_id NOT IN (SELECT id FROM text)")
    connection.execute(
        "DELETE FROM embedded WHERE text_id NOT IN (SELECT id FROM text)"
    )
    rows_counted = int(
        connection.execute(
            "SELECT value FROM meta WHERE key = 'next_chunk'"
        ).fetchone()[0]
    )
    # Numbers are never reused, and scores are arrays over all numbers: most entries
    # would be of dead chunks.
    are_stale = rows_counted > FEW and total(connection) < rows_counted * STALE_SHARE
    if are_stale:
        drop_all(connection)
    _advance_round(connection)
    return are_stale


def drop_all(connection: sqlite3.Connection) -> None:
    """Drop all chunks and vectors; they are rebuilt."""
    connection.execute("DELETE FROM chunked")
    segments.drop(connection, segments.segments(connection, Kind.WORDS))
    drop_vectors(connection)


def drop_vectors(connection: sqlite3.Connection) -> None:
    """Drop all vectors; they are rebuilt."""
    connection.execute("DELETE FROM embedded")
    connection.execute("DELETE FROM vector_set")
    _advance_round(connection)


def has_many_orphans(connection: sqlite3.Connection) -> bool:
    """Return whether many chunks are dead though no text is: those of files that moved."""
    return count_orphans(connection) > total(connection) * DEAD_SHARE


ROWS: Final = StageRows(
    drop_all=drop_all,
    drop_dead=drop_dead,
    has_many_dead=has_many_orphans,
    forget_names=forget_old_names,
)
VECTOR_ROWS: Final = StageRows(drop_all=drop_vectors)
"""Chunks that are dropped take their vectors along."""


class ChunkRows(Protocol):
    """Reads the chunks of one state of an index; thread-safe."""

    def chunks_of_texts(
        self, text_ids: Collection[int]
    ) -> Mapping[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; those whose chunks are not stored are left out."""


@dataclass(frozen=True, slots=True)
class LocalChunkRows:
    """The chunks of a store on disk; implements ``ChunkRows``."""

    reader: Transactions

    def chunks_of_texts(
        self, text_ids: Collection[int]
    ) -> dict[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; those whose chunks are not stored are left out."""
        with self.reader.transaction() as connection:
            return chunks_of_texts(connection, text_ids)


CHUNK_ROWS: Final[RowsKey[ChunkRows]] = RowsKey("chunks", LocalChunkRows)
