"""What we ask a client: requests of ours, and its replies to them."""

import itertools
import secrets
from dataclasses import dataclass, field
from typing import Any

import anyio

from flashgrep.errors import DeadlineExceeded, Unavailable
from flashgrep.rpc.message import JsonId, Message, Reply, request_line
from flashgrep.rpc.wire import Outbox


@dataclass(slots=True, eq=False)
class _Open:
    """A question awaiting its reply."""

    replied: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None


class Questions:
    """The questions open with one client."""

    def __init__(self, outbox: Outbox, seconds: float) -> None:
        self._outbox = outbox
        self._seconds = seconds
        self._open: dict[JsonId, _Open] = {}
        self._numbers = itertools.count(1)
        # A host that outlives its daemon may reply to a question of the last one; no two have the same id.
        self._name = f"flashgrep-{secrets.token_hex(4)}"

    async def ask(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result.

        Raises:
            Unavailable: the client answered with an error.
            DeadlineExceeded: it did not answer within the limit of a call.

        """
        request_id = f"{self._name}-{next(self._numbers)}"
        question = self._open[request_id] = _Open()
        try:
            await self._outbox.put(request_line(request_id, method, params))
            with anyio.move_on_after(self._seconds):
                await question.replied.wait()
        finally:
            del self._open[request_id]
        if question.reply is None:
            raise DeadlineExceeded(f"the client did not answer {method}")
        if question.reply.error is not None:
            raise Unavailable(f"the client refused {method}", reason="client_refused")
        return question.reply.result

    def settle(self, message: Message) -> None:
        """Hand the replies in a message to those who wait for them; nobody may."""
        for reply in message.items:
            if isinstance(reply, Reply) and reply.id in self._open:
                self._open[reply.id].reply = reply
                self._open[reply.id].replied.set()
