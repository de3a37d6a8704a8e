"""Vectors of a project's spec texts, by what the texts say: a text is embedded once, and none outlives its file."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from flashgrep.embed.interface import Embedder

Rows = NDArray[np.float32]


class SpecVectors:
    """The vectors of the texts asked for last, by model and content; safe from any thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes], NDArray[np.float32]] = {}
        self._opened: tuple[str, Embedder] | None = None

    def embedder(self, settings: str, opened: Callable[[str], Embedder]) -> Embedder:
        """Return the embedder of these settings, opened only if it is not the last one: some ask a server first."""
        if self._opened is None or self._opened[0] != settings:
            self._opened = (settings, opened(settings))
        return self._opened[1]

    def of(self, embedder: Embedder, texts: Sequence[str]) -> Rows:
        """Return a row for each text, embedding only those that are new; what is not asked for is forgotten."""
        if not texts:
            return np.zeros((0, embedder.dims), np.float32)
        keys = [(embedder.name, hashlib.blake2b(text.encode(), digest_size=16).digest()) for text in texts]
        known = self._known
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        fresh = dict(zip(missing, embedder.embed_code(list(missing.values())), strict=True)) if missing else {}
        rows = {key: fresh[key] if key in fresh else known[key] for key in keys}
        self._known = rows  # at once, as a whole: another thread reads either the old rows or these
        return np.stack([rows[key] for key in keys])
