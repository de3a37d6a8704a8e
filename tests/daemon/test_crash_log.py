"""The file of crashes stays short while a daemon runs, and holds nothing that was only logged."""

import json
import logging
from contextlib import closing
from pathlib import Path

from flashgrep.daemon.log import MOST_CRASHES, Log, RecordHandler
from tests.conftest import DaemonAtHand


def test_whoever_writes_to_it_while_a_daemon_runs_fills_no_disk(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.start()
    crashes = Path(cold_daemon.paths.crash_log)
    with crashes.open("ab") as other:
        for _ in range(3):
            other.write(b"x" * MOST_CRASHES + b"\n")
            other.flush()
            with closing(cold_daemon.wire("unix")) as wire:
                assert wire.call("$/status")["pid"]
            assert crashes.stat().st_size <= MOST_CRASHES


def test_a_librarys_warning_is_a_line_of_the_log_with_its_traceback(
    tmp_path: Path,
) -> None:
    handler = RecordHandler(Log(tmp_path / "log", level="info", max_bytes=1 << 20))
    logger = logging.getLogger("library of a test")
    logger.addHandler(handler)
    try:
        (tmp_path / "none").read_bytes()
    except OSError:
        logger.exception("reading %s", "none")
    logger.removeHandler(handler)
    (line,) = (tmp_path / "log").read_text().splitlines()
    told = json.loads(line)
    assert (told["event"], told["logger"]) == ("reading none", logger.name)
    assert "FileNotFoundError" in told["exception"]
