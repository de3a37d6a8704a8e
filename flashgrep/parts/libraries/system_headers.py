"""C's and C++'s libraries: headers of the system, and those that they include."""

import os
import re
from typing import Final

from flashgrep.api.libraries import Library
from flashgrep.parts.libraries.library_files import LibraryFiles, is_below

_TOPS: Final = (b"/usr/local/include", b"/usr/include", b"/opt/homebrew/include")
_COMPILERS: Final = b"/usr/lib/gcc"
_INCLUDE: Final = re.compile(
    r'(?m)^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^>"\n]{1,200})[>"]'
)
_MOST_HEADERS: Final = 300
"""Most headers that one leads to which are read; those of one of C++'s are a hundred."""
_MOST_FOUND: Final = 8
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_TELLING: Final = (
    r"(?m)^[ \t]*#[ \t]*define[ \t]+%(name)s\b|\b(?:struct|class|union|enum)\s+(?:\w+\s+)?%(name)s\b"
    r"|\b%(name)s\s*\(|\btypedef\b[^;]*\b%(name)s\s*;|\}\s*%(name)s\s*;|\b%(name)s\s*[=;,]"
)


class SystemHeaders:
    """Finds the headers that declare a name, for one question."""

    def __init__(self, files: LibraryFiles) -> None:
        self._files = files
        self._tops: list[bytes] | None = None
        self._is_c = False

    def find_definers(self, language: str, header: str, name: str) -> list[bytes]:
        """Return the headers that may declare a name, of one header and those that it includes."""
        if not _NAME.fullmatch(name):
            return []
        telling = re.compile(_TELLING % {"name": name})
        self._is_c = language == "c"
        # Breadth first: what the header itself declares comes before what it includes.
        waiting = self._resolve(header, b"")
        seen = set(waiting)
        declaring: list[bytes] = []
        while waiting and len(seen) < _MOST_HEADERS and len(declaring) < _MOST_FOUND:
            place = waiting.pop(0)
            text = self._files.read_text(place)
            if name in text and telling.search(text):
                declaring.append(place)
            for inner in _INCLUDE.findall(text):
                for further in self._resolve(inner, os.path.dirname(place)):
                    if further not in seen:
                        seen.add(further)
                        waiting.append(further)
        return declaring

    def discover(self) -> None:
        """Let headers be read."""
        self._list_tops()

    def find_library(self, path: bytes) -> Library | None:
        """Return the folder of headers that a file is in."""
        for top in self._list_tops():
            if is_below(path, top):
                return Library("headers", "", top)
        return None

    def _resolve(self, header: str, folder: bytes) -> list[bytes]:
        relative = header.encode()
        if b"\0" in relative or b".." in relative.split(b"/"):
            return []
        for top in (*([folder] if folder else []), *self._list_tops()):
            place = os.path.join(top, relative)
            # C++ has headers of the same names, which include those of C.
            if self._is_c and b"/c++" in top:
                continue
            if self._files.has(place):
                return [place]
        return []

    def _list_tops(self) -> list[bytes]:
        """Return the folders of headers in the order of compilers, those of the newest one included."""
        if self._tops is None:
            tops: list[bytes] = []
            for folder in _TOPS:
                real = self._files.trust(folder)
                if real is not None:
                    for name in self._files.list_names(real):
                        if name.endswith((b"-linux-gnu", b"-linux-musl")):
                            tops.append(os.path.join(real, name))
                    versions = self._list_versions(os.path.join(real, b"c++"))
                    tops += versions
                    tops.append(real)
            real = self._files.trust(_COMPILERS)
            if real is not None:
                for target in self._files.list_names(real):
                    for version in self._list_versions(os.path.join(real, target)):
                        tops.append(os.path.join(version, b"include"))
            self._tops = tops
        return self._tops

    def _list_versions(self, folder: bytes) -> list[bytes]:
        newest = b""
        for name in self._files.list_names(folder):
            is_newer = (len(name), name) > (len(newest), newest)
            if name[:1].isdigit() and is_newer:
                newest = name
        if not newest:
            return []
        return [os.path.join(folder, newest)]
