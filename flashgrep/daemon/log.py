"""The daemon's log: one JSON object a line, in a file of bounded size; writing it never stops the daemon."""

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

from flashgrep.places import PRIVATE_FILE

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class RotatedFile:
    """A text file that is moved to ``NAME.1`` when it reaches ``max_bytes``; at most two files exist.

    A full disk or a removed folder loses lines (``lost`` counts them) and nothing else. The file is kept open, for
    a lack of descriptors is one of the things to be logged.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._descriptor = -1
        self.lost = 0

    def write(self, text: str) -> None:
        """Append ``text``, or count it as lost."""
        try:
            self._append(text.encode("utf-8", "replace"))
        except OSError:
            self.lost += 1

    def flush(self) -> None:
        """Do nothing: every write is on its way to the disk already."""

    def _append(self, data: bytes) -> None:
        status = os.fstat(self._descriptor) if self._descriptor >= 0 else None
        if status is None or status.st_nlink == 0:  # not open yet, or removed under us
            self._open()
            status = os.fstat(self._descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size + len(data) > self._max_bytes:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._open()
        os.write(self._descriptor, data)

    def _open(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, PRIVATE_FILE)


def open_log(path: Path, *, level: str, max_bytes: int) -> structlog.typing.FilteringBoundLogger:
    """Return a logger that appends to ``path``; nothing global is configured."""
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(RotatedFile(path, max_bytes)),  # type: ignore[arg-type]
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _as_json,
        ],
    )
    return logger


def _as_json(_logger: Any, _method: str, event: Mapping[str, Any]) -> str:
    return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
