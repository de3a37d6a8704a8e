"""Repositories made by the real git."""

import os
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


def git(root: Path, *arguments: str, given: bytes = b"", check: bool = True) -> bytes:
    """Run git in a repository, ``given`` as its input, and return what it prints."""
    command = ["git", "-C", str(root), *arguments]
    environ = {**os.environ, **IDENTITY}
    return subprocess.run(command, input=given, check=check, capture_output=True, env=environ).stdout


def commit(root: Path, message: str = "change") -> str:
    """Commit all that there is, and return the commit's name."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD").decode().strip()
