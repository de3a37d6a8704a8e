"""Files of ours and of the user that may be something else: never wait for a pipe, never read a device.

Standard library only, and little of it: commands import this.
"""

import errno
import os
import stat
import sys

from flashgrep.base.paths import PRIVATE_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 16 << 20
"""Of a file that is read whole: a longer one is not what it should be."""

# A link to the null device is how a user says that a file is to be empty.
if sys.platform == "darwin":
    NULL_DEVICE = os.makedev(3, 2)
else:
    NULL_DEVICE = os.makedev(1, 3)


def open_plain_file(path: "str | os.PathLike[str]", flags: int) -> int:
    """Open a file (0600 if it is made).

    Raises:
        OSError: it cannot be opened, or is not a file; the message names it.

    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    status = os.fstat(descriptor)
    is_file = stat.S_ISREG(status.st_mode)
    is_null = status.st_rdev == NULL_DEVICE
    if is_file or is_null:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a file", os.fspath(path))


def read_plain_file(path: "str | os.PathLike[str]", most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: it cannot be read, is not a file, or is longer than ``most`` bytes.

    """
    with os.fdopen(open_plain_file(path, os.O_RDONLY), "rb") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise OSError(errno.EFBIG, f"longer than {most} bytes", os.fspath(path))
    return text


def replace_plain_file(path: "Path", text: str) -> None:
    """Write a file anew, whole or not at all; one process at a time.

    Raises:
        OSError: it cannot be written.

    """
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)  # a process that was killed left it
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(open_plain_file(fresh, flags), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)
