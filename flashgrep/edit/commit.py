"""New contents for files, given their names all together or not at all."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import telling
from flashgrep.edit.journal import Entry, Journal, replace_name, undo, version
from flashgrep.edit.replace import (
    Content,
    Original,
    changed,
    check_unchanged,
    check_writable,
    discard,
    take_name,
    temporary_name,
    write_beside,
)
from flashgrep.edit.replace import replace as replace_file
from flashgrep.edit.root import Place
from flashgrep.errors import FlashgrepError


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it was read and its new content; the place stays open, and locked, until all is done."""

    place: Place
    original: Original
    data: Content


class NotCommitted(Exception):
    """Nothing was changed, because of ``cause`` at the change ``at``; ``begun``: some had been, and are as before."""

    def __init__(self, at: int, cause: FlashgrepError, *, begun: bool) -> None:
        super().__init__(str(cause))
        self.at = at
        self.cause = cause
        self.begun = begun


def commit_one(editor: Editor, change: Change) -> None:
    """Replace one file; a process killed on the way leaves the old or the new content, and no debris once recovered."""
    entry = Entry(change.place.path, temporary_name())
    with Journal(editor.root, [entry]):
        replace_file(change.place, entry.temporary, change.data, change.original, editor.step)


def commit_all(editor: Editor, changes: Sequence[Change]) -> None:
    """Replace all files or none.

    Raises:
        NotCommitted: with what stood in the way; every file is as it was.

    """
    entries = [_entry(change) for change in changes]
    with Journal(editor.root, entries) as journal:
        try:
            entries = _prepare(editor, changes, entries)
            _sync(changes)  # what is decided must find the files it speaks of
            editor.step("decide")
            journal.commit(entries)
        except BaseException:
            _discard(changes, entries)
            raise
        _rename(editor, changes, entries, journal)
        editor.step("sync")
        _sync(changes)
        editor.step("clean")
        _discard(changes, entries)
        editor.step("forget")


def _entry(change: Change) -> Entry:
    there = change.original.status is not None
    before = version(change.original.status)
    return Entry(change.place.path, temporary_name(), temporary_name() if there else None, before)


def _prepare(editor: Editor, changes: Sequence[Change], entries: Sequence[Entry]) -> list[Entry]:
    """Write every new content and keep every old one under a second name; return the entries with what was written."""
    ready = []
    for at, (change, entry) in enumerate(zip(changes, entries, strict=True)):
        try:
            check_writable(change.place, change.original)
            editor.step("write")
            write_beside(change.place, entry.temporary, change.data, change.original)
            editor.step("backup")
            _back_up(change, entry)
            written = version(replace_name(change.place, entry.temporary).lstat())
            ready.append(replace(entry, after=written))
        except FlashgrepError as error:
            raise NotCommitted(at, error, begun=False) from error
    return ready


def _back_up(change: Change, entry: Entry) -> None:
    if entry.backup is None:
        return
    folder = change.place.folder
    with telling(change.place.path):
        try:
            os.link(change.place.name, entry.backup, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError:  # no links here, or the file is another user's: a copy serves as well
            write_beside(change.place, entry.backup, change.original.data or b"", change.original)
            return
    if version(replace_name(change.place, entry.backup).lstat()) != entry.before:
        raise changed(change.place, change.original)


def _rename(editor: Editor, changes: Sequence[Change], entries: Sequence[Entry], journal: Journal) -> None:
    for at, (change, entry) in enumerate(zip(changes, entries, strict=True)):
        try:
            editor.step("check")
            check_unchanged(change.place, change.original, linked=True)
            editor.step("rename")
            take_name(change.place, entry.temporary, change.original)
        except FlashgrepError as error:
            _undo(editor, entries, journal)
            raise NotCommitted(at, error, begun=at > 0) from error


def _undo(editor: Editor, entries: Sequence[Entry], journal: Journal) -> None:
    try:
        journal.abort()
        editor.step("undo")
        undo(editor.root, entries)
    except (OSError, FlashgrepError):
        journal.keep()
        raise


def _sync(changes: Sequence[Change]) -> None:
    """Make the names in all folders durable, each once."""
    for place in {change.place.key()[:2]: change.place for change in changes}.values():
        with telling(place.path):
            place.sync()


def _discard(changes: Sequence[Change], entries: Sequence[Entry]) -> None:
    for change, entry in zip(changes, entries, strict=True):
        discard(change.place.folder, entry.temporary)
        if entry.backup is not None:
            discard(change.place.folder, entry.backup)
