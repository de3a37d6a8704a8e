"""What a folder is to git, as far as that decides which files are ours."""

from pathlib import Path
from stat import S_ISDIR, S_ISREG


def is_bare(folder: Path) -> bool:
    """Return whether a folder is a repository without a work tree, by the criteria of git itself."""
    if ".git" in folder.parts:  # such a folder belongs to a work tree
        return False
    try:
        head, *folders = (
            (folder / name).stat().st_mode for name in ("HEAD", "objects", "refs")
        )
    except OSError:
        return False
    return (
        S_ISREG(head) and all(map(S_ISDIR, folders)) and not (folder / ".git").exists()
    )
