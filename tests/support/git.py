"""Repositories made by the real git."""

import os
import subprocess
from pathlib import Path

from flashgrep.base.model import path_from_json
from flashgrep.parts.git.changes import compare_states
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question
from tests.support.truth import Found

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


def git(root: Path, *arguments: str, given: bytes = b"", check: bool = True) -> bytes:
    """Run git in a repository, with ``given`` as its input, and return its output."""
    command = ["git", "-C", str(root), *arguments]
    environ = {**os.environ, **IDENTITY}
    return subprocess.run(
        command, input=given, check=check, capture_output=True, env=environ
    ).stdout


def commit(root: Path, message: str = "change") -> str:
    """Commit all files, and return the commit's id."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD").decode().strip()


def exists(root: Path, rev: str) -> bool:
    """Return whether a revision has this name."""
    return bool(
        git(root, "rev-parse", "--verify", "--quiet", rev + "^{commit}", check=False)
    )


def grep(root: Path, pattern: str, rev: str, *flags: str) -> Found:
    """Return (path, line number) of every line that git grep finds in a revision, or with --cached in the index."""
    where = ["--cached"] if rev == ":index" else [rev]
    command = [
        "git",
        "-C",
        str(root),
        "grep",
        "-I",
        "-n",
        "-z",
        "--no-color",
        *flags,
        "-e",
        pattern,
    ]
    done = subprocess.run([*command, *where], capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    found: Found = set()
    for line in done.stdout.split(b"\n")[:-1]:
        path, number, _ = line.split(b"\0", 2)
        found.add(
            (
                path if rev == ":index" else path.removeprefix(rev.encode() + b":"),
                int(number),
            )
        )
    return found


async def ask_revision(
    workspace: Workspace, rev: str, text: str, mode: str = "literal"
) -> Found:
    """Return (path, line number) of every hit in a revision, from a complete answer."""
    pattern = Pattern(
        texts=(text,),
        mode="literal" if mode == "literal" else "regex",
        case="sensitive",
    )
    view = await workspace.service(REVISIONS).at(rev)
    answer = await view.search(Question(pattern=pattern, limit=10_000, max_chars=10**9))
    assert answer.complete
    assert answer.total == len(answer.results)
    return {
        (
            path_from_json(hit["file_path"], hit.get("file_path_bytes")),
            hit["start_line"],
        )
        for hit in answer.results
    }


STATUS = {"A": "added", "D": "deleted", "M": "modified"}


def diff(root: Path, *arguments: str) -> set[tuple[str, str]]:
    """Return (status, path) of each file in git's diff."""
    fields = (
        git(root, "diff", "--name-status", "--no-renames", "-z", *arguments)
        .decode()
        .split("\0")[:-1]
    )
    told = zip(fields[::2], fields[1::2], strict=True)
    return {
        (STATUS[status], path) for status, path in told if status != "U"
    }  # conflicts are listed a second time


def list_untracked(root: Path) -> set[str]:
    """Return the files that git does not track and that no rule ignores."""
    return set(
        git(root, "ls-files", "-z", "--others", "--exclude-standard")
        .decode()
        .split("\0")[:-1]
    )


def list_unmerged(root: Path) -> set[bytes]:
    """Return the files that are in conflict in git's index."""
    return {
        entry.partition(b"\t")[2]
        for entry in git(root, "ls-files", "-z", "--unmerged").split(b"\0")[:-1]
    }


async def diff_revision(workspace: Workspace, rev: str) -> set[tuple[str, str]]:
    """Return (status, path) of each tracked file in our diff."""
    found = set()
    for path, status, old_path in await workspace.service(REVISIONS).compare(
        rev, compare_states
    ):
        if status == "renamed":
            found |= {("deleted", old_path.decode()), ("added", path.decode())}
        elif status != "untracked":
            found.add((status, path.decode()))
    return found
