"""The models beside the embedder that a daemon is configured with, opened when first asked for and kept."""

import threading
from collections.abc import Mapping

from flashgrep.config import Settings
from flashgrep.embed.refine import Refiner, open_refiner
from flashgrep.embed.rerank import Reranker, open_reranker


class Models:
    """Reranker and refiner by the settings; threads may share it."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._reranker: Reranker | None = None
        self._refiner: Refiner | None = None

    def reranker(self) -> Reranker | None:
        """Return the reranker; None: none is configured, the order of search stands.

        Raises:
            ProviderUnavailable: it is configured and not to be had.

        """
        with self._lock:
            if self._reranker is None:
                self._reranker = open_reranker(self._settings, self._environ)
            return self._reranker

    def refiner(self) -> Refiner:
        """Return what makes a better question of a question and its context.

        Raises:
            ProviderUnavailable: it is configured and not to be had.

        """
        with self._lock:
            if self._refiner is None:
                self._refiner = open_refiner(self._settings, self._environ)
            return self._refiner
