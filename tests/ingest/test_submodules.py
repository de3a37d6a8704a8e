"""Submodules are part of the outer project, as ripgrep has it: by their own rules and excludes, not by outer ones."""

import os
import subprocess
from pathlib import Path

from tests.support.git import commit, git
from tests.support.rg_tree import RG
from tests.support.workspace import ask, opened, put

LOCAL = ("-c", "protocol.file.allow=always")
"""Submodules of the tests come from folders, which git refuses by default."""


def ripgrep(root: Path, *arguments: str) -> set[bytes]:
    """Return the lines that ripgrep prints."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(root)}
    printed = subprocess.run([RG, "--no-config", *arguments], cwd=root, capture_output=True, check=False, env=environ)
    return set(printed.stdout.splitlines())


async def test_submodules_are_searched_as_ripgrep_searches_them(root: Path, tmp_path: Path) -> None:
    inner, middle = tmp_path / "inner", tmp_path / "middle"
    for folder in (inner, middle):
        folder.mkdir()
        git(folder, "init", "-q")
    put(inner, {"deep.txt": b"needle\n", "deep.log": b"needle\n", ".gitignore": b"*.tmp\n"})
    commit(inner)
    put(middle, {"mid.txt": b"needle\n", "mid.log": b"needle\n", "kept/a.out": b"needle\n", ".ignore": b"secret*\n"})
    commit(middle)
    git(middle, *LOCAL, "submodule", "add", "-q", str(inner), "third/inner")
    commit(middle)
    put(
        root,
        {".gitignore": b"*.log\n*.out\nignored/\n", ".rgignore": b"*.md\n", "top.txt": b"needle\n", "top.log": b"x"},
    )
    for name in ("third/middle", "ignored/middle", "emptied"):
        git(root, *LOCAL, "submodule", "add", "-q", "-f", str(middle), name)
    git(root, *LOCAL, "submodule", "update", "-q", "--init", "--recursive")
    git(root, *LOCAL, "submodule", "deinit", "-q", "-f", "emptied")
    # A clone that is no submodule, with a folder for its repository, and excludes of each kind of repository.
    git(root, "clone", "-q", "-l", str(inner), "embedded")
    put(
        root,
        {"embedded/.git/info/exclude": b"*.secret\n", "embedded/x.secret": b"needle\n", "embedded/y.log": b"needle"},
    )
    modules = root / ".git" / "modules" / "third" / "middle"
    put(
        root,
        {"third/middle/a.private": b"needle\n", "third/middle/b.tmp": b"needle\n", "third/middle/c.md": b"needle\n"},
    )
    put(modules, {"info/exclude": b"*.private\n"})
    put(root, {"third/middle/secret.txt": b"needle\n", "third/middle/third/inner/new.tmp": b"needle\n"})

    async with opened(root) as workspace:
        assert await workspace.refresh()
        listed = set(workspace.paths())
        assert listed == ripgrep(root, "--files")
        assert {b"third/middle/mid.log", b"third/middle/third/inner/deep.log", b"embedded/y.log"} <= listed
        assert not any(path.endswith((b".secret", b"top.log")) for path in listed)
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        # Taken out and put back, as a checkout of the outer project does.
        git(root, *LOCAL, "submodule", "deinit", "-q", "-f", "third/middle")
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        git(root, *LOCAL, "submodule", "update", "-q", "--init", "--recursive", "third/middle")
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        assert b"third/middle/third/inner/deep.txt" in found
