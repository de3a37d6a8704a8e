"""Questions that a walk by ripgrep answers: a project's first question, and counts over most of a tree."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.index.table import FileTable, Mark
from flashgrep.search.exact import (
    MANY_FILES,
    SHOWING_SECONDS,
    UNCOUNTED,
    Answer,
    Question,
    find_candidates,
    search,
)
from flashgrep.search.ripgrep import (
    UNKNOWN,
    Counts,
    Output,
    counts_in,
    names_in,
    pattern_flags,
    walk,
)
from flashgrep.search.snapshot import Snapshot

if TYPE_CHECKING:
    from flashgrep.files.walk import Walker

MOST_FOUND = 2_000
"""Most matching files that are read and counted before there is a listing (0.1 s); with more, listing comes first."""
WALK_SHARE = 5
"""A walk pays if at least one in this many files may match: it reads all, but the counted ones are not read again."""
SAMPLE = 256
"""Candidates on which a filter is tried, to estimate how many it accepts."""


def search_before_listing(
    snapshot: Snapshot, question: Question, max_size: int | None, walker: "Walker"
) -> Answer | None:
    """Answer a question about files that have not been listed; None if they must be listed first.

    As always, every file with a match is read: the hits do not depend on ripgrep. ``max_size``: a limit on files other
    than the snapshot's. ``walker`` decides which files belong to the project; it has read no rules yet.
    """
    if max_size is not None:
        snapshot = replace(snapshot, max_size=max_size)
    output = _walk(snapshot, question, [b"--files-with-matches", b"--debug"])
    if (
        output is None
        or not (output.is_whole or output.status is None)
        or walker.takes_out_less(output.rules_files)
    ):
        return None
    names = names_in(output.printed)
    if len(names) > MOST_FOUND and question.output != "lines":
        return None
    # The walk follows ripgrep's rules; ours (and the caller's filter) decide which of
    # the named files count.
    keep = question.keep
    question = replace(
        question,
        keep=lambda path: (keep is None or keep(path)) and walker.accepts(path),
    )
    if not output.is_whole:
        question = replace(question, deadline=time.monotonic() + SHOWING_SECONDS)
    pending = dict.fromkeys(names, Mark(ours=True, sequence=0, size=0))
    answer = search(
        replace(
            snapshot,
            table=FileTable(),
            reader=None,
            pending=pending,
            ripgrep=None,
        ),
        question,
    )
    answer.complete &= output.is_whole
    answer.scanned = True
    answer.detail = UNCOUNTED
    return answer


def search_or_count(
    snapshot: Snapshot,
    question: Question,
    max_size: int | None,
    *,
    walks: bool,
    meets_all: bool,
) -> Answer | Counts:
    """Answer a question about listed files; if ``walks``, possibly with what ``count_on_walk`` counted.

    ``meets_all``: whether ripgrep's walk finds all our files.
    ``max_size``: larger files than the snapshot's limit are searched too, or smaller ones declined.
    """
    if max_size is not None:
        snapshot = snapshot.with_max_size(max_size)
    if walks:
        counts = count_on_walk(snapshot, question, meets_all=meets_all)
    else:
        counts = None
    if counts is None:
        return search(snapshot, question)
    return counts


def count_on_walk(
    snapshot: Snapshot, question: Question, *, meets_all: bool
) -> Counts | None:
    """Return the number of matching lines by file, as counted by ripgrep; None: a walk would not pay.

    With output `files`, a matching file counts 1.

    ripgrep opens files by path, so the caller must ensure that no folder was replaced meanwhile.
    """
    if question.output == "lines" or question.engine != "linear":
        return None
    counting = question.output == "count"
    # A page is full before a walk would end.
    if not counting and question.limit <= MOST_FOUND:
        return None
    if not _is_worth_walk(snapshot, question):
        return None
    reader = snapshot.reader
    # A file that ripgrep does not print has no matching line, unless it was not found
    # or its count ended at a NUL byte. The index knows the latter. Otherwise all names
    # are printed with their counts, at a tenth of the processor time.
    names_all = counting and (
        reader is None or not meets_all or len(snapshot.pending) > MANY_FILES
    )
    if not counting and not meets_all:
        return None
    if counting:
        printing = [b"--count", *[b"--include-zero"] * names_all]
    else:
        printing = [b"--files-with-matches"]
    output = _walk(snapshot, question, printing)
    if output is None or not output.is_whole:
        return None
    if not counting:
        return Counts(dict.fromkeys(names_in(output.printed), 1), 0)
    counted = counts_in(output.printed)
    if names_all:
        return Counts(counted, UNKNOWN)
    counts = Counts({}, 0)
    counts.forget(snapshot.pending)
    if reader is not None:
        counts.forget(reader.find_cut())
    counts.of_file.update(counted)
    return counts


def _walk(
    snapshot: Snapshot, question: Question, printing: list[bytes]
) -> Output | None:
    if (
        snapshot.ripgrep is None
        or not snapshot.ripgrep.bundled
        or question.engine != "linear"
    ):
        return None
    flags = pattern_flags(snapshot.ripgrep, question.pattern)
    if flags is None:
        return None
    with suppress(Expired), expiring(question.deadline):
        return walk(
            snapshot.ripgrep, snapshot.root, [*flags, *printing], snapshot.max_size
        )
    return None


def _is_worth_walk(snapshot: Snapshot, question: Question) -> bool:
    """Return whether enough files may match for a walk over all of them to pay."""
    table = snapshot.table
    keep = question.keep
    _, places = find_candidates(snapshot, question)
    candidates = len(places) + len(snapshot.pending)
    if keep is not None and len(places):
        sample = [table.paths[at] for at in places[:: max(1, len(places) // SAMPLE)]]
        candidates = candidates * sum(map(keep, sample)) // len(sample)
    return candidates >= max(
        MANY_FILES, (len(table) + len(snapshot.pending)) // WALK_SHARE
    )
