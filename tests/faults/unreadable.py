"""A program: files and folders without permission, seen by a user whom permissions bind (root gives up its own)."""

import os
import random
from contextlib import suppress
from pathlib import Path

import anyio

from flashgrep.files.walk import Walker
from flashgrep.project import Workspace
from tests.faults.harness import indexed
from tests.support.workspace import ask, files_with, opened, put, repository


async def body(root: Path) -> None:
    """Take permissions and give them back, and compare with what is readable."""
    put(
        root,
        {"a.txt": b"needle\n", "secret.txt": b"needle\n", "closed/b.txt": b"needle\n"},
    )
    (root / "secret.txt").chmod(0)
    (root / "closed").chmod(0)
    async with opened(root) as workspace:
        assert await ask(workspace, "literal", "needle") == {(b"a.txt", 1)}
        await indexed(workspace)
        assert await ask(workspace, "literal", "needle") == {(b"a.txt", 1)}
        assert workspace.tree.count_skips() == {
            "unreadable": 2
        }  # the file and the folder
        (root / "secret.txt").chmod(0o600)
        (root / "closed").chmod(0o700)
        assert await files_with(workspace, "needle") == {
            b"a.txt",
            b"secret.txt",
            b"closed/b.txt",
        }
        (root / "a.txt").chmod(0)
        assert await files_with(workspace, "needle") == {b"secret.txt", b"closed/b.txt"}
        (root / "a.txt").chmod(0o600)
        await indexed(workspace)
        assert await files_with(workspace, "needle") == {
            b"a.txt",
            b"secret.txt",
            b"closed/b.txt",
        }


async def check_as_fresh(workspace: Workspace, root: Path, story: object) -> None:
    """Have files, hits and unreadable folders equal those of a walk made now."""
    assert await workspace.refresh(), story
    walker = Walker(os.fsencode(root))
    listed = sorted(entry.path for entry in walker.walk())
    assert workspace.paths() == listed, story
    # Files that the index could not read meanwhile are counted until it reads them again.
    unreadable = workspace.tree.with_unread({}).get("unreadable", 0)
    assert unreadable == len(walker.unreadable), story
    assert await files_with(workspace, "needle") == set(listed), story


async def close_after_listing(root: Path) -> None:
    """Close folders whose files are known: what may not be listed is gone, though it may still be written."""
    put(
        root,
        {
            "closed/b.txt": b"needle\n",
            "closed/in/c.txt": b"needle\n",
            "open.txt": b"needle\n",
        },
    )
    closed = root / "closed"
    async with opened(root) as workspace:
        await indexed(workspace)
        for mode in (0o300, 0, 0o100, 0o400):
            closed.chmod(mode)
            await check_as_fresh(workspace, root, oct(mode))
            with suppress(PermissionError):
                (closed / "b.txt").write_text("needle\n")
                (closed / "in" / "c.txt").write_text("needle\n")
                (closed / "in" / "new").mkdir(exist_ok=True)
                (closed / "in" / "new" / "d.txt").write_text("needle\n")
            await check_as_fresh(workspace, root, (oct(mode), "written"))
            (root / ".ignore").write_text(
                f"# {mode}, so that everything is listed again\n"
            )
            await check_as_fresh(workspace, root, (oct(mode), "listed again"))
            assert workspace.paths() == [b"open.txt"]
            closed.chmod(0o700)
            await check_as_fresh(workspace, root, (oct(mode), "opened"))
            assert b"closed/in/c.txt" in workspace.paths()
        closed.chmod(0o300)
        await check_as_fresh(workspace, root, "before it is renamed")
        closed.rename(root / "renamed")
        await check_as_fresh(workspace, root, "renamed")


async def change_at_random(root: Path) -> None:
    """Open, close, write, move and remove in any order."""
    rng = random.Random(7)
    folders = [root / name for name in ("a", "a/b", "a/b/c", "d", "d/e")]
    story: list[object] = []
    async with opened(root) as workspace:
        for _ in range(60):
            for _ in range(rng.randint(1, 4)):
                folder = rng.choice(folders)
                target = rng.choice(folders)
                action = rng.choice(
                    ["chmod", "chmod", "write", "write", "remove", "rename", "make"]
                )
                mode = rng.choice([0o300, 0, 0o100, 0o400, 0o500, 0o700, 0o700])
                story.append((action, folder, target, oct(mode)))
                with suppress(OSError):
                    if action == "chmod":
                        folder.chmod(mode)
                    elif action == "write":
                        (folder / rng.choice("xyz")).write_text("needle\n")
                    elif action == "remove":
                        (folder / rng.choice("xyz")).unlink()
                    elif action == "rename":
                        folder.rename(target)
                    else:
                        folder.mkdir(parents=True)
            if rng.random() < 0.2:
                await indexed(workspace)
            await check_as_fresh(workspace, root, story[-12:])
    for folder in folders:
        with suppress(OSError):
            folder.chmod(0o700)


if __name__ == "__main__":
    for program in (body, close_after_listing, change_at_random):
        with repository() as folder:
            anyio.run(program, folder)
