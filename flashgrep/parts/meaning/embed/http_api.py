"""A client of one HTTP API: JSON in, JSON out, with retries while the server is busy or unreachable.

Requests carry code and a key, so they go only to the configured host: proxies from the environment are not used, and
redirects are not followed. No message contains a key. Calls block; an endpoint is thread-safe.
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
from urllib.parse import urlsplit

import orjson

from flashgrep.base.errors import ProviderUnavailable

LARGEST_ANSWER = 256 << 20
"""Bytes. 2,048 vectors of 4,096 numbers are about 180 MB of JSON."""

READ_BYTES = 1 << 16
MAX_QUOTED = 200
"""Characters of the server's error text that a message quotes."""

QUERY_ATTEMPTS = 2
"""Attempts while a caller waits who can also be answered without this endpoint."""

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
BUSY: Final = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to wait for an endpoint, and how often to try."""

    timeout: float = 60
    """Seconds for one attempt, from connecting to the last byte."""
    attempts: int = 4
    first_wait: float = 0.5
    """Seconds before the second attempt; doubled before each further one, with a random reduction of up to half."""
    longest_wait: float = 30
    """Seconds; if an endpoint asks for a longer wait, the request fails."""


class Service(NamedTuple):
    """A provider's default URL, and the environment variable with its key."""

    url: str
    key_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A base URL, with its key and retry policy."""

    provider: str
    url: str
    key: str = field(default="", repr=False)
    key_name: str = ""
    retries: RetryPolicy = RetryPolicy()
    others: tuple[str, ...] = ()
    """Providers that an error names as available."""

    def __post_init__(self) -> None:
        place = urlsplit(self.url)
        try:
            place.port  # noqa: B018 - reading it validates it
        except ValueError:
            raise self.failure("invalid port") from None
        if self.key and place.scheme != "https" and place.hostname not in LOCAL:
            raise self.failure(f"{self.key_name} would be sent unencrypted; use https")
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise self.failure(
                f"{self.key_name} has characters that cannot be in a key"
            )

    @classmethod
    def open(
        cls,
        provider: str,
        service: Service,
        url: str,
        environ: Mapping[str, str],
        retries: RetryPolicy,
    ) -> Self:
        """Return a provider's endpoint at ``url``, or at its default URL if that is empty.

        Raises:
            ProviderUnavailable: it has no URL, or needs a key that is not in the environment.
        """
        key = environ.get(service.key_name, "").strip()
        if not (url or service.url):
            raise ProviderUnavailable(
                f"{provider} needs a URL: set url", provider=provider
            )
        if not key and not url and urlsplit(service.url).hostname not in LOCAL:
            raise ProviderUnavailable(
                f"{provider} needs a key: set {service.key_name}", provider=provider
            )
        return cls(
            provider=provider,
            url=url or service.url,
            key=key,
            key_name=service.key_name,
            retries=retries,
        )

    def limit_attempts(self) -> Self:
        """Return the same endpoint with fewer attempts, for a caller that waits."""
        return replace(
            self,
            retries=replace(
                self.retries, attempts=min(QUERY_ATTEMPTS, self.retries.attempts)
            ),
        )

    def failure(self, problem: str) -> ProviderUnavailable:
        """Return an error that names this endpoint, with its key masked."""
        message = f"{self.provider} at {self.url}: {problem}"
        if self.key:
            message = message.replace(self.key, "***")
        return ProviderUnavailable(
            message, available=self.others, provider=self.provider
        )

    def request(self, path: str, body: object = None) -> Any:
        """Return the JSON response to a GET of a path, or to a POST of ``body`` as JSON.

        Raises:
            ProviderUnavailable: no response, an unusable one, or a refusal; the message says which.
        """
        wait = self.retries.first_wait
        for retries_left in range(self.retries.attempts - 1, -1, -1):
            try:
                return self._try(path, None if body is None else orjson.dumps(body))
            except _TransientError as problem:
                if not retries_left or problem.wait > self.retries.longest_wait:
                    if problem.wait:
                        hint = f"; it asks for a wait of {problem.wait:.0f} s"
                    else:
                        hint = ""
                    raise self.failure(f"{problem}{hint}") from None
                time.sleep(max(problem.wait, wait * SystemRandom().uniform(0.5, 1)))
                wait = min(wait * 2, self.retries.longest_wait)
        raise AssertionError("unreachable: attempts is at least 1")

    def _try(self, path: str, data: bytes | None) -> Any:
        place = urlsplit(self.url)
        timeout = self.retries.timeout
        ends = time.monotonic() + timeout
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "flashgrep",
        }
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        connection = HTTPConnection(place.hostname or "", place.port, timeout=timeout)
        if place.scheme == "https":
            connection = HTTPSConnection(
                place.hostname or "", place.port, timeout=timeout, context=_trust()
            )
        try:
            connection.connect()
            socket = connection.sock
            connection.request(
                "GET" if data is None else "POST",
                place.path.rstrip("/") + path,
                data,
                headers,
            )
            with connection.getresponse() as response:
                return self._parse(response, _read_all(response, socket, ends))
        except TimeoutError:
            raise _TransientError(f"no response within {timeout:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise self.failure(
                f"its certificate is not trusted: {error.verify_message}"
            ) from None
        except (
            OSError,
            HTTPException,
            UnicodeError,
        ) as error:  # UnicodeError: an invalid host name
            raise _TransientError(
                f"no connection: {error or type(error).__name__}"
            ) from None
        finally:
            connection.close()

    def _parse(self, response: HTTPResponse, data: bytes) -> Any:
        status = response.status
        if 300 <= status < 400:  # noqa: PLR2004 - the range of redirects
            where = urlsplit(response.headers.get("Location", "")).netloc
            raise self.failure(
                f"it redirects{f' to {where}' if where else ''}; redirects are not followed"
            )
        if status in BUSY or status >= 500:  # noqa: PLR2004 - the range of server errors
            wait = _parse_retry_after(response.headers.get("Retry-After", ""))
            raise _TransientError(f"status {status}{_quote(data)}", wait)
        if status in {401, 403}:
            if self.key:
                key = f"it rejects the key in {self.key_name}"
            else:
                key = f"it needs a key: set {self.key_name}"
            raise self.failure(
                f"{key} (status {status})"
                if self.key_name
                else f"status {status}{_quote(data)}"
            )
        if status != 200:  # noqa: PLR2004 - the status of success in all these APIs
            raise self.failure(f"status {status}{_quote(data)}")
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            raise _TransientError("the response is not JSON") from None


class _TransientError(Exception):
    """A failure after which a retry may succeed; the endpoint asks for a wait of ``wait`` seconds."""

    def __init__(self, problem: str, wait: float = 0) -> None:
        super().__init__(problem)
        self.wait = wait


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


def _read_all(response: HTTPResponse, socket: Any, ends: float) -> bytes:
    """Read a response until ``ends`` on the monotonic clock, since a socket's timeout restarts with every byte."""
    answer = bytearray()
    while part := response.read1(READ_BYTES):
        answer += part
        seconds_left = ends - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError
        if len(answer) > LARGEST_ANSWER:
            raise HTTPException("the response is too large")
        socket.settimeout(seconds_left)
    return bytes(answer)


def _parse_retry_after(text: str) -> float:
    """Return the seconds of a Retry-After header, in either form (RFC 9110, 10.2.3)."""
    if text.strip().isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return 0
    return max(
        0.0,
        (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        - datetime.now(UTC).timestamp(),
    )


def _quote(data: bytes) -> str:
    """Return the text of an error's body, on one line."""
    try:
        answer = orjson.loads(data)
    except orjson.JSONDecodeError:
        answer = data.decode(errors="replace")
    for name in ("error", "message", "detail"):
        answer = answer.get(name, answer) if isinstance(answer, dict) else answer
    plain = " ".join(
        "".join(
            letter if letter.isprintable() else " " for letter in str(answer)
        ).split()
    )
    return f": {plain[:MAX_QUOTED]}" if plain else ""
