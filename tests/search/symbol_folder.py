"""A plain folder as a source of symbols: no index, everything parsed; what the index must agree with."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from flashgrep.api.libraries import LibraryLookup
from flashgrep.parts.navigation.scip.scip_source import ScipSource
from flashgrep.parts.symbols.symbol_source import ReadResult, parse_file


class FolderSource:
    """Reads every file of a folder for every question."""

    imported: ScipSource | None = None
    libraries: LibraryLookup | None = None

    def __init__(self, root: Path) -> None:
        self.root = root

    def paths(self) -> list[bytes]:
        return sorted(
            bytes(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file()
        )

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:  # noqa: ARG002 - a superset
        wanted = name.encode().lower() if fold else name.encode()
        texts = (
            (path, (self.root / path.decode()).read_bytes()) for path in self.paths()
        )
        return [
            path for path, text in texts if wanted in (text.lower() if fold else text)
        ]

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:  # noqa: ARG002 - a source's signature
        return None

    def names(self, start: str, limit: int) -> list[str]:  # noqa: ARG002 - a source's signature
        return []

    def open(
        self, path: bytes, _holds: Callable[[bytes], bool] | None = None, /
    ) -> ReadResult:
        file = self.root / path.decode()
        return parse_file(path, file.read_bytes()) if file.is_file() else None

    def read(self, path: bytes) -> bytes | None:
        file = self.root / path.decode()
        return file.read_bytes() if file.is_file() else None

    def has(self, path: bytes) -> bool:
        return (self.root / path.decode()).is_file()

    def version(self, _path: bytes) -> None:
        """Return None: only reading a file tells."""

    @property
    def by_paths(self) -> dict[Hashable, Any]:
        """Return nothing: nothing is kept."""
        return {}
