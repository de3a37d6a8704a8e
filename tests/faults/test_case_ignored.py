"""A folder that ignores case: a file has one name, the one that is listed, whatever letters others reach it by."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workspace import files_with, opened, put, user_folder

pytestmark = pytest.mark.slow

TOOLS = ("losetup", "mkfs.exfat", "mount.exfat-fuse", "umount")
SIZE = 16 << 20


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Mount an exFAT file system; only the superuser can, where its programs are installed."""
    if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
        pytest.skip("no exFAT here")
    image = tmp_path / "image"
    image.write_bytes(b"")
    os.truncate(image, SIZE)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    subprocess.run(["mkfs.exfat", image], check=True, capture_output=True)
    device = subprocess.run(
        ["losetup", "-f", "--show", image], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not device:
        pytest.skip("no loop device")
    try:
        subprocess.run(
            ["mount.exfat-fuse", device, mounted], check=True, capture_output=True
        )
        made = mounted / "project"
        made.mkdir()
        subprocess.run(["git", "init", "-q", made], check=True)
        yield made
    finally:
        # Lazily: an indexer that is ending may have it open for a moment.
        subprocess.run(["umount", "-l", mounted], check=False, capture_output=True)
        subprocess.run(["losetup", "-d", device], check=False, capture_output=True)
        shutil.rmtree(user_folder(mounted / "project"), ignore_errors=True)


async def test_a_file_renamed_in_its_case_alone_is_found_under_its_new_name(
    root: Path,
) -> None:
    put(root, {"A.py": b"needle\n", "Src/Deep.py": b"needle\n"})
    async with opened(root) as workspace:
        assert await files_with(workspace, "needle") == {b"A.py", b"Src/Deep.py"}
        (root / "A.py").rename(root / "a.py")
        (root / "Src").rename(root / "src")
        assert await files_with(workspace, "needle") == {b"a.py", b"src/Deep.py"}
        # As events tell it, where they are the only news.
        (root / "a.py").rename(root / "A.PY")
        workspace.tree.note_changes([b"a.py", b"A.PY"])
        assert workspace.tree.has(b"A.PY")
        assert not workspace.tree.has(b"a.py")


async def test_what_is_written_under_another_spelling_is_found_under_the_listed_one(
    root: Path,
) -> None:
    put(root, {"Src/Deep.py": b"needle\n"})
    async with opened(root) as workspace:
        assert await files_with(workspace, "needle") == {b"Src/Deep.py"}
        put(root, {"SRC/new.py": b"needle\n"})
        assert await files_with(workspace, "needle") == {b"Src/Deep.py", b"Src/new.py"}


async def test_a_path_is_taken_in_any_case_and_named_as_it_is_listed(
    root: Path,
) -> None:
    put(root, {"Src/Deep.py": b"needle\n"})
    async with opened(root) as workspace:
        assert await workspace.resolve("src/deep.PY") == b"Src/Deep.py"
        assert await workspace.resolve("SRC") == b"Src"
