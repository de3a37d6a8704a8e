"""A program: files and folders without permission, seen by a user whom permissions bind (root gives up its own)."""

from pathlib import Path

import anyio

from tests.faults.harness import indexed
from tests.support.workspace import ask, files_with, opened, put, repository


async def body(root: Path) -> None:
    """Take permissions and give them back, and compare with what is readable."""
    put(root, {"a.txt": b"needle\n", "secret.txt": b"needle\n", "closed/b.txt": b"needle\n"})
    (root / "secret.txt").chmod(0)
    (root / "closed").chmod(0)
    async with opened(root) as workspace:
        assert await ask(workspace, "literal", "needle") == {(b"a.txt", 1)}
        await indexed(workspace)
        assert await ask(workspace, "literal", "needle") == {(b"a.txt", 1)}
        assert workspace.tree.count_skips() == {"unreadable": 2}  # the file and the folder
        (root / "secret.txt").chmod(0o600)
        (root / "closed").chmod(0o700)
        assert await files_with(workspace, "needle") == {b"a.txt", b"secret.txt", b"closed/b.txt"}
        (root / "a.txt").chmod(0)
        assert await files_with(workspace, "needle") == {b"secret.txt", b"closed/b.txt"}
        (root / "a.txt").chmod(0o600)
        await indexed(workspace)
        assert await files_with(workspace, "needle") == {b"a.txt", b"secret.txt", b"closed/b.txt"}


if __name__ == "__main__":
    with repository() as folder:
        anyio.run(body, folder)
