"""Files and folders copied, moved and removed.

A copy is built beside its destination under a temporary name and takes the name when it is whole; what it replaces is
kept until then. Links are copied, moved and removed as links. The files of a copied folder are not flushed one by one,
as with cp.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from flashgrep.edit.commit import Change, commit_one
from flashgrep.edit.editor import Editor
from flashgrep.edit.faults import missing, not_a_file, shown, telling
from flashgrep.edit.files import How, destination_exists
from flashgrep.edit.journal import Entry, Journal
from flashgrep.edit.protect import is_protected
from flashgrep.edit.replace import Original, discard, temporary_name, write_all
from flashgrep.edit.root import Place, refuse_private
from flashgrep.errors import Forbidden, InvalidParams, TooLarge

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK = 1 << 20


class Moved(NamedTuple):
    """From where to where, links resolved, and every path that changed; none in a dry run."""

    source: bytes
    target: bytes
    changed: list[bytes]


class Removed(NamedTuple):
    """What was removed, whether it was missing already, and every path that changed."""

    target: bytes
    already_missing: bool
    changed: list[bytes]


def copy(editor: Editor, source: bytes, target: bytes, how: How, *, recursive: bool) -> Moved:
    """Copy a file, or with ``recursive`` a folder.

    Raises:
        NotFound: path_not_found.
        Conflict: destination_exists.
        InvalidParams: recursive_required; a folder into itself; a device, socket or pipe.

    """
    with _both(editor, source, target, follow=True) as (old, new):
        status = _there(old, source)
        if not stat.S_ISDIR(status.st_mode):
            _copy_file(editor, old, new, how)
            return Moved(old.path, new.path, [] if how.dry_run else [new.path])
        if not recursive:
            raise recursive_required(source)
        below = _plan(editor, old, new, how)
        if how.dry_run:
            return Moved(old.path, new.path, [])
        with _replacing(editor, new) as temporary, telling(target):
            _copy_folder(old.folder, old.name, new.folder, temporary)
        return Moved(old.path, new.path, [new.path + path for path in below])


def move(editor: Editor, source: bytes, target: bytes, how: How) -> Moved:
    """Move a file or a folder.

    Raises:
        NotFound: path_not_found.
        Conflict: destination_exists.

    """
    with _both(editor, source, target, follow=False) as (old, new):
        _there(old, source)
        if old.key() == new.key():
            return Moved(old.path, new.path, [])
        below = _plan(editor, old, new, how)
        if how.dry_run:
            return Moved(old.path, new.path, [])
        with telling(source, "path"):
            _move(editor, old, new)
        return Moved(old.path, new.path, [*(old.path + path for path in below), *(new.path + path for path in below)])


def remove(editor: Editor, path: bytes, *, recursive: bool, force: bool, dry_run: bool) -> Removed:
    """Remove a file, a link, an empty folder, or with ``recursive`` any; with ``force`` a missing one is no error.

    Raises:
        NotFound: path_not_found.
        InvalidParams: recursive_required.

    """
    with editor.root.place(path, follow=False, write=True) as place, editor.locks.hold([place]):
        status = place.lstat()
        if status is None:
            if force:
                return Removed(place.path, already_missing=True, changed=[])
            raise missing(path, "path")
        _refuse_root(place)
        below = _below(editor, place)
        if len(below) > 1 and not recursive:
            raise recursive_required(path)
        if dry_run:
            return Removed(place.path, already_missing=False, changed=[])
        with telling(path, "path"):
            _forget(place)
        return Removed(place.path, already_missing=False, changed=[place.path + each for each in below])


def recursive_required(path: bytes) -> InvalidParams:
    """Return the error for a folder that only ``recursive`` may touch."""
    message = f"is a folder, recursive is needed: {shown(path)}"
    return InvalidParams(message, reason="recursive_required", target_path=shown(path))


@contextmanager
def _both(editor: Editor, source: bytes, target: bytes, *, follow: bool) -> Iterator[tuple[Place, Place]]:
    """Open both ends; only a copy follows links, and only it may read what is protected."""
    with (
        editor.root.place(source, follow=follow, write=not follow) as old,
        editor.root.place(target, follow=follow, write=True) as new,
        editor.locks.hold([old, new]),
    ):
        _refuse_root(new)
        yield old, new


def _there(place: Place, path: bytes) -> os.stat_result:
    status = place.lstat()
    if status is None:
        raise missing(path, "path")
    return status


def _refuse_root(place: Place) -> None:
    if not place.path:
        raise Forbidden("the project's root itself is never replaced", reason="protected_path", target_path=".")


def _plan(editor: Editor, old: Place, new: Place, how: How) -> list[bytes]:
    """Check that the destination can be taken; returns the paths below the source, itself included as an empty one."""
    if not old.path or (new.path + b"/").startswith(old.path + b"/"):
        problem = "a folder cannot be put into itself"
        raise InvalidParams(f"{problem}: {shown(new.path)}", field="dst", target_path=shown(new.path))
    _check_free(old, new, how)
    if (old.path + b"/").startswith(new.path + b"/"):
        problem = "the destination holds the source"
        raise InvalidParams(f"{problem}: {shown(new.path)}", field="dst", target_path=shown(new.path))
    if how.overwrite and new.lstat() is not None:
        _below(editor, new)
    return _below(editor, old)


def _check_free(old: Place, new: Place, how: How) -> None:
    there, moved = new.lstat(), old.lstat()
    if there is None or how.overwrite:
        return
    respelled = moved is not None and os.path.samestat(there, moved) and old.name.lower() == new.name.lower()
    if not respelled:  # where case does not count, a file's own name is no other file
        raise destination_exists(new.path)


def _below(editor: Editor, place: Place) -> list[bytes]:
    """Return every path at and below a place, relative to it; refuse a tree with a protected name in it."""
    found = [b""]
    if not _is_folder(place.lstat()):
        return found
    with telling(place.path, "path"):
        private = editor.root.private.identities()
        for folder, folders, files, descriptor in os.fwalk(place.name, dir_fd=place.folder, onerror=_raise):
            refuse_private(os.fstat(descriptor), private, place.path + folder[len(place.name) :])
            prefix = folder[len(place.name) :]
            found += [prefix + b"/" + _allowed(place, prefix, name) for name in (*folders, *files)]
            if len(found) > editor.limits.tree_entries:
                raise _too_many(editor, place, len(found))
    return found


def _allowed(place: Place, prefix: bytes, name: bytes) -> bytes:
    if is_protected(name):
        path = shown(place.path + prefix + b"/" + name)
        raise Forbidden(f"never written: {path}", reason="protected_path", target_path=path)
    return name


def _too_many(editor: Editor, place: Place, observed: int) -> TooLarge:
    most = editor.limits.tree_entries
    message = f"more than {most} entries: {shown(place.path)}"
    return TooLarge(message, observed=observed, limit=most, guidance="take its folders one by one")


def _raise(error: OSError) -> None:
    raise error


def _copy_file(editor: Editor, old: Place, new: Place, how: How) -> None:
    status = new.lstat()
    if status is not None and stat.S_ISDIR(status.st_mode):
        reason = "target_is_directory" if how.overwrite else "destination_exists"
        if reason == "destination_exists":
            raise destination_exists(new.path)
        raise InvalidParams(f"is a directory: {shown(new.path)}", reason=reason, target_path=shown(new.path))
    _check_free(old, new, how)
    if old.key() == new.key():
        return
    with telling(old.path):
        source = _open_source(old.name, old.folder, old.path)
    try:
        if not how.dry_run:
            commit_one(editor, Change(new, Original(None, status), _Stream(source, keep_mode=status is not None)))
    finally:
        os.close(source)


@dataclass(frozen=True, slots=True)
class _Stream:
    """Writes an open file's bytes, and unless the target has one already its mode, to a descriptor."""

    source: int
    keep_mode: bool

    def __call__(self, target: int) -> None:
        while block := os.read(self.source, _BLOCK):
            write_all(target, block)
        if not self.keep_mode:
            os.fchmod(target, stat.S_IMODE(os.fstat(self.source).st_mode) & 0o777)


def _open_source(name: bytes, folder: int, path: bytes) -> int:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(path)
    descriptor = os.open(name, _READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_a_file(path)
    return descriptor


@contextmanager
def _replacing(editor: Editor, new: Place) -> Iterator[bytes]:
    """Give a temporary name to build under; then it takes the place's name, and what was there goes."""
    entry = Entry(new.path, temporary_name(), temporary_name())
    with Journal(editor.root, [entry]):
        try:
            yield entry.temporary
            _swap(editor, new, entry, new.folder, entry.temporary)
        except BaseException:
            discard(new.folder, entry.temporary)
            raise


def _swap(editor: Editor, new: Place, entry: Entry, folder: int, name: bytes) -> None:
    """Rename something to a place; what is there steps aside first: a full folder cannot be renamed over.

    A process killed in between leaves the old under its backup name, and recovery gives it its own again.
    """
    backup = entry.backup or b""
    with telling(new.path):
        editor.step("aside")
        with suppress(FileNotFoundError):
            os.rename(new.name, backup, src_dir_fd=new.folder, dst_dir_fd=new.folder)
        editor.step("rename")
        try:
            os.rename(name, new.name, src_dir_fd=folder, dst_dir_fd=new.folder)
        except OSError:
            with suppress(FileNotFoundError):
                os.rename(backup, new.name, src_dir_fd=new.folder, dst_dir_fd=new.folder)
            raise
        new.sync()
    editor.step("clean")
    discard(new.folder, backup)


def _move(editor: Editor, old: Place, new: Place) -> None:
    try:
        _rename(editor, old, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        old.sync()
        return
    # The destination is on another file system: the source stays until the copy is whole.
    with _replacing(editor, new) as temporary:
        _copy_any(old.folder, old.name, new.folder, temporary)
    _forget(old)


def _rename(editor: Editor, old: Place, new: Place) -> None:
    there, moved = new.lstat(), old.lstat()
    if there is not None and moved is not None and os.path.samestat(there, moved):
        _unite(old, new)
        return
    if there is None or not (_is_folder(there) or _is_folder(moved)):
        os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
        new.sync()
        return
    if os.fstat(old.folder).st_dev != os.fstat(new.folder).st_dev:
        raise OSError(errno.EXDEV, "another file system")  # told before the old steps aside
    entry = Entry(new.path, temporary_name(), temporary_name())
    with Journal(editor.root, [entry]):
        _swap(editor, new, entry, old.folder, old.name)


def _unite(old: Place, new: Place) -> None:
    """Move a file onto another name of itself: a rename would do nothing, unless only the case differs."""
    if old.name.lower() == new.name.lower():
        os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
    else:
        os.unlink(old.name, dir_fd=old.folder)
    new.sync()


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)


def _copy_any(source: int, name: bytes, target: int, new: bytes) -> None:
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        _copy_folder(source, name, target, new)
    elif stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=target)
    else:
        _copy_plain(source, name, target, new)


def _copy_plain(source: int, name: bytes, target: int, new: bytes) -> None:
    read = _open_source(name, source, name)
    try:
        written = os.open(new, _CREATE, 0o600, dir_fd=target)
        try:
            _Stream(read, keep_mode=False)(written)
        finally:
            os.close(written)
    finally:
        os.close(read)


def _copy_folder(source: int, name: bytes, target: int, new: bytes) -> None:
    os.mkdir(new, 0o700, dir_fd=target)
    read = os.open(name, _FOLDER, dir_fd=source)
    try:
        written = os.open(new, _FOLDER, dir_fd=target)
        try:
            for each in _names(read):
                _copy_any(read, each, written, each)
            os.fchmod(written, stat.S_IMODE(os.fstat(read).st_mode) & 0o777)
        finally:
            os.close(written)
    finally:
        os.close(read)


def _names(folder: int) -> Sequence[bytes]:
    return [os.fsencode(name) for name in os.listdir(folder)]


def _forget(place: Place) -> None:
    """Remove what a place names, if it is there still."""
    status = place.lstat()
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(place.name, dir_fd=place.folder)
    else:
        os.unlink(place.name, dir_fd=place.folder)
    place.sync()
