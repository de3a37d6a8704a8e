"""A call's results sent in parts, as they are found, before its answer, for a request that asks for them.

The parts are pages, each asked for where the one before ended, so they are in order and none is sent twice. The first
is small, since somebody waits for it, and each is larger than the one before, since each costs something of its own.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from flashgrep.registry import Handler

FIRST: Final = 20
GROWTH: Final = 4
"""A part is so many times as large as the one before."""


def has_parts(handler: Handler) -> bool:
    """Return whether a method's results can be asked for in parts."""
    return {"cursor", "limit"} <= handler.params.model_fields.keys() and not handler.writes


class Parts:
    """The parts of one call's results, as notifications ``$/progress`` with ``token`` and ``value``."""

    def __init__(self, token: str | int, notify: Callable[[str, Any], bool]) -> None:
        self._token = token
        self._notify = notify

    async def send(
        self, handler: Handler, raw: dict[str, Any], run: Callable[[str, dict[str, Any]], Awaitable[Any]]
    ) -> Any:
        """Send the results in parts; return the answer, which has the last part.

        What a client is too far behind to take, or cannot be sent (HTTP), is in the answer.

        Raises:
            InvalidParams: as the method does.

        """
        started, checked = time.monotonic(), handler.validate(raw)
        left: int | None = checked.model_dump(include={"limit"})["limit"]
        size = FIRST
        if left is None or left <= size:  # a page that has its size by a setting is one part
            return await run(handler.name, raw)
        asked, unsent = checked.model_dump(exclude_unset=True), list[Any]()
        allowed = asked.get("deadline_ms")
        while True:
            if allowed is not None:
                asked["deadline_ms"] = max(1, allowed - int((time.monotonic() - started) * 1000))
            result = await run(handler.name, {**asked, "limit": min(size, left)})
            left -= len(result["results"])
            if left <= 0 or not result.get("next") or not result["coverage"]["complete"]:
                return {**result, "results": [*unsent, *result["results"]]}
            part = {"token": self._token, "value": {"results": result["results"]}}
            if unsent or not self._notify("$/progress", part):
                unsent += result["results"]
            size, asked["cursor"] = left if unsent else size * GROWTH, result["next"]
