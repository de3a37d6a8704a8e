"""One HTTP API: JSON in, JSON out, tried again while the other side is busy or away.

Straight to the host that was configured: no proxy of the environment is used and no redirect is followed, since what
is sent is code and a key. Keys stand in no message. Blocking; made for threads.
"""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from secrets import SystemRandom
from typing import Any, Final, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

import orjson

from flashgrep.errors import ProviderUnavailable

LARGEST_ANSWER = 256 << 20
"""Bytes: 2,048 vectors of 4,096 numbers are about 180 MB of JSON."""

PIECE = 1 << 16
SHOWN = 200
"""Characters of the other side's own words in a message."""

HURRIED = 2
"""Tries while somebody waits for an answer that can be given without this endpoint."""

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
BUSY: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to bear with an endpoint."""

    timeout: float = 60
    """Seconds for one try, from connecting to the last byte."""
    attempts: int = 4
    first_wait: float = 0.5
    """Seconds before the second try; doubled before each further one, and shortened at random by up to half."""
    longest_wait: float = 30
    """Seconds; an endpoint that asks for more is given up."""


class Home(NamedTuple):
    """Where a provider usually is."""

    url: str
    key_name: str
    """Variable of the environment that has its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A base URL, and how to speak to it."""

    provider: str
    url: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    patience: Patience = Patience()
    others: tuple[str, ...] = ()
    """Providers to name when this one fails."""

    def __post_init__(self) -> None:
        place = urlsplit(self.url)
        try:
            place.port  # noqa: B018 - reading it checks it
        except ValueError:
            raise self.failure("its port is no port") from None
        if self.key and place.scheme != "https" and place.hostname not in LOCAL:
            raise self.failure(f"{self.key_name} would travel unencrypted; use https")
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise self.failure(f"{self.key_name} holds characters that no key has")

    @classmethod
    def found(cls, provider: str, home: Home, url: str, environ: Mapping[str, str], patience: Patience) -> Self:
        """Return a provider's endpoint: at ``url``, or where it usually is if that is empty.

        Raises:
            ProviderUnavailable: it has no place, or needs a key that the environment has not.

        """
        key = environ.get(home.key_name, "").strip()
        if not (url or home.url):
            raise ProviderUnavailable(f"{provider} needs a url", provider=provider)
        if not key and not url and urlsplit(home.url).hostname not in LOCAL:
            raise ProviderUnavailable(f"{provider} needs a key: set {home.key_name}", provider=provider)
        return cls(provider=provider, url=url or home.url, key=key, key_name=home.key_name, patience=patience)

    def post(self, path: str, body: object) -> Any:
        """Return the answer to ``body``, both JSON.

        Raises:
            ProviderUnavailable: no answer, none that can be used, or a refusal; the message says which.

        """
        return self._patiently("POST", path, orjson.dumps(body))

    def get(self, path: str) -> Any:
        """Return the JSON at a path; raises as ``post``."""
        return self._patiently("GET", path, None)

    def hurried(self) -> Self:
        """Return the same endpoint with the patience of somebody who waits."""
        return replace(self, patience=replace(self.patience, attempts=min(HURRIED, self.patience.attempts)))

    def failure(self, problem: str) -> ProviderUnavailable:
        """Return the error that names this endpoint."""
        message = f"{self.provider} at {self.url}: {problem}"
        if self.key:
            message = message.replace(self.key, "***")
        return ProviderUnavailable(message, available=self.others, provider=self.provider)

    def _patiently(self, method: str, path: str, data: bytes | None) -> Any:
        wait = self.patience.first_wait
        for left in range(self.patience.attempts - 1, -1, -1):
            try:
                return self._once(method, path, data)
            except _Passing as problem:
                if not left or problem.wait > self.patience.longest_wait:
                    raise self.failure(problem.told()) from None
                time.sleep(max(problem.wait, wait * SystemRandom().uniform(0.5, 1)))
                wait = min(wait * 2, self.patience.longest_wait)
        raise AssertionError("unreachable: attempts is at least 1")

    def _once(self, method: str, path: str, data: bytes | None) -> Any:
        place, ends = urlsplit(self.url), time.monotonic() + self.patience.timeout
        connection = _connection(place, self.patience.timeout)
        try:
            connection.connect()
            socket = connection.sock
            connection.request(method, place.path.rstrip("/") + path, data, self._headers())
            with connection.getresponse() as response:
                return self._answer(response, _read(response, socket, ends))
        except TimeoutError:
            raise _Passing(f"no answer within {self.patience.timeout:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise self.failure(f"its certificate is not trusted: {error.verify_message}") from None
        except (OSError, HTTPException, UnicodeError) as error:  # the last: a host's name that no name server takes
            raise _Passing(f"no connection: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "flashgrep"}
        return headers | ({"Authorization": f"Bearer {self.key}"} if self.key else {})

    def _answer(self, response: HTTPResponse, data: bytes) -> Any:
        status = response.status
        if 300 <= status < 400:  # noqa: PLR2004 - the range of redirects
            where = urlsplit(response.headers.get("Location", "")).netloc
            raise self.failure(f"it redirects{f' to {where}' if where else ''}, which is not followed")
        if status in BUSY or status >= 500:  # noqa: PLR2004 - the range of the server's own faults
            raise _Passing(f"status {status}{_words(data)}", _retry_after(response.headers.get("Retry-After", "")))
        if status in {401, 403}:
            key = f"it refuses the key in {self.key_name}" if self.key else f"it asks for a key: set {self.key_name}"
            raise self.failure(f"{key} (status {status})" if self.key_name else f"status {status}{_words(data)}")
        if status != 200:  # noqa: PLR2004 - what all these APIs answer with
            raise self.failure(f"status {status}{_words(data)}")
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            raise _Passing("its answer is not JSON") from None


class _Passing(Exception):
    """A failure that another try may mend; ``wait`` seconds are asked for."""

    def __init__(self, problem: str, wait: float = 0) -> None:
        super().__init__(problem)
        self.wait = wait

    def told(self) -> str:
        return f"{self}{f'; it asks to wait {self.wait:.0f} s' if self.wait else ''}"


def _connection(place: SplitResult, timeout: float) -> HTTPConnection:
    host = place.hostname or ""
    if place.scheme == "https":
        return HTTPSConnection(host, place.port, timeout=timeout, context=_trust())
    return HTTPConnection(host, place.port, timeout=timeout)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _read(response: HTTPResponse, socket: Any, ends: float) -> bytes:
    """Read all of an answer, however slowly it drips, until ``ends`` of the monotonic clock."""
    pieces, size = [], 0
    while piece := response.read1(PIECE):
        pieces.append(piece)
        size += len(piece)
        left = ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if size > LARGEST_ANSWER:
            raise HTTPException("the answer is too large")
        socket.settimeout(left)
    return b"".join(pieces)


def _retry_after(text: str) -> float:
    """Return the seconds of a Retry-After header, in either of its forms (RFC 9110, 10.2.3)."""
    if text.strip().isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return 0
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp())


def _words(data: bytes) -> str:
    """Return what an error's body says, on one line."""
    try:
        said = orjson.loads(data)
    except orjson.JSONDecodeError:
        said = data.decode(errors="replace")
    for name in ("error", "message", "detail"):
        said = said.get(name, said) if isinstance(said, dict) else said
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in str(said)).split())
    return f": {plain[:SHOWN]}" if plain else ""
