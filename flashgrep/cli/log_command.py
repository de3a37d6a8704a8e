"""``fgrep daemon logs``: the daemon's log, for people on a terminal, as JSON lines in a pipe; ``-f`` follows it."""

import json
import os
import select
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from flashgrep.base.plain_files import open_plain_file
from flashgrep.cli.daemon_client import fail, find_user_paths
from flashgrep.methods.text import escape_controls

POLL_SECONDS = 0.2
"""Between looks at a log that is followed: files cannot be waited for on every system."""
LAST_BYTES: Final = 64 << 20
"""Of a log, which the settings bound: its earlier lines are not looked at."""
HEAD = frozenset({"event", "level", "timestamp"})
"""Fields of every line; the others are the event's own."""


def logs(
    *,
    lines: Annotated[
        int,
        typer.Option("--lines", "-n", min=0, help="Lines to show, the newest last."),
    ] = 50,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Go on with new lines until interrupted."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines on a terminal, too.")
    ] = False,
) -> None:
    """Show the end of the daemon's log, on a terminal in words. Its path is printed on stderr."""
    log = Path(find_user_paths().log)
    sys.stderr.write(f"{log}\n")
    try:
        os.close(open_plain_file(log, os.O_RDONLY))
    except FileNotFoundError:
        pass  # there is none yet
    except OSError as error:
        fail(str(error))
    is_plain = as_json or not sys.stdout.isatty()
    for line in read_end(log, lines, follow=follow):
        # A program reads the lines as JSON, as they are in the file.
        if is_plain:
            text = line
        else:
            text = describe_line(line)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def read_end(log: Path, count: int, *, follow: bool = False) -> Iterator[str]:
    """Yield the last lines of a log and, if it is followed, all that come after them.

    A log that grows too large is moved away and begun anew; its last lines are read before that.
    """
    file = _open(log)
    partial = b""
    try:
        if file is not None:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            *whole, partial = file.read().split(b"\n")
            if partial and not follow:
                whole.append(partial)
            start = max(0, len(whole) - count)
            yield from map(_decode, whole[start:])
        while follow:
            if file is None:
                file = _open(log)
                partial = b""
            if file is not None:
                piece = file.read()
                if not piece and _is_another(log, file):
                    file.close()
                    file = None
                    continue
                *whole, partial = (partial + piece).split(b"\n")
                yield from map(_decode, whole)
            select.select([], [], [], POLL_SECONDS)
    finally:
        if file is not None:
            file.close()


def describe_line(line: str) -> str:
    """Return a line of the log in words: local time, level, event, and the event's values."""
    try:
        event: dict[str, Any] = json.loads(line)
        moment = datetime.fromisoformat(event["timestamp"]).astimezone()
        head = f"{moment:%b %d %H:%M:%S} {event['level']:<7} {event['event']}"
    except (ValueError, KeyError, TypeError):  # not written by the daemon's log
        return escape_controls(line)
    values = []
    exception = ""
    for name, value in event.items():
        if name == "exception":
            rows = map(escape_controls, str(value).splitlines())
            exception = "".join(f"\n    {row}" for row in rows)
        elif name not in HEAD:
            if isinstance(value, str):
                shown_text = value
            else:
                shown_text = json.dumps(value)
            values.append(f"{name}={shown_text}")
    text = escape_controls(" ".join([head, *values]))
    return text + exception


def _open(log: Path) -> BinaryIO | None:
    try:
        return os.fdopen(open_plain_file(log, os.O_RDONLY), "rb")
    except OSError:
        return None


def _is_another(log: Path, file: BinaryIO) -> bool:
    """Return whether another file, or none, has the log's name now."""
    try:
        current = log.stat()
    except FileNotFoundError:
        return True
    return not os.path.samestat(current, os.fstat(file.fileno()))


def _decode(line: bytes) -> str:
    return line.decode(errors="replace")
