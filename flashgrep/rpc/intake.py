"""Taking in what clients send: parsed within bounds, a long text in a thread, or refused for its length."""

from collections.abc import Callable
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from flashgrep.errors import TooLarge
from flashgrep.rpc.codec import decode
from flashgrep.rpc.limits import Limits
from flashgrep.rpc.message import Faulty, Message, Request, read_message

LONG = 64 * 1024
"""Bytes from which on a text is parsed in a thread; handing over costs as much as parsing a tenth of that."""
_PARSING_AT_ONCE = 2


class Intake:
    """Parses what all connections of one dispatcher send.

    ``writes`` tells by method and parameters whether a request may carry the text of a file, and so be long.
    """

    def __init__(self, limits: Limits, writes: Callable[[str, Any], bool]) -> None:
        self._limits = limits
        self._writes = writes
        # Not the threads that searches use: a flood of long lines must not keep them waiting, nor they it.
        self._threads = CapacityLimiter(_PARSING_AT_ONCE)

    async def message(self, line: bytes) -> Message:
        """Return what the line holds; a request too long for its method comes as faulty, with its id.

        Raises:
            Parse: it is not JSON.
            InvalidRequest: it is an empty batch.
            TooLarge: it has too many values, or is a batch that is too long for what it calls.

        """
        if len(line) <= LONG:
            return read_message(line, self._limits.batch_items)
        message = await run_sync(read_message, line, self._limits.batch_items, limiter=self._threads)
        if all(isinstance(item, Request) and self._writes(item.method, item.params) for item in message.items):
            return message
        try:
            self._check_length(len(line))
        except TooLarge as error:
            if message.is_batch:
                raise
            return Message([Faulty(item.id, error) for item in message.items], is_batch=False)
        return message

    async def params(self, method: str, body: bytes) -> Any:
        """Return what the body of a call of ``method`` holds; an empty one holds no parameters.

        Raises:
            Parse: it is not JSON.
            TooLarge: it is too long for the method, or has too many values.

        """
        if not self._writes(method, {}):
            self._check_length(len(body))
        if len(body) <= LONG:
            return decode(body) if body else {}
        return await run_sync(decode, body, limiter=self._threads)

    def _check_length(self, observed: int) -> None:
        limit = self._limits.max_line_reading
        if observed > limit:
            message, guidance = "request too long for a method that does not write", "send it in parts"
            raise TooLarge(message, limit_bytes=limit, observed_bytes=observed, guidance=guidance)
