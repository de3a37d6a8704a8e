"""Copies, moves and removes files and folders.

A copy is built next to its destination under a temporary name and takes the name when it is whole; what it replaces is
kept until then. Links are copied, moved and removed as links. The files of a copied folder are not flushed one by one,
as with cp.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from flashgrep.base.errors import InvalidParams, TooLarge
from flashgrep.files.editor import Editor
from flashgrep.files.openat import FILE, LISTING, Descriptor
from flashgrep.files.root import Place, check_not_private, is_protected
from flashgrep.files.system import (
    BLOCK,
    CREATE,
    discard,
    format_path,
    missing,
    not_a_file,
    protected_path,
    temporary_name,
    translate_errors,
    write_all,
)
from flashgrep.parts.edit.files import WriteOptions, destination_exists
from flashgrep.parts.edit.journal import Entry, Journal
from flashgrep.parts.edit.replace import Change, Original, commit_one


class Transfer(NamedTuple):
    """A copy or a move: from where to where, links resolved, and every path that changed; none in a dry run."""

    source: bytes
    target: bytes
    paths: list[bytes]


class Removal(NamedTuple):
    """What was removed, whether it was missing already, and every path that changed; none in a dry run."""

    target: bytes
    already_missing: bool
    paths: list[bytes]


def copy(
    editor: Editor,
    source: bytes,
    target: bytes,
    options: WriteOptions,
    *,
    recursive: bool,
) -> Transfer:
    """Copy a file, or with ``recursive`` a folder.

    Raises:
        NotFound: path_not_found.
        Conflict: destination_exists.
        InvalidParams: recursive_required; a folder into itself; a device, socket or pipe.

    """
    with _open_both(editor, source, target, follow=True) as (old, new, status):
        if not stat.S_ISDIR(status.st_mode):
            _copy_file(editor, old, new, options)
            changed = []
            if not options.dry_run:
                changed.append(new.path)
            return Transfer(old.path, new.path, changed)
        if not recursive:
            raise recursive_required(source)
        below = _check_transfer(editor, old, new, options)
        if options.dry_run:
            return Transfer(old.path, new.path, [])
        with _build_beside(editor, new) as temporary, translate_errors(target):
            _copy_folder(old.folder, old.name, new.folder, temporary)
        return Transfer(old.path, new.path, [new.path + path for path in below])


def move(
    editor: Editor, source: bytes, target: bytes, options: WriteOptions
) -> Transfer:
    """Move a file or a folder.

    Raises:
        NotFound: path_not_found.
        Conflict: destination_exists.

    """
    with _open_both(editor, source, target, follow=False) as (old, new, _):
        if old.key() == new.key():
            return Transfer(old.path, new.path, [])
        below = _check_transfer(editor, old, new, options)
        if options.dry_run:
            return Transfer(old.path, new.path, [])
        with translate_errors(source, "path"):
            try:
                _rename(editor, old, new)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                # The destination is on another file system: the source stays until the
                # copy is whole.
                with _build_beside(editor, new) as temporary:
                    _copy_any(old.folder, old.name, new.folder, temporary)
                # A crash before this leaves both copies: nothing is lost.
                _remove(old)
            else:
                old.sync()
        return Transfer(
            old.path,
            new.path,
            [place.path + path for place in (old, new) for path in below],
        )


def remove(
    editor: Editor, path: bytes, *, recursive: bool, force: bool, dry_run: bool
) -> Removal:
    """Remove a file, a link, an empty folder, or with ``recursive`` any; with ``force`` a missing one is not an error.

    Raises:
        NotFound: path_not_found.
        InvalidParams: recursive_required.

    """
    with (
        editor.root.place(path, follow=False, write=True) as place,
        editor.locks.hold([place]),
    ):
        if place.lstat() is None:
            if force:
                return Removal(place.path, already_missing=True, paths=[])
            raise missing(path, "path")
        _check_not_root(place)
        # Listed before anything is removed: a protected name deep below refuses the
        # whole call.
        below = _list_tree(editor, place)
        if len(below) > 1 and not recursive:
            raise recursive_required(path)
        if dry_run:
            return Removal(place.path, already_missing=False, paths=[])
        with translate_errors(path, "path"):
            _remove(place)
        return Removal(
            place.path,
            already_missing=False,
            paths=[place.path + name for name in below],
        )


def recursive_required(path: bytes) -> InvalidParams:
    """Return the error for a folder that needs ``recursive``."""
    text = format_path(path)
    message = f"is a folder, recursive is needed: {text}"
    return InvalidParams(message, reason="recursive_required", target_path=text)


@contextmanager
def _open_both(
    editor: Editor, source: bytes, target: bytes, *, follow: bool
) -> Iterator[tuple[Place, Place, os.stat_result]]:
    """Open both ends; only a copy follows links, and only it may read what is protected."""
    with (
        editor.root.place(source, follow=follow, write=not follow) as old,
        editor.root.place(target, follow=follow, write=True) as new,
        editor.locks.hold([old, new]),
    ):
        _check_not_root(new)
        status = old.lstat()
        if status is None:
            raise missing(source, "path")
        yield old, new, status


def _check_not_root(place: Place) -> None:
    if not place.path:
        raise protected_path(b"", "the project's root itself is never replaced")


def _check_transfer(
    editor: Editor, old: Place, new: Place, options: WriteOptions
) -> list[bytes]:
    """Check that the destination can be taken; returns the paths below the source, itself included as an empty one."""
    text = format_path(new.path)
    if not old.path or (new.path + b"/").startswith(old.path + b"/"):
        raise InvalidParams(
            f"a folder cannot be put into itself: {text}",
            field="dst",
            target_path=text,
        )
    _check_free(old, new, options)
    # Only with overwrite: else the destination is free, or was refused.
    if (old.path + b"/").startswith(new.path + b"/"):
        raise InvalidParams(
            f"the destination holds the source: {text}", field="dst", target_path=text
        )
    if options.overwrite and new.lstat() is not None:
        _list_tree(editor, new)  # nothing protected may be in what is replaced
    return _list_tree(editor, old)


def _check_free(old: Place, new: Place, options: WriteOptions) -> None:
    status = new.lstat()
    moved = old.lstat()
    if status is None or options.overwrite:
        return
    respelled = (
        moved is not None
        and os.path.samestat(status, moved)
        and old.name.lower() == new.name.lower()
    )
    if (
        not respelled
    ):  # on a case-insensitive file system, another case of the name is the same file
        raise destination_exists(new.path)


def _list_tree(editor: Editor, place: Place) -> list[bytes]:
    """Return every path at and below a place, relative to it; refuse a tree with a protected name in it."""
    paths = [b""]
    if not _is_folder(place.lstat()):
        return paths

    def fail(error: OSError) -> None:
        raise error

    most = editor.limits.tree_entries
    with translate_errors(place.path, "path"):
        for folder, folders, files, descriptor in os.fwalk(
            place.name, dir_fd=place.folder, onerror=fail
        ):
            prefix = folder[len(place.name) :]
            check_not_private(editor.root, os.fstat(descriptor), place.path + prefix)
            for name in (
                *folders,
                *files,
            ):  # links to folders are in ``folders``, and not entered
                paths.append(prefix + b"/" + name)
                if is_protected(name):
                    raise protected_path(place.path + paths[-1])
            if len(paths) > most:
                message = f"more than {most} entries: {format_path(place.path)}"
                raise TooLarge(
                    message,
                    observed=len(paths),
                    limit=most,
                    guidance="take its folders one by one",
                )
    return paths


def _copy_file(editor: Editor, old: Place, new: Place, options: WriteOptions) -> None:
    status = new.lstat()
    if _is_folder(status):
        if not options.overwrite:
            raise destination_exists(new.path)
        text = format_path(new.path)
        raise InvalidParams(
            f"is a directory: {text}", reason="target_is_directory", target_path=text
        )
    _check_free(old, new, options)
    if old.key() == new.key():
        return
    with translate_errors(old.path):
        source = _open_source(old.name, old.folder, old.path)
    with Descriptor(source):
        if not options.dry_run:
            keep_mode = status is not None
            change = Change(
                new,
                Original(None, status),
                lambda to: _copy_content(source, to, keep_mode=keep_mode),
            )
            commit_one(editor, change)


def _copy_content(source: int, target: int, *, keep_mode: bool) -> None:
    """Copy an open file's bytes, and unless the target keeps its own its mode."""
    while block := os.read(source, BLOCK):
        write_all(target, block)
    if not keep_mode:
        os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode) & 0o777)


def _open_source(name: bytes, folder: int, path: bytes) -> int:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(path)
    descriptor = os.open(name, FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_a_file(path)
    return descriptor


@contextmanager
def _build_beside(editor: Editor, new: Place) -> Iterator[bytes]:
    """Yield a temporary name to build under; at the end it is renamed, and replaces what was there."""
    temporary = temporary_name()
    backup = temporary_name()
    with Journal(editor.root, [Entry(new.path, temporary, backup)]):
        try:
            yield temporary
            _swap(editor, new, backup, new.folder, temporary)
        except BaseException:
            discard(new.folder, temporary)
            raise


def _swap(editor: Editor, new: Place, backup: bytes, folder: int, name: bytes) -> None:
    """Rename something to a place; what is there is renamed first, as a full folder cannot be replaced by a rename.

    A process killed in between leaves the old under its backup name, and recovery gives it its own again.
    """
    with translate_errors(new.path):
        editor.step("aside")
        with suppress(FileNotFoundError):
            os.rename(new.name, backup, src_dir_fd=new.folder, dst_dir_fd=new.folder)
        editor.step("rename")
        try:
            os.rename(name, new.name, src_dir_fd=folder, dst_dir_fd=new.folder)
        except OSError:
            with suppress(FileNotFoundError):
                new.rename(backup)
            raise
        new.sync()
    editor.step("clean")
    discard(new.folder, backup)


def _rename(editor: Editor, old: Place, new: Place) -> None:
    status = new.lstat()
    moved = old.lstat()
    if status is not None and moved is not None and os.path.samestat(status, moved):
        # Two names of one file: a rename would do nothing, unless only the case
        # differs.
        if old.name.lower() == new.name.lower():
            os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
        else:
            os.unlink(old.name, dir_fd=old.folder)
        new.sync()
        return
    if status is None or not (_is_folder(status) or _is_folder(moved)):
        os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
        new.sync()
        return
    # A folder is involved on either side, and a rename may not replace a folder that
    # has something in it.
    if os.fstat(old.folder).st_dev != os.fstat(new.folder).st_dev:
        raise OSError(
            errno.EXDEV, "another file system"
        )  # before what is there is renamed
    backup = temporary_name()
    with Journal(editor.root, [Entry(new.path, temporary_name(), backup)]):
        _swap(editor, new, backup, old.folder, old.name)


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)


def _copy_any(source: int, name: bytes, target: int, new: bytes) -> None:
    status = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        _copy_folder(source, name, target, new)
    elif stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=target)
    else:
        with (
            Descriptor(_open_source(name, source, name)) as read,
            Descriptor(os.open(new, CREATE, 0o600, dir_fd=target)) as written,
        ):
            _copy_content(read, written, keep_mode=False)


def _copy_folder(source: int, name: bytes, target: int, new: bytes) -> None:
    os.mkdir(new, 0o700, dir_fd=target)
    with (
        Descriptor(os.open(name, LISTING, dir_fd=source)) as read,
        Descriptor(os.open(new, LISTING, dir_fd=target)) as written,
    ):
        for current_name in map(os.fsencode, os.listdir(read)):
            _copy_any(read, current_name, written, current_name)
        os.fchmod(written, stat.S_IMODE(os.fstat(read).st_mode) & 0o777)


def _remove(place: Place) -> None:
    """Remove what is at a place, if it still exists."""
    status = place.lstat()
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(place.name, dir_fd=place.folder)
    else:
        os.unlink(place.name, dir_fd=place.folder)
    place.sync()
