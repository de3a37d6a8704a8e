"""The differences between two states of a project: files, hunks, and the symbols that hunks touch."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Literal, NamedTuple

import numpy as np
from rapidfuzz.distance import Indel

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.model import Document, Skipped
from flashgrep.files.openat import Descriptor, RootFiles
from flashgrep.parts.git.repository import Staged
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.search.hits import LONG_LINE
from flashgrep.search.snapshot import Snapshot

MOST_CELLS: Final = 200_000_000
"""Product of both sides' numbers of lines: comparing them takes up to 25 MB and 0.1 s. Above it, all is one hunk."""
_BLOCK: Final = 1 << 20
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")
_INNER: Final = frozenset({"variable", "field", "property", "enumerator", "package"})
"""Inside a definition these count as part of it; at top level they are definitions themselves."""

Status = Literal["added", "deleted", "modified", "renamed", "untracked"]
Change = Literal["added", "deleted", "modified"]
Blobs = Mapping[bytes, bytes]
"""git's object names of file contents, by path."""


class State(NamedTuple):
    """A state of a project: its files, and where they are read."""

    blobs: Blobs
    snapshot: Snapshot
    untracked: frozenset[bytes] = frozenset()


class ChangedFile(NamedTuple):
    """A file that differs; ``old_path``: its previous path, if it was renamed unchanged."""

    path: bytes
    status: Status
    old_path: bytes


class Hunk(NamedTuple):
    """Lines that differ, from 1 on each side; on an empty side ``start`` is the line before."""

    old_start: int
    old_lines: int
    start: int
    lines: int


class ChangedSymbol(NamedTuple):
    """A definition that a hunk touches; its lines are those on the newer side, or on the older if it is gone."""

    name: str
    """Its own name."""
    qualified: str
    kind: str
    change: Change
    start_line: int
    end_line: int


@dataclass(slots=True)
class FileChange:
    """The changes in a file; ``note``: why there are no lines."""

    file: ChangedFile
    hunks: list[Hunk] = field(default_factory=list)
    symbols: list[ChangedSymbol] = field(default_factory=list)
    note: str = ""
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    """The lines of both."""


def read_work_tree(
    snapshot: Snapshot, staged: Mapping[bytes, Staged], since: int, paths: list[bytes]
) -> State:
    """Return the work tree's state: files that git tracks, and ``paths``, the project's own.

    A file whose size, time and inode match git's index has the content that git recorded; all others are hashed.
    ``since``: when the index was written, in nanoseconds. Files changed at that moment or later are also hashed.
    """
    blobs: dict[bytes, bytes] = {}
    files = RootFiles(snapshot.root)
    untracked = frozenset(path for path in paths if path not in staged)
    for path in (*staged, *untracked):
        checkpoint()
        known_staged = staged.get(path)
        with suppress(OSError):  # gone, or no file of the project's own
            if known_staged is not None:
                status = files.lstat(path)
                # git's index keeps 32 bits of the inode.
                same = (
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ino & 0xFFFFFFFF,
                ) == known_staged[1:]
                if same and status.st_mtime_ns < since:
                    blobs[path] = known_staged.blob
                    continue
            blobs[path] = hash_file(
                files, path, len(known_staged.blob) if known_staged is not None else 40
            )
    return State(blobs, snapshot, untracked)


def hash_file(files: RootFiles, path: bytes, digits: int) -> bytes:
    """Return git's name of a file's content; raises OSError where it cannot be read."""
    with Descriptor(files.open(path)) as descriptor:
        size = os.fstat(descriptor).st_size
        # With the file's size when opened: if it grows meanwhile, no content has this
        # id, and it counts as changed.
        name = hashlib.new(
            "sha1" if digits == 40 else "sha256",  # noqa: PLR2004 - hexadecimal digits of SHA-1
            b"blob %d\0" % size,
            usedforsecurity=False,
        )
        while part := os.read(descriptor, _BLOCK):
            checkpoint()
            name.update(part)
        return name.hexdigest().encode("ascii")


def compare_states(old: State, new: State) -> list[ChangedFile]:
    """Return the files that differ, by path; a file with the same content elsewhere counts as renamed."""
    gone = {path for path in old.blobs if path not in new.blobs}
    by_blob = {
        old.blobs[path]: path for path in sorted(gone, reverse=True)
    }  # of several the first, for every page
    changes = []
    for path, blob in new.blobs.items():
        checkpoint()
        before = old.blobs.get(path)
        if before == blob:
            continue
        # Popped: a removed file was moved to one place; others with its content are
        # new.
        if before is None:
            source = by_blob.pop(blob, b"")
        else:
            source = b""
        gone.discard(source)
        status: Status = "modified"
        if before is None:
            status = (
                "renamed"
                if source
                else "untracked"
                if path in new.untracked
                else "added"
            )
        changes.append(ChangedFile(path, status, source))
    changes += [ChangedFile(path, "deleted", b"") for path in gone]
    return sorted(changes)


def describe_change(old: State, new: State, file: ChangedFile) -> FileChange:
    """Return what a file's change is."""
    checkpoint()
    file_change = FileChange(file)
    if file.status == "renamed":
        return file_change
    if file.path in old.blobs:
        before = old.snapshot.read(file.path)
    else:
        before = Document(b"")
    if file.path in new.blobs:
        after = new.snapshot.read(file.path)
    else:
        after = Document(b"")
    if not (isinstance(before, Document) and isinstance(after, Document)):
        declined = [
            side.reason for side in (before, after) if isinstance(side, Skipped)
        ]
        if declined:
            file_change.note = declined[0]
        else:
            file_change.note = "removed meanwhile"
        return file_change
    file_change.sides = _LINE.findall(before.data), _LINE.findall(after.data)
    file_change.hunks = list(find_hunks(*file_change.sides))
    if not file_change.hunks and file.status == "modified":
        file_change.note = "the text is the same, its encoding is not"
    file_change.symbols = _find_symbols(old, new, file_change)
    return file_change


def find_hunks(old: list[bytes], new: list[bytes]) -> Iterator[Hunk]:
    """Yield a minimal set of differing lines (Indel distance, hence a longest common subsequence)."""
    # Strip equal lines at both ends first: the cost of comparing is the product of both
    # sides.
    head = 0
    for line, other in zip(old, new, strict=False):
        if line != other:
            break
        head += 1
    most = min(len(old), len(new)) - head
    # No line counts for both ends.
    tail = 0
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before = old[head : len(old) - tail]
    after = new[head : len(new) - tail]
    if not before and not after:
        return
    if len(before) * len(after) > MOST_CELLS:
        spans = [(0, len(before), 0, len(after))]
    else:
        numbers: dict[bytes, int] = {}
        # Numbers instead of lines, so that each is compared in one step.
        lines = [
            [numbers.setdefault(line, len(numbers)) for line in side]
            for side in (before, after)
        ]
        spans = []
        for same, run in groupby(Indel.opcodes(*lines), lambda one: one.tag == "equal"):
            if not same:
                if len(parts := list(run)) > 1:
                    first, *_, last = parts
                else:
                    first, *_, last = parts * 2
                spans.append(
                    (first.src_start, last.src_end, first.dest_start, last.dest_end)
                )
    for low, high, start, end in spans:
        removed = high - low
        added = end - start
        yield Hunk(
            head + low + (removed > 0), removed, head + start + (added > 0), added
        )


def _find_symbols(old: State, new: State, made: FileChange) -> list[ChangedSymbol]:
    """Return the innermost definitions that hunks touch, by line, followed by removed ones."""
    path = made.file.path
    hunks = made.hunks
    sides = []
    for state, spans in (
        (old, [(hunk.old_start, hunk.old_lines) for hunk in hunks]),
        (new, [(hunk.start, hunk.lines) for hunk in hunks]),
    ):
        if path in state.blobs:
            opened = SnapshotSource(state.snapshot).open(path)
        else:
            opened = None
        sides.append(
            _Definitions(opened, spans) if isinstance(opened, FileSymbols) else None
        )
    before, after = sides
    symbols_changed: dict[str, ChangedSymbol] = {}
    pairs: list[tuple[_Definitions | None, _Definitions | None, Change]] = [
        (after, before, "added"),
        (before, after, "deleted"),
    ]
    for definitions, others, alone in pairs:
        for symbol in definitions.touched if definitions else ():
            there = others is not None and symbol.qualified in others.names
            change: Change = "modified" if there else alone
            # What is on both sides is shown as it is now.
            if there and others and definitions is before:
                name = others.names[symbol.qualified]
            else:
                name = symbol
            symbols_changed.setdefault(symbol.qualified, name._replace(change=change))
    return list(symbols_changed.values())


class _Definitions:
    """The definitions of one side of a file, and those that some of its lines are in."""

    def __init__(self, symbols: FileSymbols, spans: list[tuple[int, int]]) -> None:
        self.names: dict[str, ChangedSymbol] = {}
        """By qualified name; of several, the first."""
        symbols_defined = []
        for index in range(symbols.count):
            checkpoint()
            occurrence = symbols.defined(index)
            if not (occurrence.kind in _INNER and occurrence.container):
                if occurrence.container:
                    name = f"{occurrence.container}.{occurrence.name}"
                else:
                    name = occurrence.name
                symbol = ChangedSymbol(
                    occurrence.name,
                    name,
                    occurrence.kind,
                    "modified",
                    occurrence.start_line,
                    occurrence.end_line,
                )
                self.names.setdefault(name, symbol)
                symbols_defined.append(symbol)
        symbols_defined.sort(
            key=lambda one: one.start_line - one.end_line
        )  # the outer ones first: inner ones overwrite them
        last = max(
            (current_symbol.end_line for current_symbol in symbols_defined), default=0
        )
        innermost = np.full(last + 2, -1, np.int64)
        for at, symbol in enumerate(symbols_defined):
            innermost[symbol.start_line : symbol.end_line + 1] = at
        lines = np.zeros(last + 2, bool)
        for start, count in spans:
            # Spans may end after the last symbol.
            first_line = min(start, last + 1)
            end_line = min(start + count, last + 1)
            lines[first_line:end_line] = True
        touched = np.unique(innermost[lines])
        self.touched = sorted(
            (symbols_defined[at] for at in touched.tolist() if at >= 0),
            key=lambda one: one.start_line,
        )


def show_hunk(change: FileChange, hunk: Hunk, most: int | None) -> str:
    """Return a hunk's lines in unified diff format, long ones cut; at most about ``most`` characters."""
    lines_shown = []
    for sign, lines, start, count in (
        ("-", change.sides[0], hunk.old_start, hunk.old_lines),
        ("+", change.sides[1], hunk.start, hunk.lines),
    ):
        for line in lines[start - 1 : start - 1 + count] if count else ():
            text = line.rstrip(b"\r\n")
            lines_shown.append(
                sign
                + text[:LONG_LINE].decode("utf-8", "replace")
                + ("…" if len(text) > LONG_LINE else "")
            )
            if most is not None and (most := most - len(lines_shown[-1])) < 0:
                return "\n".join([*lines_shown, "…"])
    return "\n".join(lines_shown)
