"""All training rows as numbers: distinct words are numbered, and each field is a ragged array of word numbers."""

import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from scripts.train_embedder.pairs import Row
from scripts.train_embedder.ragged import Ints, Ragged

FIELDS: Final = ("question", "rest", "name", "place", "code")
"""``rest`` is the documentation after the question."""
UNDOCUMENTED: Final = 0.5
"""Share of the rows without documentation that are used."""


class Numbering(dict[str, int]):
    """Word to number; a new word gets the next."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Corpus(NamedTuple):
    """Rows of all packages."""

    words: list[str]
    fields: dict[str, Ragged]
    languages: list[str]

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.fields["code"].bounds) - 1

    def take(self, rows: Ints) -> "Corpus":
        """Return some rows."""
        fields = {name: field.take(rows) for name, field in self.fields.items()}
        return Corpus(
            self.words, fields, [self.languages[row] for row in rows.tolist()]
        )


def load(
    paths: Iterable[Path], numbering: Numbering, share: float = UNDOCUMENTED
) -> Corpus:
    """Read rows files; ``share`` of the rows without documentation are kept, evenly spread."""
    values = {name: array("i") for name in FIELDS}
    bounds = {name: array("q", [0]) for name in FIELDS}
    languages: list[str] = []
    for row in _kept(paths, share):
        languages.append(row["language"])
        for name, field in _fields(row).items():
            values[name].extend(map(numbering.__getitem__, field))
            bounds[name].append(len(values[name]))
    fields = {
        name: Ragged(np.array(values[name], np.int32), np.array(bounds[name], np.int64))
        for name in FIELDS
    }
    return Corpus(list(numbering), fields, languages)


def _kept(paths: Iterable[Path], share: float) -> Iterator[Row]:
    owed = 0.0
    for path in paths:
        with path.open() as lines:
            for line in lines:
                row: Row = json.loads(line)
                owed += 0 if row["q"] else share
                if row["q"] or owed >= 1:
                    owed -= 0 if row["q"] else 1
                    yield row


def _fields(row: Row) -> dict[str, list[str]]:
    question, name, doc = row["q"].split(), row["n"].split(), row["d"].split()
    rest = doc[len(question) :] if doc[: len(question)] == question else []
    if name and question[: len(name)] == name:
        question = question[
            len(name) :
        ]  # comments in Go and JSDoc start with the name, which would reveal the answer
    usable = len(question) > 1
    return {
        "question": question if usable else [],
        "rest": rest if usable else [],
        "name": name,
        "place": row["p"].split(),
        "code": row["c"].split(),
    }
