"""A scenario is shown by a test that ran: one that is skipped fails."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped scenario into a failed one."""
    report = yield
    if report.skipped and item.get_closest_marker("scenario") is not None:
        report.outcome = "failed"
        report.longrepr = f"a scenario may not be skipped: {report.longrepr}"
    return report
