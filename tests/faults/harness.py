"""What the fault suites share: a tree that changes all the time, and the comparison that must hold after any fault."""

import os
import random
import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import anyio

from flashgrep.project import Workspace
from tests.support.truth import ripgrep
from tests.support.workspace import BOUND, ask

PATTERNS = (
    ("literal", "needle"),
    ("literal", "word7 word7"),
    ("literal", "generation 3"),
    ("literal", "nowhere_at_all"),
    ("regex", r"word1\d? needle"),
    ("regex", r"generation [5-9]"),
    ("regex", r"^word\d+$"),
)
FOLDERS = ("", "a/", "a/b/", "c d/", "ign/")
MOST_CHANGES = 3_000
"""Three times as many as there are while a tree is indexed on an idle machine."""


def content(rng: random.Random, generation: int) -> bytes:
    """Return some lines of few words, so that every pattern has hits and misses."""
    words = [f"word{at}" for at in range(20)] + ["needle"] * 2
    lines = [
        " ".join(rng.choices(words, k=rng.randrange(1, 6)))
        for _ in range(rng.randrange(1, 12))
    ]
    return "\n".join([f"generation {generation}", *lines, ""]).encode()


def fill(root: Path, rng: random.Random, files: int) -> None:
    """Write so many files."""
    for at in range(files):
        path = root / f"{rng.choice(FOLDERS)}f{at}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(rng, 0))


def _change(root: Path, rng: random.Random, turn: int) -> None:
    """Make one change as people and programs make them."""
    path = root / f"{rng.choice(FOLDERS)}f{rng.randrange(60)}.txt"
    kind = rng.randrange(8)
    if kind < 4:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(rng, turn % 12))
    elif kind == 4:
        path.unlink()
    elif kind == 5:
        path.rename(root / f"{rng.choice(FOLDERS)}moved{rng.randrange(9)}.txt")
    elif kind == 6:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content(rng, turn % 12))
        fresh.replace(path)
    else:
        _change_much(root, rng)


def _change_much(root: Path, rng: random.Random) -> None:
    if rng.random() < 0.5:
        (root / ".gitignore").write_text(
            rng.choice(["", "ign/\n", "f1*.txt\n", "a/b/\n!f2.txt\n"])
        )
    elif (root / "a").is_dir():
        shutil.rmtree(root / "z", ignore_errors=True)
        (root / "a").rename(root / "z")


@contextmanager
def changing(root: Path, seed: int) -> Iterator[None]:
    """Have a thread change the tree for as long as the block runs, but at most so many times.

    A slow machine never catches up: each reading of the tree gives up after a number of rounds, which take minutes.
    """
    stop = threading.Event()
    rng = random.Random(seed)

    def run() -> None:
        for turn in range(MOST_CHANGES):
            # Without a pause the tree would take the processor from those that read it.
            if stop.wait(0.001):
                break
            # The file to be moved is not there, a folder went meanwhile.
            with suppress(OSError):
                _change(root, rng, turn + 1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def truth(root: Path) -> dict[tuple[str, str], set[tuple[bytes, int]]]:
    """Return what ripgrep finds for each pattern."""
    return {
        (mode, text): ripgrep(root, text, *(["-F"] if mode == "literal" else []))
        for mode, text in PATTERNS
    }


async def agree(workspace: Workspace, root: Path) -> None:
    """Have every pattern's answer equal ripgrep's."""
    for (mode, text), wanted in truth(root).items():
        assert await ask(workspace, mode, text) == wanted, (mode, text)


async def indexed(workspace: Workspace) -> None:
    """Wait until everything is indexed, past failures that are tried again."""
    with anyio.fail_after(BOUND):
        await workspace.wait_indexed()
        while workspace.progress.stage == "failed":
            await workspace.indexing.pause()
            await workspace.wait_indexed()


def kill(pid: int | None) -> None:
    """End a process as a lack of memory would."""
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def integrity(database: Path) -> str:
    """Return what SQLite says of a database."""
    with closing(sqlite3.connect(database)) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
