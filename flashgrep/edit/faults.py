"""What the operating system refuses, as the project's errors."""

import base64
import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from flashgrep.errors import Busy, FlashgrepError, Forbidden, InvalidParams, NotFound, Unavailable

Kind = Literal["file", "directory", "path"]


def shown(path: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become U+FFFD."""
    return path.decode("utf-8", "replace") or "."


def is_shown_whole(path: bytes) -> bool:
    """Tell whether the text shown for a path is the path."""
    return not path or shown(path).encode() == path


def as_base64(path: bytes) -> str:
    """Return a path's bytes in base64, for the field beside a text that could not hold them."""
    return base64.b64encode(path).decode("ascii")


def missing(path: bytes, kind: Kind = "file") -> NotFound:
    """Return the error for something that is not there."""
    message = f"{kind} not found: {shown(path)}"
    return NotFound(message, reason=f"{kind}_not_found", target_path=shown(path), target_kind=kind)


def not_a_file(path: bytes) -> InvalidParams:
    """Return the error for a folder, device, socket or pipe where a file is needed."""
    return InvalidParams(f"not a regular file: {shown(path)}", reason="not_a_file", target_path=shown(path))


def outside(path: bytes) -> Forbidden:
    """Return the error for a path that leaves the root."""
    return Forbidden(f"path leaves the project: {shown(path)}", target_path=shown(path))


def named(error: OSError, path: bytes, kind: Kind = "file") -> FlashgrepError:
    """Return the project's error for an operating system's."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return missing(path, kind)
    if error.errno == errno.ELOOP:
        # The name became a link after it was looked at: somebody replaces it again and again.
        return Busy(f"path keeps changing: {shown(path)}", target_path=shown(path))
    if error.errno == errno.EISDIR:
        return not_a_file(path)
    reason, what = _REASONS.get(error.errno or 0, ("io_error", "the system refused"))
    data = {"target_path": shown(path), "errno": errno.errorcode.get(error.errno or 0, "")}
    return _CLASSES.get(reason, Unavailable)(f"{what}: {shown(path)}", reason=reason, **data)


@contextmanager
def telling(path: bytes, kind: Kind = "file") -> Iterator[None]:
    """Raise whatever the system refuses inside as the project's error, naming this path."""
    try:
        yield
    except OSError as error:
        raise named(error, path, kind) from error


_REASONS = {
    errno.EACCES: ("permission_denied", "permission denied"),
    errno.EPERM: ("permission_denied", "operation not permitted"),
    errno.EROFS: ("read_only", "file system is read-only"),
    errno.ENOSPC: ("no_space", "no space left for"),
    errno.EDQUOT: ("no_space", "quota exceeded for"),
    errno.EFBIG: ("no_space", "file size limit exceeded for"),
    errno.ENAMETOOLONG: ("invalid_params", "name too long"),
    errno.EINVAL: ("invalid_params", "name not possible here"),
    errno.EILSEQ: ("invalid_params", "name not possible here"),
    errno.EMFILE: ("busy", "too many open files"),
    errno.ENFILE: ("busy", "too many open files"),
    errno.EBUSY: ("busy", "in use by the system"),
}
_CLASSES: dict[str, type[FlashgrepError]] = {
    "permission_denied": Forbidden,
    "read_only": Forbidden,
    "invalid_params": InvalidParams,
    "busy": Busy,
}
