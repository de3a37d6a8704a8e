"""What a write is about to do, on disk before it is done: a process killed in the middle leaves all of it or nothing.

One file a write in the folder ``journal`` of the project's state, locked while its writer lives and removed at the
end. Each line is a JSON object:

1: ``{"state": "prepare", "entries": [{"path", "temporary", "backup"}]}``: nothing has a real name yet; undo: remove the
named files. 2: ``{"state": "commit", "entries": [… with "before" and "after"]}``: every new content is durable; redo:
give each its name. 3: ``{"state": "abort"}``: a name could not be given; undo: give the backups their names again.

A line that was cut short was never written. Only a journal in the user's own state folder is believed: one below the
project's root may have come with the repository and is never opened. Every path goes through the root's confinement all
the same, and only files with our temporary names are moved or removed.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

import orjson

from flashgrep.base.errors import FlashgrepError
from flashgrep.base.model import FileStat
from flashgrep.files.openat import Descriptor
from flashgrep.files.root import Place, Root
from flashgrep.files.system import TEMPORARY, discard, translate_errors, write_all

_FOLDER = b"journal"
_MOST_JOURNAL = 4 << 20  # bytes; a batch of 500 operations needs a tenth
_CREATE = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
)
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

Outcome = Literal["nothing", "completed", "undone", "kept", "failed"]
Version = tuple[int, int, int]
"""Inode, size and time of modification."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a write; names are next to it, in its folder."""

    path: bytes
    temporary: bytes
    backup: bytes | None = None
    before: Version | None = None
    after: Version | None = None


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What was found and done.

    "kept": others changed the files since, so the write can be neither finished nor undone; "failed": the system
    refused, and the journal stays for the next time.
    """

    outcome: Outcome
    paths: tuple[bytes, ...]


def version(status: os.stat_result | None) -> Version | None:
    """Return an identifier of the content, which renames and links do not change."""
    if status is None:
        return None
    stat = FileStat.from_status(status)  # orjson refuses numbers beyond 64 bits
    return stat.inode, stat.size, stat.mtime_ns


class Journal:
    """The journal of one write; a context manager that removes it unless told to keep it."""

    def __init__(self, root: Root, entries: Iterable[Entry]) -> None:
        self._folder = root.open_state(_FOLDER)
        self._name = secrets.token_hex(8).encode("ascii")
        self._keep = False
        with contextlib.ExitStack() as undo_all, translate_errors(_FOLDER):
            undo_all.callback(os.close, self._folder)
            self._file = os.open(self._name, _CREATE, 0o600, dir_fd=self._folder)
            undo_all.callback(os.close, self._file)
            undo_all.callback(discard, self._folder, self._name)
            # Recovery leaves a locked journal alone; the kernel unlocks it when this
            # process dies.
            fcntl.flock(self._file, fcntl.LOCK_EX)
            # Not flushed: if a power cut takes it, the temporary files it names are
            # left over, hidden, and do no harm.
            self._add("prepare", entries)
            undo_all.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._keep:
            discard(self._folder, self._name)
        os.close(self._file)
        os.close(self._folder)

    def commit(self, entries: Iterable[Entry]) -> None:
        """Decide that all of it happens; durable when this returns."""
        with translate_errors(_FOLDER):
            self._add("commit", entries)
            os.fsync(self._file)
            os.fsync(
                self._folder
            )  # the journal's name: without it the decision could be lost

    def abort(self) -> None:
        """Decide that nothing of it happens after all."""
        with translate_errors(_FOLDER):
            self._add("abort")
            os.fsync(self._file)

    def keep(self) -> None:
        """Leave the journal for the next recovery: undoing failed."""
        self._keep = True

    def _add(self, state: str, entries: Iterable[Entry] = ()) -> None:
        # JSON holds text; latin-1 makes text of any bytes, and bytes of it again.
        line = {"state": state, "entries": list(entries)}
        write_all(
            self._file,
            orjson.dumps(line, default=lambda name: name.decode("latin-1")) + b"\n",
        )


def undo(root: Root, entries: Iterable[Entry]) -> None:
    """Give every backup its name again, remove what was made, and all temporary files."""
    for entry in entries:
        with _place(root, entry) as place:
            now = version(place.lstat())
            if (now is not None and now == entry.after) or (
                now is None and entry.backup is not None
            ):
                if entry.backup is None:
                    # There was no file before the write, and what is there is exactly
                    # ours.
                    os.unlink(place.name, dir_fd=place.folder)
                elif version(place.lstat(entry.backup)) is not None:
                    place.rename(entry.backup)
            _discard_files(place, entry)
            place.sync()


def recover(root: Root) -> list[RecoveryResult]:
    """Finish or undo every write whose process died; call it when a project is opened."""
    try:
        folder = root.open_state(_FOLDER, make=False)
    except FlashgrepError:  # nothing was ever written here, or nothing can be
        return []
    with Descriptor(folder):
        with translate_errors(_FOLDER, "directory"):
            names = [os.fsencode(name) for name in sorted(os.listdir(folder))]
        return [
            recovered
            for name in names
            if (recovered := _recover_one(root, folder, name)) is not None
        ]


def _recover_one(root: Root, folder: int, name: bytes) -> RecoveryResult | None:
    """Recover one journal, or return None when its writer lives."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=folder)
    except OSError:  # gone, or no file: none of ours
        return None
    paths: tuple[bytes, ...] = ()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The lock is ours, so the writer is dead. Entries that no write of ours can
        # have made are ignored, whatever the journal says.
        state, entries = _read(descriptor)
        entries = [entry for entry in entries if _is_ours(root, entry)]
        paths = tuple(entry.path for entry in entries)
        outcome = _settle(root, state, entries)
        discard(folder, name)
    except BlockingIOError:
        return None
    except (
        OSError,
        FlashgrepError,
    ):  # not possible now: the journal stays for the next time
        return RecoveryResult("failed", paths)
    finally:
        os.close(descriptor)
    return RecoveryResult(outcome, paths)


def _settle(root: Root, state: str, entries: list[Entry]) -> Outcome:
    """Finish a write that was decided, undo any other; where others changed the files since, change neither."""
    if state != "commit":
        undo(root, entries)
        if state == "prepare":
            return "nothing"
        return "undone"
    may_redo = may_undo = True
    for entry in entries:
        with _place(root, entry) as place:
            now = version(place.lstat())
            written = version(place.lstat(entry.temporary))
            is_done = now == entry.after
            # All or nothing: one file that others changed keeps every other from being
            # redone.
            may_redo &= is_done or (now == entry.before and written == entry.after)
            # Undoing loses nobody's later change if the file is ours, or was not yet
            # replaced.
            may_undo &= is_done or written is not None
    if not may_redo and may_undo:
        undo(root, entries)
        return "undone"
    for entry in entries:
        with _place(root, entry) as place:
            # A file that has its new name already is left: recovery may itself have
            # been killed here before.
            if may_redo and version(place.lstat()) != entry.after:
                place.rename(entry.temporary)
            _discard_files(place, entry)
            if may_redo:
                place.sync()
    if may_redo:
        return "completed"
    return "kept"


def _discard_files(place: Place, entry: Entry) -> None:
    discard(place.folder, entry.temporary)
    discard(place.folder, entry.backup)


def _place(root: Root, entry: Entry) -> Place:
    return root.place(entry.path, follow=False, write=True)


def _is_ours(root: Root, entry: Entry) -> bool:
    """Return whether an entry can be ours: its folder is inside the root and its names are temporary ones."""
    names = [name for name in (entry.temporary, entry.backup) if name is not None]
    if not all(name.startswith(TEMPORARY) and b"/" not in name for name in names):
        return False
    with contextlib.suppress(FlashgrepError), _place(root, entry):
        return True
    return False


def _read(descriptor: int) -> tuple[str, list[Entry]]:
    """Return the last state that was written whole, and the entries; nothing for what is not a journal."""
    state: str = "prepare"
    entries: list[Entry] = []
    # The part after the last LF was cut short, or is empty.
    for line in os.pread(descriptor, _MOST_JOURNAL, 0).split(b"\n")[:-1]:
        try:
            fields = orjson.loads(line)
            state = str(fields["state"])
            entries = [
                _load_entry(entry) for entry in fields.get("entries", [])
            ] or entries
        except (ValueError, TypeError, KeyError, AttributeError):
            return "prepare", []
    return state, entries


def _load_entry(fields: dict[str, Any]) -> Entry:
    path = fields["path"]
    temporary = fields["temporary"]
    backup = fields["backup"]
    return Entry(
        path.encode("latin-1"),
        temporary.encode("latin-1"),
        None if backup is None else backup.encode("latin-1"),
        _load_version(fields["before"]),
        _load_version(fields["after"]),
    )


def _load_version(numbers: list[int] | None) -> Version | None:
    if numbers is None:
        return None
    inode, size, modified = numbers
    return (inode, size, modified)
