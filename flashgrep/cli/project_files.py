"""What flashgrep has put into a project's folder, and its removal."""

import shutil
from contextlib import suppress
from pathlib import Path

from flashgrep.base.own_folders import list_former_files
from flashgrep.base.paths import PROJECT_FOLDER, project_socket

IGNORE_ALL = "*\n"
"""The text of the ignore file that the daemon puts there."""


def clear_project(root: Path) -> None:
    """Remove what is ours in a project's folder, by its name, and the folder if nothing else is in it."""
    folder = root / PROJECT_FOLDER
    for path in find_ours(root):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
    if not folder.is_symlink():
        with suppress(OSError):  # it holds settings, or what is not ours
            folder.rmdir()


def find_ours(root: Path) -> list[Path]:
    """Return what is ours in a project's folder; nothing is ours where a link has the folder's name."""
    folder = root / PROJECT_FOLDER
    if folder.is_symlink():
        return []
    former_files = list_former_files(root)
    if Path(project_socket(str(root))).is_socket():
        former_files.append(Path(project_socket(str(root))))
    with suppress(OSError, ValueError):
        ignore = folder / ".gitignore"
        if (
            not ignore.is_symlink()
            and ignore.stat().st_size == len(IGNORE_ALL)
            and ignore.read_text() == IGNORE_ALL
        ):
            former_files.append(ignore)
    return former_files
