"""Switching a project's watcher off and on: off, nothing is held; on again, everything is looked at once."""

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.files.watch import Change, watch
from flashgrep.project.freshness import STOPPED, SwitchableWatcher


@pytest.fixture(params=[True, False], ids=["kernel", "markers"])
def switch(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[SwitchableWatcher]:
    (tmp_path / ".flashgrep").mkdir()
    made = SwitchableWatcher(lambda: watch(bytes(tmp_path), native=request.param))
    yield made
    made.close()


def changes(switch: SwitchableWatcher) -> set[Change]:
    assert switch.settle(10)
    return {
        change for change in switch.drain() if not change.path.startswith(b".flashgrep")
    }


def test_it_watches_from_the_start(switch: SwitchableWatcher, tmp_path: Path) -> None:
    assert (switch.is_off, switch.failed) == (False, "")
    switch.add(b"")
    (tmp_path / "a").write_text("a")
    assert Change("file", b"a") in changes(switch)


def test_off_it_tells_nothing_and_why(
    switch: SwitchableWatcher, tmp_path: Path
) -> None:
    switch.add(b"")
    assert switch.switch(on=False)
    assert not switch.switch(on=False)
    (tmp_path / "a").write_text("a")
    switch.add(b"")
    assert (switch.is_off, switch.failed, changes(switch)) == (True, STOPPED, set())


def test_on_again_everything_may_has_changed(
    switch: SwitchableWatcher, tmp_path: Path
) -> None:
    switch.add(b"")
    switch.switch(on=False)
    (tmp_path / "a").write_text("a")
    assert switch.switch(on=True)
    assert not switch.switch(on=True)
    assert (switch.is_off, switch.failed) == (False, "")
    assert switch.drain() == [Change("overflow")]
    switch.add(b"")
    (tmp_path / "b").write_text("b")
    assert Change("file", b"b") in changes(switch)


def test_whoever_waits_on_its_descriptor_is_woken_by_the_watcher_of_the_moment(
    tmp_path: Path,
) -> None:
    switch = SwitchableWatcher(lambda: watch(bytes(tmp_path), native=True))
    number = switch.fileno()
    assert number is not None
    with select.epoll() as waiting:
        waiting.register(number, select.EPOLLIN)
        switch.add(b"")
        (tmp_path / "a").write_text("a")
        assert waiting.poll(10)
        switch.switch(on=False)
        (tmp_path / "b").write_text("b")
        assert not waiting.poll(0)
        switch.switch(on=True)
        assert switch.fileno() == number
        assert switch.drain() == [Change("overflow")]
        switch.add(b"")
        assert not waiting.poll(0)
        (tmp_path / "c").write_text("c")
        assert waiting.poll(10)
        waiting.unregister(number)
    switch.close()
    assert switch.is_off
