"""How far the indexing of one project is, as live figures."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from flashgrep.index.schema import LATE_STAGES, LateStage, Left

Stage = Literal["listing", "indexing", "symbols", "chunks", "vectors", "ready", "failed"]
WITH_ALL_GRAMS: frozenset[Stage] = frozenset({*LATE_STAGES, "ready"})
"""Stages in which every text has its grams."""

GRAM_COST: Final = 0.15
COSTS: Final[Mapping[LateStage, float]] = {"symbols": 0.45, "chunks": 0.22, "vectors": 0.18}
"""Shares of the processor time that everything takes (measured on Linux)."""


@dataclass(slots=True)
class Progress:
    """How far indexing is, as live figures; a run begins when there is something to do, and ends with ``ready``."""

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
    _shares: dict[LateStage, float] = field(default_factory=dict)
    _totals: dict[LateStage, int] = field(default_factory=dict)

    def enter(self, stage: Stage, detail: str = "") -> None:
        """Note a new stage and when it began."""
        if (stage, detail) != (self.stage, self.detail):
            self.stage, self.detail, self.since = stage, detail, time.time()

    def start(self) -> None:
        """Begin a run."""
        self.files_done = self.files_total = self.bytes_done = self.bytes_total = 0
        self._shares.clear()
        self._totals.clear()
        self.started = time.monotonic()

    def begin(self, files: int, size: int) -> None:
        """Note that so many more files of so many bytes are to be indexed."""
        self.enter("indexing")
        self.files_total += files
        self.bytes_total += size

    def advance(self, files: int, size: int) -> None:
        """Note that so many more of them are."""
        self.files_done += files
        self.bytes_done += size
        self.updated = time.time()

    def reach(self, stage: LateStage, left: Left) -> None:
        """Note how much a late stage has left."""
        total = self._totals[stage] = max(left.bytes, self._totals.get(stage, 0))
        self._shares[stage] = 1 - left.bytes / total if total else 1.0
        self.left[stage] = left.texts

    def share(self) -> float:
        """Return how much of the run's work is done, 0 to 1, all stages together."""
        if self.stage == "ready":
            return 1.0
        grams = min(1.0, self.bytes_done / self.bytes_total) if self.bytes_total else float(self.stage in LATE_STAGES)
        return GRAM_COST * grams + sum(cost * self._shares.get(stage, 0.0) for stage, cost in COSTS.items())

    def eta_seconds(self) -> float | None:
        """Return the seconds the run still needs at the pace so far, where that can be told."""
        share = self.share()
        if not 0 < share < 1 or self.stage in {"listing", "failed"}:
            return None
        return (time.monotonic() - self.started) / share * (1 - share)
