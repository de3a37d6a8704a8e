"""Failures after which work goes on in another way: they are logged and counted, so that none is silent."""

import logging
import sys
import time
from collections import Counter
from threading import Lock
from typing import Final

LOG_SECONDS: Final = 60.0
"""The same kind of failure is logged once in this time, however often it happens."""
_counts: Counter[str] = Counter()
_logged: dict[str, float] = {}
_lock = Lock()


class FailureLog:
    """Logs and counts a module's failures by kind, for the whole process; thread-safe."""

    def exception(self, kind: str) -> None:
        """Count the exception that is handled now; ``kind``: what was being done, in a few fixed words."""
        now = time.monotonic()
        with _lock:
            _counts[kind] += 1
            is_logged = now < _logged.get(kind, -LOG_SECONDS) + LOG_SECONDS
            if not is_logged:
                _logged[kind] = now
        if not is_logged:
            logger = logging.getLogger("flashgrep")
            logger.error("failed: %s", kind, exc_info=sys.exception())


def count_failures() -> dict[str, int]:
    """Return how often each kind of failure has happened in this process."""
    with _lock:
        return dict(_counts)
