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
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import orjson

from flashgrep.edit.faults import telling
from flashgrep.edit.replace import TEMPORARY, discard, write_all
from flashgrep.edit.root import Place, Root
from flashgrep.errors import FlashgrepError

_FOLDER = b"journal"
_MOST_JOURNAL = 4 << 20  # bytes; a batch of 500 operations needs a tenth
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

Outcome = Literal["nothing", "completed", "undone", "kept", "failed"]
Version = tuple[int, int, int]
"""Inode, size and time of modification."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a write; names are beside it, in its folder."""

    path: bytes
    temporary: bytes
    backup: bytes | None = None
    before: Version | None = None
    after: Version | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found and done.

    "kept": others' later changes stand in the way both ways; "failed": the system did.
    """

    outcome: Outcome
    paths: tuple[bytes, ...]


def version(status: os.stat_result | None) -> Version | None:
    """Return what tells a file's content from another's; a rename or a link leaves it as it is."""
    return None if status is None else (status.st_ino, status.st_size, status.st_mtime_ns)


class Journal:
    """The journal of one write; a context manager that removes it unless told to keep it."""

    def __init__(self, root: Root, entries: Iterable[Entry]) -> None:
        self._folder = root.open_state(_FOLDER)
        self._name = secrets.token_hex(8).encode("ascii")
        self._keep = False
        with contextlib.ExitStack() as opened, telling(_FOLDER):
            opened.callback(os.close, self._folder)
            self._file = os.open(self._name, _CREATE, 0o600, dir_fd=self._folder)
            opened.callback(os.close, self._file)
            opened.callback(discard, self._folder, self._name)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._add({"state": "prepare", "entries": [_packed(each) for each in entries]})
            opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if not self._keep:
            discard(self._folder, self._name)
        os.close(self._file)
        os.close(self._folder)

    def commit(self, entries: Iterable[Entry]) -> None:
        """Decide that all of it happens; durable when this returns."""
        with telling(_FOLDER):
            self._add({"state": "commit", "entries": [_packed(each) for each in entries]})
            os.fsync(self._file)
            os.fsync(self._folder)

    def abort(self) -> None:
        """Decide that nothing of it happens after all."""
        with telling(_FOLDER):
            self._add({"state": "abort"})
            os.fsync(self._file)

    def keep(self) -> None:
        """Leave the journal for the next recovery: undoing failed."""
        self._keep = True

    def _add(self, line: dict[str, Any]) -> None:
        write_all(self._file, orjson.dumps(line) + b"\n")


def undo(root: Root, entries: Iterable[Entry]) -> None:
    """Give every backup its name again, remove what was made, and all temporary files."""
    for entry in entries:
        with _place(root, entry) as place:
            now = version(place.lstat())
            if (now is not None and now == entry.after) or (now is None and entry.backup is not None):
                _restore(place, entry)
            _clean(place, entry)
            place.sync()


def recover(root: Root) -> list[Recovered]:
    """Finish or undo every write whose process died; call it when a project is opened."""
    try:
        folder = root.open_state(_FOLDER, make=False)
    except FlashgrepError:  # nothing was ever written here, or nothing can be
        return []
    try:
        with telling(_FOLDER, "directory"):
            names = [os.fsencode(name) for name in sorted(os.listdir(folder))]
        return [done for name in names if (done := _recover(root, folder, name)) is not None]
    finally:
        os.close(folder)


def _recover(root: Root, folder: int, name: bytes) -> Recovered | None:
    """Recover one journal, or return None when its writer lives."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=folder)
    except OSError:  # gone, or no file: none of ours
        return None
    paths: tuple[bytes, ...] = ()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        state, entries = _read(descriptor)
        entries = [each for each in entries if _is_there(root, each)]
        paths = tuple(entry.path for entry in entries)
        recovered = _settle(root, state, entries)
        discard(folder, name)
    except BlockingIOError:
        return None
    except (OSError, FlashgrepError):  # not possible now: the journal stays for the next time
        return Recovered("failed", paths)
    finally:
        os.close(descriptor)
    return recovered


def _settle(root: Root, state: str, entries: list[Entry]) -> Recovered:
    paths = tuple(entry.path for entry in entries)
    if state == "commit" and all(_may_redo(root, entry) for entry in entries):
        for entry in entries:
            _redo(root, entry)
        return Recovered("completed", paths)
    if state == "commit" and not all(_may_undo(root, entry) for entry in entries):
        for entry in entries:
            with _place(root, entry) as place:
                _clean(place, entry)
        return Recovered("kept", paths)
    undo(root, entries)
    return Recovered("nothing" if state == "prepare" else "undone", paths)


def _may_redo(root: Root, entry: Entry) -> bool:
    with _place(root, entry) as place:
        now = version(place.lstat())
        return now == entry.after or (now == entry.before and _version_of(place, entry.temporary) == entry.after)


def _may_undo(root: Root, entry: Entry) -> bool:
    """Tell whether undoing loses nobody's later change: the file is ours, or was not yet replaced."""
    with _place(root, entry) as place:
        return version(place.lstat()) == entry.after or _version_of(place, entry.temporary) is not None


def _redo(root: Root, entry: Entry) -> None:
    with _place(root, entry) as place:
        if version(place.lstat()) != entry.after:
            os.rename(entry.temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        _clean(place, entry)
        place.sync()


def _restore(place: Place, entry: Entry) -> None:
    if entry.backup is None:
        os.unlink(place.name, dir_fd=place.folder)
    elif _version_of(place, entry.backup) is not None:
        os.rename(entry.backup, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)


def _clean(place: Place, entry: Entry) -> None:
    discard(place.folder, entry.temporary)
    if entry.backup is not None:
        discard(place.folder, entry.backup)


def _version_of(place: Place, name: bytes) -> Version | None:
    return version(replace_name(place, name).lstat())


def replace_name(place: Place, name: bytes) -> Place:
    """Return the place of another name in the same folder, on the same descriptor."""
    return replace(place, name=name)


def _place(root: Root, entry: Entry) -> Place:
    return root.place(entry.path, follow=False, write=True)


def _is_there(root: Root, entry: Entry) -> bool:
    """Tell whether an entry can be ours: its folder is inside the root and its names are temporary ones."""
    names = [entry.temporary, *([entry.backup] if entry.backup is not None else [])]
    if not all(name.startswith(TEMPORARY) and b"/" not in name for name in names):
        return False
    with contextlib.suppress(FlashgrepError), _place(root, entry):
        return True
    return False


def _read(descriptor: int) -> tuple[str, list[Entry]]:
    """Return the last state that was written whole, and the entries; nothing for what is no journal."""
    state: str = "prepare"
    entries: list[Entry] = []
    for line in os.pread(descriptor, _MOST_JOURNAL, 0).split(b"\n")[:-1]:
        try:
            found = orjson.loads(line)
            state = str(found["state"])
            entries = [_unpacked(each) for each in found.get("entries", [])] or entries
        except (ValueError, TypeError, KeyError, AttributeError):
            return "prepare", []
    return state, entries


def _packed(entry: Entry) -> dict[str, Any]:
    """Return an entry for JSON; latin-1 holds any bytes as text."""
    fields = asdict(entry)
    return {key: value.decode("latin-1") if isinstance(value, bytes) else value for key, value in fields.items()}


def _unpacked(fields: dict[str, Any]) -> Entry:
    backup = fields["backup"]
    return Entry(
        path=fields["path"].encode("latin-1"),
        temporary=fields["temporary"].encode("latin-1"),
        backup=None if backup is None else backup.encode("latin-1"),
        before=_unpacked_version(fields["before"]),
        after=_unpacked_version(fields["after"]),
    )


def _unpacked_version(found: list[int] | None) -> Version | None:
    if found is None:
        return None
    inode, size, modified = found
    return (inode, size, modified)
