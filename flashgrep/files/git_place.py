"""Where a project's repository is, found without git, and whether it is this project's own.

An agent that may write in a project can make its ``.git`` lead to any repository of the user. A connection bound to the
project reads a repository outside the root only on evidence that cannot be written in the root:

- a linked work tree: the repository lists it (``worktrees/*/gitdir``);
- a submodule, or a separate git folder: ``core.worktree`` in its settings is the root;
- a root below the top of a work tree: the ``.git`` above the root leads there.

Objects borrowed from other repositories (``objects/info/alternates``) are read if the file that names them lies outside
the root; one inside the root could be written by the agent, and those repositories do not list their borrowers.
"""

import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

from flashgrep.base.errors import Forbidden, Unavailable
from flashgrep.base.own_folders import (
    MOST_CONFIG,
    is_below,
    read_git_file,
    read_pointer,
    read_work_tree,
)

MOST_ALTERNATES: Final = 64
"""Other object folders that one repository may borrow from; git itself follows five in a row."""
MOST_ENTRIES: Final = 200_000
"""Files and folders of a repository that are checked for links."""
MOST_REFS: Final = 50_000
"""Files of branches and tags that are looked at; with more, git is asked without a look."""
_OWN_FILES: Final = (
    b"HEAD",
    b"config.worktree",
    b"index",
    b"commondir",
    b"gitdir",
    b"sequencer",
)
_COMMON_FILES: Final = (
    b"HEAD", b"config", b"packed-refs", b"shallow", b"info/grafts", b"info/attributes", b"info/exclude",
    b"objects/info/alternates", b"objects/info/commit-graph", b"objects/info/commit-graphs/commit-graph-chain",
    b"objects/pack/multi-pack-index",
)  # fmt: skip
_REF_FOLDERS: Final = (b"", b"refs/", b"refs/tags/", b"refs/heads/", b"refs/remotes/")
"""Where git looks for a name, in its order (gitrevisions(7))."""


class GitPlace(NamedTuple):
    """A repository: the top of its work tree, git's folder of this work tree, and the one all work trees share."""

    top: bytes
    own: bytes
    common: bytes


def find_place(root: bytes) -> GitPlace | None:
    """Return the repository that git would use in a folder; None if there is none, or a pointer leads nowhere."""
    folder = os.path.realpath(root)
    while True:
        link = os.path.join(folder, b".git")
        if os.path.lexists(link):
            return _resolve(folder, link)
        if all(
            os.path.lexists(os.path.join(folder, name))
            for name in (b"HEAD", b"objects", b"refs")
        ):
            return GitPlace(folder, folder, folder)
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _resolve(top: bytes, link: bytes) -> GitPlace | None:
    try:
        own = os.path.realpath(link)
        if not os.path.isdir(own):
            own = os.path.realpath(os.path.join(top, read_pointer(own, b"gitdir: ")))
    except (OSError, ValueError):
        return None
    try:
        common = os.path.realpath(
            os.path.join(own, read_pointer(os.path.join(own, b"commondir")))
        )
    except (
        OSError,
        ValueError,
    ):  # none as a rule; about a broken one ``check_files`` or git complains
        common = own
    return GitPlace(top, own, common)


def check_files(place: GitPlace) -> None:
    """Refuse a repository with something else than a file in the place of one of git's: git would wait for a pipe.

    Raises:
        Unavailable: repository_broken.

    """
    files = [os.path.join(place.own, name) for name in _OWN_FILES]
    files += [os.path.join(place.common, name) for name in _COMMON_FILES]
    files.append(os.path.join(place.top, b".mailmap"))
    for path in files:
        _check_file(path)


def check_ref(place: GitPlace, name: bytes) -> None:
    """Refuse a name whose file is something else than a file; raises as ``check_files``."""
    for folder in _REF_FOLDERS:
        _check_file(os.path.join(place.common, folder + name))


def check_refs(place: GitPlace) -> None:
    """Refuse a repository with pipes or devices among its branches and tags; raises as ``check_files``."""
    ahead = [os.path.join(place.common, b"refs")]
    count = 0
    while ahead:
        folder = ahead.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        count += len(entries)
        if count > MOST_REFS:  # git's own time then bounds it
            return
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                _check_file(entry.path)


def _check_file(path: bytes) -> None:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # git says what it thinks of that
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        text = os.fsdecode(path).encode("utf-8", "replace").decode()
        raise Unavailable(
            f"git cannot read the repository: not a file: {text}",
            reason="repository_broken",
        )


def state_of(place: GitPlace) -> tuple[tuple[int, ...], ...]:
    """Return what tells a mended repository from the broken one: identity and times of git's files."""
    states: list[tuple[int, ...]] = []
    names = [os.path.join(place.own, name) for name in _OWN_FILES]
    names += [os.path.join(place.common, name) for name in _COMMON_FILES]
    for path in (place.own, place.common, os.path.join(place.common, b"refs"), *names):
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            states.append((-1,))
        else:
            states.append((status.st_dev, status.st_ino, status.st_ctime_ns))
    return tuple(states)


def find_readable(root: bytes, place: GitPlace) -> list[bytes]:
    """Return the folders outside the root that a bound connection may read by git.

    Raises:
        Forbidden: repository_outside, nothing outside the root says that the repository is this project's.

    """
    root = os.path.realpath(root)
    is_above = place.top != root
    inside = [is_below(folder, root) for folder in (place.own, place.common)]
    if not (all(inside) or is_above or _is_listed(root, place)):
        raise Forbidden(
            "the project's .git leads to a repository outside of it, which does not list this folder",
            reason="repository_outside",
            suggestion="git worktree repair in that repository, or git config core.worktree there; "
            "or ask on a connection that is not bound to the project",
        )
    outside = [
        folder for folder in (place.own, place.common) if not is_below(folder, root)
    ]
    return [*outside, *_find_alternates(root, os.path.join(place.common, b"objects"))]


def check_links(root: bytes, readable: Sequence[bytes], place: GitPlace) -> None:
    """Refuse a repository with a link that leads out of the root; where the kernel does not confine git.

    A link that is put there between this check and git's reading is not noticed.

    Raises:
        Forbidden: repository_outside, such a link, or more than ``MOST_ENTRIES`` files.

    """
    root = os.path.realpath(root)
    allowed = (root, *readable)
    # What lies outside the root cannot be written by an agent in it.
    ahead = [folder for folder in {place.own, place.common} if is_below(folder, root)]
    seen: set[bytes] = set()
    count = 0
    while ahead:
        folder = ahead.pop()
        if folder in seen:  # links may lead in circles
            continue
        seen.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:  # git cannot list it either
            continue
        count += len(entries)
        if count > MOST_ENTRIES:
            raise Forbidden(
                "the repository has too many files to check where they lead",
                reason="repository_outside",
                suggestion="git gc; or ask on a connection that is not bound to the project",
            )
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)
                continue
            if not entry.is_symlink():
                continue
            target = os.path.realpath(entry.path)
            if not any(is_below(target, folder) for folder in allowed):
                raise Forbidden(
                    "a link among the repository's files leads out of the project",
                    reason="repository_outside",
                    suggestion="replace the link by what it leads to; or ask on a connection that is not bound to it",
                )
            if is_below(target, root) and os.path.isdir(target):
                ahead.append(target)


def _is_listed(root: bytes, place: GitPlace) -> bool:
    """Return whether a repository outside the root says, in a file outside the root, that the root is its work tree."""
    if is_below(place.own, root):
        return False
    try:
        if place.own == place.common:
            return read_work_tree(place.own) == root
        pointer = read_pointer(os.path.join(place.own, b"gitdir"))
    except (OSError, ValueError):
        return False
    back = os.path.join(place.own, pointer)
    entries = os.path.join(place.common, b"worktrees")
    is_entry = os.path.dirname(place.own) == entries
    is_back = (
        os.path.basename(back) == b".git"
        and os.path.realpath(os.path.dirname(back)) == root
    )
    return is_entry and is_back


def _find_alternates(root: bytes, objects: bytes) -> list[bytes]:
    """Return the object folders outside the root that a repository borrows from; raises as ``find_readable``."""
    ahead = [os.path.realpath(objects)]
    borrowed: list[bytes] = []
    while ahead and len(borrowed) < MOST_ALTERNATES:
        folder = ahead.pop()
        try:
            text = read_git_file(os.path.join(folder, b"info/alternates"), MOST_CONFIG)
        except (OSError, ValueError):
            continue
        for line in text.split(b"\n"):
            if not line or line.startswith(b"#") or b"\0" in line:
                continue
            other = os.path.realpath(os.path.join(folder, line))
            if other in borrowed:
                continue
            if is_below(folder, root) and not is_below(other, root):
                raise Forbidden(
                    "the project's repository borrows objects from one outside of it, which does not know of that",
                    reason="repository_outside",
                    suggestion="git repack -a -d, then remove .git/objects/info/alternates; "
                    "or ask on a connection that is not bound to the project",
                )
            ahead.append(other)
            borrowed.append(other)
    return [other for other in borrowed if not is_below(other, root)]
