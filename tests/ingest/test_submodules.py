"""Submodules are part of the outer project, as ripgrep has it: by their own rules and excludes, not by outer ones."""

import os
import subprocess
from pathlib import Path

from flashgrep.base.config import Settings
from flashgrep.base.own_folders import find_owner
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from tests.support.git import commit, git
from tests.support.rg_tree import RG
from tests.support.workspace import ask, files_with, opened, put

LOCAL = ("-c", "protocol.file.allow=always")
"""Submodules of the tests come from folders, which git refuses by default."""


def ripgrep(root: Path, *arguments: str) -> set[bytes]:
    """Return the lines that ripgrep prints."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(root)}
    printed = subprocess.run(
        [RG, "--no-config", *arguments],
        cwd=root,
        capture_output=True,
        check=False,
        env=environ,
    )
    return set(printed.stdout.splitlines())


async def test_submodules_are_searched_as_ripgrep_searches_them(
    root: Path, tmp_path: Path
) -> None:
    inner, middle = tmp_path / "inner", tmp_path / "middle"
    for folder in (inner, middle):
        folder.mkdir()
        git(folder, "init", "-q")
    put(
        inner,
        {"deep.txt": b"needle\n", "deep.log": b"needle\n", ".gitignore": b"*.tmp\n"},
    )
    commit(inner)
    put(
        middle,
        {
            "mid.txt": b"needle\n",
            "mid.log": b"needle\n",
            "kept/a.out": b"needle\n",
            ".ignore": b"secret*\n",
        },
    )
    commit(middle)
    git(middle, *LOCAL, "submodule", "add", "-q", str(inner), "third/inner")
    commit(middle)
    put(
        root,
        {
            ".gitignore": b"*.log\n*.out\nignored/\n",
            ".rgignore": b"*.md\n",
            "top.txt": b"needle\n",
            "top.log": b"x",
        },
    )
    for name in ("third/middle", "ignored/middle", "emptied"):
        git(root, *LOCAL, "submodule", "add", "-q", "-f", str(middle), name)
    git(root, *LOCAL, "submodule", "update", "-q", "--init", "--recursive")
    git(root, *LOCAL, "submodule", "deinit", "-q", "-f", "emptied")
    # A clone that is no submodule, with a folder for its repository, and excludes of
    # each kind of repository.
    git(root, "clone", "-q", "-l", str(inner), "embedded")
    put(
        root,
        {
            "embedded/.git/info/exclude": b"*.secret\n",
            "embedded/x.secret": b"needle\n",
            "embedded/y.log": b"needle",
        },
    )
    modules = root / ".git" / "modules" / "third" / "middle"
    put(
        root,
        {
            "third/middle/a.private": b"needle\n",
            "third/middle/b.tmp": b"needle\n",
            "third/middle/c.md": b"needle\n",
        },
    )
    put(modules, {"info/exclude": b"*.private\n"})
    put(
        root,
        {
            "third/middle/secret.txt": b"needle\n",
            "third/middle/third/inner/new.tmp": b"needle\n",
        },
    )

    async with opened(root) as workspace:
        assert await workspace.refresh()
        listed = set(workspace.paths())
        assert listed == ripgrep(root, "--files")
        assert {
            b"third/middle/mid.log",
            b"third/middle/third/inner/deep.log",
            b"embedded/y.log",
        } <= listed
        assert not any(path.endswith((b".secret", b"top.log")) for path in listed)
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        # Taken out and put back, as a checkout of the outer project does.
        git(root, *LOCAL, "submodule", "deinit", "-q", "-f", "third/middle")
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        git(
            root,
            *LOCAL,
            "submodule",
            "update",
            "-q",
            "--init",
            "--recursive",
            "third/middle",
        )
        found = {path for path, _ in await ask(workspace, "literal", "needle")}
        assert found == ripgrep(root, "-l", "needle")
        assert b"third/middle/third/inner/deep.txt" in found


def test_a_submodule_shares_its_superprojects_store_and_nobody_else_does(
    root: Path, tmp_path: Path
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    put(inner, {"a.txt": b"needle\n"})
    commit(inner)
    git(root, *LOCAL, "submodule", "add", "-q", str(inner), "third/inner")
    commit(root)
    second = tmp_path / "second"
    git(root, "worktree", "add", "-q", str(second))
    git(second, *LOCAL, "submodule", "update", "-q", "--init")
    outer, submodule = os.fsencode(root.resolve() / ".git"), root / "third" / "inner"

    def owner(folder: Path) -> bytes:
        return find_owner(os.fsencode(folder))

    assert (
        owner(root)
        == owner(second)
        == owner(submodule)
        == owner(second / "third" / "inner")
        == outer
    )
    # A folder that only claims to be that submodule; one whose repository names another
    # work tree; one that is no file.
    claims = tmp_path / "claims"
    put(claims, {".git": b"gitdir: %b/modules/third/inner\n" % outer})
    assert owner(claims) == os.fsencode(claims)
    config = root / ".git" / "modules" / "third" / "inner" / "config"
    told = config.read_bytes()
    for text in (
        told.replace(b"third/inner", b"third/other"),
        told.replace(b"[core]", b"[other]"),
        b"",
        b"\0" * 99_999,
    ):
        config.write_bytes(text)
        assert owner(submodule) == os.fsencode(submodule)
    config.unlink()
    os.mkfifo(config)
    assert owner(submodule) == os.fsencode(submodule)
    config.unlink()
    config.write_bytes(told)
    assert owner(submodule) == outer


async def test_texts_of_a_submodule_are_stored_once(root: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    put(
        inner,
        {
            f"part{at}.py": b"def part_%d():\n    return %d\n" % (at, at)
            for at in range(9)
        },
    )
    commit(inner)
    git(root, *LOCAL, "submodule", "add", "-q", str(inner), "inner")
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings()
    ) as projects:
        first, second = [
            await projects.open(str(folder)) for folder in (root, root / "inner")
        ]
        for workspace in (first, second):
            await workspace.wait_embedded()
        assert first.store is second.store
        size = await second.size()
        assert size is not None
        assert (size.files, size.texts, size.shared_texts) == (9, 9, 9)
        assert await files_with(second, "part_3") == {b"part3.py"}
        assert await files_with(first, "part_3") == {b"inner/part3.py"}
