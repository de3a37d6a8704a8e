"""Reading, writing, hashing and removing open files; failures of the system become the project's errors.

A function that creates an error is named after the error's reason, here and in the other modules.
"""

import base64
import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from flashgrep.base.errors import (
    Busy,
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    NotFound,
    Unavailable,
)

TEMPORARY = b".flashgrep-tmp-"
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
HASH_SHOWN = 8
"""Hexadecimal digits of a file's hash that a read for a model shows and a precondition takes: of changes of the file
one in 4,000 million goes unnoticed."""
BLOCK = 1 << 20

Kind = Literal["file", "directory", "path"]


def format_path(path: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become U+FFFD."""
    return path.decode("utf-8", "replace") or "."


def encode_path(path: bytes) -> str | None:
    """Return a path in base64 if its text does not hold it, for the field alongside the text; else None."""
    if not path or format_path(path).encode() == path:
        return None
    return base64.b64encode(path).decode("ascii")


def missing(path: bytes, kind: Kind = "file") -> NotFound:
    """Return the error for something missing."""
    text = format_path(path)
    return NotFound(
        f"{kind} not found: {text}",
        reason=f"{kind}_not_found",
        target_path=text,
        target_kind=kind,
    )


def not_a_file(path: bytes) -> InvalidParams:
    """Return the error for a folder, device, socket or pipe where a file is needed."""
    text = format_path(path)
    return InvalidParams(
        f"not a regular file: {text}", reason="not_a_file", target_path=text
    )


def protected_path(path: bytes, problem: str = "never written") -> Forbidden:
    """Return the error for a path that no call may touch."""
    text = format_path(path)
    return Forbidden(f"{problem}: {text}", reason="protected_path", target_path=text)


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


def translate_error(error: OSError, path: bytes, kind: Kind = "file") -> FlashgrepError:
    """Return the project's error for an operating system's."""
    text = format_path(path)
    # ENOTDIR: a part of the path is a file, so nothing can be below it.
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return missing(path, kind)
    if error.errno == errno.ELOOP:
        # The name became a link after it was looked at: somebody replaces it again and
        # again.
        return Busy(f"path keeps changing: {text}", target_path=text)
    if error.errno == errno.EISDIR:
        return not_a_file(path)
    reason, what = _REASONS.get(error.errno or 0, ("io_error", "the system refused"))
    data = {"target_path": text, "errno": errno.errorcode.get(error.errno or 0, "")}
    return _CLASSES.get(reason, Unavailable)(f"{what}: {text}", reason=reason, **data)


@contextmanager
def translate_errors(path: bytes, kind: Kind = "file") -> Iterator[None]:
    """Convert system errors inside the block to the project's errors, naming this path."""
    try:
        yield
    except OSError as error:
        raise translate_error(error, path, kind) from error


def read_all(descriptor: int, size: int) -> bytes:
    """Return everything in an open file, even if it has grown beyond ``size``."""
    parts = []
    offset = 0
    # One byte more than expected, so that a file of this size takes two reads, the
    # second one empty.
    while part := os.pread(descriptor, max(size - offset, 0) + 1, offset):
        parts.append(part)
        offset += len(part)
    if len(parts) == 1:
        return parts[0]
    return b"".join(parts)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, in as many calls as the system needs."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def digest(data: bytes) -> str:
    """Return the SHA-256 of the raw bytes, in hex; it names a file's exact content."""
    return hashlib.sha256(data).hexdigest()


def digest_of(descriptor: int, deadline: float | None = None) -> str:
    """Return the SHA-256 of an open file, read block by block."""
    hasher = hashlib.sha256()
    offset = 0
    while block := os.pread(descriptor, BLOCK, offset):
        if deadline is not None and time.monotonic() > deadline:
            raise DeadlineExceeded(
                "deadline passed while the file was hashed", hashed_bytes=offset
            )
        hasher.update(block)
        offset += len(block)
    return hasher.hexdigest()


def temporary_name() -> bytes:
    """Return a temporary name for a file being written; hidden, so that no search shows it."""
    return TEMPORARY + secrets.token_hex(8).encode("ascii")


def discard(folder: int, name: bytes | None) -> None:
    """Remove a temporary file or folder if it exists."""
    if name is None:
        return
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):  # Linux and macOS, for a folder
        # unlink(2) of a folder: EISDIR on Linux, EPERM on macOS.
        with contextlib.suppress(NotADirectoryError):
            shutil.rmtree(name, dir_fd=folder)
