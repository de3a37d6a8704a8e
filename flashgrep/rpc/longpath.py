"""Unix sockets at paths longer than the 107 bytes that fit an address (103 on macOS). Standard library only.

On Linux through a descriptor of the folder, ``/proc/self/fd/N/name``; elsewhere through a symbolic link to the folder,
kept in a private folder during the call.
"""

import os
import sys
from _socket import (
    socket,  # of which socket.socket is a kind; importing that takes 4 ms
)

TYPE_CHECKING = False
"""As in ``typing``: the ABCs of collections take 3 ms to import."""
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST = 107 if sys.platform == "linux" else 103  # sun_path less its closing zero


def bind_unix(unbound: socket, path: str | bytes) -> None:
    """Bind a socket at ``path``.

    Raises:
        OSError: the path exists or the folder does not.

    """
    use_short_name(os.fsencode(path), unbound.bind)


def use_short_name(path: bytes, use: "Callable[[bytes], None]") -> None:
    """Call a socket's ``bind`` or ``connect`` with a name for ``path`` that fits an address."""
    if len(path) <= LONGEST:
        use(path)
    elif sys.platform == "linux":
        folder, name = os.path.split(path)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # The kernel resolves the folder by its descriptor, so only the name's
            # length counts.
            use(b"/proc/self/fd/%d/%s" % (descriptor, name))
        finally:
            os.close(descriptor)
    else:
        _by_link(path, use)


def _by_link(path: bytes, use: "Callable[[bytes], None]") -> None:
    folder, name = os.path.split(os.path.abspath(path))
    # /tmp, not TMPDIR, which is itself long on macOS. Mode 0700: nobody else can
    # replace our link.
    private = (
        b"/tmp/fgrep-" + os.urandom(8).hex().encode()
    )  # made by mkdir, which fails on an existing one
    link = private + b"/d"
    os.mkdir(private, 0o700)
    try:
        os.symlink(folder, link)
        try:
            use(link + b"/" + name)
        finally:
            os.unlink(link)
    finally:
        os.rmdir(private)
