"""Compares a daemon, over its socket, with other rankings on the same questions, judged by file and by range.

The others rank the same files: BM25 and the embedded table alone, MiniLM and wordllama (alone and with our BM25, over
our chunks), and semble's whole pipeline, with its chunks and rules and our table. Those whose package is not installed
are left out with a message: ``minilm`` is an extra, the others are ``pip install wordllama semble``.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.chunking import embedding_text
from flashgrep.parts.meaning.embed import Embedder, static
from flashgrep.parts.meaning.embed.local import open_minilm
from flashgrep.parts.meaning.index.word_impacts import (
    LEVELS,
    Fields,
    impacts_of,
    key_of,
    scores_of,
)
from flashgrep.parts.meaning.search.chunk_index import Floats, idf
from flashgrep.parts.meaning.search.current_chunks import cut_chunks
from flashgrep.parts.meaning.search.fusion import RULES, query_words
from scripts.benchmarks.private import Client, adopt, private_daemon, wait_until
from scripts.benchmarks.search.asking import KINDS, Question, asked
from scripts.benchmarks.search.judging import Judged, Place, judge, target_ranges
from scripts.benchmarks.search.metrics import interval, mean
from scripts.benchmarks.search.packages import packages
from scripts.benchmarks.search.ranking import RESULTS, SHOWN

INDEXING: Final = {"listing", "indexing", "symbols", "chunks", "vectors"}

WIRE: Final = "search_code"
"""The way to which the others are compared."""


Ask = Callable[[str], Sequence[Place]]
Results = Mapping[str, Mapping[str, Sequence[Judged]]]
"""The quality of each answer, by repository and way."""


def compare(
    root: Path, questions: Sequence[Question], work: Path
) -> dict[str, list[Judged]]:
    """Return the quality of every answer for each way; ``work``: an empty folder."""
    with private_daemon(work / "state") as daemon:
        adopt(daemon, root)
        client = daemon.client()
        wait_until(client, INDEXING)
        truths = [target_ranges(question, root) for question in questions]
        ways: Mapping[str, Ask] = {WIRE: lambda text: ask_wire(client, text)} | dict(
            others(root, client)
        )
        found = {
            name: [
                judge(ask(one.text), one, truth)
                for one, truth in zip(questions, truths, strict=True)
            ]
            for name, ask in ways.items()
        }
        client.close()
    return found


def ask_wire(client: Client, text: str) -> list[Place]:
    """Call ``search_code`` like an agent, without a limit."""
    hits = client.call("search_code", query=text, limit=SHOWN)["results"]
    return [
        Place(hit["file_path"], hit["start_line"], hit["end_line"], hit["content"])
        for hit in hits
    ]


def print_comparison(results: Results) -> None:
    """Print the figures of every way: over all questions, then by kind and by language."""
    kinds, languages = (
        asked(),
        {package.repository: package.language for package in packages()},
    )
    groups: dict[str, dict[str, list[Judged]]] = {}
    for repository, found in results.items():
        for way, rows in found.items():
            for question, judged in zip(kinds[repository], rows, strict=True):
                for group in ("all", question.kind, languages[repository]):
                    groups.setdefault(group, {}).setdefault(way, []).append(judged)
    for group, found in sorted(
        groups.items(),
        key=lambda item: (item[0] != "all", item[0] not in KINDS, item[0]),
    ):
        print(
            f"\n{group} ({len(found[WIRE])}): NDCG@10 by file, less than {WIRE} by; by range, recall@10 of both, tokens"
        )
        for way, rows in found.items():
            ndcg, ranges = (
                [one.files.ndcg for one in rows],
                [one.ranges.ndcg for one in rows],
            )
            tokens = mean(one.files for one in rows).tokens
            recall = mean(one.files for one in rows).recall
            by_range = mean(one.ranges for one in rows).recall
            behind = [
                one.files.ndcg - ours.files.ndcg
                for one, ours in zip(rows, found[WIRE], strict=True)
            ]
            print(
                f"  {way:22} {_told(ndcg)} {_told(behind)} {_told(ranges)} {recall:.3f} {by_range:.3f} {tokens:7.0f}"
            )


def _told(values: Sequence[float]) -> str:
    return "{:6.3f} ({:.3f} to {:.3f})".format(
        sum(values) / len(values), *interval(values)
    )


# Other ways


def others(root: Path, client: Client) -> Iterator[tuple[str, Ask]]:
    """Yield the available ways."""
    chunks, inputs, fields = list[Place](), list[str](), list[Fields]()
    for path in _list_files(client):
        data = (root / path).read_bytes()
        cut = cut_chunks(path.encode(), data)
        for chunk in cut.chunks:
            text = data[chunk.start : chunk.end].decode("utf-8", "replace")
            chunks.append(Place(path, chunk.start_line, chunk.end_line, text))
            inputs.append(embedding_text(path.encode(), data, chunk))
        fields += cut.fields
    words = _Words(fields)
    yield "BM25", lambda text: _best(chunks, words.scores(text))
    ours = static.load(static.DATA)
    for name, embedder in (
        ("the table", ours),
        ("MiniLM", _open_minilm()),
        ("wordllama", _open_wordllama()),
    ):
        if embedder is None:
            print(f"left out: {name} is not installed", file=sys.stderr)
            continue
        rows = np.concatenate(
            [
                embedder.embed_code(inputs[at : at + 256])
                for at in range(0, len(inputs), 256)
            ]
        )
        yield from _by_vectors(name, embedder, rows, chunks, words)
    if find_spec("semble"):
        yield "semble, our table", open_semble(root, ours)
    else:
        print("left out: semble is not installed", file=sys.stderr)


def _by_vectors(
    name: str, embedder: Any, rows: Floats, chunks: Sequence[Place], words: "_Words"
) -> Iterator[tuple[str, Ask]]:
    def similar(text: str) -> Floats:
        cosines: Floats = rows @ embedder.embed_queries([text])[0]
        return cosines

    def mixed(text: str) -> Floats:
        near, said = np.maximum(similar(text), 0), words.scores(text)
        share = RULES.semantic_weight
        return share * near / max(float(near.max()), 1e-9) + (1 - share) * said / max(
            float(said.max()), 1e-9
        )

    yield name, lambda text: _best(chunks, similar(text))
    yield f"{name} and BM25", lambda text: _best(chunks, mixed(text))


def _best(chunks: Sequence[Place], scores: Floats) -> list[Place]:
    order = np.argsort(-scores, kind="stable")[:RESULTS]
    return [chunks[at] for at in order.tolist() if scores[at] > 0]


def _list_files(client: Client) -> Iterator[str]:
    params: dict[str, Any] = {"limit": 1000}
    while True:
        page = client.call("list_files", **params)
        yield from (one["file_path"] for one in page["results"])
        if not page.get("next"):
            return
        params["cursor"] = page["next"]


class _Words:
    """BM25 over chunks."""

    def __init__(self, fields: Sequence[Fields]) -> None:
        self._pairs = impacts_of(fields)
        self._count = len(fields)

    def scores(self, text: str) -> Floats:
        families = []
        for word in query_words(text):
            low, high = (key_of(word.encode()) + part << 32 for part in (0, LEVELS))
            having = int(
                np.diff(np.searchsorted(self._pairs, np.array([low, high], np.uint64)))[
                    0
                ]
            )
            families.append({word: idf(self._count, having)})
        return scores_of(self._pairs, families, self._count).bm25


def _open_minilm() -> Embedder | None:
    try:
        return open_minilm(0)
    except ProviderUnavailable:
        return None


class _Wordllama:
    """The table of 256 numbers per word in its wheel."""

    def __init__(self) -> None:
        package = import_module("wordllama")
        # The wheel's vocabulary is found only through the cache folder; nothing is
        # downloaded.
        cache = Path(package.__file__ or "").parent
        self._model = package.WordLlama.load(cache_dir=cache, disable_download=True)

    def embed_code(self, texts: Sequence[str]) -> Floats:
        rows: Floats = self._model.embed(list(texts), norm=True)
        return rows

    embed_queries = embed_code


def _open_wordllama() -> _Wordllama | None:
    return _Wordllama() if find_spec("wordllama") else None


class _Encoding:
    """Our table with the interface of semble's models, which do not distinguish questions from code."""

    def __init__(self, embed: Callable[[Sequence[str]], Floats], dim: int) -> None:
        self._embed = embed
        self.dim = dim

    def encode(self, texts: Sequence[str], **_options: object) -> Floats:
        return self._embed(texts)


def open_semble(root: Path, embedder: Embedder) -> Ask:
    """Return semble's whole pipeline, its chunks and rules, with an embedder of ours."""
    create, search = (
        import_module(f"semble.{name}") for name in ("index.create", "search")
    )
    code = _Encoding(embedder.embed_code, embedder.dims)
    words, vectors, chunks, _ = create.create_index_from_path(
        root, code, display_root=root
    )
    model = _Encoding(embedder.embed_queries, embedder.dims)

    def ask(text: str) -> list[Place]:
        found = search.search(text, model, vectors, words, chunks, RESULTS)
        return [
            Place(
                one.chunk.file_path,
                one.chunk.start_line,
                one.chunk.end_line,
                one.chunk.content,
            )
            for one in found
        ]

    return ask
