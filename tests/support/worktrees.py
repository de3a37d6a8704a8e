"""Random operations on work trees of one repository with a shared store; every answer is compared with ripgrep's."""

import os
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from flashgrep.project.catalogue import Catalogue
from tests.support.git import (
    ask_revision,
    diff,
    diff_revision,
    exists,
    grep,
    list_unmerged,
    list_untracked,
)
from tests.support.truth import ripgrep
from tests.support.workspace import ask, put

WORDS = ("needle", "thread", "button", "ribbon", "velvet")
NAMES = [
    f"{folder}{name}.py" for folder in ("", "src/", "src/deep/") for name in "abcdefgh"
]
MOST_TREES = 4
KILLED = 0.05
"""Probability that the indexer is killed after a question about a revision."""


def git(root: Path, *arguments: str, check: bool = True) -> None:
    """Run git in a work tree; without ``check`` it may refuse."""
    settings = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "gc.auto=0",
    ]
    subprocess.run(
        ["git", "-C", root, *settings, *arguments], check=check, capture_output=True
    )


@dataclass(slots=True)
class WorkTrees:
    """A repository with a main work tree and others, changed at random."""

    projects: Catalogue
    main: Path
    beside: Path
    """The folder of the other work trees."""
    rng: random.Random
    trees: list[Path] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    """The operations so far, printed if an answer is wrong."""

    def start(self) -> None:
        """Commit some files, and make a second work tree."""
        put(self.main, {name: self._text() for name in NAMES})
        git(self.main, "add", ".")
        git(self.main, "commit", "-qm", "first")
        self.trees.append(self.main)
        self._add_tree(self.main)

    def step(self) -> None:
        """Do one operation in one of the work trees."""
        acts: list[Callable[[Path], None]] = [
            self._write, self._write, self._delete, self._rename, self._commit, self._check_out, self._check_out,
            self._stash, self._add_tree, self._remove_tree, self._reset, self._collect, self._kill, self._rebase,
        ]  # fmt: skip
        act, root = self.rng.choice(acts), self.rng.choice(self.trees)
        self.done.append(f"{act.__name__} {root.name}")
        act(root)

    async def agree(self) -> None:
        """Check that the answer for each word equals ripgrep's, in each work tree."""
        for root in self.trees:
            workspace = await self.projects.open(str(root))
            for word in WORDS[: 2 if len(self.done) % 5 else len(WORDS)]:
                found, wanted = (
                    await ask(workspace, "literal", word),
                    ripgrep(root, word, "-F"),
                )
                assert found == wanted, (word, root.name, self.done)
            rev = self.rng.choice(
                ["HEAD", "HEAD~1", "HEAD~3", "HEAD@{1}", "topic0", "topic1", ":index"]
            )
            if rev == ":index" or exists(root, rev):
                # git grep skips staged files in conflict; we show our side of them.
                unmerged = list_unmerged(root)
                # The first question stores texts that the next ones use, even if the
                # indexer is killed in between.
                for word in self.rng.sample(WORDS, 3):
                    found, wanted = (
                        await ask_revision(workspace, rev, word),
                        grep(root, word, rev, "-F"),
                    )
                    if rev == ":index":
                        found = {
                            (path, line) for path, line in found if path not in unmerged
                        }
                    assert found == wanted, (word, rev, root.name, self.done)
                    if self.rng.random() < KILLED:
                        self._kill(root)
                changed, told = (
                    await diff_revision(workspace, rev),
                    diff(root, *([] if rev == ":index" else [rev])),
                )
                # A file in the revision that git no longer tracks is deleted for git;
                # we compare its content.
                others = list_untracked(root) | {os.fsdecode(path) for path in unmerged}
                assert {
                    one for one in changed ^ told if one[1] not in others
                } == set(), (rev, root.name, self.done)

    def _text(self) -> bytes:
        lines = [
            f"{self.rng.choice(WORDS)} {self.rng.choice(WORDS)}\n"
            for _ in range(self.rng.randrange(1, 5))
        ]
        return "".join(lines).encode()

    def _write(self, root: Path) -> None:
        put(
            root,
            {
                self.rng.choice(NAMES): self._text()
                for _ in range(self.rng.randrange(1, 6))
            },
        )

    def _delete(self, root: Path) -> None:
        (root / self.rng.choice(NAMES)).unlink(missing_ok=True)

    def _rename(self, root: Path) -> None:
        with suppress(OSError):
            (root / self.rng.choice(NAMES)).replace(root / self.rng.choice(NAMES))

    def _commit(self, root: Path) -> None:
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more", check=False)

    def _check_out(self, root: Path) -> None:
        git(
            root,
            "checkout",
            "-qf",
            "--detach",
            self.rng.choice(["HEAD~1", "HEAD", "topic0", "topic1"]),
            check=False,
        )

    def _stash(self, root: Path) -> None:
        git(root, "stash", "-q", check=False)
        if self.rng.random() < 0.7:
            git(root, "stash", "pop", "-q", check=False)

    def _rebase(self, root: Path) -> None:
        git(
            root,
            "rebase",
            "-q",
            "--autostash",
            self.rng.choice(["topic0", "topic1", "HEAD~2"]),
            check=False,
        )
        git(root, "rebase", "--abort", check=False)  # if there was a conflict

    def _reset(self, root: Path) -> None:
        git(root, "reset", "-q", "--hard", check=False)
        git(root, "clean", "-qfd", check=False)

    def _collect(self, root: Path) -> None:
        git(root, "gc", "-q", "--prune=now")

    def _add_tree(self, root: Path) -> None:
        if len(self.trees) < MOST_TREES:
            number = self.rng.randrange(MOST_TREES)
            new = self.beside / f"tree{number}"
            if new not in self.trees:
                git(root, "worktree", "prune")
                git(
                    root,
                    "worktree",
                    "add",
                    "-qf",
                    "-B",
                    f"topic{number}",
                    str(new),
                    check=False,
                )
                if new.is_dir():
                    self.trees.append(new)

    def _remove_tree(self, root: Path) -> None:
        if root != self.main:
            git(self.main, "worktree", "remove", "--force", str(root), check=False)
            if not root.exists():
                self.trees.remove(root)

    def _kill(self, root: Path) -> None:
        """Kill the indexer at any point, like a kernel out of memory."""
        for workspace in self.projects.list_open():
            pid = workspace.store.scheduler.pid
            if workspace.path == root and pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
