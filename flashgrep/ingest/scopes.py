"""Which rules hold in which folder: read once, remembered, shared by all folders without rules of their own."""

import os
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from stat import S_ISDIR
from typing import Literal

from flashgrep.ingest.ignore import RuleSet, Scope, read_rules
from flashgrep.ingest.openat import Descriptor
from flashgrep.ingest.outside import States, look_at
from flashgrep.ingest.wildcard import GIT, RIPGREP, Dialect
from flashgrep.own_folders import NO_FOLDERS, PrivateFolders

REPOSITORY = frozenset((b".git", b".jj"))
_CONFIG_SECONDS = 5  # git reads a few small files; more means a hung network home
_MAX_REMEMBERED = 200_000  # folders: some 30 MB, then the table starts afresh
_MAX_SPEAKING = 5_000  # of them with rules of their own, at 10 KB each: the same
_MAX_CUT = 1_000  # files: what is told of more of them nobody reads

_Kind = Literal["flashgrep", "ripgrep", "ignore", "git"]
_KINDS: dict[bytes, tuple[_Kind, Dialect]] = {
    b".gitignore": ("git", GIT),
    b".ignore": ("ignore", RIPGREP),
    b".rgignore": ("ripgrep", RIPGREP),
    b".flashgrepignore": ("flashgrep", RIPGREP),
}
SPEAKING = REPOSITORY | _KINDS.keys()
"""Names whose coming, going or changing changes what is ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """Which rules hold: ripgrep's defaults; ``ignore=False`` is its ``--no-ignore``."""

    hidden: bool = False
    ignore: bool = True
    """False: neither ``.ignore`` and ``.rgignore`` nor git's rules hold."""
    vcs_ignore: bool = True
    flashgrep_ignore: bool = True
    private: PrivateFolders = NO_FOLDERS
    """Folders that are not entered, whatever the rules say."""
    nothing: bool = False
    """No file is ours: the root is a bare repository, whose files are git's own."""


class Scopes:
    """The scope of every folder below ``root``; safe to use from several threads."""

    def __init__(self, root: bytes, options: WalkOptions) -> None:
        self._root = root
        self._base = root.rstrip(b"/") + b"/"
        self._options = options
        self._git = options.ignore and options.vcs_ignore
        wanted = {"flashgrep": options.flashgrep_ignore, "git": self._git}
        self._files = {name: kind for name, kind in _KINDS.items() if wanted.get(kind[0], options.ignore)}
        self._configs = dict.fromkeys(config_files())
        self._excludes: tuple[States, bytes] | None = None
        self._outside: dict[bytes, bool] = {}  # never emptied: the versions of its files are compared over time
        self._known: dict[bytes, Scope | None] = {}
        self.differs_from_ripgrep = False
        """Whether a ``.flashgrepignore``, rules that are not used to their end or a folder of flashgrep's own were met
        since the last ``forget`` of everything."""
        self.asks_hidden_back = False
        """Whether the user's global excludes ask files back, since then: hidden ones, for they yield to all others."""
        self._speaking = 0
        self.cut: dict[bytes, str] = {}
        """Rules files, by path, that are not used to their end, and how far they are."""

    def of(self, folder: bytes) -> Scope | None:
        """Return the rules inside ``folder``, or None when the walk would not enter it."""
        if self._options.nothing:
            return None
        steps = []
        known = self._known
        while folder and folder not in known:
            steps.append(folder)
            folder = folder.rpartition(b"/")[0]
        if folder not in known:
            # The root's own: rules of all folders above it hold in it, too, the nearest one last.
            outer = Scope(hidden=self._options.hidden)
            parts = self._root.split(b"/")
            for depth in range(1, len(parts) if self._root != b"/" else 1):
                above = b"/".join(parts[:depth])
                self._outside.update((above + b"/" + name, False) for name in self._files)
                self._outside.update((above + b"/" + name, True) for name in REPOSITORY if self._git)
                here = _speaking_in(above)
                if here:
                    outer = self._read(above, outer, here, prefix=b"/".join(parts[depth:]) + b"/")
            known[b""] = self.enter(b"", outer, _speaking_in(self._root))
        scope = known[folder]
        for step in reversed(steps):
            scope = self._child(step, scope)
        return scope

    def enter(self, folder: bytes, outer: Scope, names: Collection[bytes]) -> Scope:
        """Return the rules inside ``folder``, a child of ``outer`` whose listing has the rules files ``names``."""
        path = self._base + folder if folder else self._root
        return self._read(path, outer, names, strip=len(folder) + 1 if folder else 0)

    def forget(self, folder: bytes = b"") -> None:
        """Drop what is remembered of ``folder`` and below; of the root: also of what lies above it."""
        if not folder:
            self._known = {}
            self.differs_from_ripgrep = self.asks_hidden_back = False
            self._speaking = 0
            self.cut.clear()
            return
        below = folder + b"/"
        for file in [file for file in self.cut if file.startswith(self._base + below)]:
            self.cut.pop(file, None)
        for known in [known for known in self._known if known == folder or known.startswith(below)]:
            self._known.pop(known, None)

    def outside(self) -> Mapping[bytes, bool]:
        """Return the path of every rules file outside the tree, there or not; True: only whether it is there counts.

        Of a repository above the root nothing else does: git touches that folder all the time.
        """
        self.of(b"")
        return self._outside

    @property
    def excludes(self) -> bytes:
        """Return the user's global excludes file; asked for at the first need, for git may take seconds to tell."""
        known, states = self._excludes, look_at(dict.fromkeys(self._configs, False), self._configs)
        if known is None or known[0] != states:
            known = self._excludes = states, global_excludes(self._root)
        return known[1]

    def _child(self, folder: bytes, outer: Scope | None) -> Scope | None:
        scope = None
        if outer is not None and outer.admits(folder, folder.rpartition(b"/")[2], True):
            try:
                found = os.lstat(self._base + folder)
            except OSError:
                return outer  # not there now: judged by the rules above it, and not remembered
            is_private = (found.st_dev, found.st_ino) in self._options.private.identities()
            self.differs_from_ripgrep |= is_private
            if S_ISDIR(found.st_mode) and not is_private:
                here = _speaking_in(self._base + folder)
                scope = self.enter(folder, outer, here) if here else outer
                self._speaking += bool(here)
        if len(self._known) >= _MAX_REMEMBERED or self._speaking >= _MAX_SPEAKING:
            self._known = {}
            self._speaking = 0
        self._known[folder] = scope
        return scope

    def _read(
        self, path: bytes, scope: Scope, names: Collection[bytes], *, strip: int = 0, prefix: bytes = b""
    ) -> Scope:
        if self._git and not REPOSITORY.isdisjoint(names):
            own = exclude_file(path)
            if own and self._base.startswith(path + b"/"):  # git is asked in the root
                self._configs[own.removesuffix(b"info/exclude") + b"config"] = None
            last = [*filter(None, [own]), self.excludes]
            self._outside.update(dict.fromkeys((*last, *self._configs), False))
            rules = [self._rules(file, strip, prefix, GIT) for file in last]
            self.asks_hidden_back |= rules[-1] is not None and False in rules[-1].signs
            scope = scope.with_rules(git=(), git_last=tuple(found for found in rules if found)).within_git()
        for name, (kind, dialect) in self._files.items():
            if name in names and (kind != "git" or scope.in_git):
                found = self._rules(path + b"/" + name, strip, prefix, dialect)
                if found is not None:
                    self.differs_from_ripgrep |= kind == "flashgrep"
                    scope = scope.with_rules(**{kind: (found, *getattr(scope, kind))})
        return scope

    def _rules(self, file: bytes, strip: int, prefix: bytes, dialect: Dialect) -> RuleSet | None:
        found = read_rules(file, strip=strip, prefix=prefix, dialect=dialect)
        if found is not None and found.cut:
            self.differs_from_ripgrep = True
            if len(self.cut) < _MAX_CUT:
                self.cut[file] = found.cut
        return found or None


def _speaking_in(folder: bytes) -> list[bytes]:
    return [name for name in SPEAKING if os.path.lexists(folder + b"/" + name)]


# Where git keeps the rules that lie outside the tree


def exclude_file(top: bytes) -> bytes:
    """Return the path of the repository's ``info/exclude``, which need not exist; work trees share their main one's.

    A submodule has none, though git knows one: ripgrep does not follow a pointer that leads to no common folder.
    """
    git = top + b"/.git"
    pointer = _read_first_line(git)
    if pointer.startswith(b"gitdir:"):
        git = os.path.join(top, pointer.removeprefix(b"gitdir:").strip())
        common = _read_first_line(git + b"/commondir")
        if not common:
            return b""
        git = os.path.join(git, common)
    return os.path.normpath(git) + b"/info/exclude"


def config_files() -> list[bytes]:
    """Return the user's and the system's settings of git, there or not; what these include is not among them."""
    user = os.environ.get("GIT_CONFIG_GLOBAL")
    users = [user] if user else [os.path.expanduser("~/.gitconfig"), os.fsdecode(_user_folder() + b"/config")]
    return [os.fsencode(path) for path in (*users, os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")]


def _user_folder() -> bytes:
    # Read from the environment below the daemon: it is git's, and git reads it just so.
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.fsencode(home) + b"/git"


def global_excludes(folder: bytes) -> bytes:
    """Return the path of the user's global excludes file, as git run in ``folder`` would find it; it need not exist."""
    command = [b"git", b"-C", folder, b"config", b"--type=path", b"--get", b"core.excludesFile"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=_CONFIG_SECONDS, check=False)
        path = answer.stdout.removesuffix(b"\n")
    except (OSError, subprocess.TimeoutExpired):
        path = b""
    if path:
        return os.path.join(folder, path)
    return _user_folder() + b"/ignore"


def _read_first_line(path: bytes) -> bytes:
    try:
        # A pipe must not be waited for.
        with Descriptor(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)) as handle:
            return os.read(handle, 4096).partition(b"\n")[0].strip()
    except OSError:
        return b""
