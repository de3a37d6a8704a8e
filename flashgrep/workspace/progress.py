"""How far the indexing of one project is, as live figures."""

import time
from dataclasses import dataclass, field
from typing import Literal

Stage = Literal["listing", "indexing", "merging", "symbols", "chunks", "vectors", "ready", "failed"]


@dataclass(slots=True)
class Progress:
    """How far indexing is, as live figures."""

    stage: Stage = "listing"
    detail: str = ""
    since: float = field(default_factory=time.time)
    files_done: int = 0
    files_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0
    started: float = field(default_factory=time.monotonic)
    left: dict[str, int] = field(default_factory=dict)
    """Texts that a stage has not reached yet, by stage; -1: not known."""
    problem: str = ""
    """Why there are no vectors, while their provider does not answer."""
    updated: float = 0.0
    """When the index last changed, in seconds since 1970."""

    def enter(self, stage: Stage, detail: str = "") -> None:
        """Note a new stage and when it began."""
        if (stage, detail) != (self.stage, self.detail):
            self.stage, self.detail, self.since = stage, detail, time.time()

    def begin(self, files: int, size: int) -> None:
        """Note that so many files of so many bytes are to be indexed."""
        self.enter("indexing")
        self.files_done, self.files_total = 0, files
        self.bytes_done, self.bytes_total = 0, size
        self.started = time.monotonic()

    def advance(self, files: int, size: int) -> None:
        """Note that so many more of them are."""
        self.files_done += files
        self.bytes_done += size
        self.updated = time.time()

    def eta_seconds(self) -> float | None:
        """Return the seconds the grams still need at the pace so far, where that can be told."""
        if self.stage != "indexing" or not self.bytes_done or self.bytes_done > self.bytes_total:
            return None
        pace = (time.monotonic() - self.started) / self.bytes_done
        return pace * (self.bytes_total - self.bytes_done)
