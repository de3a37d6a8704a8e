"""What an indexer is started for: whose index, within which bounds, by which versions of the stages' code."""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

import orjson

from flashgrep.ingest.openat import RootFolder

_PACKAGE = Path(__file__).parent.parent
GRAMMARS = ("tree_sitter", "ts_kotlin", "semble_grammars")
"""What the names of the packages with grammars begin with."""


@dataclass(frozen=True, slots=True)
class IndexJob:
    """What the daemon wants of an indexer."""

    root: RootFolder
    index: Path
    max_size: int
    """Bytes; larger files are declined."""
    workers: int
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the code that makes each late stage's rows; rows of other versions are dropped."""

    def command(self) -> list[str | bytes]:
        """Return the command line of an indexer with this job.

        Raises:
            OSError: the root cannot be opened.

        """
        device, inode = self.root.identity()
        numbers = [str(number) for number in (device, inode, self.max_size, self.workers)]
        module = [sys.executable, "-m", "flashgrep.indexer"]
        return [*module, self.root.path, str(self.index), *numbers, orjson.dumps(dict(self.versions))]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Self:
        """Return the job of such a command line, given from the root on."""
        root, index, device, inode, max_size, workers, versions = arguments
        folder = RootFolder(os.fsencode(root), (int(device), int(inode)))
        return cls(folder, Path(index), int(max_size), int(workers), orjson.loads(versions))


@cache
def stage_versions() -> Mapping[str, str]:
    """Return the version of each late stage: a hash of the code that makes its rows, its queries, grammars and model.

    Reads about 10 MB, once in a process.
    """
    parse = _PACKAGE / "ingest" / "parse"
    made_by = {
        "symbols": [_PACKAGE / "languages.py", *parse.glob("*.py"), *(parse / "queries").glob("*.scm")],
        "chunks": [
            *(_PACKAGE / "indexer").glob("chunk*.py"),
            _PACKAGE / "index" / "words.py",
            _PACKAGE / "identifiers.py",
        ],
        "vectors": [_PACKAGE / "embed" / "data" / "static.npz"],
    }
    # The installed grammars, by name and version as their folders spell them.
    library = importlib.util.find_spec("tree_sitter")
    packages = Path(library.origin).parent.parent if library is not None and library.origin is not None else None
    grammars = [folder.name for name in GRAMMARS for folder in packages.glob(f"{name}*.dist-info")] if packages else []
    versions: dict[str, str] = {}
    before = " ".join(sorted(grammars))
    for stage, files in made_by.items():  # each is built on the one before
        content = hashlib.blake2b(before.encode(), digest_size=16)
        for file in sorted(files):
            content.update(hashlib.blake2b(file.read_bytes()).digest() + file.name.encode())
        versions[stage] = before = content.hexdigest()
    return versions
