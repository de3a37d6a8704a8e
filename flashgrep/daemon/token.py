"""The token: the secret by which others than the user's own processes get in, over TCP and HTTP."""

import errno
import fcntl
import os
import re
import secrets
import stat
from pathlib import Path

from flashgrep.base.own_folders import clear_place
from flashgrep.base.paths import PRIVATE_FILE, Paths

TOKEN_BYTES = 32
LINE = re.compile(rb"([0-9a-f]{64})\n?")
"""What the file holds: the token in hexadecimal digits."""
MOST_LINE = 2 * TOKEN_BYTES + 2
"""One byte more than the line has: a file with more holds something else."""
FRESH_SUFFIX = ".new"
"""Of the file that is renamed to the token; one that a killed process left is used again."""
SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Never through a link, and never waiting for a pipe."""
NO_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})
"""What opening says of nothing, of a link and of a socket."""


def read_token(paths: Paths) -> str:
    """Return the secret for TCP access by others and for writing, readable only by its user.

    It is made on first use, and anew if the file holds no token: it was emptied, cut off, or replaced by a link.

    Raises:
        OSError: it can be neither read nor written.

    """
    path = Path(paths.token)
    return _read(path) or _make(path)


def _read(path: Path) -> str | None:
    """Return the token in a file; None if there is no file, or it holds none.

    Raises:
        OSError: it cannot be read, which does not mean that there is none: no descriptor may be free.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | SAFELY)
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        line = LINE.fullmatch(os.read(descriptor, MOST_LINE))
    finally:
        os.close(descriptor)
    if line is None:
        return None
    return line[1].decode()


def _make(path: Path) -> str:
    """Write a new token beside the file and rename it, so that the file holds a whole token or is not there.

    Of several processes the first to lock the new file makes the token, and the others return it.
    """
    fresh = path.with_name(path.name + FRESH_SUFFIX)
    if os.path.lexists(fresh) and (fresh.is_symlink() or not fresh.is_file()):
        clear_place(fresh)
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | SAFELY, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # Whoever held the lock before has renamed this file, or another of its name, to
        # the token.
        new_token = _read(path)
        if new_token is not None:
            return new_token
        token = secrets.token_hex(TOKEN_BYTES)
        os.ftruncate(file.fileno(), 0)
        os.fchmod(file.fileno(), PRIVATE_FILE)
        file.write(token.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
        fresh.replace(path)
    return token
