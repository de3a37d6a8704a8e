"""Changes files and asks a tool at once, again and again: how often it tells what the disk no longer says."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.peer_answers import Places, compare, read_places, scan_words
from scripts.benchmarks.peer_process import NotAvailable
from scripts.benchmarks.peer_results import CHANGES, Freshness
from scripts.benchmarks.peer_running import RunningPeer
from scripts.benchmarks.peer_tools import Form, Question, Way

TURNS = 2
"""Changes of each kind."""
CATCH_UP_SECONDS = 60.0
"""A tool that watches has so long to notice what was changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to one file with words of its own, which occur nowhere else; ``stem`` begins them."""

    kind: str
    path: Path
    stem: str

    @property
    def before(self) -> str:
        """Return the file's word before an edit, and of the other kinds its only one."""
        return f"{self.stem}_before"

    @property
    def after(self) -> str:
        """Return the file's word after an edit."""
        return f"{self.stem}_after"

    @property
    def words(self) -> Sequence[str]:
        """Return what is asked after the change: after an edit the new word and the old one."""
        return [self.after, self.before] if self.kind == "edit" else [self.before]

    def plant(self) -> None:
        """Write the file as the index will know it; a file to be added is not there yet."""
        if self.kind != "add":
            _write(self.path, self.before)

    def make(self) -> None:
        """Change the file."""
        MAKERS[self.kind](self)


def planned(name: str, tree: Path, files: Sequence[str]) -> list[Change]:
    """Return a tool's changes, beside files spread over the tree; ``name``: letters, in each word."""
    changes: list[Change] = []
    count = len(CHANGES) * TURNS
    for number in range(count):
        kind = CHANGES[number % len(CHANGES)]
        folder = (tree / files[number * len(files) // count]).parent
        stem = f"peer_{name}_{kind}_{number}"
        changes.append(Change(kind, folder / f"{stem}.c", stem))
    return changes


def measure_freshness(
    running: RunningPeer, changes: Sequence[Change], rg: Path
) -> Freshness | None:
    """Make each change and ask at once; then let the tool catch up, and ask again.

    Return nothing for a tool that cannot be asked for a text.
    """
    ways = _ways_in_turn(running)
    if not ways:
        return None
    stale = dict.fromkeys(CHANGES, 0)
    for change in changes:
        change.make()
        answers = _answers(running, ways, change.words)
        # The full scan comes second: it would give the tool a second to notice.
        expected = scan_words(rg, running.tree, change.words)
        stale[change.kind] += _is_wrong(answers, expected)
    is_stale = any(stale.values())
    started = time.perf_counter()
    if is_stale and running.peer.index and not running.peer.watches:
        running.index()
    later = _count_later(running, changes, ways, rg)
    caught_up = time.perf_counter() - started if is_stale else 0.0
    return Freshness(stale, TURNS, later, round(caught_up, 1))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The lines that a tool named for a word."""

    word: str
    form: Form
    places: Places


def _ways_in_turn(running: RunningPeer) -> list[Way]:
    """Return the ways to ask for a text, the socket first: it leaves the least time to notice a change."""
    sockets: list[Way] = []
    commands: list[Way] = []
    for way in running.peer.ways:
        if way.form is Form.SOCKET and way.is_whole:
            sockets.append(way)
        elif way.literal:
            commands.append(way)
    return sockets + commands


def _answers(
    running: RunningPeer, ways: Sequence[Way], words: Sequence[str]
) -> list[_Answer] | None:
    """Ask for each word in each way; return nothing if a way fails."""
    answers: list[_Answer] = []
    for word in words:
        for way in ways:
            try:
                printed = running.ask(way, Question("changed", word))
            except NotAvailable:
                return None
            places = read_places(printed, way.form, running.tree)
            answers.append(_Answer(word, way.form, places))
    return answers


def _is_wrong(answers: list[_Answer] | None, expected: Mapping[str, Places]) -> bool:
    if answers is None:
        return True
    for answer in answers:
        if compare(answer.places, expected[answer.word], answer.form):
            return True
    return False


def _count_later(
    running: RunningPeer, changes: Sequence[Change], ways: Sequence[Way], rg: Path
) -> int:
    """Return how many changes are answered wrongly after time to catch up."""
    words = [word for change in changes for word in change.words]
    expected = scan_words(rg, running.tree, words)
    until = time.monotonic() + CATCH_UP_SECONDS
    later = list(changes)
    while later:
        answered = [_answers(running, ways, change.words) for change in later]
        wrong = [_is_wrong(answers, expected) for answers in answered]
        later = [change for change, bad in zip(later, wrong, strict=True) if bad]
        if not running.peer.watches or time.monotonic() > until:
            break
    return len(later)


def _write(path: Path, word: str) -> None:
    path.write_text(f"/* {word} */\nint peer_file;\n", encoding="utf-8")


def _edit(change: Change) -> None:
    _write(change.path, change.after)


def _delete(change: Change) -> None:
    change.path.unlink()


def _rename(change: Change) -> None:
    change.path.rename(change.path.with_name(f"renamed_{change.path.name}"))


def _add(change: Change) -> None:
    _write(change.path, change.before)


MAKERS: Mapping[str, Callable[[Change], None]] = {
    "edit": _edit,
    "delete": _delete,
    "rename": _rename,
    "add": _add,
}
