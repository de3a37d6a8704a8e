"""Where a project keeps its state: inside its folder, or elsewhere where that cannot be written."""

import contextlib
import hashlib
import os
from pathlib import Path

STATE_FOLDER = ".flashgrep"


def state_folder(root: bytes, fallback: Path) -> bytes:
    """Make and return the folder of a project's state: inside it, or elsewhere where it cannot be written."""
    inside = Path(os.fsdecode(root)) / STATE_FOLDER
    try:
        return _made(inside)
    except OSError:
        return _made(fallback_folder(root, fallback))


def fallback_folder(root: bytes, fallback: Path) -> Path:
    """Return where the state of a project goes whose own folder cannot be written."""
    return fallback / hashlib.blake2b(root, digest_size=10).hexdigest()


def _made(folder: Path) -> bytes:
    """Make a state folder with a .gitignore of everything, refusing one that leads elsewhere."""
    if folder.is_symlink():
        raise OSError(f"a link, not a folder: {folder}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x") as ignore:  # never through a link
        ignore.write("*\n")
    probe = folder / f".probe-{os.getpid()}"
    probe.touch(exist_ok=False)
    probe.unlink()
    return os.fsencode(folder)
