"""Browsers that a one-time link has let in, for as long as the server runs.

A browser proves itself by two secrets. The cookie is hidden from scripts, but goes to whatever listens on another port
of the same host, another user's program included. The key is known to scripts of our origin alone, which has our port.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

LINK_SECONDS: Final = 300.0
MOST_LINKS, MOST_VISITS = 16, 64
"""Past these the oldest is forgotten: its link leads nowhere, or its browser needs another one."""


class Visit(NamedTuple):
    """What a browser is given: its two secrets, and where on the page it begins."""

    cookie: str
    key: str
    target: str


@dataclass(slots=True)
class Visitors:
    """Links that wait to be opened, and the browsers that have opened one."""

    _links: OrderedDict[str, tuple[float, str]] = field(default_factory=OrderedDict)
    _keys: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def invite(self, target: str) -> str:
        """Return the path of a link that lets one browser in, once; ``target``: the address it is shown then."""
        code = secrets.token_urlsafe(32)
        self._links[code] = (time.monotonic() + LINK_SECONDS, target)
        if len(self._links) > MOST_LINKS:
            self._links.popitem(last=False)
        return f"/login/{code}"

    def admit(self, code: str) -> Visit | None:
        """Let in who opens a link; None where it is none of ours, was opened before or is too old."""
        until, target = self._links.pop(code, (0.0, ""))
        if time.monotonic() >= until:
            return None
        visit = Visit(secrets.token_urlsafe(32), secrets.token_urlsafe(32), target)
        self._keys[visit.cookie] = visit.key
        if len(self._keys) > MOST_VISITS:
            self._keys.popitem(last=False)
        return visit

    def is_known(self, cookie: str, key: str) -> bool:
        """Tell whether these are the secrets of a browser that was let in."""
        expected = self._keys.get(cookie)
        return expected is not None and hmac.compare_digest(expected.encode(), key.encode())
