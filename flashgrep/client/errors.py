"""Failures that only a client has; all others are of the error tree, ``flashgrep.base.errors``."""

from flashgrep.base.errors import FlashgrepError, InvalidParams
from flashgrep.client.values import Symbol


class Unreachable(FlashgrepError, ConnectionError):
    """The daemon cannot be started, or ended before it answered."""

    default_reason = "unreachable"


class DaemonEnded(Unreachable):
    """The daemon ended before it answered; the next one can be asked."""


class Incomplete(FlashgrepError):
    """An answer does not cover everything, and ``strict=True`` was asked for; `data` has the coverage."""

    default_reason = "incomplete"


class Ambiguous(InvalidParams):
    """Several definitions have the name: `definitions`. Ask about one of them."""

    default_reason = "ambiguous"

    def __init__(self, name: str, definitions: list[Symbol]) -> None:
        places = [f"{place.path}:{place.line}" for place in definitions[:5]]
        message = f"{len(definitions)} definitions are called {name}: "
        super().__init__(message + ", ".join(places))
        self.definitions = definitions
