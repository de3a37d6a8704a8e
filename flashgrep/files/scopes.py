"""The rules that apply in each folder: read once, cached, shared by all folders without rules of their own."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from stat import S_ISDIR
from typing import Literal

from flashgrep.base.child_process import ChildEnded, run_child
from flashgrep.base.own_folders import NO_FOLDERS, PrivateFolders
from flashgrep.files.ignore import RuleSet, Scope, read_rules
from flashgrep.files.openat import Descriptor
from flashgrep.files.outside import States, stat_files
from flashgrep.files.rule_dialects import GIT_RULES, RIPGREP_RULES, RuleDialect
from flashgrep.files.subtrees import Subtrees

REPOSITORY = frozenset((b".git", b".jj"))
_CONFIG_SECONDS = 5  # git reads a few small files; longer means a hung network home
_CONFIG_MEMORY = 256 << 20
_MOST_POINTER = 4096  # bytes: the maximum of a path
_MAX_CACHED = 200_000  # folders, about 30 MB; then the cache is cleared
_MAX_WITH_RULES = (
    5_000  # folders with rules of their own, 10 KB each; then the cache is cleared, too
)
_MAX_CUT = 1_000  # files to report; nobody reads about more

_Kind = Literal["flashgrep", "ripgrep", "ignore", "git"]
_KINDS: dict[bytes, tuple[_Kind, RuleDialect]] = {
    b".gitignore": ("git", GIT_RULES),
    b".ignore": ("ignore", RIPGREP_RULES),
    b".rgignore": ("ripgrep", RIPGREP_RULES),
    b".flashgrepignore": ("flashgrep", RIPGREP_RULES),
}
RULES_FILES = REPOSITORY | _KINDS.keys()
"""Names of entries that decide which files are searched."""


def dialect_of(file: bytes) -> RuleDialect:
    """Return how the rules in ``file`` are written; those in git's folders and the user's settings are git's."""
    _, dialect = _KINDS.get(file.rpartition(b"/")[2], ("git", GIT_RULES))
    return dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """Which rules apply: by default, those of ripgrep; ``ignore=False`` is its ``--no-ignore``."""

    hidden: bool = False
    ignore: bool = True
    """False: ``.ignore``, ``.rgignore`` and git's rules do not apply."""
    vcs_ignore: bool = True
    flashgrep_ignore: bool = True
    private: PrivateFolders = NO_FOLDERS
    """Folders that are not entered, whatever the rules say."""
    nothing: bool = False
    """No file is searched: the root is a bare repository, whose files are git's own."""
    subtrees: Subtrees | None = None
    """Only what is below these folders; None: everything."""


class Scopes:
    """The scope of every folder below ``root``; safe to use from several threads."""

    def __init__(self, root: bytes, options: WalkOptions) -> None:
        self._root = root
        self._base = root.rstrip(b"/") + b"/"
        self._options = options
        self._git = options.ignore and options.vcs_ignore
        switches = {"flashgrep": options.flashgrep_ignore, "git": self._git}
        self._files = {
            name: kind
            for name, kind in _KINDS.items()
            if switches.get(kind[0], options.ignore)
        }
        self._configs = dict.fromkeys(list_config_files())
        self._excludes: tuple[States, bytes] | None = None
        self._outside: dict[
            bytes, bool
        ] = {}  # never cleared: the states of these files are compared over time
        self._known: dict[bytes, Scope | None] = {}
        self.differs_from_ripgrep = False
        """Whether, since everything was last forgotten, a ``.flashgrepignore``, a rules file used only in part or
        one of flashgrep's own folders has been found."""
        self.reincludes_hidden = False
        """Whether the user's global excludes re-include files: hidden ones only, since these rules come last."""
        self._with_rules = 0
        self.cut: dict[bytes, str] = {}
        """Rules files that are used only in part, by path, and how much of them is."""

    def of(self, folder: bytes) -> Scope | None:
        """Return the rules inside ``folder``, or None if a walk would not enter it."""
        if self._options.nothing:
            return None
        steps = []
        scopes = self._known
        while folder and folder not in scopes:
            steps.append(folder)
            folder = folder.rpartition(b"/")[0]
        if folder not in scopes:
            # Rules of all folders above the root apply, too; the nearest folder comes
            # last.
            outer = Scope(hidden=self._options.hidden)
            parts = self._root.split(b"/")
            for depth in range(1, len(parts) if self._root != b"/" else 1):
                above = b"/".join(parts[:depth])
                self._outside.update(
                    (above + b"/" + name, False) for name in self._files
                )
                self._outside.update(
                    (above + b"/" + name, True) for name in REPOSITORY if self._git
                )
                here = _list_rules_files(above)
                if here:
                    outer = self._read(
                        above, outer, here, prefix=b"/".join(parts[depth:]) + b"/"
                    )
            scopes[b""] = self.enter(b"", outer, _list_rules_files(self._root))
        scope = scopes[folder]
        for step in reversed(steps):
            scope = self._child(step, scope)
        return scope

    def enter(self, folder: bytes, outer: Scope, names: Collection[bytes]) -> Scope:
        """Return the rules inside ``folder``, whose parent has the scope ``outer``; ``names``: its rules files."""
        if folder:
            path = self._base + folder
        else:
            path = self._root
        strip = len(folder) + 1 if folder else 0
        return self._read(path, outer, names, strip=strip)

    def forget(self, folder: bytes = b"") -> None:
        """Forget the rules of ``folder`` and below; for the root, also those above it."""
        if not folder:
            self._known = {}
            self.differs_from_ripgrep = self.reincludes_hidden = False
            self._with_rules = 0
            self.cut.clear()
            return
        below = folder + b"/"
        for file in [file for file in self.cut if file.startswith(self._base + below)]:
            self.cut.pop(file, None)
        for path in [
            known_path
            for known_path in self._known
            if known_path == folder or known_path.startswith(below)
        ]:
            self._known.pop(path, None)

    def outside(self) -> Mapping[bytes, bool]:
        """Return the path of every rules file outside the tree, present or not; True: only its presence counts.

        That is so for the ``.git`` of a repository above the root, since git changes that folder all the time.
        """
        self.of(b"")
        return self._outside

    @property
    def excludes(self) -> bytes:
        """Return the user's global excludes file; looked up at first need, since git may take seconds."""
        known_excludes = self._excludes
        states = stat_files(dict.fromkeys(self._configs, False), self._configs)
        if known_excludes is None or known_excludes[0] != states:
            known_excludes = self._excludes = states, find_global_excludes(self._root)
        return known_excludes[1]

    def _child(self, folder: bytes, outer: Scope | None) -> Scope | None:
        scope = None
        if outer is not None and outer.admits(folder, folder.rpartition(b"/")[2], True):
            try:
                status = os.lstat(self._base + folder)
            except OSError:
                return outer  # missing now: the rules above it apply, and nothing is cached
            is_private = (
                status.st_dev,
                status.st_ino,
            ) in self._options.private.identities()
            self.differs_from_ripgrep |= is_private
            if S_ISDIR(status.st_mode) and not is_private:
                here = _list_rules_files(self._base + folder)
                if here:
                    scope = self.enter(folder, outer, here)
                else:
                    scope = outer
                self._with_rules += bool(here)
        if len(self._known) >= _MAX_CACHED or self._with_rules >= _MAX_WITH_RULES:
            self._known = {}
            self._with_rules = 0
        self._known[folder] = scope
        return scope

    def _read(
        self,
        path: bytes,
        scope: Scope,
        names: Collection[bytes],
        *,
        strip: int = 0,
        prefix: bytes = b"",
    ) -> Scope:
        if self._git and not REPOSITORY.isdisjoint(names):
            own = find_exclude_file(path)
            if own and self._base.startswith(path + b"/"):  # git runs in the root
                self._configs[own.removesuffix(b"info/exclude") + b"config"] = None
            last = [*filter(None, [own]), self.excludes]
            self._outside.update(dict.fromkeys((*last, *self._configs), False))
            rules = [self._rules(file, strip, prefix, GIT_RULES) for file in last]
            last_rules = rules[-1]
            if last_rules is not None and False in last_rules.signs:
                self.reincludes_hidden = True
            scope = scope.with_rules(
                git=(), git_last=tuple(rule for rule in rules if rule)
            ).within_git()
        for name, (kind, dialect) in self._files.items():
            if name in names and (kind != "git" or scope.in_git):
                rule_set = self._rules(path + b"/" + name, strip, prefix, dialect)
                if rule_set is not None:
                    self.differs_from_ripgrep |= kind == "flashgrep"
                    scope = scope.with_rules(
                        **{kind: (rule_set, *getattr(scope, kind))}
                    )
        return scope

    def _rules(
        self, file: bytes, strip: int, prefix: bytes, dialect: RuleDialect
    ) -> RuleSet | None:
        rules = read_rules(
            file,
            strip=strip,
            prefix=prefix,
            dialect=dialect,
        )
        if rules is not None and rules.cut:
            self.differs_from_ripgrep = True
            if len(self.cut) < _MAX_CUT:
                self.cut[file] = rules.cut
        return rules or None


def _list_rules_files(folder: bytes) -> list[bytes]:
    return [name for name in RULES_FILES if os.path.lexists(folder + b"/" + name)]


# Where git keeps the rules that lie outside the tree


def find_exclude_file(top: bytes) -> bytes:
    """Return the path of the repository's ``info/exclude``, which may not exist; work trees share that of the main one.

    Empty for a submodule, though git has one: ripgrep does not follow a ``.git`` file that leads to no common folder.
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


def list_config_files() -> list[bytes]:
    """Return the paths of the user's and the system's git config, present or not; files they include are left out."""
    user = os.environ.get("GIT_CONFIG_GLOBAL")
    if user:
        users = [user]
    else:
        users = [
            os.path.expanduser("~/.gitconfig"),
            os.fsdecode(_user_folder() + b"/config"),
        ]
    return [
        os.fsencode(path)
        for path in (*users, os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    ]


def _user_folder() -> bytes:
    # Read from the environment, an exception below the daemon, because git does the
    # same.
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.fsencode(home) + b"/git"


def find_global_excludes(folder: bytes) -> bytes:
    """Return the path of the user's global excludes file, as git run in ``folder`` finds it; it may not exist."""
    command = [
        b"git",
        b"-C",
        folder,
        b"config",
        b"--type=path",
        b"--get",
        b"core.excludesFile",
    ]
    try:
        answer = run_child(
            command,
            seconds=_CONFIG_SECONDS,
            memory=_CONFIG_MEMORY,
            most=_MOST_POINTER + 1,
            is_alone=True,
        )
        path = answer.out.removesuffix(b"\n")
    except (OSError, ChildEnded):
        path = b""
    if path and len(path) < _MOST_POINTER:
        return os.path.join(folder, path)
    return _user_folder() + b"/ignore"


def _read_first_line(path: bytes) -> bytes:
    """Return the first line of one of git's files; empty if it cannot be the path of a file."""
    try:
        # O_NONBLOCK: a pipe must not block us.
        with Descriptor(
            os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        ) as handle:
            text = os.read(handle, _MOST_POINTER + 1)
    except OSError:
        return b""
    line = text.partition(b"\n")[0]
    # The system accepts no path with a NUL, nor one this long; cut, it would be another
    # path.
    if b"\0" in line or len(line) > _MOST_POINTER:
        return b""
    return line.strip()
