"""Bare clones: the user's git fetches repositories added by address; those added by path are used in place."""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from flashgrep.base.child_process import ChildEnded, Ended, run_child
from flashgrep.base.errors import Unavailable
from flashgrep.files.repositories import is_bare
from flashgrep.parts.git.repository import Repository, Revision
from flashgrep.parts.team.queue import Job

FETCH_SECONDS: Final = 3600
MEMORY_BYTES: Final = 8 << 30
"""For each process of a fetch: git resolves the deltas of a large repository in memory."""
MOST_MESSAGES: Final = 1 << 16
"""Bytes of git's messages that are kept: the other side sends as many as it likes."""
TAGS: Final = "refs/tags/"
LOCKED: Final = b".lock': File exists"
"""Git's message about a lock file. A killed git left it: the worker holds the repository's turn, so no git runs."""
ADDRESS: Final = re.compile(r"(?:https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
"""Addresses passed to git: none starts with a dash, and none makes git run a program."""


def find_clone(cache: Path, repository: int, source: str) -> Path | None:
    """Return the folder of a repository's bare clone; None: it is not on this machine."""
    folder = _folder_of(cache, repository, source)
    if is_bare(folder):
        return folder
    return None


def _folder_of(cache: Path, repository: int, source: str) -> Path:
    """Return where a repository's clone is: its own path, or a folder unique to its number and address.

    The number alone is not enough: a machine may serve several stores, and each has a repository 1.
    """
    name = hashlib.sha256(source.encode()).hexdigest()[:16]
    if ADDRESS.fullmatch(source):
        return cache / f"{repository}-{name}.git"
    return Path(source)


def fetch(job: Job, cache: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of a bare clone; for an address, the user's git fetches it first, with its credentials.

    Raises:
        Unavailable: fetch_failed, with git's message; source_missing.

    """
    folder = _folder_of(cache, job.repository, job.source)
    if not ADDRESS.fullmatch(job.source):
        if not is_bare(folder):
            message = f"the clone is not on this machine: {job.source}"
            raise Unavailable(
                message,
                reason="source_missing",
                suggestion="add the repository by its address",
            )
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if is_bare(folder):
        git = _run_git(
            job,
            ["-C", str(folder), "fetch", "--prune", "--quiet", "--", "origin"],
            environ,
        )
        if not git.status:
            return folder
        if LOCKED not in git.errors:
            raise _failure(job, git)
    # Cloned into a temporary folder, then renamed: a half-made clone looks like a
    # repository without branches.
    for leftover in cache.glob(f"{folder.stem}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        dir=cache, prefix=f"{folder.stem}.new-", ignore_cleanup_errors=True
    ) as making:
        path = Path(making) / "clone"
        git = _run_git(
            job, ["clone", "--mirror", "--quiet", "--", job.source, str(path)], environ
        )
        if git.status:
            raise _failure(job, git)
        if folder.exists():
            folder.rename(Path(making) / "locked")
        path.rename(folder)
    return folder


def _run_git(job: Job, command: list[str], environ: Mapping[str, str]) -> Ended:
    """Run git with the user's settings, but without hooks and background maintenance."""
    own = {**environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        return run_child(
            ["git", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null", *command],
            environ=own,
            seconds=FETCH_SECONDS,
            memory=MEMORY_BYTES,
            most=MOST_MESSAGES,
        )
    except OSError as error:
        message = f"git cannot fetch {job.name}: {error}"
        raise Unavailable(message, reason="fetch_failed") from error
    except ChildEnded:
        message = f"git cannot fetch {job.name}: it took more than {FETCH_SECONDS} s"
        raise Unavailable(message, reason="fetch_failed") from None


def _failure(job: Job, git: Ended) -> Unavailable:
    message = git.errors.decode("utf-8", "replace").strip()[-500:]
    return Unavailable(f"git cannot fetch {job.name}: {message}", reason="fetch_failed")


def list_tags(repository: Repository, wanted: list[str]) -> dict[str, Revision]:
    """Return the commits of tags that match wildcards, by full ref name; tags of blobs and trees are left out."""
    if not wanted:
        return {}
    form = (
        "%(refname)%00%(objectname)%00%(objecttype)%00%(*objectname)%00%(*objecttype)"
    )
    tags = {}
    for line in repository.git.run(
        "for-each-ref", f"--format={form}", "refs/tags"
    ).splitlines():
        name, own, kind, tagged, tagged_kind = line.decode("utf-8", "replace").split(
            "\0"
        )
        is_wanted = any(
            fnmatchcase(name.removeprefix(TAGS), pattern) for pattern in wanted
        )
        if is_wanted and (tagged_kind or kind) == "commit":
            tags[name] = repository.resolve(tagged or own)
    return tags


def list_branches(repository: Repository, wanted: list[str]) -> dict[str, Revision]:
    """Return the commits of branches by name; if ``wanted`` is empty, of all branches."""
    printed = repository.git.run(
        "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads"
    )
    named = [
        line.decode("utf-8", "replace").partition(" ") for line in printed.splitlines()
    ]
    return {
        name: repository.resolve(commit)
        for commit, _, name in named
        if not wanted or name in wanted
    }
