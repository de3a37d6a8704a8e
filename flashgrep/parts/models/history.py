"""Questions that nobody writes: what a commit says it changes, asked of the code before that commit.

The question is the commit's subject and the first sentence of its body, without names that occur in the change. Wanted
are the functions and the files that it changed, as they were at its parent. It is the closest to what agents ask: where
to make a change. Only objects of the repository are read.
"""

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from flashgrep.base.errors import NotFound
from flashgrep.base.identifiers import find_identifiers
from flashgrep.base.languages import language_of
from flashgrep.index.table import (
    SOURCE,
    tier_of,
)
from flashgrep.parts.git.changes import find_hunks
from flashgrep.parts.git.repository import (
    MOST_COMMIT,
    Commit,
    Files,
    Repository,
    list_commits,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    START,
)
from flashgrep.parts.symbols.symbol_source import parse_file

MOST_LISTED: Final = 20_000
"""Commits of which questions are drawn, the newest."""
MOST_SOURCES: Final = 6
"""Sources that a commit changes at most: a larger one is no answer to a question."""
MOST_FUNCTIONS: Final = 8
FEWEST_WORDS: Final = 4
"""Words that a question must keep without the names of the change."""
MOST_WORDS: Final = 40
LARGEST: Final = 1 << 20
"""Bytes of a file that is compared."""
_LABEL: Final = re.compile(
    r"^(?:\[[^\]]{1,40}\]\s*:?\s*)+|^[\w./*,{}+-]+(?:\([^)]*\))?!?:\s+"
)
_NUMBER: Final = re.compile(
    r"\(?(?:closes|fix(?:es)?|refs|resolves|see|issue|bug|gh|pr)?[ :]*(?:#|gh-)\d+\)?|\b[A-Z]{2,10}-\d+\b:?"
    r"|\(?https?:\S+",
    re.IGNORECASE,
)
_NO_QUESTION: Final = re.compile(
    r"\b(?:merged?|bump\w*|revert\w*|reland|releas\w+|change ?log|typos?|spelling|\w*fmt|lint\w*|whitespace|travis|wip"
    r"|dependabot|upgraded?|dependenc\w+|deps|copyright|licen[sc]es?|readme|docs?|documentation|comments?|fixup|chore"
    r"|clean\w*|cosmetic|nits?|polish|\w*format\w*|styl\w+|review|feedback|tests?|testing|version|vendor\w*|ci|tidy)\b",
    re.IGNORECASE,
)
_TRAILER: Final = re.compile(
    r"[A-Z][\w-]+: |[^A-Za-z]|(?:closes|fixes|see|part of|depends) ",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+(?=[A-Z(`'\"])")
_WORD: Final = re.compile(r"`[^`]*`|[A-Za-z_][\w.:]*(?:\(\))?")
_IS_NAME: Final = re.compile(r"[a-z][A-Z]|_|::|\w\.\w|\(\)|`")
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")


class Target(NamedTuple):
    """A file that a commit changed, and a function of it; empty: the change is outside of functions."""

    path: str
    name: str


class HistoryQuestion(NamedTuple):
    """A question of a commit, to be asked of its parent."""

    commit: str
    parent: str
    text: str
    targets: tuple[Target, ...]

    @property
    def files(self) -> frozenset[str]:
        """The files that were changed."""
        return frozenset(target.path for target in self.targets)


def draw_questions(
    repository: Repository,
    most: int,
    window: int = MOST_LISTED,
    ends: float = math.inf,
) -> list[HistoryQuestion]:
    """Return up to ``most`` questions from a repository's history, newest commit first.

    Commits are drawn by their number, which says nothing about them: at random, but the same each time. ``window``: of
    the newest so many commits; of twice as many, and so on, if these do not give enough. ``ends``: when, on the clock
    of time.monotonic(), those that were drawn have to do: the files of two revisions are compared for each commit.

    Raises:
        NotFound: there is no commit yet.
        Unavailable: git cannot read the repository.

    """
    skip = 0
    subjects = set[str]()
    questions = list[HistoryQuestion]()
    while len(questions) < most and skip < MOST_LISTED and time.monotonic() < ends:
        count = min(max(window, skip), MOST_LISTED - skip)
        commits = list_commits(
            repository,
            "HEAD",
            b"",
            skip,
            count,
        )
        places = {commit.name: at for at, commit in enumerate(commits)}
        drawn = list[HistoryQuestion]()
        for commit in sorted(commits):
            if len(questions) + len(drawn) == most or time.monotonic() >= ends:
                break
            subject = clean_sentence(commit.subject).lower()
            if not subject or subject in subjects:
                continue
            question = ask_commit(repository, commit)
            if question is not None:
                subjects.add(subject)
                drawn.append(question)
        questions += sorted(drawn, key=lambda question: places[question.commit])
        if len(commits) < count:
            break
        skip += count
    return questions


def ask_commit(repository: Repository, commit: Commit) -> HistoryQuestion | None:
    """Return the question of one commit; None: it is not usable as one."""
    subject = clean_sentence(commit.subject)
    # A merge changes what its commits changed; the first commit has no code before it.
    if not subject or len(commit.parents) != 1:
        return None
    old = repository.resolve(commit.parents[0])
    new = repository.resolve(commit.name)
    before = repository.list_files(old)
    after = repository.list_files(new)
    paths = list_changes(before, after)
    if not 1 <= len(paths) <= MOST_SOURCES:
        return None
    targets = list[Target]()
    names = set[str]()
    for path in paths:
        sides = [read(repository, path, files) for files in (before, after)]
        lines, changed = compare(*sides)
        text_path = os.fsdecode(path)
        functions = find_functions(path, sides[0], lines)
        targets += [Target(text_path, name) for name in functions or ("",)]
        names.update(functions)
        names.add(PurePosixPath(text_path).stem)
        # Comments and strings of the change count as well: they are new, too.
        for identifier in find_identifiers(changed):
            names.add(identifier.decode("ascii", "replace"))
    # More are a refactoring: any function would be an answer.
    if len(targets) > MOST_FUNCTIONS:
        return None
    sentence = read_sentence(repository, commit.name)
    text = remove_names(f"{subject}. {sentence}".strip(". "), names)
    if len(text.split()) < FEWEST_WORDS:
        return None
    return HistoryQuestion(
        commit.name,
        commit.parents[0],
        text,
        tuple(targets),
    )


def clean_sentence(text: str) -> str:
    """Return a subject or sentence without labels and issue numbers; empty if it is not usable as a question."""
    without = _NUMBER.sub("", _LABEL.sub("", text.strip()))
    # Messages are wrapped, and what was taken out leaves blanks.
    clean = re.sub(r"\s+", " ", without).strip(" .:;,-")
    is_usable = clean.isascii() and FEWEST_WORDS <= len(clean.split()) <= MOST_WORDS
    if is_usable and not _NO_QUESTION.search(clean):
        return clean
    return ""


def read_sentence(repository: Repository, commit: str) -> str:
    """Return the usable first sentence of a commit's body; empty if there is none."""
    record = repository.objects.find(commit.encode(), MOST_COMMIT)
    if record is None or record.data is None:
        raise NotFound(f"no such commit: {commit}", reason="revision_not_found")
    message = record.data.partition(b"\n\n")[2].decode("utf-8", "replace")
    return first_sentence(message.strip().partition("\n")[2])


def first_sentence(body: str) -> str:
    """Return the usable first sentence of the text below a subject; empty if there is none."""
    paragraph = body.strip().split("\n\n")[0]
    # A body of trailers alone says who agreed, not what changed.
    if _TRAILER.match(paragraph):
        return ""
    return clean_sentence(_SENTENCE.split(paragraph)[0])


def list_changes(before: Files, after: Files) -> list[bytes]:
    """Return the sources that differ between two revisions and are in both."""
    paths = []
    # New files cannot be found before the change, and removed ones are not where it is made.
    for path, file in before.items():
        other = after.get(path)
        if other is None or other.blob == file.blob:
            continue
        if is_source(path):
            paths.append(path)
    return paths


def is_source(path: bytes) -> bool:
    """Return whether a file is code of the project itself: no test, no generated or foreign code."""
    language = language_of(path)
    is_code = language.nature == "code" and language.symbols
    return bool(is_code and tier_of(path) == SOURCE)


def read(repository: Repository, path: bytes, files: Files) -> bytes:
    """Return a file's content in a revision; empty if it is too large."""
    return repository.read(path, files[path].blob, LARGEST).data or b""


def compare(before: bytes, after: bytes) -> tuple[list[int], bytes]:
    """Return the lines that a change touches before it, from 1, and the text of the change."""
    old = _LINE.findall(before)
    new = _LINE.findall(after)
    lines = list[int]()
    texts = list[bytes]()
    for hunk in find_hunks(old, new):
        # Where only lines are added, the line before them is the place.
        lines += range(hunk.old_start, hunk.old_start + max(1, hunk.old_lines))
        for side, start, count in (
            (old, hunk.old_start, hunk.old_lines),
            (new, hunk.start, hunk.lines),
        ):
            # On an empty side ``start`` is the line before.
            if count:
                first = start - 1
                texts += side[first : first + count]
    return lines, b"".join(texts)


def find_functions(path: bytes, data: bytes, lines: Sequence[int]) -> list[str]:
    """Return the names of the innermost functions around lines, in order of first occurrence."""
    # Names of the text before the change: those that it adds cannot be found there.
    symbols = parse_file(path, data, {})
    if not isinstance(symbols, FileSymbols):
        return []
    # The shortest first, so that the first one around a line is the innermost.
    spans = sorted(_list_functions(symbols))
    names = dict[str, None]()
    for line in lines:
        for _, first, last, name in spans:
            if first <= line <= last:
                names[name] = None
                break
    return [*names]


def _list_functions(
    symbols: FileSymbols,
) -> Iterator[tuple[int, int, int, str]]:
    """Yield each function's length, first and last line, and name."""
    for index, row in enumerate(symbols.rows):
        if symbols.kind(index) in CALLABLE_KINDS:
            first = symbols.lines.line(row[START])
            last_byte = max(row[START], row[END] - 1)
            last = symbols.lines.line(last_byte)
            yield last - first, first, last, symbols.name(index)


def remove_names(text: str, names: set[str]) -> str:
    """Return a sentence without the names of a change, as far as they look like names and not like words."""

    def replace_name(match: re.Match[str]) -> str:
        word = match[0]
        bare = word.strip("`").removesuffix("()")
        last = re.split(r"\.|::", bare)[-1]
        is_name = _IS_NAME.search(word) is not None
        if is_name and not names.isdisjoint({bare, last}):
            return ""
        return word

    return re.sub(r"\s+", " ", _WORD.sub(replace_name, text)).strip()
