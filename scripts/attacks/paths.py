"""Paths that lead out of the project: by name, by link, or by a folder that is replaced by a link in a race."""

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from flashgrep.parts.built_in import REGISTRY
from scripts.attacks.target import Outcome, Target, harmless

PATH_FIELDS = ("file_path", "path", "src", "dst", "repo_override_path")
COMPLETING: dict[str, dict[str, Any]] = {
    "get_slice": {"start_line": 1, "end_line": 5},
    "write_code": {"old_text": "needle", "new_text": "changed"},
    "fs_write": {"content": "changed", "overwrite": True},
    "fs_create": {"overwrite": True},
    "fs_copy": {"overwrite": True},
    "fs_move": {"overwrite": True},
    "fs_remove": {"recursive": True, "force": True},
    "bootstrap_skill": {"trigger": "flashgrep-init", "allow_repo_override": True},
}
SPARED = frozenset({"index_codebase", "watch_codebase"})
"""These create projects, so they are tested separately; on a project's socket they accept only paths inside it."""


def attack_paths(made: Target) -> Outcome:
    """Call every method that takes a path with every path that leads outside."""
    outcome, before = Outcome(), made.outside_state()
    _place_links(made)
    with closing(made.connect()) as wire:
        for method, params in _calls(made):
            if not made.in_time():
                break
            outcome.tried += 1
            answer = wire.ask(method, **params)
            found = made.told_secrets(json.dumps(answer).encode())
            if found or not harmless(answer):
                what = (
                    f"told {', '.join(found)}"
                    if found
                    else f"failed inside: {answer['error']}"
                )
                outcome.wrong.append(f"{method} {_short(params)} {what}")
            if made.outside_state() != before:
                outcome.wrong.append(
                    f"{method} {_short(params)} changed a file outside the project"
                )
                before = made.outside_state()
            if method.startswith("fs_") or method == "write_code":
                made.fill()
                _place_links(made)
    return outcome


def attack_by_races(made: Target) -> Outcome:
    """Replace a folder by a link to the outside, thousands of times, during queries and reads."""
    outcome = Outcome()
    (made.root / "swap").mkdir(exist_ok=True)
    (made.root / "swap" / "secret.txt").write_text("needle inside\n")
    questions: list[tuple[str, dict[str, Any]]] = [
        ("query", {"text": "needle", "limit": 1000, "max_tokens": 100_000}),
        ("query", {"text": "needle", "limit": 1000, "use_index": False}),
        ("read_code", {"file_path": "swap/secret.txt"}),
        ("get_slice", {"file_path": "swap/secret.txt", "start_line": 1, "end_line": 1}),
        ("outline", {"path": "swap"}),
        ("glob", {"pattern": "swap/*", "follow_symlinks": True}),
        ("fs_read", {"path": "swap/secret.txt"}),
        ("fs_write", {"path": "swap/made.txt", "content": "x", "overwrite": True}),
        (
            "write_code",
            {
                "file_path": "swap/secret.txt",
                "old_text": "needle inside",
                "new_text": "needle inside",
            },
        ),
    ]
    before = made.outside_state()
    with _swapping(made.root / "swap", made.outside), closing(made.connect()) as wire:
        while made.in_time():
            method, params = made.rng.choice(questions)
            outcome.tried += 1
            answer = wire.ask(method, **params)
            found = made.told_secrets(json.dumps(answer).encode())
            if found or not harmless(answer):
                outcome.wrong.append(f"{method} {_short(params)}: {found or answer}")
    if made.outside_state() != before:
        outcome.wrong.append("a file outside the project was changed")
    return outcome


def _calls(made: Target) -> Iterator[tuple[str, dict[str, Any]]]:
    for method in REGISTRY:
        fields = [name for name in PATH_FIELDS if name in method.params.model_fields]
        if method.name in SPARED or not fields:
            continue
        for path in _leading_out(made):
            params = dict(COMPLETING.get(method.name, {}))
            for name in fields:
                yield (
                    method.name,
                    {**dict.fromkeys(fields, "src/file1.py"), **params, name: path},
                )
            if "path_bytes" in method.params.model_fields:
                yield (
                    method.name,
                    {
                        **params,
                        "path_bytes": base64.b64encode(os.fsencode(path)).decode(),
                    },
                )
            if "file_path_bytes" in method.params.model_fields:
                yield (
                    method.name,
                    {
                        **params,
                        "file_path_bytes": base64.b64encode(os.fsencode(path)).decode(),
                    },
                )


def _leading_out(made: Target) -> list[str]:
    state = Path(made.daemon.paths.state)
    secret, token = made.outside / "secret.txt", state / "token"
    ways = [
        os.path.relpath(secret, made.root),
        str(secret),
        os.path.relpath(token, made.root),
        str(token),
    ]
    ways += [
        f"src/../{ways[0]}",
        f"./{ways[0]}",
        f"src//..//{ways[0]}",
        f"{made.root}/{ways[0]}",
        f"~/{ways[0]}",
    ]
    ways += [
        "link.txt",
        "link/secret.txt",
        "link",
        "chain/secret.txt",
        "loop/x",
        "state/token",
        "proc/self/environ",
    ]
    ways += [
        ".git/config",
        ".git/hooks/pre-commit",
        ".flashgrep/config.toml",
        ".flashgrep/mcp.sock",
        ".GIT/config",
    ]
    ways += [
        "/proc/self/root/" + str(secret),
        "/dev/stdin",
        "/dev/zero",
        "fifo",
        "",
        ".",
        "..",
        "/",
        "a\0b",
        "x" * 5000,
    ]
    return [
        *ways,
        "x/" * 3000,
        "src/file1.py/x",
        "src/file1.py\n",
        "%2e%2e/outside/secret.txt",
        "..\\outside\\secret.txt",
    ]


def _place_links(made: Target) -> None:
    links = {
        "link.txt": made.outside / "secret.txt",
        "link": made.outside,
        "chain": made.root / "link",
        "loop": made.root / "loop",
        "state": Path(made.daemon.paths.state),
        "proc": Path("/proc"),
    }
    for name, aim in links.items():
        with suppress(FileExistsError):
            (made.root / name).symlink_to(aim)
    with suppress(FileExistsError):
        os.mkfifo(made.root / "fifo")


@contextmanager
def _swapping(folder: Path, outside: Path) -> Iterator[None]:
    stop, aside = threading.Event(), folder.with_name("aside")

    def swap() -> None:
        while not stop.is_set():
            folder.rename(aside)
            folder.symlink_to(outside)
            folder.unlink()
            aside.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _short(params: dict[str, Any]) -> str:
    return json.dumps(params)[:120]
