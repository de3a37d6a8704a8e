"""A single message answered without a connection, as a request body of HTTP is."""

from typing import Any

from flashgrep.errors import FlashgrepError, TooLarge, Unavailable
from flashgrep.registry import Session
from flashgrep.rpc.calls import Calls
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import JsonId, error_line


async def answer_once(dispatcher: Dispatcher, session: Session, body: bytes) -> bytes | None:
    """Return the JSON that answers a request or batch, white space and all; None where only notifications came.

    Cancelling the task cancels the calls. Progress and notifications go nowhere.
    """
    limits = dispatcher.limits
    if len(body) > limits.max_line:
        error = TooLarge(
            "request too large", limit_bytes=limits.max_line, observed_bytes=len(body), guidance="send it in parts"
        )
        return error_line(None, error)
    try:
        message = await dispatcher.intake.message(body)
    except FlashgrepError as error:
        return error_line(None, error)
    calls = Calls(dispatcher, _Nobody(session))
    jobs = calls.admit(message)
    return await calls.answer(jobs, is_batch=message.is_batch) if jobs else None


class _Nobody:
    """A client that can be told nothing but the answer."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def notify(self, method: str, params: Any) -> bool:
        """Send nothing."""
        del method, params
        return False

    async def request(self, method: str, params: Any) -> Any:
        """Refuse: there is nobody to ask."""
        del params
        raise Unavailable(f"this client cannot be asked {method}", reason="client_refused")

    def cancel(self, request_id: JsonId, *, silent: bool = False) -> bool:
        """Find no call."""
        del request_id, silent
        return False
