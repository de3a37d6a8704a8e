"""Hostile repositories: links, devices, and manipulated settings, ignore rules and index files."""

import os
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from scripts.attacks.target import Outcome, Target
from tests.support.truth import ripgrep

PATTERNS = ("needle", "evil", "function_1")


def attack_from_repositories(made: Target) -> Outcome:
    """Open misleading or expensive repositories; every answer must equal ripgrep's."""
    outcome = Outcome()
    plants = list(PLANTS.items())
    made.rng.shuffle(plants)
    with made.watched(outcome):
        for name, plant in plants:
            if not made.in_time():
                break
            root = made.folder / "foreign"
            subprocess.run(["git", "init", "-q", str(root)], check=True)
            (root / "a.py").write_text("def function_1():\n    return needle\n")
            before = made.outside_state()
            plant(root, made)
            outcome.wrong += [f"{name}: {wrong}" for wrong in _compare(made, root)]
            if made.outside_state() != before:
                outcome.wrong.append(f"{name}: a file outside was changed")
            outcome.tried += len(PATTERNS)
            made.daemon.run("projects", "remove", str(root))
            shutil.rmtree(root)
    return outcome


def _compare(made: Target, root: Path) -> list[str]:
    """Return where the daemon's answers differ from ripgrep's, before and after indexing."""
    added = made.daemon.run("projects", "add", str(root))
    if added.returncode:
        return [f"cannot be opened: {added.stderr[:300]}"]
    wrong = []
    with closing(made.connect(control=True)) as wire:
        for turn in ("before", "after"):
            for pattern in PATTERNS:
                params = {
                    "text": pattern,
                    "mode": "literal",
                    "case": "sensitive",
                    "limit": 1000,
                    "project": str(root),
                }
                answer = wire.ask("query", **params, max_tokens=1_000_000)
                hits = answer.get("result", {}).get("results", [])
                found = {
                    (os.fsencode(hit["file_path"]), hit["start_line"]) for hit in hits
                }
                truth = ripgrep(root, pattern, "-F")
                if found != truth:
                    wrong.append(
                        f"{turn} indexing, {pattern}: {sorted(found)} instead of {sorted(truth)} {answer!r:.300}"
                    )
                if made.secret in str(answer):
                    wrong.append(
                        f"{turn} indexing, {pattern}: told a text from outside"
                    )
            wire.ask("index_codebase", path=str(root), deadline_ms=1500)
    return wrong


def _links(root: Path, made: Target) -> None:
    (root / "out").symlink_to(made.outside)
    (root / "secret.txt").symlink_to(made.outside / "secret.txt")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "fifo.py")
    with suppress(OSError), socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(root / "socket.py"))


def _state_links(root: Path, made: Target) -> None:
    (root / ".flashgrep").mkdir()
    for name in ("index.db", "index.db-wal", "config.toml", "mcp.sock", ".gitignore"):
        (root / ".flashgrep" / name).symlink_to(made.outside / "secret.txt")


def _doctored_index(root: Path, _made: Target) -> None:
    """Place a database whose tables are infinite views everywhere an index has ever been stored."""
    (root / "b.py").write_text("evil needle\n")
    (root / ".flashgrep").mkdir()
    with closing(sqlite3.connect(root / ".flashgrep" / "index.db")) as connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
        for table in ("meta", "text_id", "path", "segment", "posting_block"):
            connection.execute(f"CREATE VIEW {table} AS {endless}")
        connection.commit()


def _settings(text: str) -> Callable[[Path, Target], None]:
    def plant(root: Path, _made: Target) -> None:
        (root / ".flashgrep").mkdir()
        (root / ".flashgrep" / "config.toml").write_text(text)

    return plant


def _rules(root: Path, _made: Target) -> None:
    (root / ".gitignore").write_text(
        "".join(f"*generated{at}*.o\n" for at in range(20_000))
    )
    (root / "nested").mkdir()
    (root / "nested" / ".gitignore").write_text(
        "[" * 5000 + "\n" + "**/" * 5000 + "x\n" + "!" * 5000 + "\n\\\n"
    )
    (root / "nested" / "b.py").write_text("evil needle\n")


def _names(root: Path, _made: Target) -> None:
    for name in (
        b"new\nline.py",
        b"\xff\xfe.py",
        b"-rf.py",
        b"a b.py",
        b"$(touch pwned).py",
        b"\x1b[31m.py",
        b"c" * 250,
    ):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text(
            "nothing to find\n"
        )


def _texts(root: Path, _made: Target) -> None:
    (root / "brackets.py").write_text("(" * 200_000 + "\nevil\n")
    (root / "line.js").write_text("x" * 3_000_000 + " needle\n")
    (root / "nul.py").write_bytes(b"evil \0 needle\n")
    (root / "bytes.py").write_bytes(bytes(range(1, 256)) * 400 + b"\nneedle\n")
    (root / "deep.json").write_text("[" * 100_000 + "]" * 100_000)


def _sockets(root: Path, _made: Target) -> None:
    """Place another program's socket where ours would be; it must be neither used nor removed."""
    (root / ".flashgrep").mkdir()
    with suppress(OSError), socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(root / ".flashgrep" / "mcp.sock"))
        planted.listen()


PLANTS: dict[str, Callable[[Path, Target], None]] = {
    "links to the outside": _links,
    "links in the state folder": _state_links,
    "a doctored index": _doctored_index,
    "settings of one key of 200 KB": _settings("a." * 100_000 + "b = 1\n"),
    "deeply nested settings": _settings("x = " + "[" * 10_000),
    "settings that are not TOML": _settings("\0[[["),
    "settings that loosen": _settings(
        "[index]\nmax_file_size = 1073741824\n[read]\nmax_bytes = 67108864\n"
    ),
    "many ignore rules": _rules,
    "misleading names": _names,
    "expensive texts": _texts,
    "a foreign socket": _sockets,
}
