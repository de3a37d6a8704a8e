"""A folder opened for edits, its writes under way noted beside it, as the daemon notes them in the user's folder."""

import hashlib
import os
from pathlib import Path

from flashgrep.files.root import Root


def state_of(folder: Path) -> Path:
    """Return where writes under way in a folder are noted."""
    return folder.with_name(f"{folder.name}-state")


def root_at(folder: Path) -> Root:
    """Open a folder for edits."""
    return Root(os.fsencode(folder), os.fsencode(state_of(folder)))


def sha(data: bytes) -> str:
    """Return the SHA-256 that a file's hash should be."""
    return hashlib.sha256(data).hexdigest()
