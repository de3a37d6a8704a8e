"""Which files of a project a file of C or C++ includes, near or far."""

import posixpath
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from flashgrep.checkpoint import checkpoint
from flashgrep.ingest.parse.lookup import FileSymbols

MOST_INCLUDED: Final = 100
"""Files looked through from one that includes them."""
MOST_READ: Final = 300
"""Files looked through for a whole question, which may ask for hundreds that include others."""
_INCLUDE: Final = re.compile(rb"#\s*(?:include|include_next|import)\s*[<\"]([^>\"\n]+)[>\"]")
_FOLDERS: Final = (b"", b"include", b"src", b"inc")
"""Where compilers are told to look for headers, below a folder around the file. Nobody reads how they are called."""


class Includes:
    """Follows includes in one state of a project; asks for no file twice."""

    def __init__(self, open_file: Callable[[bytes], FileSymbols | None], has: Callable[[bytes], bool]) -> None:
        self._open = open_file
        self._has = has
        self._near: dict[bytes, tuple[bytes, ...]] = {}
        self._found: dict[tuple[bytes, bytes], bytes | None] = {}
        self._reached: dict[tuple[bytes, AbstractSet[bytes]], AbstractSet[bytes]] = {}

    def reach(self, path: bytes, wanted: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Return which of several files a file includes, those alone that are the fewest steps away."""
        if (path, wanted) in self._reached:
            return self._reached[path, wanted]
        seen, level = {path}, [path]
        found: AbstractSet[bytes] = frozenset()
        while level and not found and len(seen) <= MOST_INCLUDED and len(self._near) < MOST_READ:
            further: list[bytes] = []
            for one in level[:MOST_INCLUDED]:
                checkpoint()
                further += (near for near in self.near(one) if near not in seen)
                seen.update(further)
            found, level = wanted & set(further), further
        self._reached[path, wanted] = found
        return found

    def near(self, path: bytes) -> tuple[bytes, ...]:
        """Return the files of the project that a file includes itself."""
        if path not in self._near:
            symbols, folder = self._open(path), posixpath.dirname(path)
            spans = symbols.parsed.statements.tolist() if symbols is not None else ()
            written = (_INCLUDE.match(symbols.data, start, end) for start, end in spans) if symbols is not None else ()
            found = (self._find(folder, one[1]) for one in written if one is not None)
            self._near[path] = tuple(dict.fromkeys(one for one in found if one is not None))
        return self._near[path]

    def _find(self, folder: bytes, written: bytes) -> bytes | None:
        """Return the file that an include in a folder means: beside it, else below the nearest folder around."""
        key = folder, written
        if key not in self._found:
            self._found[key] = None
            for _ in range(folder.count(b"/") + 2):
                places = (posixpath.normpath(posixpath.join(folder, below, written)) for below in _FOLDERS)
                if (found := next(filter(self._has, places), None)) is not None:
                    self._found[key] = found
                    break
                folder = posixpath.dirname(folder)
        return self._found[key]
