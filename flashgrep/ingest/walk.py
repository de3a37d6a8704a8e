"""The files that are ours: what ``rg --files`` lists, less what ``.flashgrepignore`` takes out.

Regular files only; links are neither followed nor listed. A folder taken out by a rule is not read at all.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from flashgrep.errors import Busy
from flashgrep.ingest.ignore import Scope, read_rules
from flashgrep.ingest.openat import EXHAUSTED, LISTING, NAMES, RootFolder
from flashgrep.ingest.scopes import SPEAKING, Scopes, WalkOptions

__all__ = ["Entry", "WalkOptions", "Walker"]

MOST_EXCLUDED = 50_000
"""Entries that rules take out are kept by path, in some 8 MB; of a tree with more, none are."""
_DOT = ord(".")
_MOST_TOLD = 3
_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}".encode()


class Entry(NamedTuple):
    """A file as the walk saw it: ``path`` from the root, size in bytes, times in nanoseconds."""

    path: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


_new_entry = tuple.__new__  # a third of the time of Entry(...), which the walk of a large tree notices


class _Walk(NamedTuple):
    """What one walk goes by, and what it tells."""

    private: set[int]
    """Inodes of folders that may be our own."""
    excluded: dict[bytes, bool]
    on_linked: Callable[[bytes], None] | None

    def look_again(self, path: bytes, folder: int, found: os.stat_result) -> os.stat_result:
        """Tell of a file that has other names, and return what it is from then on."""
        if self.on_linked is None:
            return found
        self.on_linked(path)
        return os.stat(path.rpartition(b"/")[2], dir_fd=folder, follow_symlinks=False)


class Walker:
    """Walks one root and answers, path by path, whether the walk would come by; safe to use from several threads."""

    def __init__(
        self,
        root: bytes,
        options: WalkOptions = WalkOptions(),  # noqa: B008 - frozen
        *,
        folder: RootFolder | None = None,
    ) -> None:
        """``folder``: the root as it is open already."""
        self.root = os.path.realpath(root)
        self.unreadable: dict[bytes, str] = {}
        self._folder = folder or RootFolder(self.root)
        self._options = options
        self._scopes = Scopes(self.root, options)
        self._private = options.private
        self._nothing = options.nothing

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
        """Yield the files below ``under``; ``on_directory`` hears of each folder before it is read.

        ``on_linked`` hears of each file that has other names, before what it is now is looked at.

        ``excluded`` is given the files and folders (True) that rules take out of the folders walked, by path; no more
        than one beyond MOST_EXCLUDED.

        What vanishes meanwhile is not an error; folders that cannot be read are left in ``unreadable``.
        """
        # Rules may have changed since they were read; a walk is the moment to read them again.
        self._scopes.forget(under)
        if not under:
            self.unreadable.clear()
        if not self.accepts(under, is_dir=True):
            return
        inside = self._scopes.of(under)
        private = {inode for _, inode in self._private.identities()}
        walk = _Walk(private, {} if excluded is None else excluded, on_linked)
        # A stack of our own: recursion would hold a descriptor open for each level.
        pending = [(under, inside)] if inside is not None else []
        while pending:
            folder, scope = pending.pop()
            if on_directory is not None:
                on_directory(folder)
            yield from self._visit(folder, scope, pending, walk, settled=folder == under)

    def accepts(self, path: bytes, *, is_dir: bool = False) -> bool:
        """Return whether ``walk`` would visit ``path``, were it a regular file (or a folder)."""
        folder, _, name = path.rpartition(b"/")
        if not name:
            return is_dir and not folder
        scope = self._scopes.of(folder)
        return scope is not None and scope.admits(path, name, is_dir)

    def is_ignored(self, path: bytes, *, is_dir: bool) -> bool:
        """Return whether an ignore rule takes out ``path``, an entry of a folder that is walked."""
        folder, _, name = path.rpartition(b"/")
        scope = self._scopes.of(folder)
        return scope is None or scope.ignores(path, name, is_dir=is_dir) is True

    def takes_out_less(self, rules_files: Iterable[bytes]) -> bool:
        """Return whether ripgrep may take out a file that is ours; ``rules_files``: all that it met on its walk.

        It is taken to be told not to ask for the user's excludes, and knows nothing of ``.flashgrepignore``: a rule of
        these may ask a file back. Where we do not use a file's rules to their end it may hide more than we do.
        """
        top = self._scopes.of(b"")
        if top is None or self._scopes.cut or any(False in rules.signs for rules in top.flashgrep):
            return True
        for path in (*rules_files, self._scopes.excludes):
            is_known = path != self._scopes.excludes and not path.endswith(b".flashgrepignore")
            rules = read_rules(os.path.join(self.root, path))
            # Of a name that is not UTF-8 ripgrep prints no more than that.
            asks_back = rules is not None and False in rules.signs and not is_known
            if _NOT_UTF8 in path or asks_back or (rules is not None and rules.cut):
                return True
        return False

    @property
    def differs_from_ripgrep(self) -> bool:
        """Whether ripgrep would search other files: of ``.flashgrepignore`` and our own folders it knows nothing."""
        return self._scopes.differs_from_ripgrep or self._nothing

    @property
    def lies_within_ripgreps(self) -> bool:
        """Whether ripgrep, told not to ask for the user's excludes, meets every file of the last walk."""
        return not (self.differs_from_ripgrep or self._scopes.asks_hidden_back)

    def forget(self, folder: bytes | None = None) -> None:
        """Drop what is remembered of ``folder`` and below (None: of everything, the rules above the root included)."""
        self._scopes.forget(folder or b"")

    @staticmethod
    def is_rules_file(name: bytes) -> bool:
        """Return whether a file of this name changes what is ours: an ignore file, or a repository's top."""
        return name in SPEAKING

    def outside_rules(self) -> Mapping[bytes, bool]:
        """Return the path of every rules file outside the watched tree; True: only whether it is there counts.

        When one of them changes, forget and walk again.
        """
        return self._scopes.outside()

    def unused_rules(self) -> str:
        """Return which rules files are not used to their end, and how far they are; nothing where all are."""
        cut = list(self._scopes.cut.items())
        more = f", and {len(cut) - _MOST_TOLD} files more" if len(cut) > _MOST_TOLD else ""
        told = (f"{os.fsdecode(os.path.relpath(file, self.root))}: {what}" for file, what in cut[:_MOST_TOLD])
        return ", ".join(told) + more

    def _visit(
        self,
        folder: bytes,
        scope: Scope,
        pending: list[tuple[bytes, Scope]],
        walk: _Walk,
        *,
        settled: bool,
    ) -> Iterator[Entry]:
        opened, entries = self._listing(folder)
        try:
            names = list(entries)
            if not settled and not SPEAKING.isdisjoint(names):
                scope = self._scopes.enter(folder, scope, SPEAKING.intersection(names))
            lead = folder + b"/" if folder else b""
            # All names of a folder are held against the rules at once; most are touched by none and need no second
            # look.
            doubtful = scope.touched(folder, names)
            for name, entry in entries.items():
                try:
                    is_dir = entry.is_dir(follow_symlinks=False)
                    if (name in doubtful or name[0] == _DOT) and not scope.admits(lead + name, name, is_dir):
                        if len(walk.excluded) <= MOST_EXCLUDED and (is_dir or entry.is_file(follow_symlinks=False)):
                            walk.excluded[lead + name] = is_dir
                        continue
                    if is_dir:
                        # By inode first, which costs nothing; only a hit is looked at more closely.
                        if entry.inode() in walk.private and self._scopes.of(lead + name) is None:
                            continue
                        pending.append((lead + name, scope))
                    elif entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        found = found if found.st_nlink == 1 else walk.look_again(lead + name, opened, found)
                        yield _new_entry(
                            Entry, (lead + name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
                        )
                except OSError:
                    continue  # it vanished between the listing and the look
        finally:
            if opened >= 0:
                # The entries look through it, so it stays open until all have.
                os.close(opened)

    def _listing(self, folder: bytes) -> tuple[int, dict[bytes, os.DirEntry[str]]]:
        """Return a folder's descriptor, through which its entries look, and these; -1 where it cannot be read.

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
        if self.unreadable:
            self.unreadable.pop(folder, None)
        return opened, entries
