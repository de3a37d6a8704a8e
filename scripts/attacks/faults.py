"""Processes killed and files damaged at random moments: answers afterwards must equal ripgrep's."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from scripts.attacks.target import Outcome, Target
from tests.faults.harness import PATTERNS, changing, fill, kill, truth
from tests.faults.test_kill import descendants, hits

SPOILT = ("index.db", "index.db-wal")
"""Not index.db-shm: SQLite maps it, so truncating it kills all readers. Only the user can do that, since the folder is
private, and the user can stop the daemon anyway."""


def attack_by_kills(made: Target) -> Outcome:
    """Kill the daemon or one of its processes while files change and queries run."""
    outcome = Outcome()
    fill(made.root, made.rng, 200)
    while made.in_time():
        with (
            changing(made.root, made.rng.randrange(1 << 30)),
            suppress(OSError, ValueError, AssertionError),
            closing(made.connect()) as wire,
        ):
            for _ in range(made.rng.randrange(1, 30)):
                wire.call("query", text=made.rng.choice(PATTERNS)[1], limit=100)
            pid = made.pid()
            kill(made.rng.choice([pid, *descendants(pid)]))
            wire.call("query", text="needle")
        outcome.tried += 1
        outcome.wrong += _compare(made, "after a kill")
    return outcome


def attack_by_damage(made: Target) -> Outcome:
    """Flip bits in, truncate and remove the index's files, while the daemon runs and before it starts."""
    outcome = Outcome()
    fill(made.root, made.rng, 200)
    with closing(made.connect()) as wire:
        wire.call("index_codebase", path=".")
    harms: list[Callable[[Path], object]] = [
        lambda file: _flip(file, made),
        lambda file: os.truncate(file, made.rng.randrange(file.stat().st_size + 1)),
        lambda file: file.unlink(),
        lambda file: file.write_bytes(made.rng.randbytes(5000)),
    ]
    while made.in_time():
        files = [
            file
            for file in made.folder.rglob("*")
            if file.name in SPOILT or file.suffix == ".vectors"
        ]
        if files:
            with suppress(OSError):
                made.rng.choice(harms)(made.rng.choice(files))
        if made.rng.choice((True, False)):
            made.daemon.stop()
        outcome.tried += 1
        outcome.wrong += _compare(made, "after damage")
        with suppress(OSError, AssertionError), closing(made.connect()) as wire:
            wire.call("index_codebase", path=".")
    return outcome


def _flip(file: Path, made: Target) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(20):
        if content:
            content[made.rng.randrange(len(content))] ^= 1 << made.rng.randrange(8)
    file.write_bytes(content)


def _compare(made: Target, when: str) -> list[str]:
    made.daemon.run("daemon", "start")
    try:
        with closing(made.connect()) as wire:
            return [
                f"{when}: {mode} {text!r} differs from ripgrep"
                for (mode, text), wanted in truth(made.root).items()
                if hits(wire, mode, text) != wanted
            ]
    except (OSError, ValueError, AssertionError) as error:
        return [f"{when}: {error!r:.300}"]
