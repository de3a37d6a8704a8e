"""The questions asked by hand, and whether what they aim at is there."""

import re
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
KINDS: Final = ("semantic", "architecture", "symbol")


class Target(NamedTuple):
    """A file that answers, and a name that stands at the answer (empty: the whole file answers)."""

    path: str
    name: str


class Question(NamedTuple):
    """What is asked of a repository, and what answers it."""

    repository: str
    text: str
    kind: str
    targets: tuple[Target, ...]

    @property
    def files(self) -> frozenset[str]:
        """The files that answer."""
        return frozenset(target.path for target in self.targets)


def asked() -> dict[str, list[Question]]:
    """Return the questions of every repository."""
    return {path.stem: _read(path) for path in sorted((HERE / "questions").glob("*.toml"))}


def _read(path: Path) -> list[Question]:
    rows = tomllib.loads(path.read_text())["question"]
    return [Question(path.stem, row["text"], row["kind"], tuple(map(_target, row["targets"]))) for row in rows]


def _target(text: str) -> Target:
    path, _, name = text.partition("#")
    return Target(path, name)


def faults(question: Question, root: Path) -> list[str]:
    """Say what is wrong with a question: no such kind, file, or name in the file."""
    found = [] if question.kind in KINDS else [f"{question.text}: no kind {question.kind}"]
    if not 1 <= len(question.targets) <= 4:  # noqa: PLR2004 - more than four answers are no question
        found.append(f"{question.text}: {len(question.targets)} targets")
    for target in question.targets:
        path = root / target.path
        if not path.is_file():
            found.append(f"{target.path}: no such file")
        elif not re.search(rf"(?<!\w){re.escape(target.name)}(?!\w)", path.read_text("utf-8", "replace")):
            found.append(f"{target.path}: {target.name} does not stand there")
    return found
