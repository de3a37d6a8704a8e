"""The files of a project: what ``rg --files`` lists, without what ``.flashgrepignore`` excludes.

Regular files only; links are neither followed nor listed. An excluded folder is not read at all.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from flashgrep.base.errors import Busy
from flashgrep.files.ignore import Scope, read_rules
from flashgrep.files.openat import EXHAUSTED, LISTING, NAMES, RootFolder
from flashgrep.files.scopes import RULES_FILES, Scopes, WalkOptions, dialect_of

__all__ = ["Entry", "WalkOptions", "Walker"]

MOST_EXCLUDED = 50_000
"""Excluded entries are kept by path, in about 8 MB; for a tree with more, none are."""
_DOT = ord(".")
_MOST_REPORTED = 3
_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}".encode()


class Entry(NamedTuple):
    """A file as the walk saw it: ``path`` from the root, size in bytes, times in nanoseconds."""

    path: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


_new_entry = (
    tuple.__new__
)  # a third of the time of Entry(...), which matters in a large tree


class _Walk(NamedTuple):
    """What one walk needs to know, and where it reports."""

    private: set[int]
    """Inodes of folders that may be our own."""
    excluded: dict[bytes, bool]
    on_linked: Callable[[bytes], None] | None

    def stat_linked_file(
        self, path: bytes, folder: int, found: os.stat_result
    ) -> os.stat_result:
        """Report a file with several hard links, and return its stat, taken afterwards."""
        if self.on_linked is None:
            return found
        self.on_linked(path)
        return os.stat(path.rpartition(b"/")[2], dir_fd=folder, follow_symlinks=False)


class Walker:
    """Walks one root, and says of single paths whether a walk would visit them; safe to use from several threads."""

    def __init__(
        self,
        root: bytes,
        options: WalkOptions = WalkOptions(),  # noqa: B008 - frozen
        *,
        folder: RootFolder | None = None,
    ) -> None:
        """``folder``: the root, if it is already open."""
        self.root = os.path.realpath(root)
        self.unreadable: dict[bytes, str] = {}
        self._folder = folder or RootFolder(self.root)
        self._options = options
        self._scopes = Scopes(self.root, options)
        self._private = options.private
        self._nothing = options.nothing
        self._subtrees = options.subtrees

    def anew(self) -> "Walker":
        """Return a walker of the same root that has read no rules yet."""
        return Walker(self.root, self._options, folder=self._folder)

    def walk(
        self,
        under: bytes = b"",
        *,
        on_directory: Callable[[bytes], None] | None = None,
        on_linked: Callable[[bytes], None] | None = None,
        excluded: dict[bytes, bool] | None = None,
    ) -> Iterator[Entry]:
        """Yield the files below ``under``; ``on_directory`` is called with each folder before it is read.

        ``on_linked`` is called with each file that has several hard links, before its stat is taken.

        ``excluded`` receives the files and folders (True) that rules exclude in the folders walked, by path, at most
        one more than MOST_EXCLUDED.

        A file that disappears meanwhile is no error; folders that cannot be read are added to ``unreadable``.
        """
        # Rules may have changed, so each walk reads them again.
        self._scopes.forget(under)
        self.forget_unreadable([under])
        if not self.accepts(under, is_dir=True):
            return
        inside = self._scopes.of(under)
        private = {inode for _, inode in self._private.identities()}
        walk = _Walk(private, {} if excluded is None else excluded, on_linked)
        # An explicit stack: recursion would keep a descriptor open for each level.
        if inside is not None:
            pending = [(under, inside)]
        else:
            pending = []
        while pending:
            folder, scope = pending.pop()
            if on_directory is not None:
                on_directory(folder)
            yield from self._visit(
                folder, scope, pending, walk, rules_read=folder == under
            )

    def accepts(self, path: bytes, *, is_dir: bool = False) -> bool:
        """Return whether ``walk`` would visit ``path`` if it were a regular file (or a folder)."""
        folder, _, name = path.rpartition(b"/")
        if not name:
            return is_dir and not folder
        if self._subtrees is not None and not self._subtrees.admits(path):
            return False
        scope = self._scopes.of(folder)
        return (
            scope is not None
            and scope.admits(path, name, is_dir)
            and not self.is_out_of_reach(path)
        )

    def is_out_of_reach(self, path: bytes) -> bool:
        """Return whether ``path`` lies in a folder that the last walk could not read."""
        unreadable = self.unreadable
        if not unreadable:
            return False
        folder = path
        while folder:
            folder = folder.rpartition(b"/")[0]
            if folder in unreadable:
                return True
        return False

    def forget_unreadable(self, folders: Iterable[bytes]) -> None:
        """Forget that ``folders``, and those below them, could not be read."""
        for folder in folders:
            if not folder:
                self.unreadable.clear()
            for path in [
                path
                for path in self.unreadable
                if path == folder or path.startswith(folder + b"/")
            ]:
                del self.unreadable[path]

    def is_ignored(self, path: bytes, *, is_dir: bool) -> bool:
        """Return whether an ignore rule excludes ``path``, an entry of a folder that is walked."""
        folder, _, name = path.rpartition(b"/")
        scope = self._scopes.of(folder)
        return scope is None or scope.ignores(path, name, is_dir=is_dir) is True

    def takes_out_less(self, rules_files: Iterable[bytes]) -> bool:
        """Return whether ripgrep may exclude a file that we do not; ``rules_files``: all that it found on its walk.

        ripgrep is assumed to run without the user's global excludes, and does not know ``.flashgrepignore``: a negated
        pattern in either may re-include a file. If we use only a part of a rules file, ripgrep may exclude more.
        """
        top = self._scopes.of(b"")
        if (
            top is None
            or self.is_of_libraries
            or self._scopes.cut
            or any(False in rules.signs for rules in top.flashgrep)
        ):
            return True
        for path in (*rules_files, self._scopes.excludes):
            is_known = path != self._scopes.excludes and not path.endswith(
                b".flashgrepignore"
            )
            rules = read_rules(os.path.join(self.root, path), dialect=dialect_of(path))
            # For bytes that are not UTF-8, ripgrep prints only the replacement
            # character.
            reincludes = rules is not None and False in rules.signs and not is_known
            if _NOT_UTF8 in path or reincludes or (rules is not None and rules.cut):
                return True
        return False

    @property
    def differs_from_ripgrep(self) -> bool:
        """Whether ripgrep would search other files: it does not know ``.flashgrepignore`` and our own folders."""
        return (
            self._scopes.differs_from_ripgrep or self._nothing or self.is_of_libraries
        )

    @property
    def is_of_libraries(self) -> bool:
        """Whether it walks what ripgrep, run without flags, would not: ignored files, or single folders only."""
        return not self._options.ignore or self._subtrees is not None

    @property
    def lies_within_ripgreps(self) -> bool:
        """Whether ripgrep, run without the user's global excludes, visits every file of the last walk."""
        return not (self.differs_from_ripgrep or self._scopes.reincludes_hidden)

    def forget(self, folder: bytes | None = None) -> None:
        """Forget the rules of ``folder`` and below (None: all rules, also those above the root)."""
        self._scopes.forget(folder or b"")

    @staticmethod
    def is_rules_file(name: bytes) -> bool:
        """Return whether an entry of this name decides which files are searched: an ignore file, or a ``.git``."""
        return name in RULES_FILES

    def outside_rules(self) -> Mapping[bytes, bool]:
        """Return the path of every rules file outside the watched tree; True: only its presence counts.

        When one of them changes, forget and walk again.
        """
        return self._scopes.outside()

    def unused_rules(self) -> str:
        """Return which rules files are used only in part, and how much of them is; empty if there are none."""
        cut = list(self._scopes.cut.items())
        if len(cut) > _MOST_REPORTED:
            more = f", and {len(cut) - _MOST_REPORTED} more files"
        else:
            more = ""
        reported = (
            f"{os.fsdecode(os.path.relpath(file, self.root))}: {what}"
            for file, what in cut[:_MOST_REPORTED]
        )
        return ", ".join(reported) + more

    def _visit(
        self,
        folder: bytes,
        scope: Scope,
        pending: list[tuple[bytes, Scope]],
        walk: _Walk,
        *,
        rules_read: bool,
    ) -> Iterator[Entry]:
        opened, entries = self._listing(folder)
        try:
            names = list(entries)
            if not rules_read and not RULES_FILES.isdisjoint(names):
                scope = self._scopes.enter(
                    folder, scope, RULES_FILES.intersection(names)
                )
            if folder:
                lead = folder + b"/"
            else:
                lead = b""
            # All names are matched against the rules at once; most are mentioned by
            # none and need no further check.
            doubtful = scope.find_mentions(folder, names)
            subtrees = self._subtrees
            for name, entry in entries.items():
                if subtrees is not None and not subtrees.admits(lead + name):
                    continue
                try:
                    is_dir = entry.is_dir(follow_symlinks=False)
                    if (name in doubtful or name[0] == _DOT) and not scope.admits(
                        lead + name, name, is_dir
                    ):
                        if len(walk.excluded) <= MOST_EXCLUDED and (
                            is_dir or entry.is_file(follow_symlinks=False)
                        ):
                            walk.excluded[lead + name] = is_dir
                        continue
                    if is_dir:
                        # Compare inodes first, which costs nothing; only a match needs
                        # the full check.
                        if (
                            entry.inode() in walk.private
                            and self._scopes.of(lead + name) is None
                        ):
                            continue
                        pending.append((lead + name, scope))
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_nlink != 1:
                            status = walk.stat_linked_file(lead + name, opened, status)
                        yield _new_entry(
                            Entry,
                            (
                                lead + name,
                                status.st_size,
                                status.st_mtime_ns,
                                status.st_ctime_ns,
                                status.st_ino,
                            ),
                        )
                except PermissionError as error:
                    # The folder's names may be listed, but nothing in it may be used.
                    self.unreadable[folder] = error.strerror or str(error)
                except OSError:
                    continue  # it vanished after it was listed
        finally:
            if opened >= 0:
                # The entries use it for their own stat calls.
                os.close(opened)

    def _listing(self, folder: bytes) -> tuple[int, dict[bytes, os.DirEntry[str]]]:
        """Return a folder's descriptor, which its entries use, and the entries; -1 if it cannot be read.

        Raises:
            Busy: out of descriptors or memory, which says nothing about the folder.

        """
        opened = -1
        try:
            opened = self._folder.open(folder, LISTING)
            with os.scandir(opened) as listing:
                entries = {entry.name.encode(*NAMES): entry for entry in listing}
        except OSError as error:
            if opened >= 0:
                os.close(opened)
            if error.errno in EXHAUSTED:
                raise Busy(f"out of resources: {error.strerror}") from error
            if not isinstance(error, FileNotFoundError):
                self.unreadable[folder] = error.strerror or str(error)
            return -1, {}
        return opened, entries
