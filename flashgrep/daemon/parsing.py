"""The indexer's last stage: symbols of texts, parsed in processes of their own."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from flashgrep.daemon.prepare import read_text
from flashgrep.index.symbols import StoredSymbols
from flashgrep.ingest.parse.isolate import IsolatedParser, Parsed
from flashgrep.ingest.parse.languages import language_of

Texts = Sequence[tuple[int, bytes, bytes]]
"""Texts by number, content hash and one path."""


class Symbols(NamedTuple):
    """What one batch of texts gave: rows to store, and (number, reason) of those without symbols."""

    rows: list[StoredSymbols]
    declined: list[tuple[int, str]]


class Parsers:
    """Some parsing processes, each lent to one batch at a time."""

    def __init__(self, root: bytes, max_size: int, count: int) -> None:
        self._root = root
        self._max_size = max_size
        self._parsers = [IsolatedParser() for _ in range(count)]
        self._threads = ThreadPoolExecutor(count)

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown()
        for parser in self._parsers:
            parser.close()

    def run(self, batches: Sequence[Texts]) -> list[Symbols]:
        """Parse batches side by side; a text that changed meanwhile is left unparsed."""
        count = len(self._parsers)
        shares = [batches[at::count] for at in range(count)]
        done = self._threads.map(self._share, self._parsers, shares)
        return [symbols for share in done for symbols in share]

    def _share(self, parser: IsolatedParser, batches: Sequence[Texts]) -> list[Symbols]:
        return [self._batch(parser, batch) for batch in batches]

    def _batch(self, parser: IsolatedParser, texts: Texts) -> Symbols:
        done = Symbols([], [])
        blobs: list[int] = []
        sources: list[tuple[str, bytes]] = []
        for blob, text_hash, path in texts:
            data = read_text(self._root, path, text_hash, self._max_size)
            if data is None:
                continue  # a row without symbols would still be there when the text comes back
            language = language_of(path.decode("utf-8", "replace"), data)
            if language is None:
                done.declined.append((blob, ""))
            else:
                blobs.append(blob)
                sources.append((language, data))
        for blob, answer in zip(blobs, parser.parse(sources), strict=True):
            if isinstance(answer, Parsed):
                done.rows.append(StoredSymbols(blob, answer.packed, answer.names))
            else:
                done.declined.append((blob, answer.reason))
        return done
