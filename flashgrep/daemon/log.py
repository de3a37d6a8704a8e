"""The daemon's log: one JSON object a line, in a file of bounded size; writing it never stops the daemon."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import structlog

from flashgrep.places import PRIVATE_FILE

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class RotatedFile:
    """A text file that is moved to ``NAME.1`` when it reaches ``max_bytes``; at most two files exist.

    A full disk, a removed folder or a lack of descriptors loses lines (``lost`` counts them) and nothing else.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
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
        # Opened for each line: the daemon logs a few lines a minute, and so survives a file removed under it.
        if self._path.exists() and self._path.stat().st_size + len(data) > self._max_bytes:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, PRIVATE_FILE)
        try:
            os.write(descriptor, data)  # one write, so that lines of two processes never mix
        finally:
            os.close(descriptor)


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
