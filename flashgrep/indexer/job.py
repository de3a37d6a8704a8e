"""An indexer's job: which store, which projects, and which versions of the stages' code."""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import orjson

from flashgrep.files.openat import RootFolder
from flashgrep.index.schema import LATE_STAGES, LateStage
from flashgrep.index.stage import Stage

_PACKAGE = Path(__file__).parent.parent
GRAMMARS = ("tree_sitter", "ts_kotlin", "semble_grammars")
"""Prefixes of the names of grammar packages."""


@dataclass(frozen=True, slots=True)
class IndexJob:
    """An indexer's job: which store to write, and how."""

    index: Path
    owner: bytes
    """The folder the store is named after."""
    workers: int
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the code that makes each late stage's rows; rows of other versions are dropped."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """What parts make: ``module:function`` by the name of the command, see ``project_work.ProjectWork``."""

    rows: Mapping[LateStage, str] = field(default_factory=dict)
    """How the rows of late stages are kept, see ``index.stage.load_rows``."""

    @property
    def stages(self) -> list[LateStage]:
        """The late stages that some part makes."""
        return [stage for stage in LATE_STAGES if stage in self.functions]

    def command(self) -> list[str | bytes]:
        """Return the command line of an indexer with this job."""
        module = [sys.executable, "-P", "-m", "flashgrep.indexer"]
        code = orjson.dumps(
            {
                "versions": dict(self.versions),
                "functions": dict(self.functions),
                "rows": dict(self.rows),
            }
        )
        return [*module, str(self.index), self.owner, str(self.workers), code]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Self:
        """Return the job of such a command line; ``arguments`` are those after the module's name."""
        index, owner, workers, code = arguments
        fields = orjson.loads(code)
        return cls(Path(index), os.fsencode(owner), int(workers), **fields)


@dataclass(frozen=True, slots=True)
class ProjectJob:
    """A project as its indexer needs it: its root, and the maximum file size in bytes."""

    root: RootFolder
    max_size: int
    kept_bytes: int
    """Most bytes of texts stored only for revisions."""
    kept_days: int
    """How long they are kept without a question about them."""

    def to_json(self) -> list[str | int]:
        """Return its form in a command.

        Raises:
            OSError: the root cannot be opened.

        """
        return [
            self.root.path.decode("latin-1"),
            *self.root.identity(),
            self.max_size,
            self.kept_bytes,
            self.kept_days,
        ]

    @classmethod
    def from_json(cls, facts: list[Any]) -> Self:
        """Return the project of a command."""
        root, device, inode, *limits = facts
        return cls(RootFolder(root.encode("latin-1"), (device, inode)), *limits)


def name_versions(
    versions: Mapping[str, str], stages: Iterable[Stage]
) -> Mapping[str, str]:
    """Return the versions of the late stages; that of one that no part makes is empty: its rows are not kept in step."""
    made = {stage.name for stage in stages}
    return {name: version if name in made else "" for name, version in versions.items()}


@cache
def stage_versions() -> Mapping[str, str]:
    """Return the version of each late stage: a hash of the code that makes its rows, its queries, grammars and model.

    Reads about 10 MB, once in a process.
    """
    parse = _PACKAGE / "parts" / "symbols" / "parse"
    meaning = _PACKAGE / "parts" / "meaning"
    made_by = {
        "symbols": [
            _PACKAGE / "base" / "languages.py",
            *parse.glob("*.py"),
            *parse.glob("*/*.scm"),
        ],
        "chunks": [
            *meaning.glob("chunk*.py"),
            meaning / "index" / "word_impacts.py",
            _PACKAGE / "base" / "identifiers.py",
        ],
        "vectors": [meaning / "embed" / "data" / "static.npz"],
    }
    # The installed grammars, by name and version as their folders spell them.
    library = importlib.util.find_spec("tree_sitter")
    if library is not None and library.origin is not None:
        packages = Path(library.origin).parent.parent
    else:
        packages = None
    if packages:
        grammars = [
            folder.name
            for name in GRAMMARS
            for folder in packages.glob(f"{name}*.dist-info")
        ]
    else:
        grammars = []
    versions: dict[str, str] = {}
    before = " ".join(sorted(grammars))
    for stage, files in made_by.items():  # each is built on the previous one
        content = hashlib.blake2b(before.encode(), digest_size=16)
        for file in sorted(files):
            content.update(
                hashlib.blake2b(file.read_bytes()).digest() + file.name.encode()
            )
        versions[stage] = before = content.hexdigest()
    return versions
