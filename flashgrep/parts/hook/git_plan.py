"""``git grep``: git itself, on the tracked files that the index does not rule out and on all that it does not cover.

git searches what its own index lists, in that order, and prints each path below the current folder. So a plan replaces
the paths of the call by those of the files that may match: a path that git does not track adds nothing. Only searches of
the work tree are planned, in a repository whose settings change neither what a pattern means nor what is searched, and
where no entry of git's index is marked to be taken from there instead of the disk.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import FlashgrepError
from flashgrep.files.walk import Walker
from flashgrep.parts.hook.below import check_cover, locate
from flashgrep.parts.hook.grep_arguments import (
    Grammar,
    GrepArguments,
    parse,
    read_pattern,
)
from flashgrep.parts.hook.grep_plan import FEW, MOST_SHARE, Plan, find_likely
from flashgrep.parts.hook.name_globs import check_glob, matches
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.search.snapshot import Snapshot

GREP: Final = "grep"
NO_PAGER: Final = "--no-pager"
MOST_BYTES: Final = 256 * 1024
MOST_NAMED: Final = 400
"""git compares each path with each tracked file, in 11 ns; to read a file takes it about as long as 900 of these."""
SECONDS: Final = 2.0
MOST_ASKED: Final = 8
"""Words that git says are no revisions, in 3 ms each."""
LITERAL: Final = b":(literal)"
NOTHING: Final = LITERAL + b".git/nothing"
"""A path that git never tracks: it still checks its arguments, prints nothing and exits with its status."""
SETTINGS: Final = (
    r"^(grep\.(patterntype|extendedregexp)|submodule\.recurse|core\.sparsecheckout)$"
)
_HARMLESS: Final = """
line-number column full-name files-with-matches name-only null only-matching count heading break show-function
function-context text word-regexp quiet color no-color or
"""
_LETTERS: Final = {
    **dict.fromkeys("nhHlzocIawqpWr0123456789", "harmless"),
    "i": "ignore-case",
    "E": "extended-regexp",
    "F": "fixed-strings",
    "G": "basic-regexp",
    "P": "perl-regexp",
}
_LONG_PLANNED: Final = (
    "ignore-case extended-regexp fixed-strings basic-regexp perl-regexp"
)
GRAMMAR: Final = Grammar(
    _LETTERS,
    {**dict.fromkeys("ABC", "harmless"), "e": "regexp", "f": "file"},
    {
        **dict.fromkeys(_HARMLESS.split(), "harmless"),
        **{name: name for name in _LONG_PLANNED.split()},
    },
    dict.fromkeys(("context", "before-context", "after-context", "threads"), "harmless")
    | {"color": "harmless"},
    stops_at_operand=True,
)
"""Not planned: -v and -L speak of files without a match, --untracked, --no-index and --cached of other files."""


class Git(NamedTuple):
    """The git of a call, and where the user's settings are."""

    program: str
    home: str
    settings: str
    """XDG_CONFIG_HOME, or nothing."""
    path: str = os.defpath
    """PATH, by which git finds its own programs."""

    def run(self, cwd: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run git in a folder, with nothing of this process's own environment that it heeds."""
        # A daemon that a git hook started has that hook's GIT_DIR.
        environ = {"PATH": self.path, "HOME": self.home}
        if self.settings:
            environ["XDG_CONFIG_HOME"] = self.settings
        return subprocess.run(
            [self.program, "-c", "core.fsmonitor=false", *words],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )


def read_arguments(argv: Sequence[str]) -> GrepArguments:
    """Parse what follows ``git``.

    Raises:
        Unplannable: it is no ``git grep``, or has a flag that no plan honours.

    """
    rest = list(argv)
    if rest[:1] == [NO_PAGER]:
        del rest[0]
    if rest[:1] != [GREP]:
        raise Unplannable
    return parse(rest[1:], GRAMMAR)


def plan(
    argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker, git: Git
) -> Plan | None:
    """Return what to give to git in place of these arguments; None: these as they are."""
    try:
        return _plan(argv, cwd, snapshot, walker, git)
    except (Unplannable, FlashgrepError, OSError, ValueError):
        return None
    except subprocess.TimeoutExpired:
        return None


def _plan(
    argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker, git: Git
) -> Plan:
    arguments = read_arguments(argv)
    check_cover(snapshot, walker)
    pattern, operands = read_pattern(arguments, cwd)
    below = locate(b"", cwd, snapshot, walker)
    paths = _read_paths(arguments, operands, cwd, git)
    scope = Scope([path for path in paths if not path.startswith(b":")])
    check_repository(git, cwd)

    searched = snapshot.table.below(below.inside)
    names = _name_files(find_likely(pattern, snapshot), snapshot, below.lead, scope)
    limit = max(FEW, len(searched) * MOST_SHARE)
    if len(names) > min(limit, MOST_NAMED):
        raise Unplannable
    if sum(map(len, names)) > MOST_BYTES:
        raise Unplannable
    words = [*argv[: argv.index(GREP) + 1], *arguments.words]
    if not arguments.has_pattern_flags:
        words += ["-e", arguments.operands[0]]
    # Paths that exclude hold beside ours, as they did beside the call's own.
    excluding = [path for path in paths if path.startswith(b":")]
    given = [*map(os.fsencode, words), b"--", *(names or [NOTHING]), *excluding]
    return Plan(given, max(0, len(searched) - len(names)))


def _name_files(
    likely: Sequence[bytes], snapshot: Snapshot, lead: bytes, scope: "Scope"
) -> list[bytes]:
    """Return the paths that name the files that may match, and all that the index does not cover."""
    files: dict[bytes, None] = {}
    for path, mark in snapshot.pending.items():
        if mark.ours:
            files[path] = None
    files.update(dict.fromkeys(likely))
    names: list[bytes] = []
    for path in files:
        checkpoint()
        if not path.startswith(lead):
            continue
        inner = path.removeprefix(lead)
        if scope.has(inner):
            names.append(LITERAL + inner)
    for path, is_folder in (snapshot.excluded or {}).items():
        checkpoint()
        if not path.startswith(lead):
            continue
        inner = path.removeprefix(lead)
        _, _, name = inner.rpartition(b"/")
        if name != b".git":
            names += scope.narrow(inner, is_folder=is_folder)
    return names


def _read_paths(
    arguments: GrepArguments, operands: Sequence[str], cwd: bytes, git: Git
) -> list[bytes]:
    """Return the paths to search, relative to the current folder.

    Raises:
        Unplannable: one is a revision, or of a form that is not understood.

    """
    before = arguments.bare
    patterns = len(arguments.operands) - len(operands)
    # git takes a word before ``--`` for a revision, and without one if it can.
    if before is not None and before != patterns:
        raise Unplannable
    if before is None and len(operands) > MOST_ASKED:
        raise Unplannable
    for operand in operands:
        is_magic = operand.startswith(":")
        if is_magic and not operand.startswith((":!", ":^", ":(exclude)")):
            raise Unplannable
        if before is None and (is_magic or is_revision(git, cwd, operand)):
            raise Unplannable
        if before is None and "*" not in operand:
            os.lstat(os.path.join(cwd, os.fsencode(operand)))
    return [os.fsencode(operand) for operand in operands]


class Scope:
    """Which files below the current folder the paths of a call name; none: all."""

    def __init__(self, paths: Iterable[bytes]) -> None:
        """Read the paths.

        Raises:
            Unplannable: one leads out of the folder, or is not understood.

        """
        self._plain: list[bytes] = []
        self._globs: list[bytes] = []
        for path in paths:
            if any(part in (b"", b"..") for part in path.rstrip(b"/").split(b"/")):
                raise Unplannable
            if any(char in b"*?[\\" for char in path):
                check_glob(path.decode().replace("/", "") or "/")
                if b"." in path.split(b"/"):
                    raise Unplannable
                self._globs.append(path)
                continue
            plain = os.path.normpath(path)
            if path.endswith(b"/") and plain != b".":
                plain += b"/"
            self._plain.append(b"" if plain == b"." else plain)
        self._is_all = not (self._plain or self._globs) or b"" in self._plain

    def has(self, path: bytes) -> bool:
        """Return whether a file is searched."""
        if self._is_all or any(_is_in(path, plain) for plain in self._plain):
            return True
        return any(matches(glob, path) for glob in self._globs)

    def narrow(self, path: bytes, *, is_folder: bool) -> list[bytes]:
        """Return the paths that name what is searched of a file, or below a folder.

        Raises:
            Unplannable: it cannot be said.

        """
        if not is_folder:
            return [LITERAL + path] if self.has(path) else []
        folder = path + b"/"
        if self._is_all or any(_is_in(folder, plain) for plain in self._plain):
            return [LITERAL + path]
        # What the call names may lie inside the folder.
        inner = [plain for plain in self._plain if _is_in(plain, path)]
        names = [LITERAL + plain for plain in inner]
        for glob in self._globs:
            ending = glob.removeprefix(b"*")
            # Of other wildcards a part may match in the folder's own name.
            if ending == glob or any(char in b"*?[\\/" for char in ending):
                raise Unplannable
            if any(char in b"*?[\\:" for char in path):
                raise Unplannable
            names.append(path + b"/" + glob)
        return names


def _is_in(path: bytes, folder: bytes) -> bool:
    if folder.endswith(b"/"):
        return path.startswith(folder)
    return path == folder or path.startswith(folder + b"/")


def check_repository(git: Git, cwd: bytes) -> None:
    """Check that git searches the files on disk, with patterns in its usual dialect.

    Raises:
        Unplannable: settings or marks in git's index say otherwise, or there is no repository.

    """
    if sys.platform != "linux":
        # Elsewhere git's patterns may be of another library.
        raise Unplannable
    # 1: nothing is set.
    if git.run(cwd, "config", "--get-regexp", SETTINGS).returncode != 1:
        raise Unplannable
    asked = git.run(cwd, "rev-parse", "--is-inside-work-tree", "--git-path", "index")
    is_inside, _, path = asked.stdout.partition(b"\n")
    # Outside of its work tree git searches that instead of the current folder.
    if asked.returncode or is_inside != b"true":
        raise Unplannable
    index = os.path.join(cwd, path.rstrip(b"\n"))
    status = os.stat(index)
    state = (status.st_ino, status.st_mtime_ns, status.st_size)
    if _has_marks(git, cwd, index, state):
        raise Unplannable


@lru_cache(maxsize=64)
def _has_marks(git: Git, cwd: bytes, _index: bytes, _state: tuple[int, ...]) -> bool:
    """Return whether git takes a file's text from its index: ``--assume-unchanged`` and ``--skip-worktree``."""
    listed = git.run(cwd, "ls-files", "-v")
    if listed.returncode:
        raise Unplannable
    return any(line[:1] not in {b"H", b"M"} for line in listed.stdout.splitlines())


def is_revision(git: Git, cwd: bytes, word: str) -> bool:
    """Return whether git would take a word for a revision."""
    return git.run(cwd, "rev-parse", "-q", "--verify", word).returncode == 0
