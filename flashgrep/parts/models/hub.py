"""Fetches a model by its name from a hub (Hugging Face, or the one of HF_ENDPOINT), once the user has said yes.

Only here does flashgrep fetch anything, and only for ``fgrep model add NAME``. A file is no longer than was listed, and
has the hash that was listed. Nothing of the user's is sent: no code, no question, no token.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from urllib.error import URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.http_api import LOCAL
from flashgrep.parts.meaning.embed.model_folder import (
    CONFIGS,
    GRAPHS,
    MOST_JSON,
    MOST_TOKENIZER,
    MOST_WEIGHTS,
    STATIC,
    TABLE_FILES,
)

HUB: Final = "https://huggingface.co"
VARIABLE: Final = "HF_ENDPOINT"
NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
SECONDS: Final = 30.0
"""Without a byte."""
MOST_LISTED: Final = 8 << 20
"""Bytes of the list of a repository's files."""
PIECE: Final = 1 << 20


class Listed(NamedTuple):
    """A file of a repository: its size, and the SHA-256 of its content (empty: not stated)."""

    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a model's repository in one revision."""

    name: str
    revision: str
    licence: str
    files: Mapping[str, Listed]
    tags: frozenset[str]

    def choose(self) -> dict[str, Listed]:
        """Return the files of the model.

        Raises:
            ProviderUnavailable: there is none that can be run here, or a file is too large.

        """
        tables = [f"{STATIC}/{name}" for name in TABLE_FILES]
        table = self._first(tables)
        graph = self._first(GRAPHS)
        # The root's table is PyTorch's weights where there is a graph, or a static
        # model's: Model2Vec ships both, and its graph is only the table again.
        weights = table or graph or self._first(TABLE_FILES)
        if self.is_static and not table:
            weights = self._first(TABLE_FILES)
        if weights is None:
            raise ProviderUnavailable(
                f"{self.name}: neither a static table nor a graph of ONNX among its files"
            )
        # With its slash: "/tokenizer.json" would be a path from the root.
        folder = "".join(weights.rpartition("/")[:2])
        chosen: dict[str, Listed] = {}
        for name in (
            weights,
            # Weights of a large graph are beside it.
            f"{weights}_data",
            f"{weights}.data",
            f"{folder}tokenizer.json",
            "tokenizer.json",
            *CONFIGS,
        ):
            file = self.files.get(name)
            if file is None:
                continue
            most = _bound(name, weights)
            if not 0 <= file.size <= most:
                raise ProviderUnavailable(
                    f"{self.name}: {name} has {file.size} bytes, at most {most} are fetched"
                )
            chosen[name] = file
        return chosen

    @property
    def is_static(self) -> bool:
        """Whether its card says that it is a table of Model2Vec."""
        return "model2vec" in self.tags

    def _first(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self.files), None)


class Hub:
    """A hub of models."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Raise ProviderUnavailable if the environment names a hub that is not to be asked."""
        self.address = (environ.get(VARIABLE) or HUB).rstrip("/")
        check_address(self.address)
        self._opener = build_opener(_CheckedRedirects())

    def list_files(self, name: str) -> Listing:
        """Return what a model's repository has.

        Raises:
            ProviderUnavailable: there is no such repository, or no usable response.

        """
        address = f"{self.address}/api/models/{quote(name)}?blobs=true"
        # Bounded, since the address may be any server of the environment.
        with _reaching(address), self._open(address) as response:
            text = response.read(MOST_LISTED + 1)
        if len(text) > MOST_LISTED:
            raise ProviderUnavailable(f"{address}: too long a list of files")
        try:
            return _parse_listing(name, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ProviderUnavailable(f"{address}: not a list of files") from None

    def fetch(
        self, listing: Listing, files: Mapping[str, Listed], folder: Path,
        tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Fetch files into a folder; raises ProviderUnavailable if one is not as it was listed."""
        for name, file in files.items():
            tell(f"{name} ({file.size:,} bytes)")
            where = (
                f"{quote(listing.name)}/resolve/{quote(listing.revision)}/{quote(name)}"
            )
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._fetch_file(f"{self.address}/{where}", file, target)

    def _fetch_file(self, address: str, file: Listed, target: Path) -> None:
        digest = sha256()
        # Counted, since a response may go on after what was listed.
        size = 0
        with (
            _reaching(address),
            self._open(address) as response,
            target.open("xb") as out,
        ):
            while piece := response.read(PIECE):
                size += len(piece)
                if size > file.size:
                    break
                digest.update(piece)
                out.write(piece)
        if size != file.size or file.digest not in ("", digest.hexdigest()):
            raise ProviderUnavailable(f"{address}: not the file that was listed")

    def _open(self, address: str) -> Any:
        request = Request(address, headers={"User-Agent": "flashgrep"})  # noqa: S310 - checked by __init__
        return self._opener.open(request, timeout=SECONDS)


@contextmanager
def _reaching(address: str) -> Iterator[None]:
    """Report that an address cannot be reached, or stops in the middle."""
    try:
        yield
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise ProviderUnavailable(f"{address}: {error}") from None


class _CheckedRedirects(HTTPRedirectHandler):
    """Follows redirects to https only: large files are elsewhere."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage,
        newurl: str,
    ) -> Request | None:  # fmt: skip
        """Return the request to follow."""
        check_address(newurl)
        # A hub elsewhere has no business with the servers of this machine.
        is_downgrade = newurl.startswith("http:") and req.type == "https"
        if is_downgrade:
            raise ProviderUnavailable(f"{newurl}: only https is used")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(address: str) -> None:
    """Refuse an address that is neither https nor of this machine; raises ProviderUnavailable."""
    try:
        place = urlsplit(address)
    except ValueError as error:
        raise ProviderUnavailable(f"{address}: {error}") from None
    is_here = place.scheme == "http" and place.hostname in LOCAL
    if not is_here and (place.scheme != "https" or not place.hostname):
        raise ProviderUnavailable(f"{address}: only https is used")


def _bound(name: str, weights: str) -> int:
    if name.startswith(weights):
        return MOST_WEIGHTS
    if name.endswith("tokenizer.json"):
        return MOST_TOKENIZER
    return MOST_JSON


def _parse_listing(name: str, answer: Any) -> Listing:
    # Names are looked up and never joined to a path: only those of our own tables are.
    files = {}
    for file in answer["siblings"]:
        path = str(file["rfilename"])
        size = int(file.get("size") or 0)
        digest = (file.get("lfs") or {}).get("sha256", "")
        files[path] = Listed(size, str(digest))
    # A repository without a card has null here.
    card = answer.get("cardData") or {}
    return Listing(
        name=name,
        revision=str(answer["sha"]),
        licence=str(card.get("license", "")),
        files=files,
        tags=frozenset(map(str, answer.get("tags") or ())),
    )
