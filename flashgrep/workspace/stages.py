"""Versions of the code that makes the late stages' rows: a hash of that code, its queries, grammars and model."""

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
GRAMMARS = ("tree_sitter", "ts_kotlin", "semble_grammars")
"""What the names of the packages with grammars begin with."""


@cache
def stage_versions() -> Mapping[str, str]:
    """Return the version of each late stage; reads about 10 MB, once in a process."""
    parse, ingest, search = _PACKAGE / "ingest" / "parse", _PACKAGE / "ingest", _PACKAGE / "search"
    made_by = {
        "symbols": [_PACKAGE / "languages.py", *parse.glob("*.py"), *(parse / "queries").glob("*.scm")],
        "chunks": [*ingest.glob("chunk*.py"), search / "pieces.py", _PACKAGE / "index" / "words.py"],
        "vectors": [_PACKAGE / "embed" / "data" / "static.npz"],
    }
    versions: dict[str, str] = {}
    before = " ".join(_grammars())
    for stage, files in made_by.items():  # each is built on the one before
        versions[stage] = before = _hash(before, files)
    return versions


def _hash(before: str, files: Iterable[Path]) -> str:
    found = hashlib.blake2b(before.encode(), digest_size=16)
    for file in sorted(files):
        found.update(hashlib.blake2b(file.read_bytes()).digest() + file.name.encode())
    return found.hexdigest()


def _grammars() -> list[str]:
    """Return the names and versions of the installed grammars, as their folders spell them."""
    found = importlib.util.find_spec("tree_sitter")
    if found is None or found.origin is None:
        return []
    packages = Path(found.origin).parent.parent
    return sorted(folder.name for name in GRAMMARS for folder in packages.glob(f"{name}*.dist-info"))
