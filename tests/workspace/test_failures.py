"""Failures of background work are logged and counted, and ``stats`` tells of them."""

import logging
from pathlib import Path

import pytest

from flashgrep.base.failures import FailureLog, count_failures


def test_a_kind_of_failure_is_counted_each_time_and_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = FailureLog()
    with caplog.at_level(logging.ERROR):
        for number in range(3):
            try:
                Path(f"/nowhere/{number}").stat()
            except OSError:
                log.exception("testing")
    assert count_failures()["testing"] == 3
    (record,) = [one for one in caplog.records if "testing" in one.getMessage()]
    assert record.exc_info is not None
    assert "/nowhere/0" in str(record.exc_info[1])
