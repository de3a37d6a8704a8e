"""Trees with ignore files, and what ripgrep, git and our walk list in them."""

import contextlib
import os
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, settings

from flashgrep.files.walk import Walker, WalkOptions
from tests.support.rg_tree import RG


def at(root: bytes, path: bytes) -> Path:
    return Path(os.fsdecode(root), os.fsdecode(path))


def write(root: bytes, path: bytes, data: bytes = b"") -> None:
    full = at(root, path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(data)


def write_if_free(root: bytes, path: bytes, data: bytes = b"") -> None:
    """Write a file, unless it would stand where a folder is, or below another file."""
    with contextlib.suppress(OSError):
        write(root, path, data)


def walked(root: bytes, options: WalkOptions = WalkOptions()) -> set[bytes]:  # noqa: B008 - frozen
    return {entry.path for entry in Walker(root, options).walk()}


def by_ripgrep(root: bytes, *flags: str) -> set[bytes]:
    command = [RG, "--no-config", "--files", "-0", "--no-messages", *flags]
    answer = subprocess.run(command, cwd=root, capture_output=True, check=False)
    paths = (path.removeprefix(b"./") for path in answer.stdout.split(b"\0") if path)
    # ripgrep takes "!*/" for leave to enter .git as well; that folder is never ours.
    return {path for path in paths if b".git" not in path.split(b"/")}


def globbed(root: bytes, *flags: bytes) -> set[bytes] | None:
    """Return the files that ripgrep chooses without ignore rules; None if it takes the flags for an error."""
    command = [RG, "--no-config", "--files", "-0", "--no-ignore"]
    words = [*map(os.fsencode, command), *flags]
    answer = subprocess.run(words, cwd=root, capture_output=True, check=False)
    if b"error parsing glob" in answer.stderr:
        return None
    return {path.removeprefix(b"./") for path in answer.stdout.split(b"\0") if path}


def by_git(root: bytes) -> set[bytes]:
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    answer = subprocess.run(command, cwd=root, capture_output=True, check=True)
    return {path for path in answer.stdout.split(b"\0") if path}


def fuzz(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
