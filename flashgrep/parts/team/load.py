"""Loads a repository's texts into the store, batch by batch: contents, postings, symbols."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flashgrep.base.errors import Conflict, Unavailable
from flashgrep.base.machine import release_memory
from flashgrep.base.model import Document
from flashgrep.files.extract import extract
from flashgrep.index.grams import Grams, grams_of
from flashgrep.index.kept import Name
from flashgrep.index.postings import FORMAT, encode, pairs_of
from flashgrep.index.segments import Kind
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.symbols.parsing_stage import PARSE_BATCH, PARSE_BYTES, Parsers
from flashgrep.parts.symbols.symbol_table import take_bytes
from flashgrep.parts.team.stored_segments import (
    GRACE_SECONDS,
    OF_SEGMENTS,
    Segment,
    put_blocks,
    put_segment,
    read_segments,
    record_leftovers,
    reserve_segments,
    start_generation,
    write_rows,
)
from flashgrep.parts.team.text_reader import fold_name

if TYPE_CHECKING:
    from psycopg import Connection

BATCH_BYTES: Final = 16 << 20
"""Text per batch; each batch becomes a segment in every shard."""
BATCH_TEXTS: Final = 8192
MAX_SIZE: Final = 64 << 20
"""Larger files are declined."""
LISTED: Final = 1024
"""Texts per query for sizes."""
PARSED_AT_ONCE: Final = 256
"""Texts per transaction that stores symbols."""
_SHA1_BYTES: Final = 20


class Content(NamedTuple):
    """A content to store: its key, which is its git blob and name class, and the path of a file that has it."""

    name: Name
    path: bytes


class _Text(NamedTuple):
    content: Content
    raw: bytes
    grams: Grams


class Loader:
    """Loads one repository over one connection."""

    def __init__(
        self, connection: "Connection[Any]", repository: int, shards: int
    ) -> None:
        self._connection = connection
        self._repository = repository
        self._shards = shards

    def known(self) -> dict[Name, tuple[int, str]]:
        """Return the stored contents, each with its text's number, or with 0 and the reason why it has no text."""
        query = "SELECT blob, name_class, text, skip FROM flashgrep.content WHERE repository = %s"
        rows = self._connection.execute(query, [self._repository], binary=True)
        return {(blob, named): (text, skip) for blob, named, text, skip in rows}

    def store(
        self, contents: Iterable[Content], source: Repository
    ) -> Iterator[dict[Name, tuple[int, str]]]:
        """Read contents from git and store them; after each batch, yield its entries in the form of ``known``.

        Raises:
            FlashgrepError: git fails; earlier batches stay stored.

        """
        shards: dict[int, list[_Text]] = defaultdict(list)
        skips: dict[Name, str] = {}
        size = count = 0
        for content in contents:
            raw = read_content(source, content)
            if isinstance(raw, str):
                document = None
            else:
                document = extract(raw)
            if isinstance(document, Document) and isinstance(raw, bytes):
                # By hash, so that texts spread evenly and no table of places is needed.
                shards[content.name[0][0] % self._shards].append(
                    _Text(content, raw, grams_of(document.data))
                )
                size += len(raw)
            else:
                skips[content.name] = (
                    raw if isinstance(raw, str) else getattr(document, "reason", "")
                )
            count += 1
            if size > BATCH_BYTES or count >= BATCH_TEXTS:
                yield self._put(shards, skips)
                size = count = 0
                shards.clear()
                skips.clear()
                # A batch's postings take several times the memory of its text; this
                # returns it to the system.
                release_memory()
        if count:
            yield self._put(shards, skips)

    def _put(
        self, shards: dict[int, list[_Text]], skips: dict[Name, str]
    ) -> dict[Name, tuple[int, str]]:
        """Store a batch in one transaction."""
        connection = self._connection
        repository = self._repository
        # Numbers are reserved outside the transaction: those of a failed batch are
        # never reused.
        texts = sum(map(len, shards.values()))
        row = connection.execute(
            "UPDATE flashgrep.repository SET next_text = next_text + %s WHERE id = %s RETURNING next_text",
            [texts, repository],
        ).fetchone()
        # The repository has been removed.
        if row is None:
            raise LookupError(repository)
        first = row[0] - texts
        segment = reserve_segments(connection, repository, len(shards))
        contents = {name: (0, skip) for name, skip in skips.items()}
        numbers = range(first, first + texts)
        segments = range(segment, segment + len(shards))
        with write_rows(
            connection, repository, ("text", "block"), numbers, segments
        ) as cursor:
            for shard, of_shard in sorted(shards.items()):
                blocks = list(
                    encode(pairs_of([text.grams for text in of_shard]), segment)
                )
                with cursor.copy(
                    "COPY flashgrep.text (repository, shard, id, path, data) FROM STDIN (FORMAT BINARY)"
                ) as copy:
                    copy.set_types(["int4", "int2", "int8", "bytea", "bytea"])
                    for number, text in enumerate(of_shard, first):
                        copy.write_row(
                            [repository, shard, number, text.content.path, text.raw]
                        )
                        contents[text.content.name] = (number, "")
                put_blocks(cursor, repository, shard, segment, blocks)
                # Numbers are assigned shard by shard, so each segment has consecutive
                # ones.
                named = np.arange(first, first + len(of_shard))
                put_segment(
                    cursor,
                    repository,
                    Segment.of_blocks(segment, Kind.GRAMS, shard, blocks, named),
                )
                first = first + len(of_shard)
                segment = segment + 1
            with cursor.copy(
                "COPY flashgrep.content (repository, blob, name_class, text, skip) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "bytea", "text", "int8", "text"])
                # Last, in the same transaction: a content is known only once its text
                # and postings are stored.
                for (blob, named_class), (number, skip) in contents.items():
                    copy.write_row([repository, blob, named_class, number, skip])
        return contents

    def rebuild_segments(self) -> Iterator[int]:
        """Rebuild gram segments of an older format, yielding the number of texts of each batch.

        Raises:
            Unavailable: wrong_migration, a segment is of a newer flashgrep.

        """
        segments = read_segments(self._connection, self._repository)
        if any(current_segment.format > FORMAT for current_segment in segments):
            advice = "install that version here"
            message = f"the store has postings of a newer flashgrep; {advice}"
            raise Unavailable(message, reason="wrong_migration", suggestion=advice)
        for old in segments:
            if old.kind != Kind.GRAMS or old.format == FORMAT:
                continue
            segment = old
            texts = old.texts[old.texts > 0].tolist()
            given_texts = read_texts(
                self._connection,
                self._repository,
                old.shard,
                texts,
                BATCH_TEXTS,
                BATCH_BYTES,
            )
            # Batch by batch, so that a dying worker loses only one; at least one batch,
            # to drop an empty segment.
            for batch in given_texts if texts else [[]]:
                segment = self._replace(segment, batch)
                yield len(batch)
                release_memory()

    def _replace(
        self, old: Segment, batch: Sequence[tuple[int, bytes, bytes]]
    ) -> Segment:
        """Move a batch of texts from an old segment into a new one, atomically, and return what is left of the old.

        Raises:
            Conflict: another worker has changed the old segment in the meantime.

        """
        connection = self._connection
        repository = self._repository
        number = reserve_segments(connection, repository, 1)
        documents = [extract(raw) for _, _, raw in batch]
        # Only texts are stored, but another version may have decided what is text.
        grams = [
            grams_of(document.data if isinstance(document, Document) else b"")
            for document in documents
        ]
        blocks = list(encode(pairs_of(grams), number))
        named = np.array([text for text, _, _ in batch], np.int64)
        is_named = np.isin(old.texts, named)
        segment = old._replace(texts=np.where(is_named, 0, old.texts))
        values = [repository, old.id, old.texts.astype(">i8").tobytes()]
        with write_rows(connection, repository, OF_SEGMENTS, (), [number]) as cursor:
            query = "UPDATE flashgrep.segment SET texts = %s WHERE repository = %s AND id = %s AND texts = %s"
            if not cursor.execute(
                query, [segment.texts.astype(">i8").tobytes(), *values]
            ).rowcount:
                raise Conflict(
                    "another worker is at the repository", reason="generation_changed"
                )
            if not segment.texts.any():
                cursor.execute(
                    "DELETE FROM flashgrep.segment WHERE repository = %s AND id = %s",
                    values[:2],
                )
                record_leftovers(
                    cursor, repository, OF_SEGMENTS, (), [old.id], GRACE_SECONDS
                )
            if batch:
                put_blocks(cursor, repository, old.shard, number, blocks)
                put_segment(
                    cursor,
                    repository,
                    Segment.of_blocks(number, Kind.GRAMS, old.shard, blocks, named),
                )
            start_generation(cursor, repository)
        return segment

    def parse(self, workers: int) -> Iterator[int]:
        """Store the symbols of texts not yet parsed, yielding after each round the number of the last text.

        Separate processes parse them, so a grammar that crashes costs one text.
        """
        data: dict[int, bytes] = {}

        def read(batch: Sequence[tuple[int, bytes, bytes]]) -> Iterator[bytes | None]:
            return (data[number] for number, _, _ in batch)

        execute = self._connection.execute
        repository = self._repository
        row = execute(
            "SELECT parsed_to, next_text FROM flashgrep.repository WHERE id = %s",
            [repository],
        ).fetchone()
        last, end = row or (0, 0)
        with Parsers(read, workers) as parsers:
            # By ranges of numbers, not by missing symbols: a text whose row is missing
            # would be selected forever.
            while last + 1 < end:
                rows = execute(
                    "SELECT id, shard, path, data FROM flashgrep.text WHERE repository = %s AND id > %s AND id <= %s "
                    "ORDER BY id",
                    [repository, last, last + PARSED_AT_ONCE],
                    binary=True,
                ).fetchall()
                texts = [
                    (number, shard, path, extract(raw))
                    for number, shard, path, raw in rows
                ]
                data = {
                    number: text.data
                    for number, _, _, text in texts
                    if isinstance(text, Document)
                }
                texts_left = [
                    (number, b"", path, len(data[number]))
                    for number, _, path, _ in texts
                ]
                batches: list[list[tuple[int, bytes, bytes]]] = []
                while texts_left:
                    batches.append(
                        [
                            row[:3]
                            for row in take_bytes(
                                iter(texts_left[:PARSE_BATCH]), PARSE_BYTES
                            )
                        ]
                    )
                    texts_left = texts_left[len(batches[-1]) :]
                # Outside of a transaction: parsing takes seconds, and its locks would
                # block others for as long.
                stored = list(parsers.run(batches))
                last = min(last + PARSED_AT_ONCE, end - 1)
                self.put_symbols(
                    stored, {number: shard for number, shard, _, _ in texts}, last
                )
                yield last

    def put_symbols(
        self, found: Sequence[Any], shards: dict[int, int], done: int
    ) -> None:
        """Store the symbols of texts up to ``done``; ``shards``: the shard of each text."""
        rows = [
            (row.text_id, row.packed, row.names)
            for symbols in found
            for row in symbols.rows
        ]
        rows += [
            (number, f"!{why}".encode() if why else b"", [])
            for symbols in found
            for number, why in symbols.declined
        ]
        # Sorted by shard: then COPY is started only once per foreign server.
        rows.sort(key=lambda row: shards[row[0]])
        repository = self._repository
        numbers = [number for number, _, _ in rows]
        with write_rows(
            self._connection, repository, ("symbol", "symbol_name"), numbers, ()
        ) as cursor:
            with cursor.copy(
                "COPY flashgrep.symbol (repository, shard, text, packed) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "int2", "int8", "bytea"])
                for number, packed, _ in rows:
                    copy.write_row([repository, shards[number], number, packed])
            with cursor.copy(
                "COPY flashgrep.symbol_name (repository, shard, name, text) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "int2", "bytea", "int8"])
                for number, _, names in rows:
                    for name in {fold_name(name) for name in names} - {None}:
                        copy.write_row([repository, shards[number], name, number])
            cursor.execute(
                "UPDATE flashgrep.repository SET parsed_to = %s, generation = generation + 1 WHERE id = %s",
                [done, repository],
            )


def read_texts(
    connection: "Connection[Any]",
    repository: int,
    shard: int,
    texts: Sequence[int],
    most: int,
    most_bytes: int,
) -> Iterator[list[tuple[int, bytes, bytes]]]:
    """Yield batches of a shard's texts with paths and contents, of at most ``most`` texts and about ``most_bytes``."""
    where = f"FROM flashgrep.text WHERE repository = %s AND shard = {int(shard)} AND id = ANY(%s) ORDER BY id"
    for at in range(0, len(texts), LISTED):
        sizes = f"SELECT id, octet_length(data) {where}"
        listed = connection.execute(
            sizes.encode(), [repository, list(texts[at : at + LISTED])]
        ).fetchall()
        # Sizes first: SQL has no limit by size.
        texts_left = [(number, b"", b"", size) for number, size in listed]
        while texts_left:
            numbers = [
                row[0] for row in take_bytes(iter(texts_left[:most]), most_bytes)
            ]
            texts_left = texts_left[len(numbers) :]
            query = f"SELECT id, path, data {where}"
            yield connection.execute(
                query.encode(), [repository, numbers], binary=True
            ).fetchall()


def read_content(source: Repository, content: Content) -> bytes | str:
    """Return a content as git stores it, or the reason to decline it: too large, or its hash is wrong.

    Raises:
        Unavailable: the clone does not have it.

    """
    blob = content.name[0]
    object_ = source.read(content.path, blob.hex().encode(), MAX_SIZE)
    if object_.data is None:
        return "too_large"
    # All revisions share a content by its name, so the name must be verified.
    digest = hashlib.new(
        "sha1" if len(blob) == _SHA1_BYTES else "sha256", usedforsecurity=False
    )
    digest.update(b"blob %d\0" % len(object_.data))
    digest.update(object_.data)
    if digest.digest() == blob:
        return object_.data
    return "unreadable"
