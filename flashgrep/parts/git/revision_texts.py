"""Texts of revisions that were asked about: read from git's objects, and stored like those of files.

Each content is checked against its blob id, so a repository with forged objects cannot store one under another's id.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice

from flashgrep.base.errors import FlashgrepError
from flashgrep.base.languages import name_class
from flashgrep.base.machine import release_memory
from flashgrep.base.model import Document, Skipped
from flashgrep.files.extract import extract
from flashgrep.index import kept
from flashgrep.index.grams import Grams, grams_of
from flashgrep.index.kept import Name
from flashgrep.index.postings import encode, pairs_of
from flashgrep.index.schema import take_numbers
from flashgrep.index.writer import Text, Writer
from flashgrep.indexer.job import ProjectJob
from flashgrep.indexer.project_work import Contents, ProjectWork
from flashgrep.indexer.workers import describe_text, hash_text
from flashgrep.parts.git.program import Git, ObjectReader
from flashgrep.parts.symbols.parsing_stage import Parsers, put_symbols
from flashgrep.parts.symbols.symbol_table import take_bytes

BATCH_BYTES = 16 << 20
"""Bytes of text stored at once, as one segment: half a second's work."""
BATCH_TEXTS = 4096
PARSE_TEXTS = 32
PARSE_BYTES = 1 << 20
_SHA1_BYTES = 20


def keep_texts(work: ProjectWork, contents: Contents) -> Iterator[int]:
    """Store texts of revisions, then parse those requested, yielding after each batch how many texts are left.

    Ends early if another command waits. What cannot be read because git fails is left.
    """
    texts_left = 0
    with (
        suppress(FlashgrepError),
        closing(RevisionTexts(work.project, work.writer, contents)) as texts,
    ):
        for texts_left in texts.store(work.is_interrupted):
            yield texts_left
        if texts.find_to_parse():
            with Parsers(texts.read, work.job.workers) as parsers:
                # Stored batch by batch, so that an interruption loses at most one.
                for symbols in parsers.run(work.choose_batches(texts.choose_to_parse)):
                    put_symbols(work, symbols)
                    yield texts_left
            with work.writer.transaction() as connection:
                take_numbers(connection, "generation")
            yield texts_left + texts.find_to_parse()


class RevisionTexts:
    """Reads, stores and parses some contents of a project's revisions."""

    def __init__(self, project: ProjectJob, writer: Writer, contents: Contents) -> None:
        """Find git.

        Raises:
            Unavailable: git is not installed.

        """
        self._project = project
        self._writer = writer
        self._paths: dict[Name, bytes] = {}
        self._to_parse: set[Name] = set()
        for blob, text, parse in contents:
            path = str(text).encode("latin-1")
            name = bytes.fromhex(str(blob)), name_class(path)
            self._paths[name] = path
            if parse:
                self._to_parse.add(name)
        # The environment is inherited from the daemon.
        # All connections find what is stored here, bound ones, too.
        self._objects = ObjectReader(
            Git.find(project.root, os.environ, is_confined=True)
        )
        self._unparsed: list[tuple[int, bytes, bytes, int]] = []

    def close(self) -> None:
        """End git."""
        self._objects.close()

    def store(self, is_interrupted: Callable[[], bool]) -> Iterator[int]:
        """Store the texts, yielding after each batch how many are left; ends early if another command waits.

        Raises:
            FlashgrepError: git fails, or the clone lacks objects; what was read before is stored.

        """
        project = self._project
        writer = self._writer
        until = int(time.time()) + project.kept_days * 24 * 3600
        writer.add_project(project.root.path)
        with writer.transaction() as connection:
            texts_left = kept.renew(connection, list(self._paths), until)
        room = project.kept_bytes
        while texts_left and room > 0 and not is_interrupted():
            release_memory()
            reserved = writer.reserve(min(len(texts_left), BATCH_TEXTS))
            texts: dict[bytes, Text] = {}
            grams: list[Grams] = []
            contents: list[tuple[Name, bytes, str]] = []
            size = 0
            while (
                texts_left
                and size < min(BATCH_BYTES, room)
                and len(contents) < BATCH_TEXTS
            ):
                name = texts_left.pop()
                content = self._read(name)
                if isinstance(content, Skipped):
                    contents.append((name, b"", content.reason))
                elif content is not None:
                    size += len(content.data)
                    path = self._paths[name]
                    text_hash = hash_text(self._paths[name], content.data)
                    contents.append((name, text_hash, ""))
                    # Most contents of a revision are also in the work tree.
                    row = writer.connection.execute(
                        "SELECT 1 FROM text WHERE hash = ?", [text_hash]
                    ).fetchone()
                    if row is None and text_hash not in texts:
                        texts[text_hash] = describe_text(
                            reserved.first + len(grams), path, text_hash, content
                        )
                        grams.append(grams_of(content.data))
            if grams:
                blocks = list(encode(pairs_of(grams), reserved.segment))
            else:
                blocks = []
            writer.put_revision_texts(
                reserved, list(texts.values()), blocks, contents, until
            )
            room -= size
            yield len(texts_left)
        with writer.transaction() as connection:
            kept.drop(connection, int(time.time()), project.kept_bytes)

    def _read(self, name: Name) -> Document | Skipped | None:
        """Return a content, or why it has no text; None: it is missing, too large, or does not match its blob id."""
        object_ = self._objects.find(
            name[0].hex().encode("ascii"), self._project.max_size
        )
        if object_ is None or object_.data is None:
            return None
        if len(name[0]) == _SHA1_BYTES:
            algorithm = "sha1"
        else:
            algorithm = "sha256"
        digest = hashlib.new(
            algorithm, b"blob %d\0" % len(object_.data), usedforsecurity=False
        )
        digest.update(object_.data)
        if digest.digest() == name[0]:
            return extract(object_.data)
        return None

    def find_to_parse(self) -> int:
        """Find the texts to parse, and return how many there are."""
        connection = self._writer.connection
        indexed_texts = kept.read_known(connection)
        self._unparsed = []
        for name in self._to_parse:
            if (
                text_id := indexed_texts.text_ids.get(name, 0)
            ) in indexed_texts.unparsed:
                size = connection.execute(
                    "SELECT size FROM text WHERE id = ?", [text_id]
                ).fetchone()[0]
                self._unparsed.append(
                    (text_id, name[0].hex().encode("ascii"), self._paths[name], size)
                )
        self._unparsed.sort()
        return len(self._unparsed)

    def choose_to_parse(self, after: int) -> list[tuple[int, bytes, bytes]]:
        """Return the next texts to parse, numbered above ``after``, with blob ids in hexadecimal and paths."""
        rows = islice((row for row in self._unparsed if row[0] > after), PARSE_TEXTS)
        return [row[:3] for row in take_bytes(rows, PARSE_BYTES)]

    def read(self, batch: Sequence[tuple[int, bytes, bytes]]) -> Iterator[bytes | None]:
        """Yield the texts of a batch from ``choose_to_parse``; None for one that cannot be read."""
        for _, blob, path in batch:
            content = self._read(
                (bytes.fromhex(blob.decode("ascii")), name_class(path))
            )
            yield content.data if isinstance(content, Document) else None
