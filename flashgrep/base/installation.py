"""Where flashgrep comes from, and how packages are added to what is installed here."""

import shlex
import sys
from pathlib import Path
from typing import Final

REPOSITORY: Final = "https://github.com/flashgrep/flashgrep"
PIPX_RECEIPT: Final = "pipx_metadata.json"
UV_RECEIPT: Final = "uv-receipt.toml"
"""The files that pipx and uv leave in the environment of a program that they install."""


def advise_install(package: str) -> str:
    """Return the command that adds a package, or an extra (``flashgrep[NAME]``), to the environment of this process."""
    word = shlex.quote(package)
    is_extra = package.startswith("flashgrep[")
    if Path(sys.prefix, PIPX_RECEIPT).exists():
        if is_extra:
            return f"pipx install --force {word}"
        return f"pipx inject flashgrep {word}"
    if Path(sys.prefix, UV_RECEIPT).exists():
        if is_extra:
            return f"uv tool install {word}"
        return f"uv tool install flashgrep --with {word}"
    return f"pip install {word}"
