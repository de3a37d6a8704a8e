"""The daemon's log: one JSON object a line, in a file of bounded size; writing it never stops the daemon."""

import json
import logging
import os
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from flashgrep.base.plain_files import open_plain_file

LEVELS: Final = ("debug", "info", "warning", "error")
MOST_CRASHES: Final = 1 << 20
"""Bytes of the file that our standard error and our children's goes to, checked at each new connection."""


class Log:
    """Appends events to a file that is moved to ``NAME.1`` when it reaches ``max_bytes``; at most two files exist.

    A full disk or a removed folder only loses lines. The file is kept open, since running out of descriptors is one of
    the events to log. Events below ``level`` are dropped.
    """

    def __init__(self, path: Path, *, level: str, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._wanted = LEVELS[LEVELS.index(level) :]
        self._descriptor = -1

    def debug(self, event: str, **values: Any) -> None:
        """Log a detail for debugging."""
        self._write("debug", event, values)

    def info(self, event: str, **values: Any) -> None:
        """Log an event."""
        self._write("info", event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Log something that needs attention."""
        self._write("warning", event, values)

    def error(self, event: str, **values: Any) -> None:
        """Log a failure."""
        self._write("error", event, values)

    def exception(self, event: str, **values: Any) -> None:
        """Log an internal failure with the traceback of the exception being handled."""
        self._write(
            "error", event, {**values, "exception": traceback.format_exc().rstrip()}
        )

    def _write(self, level: str, event: str, values: dict[str, Any]) -> None:
        if level not in self._wanted:
            return
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        line = {**values, "event": event, "level": level, "timestamp": now}
        try:
            data = orjson.dumps(line, default=repr, option=orjson.OPT_APPEND_NEWLINE)
        except (
            TypeError
        ):  # a file's name that is not UTF-8, or a number of more than 64 bits
            data = json.dumps(line, default=repr).encode() + b"\n"
        with suppress(OSError):  # the line is lost
            status = None
            if self._descriptor >= 0:
                status = os.fstat(self._descriptor)
            if (
                status is None or status.st_nlink == 0
            ):  # not open yet, or removed under us
                self._open()
                status = os.fstat(self._descriptor)
            if status.st_size + len(data) > self._max_bytes:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._open()
            os.write(self._descriptor, data)

    def _open(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = open_plain_file(self._path, flags)


class RecordHandler(logging.Handler):
    """Sends what libraries and our own modules log to the daemon's log, which is bounded, not to standard error."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, with its traceback."""
        values: dict[str, Any] = {"logger": record.name}
        if record.exc_info is not None and record.exc_info[0] is not None:
            lines = traceback.format_exception(*record.exc_info)
            values["exception"] = "".join(lines).rstrip()
        write = self._log.warning
        if record.levelno >= logging.ERROR:
            write = self._log.error
        write(record.getMessage(), **values)


def trim_crash_log(path: str) -> None:
    """Empty the file of crashes if it is too long; whoever writes to it appends."""
    with suppress(OSError):  # it is not there, or not ours
        if Path(path).stat().st_size > MOST_CRASHES:
            os.truncate(path, 0)
