"""Linux's Landlock: a child process that can open only what lies below some folders, whatever links lead elsewhere.

The kernel refuses the rest at the moment of opening, so nothing that is swapped between a check and its use gets out.
A domain is a thread's own: the child is started by a thread that restricts itself first, and then ends.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from flashgrep.files.openat import Descriptor

_CREATE, _ADD_RULE, _RESTRICT = (
    444,
    445,
    446,
)  # system calls, the same on every architecture but alpha
_NO_NEW_PRIVILEGES: Final = 38
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_RULE: Final = struct.Struct("=Qi")
_LIBC = ctypes.CDLL(None, use_errno=True)
_SYSTEM: Final = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
    "/usr/share/git-core", "/usr/share/locale", "/usr/local/bin", "/usr/local/lib", "/usr/local/libexec", "/nix/store",
    "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/passwd", "/etc/nsswitch.conf", "/etc/localtime", "/dev/null",
)  # fmt: skip
"""What a program needs to start; no place where a user keeps repositories."""
StartedT = TypeVar("StartedT")


@cache
def is_available() -> bool:
    """Return whether the kernel can confine a process."""
    if sys.platform != "linux":
        return False
    version: int = _LIBC.syscall(_CREATE, None, 0, _VERSION)
    return version > 0


def start_in_domain(
    start: Callable[[], StartedT], folders: Sequence[int], program: str
) -> StartedT:
    """Run ``start``, whose child processes can only read below ``folders``, given by descriptors, and system folders.

    Raises:
        OSError: the kernel refuses the domain; and whatever ``start`` raises.

    """

    def run() -> StartedT:
        _restrict(folders, program)
        return start()

    with ThreadPoolExecutor(1, thread_name_prefix="git start") as thread:
        return thread.submit(run).result()


def _restrict(folders: Sequence[int], program: str) -> None:
    """Confine this thread, for good."""
    handled = ctypes.c_uint64(_READ_FILE | _READ_DIR)
    with Descriptor(
        _call(_CREATE, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    ) as rules:
        for folder in folders:
            _allow(rules, folder)
        for path in (*_SYSTEM, str(Path(program).resolve().parent)):
            # What this system does not have needs no rule.
            with (
                suppress(FileNotFoundError),
                Descriptor(os.open(path, os.O_PATH | os.O_CLOEXEC)) as number,
            ):
                _allow(rules, number)
        if _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise _last_error()
        _call(_RESTRICT, rules, 0)


def _allow(rules: int, number: int) -> None:
    access = _READ_FILE
    if stat.S_ISDIR(os.fstat(number).st_mode):
        access |= _READ_DIR
    rule = ctypes.create_string_buffer(_RULE.pack(access, number), _RULE.size)
    _call(_ADD_RULE, rules, _PATH_BENEATH, rule, 0)


def _call(number: int, *arguments: object) -> int:
    result: int = _LIBC.syscall(number, *arguments)
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
