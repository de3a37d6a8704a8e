"""Where git keeps the ignore rules that lie outside the tree."""

import os
import subprocess

_CONFIG_SECONDS = 5  # git reads a few small files; more means a hung network home


def is_repository_top(folder: bytes) -> bool:
    """Return whether ``folder`` holds a ``.git`` (a folder, or the file of a work tree or submodule) or a ``.jj``."""
    return os.path.lexists(folder + b"/.git") or os.path.lexists(folder + b"/.jj")


def exclude_file(top: bytes) -> bytes:
    """Return the path of the repository's ``info/exclude``, which need not exist; work trees share their main one's."""
    git = top + b"/.git"
    pointer = _first_line(git)
    if pointer.startswith(b"gitdir:"):
        git = os.path.join(top, pointer.removeprefix(b"gitdir:").strip())
        common = _first_line(git + b"/commondir")
        if common:
            git = os.path.join(git, common)
    return os.path.normpath(git) + b"/info/exclude"


def global_excludes(folder: bytes) -> bytes:
    """Return the path of the user's global excludes file, as git run in ``folder`` would find it; it need not exist."""
    return _configured(folder) or _config_home() + b"/git/ignore"


def _configured(folder: bytes) -> bytes:
    command = [b"git", b"-C", folder, b"config", b"--type=path", b"--get", b"core.excludesFile"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=_CONFIG_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return b""
    path = answer.stdout.removesuffix(b"\n")
    return os.path.join(folder, path) if path else b""


def _config_home() -> bytes:
    # The one setting read from the environment below the daemon: it is git's, and git reads it just so.
    return os.fsencode(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))


def _first_line(path: bytes) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not be waited for
    except OSError:
        return b""
    try:
        return os.read(handle, 4096).partition(b"\n")[0].strip()
    except OSError:
        return b""
    finally:
        os.close(handle)
