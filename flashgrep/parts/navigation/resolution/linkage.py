"""What a C or C++ name means beyond its file: by linkage, or by the headers that its file includes, near or far."""

import posixpath
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    INCONCLUSIVE,
    PROVEN,
    Definition,
    Inconclusive,
    Resolution,
)
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import NAME, START
from flashgrep.parts.symbols.symbol_source import SymbolSource, TextCache

LINKED: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp"})
"""Languages in which a function that is not static has one definition per program."""
_MACRO_CALLED: Final = 0.3
"""The confidence for a macro with the name of a function."""
MOST_INCLUDED: Final = 100
"""Most files followed from one including file."""
MOST_READ: Final = 300
"""Most files read for one question, which may concern hundreds of including files."""
_INCLUDE: Final = re.compile(
    rb"#\s*(?:include|include_next|import)\s*[<\"]([^>\"\n]+)[>\"]"
)
_FOLDERS: Final = (b"", b"include", b"src", b"inc")
"""Usual include folders, tried below each enclosing folder: compiler options are not read."""
_MOST_FOUND: Final = 20_000
"""Most resolved includes cached for a project, about 5 MB."""
_written = TextCache[tuple[bytes, ...]](4_000)
"""Includes of files as written, about a kilobyte each: every question about C follows the same headers."""
_UNKNOWN: Final = b"\0"


def _count_linkable(definitions: Iterable[Definition]) -> int:
    """Return how many definitions are functions that other files can be linked to."""
    count = 0
    for definition in definitions:
        if definition.kind != "function" or definition.language not in LINKED:
            continue
        if not is_static(definition):
            count += 1
    return count


def resolve_by_linkage(
    target: Definition,
    rivals: Sequence[Definition],
    find_included: Callable[[], AbstractSet[bytes]],
) -> Resolution | Inconclusive | None:
    """Return how a name used in one file means a definition in another; None: it means something else.

    INCONCLUSIVE: no evidence. A function is resolved by linkage if only one can be linked, and
    anything else by the file's includes: ``find_included`` returns the nearest of the rivals' files.
    """
    is_linked = target.kind == "function" and not is_static(target)
    # The linker would refuse two; if there is one, the name can mean nothing else.
    if is_linked and _count_linkable(rivals) == 1:
        return Resolution(PROVEN, "linkage")
    included = find_included()
    if (
        target.path in included
        and target.kind == "macro"
        and any(rival.kind == "function" for rival in rivals)
    ):
        return Resolution(
            _MACRO_CALLED, "macro of a function's name"
        )  # it may rename the function
    if target.path in included:
        return Resolution(PROVEN if len(included) == 1 else GUESS, "include")
    is_own = target.kind == "function" and not is_linked and b".h" not in target.path
    # Without a header, the compiler's search path is unknown.
    return None if included or is_own else INCONCLUSIVE


def is_static(one: Definition) -> bool:
    """Whether a function is visible only in its own file."""
    row = one.symbols.row(one.index)
    return b"static" in one.symbols.data[row[START] : row[NAME]]


class Includes:
    """Follows includes in one state of a project; looks up each file once."""

    def __init__(
        self, source: SymbolSource, open_file: Callable[[bytes], FileSymbols | None]
    ) -> None:
        self.source = source
        self._open = open_file
        self._near: dict[bytes, tuple[bytes, ...]] = {}
        self._found: dict[Hashable, Any] = source.by_paths
        self._reached: dict[tuple[bytes, AbstractSet[bytes]], AbstractSet[bytes]] = {}

    def reach(self, path: bytes, wanted: AbstractSet[bytes]) -> AbstractSet[bytes]:
        """Return which of several files a file includes; only those the fewest steps away."""
        if (path, wanted) in self._reached:
            return self._reached[path, wanted]
        seen = {path}
        level = [path]
        reached: AbstractSet[bytes] = frozenset()
        while (
            level
            and not reached
            and len(seen) <= MOST_INCLUDED
            and len(self._near) < MOST_READ
        ):
            further: list[bytes] = []
            for file in level[:MOST_INCLUDED]:
                checkpoint()
                further += (near for near in self.near(file) if near not in seen)
                seen.update(further)
            reached = wanted & set(further)
            level = further
        self._reached[path, wanted] = reached
        return reached

    def near(self, path: bytes) -> tuple[bytes, ...]:
        """Return the files of the project that a file includes directly."""
        if path not in self._near:
            folder = posixpath.dirname(path)
            version = self.source.version(path)
            read = partial(self._read_written, path)
            if version is None:
                written = read()
            else:
                written = _written.find_or_make(version, 1, read)
            paths = (self._find(folder, name_written) for name_written in written)
            self._near[path] = tuple(
                dict.fromkeys(path_near for path_near in paths if path_near is not None)
            )
        return self._near[path]

    def _read_written(self, path: bytes) -> tuple[bytes, ...]:
        symbols = self._open(path)
        spans = symbols.parsed.statements.tolist() if symbols is not None else ()
        matches = (
            (_INCLUDE.match(symbols.data, start, end) for start, end in spans)
            if symbols is not None
            else ()
        )
        return tuple(match[1] for match in matches if match is not None)

    def _find(self, folder: bytes, written: bytes) -> bytes | None:
        """Return the file of an include: in the including file's folder, or below the nearest enclosing one."""
        found_place: bytes | None = _UNKNOWN
        folders_tried = []
        while found_place == _UNKNOWN:
            found_place = self._found.get((folder, written), _UNKNOWN)
            if found_place == _UNKNOWN:
                folders_tried.append(folder)
                places = [
                    b"/".join(filter(None, (folder, below, written)))
                    for below in _FOLDERS
                ]
                if (
                    b"./" in written or b"//" in written
                ):  # normalizing every path took most of the time
                    places = [posixpath.normpath(place) for place in places]
                found_place = next(
                    filter(self.source.has, places), _UNKNOWN if folder else None
                )
                folder = posixpath.dirname(folder)
        if len(self._found) > _MOST_FOUND:
            self._found.clear()
        self._found.update(
            {(current_folder, written): found_place for current_folder in folders_tried}
        )
        return found_place
