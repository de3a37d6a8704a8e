"""Java's and Kotlin's libraries: source jars of Maven's and Gradle's caches, and the JDK's ``src.zip``.

A jar is a zip of another's making: only names of sources are looked at, and one entry at a time is unpacked, up to a
size, into a folder of our own cache, where an editor can open it. The folder is bounded; what was unpacked longest ago
goes first.
"""

import os
import re
import shutil
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import get_ident
from typing import Final, NamedTuple
from zlib import crc32, error

from flashgrep.api.libraries import Library
from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.parts.libraries.library_files import (
    MOST_BYTES,
    LibraryFiles,
    is_below,
)

_ENDINGS: Final = (".java", ".kt")
_MOST_JAR: Final = 512 << 20
_MOST_LIST: Final = 16 << 20
"""Most bytes of a jar's list of entries, which is read whole and takes ten times as much in memory."""
_MOST_END: Final = 66_000
"""The last bytes of a jar, which say how long that list is."""
_END: Final = re.compile(rb"PK\x05\x06.{8}(.{4})", re.DOTALL)
_WIDE_END: Final = b"PK\x06\x07"
_MOST_NAMES: Final = 100_000
_MOST_JARS: Final = 5_000
"""Most jars of the caches that are considered."""
_MOST_OPENED: Final = 400
"""Most jars that are searched for one name, those first whose group is most like its package."""
_MOST_UNPACKED: Final = 128 << 20
"""Most bytes of what is unpacked in all."""
_UNFINISHED: Final = b".new"
"""How the name of a file ends that is being written."""
_UNFINISHED_SECONDS: Final = 600.0
_SOURCES: Final = b"-sources.jar"
_DEPENDENCY: Final = re.compile(
    r"<artifactId>\s*([\w.-]+)\s*</artifactId>\s*<version>\s*([\w.${}-]+)\s*</version>"
)
_PROPERTY: Final = re.compile(r"<([\w.-]+)>([\w.-]+)</\1>")
_COORDINATES: Final = re.compile(r"(?<![\w.-])[\w.-]+:([\w.-]+):([\w.-]+)")
_NAME: Final = re.compile(r"[\w$.]+")


class _Jar(NamedTuple):
    path: bytes
    group: str
    artifact: str
    version: str


_names: BoundedCache[tuple[bytes, int, int], dict[str, str]] = BoundedCache(64 << 20)
"""The sources in a jar by package and name, by the jar's path, size and time."""

_listed: BoundedCache[
    tuple[bytes, bytes, frozenset[tuple[str, str]]], tuple[float, list[_Jar]]
] = BoundedCache(8)
"""The jars of caches by what a project declares, with the time of listing them."""
_FRESH_SECONDS: Final = 30.0
"""How long a jar is found by its list: walking 1,500 folders takes 100 ms."""


class JavaSources:
    """Finds the source of classes, for one question."""

    def __init__(self, files: LibraryFiles, home: bytes, cache: bytes) -> None:
        """``cache``: our folder for what is unpacked."""
        self._files = files
        self._maven = home + b"/.m2/repository"
        self._gradle = home + b"/.gradle/caches/modules-2/files-2.1"
        self._cache = cache
        self._declared: dict[str, str] | None = None
        for top in (self._maven, self._gradle):
            files.trust(top)

    def find_definers(self, module: str, name: str) -> list[bytes]:
        """Return the file of a class, or of the class around it."""
        if not _NAME.fullmatch(name) or not _NAME.fullmatch(module or "x"):
            return []
        # A class inside another is in the file of the outer one.
        packages = [f"{module}.{name}"]
        while "." in packages[-1]:
            packages.append(packages[-1].rpartition(".")[0])
        key = (self._maven, self._gradle, frozenset(self._read_versions().items()))
        cached = _listed.find(key)
        if cached is not None and time.monotonic() - cached[0] < _FRESH_SECONDS:
            files = self._find_in(cached[1], packages[:4])
            # What is not in them may have come since.
            if files:
                return files
        jars = [*islice(self._list_jars(), _MOST_JARS), *self._list_jdk()]
        _listed.put(key, 1, (time.monotonic(), jars))
        return self._find_in(jars, packages[:4])

    def _find_in(self, jars: Sequence[_Jar], packages: Sequence[str]) -> list[bytes]:
        for whole in packages:
            place = whole.replace(".", "/")
            for jar in self._list_likely(whole, jars):
                entry = self._read_names(jar).get(place)
                if entry is not None:
                    unpacked = self._unpack(jar, entry)
                    if unpacked is None:
                        return []
                    return [unpacked]
        return []

    def discover(self) -> None:
        """Let the files that were unpacked be read."""
        self._files.trust(self._cache)

    def find_library(self, path: bytes) -> Library | None:
        """Return the jar that an unpacked file is of."""
        if not is_below(path, self._cache):
            return None
        label = path[len(self._cache) + 1 :].split(b"/")[0]
        artifact, _, version = (
            label.decode("utf-8", "replace").rpartition("~")[0].partition("@")
        )
        return Library(artifact, version, os.path.join(self._cache, label))

    def _list_likely(self, whole: str, jars: Sequence[_Jar]) -> list[_Jar]:
        """Return the jars that may have a class: the JDK's for its packages, else those whose group is most like it."""
        declared = self._read_versions()
        words = whole.split(".")
        parts = set(words)

        def rank(jar: _Jar) -> tuple[bool, int, bool, str]:
            if jar.artifact == "jdk":
                is_own = words[0] in {"java", "javax", "jdk", "sun"}
                return not is_own, 0, False, ""
            group = [*jar.group.split("."), jar.artifact]
            shared = 0
            while (
                shared < min(len(group), len(words)) and group[shared] == words[shared]
            ):
                shared += 1
            # ``spring-web`` rather has a package with ``web`` in its name.
            shared += len(parts.intersection(jar.artifact.split("-")))
            is_declared = declared.get(jar.artifact) == jar.version
            return shared == 0, -shared, not is_declared, jar.artifact

        newest = sorted(jars, key=_order_versions, reverse=True)
        return sorted(newest, key=rank)[:_MOST_OPENED]

    def _read_versions(self) -> dict[str, str]:
        """Return the versions that the project's own manifests name, by artifact."""
        if self._declared is None:
            self._declared = {}
            pom = self._files.read_own(b"pom.xml")
            properties = dict(_PROPERTY.findall(pom))
            for artifact, version in _DEPENDENCY.findall(pom):
                self._declared[artifact] = properties.get(version.strip("${}"), version)
            for name in (b"build.gradle", b"build.gradle.kts", b"gradle.lockfile"):
                self._declared |= dict(_COORDINATES.findall(self._files.read_own(name)))
        return self._declared

    def _list_jars(self) -> Iterator[_Jar]:
        """Yield the source jars of Maven's and Gradle's caches; no link is followed on the way."""
        for top, is_maven in ((self._maven, True), (self._gradle, False)):
            real = self._files.trust(top)
            for folder, _, entries in os.walk(real) if real is not None else ():
                checkpoint()
                for entry in entries:
                    if not entry.endswith(_SOURCES):
                        continue
                    parts = os.path.relpath(folder, real).decode("utf-8", "replace")
                    if not is_maven:  # a folder named by a digest comes last
                        parts = os.path.dirname(parts)
                    above, _, version = parts.rpartition("/")
                    group, _, artifact = above.rpartition("/")
                    place = os.path.join(folder, entry)
                    yield _Jar(place, group.replace("/", "."), artifact, version)

    def _list_jdk(self) -> Iterator[_Jar]:
        for parent in (
            b"/usr/lib/jvm",
            b"/opt/java",
            b"/Library/Java/JavaVirtualMachines",
        ):
            names: list[bytes] = []
            if os.path.isdir(parent):
                names = sorted(os.listdir(parent))
            for name in reversed(names):
                for inner in (b"lib/src.zip", b"src.zip", b"Contents/Home/lib/src.zip"):
                    place = os.path.realpath(os.path.join(parent, name, inner))
                    folder = os.path.dirname(place)
                    if is_below(place, b"/usr") or is_below(place, parent):
                        if os.path.isfile(place) and self._files.trust(folder):
                            version = name.decode("utf-8", "replace")
                            yield _Jar(place, "java", "jdk", version)

    def _read_names(self, jar: _Jar) -> dict[str, str]:
        """Return the names of the sources in a jar, by their paths without the JDK's module and the ending."""
        if jar.artifact == "jdk":
            self._files.trust(os.path.dirname(jar.path))
        located = self._files.locate(jar.path)
        if located is None:
            return {}
        status = os.stat(located)
        key = (located, status.st_size, status.st_mtime_ns)
        names = _names.find(key)
        if names is None:
            names = {}
            if status.st_size <= _MOST_JAR and _has_short_list(located):
                with (
                    suppress(OSError, zipfile.BadZipFile, ValueError),
                    zipfile.ZipFile(os.fsdecode(located)) as opened,
                ):
                    for entry in opened.namelist()[:_MOST_NAMES]:
                        stem, ending = os.path.splitext(entry)
                        if (
                            ending in _ENDINGS
                            and not stem.startswith("/")
                            and ".." not in stem
                        ):
                            first, _, rest = stem.partition("/")
                            names[rest if "." in first else stem] = entry
            _names.put(key, 200 * len(names) + 100, names)
        return names

    def _unpack(self, jar: _Jar, entry: str) -> bytes | None:
        """Return the path of an entry in our folder, unpacked if it is not there yet."""
        # Another jar of the same name has another time or size, and so another folder.
        status = os.stat(jar.path)
        digest = crc32(b"%s %d %d" % (jar.path, status.st_size, status.st_mtime_ns))
        name = f"{jar.artifact}@{jar.version}~{digest:08x}"
        label = name.replace("/", "_").encode()
        folder = os.path.join(self._cache, label)
        place = os.path.normpath(os.path.join(folder, entry.encode()))
        if not is_below(place, folder):
            return None
        if not os.path.lexists(place):
            try:
                with (
                    zipfile.ZipFile(os.fsdecode(jar.path)) as opened,
                    opened.open(entry) as source,
                ):
                    data = source.read(MOST_BYTES + 1)
                # The size in the jar's list may be a lie, so one byte more is read.
                if len(data) > MOST_BYTES:
                    return None
                os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
                fresh = b"%s.%d.%d%s" % (place, os.getpid(), get_ident(), _UNFINISHED)
                Path(os.fsdecode(fresh)).write_bytes(data)
                # Under its name it is complete, whoever else unpacks it meanwhile.
                os.replace(fresh, place)
            except (
                OSError,
                zipfile.BadZipFile,
                error,
                ValueError,
                NotImplementedError,
                RuntimeError,
            ):
                return None
            # Others unpack and remove meanwhile: what is gone then is tidied by them.
            with suppress(OSError):
                self._tidy(label)
        self._files.trust(self._cache)
        return place

    def _tidy(self, latest: bytes) -> None:
        """Remove the folders of the jars unpacked longest ago while all of them are too large."""
        folders = []
        total = 0
        for name in os.listdir(self._cache):
            folder = os.path.join(self._cache, name)
            size = 0
            for place, _, entries in os.walk(folder):
                for entry in entries:
                    file = os.path.join(place, entry)
                    status = os.lstat(file)
                    size += status.st_size
                    # A process that was killed left it.
                    is_old = time.time() - status.st_mtime > _UNFINISHED_SECONDS
                    if is_old and entry.endswith(_UNFINISHED):
                        os.unlink(file)
            total += size
            folders.append((os.stat(folder).st_mtime_ns, size, folder, name))
        for _, size, folder, name in sorted(folders):
            if total > _MOST_UNPACKED and name != latest:
                shutil.rmtree(folder, ignore_errors=True)
                total -= size


def _has_short_list(jar: bytes) -> bool:
    """Whether the list of a jar's entries is no longer than its reader may take."""
    with suppress(OSError), open(jar, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_END))
        end = file.read(_MOST_END)
        sizes = [int.from_bytes(size, "little") for size in _END.findall(end)]
        return _WIDE_END not in end and max(sizes, default=0) <= _MOST_LIST
    return False


def _order_versions(jar: _Jar) -> list[tuple[bool, int, str]]:
    """Return a jar's version as its parts compare: numbers by value, and after words."""
    order = []
    for part in re.split(r"[.-]", jar.version):
        number = 0
        if part.isdigit():
            number = int(part)
        order.append((part.isdigit(), number, part))
    return order
