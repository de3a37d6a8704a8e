"""The reference: ripgrep's current results in a folder, in our format."""

import os
import subprocess
import sysconfig
from pathlib import Path

RG = Path(sysconfig.get_path("scripts")) / "rg"

Found = set[tuple[bytes, int]]


def ripgrep(root: Path, pattern: str, *flags: str) -> Found:
    """Return (path, line number) of every matching line ripgrep prints."""
    command = [
        str(RG),
        "--no-config",
        "--no-messages",
        "--null",
        "--line-number",
        "--no-heading",
        "--color=never",
    ]
    done = subprocess.run(
        [*command, *flags, "-e", pattern], cwd=root, capture_output=True, check=False
    )
    if done.stderr:  # status 2 without a message: no files
        raise ValueError(os.fsdecode(done.stderr))
    found: Found = set()
    rest = done.stdout
    while rest:
        path, _, rest = rest.partition(b"\0")
        if path.startswith(b"WARNING: stopped searching binary file") or not rest:
            break
        number, _, rest = rest.partition(b":")
        _, _, rest = rest.partition(b"\n")
        while rest.startswith(b"WARNING: "):
            rest = rest.partition(b"\n")[2]
        found.add((path.removeprefix(b"./"), int(number)))
    return found
