"""Converts histories to training rows: a commit's message with the code after the commit.

The rows are like those of ``pairs``: ``q`` is the cleaned subject, ``d`` the subject and the body's first sentence,
``c`` the changed lines after the commit with 14 around them. Commits that do not describe code (releases, formatting,
tests, documentation) or that touch more than six sources are left out.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from flashgrep.parts.models.history import clean_sentence, first_sentence
from scripts.train_embedder.languages import written_in
from scripts.train_embedder.packages import HERE, Package
from scripts.train_embedder.pairs import (
    CODE_WORDS,
    DOC_WORDS,
    FEWEST_CODE_WORDS,
    NOT_SOURCE,
    Row,
)
from scripts.train_embedder.words import words

REPOSITORIES: Final = HERE / "repositories.tsv"
COMMITS: Final = 2_000
"""Most commits per repository, those with the most informative messages."""
BATCH: Final = 200
"""Commits whose patches one process prints."""
AROUND: Final = 14
LARGEST: Final = 400_000
"""Characters of the largest patches used; larger ones move code."""
PATCH: Final = (
    "-r",
    "-p",
    f"-U{AROUND}",
    "--root",
    "--no-renames",
    "--no-ext-diff",
    "--diff-filter=AM",
)
LINES: Final = 48
"""Lines of a chunk of the index."""
MOST_SOURCES, MOST_HUNKS = 6, 3
FEWEST_ASKED: Final = 3

_NAME: Final = re.compile(
    r"`[^`]+`|\b\w*[a-z][A-Z]\w*(?:\(\))?|\b\w+(?:_|::|->|\.)\w[\w.:]*(?:\(\))?|\b\w+\(\)"
)


class Commit(NamedTuple):
    """A commit to learn from."""

    number: str
    subject: str
    sentence: str
    """First sentence of the body; often empty."""


def commits_of(
    repository: Path, last: str = "HEAD", most: int = COMMITS
) -> list[Commit]:
    """Return the commits up to ``last`` with the most informative messages, without repeated subjects, in log order."""
    log = _git(repository, "log", "-z", "--no-merges", "--format=%H%n%s%n%b", last)
    log.check_returncode()
    found: dict[str, Commit] = {}
    for entry in log.stdout.decode("utf-8", "replace").split("\0"):
        number, subject, body = (*entry.split("\n", 2), "", "")[:3]
        asked = clean_sentence(subject)
        if asked:
            commit = Commit(number, asked, first_sentence(body))
            found.setdefault(asked.lower(), commit)
    telling = sorted(
        found.values(),
        key=lambda each: -len(each.subject.split()) - 4 * bool(each.sentence),
    )
    kept = {each.number for each in telling[:most]}
    return [each for each in found.values() if each.number in kept]


def rows_of(repository: Path, last: str = "HEAD") -> Iterator[Row]:
    """Yield a row for each of the largest changes of each commit."""
    commits = {each.number: each for each in commits_of(repository, last)}
    for number, patch in _patches(repository, list(commits)):
        changes = [*_changes(patch)] if len(patch) <= LARGEST else []
        if len({path for path, _, _ in changes}) <= MOST_SOURCES:
            changes.sort(key=lambda change: -change[1])
            for path, _, lines in changes[:MOST_HUNKS]:
                yield from _row(commits[number], path, lines)


def write_rows(work: Path, repository: Package) -> Path:
    """Write a repository's rows, cloning it first if needed; existing rows are kept."""
    folder, path = (
        work / kind / repository.name.replace("/", "+")
        for kind in ("repositories", "commits")
    )
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not folder.exists():
            address = f"https://github.com/{repository.name}"
            subprocess.run(
                ["git", "clone", "--quiet", "--bare", address, folder], check=True
            )
        part = path.with_suffix(".part")
        with part.open("w") as out:
            out.writelines(
                json.dumps(row) + "\n" for row in rows_of(folder, repository.version)
            )
        part.rename(path)
    return path


def _row(commit: Commit, path: str, lines: list[str]) -> Iterator[Row]:
    text = "\n".join(lines[:LINES])
    code = words(text)
    said = commit.subject
    if int(commit.number[:8], 16) % 2:
        # Questions seldom contain names: every other subject is used without the names
        # in its code.
        said = _NAME.sub(
            lambda name: " " if name[0].strip("`()") in text else name[0], said
        )
    asked = words(said)
    if len(code) >= FEWEST_CODE_WORDS and len(asked) >= FEWEST_ASKED:
        yield Row(
            q=" ".join(asked),
            d=" ".join([*asked, *words(commit.sentence)][:DOC_WORDS]),
            n="",
            p=" ".join(words(" ".join(PurePosixPath(path).with_suffix("").parts[-3:]))),
            c=" ".join(code[:CODE_WORDS]),
            language=written_in(path) or "",
            sort="commit",
        )


def _changes(patch: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the path, the number of added lines, and the new lines of each hunk of a source file."""
    for part in re.split(r"(?m)^diff --git ", patch)[1:]:
        path = part.split("\n", 1)[0].rpartition(" b/")[2]
        if written_in(path) and not NOT_SOURCE.search(f"/{path}"):
            for hunk in re.split(r"(?m)^@@ .*\n", part)[1:]:
                after = [line for line in hunk.split("\n") if line[:1] in {" ", "+"}]
                added = sum(line[0] == "+" for line in after)
                if added:
                    yield path, added, [line[1:] for line in after]


def _patches(repository: Path, waiting: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the id and the patch of each commit, except for those with files missing in a partial clone."""
    while waiting:
        asked = waiting[:BATCH]
        done = _git(
            repository, "diff-tree", "--stdin", *PATCH, given="\n".join([*asked, ""])
        )
        parts = re.split(
            r"(?m)^([0-9a-f]{40})\n", done.stdout.decode("utf-8", "replace")
        )
        told = [*zip(parts[1::2], parts[2::2], strict=True)]
        left = len(asked)
        if done.returncode:  # Git stops at such a commit, the last one printed.
            left = asked.index(told.pop()[0]) + 1 if told else 1
        yield from told
        waiting = waiting[left:]


def _git(
    repository: Path, *arguments: str, given: str = ""
) -> subprocess.CompletedProcess[bytes]:
    command = ["git", f"--git-dir={repository}", *arguments]
    return subprocess.run(
        command, input=given.encode(), capture_output=True, check=False
    )
