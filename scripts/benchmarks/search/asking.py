"""Questions written by hand, and a check that their targets exist."""

import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
KINDS: Final = ("semantic", "architecture", "symbol")


class Target(NamedTuple):
    """A file with the answer, and a name at the answer (empty: the whole file is the answer)."""

    path: str
    name: str


class Question(NamedTuple):
    """A question about a repository, and its answers."""

    repository: str
    text: str
    kind: str
    targets: tuple[Target, ...]

    @property
    def files(self) -> frozenset[str]:
        """The files with answers."""
        return frozenset(target.path for target in self.targets)


def asked() -> dict[str, list[Question]]:
    """Return the questions of every repository."""
    return {
        path.stem: _read(path) for path in sorted((HERE / "questions").glob("*.toml"))
    }


def _read(path: Path) -> list[Question]:
    rows = tomllib.loads(path.read_text())["question"]
    return [
        Question(
            path.stem, row["text"], row["kind"], tuple(map(_target, row["targets"]))
        )
        for row in rows
    ]


def read_set(file: Path) -> dict[str, list[Question]]:
    """Return the questions of a table, by repository.

    A row has the repository, the kind, the question, and its targets: ``path`` or ``path#name``, separated by
    semicolons. The first line is a heading.
    """
    questions = dict[str, list[Question]]()
    for line in file.read_text().splitlines()[1:]:
        repository, kind, text, targets = line.split("\t")[:4]
        question = Question(
            repository, text, kind, tuple(map(_target, targets.split(";")))
        )
        questions.setdefault(repository, []).append(question)
    return questions


def _target(text: str) -> Target:
    path, _, name = text.partition("#")
    return Target(path, name)


def faults(question: Question, root: Path) -> list[str]:
    """Return the faults of a question: an unknown kind, a missing file, or a missing name."""
    found = (
        [] if question.kind in KINDS else [f"{question.text}: no kind {question.kind}"]
    )
    if not 1 <= len(question.targets) <= 4:  # noqa: PLR2004 - more than four answers are no question
        found.append(f"{question.text}: {len(question.targets)} targets")
    for target in question.targets:
        path = root / target.path
        if not path.is_file():
            found.append(f"{target.path}: no such file")
        elif not re.search(
            rf"(?<!\w){re.escape(target.name)}(?!\w)",
            path.read_text("utf-8", "replace"),
        ):
            found.append(f"{target.path}: {target.name} does not occur")
    return found
