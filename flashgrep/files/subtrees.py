"""Some folders below a root that are walked, where the root has far more: a cache of all versions of all libraries."""

from collections.abc import Iterable


class Subtrees:
    """Folders, relative to a root, with everything below them; replaced as a whole, so that threads see one state."""

    def __init__(self, folders: Iterable[bytes] = ()) -> None:
        self.replace(folders)

    def replace(self, folders: Iterable[bytes]) -> None:
        """Take other folders in place of these."""
        self.folders = frozenset(folders)
        above = set[bytes]()
        for folder in self.folders:
            parent = folder
            while parent:
                parent = parent.rpartition(b"/")[0]
                above.add(parent)
        self._above = frozenset(above)

    def holds(self, path: bytes) -> bool:
        """Return whether a path is one of the folders, or below one."""
        # Upwards, not through all folders: a lock file may name a thousand.
        folder = path
        while folder:
            if folder in self.folders:
                return True
            folder = folder.rpartition(b"/")[0]
        return False

    def admits(self, path: bytes) -> bool:
        """Return whether a walk visits a path: it leads to one of the folders, or is below one."""
        return path in self._above or self.holds(path)
