"""Progress of indexing one project, as live figures."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import anyio

from flashgrep.index.schema import LATE_STAGES, LateStage, StageBacklog

Stage = Literal[
    "listing", "indexing", "symbols", "chunks", "vectors", "ready", "failed"
]
WITH_ALL_GRAMS: frozenset[Stage] = frozenset({*LATE_STAGES, "ready"})
"""Stages in which every text has its grams."""

Part = Literal["grams", "merging", "symbols", "chunks", "vectors"]
COSTS: Final[Mapping[Part, float]] = {
    "grams": 0.09,
    "merging": 0.03,
    "symbols": 0.60,
    "chunks": 0.27,
    "vectors": 0.01,
}
"""Shares of the total time (measured on Linux, two cores); vectors of the embedded model are made with chunks."""
EARLY: Final = 0.1
"""Until this much of a part is done, its own pace, slowed by processes that start, says little about its end."""
TOO_EARLY: Final = 0.02
"""Until this much of all work is done, there is no estimate."""


class Signal:
    """Fires any number of times; waiters take ``next`` before they check, so that no change is missed."""

    def __init__(self) -> None:
        self.next = anyio.Event()
        """Set by the next change."""

    def fire(self) -> None:
        """Wake all waiters."""
        fired = self.next
        self.next = anyio.Event()
        fired.set()


@dataclass(slots=True)
class Progress:
    """Progress of indexing; a run begins when there is something to do, and ends with ``ready``."""

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
    """Why there are no vectors while their provider does not answer."""
    changed: Signal = field(default_factory=Signal)
    """Fires whenever a figure has changed, or a file of the project."""
    updated: float = 0.0
    """When the index last changed, in seconds since 1970."""
    _shares: dict[Part, float] = field(default_factory=dict)
    _paced: dict[Part, tuple[float, float]] = field(default_factory=dict)
    """From when each part's own pace counts, on the clock of ``time.monotonic``, and how much of it was done then."""
    _noted: float = 0.0
    """When a share was last noted, on the same clock."""
    _totals: dict[LateStage, int] = field(default_factory=dict)

    def enter(self, stage: Stage, detail: str = "") -> None:
        """Note a new stage and when it began."""
        # The time at which a stage began must not move when the stage is set again.
        if (stage, detail) != (self.stage, self.detail):
            self.stage = stage
            self.detail = detail
            self.since = time.time()
            self.changed.fire()

    def start(self) -> None:
        """Begin a run."""
        self.files_done = self.files_total = self.bytes_done = self.bytes_total = 0
        self._shares.clear()
        self._paced.clear()
        self._totals.clear()
        self.started = time.monotonic()

    def begin(self, files: int, size: int) -> None:
        """Note that this many more files of this many bytes are to be indexed."""
        self.enter("indexing")
        self.files_total += files
        self.bytes_total += size

    def advance(self, files: int, size: int) -> None:
        """Note that this many more files and bytes are indexed."""
        self.files_done += files
        self.bytes_done += size
        self.updated = time.time()
        self._note(
            "grams",
            min(1.0, self.bytes_done / self.bytes_total) if self.bytes_total else 1.0,
        )

    def begin_merging(self) -> None:
        """Note that every text has its grams; texts without symbols are counted once segments are merged."""
        self._note(
            "grams", 1.0
        )  # because of files that shrank, the bytes may never be complete
        self._note("merging", 0.0)
        self.left["symbols"] = -1
        self.enter("symbols")

    def merge(self, share: float) -> None:
        """Note how much of the segments of grams is merged."""
        self._note("merging", share)

    def reach(self, stage: LateStage, left: StageBacklog) -> None:
        """Note how much a late stage has left."""
        # What is left may grow while files change; a share never counts from less than
        # it began with.
        total = max(left.bytes, self._totals.get(stage, 0))
        self._totals[stage] = total
        # Where there never was anything to do, all is done.
        if total:
            self._note(stage, 1 - left.bytes / total)
        else:
            self._note(stage, 1.0)
        self.left[stage] = left.texts

    def _note(self, part: Part, share: float) -> None:
        self._shares[part], self._noted = share, time.monotonic()
        # Measure the pace after a part's slow beginning.
        if part not in self._paced or share < EARLY:
            self._paced[part] = self._noted, share
        self.changed.fire()

    def share(self) -> float:
        """Return how much of the run's work is done, 0 to 1, all stages together."""
        if self.stage == "ready":
            return 1.0
        return sum(
            cost * (1 - rest)
            for cost, rest in zip(COSTS.values(), self._find_rest(), strict=True)
        )

    def _find_rest(self) -> list[float]:
        """Return how much of each part is left."""
        # A run that has only late stages left never notes the first two.
        unnoted = 1.0 if self.stage in LATE_STAGES else 0.0
        return [
            1 - self._shares.get(part, 0.0 if part in LATE_STAGES else unnoted)
            for part in COSTS
        ]

    def eta_seconds(self) -> float | None:
        """Return the estimated seconds left, if known.

        A part continues at its own pace; later parts are taken to be as fast as all before them. While no progress is
        noted, for example when processes start, the estimate only counts down.
        """
        share = self.share()
        if not TOO_EARLY <= share < 1 or self.stage in {"listing", "failed"}:
            return None
        usual = (self._noted - self.started) / share
        seconds = self._noted - time.monotonic()
        for (part, cost), rest in zip(COSTS.items(), self._find_rest(), strict=True):
            since, share_before = self._paced.get(part, (0.0, 1.0))
            paced = 1 - rest - share_before
            # Its own pace once enough of it is done, else its usual share of all.
            seconds += rest * (
                (self._noted - since) / paced if paced >= EARLY else cost * usual
            )
        return seconds if seconds > 0 else None
