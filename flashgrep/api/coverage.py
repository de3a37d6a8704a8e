"""What an answer covered: the same in every answer about a project's files."""

import time
from typing import Final, NotRequired

from typing_extensions import TypedDict

COUNT_UP_TO: Final = 20_000
"""Maximum number of files a filter is tried on to count how many it selects (about 1 ms)."""


class Coverage(TypedDict):
    """What an answer covered, so that an empty list never hides a timeout.

    `files_searched`: files read, or ruled out by the index (with a filter over a large project, or before its files are
    listed: files read only). `revision`: the commit that was asked, empty for the index. `unsaved`: this many files
    count as they are in the client's editor, where that differs from the disk. `projects`: if several were asked, those
    that answered, each with its root; numbers are sums then, and `detail` names those that are incomplete.
    """

    complete: bool
    fresh: bool
    files_searched: int
    files_skipped: dict[str, int]
    stage: str
    generation: int
    took_ms: float
    detail: NotRequired[str]
    revision: NotRequired[str]
    unsaved: NotRequired[int]
    projects: NotRequired[dict[str, str]]


def milliseconds_since(started: float) -> float:
    """Return the time since ``started`` on the clock of time.perf_counter()."""
    return round((time.perf_counter() - started) * 1000, 3)
