"""Putting a repository's texts into the store: contents, postings, symbols; batch by batch."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flashgrep.errors import Conflict, Unavailable
from flashgrep.git.repository import Repository
from flashgrep.index.grams import Grams, grams_of
from flashgrep.index.kept import Name
from flashgrep.index.postings import FORMAT, encode, pairs_of
from flashgrep.index.segments import Kind
from flashgrep.index.symbols import take_bytes
from flashgrep.indexer.indexer_process import PARSE_BATCH, PARSE_BYTES, Parsers
from flashgrep.ingest.extract import extract
from flashgrep.machine import release_memory
from flashgrep.model import Document
from flashgrep.team.stored_segments import (
    GRACE_SECONDS,
    OF_SEGMENTS,
    Segment,
    advance,
    leave,
    put_blocks,
    put_segment,
    read_segments,
    take_segments,
    write_rows,
)
from flashgrep.team.text_reader import fold_name

if TYPE_CHECKING:
    from psycopg import Connection

BATCH_BYTES: Final = 16 << 20
"""Text loaded at once; each batch is a segment in every shard."""
BATCH_TEXTS: Final = 8192
MAX_SIZE: Final = 64 << 20
"""Larger files are declined."""
LISTED: Final = 1024
"""Texts whose sizes are asked for at once."""
PARSED_AT_ONCE: Final = 256
"""Texts whose symbols are stored in one transaction."""
_SHA1_BYTES: Final = 20


class Content(NamedTuple):
    """A content of a repository that is to be stored: git's name of it, with the class of names, and a file's path."""

    name: Name
    path: bytes


class _Text(NamedTuple):
    content: Content
    raw: bytes
    grams: Grams


class Loader:
    """Loads one repository over one connection."""

    def __init__(self, connection: "Connection[Any]", repository: int, shards: int) -> None:
        self._connection = connection
        self._repository = repository
        self._shards = shards

    def known(self) -> dict[Name, tuple[int, str]]:
        """Return what is stored of contents: the text's number, or 0 and why there is none."""
        query = "SELECT blob, name_class, text, skip FROM flashgrep.content WHERE repository = %s"
        rows = self._connection.execute(query, [self._repository], binary=True)
        return {(blob, named): (text, skip) for blob, named, text, skip in rows}

    def store(self, contents: Iterable[Content], source: Repository) -> Iterator[dict[Name, tuple[int, str]]]:
        """Read contents from git and store them, yielding after each batch what is known of them now.

        Raises:
            FlashgrepError: git fails; what was stored before stays.

        """
        shards: dict[int, list[_Text]] = defaultdict(list)
        skips: dict[Name, str] = {}
        size = count = 0
        for content in contents:
            raw = read_content(source, content)
            document = None if isinstance(raw, str) else extract(raw)
            if isinstance(document, Document) and isinstance(raw, bytes):
                # By the hash, so that texts spread evenly and nothing has to remember where one lies.
                shards[content.name[0][0] % self._shards].append(_Text(content, raw, grams_of(document.data)))
                size += len(raw)
            else:
                skips[content.name] = raw if isinstance(raw, str) else getattr(document, "reason", "")
            count += 1
            if size > BATCH_BYTES or count >= BATCH_TEXTS:
                yield self._put(shards, skips)
                size = count = 0
                shards.clear()
                skips.clear()
                # Postings of a batch take several times its text; without this the heap stays as large as it ever was.
                release_memory()
        if count:
            yield self._put(shards, skips)

    def _put(self, shards: dict[int, list[_Text]], skips: dict[Name, str]) -> dict[Name, tuple[int, str]]:
        """Store a batch in one transaction."""
        connection, repository = self._connection, self._repository
        # Numbers are taken by themselves: those of a batch that fails are never used again.
        texts = sum(map(len, shards.values()))
        taken = connection.execute(
            "UPDATE flashgrep.repository SET next_text = next_text + %s WHERE id = %s RETURNING next_text",
            [texts, repository],
        ).fetchone()
        # The repository was removed meanwhile.
        if taken is None:
            raise LookupError(repository)
        first = taken[0] - texts
        segment = take_segments(connection, repository, len(shards))
        found = {name: (0, skip) for name, skip in skips.items()}
        numbers = range(first, first + texts), range(segment, segment + len(shards))
        with write_rows(connection, repository, ("text", "block"), *numbers) as cursor:
            for shard, of_shard in sorted(shards.items()):
                blocks = list(encode(pairs_of([text.grams for text in of_shard]), segment))
                with cursor.copy(
                    "COPY flashgrep.text (repository, shard, id, path, data) FROM STDIN (FORMAT BINARY)"
                ) as copy:
                    copy.set_types(["int4", "int2", "int8", "bytea", "bytea"])
                    for number, text in enumerate(of_shard, first):
                        copy.write_row([repository, shard, number, text.content.path, text.raw])
                        found[text.content.name] = (number, "")
                put_blocks(cursor, repository, shard, segment, blocks)
                # A batch's numbers follow one another in the order of its shards, so each segment has neighbours.
                named = np.arange(first, first + len(of_shard))
                put_segment(cursor, repository, Segment.of_blocks(segment, Kind.GRAMS, shard, blocks, named))
                first, segment = first + len(of_shard), segment + 1
            with cursor.copy(
                "COPY flashgrep.content (repository, blob, name_class, text, skip) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["int4", "bytea", "text", "int8", "text"])
                # Last, in the same transaction: a content is known only once its text and postings are there.
                for (blob, named_class), (number, skip) in found.items():
                    copy.write_row([repository, blob, named_class, number, skip])
        return found

    def renew(self) -> Iterator[int]:
        """Make anew the postings of grams that are of an older format, yielding after each batch how many texts it had.

        Raises:
            Unavailable: wrong_migration, some are of a newer flashgrep's.

        """
        segments = read_segments(self._connection, self._repository)
        if any(one.format > FORMAT for one in segments):
            advice = "install that version here"
            message = f"the store has postings of a newer flashgrep; {advice}"
            raise Unavailable(message, reason="wrong_migration", suggestion=advice)
        for old in segments:
            if old.kind != Kind.GRAMS or old.format == FORMAT:
                continue
            left, texts = old, old.texts[old.texts > 0].tolist()
            given = read_texts(self._connection, self._repository, old.shard, texts, BATCH_TEXTS, BATCH_BYTES)
            # Batch by batch, so that a worker that dies has not done it for nothing; one at least, to drop the segment.
            for batch in given if texts else [[]]:
                left = self._replace(left, batch)
                yield len(batch)
                release_memory()

    def _replace(self, old: Segment, batch: Sequence[tuple[int, bytes, bytes]]) -> Segment:
        """Store a segment of some texts, and return what is left of the one that named them; both or neither.

        Raises:
            Conflict: another worker has changed that one meanwhile.

        """
        connection, repository = self._connection, self._repository
        number = take_segments(connection, repository, 1)
        documents = [extract(raw) for _, _, raw in batch]
        # Texts are stored only if they are some; another version may see them otherwise.
        grams = [grams_of(one.data if isinstance(one, Document) else b"") for one in documents]
        blocks = list(encode(pairs_of(grams), number))
        named = np.array([text for text, _, _ in batch], np.int64)
        left = old._replace(texts=np.where(np.isin(old.texts, named), 0, old.texts))
        values = [repository, old.id, old.texts.astype(">i8").tobytes()]
        with write_rows(connection, repository, OF_SEGMENTS, (), [number]) as cursor:
            query = "UPDATE flashgrep.segment SET texts = %s WHERE repository = %s AND id = %s AND texts = %s"
            if not cursor.execute(query, [left.texts.astype(">i8").tobytes(), *values]).rowcount:
                raise Conflict("another worker is at the repository", reason="generation_changed")
            if not left.texts.any():
                cursor.execute("DELETE FROM flashgrep.segment WHERE repository = %s AND id = %s", values[:2])
                leave(cursor, repository, OF_SEGMENTS, (), [old.id], GRACE_SECONDS)
            if batch:
                put_blocks(cursor, repository, old.shard, number, blocks)
                put_segment(cursor, repository, Segment.of_blocks(number, Kind.GRAMS, old.shard, blocks, named))
            advance(cursor, repository)
        return left

    def parse(self, workers: int) -> Iterator[int]:
        """Store the symbols of texts that have none yet, yielding after each round the last text's number.

        They are parsed in processes of their own, so a grammar that crashes costs one text.
        """
        data: dict[int, bytes] = {}

        def read(batch: Sequence[tuple[int, bytes, bytes]]) -> Iterator[bytes | None]:
            return (data[number] for number, _, _ in batch)

        one, repository = self._connection.execute, self._repository
        row = one("SELECT parsed_to, next_text FROM flashgrep.repository WHERE id = %s", [repository]).fetchone()
        done, end = row or (0, 0)
        with Parsers(read, workers) as parsers:
            # By ranges of numbers, not by rows without symbols: a text whose row is missing would be chosen for ever.
            while done + 1 < end:
                rows = one(
                    "SELECT id, shard, path, data FROM flashgrep.text WHERE repository = %s AND id > %s AND id <= %s "
                    "ORDER BY id",
                    [repository, done, done + PARSED_AT_ONCE],
                    binary=True,
                ).fetchall()
                texts = [(number, shard, path, extract(raw)) for number, shard, path, raw in rows]
                data = {number: text.data for number, _, _, text in texts if isinstance(text, Document)}
                left = [(number, b"", path, len(data[number])) for number, _, path, _ in texts]
                batches: list[list[tuple[int, bytes, bytes]]] = []
                while left:
                    batches.append([row[:3] for row in take_bytes(iter(left[:PARSE_BATCH]), PARSE_BYTES)])
                    left = left[len(batches[-1]) :]
                # Parsed outside of any transaction: that takes seconds, and locks held so long would stop others.
                stored = list(parsers.run(batches))
                done = min(done + PARSED_AT_ONCE, end - 1)
                self.put_symbols(stored, {number: shard for number, shard, _, _ in texts}, done)
                yield done

    def put_symbols(self, found: Sequence[Any], shards: dict[int, int], done: int) -> None:
        """Store the symbols of texts up to ``done``; ``shards``: where each text lies."""
        rows = [(row.text_id, row.packed, row.names) for symbols in found for row in symbols.rows]
        rows += [
            (number, f"!{why}".encode() if why else b"", []) for symbols in found for number, why in symbols.declined
        ]
        # Rows of one shard together: a COPY to another server is begun once for each.
        rows.sort(key=lambda row: shards[row[0]])
        repository = self._repository
        numbers = [number for number, _, _ in rows]
        with write_rows(self._connection, repository, ("symbol", "symbol_name"), numbers, ()) as cursor:
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
    connection: "Connection[Any]", repository: int, shard: int, texts: Sequence[int], most: int, most_bytes: int
) -> Iterator[list[tuple[int, bytes, bytes]]]:
    """Yield texts of a shard with their paths and contents, so many and so many bytes at a time."""
    where = f"FROM flashgrep.text WHERE repository = %s AND shard = {int(shard)} AND id = ANY(%s) ORDER BY id"
    for at in range(0, len(texts), LISTED):
        sizes = f"SELECT id, octet_length(data) {where}"
        listed = connection.execute(sizes.encode(), [repository, list(texts[at : at + LISTED])]).fetchall()
        # Sizes first: one statement cannot be told to stop by size.
        left = [(number, b"", b"", size) for number, size in listed]
        while left:
            numbers = [row[0] for row in take_bytes(iter(left[:most]), most_bytes)]
            left = left[len(numbers) :]
            query = f"SELECT id, path, data {where}"
            yield connection.execute(query.encode(), [repository, numbers], binary=True).fetchall()


def read_content(source: Repository, content: Content) -> bytes | str:
    """Return a content as git does, or why it is not stored: it is too large, or not what its name says.

    Raises:
        Unavailable: the clone does not have it.

    """
    blob = content.name[0]
    found = source.read(content.path, blob.hex().encode(), MAX_SIZE)
    if found.data is None:
        return "too_large"
    # All revisions of a repository have a content by its name, so the name has to be true.
    digest = hashlib.new("sha1" if len(blob) == _SHA1_BYTES else "sha256", usedforsecurity=False)
    digest.update(b"blob %d\0" % len(found.data))
    digest.update(found.data)
    return found.data if digest.digest() == blob else "unreadable"
