"""The indexer's stage of symbols: parsing texts in separate processes, and storing what each defines."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, Self

from flashgrep.base.languages import language_of
from flashgrep.index.schema import StageBacklog
from flashgrep.indexer.project_work import ProjectWork
from flashgrep.indexer.worker_pool import hold_back
from flashgrep.indexer.workers import Texts, read_texts
from flashgrep.parts.symbols import symbol_table as table
from flashgrep.parts.symbols.parse.isolate import IsolatedParser, Parsed
from flashgrep.parts.symbols.symbol_table import StoredSymbols

PARSE_BATCH = 32
PARSE_BYTES = 1 << 20
"""Bytes of text parsed at a time: half a second's work."""
BATCHES_PER_PARSER = 2
"""One that is parsed, and one that is read meanwhile: a process that waits for its texts idles a tenth of the time."""


def store_symbols(work: ProjectWork, _embedding: str) -> Iterator[StageBacklog]:
    """Store the symbols of texts that have none yet, yielding after each batch how much is left."""
    connection = work.writer.connection
    number = work.add_project()
    stage_backlog = table.count_to_parse(connection, number)
    yield stage_backlog
    if not stage_backlog.texts:
        return
    work.pool.stop()
    with Parsers(
        partial(read_texts, work.project.root, work.project.max_size), work.job.workers
    ) as parsers:
        texts = work.choose_batches(
            lambda after: table.choose_to_parse(
                connection, number, PARSE_BATCH, PARSE_BYTES, after
            )
        )
        for symbols in parsers.run(texts):
            put_symbols(work, symbols)
            stage_backlog = StageBacklog(
                stage_backlog.texts - len(symbols.rows) - len(symbols.declined),
                stage_backlog.bytes - symbols.bytes,
            )
            yield stage_backlog
    # Counted, since texts whose files changed meanwhile were skipped.
    yield table.count_to_parse(connection, number)


class Symbols(NamedTuple):
    """The result of a batch of texts: rows to store, and (number, reason) of those without symbols."""

    rows: list[StoredSymbols]
    declined: list[tuple[int, str]]
    bytes: int


class Parsers:
    """Some parsing processes, each lent to one batch at a time; meanwhile the next batch of each is read."""

    def __init__(
        self, read: Callable[[Texts], Iterable[bytes | None]], count: int
    ) -> None:
        """``read``: yields the texts of a batch, None for one that is gone."""
        self._read = read
        self._count = count
        self._parsers = [IsolatedParser() for _ in range(count)]
        self._idle = SimpleQueue[IsolatedParser]()
        for parser in self._parsers:
            self._idle.put(parser)
        self._threads = ThreadPoolExecutor(BATCHES_PER_PARSER * count)

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
        """Parse batches in parallel and yield their symbols in order; a text that has changed is left unparsed.

        At most one batch waits besides those in progress: generated headers define 30,000 names each.
        """
        futures = (self._threads.submit(self._parse, batch) for batch in batches)
        for future in hold_back(futures, BATCHES_PER_PARSER * self._count):
            yield future.result()

    def _parse(self, batch: Texts) -> Symbols:
        rows: list[StoredSymbols] = []
        declined: list[tuple[int, str]] = []
        sources: list[tuple[int, str, bytes]] = []
        for (text_id, _, path), data in zip(batch, self._read(batch), strict=True):
            if data is None:
                continue  # a row without symbols would remain when the text comes back
            language = language_of(path, data)
            if language.symbols:
                sources.append((text_id, language.name, data))
            else:
                declined.append((text_id, ""))
        parser = self._idle.get()
        try:
            answers = parser.parse([(language, data) for _, language, data in sources])
            for (text_id, _, _), answer in zip(sources, answers, strict=True):
                if isinstance(answer, Parsed):
                    rows.append(StoredSymbols(text_id, answer.packed, answer.names))
                else:
                    declined.append((text_id, answer.reason))
        finally:
            self._idle.put(parser)
        return Symbols(rows, declined, sum(len(data) for _, _, data in sources))


def put_symbols(work: ProjectWork, parsed: Symbols) -> None:
    """Store the symbols of texts, and for other texts the reason why they have none."""
    with work.writer.transaction() as connection:
        table.put(connection, parsed.rows)
        for text_id, reason in parsed.declined:
            table.put_without_symbols(connection, text_id, reason)
