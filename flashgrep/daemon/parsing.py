"""The indexer's last stage: symbols of texts, parsed in processes of their own."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Self

from flashgrep.daemon.prepare import read_text
from flashgrep.daemon.workers import held_back
from flashgrep.index.symbols import StoredSymbols
from flashgrep.ingest.openat import RootFiles, RootFolder
from flashgrep.ingest.parse.isolate import BATCH_BYTES, IsolatedParser, Parsed
from flashgrep.languages import language_of

Texts = Sequence[tuple[int, bytes, bytes]]
"""Texts by number, content hash and one path."""


class Symbols(NamedTuple):
    """What one batch of texts gave: rows to store, and (number, reason) of those without symbols."""

    rows: list[StoredSymbols]
    declined: list[tuple[int, str]]
    bytes: int


class Parsers:
    """Some parsing processes, each lent to one batch at a time."""

    def __init__(self, root: RootFolder, max_size: int, count: int) -> None:
        self._root = root
        self._max_size = max_size
        self._count = count
        self._parsers = [IsolatedParser() for _ in range(count)]
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown()
        for parser in self._parsers:
            parser.close()

    def run(self, batches: Iterable[Texts]) -> Iterator[Symbols]:
        """Parse batches side by side and yield their symbols in order; a text that changed meanwhile is left unparsed.

        At most one batch waits to be taken beyond those being worked on: generated headers define 30,000 names each.
        """
        begun = (self._threads.submit(self._lend, batch) for batch in batches)
        for future in held_back(begun, self._count):
            yield future.result()

    def _lend(self, batch: Texts) -> Symbols:
        parser = self._parsers.pop()  # there is one for each thread
        try:
            return self._batch(parser, batch)
        finally:
            self._parsers.append(parser)

    def _batch(self, parser: IsolatedParser, texts: Texts) -> Symbols:
        done = Symbols([], [], 0)
        read = 0
        for sources in self._sources(texts, done):
            read += sum(len(data) for _, _, data in sources)
            answers = parser.parse([(language, data) for _, language, data in sources])
            for (blob, _, _), answer in zip(sources, answers, strict=True):
                if isinstance(answer, Parsed):
                    done.rows.append(StoredSymbols(blob, answer.packed, answer.names))
                else:
                    done.declined.append((blob, answer.reason))
        return done._replace(bytes=read)

    def _sources(self, texts: Texts, done: Symbols) -> Iterator[list[tuple[int, str, bytes]]]:
        """Yield some megabytes at a time of texts to parse, as (number, language, text); note those in no language."""
        sources: list[tuple[int, str, bytes]] = []
        files = RootFiles(self._root)
        for blob, text_hash, path in texts:
            data = read_text(files, path, text_hash, self._max_size)
            if data is None:
                continue  # a row without symbols would still be there when the text comes back
            language = language_of(path, data)
            if not language.symbols:
                done.declined.append((blob, ""))
                continue
            sources.append((blob, language.name, data))
            if sum(len(data) for _, _, data in sources) > BATCH_BYTES:
                yield sources
                sources = []
        yield sources
