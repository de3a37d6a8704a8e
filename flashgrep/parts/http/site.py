"""The routes of the page: its static files, which contain no user's code, and signing in by a link.

A browser that opened a one-time link stays signed in until the server ends, by two secrets. The cookie is hidden from
scripts, but browsers send it to every port of the host, so another user's program may receive it. The key is known only
to scripts of our origin, which includes our port.
"""

import hashlib
import hmac
import html
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from flashgrep.base.languages import LANGUAGES

COOKIE: Final = "flashgrep_{port}"
"""Browsers send a cookie to all ports of a host, so each server needs its own name."""
KEY_HEADER: Final = "x-flashgrep-key"
OPEN: Final = ("/", "/opensearch.xml")
OPEN_BELOW: Final = ("/static/", "/login/")
VISITED: Final = frozenset({"/rpc", "/raw"})
"""The paths that a signed-in browser may request."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MEDIA_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
LASTING: Final = "public, max-age=31536000, immutable"
SPENT: Final = "This link was already used, has expired, or belongs to a server that has ended. Run fgrep web for a new one.\n"
LINK_SECONDS: Final = 300.0
MOST_LINKS, MOST_VISITS = 16, 64
"""Beyond these limits the oldest link becomes invalid, or the oldest browser is signed out."""


def is_page(path: str) -> bool:
    """Return whether a path is an address that people open, so a link from anywhere may lead there."""
    return path == "/" or path.startswith("/login/")


def is_open(path: str) -> bool:
    """Return whether a path is served without signing in: the page itself, which is empty until then."""
    return path in OPEN or path.startswith(OPEN_BELOW)


class Document(NamedTuple):
    """Bytes that stay the same while the program runs, and their strong ETag."""

    data: bytes
    media_type: str
    tag: str


def make_document(data: bytes, media_type: str) -> Document:
    """Return a document, with the hash of its bytes as its tag."""
    return Document(data, media_type, f'"{hashlib.sha256(data).hexdigest()[:32]}"')


def send_document(
    document: Document, request: Request, kept: str = "no-cache"
) -> Response:
    """Return the answer with a document, or 304 if the client has it; ``kept``: how long it may keep it unasked."""
    headers = {**HEADERS, "etag": document.tag, "cache-control": kept}
    tags = request.headers.get("if-none-match", "").split(",")
    # A cache on the way may have made the tag a weak one.
    if document.tag in {tag.strip().removeprefix("W/") for tag in tags}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(document.data, headers=headers, media_type=document.media_type)


class Site:
    """The page of one server."""

    def __init__(self, facts: Mapping[str, object], origin: str = "") -> None:
        """Read the files; ``facts``: about the server, for the page; ``origin``: empty: http and the request's host.

        The facts are ``methods``, by name; ``sign_in``: by a ``link``, a ``token`` or a ``proxy``; and ``is_team``.
        """
        self._origin = origin
        assets = {
            file.name: file.read_bytes()
            for file in files("flashgrep.parts.http").joinpath("static").iterdir()
        }
        assets["languages.json"] = describe_languages()
        # The page has forty files. At an address that is theirs alone a browser asks for them once.
        contents = b"".join(assets[name] for name in sorted(assets))
        self._edition = hashlib.sha256(contents).hexdigest()[:16]
        lasting = f'"/static/{self._edition}/'.encode()
        assets["index.html"] = assets["index.html"].replace(b'"/static/', lasting)
        assets["server.json"] = json.dumps(facts).encode()
        self._files: dict[str, Document] = {}
        """By file name. Requests never read any other path."""
        for name, data in assets.items():
            kind = MEDIA_TYPES.get("." + name.rpartition(".")[2])
            if kind is not None:
                self._files[name] = make_document(data, kind)

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", self._show_page),
            Route("/static/{name}", self._send_file),
            Route("/static/{edition}/{name}", self._send_file),
            Route("/opensearch.xml", self._describe_search),
        ]

    async def _show_page(self, request: Request) -> Response:
        return self._send("index.html", request)

    async def _send_file(self, request: Request) -> Response:
        return self._send(request.path_params["name"], request)

    def _send(self, name: str, request: Request) -> Response:
        if name not in self._files:
            return PlainTextResponse("no such file\n", HTTPStatus.NOT_FOUND, HEADERS)
        if request.path_params.get("edition") == self._edition:
            return send_document(self._files[name], request, LASTING)
        return send_document(self._files[name], request)

    async def _describe_search(self, request: Request) -> Response:
        """Send the OpenSearch 1.1 description."""
        root = html.escape(self._origin or f"http://{request.headers['host']}")
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>flashgrep</ShortName>'
            "<Description>Search code</Description><InputEncoding>UTF-8</InputEncoding>"
            f'<Image width="16" height="16" type="image/svg+xml">{root}/static/icon.svg</Image>'
            f'<Url type="text/html" template="{root}/?q={{searchTerms}}"/></OpenSearchDescription>\n'
        )
        kind = "application/opensearchdescription+xml"
        return Response(
            text, headers={**HEADERS, "cache-control": "no-cache"}, media_type=kind
        )


class Visit(NamedTuple):
    """What a browser gets when it signs in: its two secrets, and the address to show."""

    cookie: str
    key: str
    target: str


@dataclass(slots=True)
class Visitors:
    """The unused links, and the browsers that have signed in."""

    _links: OrderedDict[str, tuple[float, str]] = field(default_factory=OrderedDict)
    _keys: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def invite(self, target: str) -> str:
        """Return the path of a link that signs in one browser, once; ``target``: the address to show then."""
        code = secrets.token_urlsafe(32)
        self._links[code] = (time.monotonic() + LINK_SECONDS, target)
        if len(self._links) > MOST_LINKS:
            self._links.popitem(last=False)
        return f"/login/{code}"

    def admit(self, code: str) -> Visit | None:
        """Sign in the browser that opens a link; None if the link is unknown, was used before or has expired."""
        until, target = self._links.pop(code, (0.0, ""))
        if time.monotonic() >= until:
            return None
        visit = Visit(secrets.token_urlsafe(32), secrets.token_urlsafe(32), target)
        self._keys[visit.cookie] = visit.key
        if len(self._keys) > MOST_VISITS:
            self._keys.popitem(last=False)
        return visit

    def is_known(self, cookie: str, key: str) -> bool:
        """Return whether these are the secrets of a signed-in browser."""
        expected = self._keys.get(cookie)
        return expected is not None and hmac.compare_digest(
            expected.encode(), key.encode()
        )


class LinkSignIn:
    """Signing in by a one-time link."""

    def __init__(self, visitors: Visitors, port: int) -> None:
        self._visitors = visitors
        self._port = port

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route("/login/{code}", self._sign_in, methods=["GET"])]

    async def _sign_in(self, request: Request) -> Response:
        """Send a browser its secrets: the cookie, and the key for its scripts, in a page that redirects at once."""
        headers = {**HEADERS, "cache-control": "no-store"}
        # A prefetch or a HEAD request must not use up the link.
        if request.method != "GET" or "prefetch" in request.headers.get(
            "sec-purpose", ""
        ):
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)
        visit = self._visitors.admit(request.path_params["code"])
        if visit is None:
            return PlainTextResponse(SPENT, HTTPStatus.FORBIDDEN, headers)
        facts = f'data-key="{html.escape(visit.key)}" data-target="{html.escape(visit.target)}"'
        page = f'<!doctype html><html lang="en" {facts}><meta charset="utf-8"><title>flashgrep</title>'
        response = HTMLResponse(
            f'{page}<script type="module" src="/static/login.js"></script></html>',
            headers=headers,
        )
        name = COOKIE.format(port=self._port)
        response.set_cookie(
            name, visit.cookie, path="/", httponly=True, samesite="strict"
        )
        return response


def describe_languages() -> bytes:
    """Return the languages as JSON: names accepted by filters, and globs of files."""
    rows = [
        {
            "name": language.name,
            "type": language.type or language.name,
            "aliases": language.aliases.split(),
            "files": language.files.split(),
        }
        for language in LANGUAGES.values()
    ]
    return json.dumps(rows).encode()
