"""Search by syntax: the index proposes files, and ast-grep matches the current text of each.

Every matching file contains the named leaves of the pattern, so their grams narrow the files, and a file's text is
checked for them before it is parsed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from flashgrep.base.checkpoint import Expired, checkpoint, expiring
from flashgrep.base.errors import BadPattern
from flashgrep.base.languages import (
    LANGUAGES,
    SYNTAX,
    classes_of,
    language_of,
    name_class,
)
from flashgrep.base.model import Document, Skipped
from flashgrep.files.columns import SHOWN
from flashgrep.files.globs import TypeFilter
from flashgrep.parts.structural.structural_matcher import (
    ParsedPattern,
    StructuralMatcher,
    Text,
)
from flashgrep.pattern import Pattern
from flashgrep.pattern.gram_plan import all_of
from flashgrep.search.snapshot import (
    TEXT_ID,
    Places,
    SearchStats,
    Snapshot,
    merge_series,
)

MAX_BYTES: Final = 4_000_000
"""Larger files are data or bundles; a tree takes 15 times the memory of its text."""
BATCH_BYTES: Final = 500_000
"""A batch of this size is matched in about 0.1 s."""
FIRST_BATCH, LARGEST_BATCH = 8, 128
"""Texts in a batch, doubled each time: the first matches may already fill the page."""
_MANY_PATHS: Final = 4_096
CODE: Final = frozenset(name for name in SYNTAX if LANGUAGES[name].nature == "code")

FoundText = tuple[bytes, Document, str]
"""A file, its text, and the text's language."""


class Position(NamedTuple):
    """Where the next page begins: after this many matches in the file."""

    path: bytes
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuralQuestion:
    """A question to one project."""

    pattern: str
    rewrite: str | None = None
    languages: frozenset[str] = CODE
    """The languages that the pattern may be written in."""
    is_chosen: bool = False
    """Whether the caller named the languages."""
    keep: Callable[[bytes], bool] | None = None
    limit: int = 50
    position: Position | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class FileMatches:
    """The matches in a file, in order of position, and the text that was searched."""

    path: bytes
    document: Document
    language: str
    matches: list[dict[str, Any]]
    """In the form of ``structural_worker.Matcher.describe``."""
    before: int
    """Matches of the file on earlier pages."""


@dataclass(slots=True)
class StructuralAnswer(SearchStats):
    """Matches by path, and the files examined for them."""

    files: list[FileMatches] = field(default_factory=list)
    total: int | None = None
    """None: not all files have been searched."""
    next: Position | None = None


def choose_languages(names: Sequence[str]) -> frozenset[str]:
    """Return the searchable languages that a filter on languages selects.

    Raises:
        InvalidParams: an unknown language.

    """
    is_wanted = TypeFilter(names).matches
    return frozenset(
        name
        for name in SYNTAX
        if any(
            is_wanted(b"x." + pattern.encode())
            for pattern in LANGUAGES[name].files.split()
        )
    )


def search_structural(
    snapshot: Snapshot, question: StructuralQuestion
) -> StructuralAnswer:
    """Answer a question; after a deadline, return what was found so far with ``complete`` False.

    Raises:
        BadPattern: the pattern is not code in any of the languages, or lacks a metavariable used in the rewrite.
        Unavailable: ast-grep is not installed.

    """
    answer = StructuralAnswer()
    with expiring(question.deadline):
        try:
            # A grammar takes up to 20 ms to load.
            if question.is_chosen:
                names = question.languages
            else:
                names = question.languages & find_languages(snapshot)
            grammars = {SYNTAX[name] for name in names}
            with StructuralMatcher[FoundText](
                question.pattern, question.rewrite, sorted(grammars)
            ) as matcher:
                literals = _choose(
                    {name: matcher.parsed[SYNTAX[name]] for name in names},
                    question,
                    answer,
                )
                _collect(snapshot, question, answer, matcher, literals)
        except Expired:
            answer.complete = False
    return answer


def _choose(
    parsed: dict[str, ParsedPattern],
    question: StructuralQuestion,
    answer: StructuralAnswer,
) -> dict[str, list[bytes]]:
    """Return the languages to search, each with the texts that its files must contain."""
    good = {
        name: parsed_pattern
        for name, parsed_pattern in parsed.items()
        if not parsed_pattern.problem
    }
    whole = {
        name: parsed_pattern
        for name, parsed_pattern in good.items()
        if not parsed_pattern.is_broken
    }
    # As in ast-grep, a language the caller named is searched even if the pattern has
    # errors in it; of the others, only if none parses better.
    if len(whole) < len(good) and (question.is_chosen or not whole):
        broken = ", ".join(sorted(good.keys() - whole.keys()))
        answer.detail = f"the pattern is not complete code in {broken}: use an expression, a statement or a definition"
        whole = good
    if parsed and not whole:
        raise BadPattern(
            f"pattern: {min(pattern_read.problem for pattern_read in parsed.values())}",
            at=0,
            construct="",
        )
    return {
        name: [literal.encode() for literal in parsed_pattern.literals]
        for name, parsed_pattern in whole.items()
    }


def _collect(
    snapshot: Snapshot,
    question: StructuralQuestion,
    answer: StructuralAnswer,
    matcher: StructuralMatcher[FoundText],
    literals: dict[str, list[bytes]],
) -> None:
    """Match files until the page is full."""
    position = question.position
    # Counted on every page, so that each page reports what it did not search.
    for path, why in snapshot.table.skipped.items():
        if (
            path not in snapshot.pending
            and _may_be(path, literals)
            and (question.keep is None or question.keep(path))
        ):
            answer.count_skips(why)
    room = question.limit
    total = 0
    reached = position
    try:
        for text, found_matches in matcher.match(
            _batches(snapshot, question, answer, literals)
        ):
            path, document, language = text.key
            if isinstance(found_matches, Skipped):
                answer.count_skips(found_matches.reason)
                continue
            total += found_matches["count"] - text.after
            matches = found_matches["matches"][:room]
            if matches:
                answer.files.append(
                    FileMatches(path, document, language, matches, text.after)
                )
                room -= len(matches)
            # The next page begins after the last match shown, or after a file without
            # matches.
            if room or total == question.limit:
                reached = Position(path, text.after + len(matches))
            if total > question.limit:
                if matches:
                    answer.next = Position(path, text.after + len(matches))
                else:
                    answer.next = reached
                return
    except Expired:
        answer.next = reached
        raise
    if position is None:
        answer.total = total


def _batches(
    snapshot: Snapshot,
    question: StructuralQuestion,
    answer: StructuralAnswer,
    literals: dict[str, list[bytes]],
) -> Iterator[list[Text[FoundText]]]:
    """Yield batches of texts that contain everything a match needs."""
    position = question.position
    batch: list[Text[FoundText]] = []
    size = 0
    most = FIRST_BATCH
    for path in find_files(snapshot, question, literals):
        document = snapshot.read(path)
        if document is None:
            continue
        answer.files_read += 1
        if isinstance(document, Skipped):
            answer.count_skips(document.reason)
            continue
        language = language_of(path, document.data).name
        # Grams cover all languages. Parsing is by far the most expensive step, so the
        # text is checked first.
        if language not in literals or not all(
            literal in document.data for literal in literals[language]
        ):
            continue
        if len(document.data) > MAX_BYTES:
            answer.count_skips("too_large")
            continue
        after = position.taken if position and position.path == path else 0
        data = decode(document).encode()
        batch.append(
            Text(
                (path, document, language),
                SYNTAX[language],
                data,
                after,
                question.limit,
            )
        )
        size += len(data)
        if size > BATCH_BYTES or len(batch) == most:
            yield batch
            batch = []
            size = 0
            most = min(2 * most, LARGEST_BATCH)
    if batch:
        yield batch


def find_languages(snapshot: Snapshot) -> frozenset[str]:
    """Return the languages of the project's files, judged by their names; 20 ms for 80,000 files."""
    classes: set[str] = set()
    paths = [*snapshot.table.paths, *snapshot.changed_paths()]
    for at in range(0, len(paths), _MANY_PATHS):
        checkpoint()
        # Reduced to distinct endings: a tree has 80,000 names but a few dozen endings.
        batch = paths[at : at + _MANY_PATHS]
        names = {path[path.rfind(b"/") + 1 :] for path in batch}
        kinds = {
            name[name.rfind(b".") :] if name.count(b".") == 1 else name
            for name in names
        }
        classes.update(
            name_class(b"x" + kind if kind.startswith(b".") else kind) for kind in kinds
        )
    return frozenset().union(*map(classes_of, classes))


def find_files(
    snapshot: Snapshot, question: StructuralQuestion, literals: dict[str, list[bytes]]
) -> Iterator[bytes]:
    """Yield the files that may match, by path, from the question's position on: a superset of the matching files."""
    if question.position:
        start = question.position.path
    else:
        start = b""
    changed = sorted(snapshot.changed_paths())
    for path in merge_series(
        snapshot.unchanged_paths(_propose(snapshot, literals)), changed
    ):
        checkpoint()
        if (
            path >= start
            and _may_be(path, literals)
            and (question.keep is None or question.keep(path))
        ):
            yield path


def _propose(snapshot: Snapshot, literals: dict[str, list[bytes]]) -> Places:
    """Return the table positions of files that contain everything a match needs in one of the languages."""
    everything = np.flatnonzero(snapshot.table.columns[:, TEXT_ID])
    if snapshot.reader is None:
        return everything
    proposed = []
    for needed in {tuple(needed) for needed in literals.values()}:
        patterns = [
            Pattern(texts=(literal.decode(),), mode="literal", case="sensitive")
            for literal in needed
        ]
        text_ids = snapshot.reader.candidates(
            all_of(pattern.grams() for pattern in patterns)
        )
        if text_ids is None:
            return everything
        proposed.append(snapshot.table.places(text_ids))
    return np.unique(np.concatenate(proposed))


def _may_be(path: bytes, literals: dict[str, list[bytes]]) -> bool:
    """Return whether a file may be in one of the languages, judged by its name."""
    return not classes_of(name_class(path)).isdisjoint(literals)


def decode(document: Document) -> str:
    """Return a document's text; each byte that is not valid text becomes one character."""
    if document.encoding == "latin-1":
        return document.data.decode("latin-1")
    return document.data.decode("utf-8", SHOWN)
