"""The steps of the recipe, in order; each stores its results in the work folder for later ones.

scripts/train_embedder/run --work FOLDER [--steps N] [STEP ...]
scripts/train_embedder/run --work FOLDER --admit KIND NAME ...
"""

import argparse
import pickle
from collections.abc import Callable, Iterable
from multiprocessing import Pool
from pathlib import Path
from typing import Final

import numpy as np

from flashgrep.parts.meaning.embed.static import DATA
from scripts.train_embedder import (
    blend,
    clean,
    commits,
    corpus,
    export,
    fetch,
    packages,
    pairs,
    start,
    teacher,
    vocabulary,
)
from scripts.train_embedder.measure import Held, held_rows, report
from scripts.train_embedder.measure import measure as figures
from scripts.train_embedder.overlap import overlapping
from scripts.train_embedder.packages import Package
from scripts.train_embedder.ragged import Ints
from scripts.train_embedder.sampling import Sampler
from scripts.train_embedder.train import Settings, Table, train

PROCESSES: Final = 2
TABLES: Final = 3
"""Tables trained on different samples; their mean is shipped."""
TUNING: Final = Settings(steps=160, rate=0.002)
"""For commits: with more steps or a higher rate, the table loses what it learnt from documentation."""
TUNING_BLOCK: Final = 512
PAIRS: Final = 2_000
"""Held-out questions, and as many functions, for the quantiles of their cosines."""

Prepared = tuple[corpus.Corpus, list[str], Ints, dict[str, vocabulary.Bags]]


class Recipe:
    """The steps over one work folder."""

    def __init__(self, work: Path, settings: Settings) -> None:
        self.work = work
        self.settings = settings
        self.allowed = packages.read(packages.ALLOW)
        self.avoided = packages.kept_out()

    def fetch(self) -> None:
        """Download everything."""
        for package in [*self.allowed, *self.avoided]:
            fetch.download(self.work, package.kind, package.name, package.version)

    def rows(self) -> None:
        """Write the training and held-out rows of each package."""
        folders = frozenset(
            each.name.lower() for each in self.avoided if each.kind in {"pypi", "npm"}
        )
        with Pool(PROCESSES) as pool:
            pool.starmap(
                pairs.write_rows,
                [(self.work, each, folders) for each in self.allowed],
                chunksize=1,
            )

    def prepare(self) -> None:
        """Assign numbers to words, drop rows that occur in evaluation data, choose the vocabulary, and count."""
        kept = self._kept(map(self._rows_of, self._used("train")))
        words, rows = vocabulary.choose(kept)
        prepared: Prepared = (kept, words, rows, vocabulary.bags_of(kept, words))
        self._prepared.write_bytes(pickle.dumps(prepared, protocol=5))
        print(f"{len(words)} words")

    def teach(self) -> None:
        """Compute the teacher's vectors."""
        kept, words, _, _ = self._read()
        start.word_vectors(self.work, words)
        rows, vectors = teacher.taught(self.work, kept)
        np.savez(
            self.work / "teacher.npz", rows=rows, vectors=vectors.astype(np.float16)
        )

    def train(self) -> None:
        """Train the tables, one after the other."""
        kept, words, rows, bags = self._read()
        begin = start.fresh(start.word_vectors(self.work, words), rows)
        shared = overlapping(kept.fields["code"], len(kept.words))
        with np.load(self.work / "teacher.npz") as data:
            taught, vectors = data["rows"], data["vectors"].astype(np.float32)
        for seed in range(1, TABLES + 1):
            table = Table(begin, self.settings)
            draws = np.random.default_rng(seed)
            lessons = teacher.Teacher(
                taught, vectors, bags["question"], len(words), draws
            )
            train(
                table, Sampler(bags, words, shared, seed).draw, lessons, self.settings
            )
            table.model(words).save(self.work / f"table-{seed}.npz")

    def blend(self) -> None:
        """Compute the mean of the tables."""
        tables = [
            export.Model.read(path) for path in sorted(self.work.glob("table-*.npz"))
        ]
        blend.blend(tables).save(self._model)

    def tune(self) -> None:
        """Train a table further on commits, and compute the mean of before and after."""
        before = (
            export.Model.read(self._model)
            if self._model.exists()
            else export.Model.shipped(DATA)
        )
        paths = [
            commits.write_rows(self.work, each)
            for each in packages.read(commits.REPOSITORIES)
        ]
        kept = self._kept(paths, clean.evaluated_texts(self.work / "evaluated"))
        bags = vocabulary.bags_of(kept, before.words)
        shared = overlapping(kept.fields["code"], len(kept.words))
        table = Table(
            start.Start(before.table, before.code_weights, before.query_weights), TUNING
        )
        train(
            table,
            Sampler(bags, before.words, shared, block=TUNING_BLOCK).draw,
            None,
            TUNING,
        )
        tuned = table.model(before.words)
        tuned.save(self.work / "tuned.npz")
        blend.blend([before, tuned]).save(self._model)

    def export(self) -> None:
        """Quantise and calibrate, and write the shipped file."""
        held = self._held()
        questions = [question for each in held for question in each.questions]
        code = [each.code[target] for each in held for target in each.targets]
        drawn = np.random.default_rng(9).permutation(len(questions))[:PAIRS].tolist()
        model = export.Model.read(self._model)
        export.calibrated(
            model, [questions[n] for n in drawn], [code[n] for n in drawn], DATA
        )

    def measure(self) -> None:
        """Print the shipped file's figures on the held-out packages."""
        embedder = export.load(DATA)
        for line in report([figures(each, embedder) for each in self._held()]):
            print(line)

    def _kept(self, paths: Iterable[Path], texts: Iterable[str] = ()) -> corpus.Corpus:
        """Read rows without those that occur in avoided packages or in ``texts``."""
        numbering = corpus.Numbering()
        training = corpus.load(paths, numbering)
        avoided = clean.avoided_corpus(
            self.work, [*self.avoided, *self._used("held")], numbering, texts
        )
        training, avoided = (
            each._replace(words=list(numbering)) for each in (training, avoided)
        )
        kept = training.take(np.flatnonzero(~clean.foreign_rows(training, avoided)))
        print(f"{training.size} rows, {kept.size} after decontamination", flush=True)
        return kept

    @property
    def _prepared(self) -> Path:
        return self.work / "prepared.pickle"

    @property
    def _model(self) -> Path:
        return self.work / "model.npz"

    def _read(self) -> Prepared:
        prepared: Prepared = pickle.loads(self._prepared.read_bytes())  # noqa: S301 - our own file of an earlier step
        return prepared

    def _used(self, use: str) -> Iterable[Package]:
        return (package for package in self.allowed if package.use == use)

    def _rows_of(self, package: Package) -> Path:
        return pairs.rows_path(self.work, package)

    def _held(self) -> list[Held]:
        return [held_rows(self._rows_of(package)) for package in self._used("held")]


STEPS: Final = (
    "fetch",
    "rows",
    "prepare",
    "teach",
    "train",
    "blend",
    "export",
    "measure",
)
"""Default steps. ``tune`` is not one: its table is not significantly better and is not shipped."""


def main() -> None:
    """Run steps, or add packages to the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="about 6 GB of downloads and intermediate data",
    )
    parser.add_argument("--steps", type=int, default=Settings().steps)
    parser.add_argument(
        "--admit",
        nargs="+",
        metavar="KIND NAME",
        help="add packages whose licence allows it",
    )
    parser.add_argument(
        "names", nargs="*", default=STEPS, metavar="STEP", help=" ".join(STEPS)
    )
    given = parser.parse_args()
    if given.admit:
        _admit(given.work, given.admit[0], given.admit[1:])
        return
    recipe = Recipe(given.work, Settings(steps=given.steps))
    clashes = packages.clashes(recipe.allowed, recipe.avoided)
    if clashes:
        parser.error(
            f"to be trained on and measured on: {[package.name for package in clashes]}"
        )
    for step in given.names:
        run: Callable[[], None] = getattr(recipe, step)
        run()


def _admit(work: Path, kind: str, names: list[str]) -> None:
    listed = packages.read(packages.ALLOW)
    new = [
        Package(kind, name, "", "", "train")
        for name in names
        if (kind, name) not in {p[:2] for p in listed}
    ]
    packages.write(packages.ALLOW, listed + fetch.admit(work, new))


if __name__ == "__main__":
    main()
