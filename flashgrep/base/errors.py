"""The error tree: each class carries its wire code, its reason and the exit status a command ends with.

    FlashgrepError                     -32603  internal_error
    ├── Parse                          -32700  parse_error
    ├── InvalidRequest                 -32600  invalid_request
    ├── MethodNotFound                 -32601  method_not_found
    ├── InvalidParams                  -32602  invalid_params
    │   ├── BadPattern                         invalid_pattern     (``at``: offset into the pattern)
    │   ├── InvalidRange                       invalid_range
    │   └── InvalidTrigger                     invalid_trigger
    ├── CollectionRequired             -32603  collection_required
    ├── BadSetting                     -32603  bad_setting         (``source``, ``key``, ``allowed``)
    ├── NotFound                       -32001  file_not_found, directory_not_found, path_not_found, …
    ├── Unavailable                    -32000  index_not_found, skill_unreadable
    │   └── ProviderUnavailable                provider_unavailable (``available``: names of those that would work)
    ├── Conflict                       -32002  precondition_failed, destination_exists, …
    ├── TooLarge                       -32003  payload_too_large
    ├── DeadlineExceeded               -32004  deadline_exceeded
    ├── Cancelled                      -32800  cancelled
    ├── Busy                           -32005  busy
    ├── Forbidden                      -32006  outside_root, read_only, auth_required, control_only, …
    ├── MissingCapability              -32021  missing_capability   (of a client of the Model Context Protocol)
    └── UnsupportedVersion             -32022  unsupported_version  (of the Model Context Protocol)

Raise them anywhere; ``rpc.dispatch`` turns them into JSON-RPC errors, the command line into an exit status.
Messages are lower case, without a full stop, and name the path.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypedDict


class ErrorObject(TypedDict):
    """A JSON-RPC error object: ``data`` always has ``reason``, plus details of the case."""

    code: int
    message: str
    data: dict[str, Any]


MOST_MESSAGE = 4000
"""Maximum number of characters of a message on a wire. It may repeat what a caller sent, which may be megabytes."""


def clip(text: str, most: int) -> str:
    """Return the text, cut to ``most`` characters with an ellipsis."""
    if len(text) <= most:
        return text
    return text[:most] + "…"


class FlashgrepError(Exception):
    """Base of all named failures; anything else that escapes a handler is an internal error."""

    code: ClassVar[int] = -32603
    default_reason: ClassVar[str] = "internal_error"
    exit_status: ClassVar[int] = 2  # as grep: 0 found, 1 nothing found, 2 error

    def __init__(self, message: str, *, reason: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        # Callers decide by the reason; the message is for people and may change.
        self.reason = reason or self.default_reason
        self.data = data

    def to_object(self) -> ErrorObject:
        """Return this failure as a JSON-RPC error object."""
        return {
            "code": self.code,
            "message": clip(self.message, MOST_MESSAGE),
            "data": {"reason": self.reason, **self.data},
        }


class Parse(FlashgrepError):
    """The bytes are not JSON."""

    code = -32700
    default_reason = "parse_error"


class InvalidRequest(FlashgrepError):
    """The JSON is not a JSON-RPC 2.0 request."""

    code = -32600
    default_reason = "invalid_request"


class MethodNotFound(FlashgrepError):
    """No such method."""

    code = -32601
    default_reason = "method_not_found"


class InvalidParams(FlashgrepError):
    """The parameters violate the method's contract; ``data`` names the field and what is allowed."""

    code = -32602
    default_reason = "invalid_params"


class BadPattern(InvalidParams):
    """The pattern cannot be searched; ``data.at`` is the character offset of the fault, ``data.construct`` its text."""

    default_reason = "invalid_pattern"


class InvalidRange(InvalidParams):
    """A line range that does not exist."""

    default_reason = "invalid_range"


class InvalidTrigger(InvalidParams):
    """An unknown bootstrap trigger."""

    default_reason = "invalid_trigger"


class CollectionRequired(FlashgrepError):
    """The connection is bound to no collection and the method needs one."""

    default_reason = "collection_required"


class BadSetting(FlashgrepError):
    """A setting that cannot be used; ``data`` has ``source``, ``key`` and ``allowed``."""

    default_reason = "bad_setting"


class NotFound(FlashgrepError):
    """No such file, folder, symbol, specification or project; the reason says which."""

    code = -32001
    default_reason = "path_not_found"


class Unavailable(FlashgrepError):
    """Something this call needs is not available yet; ``data.suggestion`` says how to get it."""

    code = -32000
    default_reason = "index_not_found"


class ProviderUnavailable(Unavailable):
    """An embedding provider or reranker cannot answer; ``data.available`` names those that can."""

    default_reason = "provider_unavailable"

    def __init__(
        self, message: str, *, available: Sequence[str] = (), **data: Any
    ) -> None:
        super().__init__(message, available=list(available), **data)


class Conflict(FlashgrepError):
    """The files are not as the caller expects."""

    code = -32002
    default_reason = "precondition_failed"


class TooLarge(FlashgrepError):
    """A payload over its limit; ``data`` has ``observed_bytes``, ``limit_bytes`` and ``guidance``."""

    code = -32003
    default_reason = "payload_too_large"


class DeadlineExceeded(FlashgrepError):
    """The call ran out of time before it had an answer."""

    code = -32004
    default_reason = "deadline_exceeded"


class Cancelled(FlashgrepError):
    """The caller cancelled the call."""

    code = -32800  # the Language Server Protocol's RequestCancelled
    default_reason = "cancelled"


class Busy(FlashgrepError):
    """A limit on concurrent work is reached; try again."""

    code = -32005
    default_reason = "busy"


class Forbidden(FlashgrepError):
    """The path, the mode or the connection does not allow it."""

    code = -32006
    default_reason = "outside_root"


class MissingCapability(FlashgrepError):
    """A method needs a capability the client has not declared; ``data.requiredCapabilities`` has the client's form."""

    code = -32021
    default_reason = "missing_capability"


class UnsupportedVersion(FlashgrepError):
    """An unsupported revision of the Model Context Protocol; ``data`` has ``supported`` and ``requested``."""

    code = -32022
    default_reason = "unsupported_version"


def read_error(error: ErrorObject) -> FlashgrepError:
    """Return the failure that a JSON-RPC error object stands for: of the class with its code, and its reason if any."""
    data = dict(error.get("data") or {})
    reason = data.pop("reason", None)
    classes = [FlashgrepError]
    classes += _list_classes(FlashgrepError)
    alike = [kind for kind in classes if kind.code == error["code"]]
    # The most general class of a code comes first.
    best: type[FlashgrepError] = next(iter(alike), FlashgrepError)
    for kind in alike:
        if kind.default_reason == reason:
            best = kind
            break
    failure = best.__new__(best)
    # Classes differ in their arguments; these are what all of them have.
    FlashgrepError.__init__(failure, error["message"], reason=reason, **data)
    # A traceback shows notes, but not the data.
    if data.get("suggestion"):
        failure.add_note(str(data["suggestion"]))
    return failure


def _list_classes(root: type[FlashgrepError]) -> list[type[FlashgrepError]]:
    """Return the classes below one, each before those derived from it."""
    classes: list[type[FlashgrepError]] = []
    for kind in root.__subclasses__():
        classes += [kind, *_list_classes(kind)]
    return classes
