"""A program: another folder is mounted in a project, and taken away; run in a mount namespace of its own."""

from pathlib import Path

import anyio

from tests.faults.harness import indexed
from tests.support.workspace import files_with, opened, put, repository


async def body(root: Path, other: Path) -> None:
    """Compare with what is there at each moment."""
    put(root, {"a.txt": b"needle\n", "in/b.txt": b"needle\n"})
    put(other, {"c.txt": b"needle\n", "deep/d.txt": b"needle\n"})
    async with opened(root) as workspace:
        await indexed(workspace)
        await anyio.run_process(["mount", "--bind", str(other), str(root / "in")])
        try:
            assert await files_with(workspace, "needle") == {
                b"a.txt",
                b"in/c.txt",
                b"in/deep/d.txt",
            }
            put(root, {"in/deep/e.txt": b"needle\n"})
            assert await files_with(workspace, "needle") == {
                b"a.txt",
                b"in/c.txt",
                b"in/deep/d.txt",
                b"in/deep/e.txt",
            }
            await indexed(workspace)
        finally:
            await anyio.run_process(["umount", str(root / "in")])
        assert await files_with(workspace, "needle") == {b"a.txt", b"in/b.txt"}
        put(root, {"in/b.txt": b"thread\n"})
        assert await files_with(workspace, "needle") == {b"a.txt"}


if __name__ == "__main__":
    with repository() as folder, repository() as mounted:
        anyio.run(body, folder, mounted)
