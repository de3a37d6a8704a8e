"""A small shop to search by meaning, and helpers for queries."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from flashgrep.parts.meaning.embed import static
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.current_chunks import FoundChunk
from flashgrep.parts.meaning.search.meaning_search import MeaningAnswer, MeaningQuestion
from flashgrep.project import Workspace
from tests.support.workspace import opened, put

FILES = {
    "shop/passwords.py": b'''"""Keeps passwords safe."""

import hashlib


def hash_password(password: str, salt: bytes) -> bytes:
    """Derive a key from a password, slowly, so that guessing it is expensive."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 600_000)


def verify_password(password: str, salt: bytes, expected: bytes) -> bool:
    """Return whether a password is the one that was hashed."""
    return hash_password(password, salt) == expected
''',
    "shop/cart.py": b'''"""A customer's shopping cart."""


class Cart:
    """Articles that a customer wants to buy."""

    def __init__(self) -> None:
        self.articles: dict[str, int] = {}

    def add_article(self, name: str, count: int) -> None:
        """Put articles into the cart."""
        self.articles[name] = self.articles.get(name, 0) + count

    def total_price(self, prices: dict[str, int]) -> int:
        """Sum up what all articles cost together."""
        return sum(prices[name] * count for name, count in self.articles.items())
''',
    "shop/mail.py": b'''"""Sends mail."""

import smtplib


def send_invoice(address: str, text: str) -> None:
    """Deliver an invoice to a customer by electronic mail."""
    with smtplib.SMTP("localhost") as server:
        server.sendmail("shop@example.org", address, text)
''',
    "web/router.ts": b"""export function matchRoute(path: string, routes: Map<string, Handler>): Handler | undefined {
  // Find the handler for a URL by its longest prefix.
  return routes.get(path);
}
""",
    "tests/test_passwords.py": b"""from shop.passwords import hash_password, verify_password


def test_a_hashed_password_is_verified() -> None:
    assert verify_password("secret", b"salt", hash_password("secret", b"salt"))
""",
    "docs/guide.md": b"# Guide\n\n## Deployment\n\nRun the container behind a reverse proxy.\n\n## Backup\n\nDump the "
    b"database every night.\n",
}

TOPICS = ("password", "article", "invoice", "route", "database", "proxy")
"""Topics of the tests' model, one dimension each; ``xyzzy`` is its word for an invoice."""

DEFAULT_MODEL = static.load(static.DATA).name

PASSWORDS, CART, MAIL, ROUTER, TESTS, GUIDE = (path.encode() for path in FILES)


async def asked(workspace: Workspace, text: str, **more: Any) -> MeaningAnswer:
    """Return the answer of an up-to-date project, after checks that every answer must pass."""
    assert await workspace.refresh()
    answer = await search_by_meaning(
        workspace, MeaningQuestion(**{"text": text, "limit": 10, **more})
    )
    scores = [piece.score for piece in answer.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for piece in answer.results:
        assert piece.text == lines_on_disk(workspace, piece), piece
    places = [(piece.path, piece.chunk.start) for piece in answer.results]
    assert len(set(places)) == len(places)
    return answer


async def best(workspace: Workspace, text: str, **more: Any) -> list[bytes]:
    """Return the files of an answer, best first."""
    return list(
        dict.fromkeys(
            piece.path for piece in (await asked(workspace, text, **more)).results
        )
    )


def lines_on_disk(workspace: Workspace, piece: FoundChunk) -> str:
    """Return the lines of a chunk in its file, without trailing blanks."""
    data = (workspace.path / os.fsdecode(piece.path)).read_bytes()
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
    lines = data.decode(encoding, "replace").split("\n")[
        piece.chunk.start_line - 1 : piece.chunk.end_line
    ]
    return "\n".join(lines).rstrip()


@asynccontextmanager
async def meant(
    root: Path, files: dict[str, bytes] | None = None
) -> AsyncIterator[Workspace]:
    """Open a project and index it completely, including vectors."""
    put(root, FILES if files is None else files)
    async with opened(root) as workspace:
        await settled(workspace)
        yield workspace


async def settled(workspace: Workspace) -> None:
    """Wait until the vectors are ready, including retries after failures."""
    await workspace.wait_embedded()
    while workspace.progress.stage == "failed":
        await workspace.indexing.pause()
        await workspace.wait_embedded()


async def until(happens: Callable[[], bool], workspace: Workspace) -> None:
    """Wait for something that the index scheduler brings about."""
    while not happens():
        with anyio.move_on_after(0.05):
            await workspace.indexing.pause()
