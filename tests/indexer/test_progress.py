"""How far indexing is, as one share over all stages, and what it says of the time that is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.cli.index_command import _describe
from flashgrep.daemon.control import PROGRESS
from flashgrep.index.schema import LATE_STAGES, StageBacklog
from flashgrep.indexer import progress as module
from flashgrep.indexer.progress import COSTS, WITH_ALL_GRAMS, Progress


class Clock:
    """A clock that is put forward by hand."""

    now = 1000.0

    def monotonic(self) -> float:
        """Return the time it shows."""
        return self.now

    def time(self) -> float:
        """Return the same as the time of day."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have the progress look at a clock of ours."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
)
def test_one_share_grows_over_all_stages_and_reaches_all(
    parts: int, merges: int, batches: list[int]
) -> None:
    progress = Progress()
    shares = [progress.share()]
    progress.start()
    progress.begin(parts, parts * 100)
    for _ in range(parts):
        progress.advance(1, 100)
        shares.append(progress.share())
    progress.begin_merging()  # exact search is ready, and the merge is part of what is left
    assert progress.stage in WITH_ALL_GRAMS
    for at in range(merges):
        shares.append(progress.share())
        progress.merge((at + 1) / merges)
        shares.append(progress.share())
    for stage, count in zip(LATE_STAGES, batches, strict=True):
        progress.enter(stage)
        for left in range(count, -1, -1):
            progress.reach(stage, StageBacklog(left, left * 100))
            shares.append(progress.share())
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert shares[parts] == pytest.approx(COSTS["grams"])


def test_a_slow_stage_changes_what_is_said_of_its_own_end(clock: Clock) -> None:
    progress = Progress()
    progress.start()
    progress.begin(10, 1000)
    clock.now += 5
    progress.advance(1, 100)
    assert progress.eta_seconds() is None  # processes have started, nothing else
    clock.now += 5
    progress.advance(9, 900)
    progress.merge(1.0)
    progress.enter("symbols")
    progress.reach("symbols", StageBacklog(100, 1000))
    usual = 10 / progress.share()
    assert progress.eta_seconds() == pytest.approx(usual - 10)
    clock.now += 300
    progress.reach("symbols", StageBacklog(50, 500))
    later = (COSTS["chunks"] + COSTS["vectors"]) * 310 / progress.share()
    assert progress.eta_seconds() == pytest.approx(300 + later)


def test_processes_that_start_make_nothing_seem_slower(clock: Clock) -> None:
    progress = Progress()
    progress.start()
    progress.begin(10, 1000)
    clock.now += 2
    progress.advance(10, 1000)
    progress.merge(1.0)
    progress.enter("symbols")
    progress.reach("symbols", StageBacklog(100, 1000))
    told = progress.eta_seconds()
    assert told is not None
    clock.now += 6  # grammars are being unpacked
    assert progress.eta_seconds() == pytest.approx(told - 6)
    progress.reach("symbols", StageBacklog(95, 950))
    for left in range(85, 40, -10):
        clock.now += 0.5
        progress.reach("symbols", StageBacklog(left, left * 10))
    clock.now += 0.5
    symbols = 45 * 2.5 / 50
    later = (COSTS["chunks"] + COSTS["vectors"]) * 10.5 / progress.share()
    assert progress.eta_seconds() == pytest.approx(symbols + later - 0.5)
    clock.now += 600  # it is not as fast as that, and how slow it is nobody can tell
    assert progress.eta_seconds() is None


def test_a_run_of_vectors_alone_counts_what_is_there_as_done() -> None:
    progress = Progress()
    progress.start()
    for stage in LATE_STAGES:
        progress.enter(stage)
        progress.reach(
            stage, StageBacklog(0, 0) if stage != "vectors" else StageBacklog(5, 50)
        )
    assert progress.share() == pytest.approx(1 - COSTS["vectors"])


def test_a_number_of_texts_that_is_not_known_is_not_shown() -> None:
    progress = Progress()
    progress.start()
    progress.begin(2, 200)
    progress.advance(2, 200)
    progress.begin_merging()
    state = {name: getattr(progress, name) for name in PROGRESS} | {
        "share": progress.share(),
        "eta_seconds": 7.0,
    }
    assert _describe(state) == "9.0% of all, merging, 7 s left"
    progress.reach("symbols", StageBacklog(1500, 900))
    assert (
        _describe(state | {"share": progress.share()})
        == "9.0% of all, 1,500 texts to go, 7 s left"
    )
