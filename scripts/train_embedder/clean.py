"""Decontamination: drops rows whose question or code also occurs in an avoided package."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from scripts.benchmarks.search import packages as evaluation
from scripts.train_embedder.archives import LARGEST
from scripts.train_embedder.corpus import Corpus, Numbering
from scripts.train_embedder.definitions import parse
from scripts.train_embedder.fetch import archive_of
from scripts.train_embedder.languages import written_in
from scripts.train_embedder.packages import Package
from scripts.train_embedder.pairs import source_files
from scripts.train_embedder.prose import first_sentence, plain
from scripts.train_embedder.ragged import Ints, Ragged
from scripts.train_embedder.words import words

SHINGLE: Final = 12
"""Consecutive words that are compared."""
SHARED: Final = 0.3
"""Share of a row's shingles that makes it a copy; at least ``FEWEST``."""
FEWEST: Final = 3

Hashes = npt.NDArray[np.uint64]


def foreign_rows(corpus: Corpus, avoided: Corpus) -> npt.NDArray[np.bool_]:
    """Return which rows repeat a question, or much of the code, of another corpus with the same numbering."""
    questions = _whole(corpus.fields["question"], len(corpus.words))
    asked = np.isin(questions, _whole(avoided.fields["question"], len(corpus.words)))
    hashes, owners = shingles(corpus.fields["code"], len(corpus.words))
    known = np.unique(shingles(avoided.fields["code"], len(corpus.words))[0])
    shared = np.bincount(owners[_among(hashes, known)], minlength=corpus.size)
    total = np.bincount(owners, minlength=corpus.size)
    copied = (shared >= FEWEST) & (shared >= SHARED * total)
    return copied | (asked & (corpus.fields["question"].lengths > SHINGLE // 3))


def shingles(field: Ragged, known: int) -> tuple[Hashes, Ints]:
    """Return a hash of each run of ``SHINGLE`` words and the row it is in."""
    count = max(0, len(field.values) - SHINGLE + 1)
    weights = _numbers(known)[field.values]
    hashes = np.zeros(count, np.uint64)
    for offset in range(SHINGLE):
        hashes = (
            hashes * np.uint64(0x9E3779B97F4A7C15) + weights[offset : offset + count]
        )
    owners = np.repeat(np.arange(len(field.lengths)), field.lengths)
    inside = owners[:count] == owners[SHINGLE - 1 :][:count]
    return hashes[inside], owners[:count][inside]


def _whole(field: Ragged, known: int) -> Hashes:
    """Return one hash per row; empty rows get unique ones."""
    owners = np.repeat(np.arange(len(field.lengths)), field.lengths)
    within = np.arange(len(field.values)) - field.bounds[owners]
    sums = np.zeros(len(field.lengths), np.uint64)
    np.add.at(
        sums,
        owners,
        _numbers(known)[field.values] * (2 * within.astype(np.uint64) + np.uint64(1)),
    )
    return sums


def _numbers(known: int) -> Hashes:
    return np.random.default_rng(7).integers(1, 2**63, size=known, dtype=np.uint64)


def _among(hashes: Hashes, ascending: Hashes) -> npt.NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(len(hashes), np.bool_)
    places = np.minimum(np.searchsorted(ascending, hashes), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[places] == hashes
    return found


def avoided_corpus(
    work: Path,
    packages: Iterable[Package],
    numbering: Numbering,
    texts: Iterable[str] = (),
) -> Corpus:
    """Return the avoided packages as rows, one per file and one per documentation sentence, and the texts."""
    code: list[list[int]] = [
        [numbering[word] for word in words(text)] for text in texts
    ]
    questions: list[list[int]] = []
    for package in packages:
        for text, sentences in _read(work, package):
            code.append([numbering[word] for word in words(text)])
            questions.extend(
                [numbering[word] for word in words(sentence)] for sentence in sentences
            )
    fields = {"code": Ragged.of(code), "question": Ragged.of(questions)}
    return Corpus(list(numbering), fields, [])


def _read(work: Path, package: Package) -> Iterator[tuple[str, list[str]]]:
    archive = archive_of(work, package.kind, package.name)
    for file in source_files(package.kind, archive) if archive else ():
        found = parse(file.text, file.language).definitions
        yield (
            file.text,
            [
                sentence
                for each in found
                if (sentence := first_sentence(plain(each.doc)))
            ],
        )


def evaluated_texts(cache: Path) -> Iterator[str]:
    """Yield the sources of all repositories with questions, as unpacked by ``scripts/eval_search``."""
    for package in evaluation.packages():
        if package.use not in {"docstrings", "tasks"}:
            root = evaluation.unpacked(package, cache)
            for path in sorted(root.rglob("*")):
                if (
                    written_in(path.name)
                    and path.is_file()
                    and path.stat().st_size <= LARGEST
                ):
                    yield path.read_text("utf-8", "replace")
