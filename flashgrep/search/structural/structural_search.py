"""Search by syntax: the files that may match by the index, each read as it is now and matched by ast-grep.

The named leaves of a pattern are in every file that matches, so their grams narrow the files, and their texts are
looked for before a file is parsed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from flashgrep.checkpoint import Expired, checkpoint, expiring
from flashgrep.errors import BadPattern
from flashgrep.ingest.columns import SHOWN
from flashgrep.ingest.globs import TypeFilter
from flashgrep.languages import LANGUAGES, SYNTAX, classes_of, language_of, name_class
from flashgrep.model import Document, Skipped
from flashgrep.pattern import Pattern
from flashgrep.pattern.gram_plan import all_of
from flashgrep.search.snapshot import TEXT_ID, Places, SearchStats, Snapshot, merge_series
from flashgrep.search.structural.structural_matcher import StructuralMatcher, Text, Understood

MAX_BYTES: Final = 4_000_000
"""Larger files are data or bundles; a tree takes 15 times its text."""
BATCH_BYTES: Final = 500_000
"""A batch is matched in about 0.1 s."""
FIRST_BATCH, LARGEST_BATCH = 8, 128
"""Texts of a batch, twice as many each time: the first matches may fill the page."""
_MANY_PATHS: Final = 4_096
CODE: Final = frozenset(name for name in SYNTAX if LANGUAGES[name].nature == "code")

Found = tuple[bytes, Document, str]
"""A file, its text, and the language that is in."""


class Position(NamedTuple):
    """Where to continue: after this many matches of the file."""

    path: bytes
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralQuestion:
    """What is asked of one project."""

    pattern: str
    rewrite: str | None = None
    languages: frozenset[str] = CODE
    """Those that the pattern may be written in."""
    is_chosen: bool = False
    """Whether the caller has named the languages."""
    keep: Callable[[bytes], bool] | None = None
    limit: int = 50
    position: Position | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class FileMatches:
    """Matches of a file, in the order of their starts, and its text as it was searched."""

    path: bytes
    document: Document
    language: str
    matches: list[dict[str, Any]]
    """As ``structural_worker.Matcher.describe`` has them."""
    before: int
    """Matches of the file that were shown before."""


@dataclass(slots=True)
class StructuralAnswer(SearchStats):
    """Matches by path, and what was looked at for them."""

    files: list[FileMatches] = field(default_factory=list)
    total: int | None = None
    """None: not all files have been searched."""
    next: Position | None = None


def choose_languages(names: Sequence[str]) -> frozenset[str]:
    """Return the languages that can be searched whose files a filter on languages lets through.

    Raises:
        InvalidParams: a language nobody knows.

    """
    is_wanted = TypeFilter(names).matches
    return frozenset(
        name for name in SYNTAX if any(is_wanted(b"x." + one.encode()) for one in LANGUAGES[name].files.split())
    )


def search_structural(snapshot: Snapshot, question: StructuralQuestion) -> StructuralAnswer:
    """Answer a question; a deadline leaves what was found so far, with ``complete`` False.

    Raises:
        BadPattern: the pattern is not code of any of the languages, or lacks a metavariable of the rewrite.
        Unavailable: ast-grep is not installed.

    """
    answer = StructuralAnswer()
    with expiring(question.deadline):
        try:
            # A grammar takes up to 20 ms to load.
            names = question.languages if question.is_chosen else question.languages & find_languages(snapshot)
            grammars = {SYNTAX[name] for name in names}
            with StructuralMatcher[Found](question.pattern, question.rewrite, sorted(grammars)) as matcher:
                literals = _choose({name: matcher.understood[SYNTAX[name]] for name in names}, question, answer)
                _collect(snapshot, question, answer, matcher, literals)
        except Expired:
            answer.complete = False
    return answer


def _choose(
    understood: dict[str, Understood], question: StructuralQuestion, answer: StructuralAnswer
) -> dict[str, list[bytes]]:
    """Return the languages that are searched, each with what its files must have."""
    good = {name: found for name, found in understood.items() if not found.problem}
    whole = {name: found for name, found in good.items() if not found.is_broken}
    # As by ast-grep, what the caller has named is searched however the pattern reads; others if none is better.
    if len(whole) < len(good) and (question.is_chosen or not whole):
        broken = ", ".join(sorted(good.keys() - whole.keys()))
        answer.detail = f"the pattern is no whole code of {broken}: give an expression, a statement or a definition"
        whole = good
    if understood and not whole:
        raise BadPattern(f"pattern: {min(found.problem for found in understood.values())}", at=0, construct="")
    return {name: [literal.encode() for literal in found.literals] for name, found in whole.items()}


def _collect(
    snapshot: Snapshot,
    question: StructuralQuestion,
    answer: StructuralAnswer,
    matcher: StructuralMatcher[Found],
    literals: dict[str, list[bytes]],
) -> None:
    """Match files until the page is full."""
    position = question.position
    # Counted on every page, so that each says for itself what it did not see.
    for path, why in snapshot.table.skipped.items():
        if path not in snapshot.pending and _may_be(path, literals) and (question.keep is None or question.keep(path)):
            answer.count_skips(why)
    room, total, reached = question.limit, 0, position
    try:
        for text, found in matcher.match(_batches(snapshot, question, answer, literals)):
            path, document, language = text.key
            if isinstance(found, Skipped):
                answer.count_skips(found.reason)
                continue
            total += found["count"] - text.after
            matches = found["matches"][:room]
            if matches:
                answer.files.append(FileMatches(path, document, language, matches, text.after))
                room -= len(matches)
            # How far a caller may continue: after the last match shown, or after a file without any.
            if room or total == question.limit:
                reached = Position(path, text.after + len(matches))
            if total > question.limit:
                answer.next = Position(path, text.after + len(matches)) if matches else reached
                return
    except Expired:
        answer.next = reached
        raise
    if position is None:
        answer.total = total


def _batches(
    snapshot: Snapshot, question: StructuralQuestion, answer: StructuralAnswer, literals: dict[str, list[bytes]]
) -> Iterator[list[Text[Found]]]:
    """Yield texts that have all that a match needs, in batches."""
    position = question.position
    batch: list[Text[Found]] = []
    size, most = 0, FIRST_BATCH
    for path in find_files(snapshot, question, literals):
        document = snapshot.read(path)
        if document is None:
            continue
        answer.files_read += 1
        if isinstance(document, Skipped):
            answer.count_skips(document.reason)
            continue
        language = language_of(path, document.data).name
        # Grams propose for any language; parsing is by far the dearest step, so the text is asked first.
        if language not in literals or not all(literal in document.data for literal in literals[language]):
            continue
        if len(document.data) > MAX_BYTES:
            answer.count_skips("too_large")
            continue
        after = position.taken if position and position.path == path else 0
        data = decode(document).encode()
        batch.append(Text((path, document, language), SYNTAX[language], data, after, question.limit))
        size += len(data)
        if size > BATCH_BYTES or len(batch) == most:
            yield batch
            batch, size, most = [], 0, min(2 * most, LARGEST_BATCH)
    if batch:
        yield batch


def find_languages(snapshot: Snapshot) -> frozenset[str]:
    """Return the languages that the project's files are in, as far as their names tell; 20 ms for 80,000 files."""
    classes: set[str] = set()
    paths = [*snapshot.table.paths, *snapshot.changed_paths()]
    for at in range(0, len(paths), _MANY_PATHS):
        checkpoint()
        # Distinct endings first: a tree has 80,000 names and a few dozen endings.
        names = {path[path.rfind(b"/") + 1 :] for path in paths[at : at + _MANY_PATHS]}
        kinds = {name[name.rfind(b".") :] if name.count(b".") == 1 else name for name in names}
        classes.update(name_class(b"x" + kind if kind.startswith(b".") else kind) for kind in kinds)
    return frozenset().union(*map(classes_of, classes))


def find_files(snapshot: Snapshot, question: StructuralQuestion, literals: dict[str, list[bytes]]) -> Iterator[bytes]:
    """Yield the files that may match, by path, from the question's position on: a superset of those that do."""
    start = question.position.path if question.position else b""
    changed = sorted(snapshot.changed_paths())
    for path in merge_series(snapshot.unchanged_paths(_propose(snapshot, literals)), changed):
        checkpoint()
        if path >= start and _may_be(path, literals) and (question.keep is None or question.keep(path)):
            yield path


def _propose(snapshot: Snapshot, literals: dict[str, list[bytes]]) -> Places:
    """Return the places in the table of the files that have what a match needs in one of the languages."""
    everything = np.flatnonzero(snapshot.table.columns[:, TEXT_ID])
    if snapshot.reader is None:
        return everything
    proposed = []
    for needed in {tuple(needed) for needed in literals.values()}:
        patterns = [Pattern(texts=(one.decode(),), mode="literal", case="sensitive") for one in needed]
        text_ids = snapshot.reader.candidates(all_of(pattern.grams() for pattern in patterns))
        if text_ids is None:
            return everything
        proposed.append(snapshot.table.places(text_ids))
    return np.unique(np.concatenate(proposed))


def _may_be(path: bytes, literals: dict[str, list[bytes]]) -> bool:
    """Return whether a file's name lets it be in one of the languages."""
    return not classes_of(name_class(path)).isdisjoint(literals)


def decode(document: Document) -> str:
    """Return a document's text, each byte that is not text as one character."""
    return document.data.decode("latin-1") if document.encoding == "latin-1" else document.data.decode("utf-8", SHOWN)
