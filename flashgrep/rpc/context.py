"""What an extension sees of the request it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from flashgrep.registry import Call, Session
from flashgrep.rpc.message import JsonId, Params, Request


class Log(Protocol):
    """What we ask of a logger."""

    def debug(self, event: str, **values: Any) -> Any:
        """Note what is only of interest when looking for it."""

    def warning(self, event: str, **values: Any) -> Any:
        """Note what somebody should look at."""

    def exception(self, event: str, **values: Any) -> Any:
        """Note a failure of ours, with the trace of the exception being handled."""


class Peer(Protocol):
    """The client's end of a connection."""

    session: Session

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification unless the client is too far behind; say whether it was sent."""

    async def request(self, method: str, params: Any) -> Any:
        """Ask the client something and return its result."""

    def cancel(self, request_id: JsonId, *, silent: bool = False) -> bool:
        """End a call in flight; say whether there was one."""


@dataclass(slots=True, eq=False)
class RequestContext:
    """One request: who asks, what, and the means to answer it by other methods."""

    peer: Peer
    request: Request
    call: Call[Any]
    run_method: Callable[[Call[Any], str, Params], Awaitable[Any]]

    @property
    def session(self) -> Session:
        """What the connection is bound to; an extension may change it."""
        return self.call.session

    async def call_method(self, name: str, raw_params: Mapping[str, Any]) -> Any:
        """Call a registered method within this request: its deadline, progress and cancellation hold.

        Raises:
            FlashgrepError: as the method does; MethodNotFound for no such method.

        """
        return await self.run_method(self.call, name, dict(raw_params))

    def notify(self, method: str, params: Any) -> bool:
        """Send the client a notification unless it is too far behind; say whether it was sent."""
        return self.peer.notify(method, params)


Extension: TypeAlias = Callable[[RequestContext, Params], Awaitable[Any]]
"""Answers a method outside the registry; its result is JSON-ready."""
