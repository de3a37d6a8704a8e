"""Makes skipped scenarios fail, since only a test that ran proves a scenario; and shared fixtures of the modules."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand
from tests.scenarios.hosts import Host, host
from tests.scenarios.shops import repositories


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped scenario into a failed one."""
    report = yield
    if report.skipped and item.get_closest_marker("scenario") is not None:
        report.outcome = "failed"
        report.longrepr = f"a scenario may not be skipped: {report.longrepr}"
    return report


@pytest.fixture(scope="module")
def shops(daemon: DaemonAtHand) -> Iterator[Path]:
    """Return the folder of the indexed repositories."""
    with repositories(daemon) as folder:
        yield folder


@pytest.fixture
def searcher(daemon: DaemonAtHand, shops: Path) -> Iterator[Host]:
    """Return a host without a project that gets the tool listed."""
    assert shops.is_dir()
    with host(daemon, "--toolsets", "knowledge") as opened:
        yield opened


@pytest.fixture
def definition(searcher: Host) -> Any:
    """Return the tool's entry in the list."""
    return searcher.tools()["semantic_search"]
